"""Names of dimensions, groups and methods: the contract between closed form and MCMC.

Every array that leaves the package carries dimensions from this page, in this order, so that a
closed-form posterior and a PyMC trace of the same model are interchangeable in ArviZ.
"""

from typing import Final, Literal

CHAIN: Final = "chain"
DRAW: Final = "draw"
OBS: Final = "obs_id"  # never "sample": ArviZ uses that name for stacked draws
CLASS: Final = "class"
FEATURE: Final = "feature"
FEATURE_BIS: Final = "feature_bis"  # second axis of a covariance matrix
CATEGORY: Final = "category"
CONTEXT: Final = "context"  # the tokens before a token, in an n-gram model
TOKEN: Final = "token"
COMPONENT: Final = "component"  # of a mixture within a class

ACTION: Final = "action"  # what can be decided
BOUND: Final = "bound"  # lower, upper
PREDICTIVE: Final = "predictive"  # which predictive, in a comparison

POSTERIOR: Final = "posterior"
SAMPLE_STATS: Final = "sample_stats"
PRIOR: Final = "prior"
PRIOR_PREDICTIVE: Final = "prior_predictive"
POSTERIOR_PREDICTIVE: Final = "posterior_predictive"
LOG_LIKELIHOOD: Final = "log_likelihood"
LOG_PRIOR: Final = "log_prior"
OBSERVED_DATA: Final = "observed_data"
CONSTANT_DATA: Final = "constant_data"
PREDICTIONS: Final = "predictions"
SUMMARY: Final = "summary"  # mean, interval, diagnostics
FIT: Final = "fit"
# groups that are made on request
REQUESTS: Final = (PRIOR, PRIOR_PREDICTIVE, POSTERIOR_PREDICTIVE, LOG_LIKELIHOOD, LOG_PRIOR)

CLASS_WEIGHTS: Final = "pi"  # p(y = c), the Dirichlet-distributed class weights

Method = Literal["posterior_predictive", "posterior_mean", "map", "mle"]
METHODS: Final[tuple[Method, ...]] = ("posterior_predictive", "posterior_mean", "map", "mle")
