"""Names of dimensions and methods: the contract between closed form and MCMC.

Every array that leaves the package carries dimensions from this page, in this order, so that a
closed-form posterior and a PyMC trace of the same model are interchangeable in ArviZ.
"""

from typing import Any, Final, Literal

type Tensor = Any  # of PyTensor, which has no types
type Label = Any  # of a class, feature or category

CHAIN: Final = "chain"
DRAW: Final = "draw"
OBS: Final = "obs_id"  # never "sample": ArviZ uses that name for stacked draws
NEW_OBS: Final = "new_obs_id"  # rows to predict, in a PyMC model of others
CLASS: Final = "class"
FEATURE: Final = "feature"
MEMBER: Final = "member"  # of a pool
FEATURE_BIS: Final = "feature_bis"  # second axis of a covariance matrix
CATEGORY: Final = "category"
CATEGORY_BIS: Final = "category_bis"  # of the second feature of a pair
PARENT_CATEGORY: Final = "parent_category"  # of the feature that a feature depends on
FEATURE_CATEGORY: Final = "feature_category"  # both in one, where features differ in categories
CONTEXT: Final = "context"  # the tokens before a token, in an n-gram model
TOKEN: Final = "token"
COMPONENT: Final = "component"  # of a mixture within a class

ACTION: Final = "action"  # what can be decided
BOUND: Final = "bound"  # lower, upper
PREDICTIVE: Final = "predictive"  # which predictive, in a comparison
MODEL: Final = "model"  # which model, in a comparison

CLASS_WEIGHTS: Final = "pi"  # p(y = c), the Dirichlet-distributed class weights

StructureName = Literal["average", "tree", "map", "fixed"]  # of forests of dependences

Method = Literal["posterior_predictive", "posterior_mean", "map", "mle"]
METHODS: Final[tuple[Method, ...]] = ("posterior_predictive", "posterior_mean", "map", "mle")
METHOD_NAMES: Final = {  # in words
    "posterior_predictive": "posterior predictive",
    "posterior_mean": "posterior mean",
    "map": "posterior mode (MAP)",
    "mle": "maximum likelihood",
}
