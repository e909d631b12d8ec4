"""Families and what they are written with: what `lazy_loader` and type checkers read."""

from .conjugate.beta_bernoulli import BetaBernoulli as BetaBernoulli
from .conjugate.columns import Columns as Columns
from .conjugate.dirichlet_categorical import DirichletCategorical as DirichletCategorical
from .conjugate.dirichlet_forest import DirichletForest as DirichletForest
from .conjugate.dirichlet_markov import DirichletMarkov as DirichletMarkov
from .conjugate.dirichlet_multinomial import DirichletMultinomial as DirichletMultinomial
from .conjugate.gamma_poisson import GammaPoisson as GammaPoisson
from .conjugate.log_normal import LogNormal as LogNormal
from .conjugate.normal_inverse_gamma import NormalInverseGamma as NormalInverseGamma
from .conjugate.normal_inverse_wishart import NormalInverseWishart as NormalInverseWishart
from .contract import (
    ConjugateFamily as ConjugateFamily,
    Family as Family,
    Stats as Stats,
    Theta as Theta,
    registry as registry,
)
from .errors import (
    MissingCapabilityError as MissingCapabilityError,
    NotLinearError as NotLinearError,
    UndefinedEstimateError as UndefinedEstimateError,
    refuse_negative as refuse_negative,
    refuse_undefined as refuse_undefined,
)
from .records import Record as Record, array as array, prior_object as prior_object
from .sampled.gaussian_mixture import GaussianMixture as GaussianMixture
from .sampled.hierarchical_bernoulli import HierarchicalBernoulli as HierarchicalBernoulli
from .sampled.logistic_regression import LogisticRegression as LogisticRegression
from .sampled.negative_binomial import NegativeBinomial as NegativeBinomial
from .sampled.student_t import StudentT as StudentT
from .shared.hyperparameters import broadcast_prior as broadcast_prior
