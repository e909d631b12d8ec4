"""What a posterior says of new rows, as Datasets: probabilities with errors, intervals, entropies.

Arguments are those of the methods of `GenerativeClassifier` of the same subject.
"""

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit
from sklearn.utils.validation import _num_samples

from bayesgen.datatree import tree
from bayesgen.datatree.tree import PREDICTIONS
from bayesgen.errors import refuse_below, refuse_unknown
from bayesgen.families.names import BOUND, CHAIN, CLASS, DRAW, OBS
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, generator, log_softmax
from bayesgen.posterior.fitted import Fitted
from bayesgen.posterior.interface import DrawRequest, JointDraws
from bayesgen.predict import draws
from bayesgen.predict.draws import IntervalRequest
from bayesgen.predict.leave_one_out import rows_of_fit

if TYPE_CHECKING:
    import xarray as xr

    from bayesgen.datatree.result_table import ResultTable


def _log_joint_draws(
    fitted: Fitted,
    X,
    n_draws: int | None,
    class_prior,
    random_state,
    training,
    what: str,
) -> tuple[JointDraws, Matrix, Array | None]:
    """Draws of the log joint densities of rows; the rows; class weights that replace the fitted."""
    fitted.refuse_estimated_weights(what)
    if n_draws is not None:
        refuse_below(2, draws=n_draws)
    weights = fitted.weights_of(class_prior)
    rows = fitted.encoded_near(X)
    seed = int(generator(random_state).integers(2**63))
    rows_of = partial(rows_of_fit, fitted, training)
    request = DrawRequest(n_draws, seed, weights, rows_of)
    drawn = fitted.posterior.log_joint_draws(rows, request)
    return drawn, rows, weights


def intervals(
    fitted: Fitted,
    X,
    request: IntervalRequest,
    n_draws: int | None = None,
    class_prior=None,
    random_state=0,
    training=None,
) -> "ResultTable":
    """Credible intervals of p(y = c | x, theta)."""
    what = "predict_interval"
    drawn, rows, weights = _log_joint_draws(
        fitted, X, n_draws, class_prior, random_state, training, what
    )
    joint = fitted.posterior.log_joint(rows, "posterior_predictive", weights, "probability")
    ends = draws.intervals(drawn, request)
    log_odds = np.stack([ends.lower, ends.upper], axis=-1)
    with np.errstate(invalid="ignore"):
        predictive = np.exp(log_softmax(joint))
    by_class = (OBS, CLASS)
    table = tree.group(
        {
            "interval": ((*by_class, BOUND), expit(log_odds)),
            "log_odds": ((*by_class, BOUND), log_odds),
            "predictive": (by_class, predictive),
            "error": ((OBS,), ends.error),
        },
        {CLASS: fitted.classes, BOUND: ["lower", "upper"]},
    )
    table = table.assign_attrs(prob=request.prob, kind=request.kind, joint=drawn.joint)
    percent = f"{100 * request.prob:g} %"
    return tree.result_table(
        table,
        f"{percent} intervals ({request.kind}) of class probabilities",
        ["interval", "predictive"],
    )


def posterior(
    fitted: Fitted,
    X,
    n_draws: int | None,
    class_prior,
    random_state,
    training=None,
) -> "xr.DataTree":
    """Draws of the class probabilities of rows."""
    import xarray as xr

    what = "predict_posterior"
    if n_draws is not None:  # before any theta is drawn
        refuse_below(2, draws=n_draws)
        draws.refuse_large(n_draws, _num_samples(X), len(fitted.classes))
    drawn, _, _ = _log_joint_draws(fitted, X, n_draws, class_prior, random_state, training, what)
    rho = draws.probabilities(drawn)
    dims = (CHAIN, DRAW, OBS, CLASS)
    group = tree.group({"class_probability": (dims, rho)}, {CLASS: fitted.classes})
    predictions = xr.DataTree.from_dict({f"/{PREDICTIONS}": group})
    predictions.attrs |= _provenance(fitted, random_state)
    predictions.attrs["joint"] = drawn.joint
    return predictions


def _provenance(fitted: Fitted, random_state):
    """Attributes of a tree made from draws."""
    family = type(fitted.posterior.prior.family).__name__
    fit_draws = fitted.training.draws
    route = fitted.training.inference
    if fit_draws is None or route == "closed form":
        return tree.provenance(family, route, random_state)
    of_draws = ("route", "seed", "inference_library", "inference_library_version")
    attributes = tree.provenance(family, "posterior draws given")  # of a Dataset, or by other hands
    return attributes | {k: fit_draws.attrs[k] for k in of_draws if k in fit_draws.attrs}


def uncertainty(
    fitted: Fitted,
    X,
    unit: str,
    n_draws: int | None,
    class_prior,
    random_state,
    training=None,
) -> "ResultTable":
    """Entropies of the label of a row, and how much of them more training rows could remove."""
    refuse_unknown("unit", unit, ("nats", "bits"))
    what = "predict_uncertainty"
    drawn, _, _ = _log_joint_draws(fitted, X, n_draws, class_prior, random_state, training, what)
    means = draws.averages(drawn)
    scale = 1.0 if unit == "nats" else 1 / np.log(2)
    by_row, by_class = (OBS,), (OBS, CLASS)
    table = tree.group(
        {
            "total": (by_row, scale * means.total),
            "aleatoric": (by_row, scale * means.aleatoric),
            "epistemic": (by_row, scale * (means.total - means.aleatoric)),
            "mean": (by_class, means.mean),
            "sd": (by_class, means.sd),
            "top": (by_class, means.top),
            "error": (by_row, means.error),
        },
        {CLASS: fitted.classes},
    )
    table = table.assign_attrs(unit=unit, joint=drawn.joint)
    return tree.result_table(table, f"entropy of each row's label, in {unit}")


def simulated(fitted: Fitted, n: int, y, random_state, source: str):
    """New rows, as the user writes them, and their labels."""
    refuse_unknown("source", source, ("predictive", "draw"))
    refuse_below(0, n=n)
    codes = None if y is None else np.broadcast_to(fitted.codes_of(y), (n,))
    rng = generator(random_state)
    X, codes = fitted.posterior.simulate(rng, n, codes, source == "draw")
    return fitted.reader.decode(X), fitted.classes[codes]
