"""Which log-odds are explained in each row, and their terms from either kind of posterior."""

from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesgen.datatree import tree
from bayesgen.explain import contributions
from bayesgen.explain.contributions import Request, Terms
from bayesgen.explain.contributions_of_draws import terms_of_draws
from bayesgen.families.names import BOUND, FEATURE, OBS
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array
from bayesgen.posterior.drawn import DrawnPosterior
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.fitted import Fitted
from bayesgen.posterior.model import split_chains
from bayesgen.predict.probabilities import posterior_of

if TYPE_CHECKING:
    import xarray as xr

_BYTES = 4 << 30  # a table that would be larger is refused

RULES = {
    "second": "the second class against the first",
    "top": "the most probable class of each row against its runner-up",
    "label": "the label given against the most probable other class of each row",
    "pair": "the pair given",
}


def explain(
    fitted: Fitted, X: Any, classes: Any, request: Request, posterior: Any = None
) -> "xr.Dataset":
    """Contributions of features to log-odds, as `GenerativeClassifier.explain` gives them."""
    own = posterior_of(fitted, posterior)
    weights = request.class_prior
    encoded = fitted.encoded_near(X)
    names = fitted.reader.term_names(encoded, fitted.family)
    size = 8 * 6 * encoded.shape[0] * (len(names) + 1)
    if size > _BYTES:
        raise ValueError(
            f"the contributions of {len(names)} features in {encoded.shape[0]} rows would take "
            f"{size / (1 << 30):.1f} GiB: give fewer rows at a time"
        )
    joint = own.log_joint(encoded, "posterior_predictive", weights, "probability")
    how = rule(classes, len(fitted.classes))
    pairs = pairs_of(_chosen(fitted, classes, how), joint)
    found = explanation(own, encoded, len(names), joint, pairs, request)
    terms, by_feature = found.terms, (OBS, FEATURE)
    ends = np.stack([terms.lower, terms.upper], axis=-1)
    variables: dict[str, Any] = {
        "mean": (by_feature, terms.mean[:, :-1]),
        "interval": ((*by_feature, BOUND), ends[:, :-1]),
        "error": (by_feature, terms.error[:, :-1]),
        "mean_intercept": ((OBS,), terms.mean[:, -1]),
        "interval_intercept": ((OBS, BOUND), ends[:, -1]),
        "label": ((OBS,), fitted.classes[pairs[:, 0]]),
        "against": ((OBS,), fitted.classes[pairs[:, 1]]),
        "mean_log_odds": ((OBS,), found.mean),
    }
    if found.additive:
        variables["predictive"] = (by_feature, terms.predictive[:, :-1])
        variables["predictive_intercept"] = ((OBS,), terms.predictive[:, -1])
    if found.predictive is not None:
        variables["predictive_log_odds"] = ((OBS,), found.predictive)
    out = tree.group(variables, {FEATURE: names, BOUND: ["lower", "upper"]})
    return out.assign_attrs(prob=request.prob, kind=request.kind, unit="nats", pair=RULES[how])


def _chosen(fitted: Fitted, classes: Any, how: str) -> list[int] | None:
    """Codes of the label or the two labels that the user names."""
    if len(fitted.classes) < 2:
        raise ValueError("explain: log-odds need two classes, and the classifier knows one")
    if classes is None:
        return None
    labels = list(classes) if how == "pair" else [classes]
    if how == "pair" and len(labels) != 2:
        raise ValueError(
            f"classes must be one label or a pair of labels, got {len(labels)} of them"
        )
    codes = [int(k) for k in fitted.codes_of(labels)]
    if len(codes) == 2 and codes[0] == codes[1]:
        raise ValueError(f"classes must be two different labels, got {labels[0]!r} twice")
    return codes


def rule(classes: Any, n_classes: int) -> str:
    """The name among `RULES` of what the user's `classes` asks for."""
    if classes is None:
        return "second" if n_classes == 2 else "top"
    return "pair" if isinstance(classes, list | tuple | np.ndarray) else "label"


def pairs_of(codes: list[int] | None, joint: Array) -> Array:
    """(N, 2) class codes: the log-odds of the first against the second are explained.

    Parameters
    ----------
    codes : list of one or two class codes, optional
    joint : (N, C)
        Log joint densities, which say what is most probable in a row.
    """
    n, n_classes = joint.shape
    if codes is None and n_classes == 2:
        return np.broadcast_to([1, 0], (n, 2))
    if codes is None:
        return np.argsort(-joint, axis=1, kind="stable")[:, :2]
    if len(codes) == 2:
        return np.broadcast_to(codes, (n, 2))
    others = np.array(joint)
    others[:, codes[0]] = -np.inf
    rival = np.argmax(others, axis=1)
    rival[rival == codes[0]] = 0 if codes[0] else 1  # all others are impossible
    return np.stack([np.full(n, codes[0]), rival], axis=1)


class Explanation(NamedTuple):
    """Terms of the log-odds of pairs of classes, and what they add up to."""

    terms: Terms
    mean: Array  # (N,) mean log-odds under the posterior
    additive: bool  # whether the terms have predictives that add up to those of `predict_proba`
    predictive: Array | None  # (N,) log-odds of `predict_proba`


@singledispatch
def explanation(
    own: Any, X: Matrix, n_features: int, joint: Array, pairs: Array, request: Request
) -> Explanation:
    """Of the log-odds of class ``pairs[i, 0]`` against ``pairs[i, 1]`` in each row i.

    Parameters
    ----------
    own : ExactPosterior or DrawnPosterior
    X, n_features, pairs, request
        As in `contributions.terms`.
    joint : (N, C)
        Log joint densities of the posterior predictive.
    """
    raise NotImplementedError


@explanation.register
def _(own: ExactPosterior, X: Any, n_features: int, joint: Any, pairs: Any, request: Any) -> Any:
    model = own.model
    found = contributions.terms(model, X, n_features, pairs, request)
    if request.method == "draws":
        rng = np.random.default_rng(request.seed)
        theta = split_chains(model.draw(rng, contributions.N_DRAWS), 4)
        drawn = terms_of_draws(model, theta, X, n_features, pairs, request)
        found = found._replace(lower=drawn.lower, upper=drawn.upper, error=drawn.error)
    mean = contributions.mean_log_odds(model, X, pairs, request.class_prior)
    with np.errstate(invalid="ignore"):  # impossible under both
        predictive = _odds(joint, pairs)
    return Explanation(found, mean, contributions.additive(model.family), predictive)


@explanation.register
def _(own: DrawnPosterior, X: Any, n_features: int, joint: Any, pairs: Any, request: Any) -> Any:
    model, theta = own.model, own.theta
    found = terms_of_draws(model, theta, X, n_features, pairs, request)
    blocks = own.log_joint_draws(X, request.class_prior)
    each = [_odds(density, pairs[rows]).mean(axis=(0, 1)) for rows, density in blocks]
    return Explanation(found, np.concatenate(each) if each else np.empty(0), False, None)


def _odds(joint: Array, pairs: Array) -> Array:
    """(..., N) of log joint densities (..., N, C)."""
    rows = np.arange(len(pairs))
    return np.asarray(joint[..., rows, pairs[:, 0]] - joint[..., rows, pairs[:, 1]])
