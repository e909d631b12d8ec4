"""Averages over posterior draws, with their Monte Carlo errors."""

from bayesgen.datatree.fit import drawn_posterior
from bayesgen.predict.probabilities import posterior_of


def averages(clf, X, posterior=None, class_prior=None):
    """Class probabilities of rows from the draws given, or those of a fit, with ``mcse``."""
    fitted = clf.fitted_
    draws = posterior_of(fitted, posterior)
    if draws.exact:
        draws = drawn_posterior(fitted, fitted.training.draws)
    return draws.estimate(fitted.encoded(X), fitted.weights_of(class_prior))
