"""Classifiers without a closed form: fitted by NUTS, used like all others."""

from bayesgen.estimators.sampled.face import SampledClassifier
from bayesgen.estimators.sampled.reals import StudentTNB

__all__ = ["SampledClassifier", "StudentTNB"]
