"""Averages over posterior draws, with their Monte Carlo errors."""

from bayesgen.datatree.fit import drawn_posterior


def averages(clf, X, class_prior=None):
    """Class probabilities of rows from the draws of a fit, with ``mcse``."""
    fitted = clf.fitted_
    draws = fitted.posterior
    if draws.exact:
        draws = drawn_posterior(fitted, fitted.training.draws)
    return draws.monte_carlo(fitted.encoded(X), fitted.weights_of(class_prior))
