"""Class weights times a family: prior and posterior of a whole classifier."""
