"""Public names and their modules: what `lazy_loader` and type checkers read."""

from . import datasets as datasets
from . import plots as plots
from .checks.check_family import check_family as check_family
from .checks.compare import compare_predictives as compare_predictives
from .checks.compare import compare_models as compare_models
from .checks.label_errors import label_errors as label_errors
from .checks.validate import validate as validate
from .encoding.unknown import UnknownCategoryWarning as UnknownCategoryWarning
from .estimators import (
    BayesianLogisticRegression as BayesianLogisticRegression,
    BernoulliNB as BernoulliNB,
    CategoricalNB as CategoricalNB,
    GaussianNB as GaussianNB,
    GenerativeClassifier as GenerativeClassifier,
    HierarchicalBernoulliNB as HierarchicalBernoulliNB,
    LinearDiscriminant as LinearDiscriminant,
    LogLinearPool as LogLinearPool,
    MarkovNB as MarkovNB,
    MetaTreeForest as MetaTreeForest,
    MixedNB as MixedNB,
    MixtureDiscriminant as MixtureDiscriminant,
    MultinomialNB as MultinomialNB,
    NegativeBinomialNB as NegativeBinomialNB,
    PoissonNB as PoissonNB,
    QuadraticDiscriminant as QuadraticDiscriminant,
    StudentTNB as StudentTNB,
    TreeAugmentedNB as TreeAugmentedNB,
    load as load,
)
from .estimators.from_pymc import from_pymc as from_pymc
from .estimators.selection import MutualInformationSelector as MutualInformationSelector
from .explain.features import mutual_information as mutual_information
from .explain.features import top_words as top_words
from .families.errors import (
    MissingCapabilityError as MissingCapabilityError,
    NoClosedFormError as NoClosedFormError,
    UndefinedEstimateError as UndefinedEstimateError,
)
from .inference.nuts import SamplingError as SamplingError, SamplingWarning as SamplingWarning
from .io.streams import fit_dask as fit_dask
from .io.streams import fit_stream as fit_stream
from .posterior.drawn import MonteCarloWarning as MonteCarloWarning
from .posterior.fitted import final_estimator as final_estimator
from .predict.costs import decide as decide
from .predict.label_shift import estimate_class_prior as estimate_class_prior
from .predict.probabilities import ImpossibleRowError as ImpossibleRowError
from .reporting.report import report as report

__version__: str
