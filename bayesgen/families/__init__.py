"""Prior-likelihood pairs: one file or folder each, in `conjugate` and `sampled`.

The folders are the registry. Each family is also a name of this package, loaded on first use:
``from bayesgen.families import NormalInverseGamma``.
"""

import importlib
import pkgutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for checkers and editors, which cannot walk a folder
    from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
    from bayesgen.families.conjugate.columns import Columns
    from bayesgen.families.conjugate.dirichlet_categorical import DirichletCategorical
    from bayesgen.families.conjugate.dirichlet_markov import DirichletMarkov
    from bayesgen.families.conjugate.dirichlet_multinomial import DirichletMultinomial
    from bayesgen.families.conjugate.gamma_poisson import GammaPoisson
    from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
    from bayesgen.families.conjugate.normal_inverse_wishart import NormalInverseWishart
    from bayesgen.families.contract import Family
    from bayesgen.families.sampled.dirichlet_compound import DirichletCompound
    from bayesgen.families.sampled.gaussian_mixture import GaussianMixture
    from bayesgen.families.sampled.hierarchical_bernoulli import HierarchicalBernoulli
    from bayesgen.families.sampled.hierarchical_categorical import HierarchicalCategorical
    from bayesgen.families.sampled.lkj_normal import LKJNormal
    from bayesgen.families.sampled.logistic_normal import LogisticNormal
    from bayesgen.families.sampled.logistic_regression import LogisticRegression
    from bayesgen.families.sampled.negative_binomial import NegativeBinomial
    from bayesgen.families.sampled.student_t import StudentT

    __all__ = [
        "BetaBernoulli",
        "Columns",
        "DirichletCategorical",
        "DirichletCompound",
        "DirichletMarkov",
        "DirichletMultinomial",
        "GammaPoisson",
        "GaussianMixture",
        "HierarchicalBernoulli",
        "HierarchicalCategorical",
        "LKJNormal",
        "LogisticNormal",
        "LogisticRegression",
        "NegativeBinomial",
        "NormalInverseGamma",
        "NormalInverseWishart",
        "StudentT",
        "registry",
    ]

_FOLDERS = ("conjugate", "sampled")


def registry() -> "dict[str, type[Family]]":
    """{class name: class} of every family in these folders, sorted by file name."""
    from bayesgen.families.contract import Family

    found: dict[str, type[Family]] = {}
    for folder in _FOLDERS:
        package = importlib.import_module(f"{__name__}.{folder}")
        for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
            home = f"{package.__name__}.{module}"
            for name, value in vars(importlib.import_module(home)).items():
                if (
                    isinstance(value, type)
                    and issubclass(value, Family)
                    and (value.__module__ + ".").startswith(home + ".")
                ):
                    found[name] = value
    return found


if not TYPE_CHECKING:  # a module with __getattr__ has every name, misspelt ones included

    def __getattr__(name):
        if not name.startswith("_") and (family := registry().get(name)):
            return family
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
