"""Which features speak of the class: mutual information under the fitted model.

Source: seed bayesian_naive_bayes, "Feature Selection By Using Mutual Information"; Murphy (2012),
section 3.5.4.
"""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bayesgen.family import UndefinedEstimateError
from bayesgen.names import FEATURE

if TYPE_CHECKING:
    import xarray as xr

PlugIn = Literal["posterior_mean", "map", "mle"]


def mutual_information(
    clf: Any, base: float = 2.0, method: PlugIn = "posterior_mean"
) -> "xr.DataArray":
    r"""Mutual information of each feature and the class, at one theta.

    :math:`I(X_j; Y) = \sum_c \pi_c \, \text{KL}(p(x_j \mid \theta_{cj}) \,\|\, p(x_j))`, with
    0 log 0 = 0.

    Parameters
    ----------
    clf : fitted classifier
    base : float, default 2
        Base of the logarithm: 2 for bits, e for nats.
    method : {"posterior_mean", "map", "mle"}
        Which theta, and which class weights, are plugged in. I(E theta) is not E I(theta): an
        irrelevant feature has E I > 0.

    Returns
    -------
    xarray.DataArray
        Dim ``feature``. For `MultinomialNB` a word's share of the information that one token
        carries; for Gaussian features by quadrature; for correlated features each on its own.

    Raises
    ------
    ValueError
        If the estimate does not exist.
    NotImplementedError
        For a family whose features are not columns (token sequences).

    Examples
    --------
    >>> import bayesgen as bg
    >>> X = [[1, 1]] + 4 * [[1, 0]] + 4 * [[0, 1]] + 4 * [[0, 0]]
    >>> clf = bg.BernoulliNB().fit(X, [1] + 12 * [2])
    >>> mutual_information(clf, method="mle").values.round(6)
    array([0.113579, 0.113579])
    """
    import xarray as xr
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(clf, "model_")
    if method not in ("posterior_mean", "map", "mle"):
        raise ValueError(
            f"method must be 'posterior_mean', 'map' or 'mle', got {method!r}: the information "
            "is that of one theta"
        )
    if not base > 1:
        raise ValueError(f"base must be > 1, got {base}")
    names = clf._feature_names()
    try:
        theta = clf.model_.estimate(method, clf.stats_)
        weights = clf.model_.class_weights(method, clf.stats_)
    except UndefinedEstimateError as error:
        raise error.renamed(clf.classes_, names) from None
    nats = clf.model_.family.information(theta, weights)
    return xr.DataArray(
        nats / np.log(base),
        dims=[FEATURE],
        coords={FEATURE: names},
        name="mutual_information",
        attrs={"base": base, "method": method},
    )
