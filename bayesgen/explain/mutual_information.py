"""Which features speak of the class: mutual information at one theta.

Source: Murphy (2012), section 3.5.4.
"""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bayesgen.errors import refuse_unknown
from bayesgen.families.capabilities import FeatureInformation, require
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import FEATURE
from bayesgen.posterior.fitted import fitted_of

if TYPE_CHECKING:
    import xarray as xr

PlugIn = Literal["posterior_mean", "map", "mle"]


def mutual_information(
    clf: Any, method: PlugIn = "posterior_mean", *, unit: Literal["bits", "nats"] = "bits"
) -> "xr.DataArray":
    r"""Return the mutual information of each feature and the class.

    :math:`I(X_j; Y) = \sum_c \pi_c \, \text{KL}(p(x_j \mid \theta_{cj}) \,\|\, p(x_j))`, with
    0 log 0 = 0.

    Parameters
    ----------
    clf : fitted classifier
    method : {"posterior_mean", "map", "mle"}
        Estimate of theta and the class weights to plug in. I(E theta) is not E I(theta).
    unit : {"bits", "nats"}

    Returns
    -------
    xarray.DataArray
        Dim ``feature``. For `MultinomialNB` a word's share of the information that one token
        carries; for Gaussian features by quadrature; for correlated features each on its own.

    Raises
    ------
    ValueError
        If the estimate does not exist.
    MissingCapabilityError
        For a family whose features are not columns (token sequences). A NotImplementedError.

    Notes
    -----
    A feature that does not depend on the class has a positive information too, because few rows
    make classes look different: of maximum likelihood about (K - 1)(C - 1) / (2 N) nats for K
    values, C classes and N rows. A fit to permuted labels shows it.

    Examples
    --------
    >>> import bayesgen as bg
    >>> X = [[1, 1]] + 4 * [[1, 0]] + 4 * [[0, 1]] + 4 * [[0, 0]]
    >>> clf = bg.BernoulliNB().fit(X, [1] + 12 * [2])
    >>> mutual_information(clf, "mle").values.round(6)
    array([0.113579, 0.113579])
    """
    import xarray as xr

    fitted = fitted_of(clf, "mutual_information")
    refuse_unknown("method", method, ("posterior_mean", "map", "mle"))
    refuse_unknown("unit", unit, ("bits", "nats"))
    posterior, names = fitted.closed_form, fitted.feature_names
    try:
        theta = posterior.estimate(method)
        weights = posterior.class_weights(method)
    except UndefinedEstimateError as error:
        raise error.renamed(fitted.classes, names) from None
    family = require(posterior.model.family, FeatureInformation, "mutual_information")
    nats = family.information(theta, weights)
    return xr.DataArray(
        nats / np.log(2) if unit == "bits" else nats,
        dims=[FEATURE],
        coords={FEATURE: names},
        name="mutual_information",
        attrs={"unit": unit, "method": method},
    )
