"""Names of the groups of a DataTree, and of the variables in them that the package makes.

ArviZ's names where it has one. Dimensions are in `bayesgen.families.names`.
"""

from typing import Final

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
LEAVE_ONE_OUT: Final = "leave_one_out"  # in a model file, scores of the training rows
MEMBER_RANKS: Final = "member_ranks"  # and their densities under each member of a pool
# groups that are made on request
REQUESTS: Final = (PRIOR, PRIOR_PREDICTIVE, POSTERIOR_PREDICTIVE, LOG_LIKELIHOOD, LOG_PRIOR)

LABEL: Final = "label"  # class codes; in log_likelihood, log p(y | x, theta), which scores them
FEATURES: Final = "x"
INDICATORS: Final = "indicators"  # asked for: of each class a variable is_<class>
JOINT: Final = "joint"  # in log_likelihood, log p(y, x | theta)


def indicator(label: object) -> str:
    """Name the variable that is 1 in rows of a class, 0 in others."""
    return f"is_{label}"
