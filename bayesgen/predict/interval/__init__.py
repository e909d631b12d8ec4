"""How sure is it? The posterior distribution of the class probabilities p(y = c | x, theta)."""
