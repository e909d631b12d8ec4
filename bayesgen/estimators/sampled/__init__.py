"""Classifiers without a closed form: fitted by NUTS, used like all others."""

from bayesgen.estimators.sampled.face import SampledClassifier
from bayesgen.estimators.sampled.mixture import MixtureDiscriminant, choose_n_components
from bayesgen.estimators.sampled.reals import LKJDiscriminant, StudentTNB

__all__ = [
    "LKJDiscriminant",
    "MixtureDiscriminant",
    "SampledClassifier",
    "StudentTNB",
    "choose_n_components",
]
