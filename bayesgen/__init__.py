"""Bayesian generative classifiers with the parameters integrated out.

Public names are loaded on first use: importing the package costs milliseconds, and pymc, arviz,
numba, dask and matplotlib are imported only by what needs them. Type checkers and editors see the
same names as ordinary imports.
"""

from typing import TYPE_CHECKING

from bayesgen.version import __version__ as __version__

__all__ = [
    "BayesianLogisticRegression",
    "BernoulliNB",
    "CategoricalNB",
    "GaussianNB",
    "GenerativeClassifier",
    "HierarchicalBernoulliNB",
    "ImpossibleRowError",
    "LinearDiscriminant",
    "LogLinearPool",
    "MarkovNB",
    "MetaTreeForest",
    "MissingCapabilityError",
    "MixedNB",
    "MixtureDiscriminant",
    "MonteCarloWarning",
    "MultinomialNB",
    "MutualInformationSelector",
    "NegativeBinomialNB",
    "NoClosedFormError",
    "PoissonNB",
    "QuadraticDiscriminant",
    "SamplingError",
    "SamplingWarning",
    "StudentTNB",
    "TreeAugmentedNB",
    "UndefinedEstimateError",
    "UnknownCategoryWarning",
    "check_family",
    "compare_models",
    "compare_predictives",
    "datasets",
    "decide",
    "estimate_class_prior",
    "final_estimator",
    "fit_dask",
    "fit_stream",
    "from_pymc",
    "label_errors",
    "load",
    "mutual_information",
    "plots",
    "report",
    "top_words",
    "validate",
]

if TYPE_CHECKING:
    from bayesgen import datasets, plots
    from bayesgen.checks.check_family import check_family
    from bayesgen.checks.compare import compare_predictives
    from bayesgen.checks.compare_models import compare_models
    from bayesgen.checks.label_errors import label_errors
    from bayesgen.checks.validate import validate
    from bayesgen.encoding.unknown import UnknownCategoryWarning
    from bayesgen.estimators import (
        BayesianLogisticRegression,
        BernoulliNB,
        CategoricalNB,
        GaussianNB,
        GenerativeClassifier,
        HierarchicalBernoulliNB,
        LinearDiscriminant,
        LogLinearPool,
        MarkovNB,
        MetaTreeForest,
        MixedNB,
        MixtureDiscriminant,
        MultinomialNB,
        NegativeBinomialNB,
        PoissonNB,
        QuadraticDiscriminant,
        StudentTNB,
        TreeAugmentedNB,
        load,
    )
    from bayesgen.estimators.from_pymc import from_pymc
    from bayesgen.estimators.selection import MutualInformationSelector
    from bayesgen.explain.mutual_information import mutual_information
    from bayesgen.explain.top_words import top_words
    from bayesgen.families.errors import (
        MissingCapabilityError,
        NoClosedFormError,
        UndefinedEstimateError,
    )
    from bayesgen.inference.nuts import SamplingError, SamplingWarning
    from bayesgen.io.dask import fit_dask
    from bayesgen.io.streams import fit_stream
    from bayesgen.posterior.drawn import MonteCarloWarning
    from bayesgen.posterior.fitted import final_estimator
    from bayesgen.predict.costs import decide
    from bayesgen.predict.label_shift import estimate_class_prior
    from bayesgen.predict.probabilities import ImpossibleRowError
    from bayesgen.reporting.report import report
else:  # a module with __getattr__ has every name, so that no checker would see a misspelt one
    _HOME = {  # of the names that are not in estimators
        "ImpossibleRowError": "predict.probabilities",
        "MissingCapabilityError": "families.errors",
        "MonteCarloWarning": "posterior.drawn",
        "MutualInformationSelector": "estimators.selection",
        "NoClosedFormError": "families.errors",
        "SamplingError": "inference.nuts",
        "SamplingWarning": "inference.nuts",
        "UndefinedEstimateError": "families.errors",
        "UnknownCategoryWarning": "encoding.unknown",
        "check_family": "checks.check_family",
        "compare_models": "checks.compare_models",
        "compare_predictives": "checks.compare",
        "datasets": "datasets",
        "decide": "predict.costs",
        "estimate_class_prior": "predict.label_shift",
        "final_estimator": "posterior.fitted",
        "fit_dask": "io.dask",
        "fit_stream": "io.streams",
        "from_pymc": "estimators.from_pymc",
        "label_errors": "checks.label_errors",
        "mutual_information": "explain.mutual_information",
        "plots": "plots",
        "report": "reporting.report",
        "top_words": "explain.top_words",
        "validate": "checks.validate",
    }

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module 'bayesgen' has no attribute {name!r}")
        import importlib
        import inspect

        from bayesgen.errors import spelled

        home = _HOME.get(name, "estimators")
        module = importlib.import_module(f"bayesgen.{home}")
        value = module if name == home else getattr(module, name)
        if inspect.isfunction(value):
            value = spelled(value)
            setattr(module, name, value)  # pickles find a function by its module
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
