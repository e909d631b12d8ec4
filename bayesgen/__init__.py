"""Bayesian generative classifiers with the parameters integrated out.

Public names are loaded on first use: importing the package costs milliseconds, and pymc, arviz,
numba, dask and matplotlib are imported only by what needs them.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "BayesianLogisticRegression": "estimators",
    "BernoulliNB": "estimators",
    "CategoricalNB": "estimators",
    "DirichletCompoundMultinomialNB": "estimators",
    "GaussianNB": "estimators",
    "GenerativeClassifier": "classifier",
    "HierarchicalBernoulliNB": "estimators",
    "HierarchicalCategoricalNB": "estimators",
    "LKJDiscriminant": "estimators",
    "LinearDiscriminant": "estimators",
    "LogisticNormalNB": "estimators",
    "MarkovNB": "estimators",
    "MixedNB": "estimators",
    "MixtureDiscriminant": "estimators",
    "MultinomialNB": "estimators",
    "NegativeBinomialNB": "estimators",
    "PoissonNB": "estimators",
    "MutualInformationSelector": "selection",
    "QuadraticDiscriminant": "estimators",
    "StudentTNB": "estimators",
    "choose_n_components": "estimators.sampled",
    "compare_predictives": "compare",
    "decide": "decisions",
    "estimate_class_prior": "label_shift",
    "feature_relevance": "dependence",
    "fit_dask": "streams.distributed",
    "fit_stream": "streams.streaming",
    "load": "estimators",
    "mutual_information": "relevance",
    "simulation_based_calibration": "calibration",
    "validate": "validation",
}

_SUBMODULES = ("datasets", "plots")

__all__ = sorted([*_HOME, *_SUBMODULES])


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"bayesgen.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    if name in _SUBMODULES:
        return importlib.import_module(f"bayesgen.{name}")
    raise AttributeError(f"module 'bayesgen' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
