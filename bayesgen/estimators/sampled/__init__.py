"""Classifiers without a closed form: fitted by NUTS, used like all others."""

from bayesgen.estimators.sampled.bits import (
    HierarchicalBernoulliNB,
    HierarchicalCategoricalNB,
)
from bayesgen.estimators.sampled.classifier import SampledClassifier
from bayesgen.estimators.sampled.counts import (
    DirichletCompoundMultinomialNB,
    LogisticNormalNB,
    NegativeBinomialNB,
)
from bayesgen.estimators.sampled.mixture import MixtureDiscriminant, choose_n_components
from bayesgen.estimators.sampled.reals import (
    BayesianLogisticRegression,
    LKJDiscriminant,
    StudentTNB,
)

__all__ = [
    "BayesianLogisticRegression",
    "DirichletCompoundMultinomialNB",
    "HierarchicalBernoulliNB",
    "HierarchicalCategoricalNB",
    "LKJDiscriminant",
    "LogisticNormalNB",
    "MixtureDiscriminant",
    "NegativeBinomialNB",
    "SampledClassifier",
    "StudentTNB",
    "choose_n_components",
]
