"""Prior-likelihood pairs: one file each, in `conjugate` and `sampled`.

The folders are the registry. Each family is also a name of this package, and so is all that a
family is written with, loaded on first use::

    from bayesgen.families import NormalInverseGamma
    from bayesgen.families import ConjugateFamily, Stats, array
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for checkers and editors, which cannot walk a folder
    from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
    from bayesgen.families.conjugate.columns import Columns
    from bayesgen.families.conjugate.dirichlet_categorical import DirichletCategorical
    from bayesgen.families.conjugate.dirichlet_forest import DirichletForest
    from bayesgen.families.conjugate.dirichlet_markov import DirichletMarkov
    from bayesgen.families.conjugate.dirichlet_multinomial import DirichletMultinomial
    from bayesgen.families.conjugate.gamma_poisson import GammaPoisson
    from bayesgen.families.conjugate.log_normal import LogNormal
    from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
    from bayesgen.families.conjugate.normal_inverse_wishart import NormalInverseWishart
    from bayesgen.families.contract import ConjugateFamily, Family, Stats, Theta, registry
    from bayesgen.families.errors import (
        MissingCapabilityError,
        NotLinearError,
        UndefinedEstimateError,
        refuse_negative,
        refuse_undefined,
    )
    from bayesgen.families.records import Record, array, prior_object
    from bayesgen.families.sampled.gaussian_mixture import GaussianMixture
    from bayesgen.families.sampled.hierarchical_bernoulli import HierarchicalBernoulli
    from bayesgen.families.sampled.logistic_regression import LogisticRegression
    from bayesgen.families.sampled.negative_binomial import NegativeBinomial
    from bayesgen.families.sampled.student_t import StudentT
    from bayesgen.families.shared.hyperparameters import broadcast_prior

    __all__ = [
        "BetaBernoulli",
        "Columns",
        "ConjugateFamily",
        "DirichletCategorical",
        "DirichletForest",
        "DirichletMarkov",
        "DirichletMultinomial",
        "Family",
        "GammaPoisson",
        "GaussianMixture",
        "HierarchicalBernoulli",
        "LogNormal",
        "LogisticRegression",
        "MissingCapabilityError",
        "NegativeBinomial",
        "NormalInverseGamma",
        "NormalInverseWishart",
        "NotLinearError",
        "Record",
        "Stats",
        "StudentT",
        "Theta",
        "UndefinedEstimateError",
        "array",
        "broadcast_prior",
        "prior_object",
        "refuse_negative",
        "refuse_undefined",
        "registry",
    ]

# what a family is written with, by module; NumPy is imported when the first of them is asked for
_WRITTEN_WITH = {
    "contract": ("ConjugateFamily", "Family", "Stats", "Theta", "registry"),
    "errors": (
        "MissingCapabilityError",
        "NotLinearError",
        "UndefinedEstimateError",
        "refuse_negative",
        "refuse_undefined",
    ),
    "records": ("Record", "array", "prior_object"),
    "shared.hyperparameters": ("broadcast_prior",),
}


if not TYPE_CHECKING:  # a module with __getattr__ has every name, misspelt ones included

    def __getattr__(name):
        for home, names in _WRITTEN_WITH.items():
            if name in names:
                return getattr(importlib.import_module(f"{__name__}.{home}"), name)
        if name[:1].isupper():  # no module, which is looked for here before it is imported
            from bayesgen.families.contract import registry

            if family := registry().get(name):
                return family
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
