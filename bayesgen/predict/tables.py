"""What a posterior says of new rows, as Datasets: probabilities with errors, intervals, entropies.

Arguments are those of the methods of `GenerativeClassifier` of the same subject.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.datatree import tree
from bayesgen.datatree.tree import PREDICTIONS
from bayesgen.errors import refuse_below
from bayesgen.families.names import BOUND, CHAIN, CLASS, DRAW, OBS
from bayesgen.numerics.seeds import generator
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior.fitted import Fitted
from bayesgen.predict import distribution
from bayesgen.predict.distribution import WeightedIntervals
from bayesgen.predict.probabilities import posterior_of
from bayesgen.predict.request import IntervalRequest

if TYPE_CHECKING:
    import xarray as xr


def _posterior_of(fitted: Fitted, posterior: Any, what: str) -> Any:
    """The draws given, or the model's own posterior, where it is as wide as it should be."""
    training = fitted.training
    if posterior is None and training.unlabelled_weight:
        fitted.refuse_estimated_weights(what)
    return posterior_of(fitted, posterior)


def intervals(
    fitted: Fitted,
    X: Any,
    request: IntervalRequest,
    class_prior: Any = None,
    random_state: Any = 0,
    posterior: Any = None,
) -> "xr.Dataset":
    """Credible intervals of p(y = c | x, theta)."""
    own = _posterior_of(fitted, posterior, "predict_interval")
    weights = fitted.weights_of(class_prior)
    encoded = fitted.encoded_near(X)
    joint = own.log_joint(encoded, "posterior_predictive", weights, "probability")
    found = distribution.credible_intervals(own, encoded, joint, request, weights, random_state)
    by_class = (OBS, CLASS)
    with np.errstate(invalid="ignore"):
        predictive = np.exp(log_softmax(joint))
    out = tree.group(
        {
            "interval": ((*by_class, BOUND), np.stack([found.lower, found.upper], axis=-1)),
            "log_odds": (
                (*by_class, BOUND),
                np.stack([found.log_odds_lower, found.log_odds_upper], axis=-1),
            ),
            "predictive": (by_class, predictive),
            "route": ((OBS,), found.method),
            "error": ((OBS,), found.error),
        },
        {CLASS: fitted.classes, BOUND: ["lower", "upper"]},
    )
    if isinstance(found, WeightedIntervals):
        out["weight_ess"] = (OBS,), found.weight_ess
    if request.given != "training":
        out.attrs["given"] = request.given
    return out.assign_attrs(prob=request.prob, kind=request.kind)


def draws(
    fitted: Fitted,
    X: Any,
    request: distribution.DrawRequest,
    random_state: Any,
    class_prior: Any,
    posterior: Any,
) -> "xr.DataTree":
    """Draws of the class probabilities of rows."""
    import xarray as xr

    own = _posterior_of(fitted, posterior, "predict_posterior")
    weights = fitted.weights_of(class_prior)
    encoded = fitted.encoded_near(X)
    refuse_below(1, draws=request.draws, chains=request.chains)
    if not request.max_memory > 0:
        raise ValueError(f"max_memory must be > 0 GiB, got {request.max_memory!r}")
    rng = generator(random_state)
    rho, drawn = distribution.probability_draws(own, encoded, request, weights, rng)
    dims = (CHAIN, DRAW, OBS, CLASS)
    group = tree.group({"class_probability": (dims, rho)}, {CLASS: fitted.classes})
    out = xr.DataTree.from_dict({f"/{PREDICTIONS}": group})
    out.attrs |= _provenance(fitted, posterior, random_state)
    out.attrs["draws"] = drawn
    return out


def _provenance(fitted: Fitted, posterior: Any, random_state: Any) -> dict[Any, Any]:
    """Attributes of a tree made from draws: those of `posterior`, None for the model's own."""
    family = type(fitted.posterior.prior.family).__name__
    given: Any = fitted.training.draws if posterior is None else posterior
    route = fitted.training.inference
    if posterior is None and (given is None or route == "closed form"):
        return tree.provenance(family, route, random_state)
    drawn = given.attrs
    of_draws = ("route", "seed", "inference_library", "inference_library_version")
    own = tree.provenance(family, "posterior draws given")  # of a Dataset, or by other hands
    return own | {k: drawn[k] for k in of_draws if k in drawn}


def uncertainty(
    fitted: Fitted,
    X: Any,
    unit: str,
    given: str,
    class_prior: Any,
    random_state: Any,
    posterior: Any,
) -> "xr.Dataset":
    """Entropies of the label of a row, and how much of them more training rows could remove."""
    own = _posterior_of(fitted, posterior, "predict_uncertainty")
    if given not in ("training", "training and row"):
        raise ValueError(f"given must be 'training' or 'training and row', got {given!r}")
    if unit not in ("nats", "bits"):
        raise ValueError(f"unit must be 'nats' or 'bits', got {unit!r}")
    weights = fitted.weights_of(class_prior)
    encoded = fitted.encoded_near(X)
    found: Any = distribution.summary(own, encoded, given, unit, weights, random_state)
    by_row, by_class = (OBS,), (OBS, CLASS)
    out = tree.group(
        {
            "total": (by_row, found.total),
            "aleatoric": (by_row, found.aleatoric),
            "epistemic": (by_row, found.total - found.aleatoric),
            "mean": (by_class, found.mean),
            "sd": (by_class, found.sd),
            "top": (by_class, found.top),
            "route": (by_row, found.route),
            "error": (by_row, found.error),
        },
        {CLASS: fitted.classes},
    )
    return out.assign_attrs(unit=unit, given=given)


def simulated(fitted: Fitted, n: int, y: Any, random_state: Any, source: str) -> tuple[Any, Array]:
    """New rows, as the user writes them, and their labels."""
    if source not in ("predictive", "draw"):
        raise ValueError(f"source must be 'predictive' or 'draw', got {source!r}")
    if n < 0:
        raise ValueError(f"n must be >= 0, got {n}")
    codes = None if y is None else np.broadcast_to(fitted.codes_of(y), (n,))
    rng = generator(random_state)
    X, codes = fitted.posterior.simulate(rng, n, codes, source == "draw")
    return fitted.reader.decode(X), fitted.classes[codes]
