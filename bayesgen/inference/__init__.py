"""From statistics to posterior: closed form, and empirical Bayes for the prior."""
