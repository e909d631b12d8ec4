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
    "GenerativeClassifier": "estimators",
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
    "MutualInformationSelector": "estimators.selection",
    "QuadraticDiscriminant": "estimators",
    "StudentTNB": "estimators",
    "choose_n_components": "estimators.sampled",
    "compare_predictives": "checks.compare",
    "decide": "predict.costs",
    "estimate_class_prior": "predict.label_shift",
    "feature_relevance": "explain.feature_relevance",
    "fit_dask": "io.dask",
    "fit_stream": "io.streams",
    "load": "estimators",
    "mutual_information": "explain.mutual_information",
    "simulation_based_calibration": "checks.sbc",
    "validate": "checks.validate",
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
