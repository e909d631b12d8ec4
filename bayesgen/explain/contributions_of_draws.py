"""What features contribute to the log-odds of two classes, from posterior draws that are given.

The terms of `contributions`, without a predictive: draws have none for one feature.

N rows, D features.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from bayesgen.explain.contributions import TERMS, Request, Terms, by_pair
from bayesgen.families.capabilities import FeatureTerms, LinearRule, TokenDraws, require
from bayesgen.families.contract import ConjugateFamily, Theta
from bayesgen.families.errors import NotLinearError
from bayesgen.families.names import CLASS, FEATURE
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import ClassModel, draw_shape, log_class_weights, log_weights
from bayesgen.posterior.monte_carlo import effective_sample_size

_BEYOND = 1e300  # nats: of a class that cannot be


def terms_of_draws(
    model: ClassModel, theta: Theta, X: Matrix, n_features: int, pairs: Array, request: Request
) -> Terms:
    """As `terms`, from draws {name: (chain, draw, *dims)}; without a predictive.

    ``error`` is a Monte Carlo standard error, for Markov chains.
    """
    out = Terms(*(np.zeros((X.shape[0], n_features + 1)) for _ in range(5)))
    every = np.arange(n_features)

    def put(rows: Array, columns: Array, draws: Array) -> None:
        """Draws (chain, draw, n, d)."""
        flat = draws.reshape(-1, *draws.shape[2:])
        bounded = np.clip(np.moveaxis(flat, 0, -1), -_BEYOND, _BEYOND)  # inf has no differences
        lower, upper = (
            np.where(np.abs(end) >= _BEYOND, np.copysign(np.inf, end), end)
            for end in request.ends_of_draws(bounded)
        )
        at = np.ix_(rows, columns)
        out.mean[at], out.lower[at], out.upper[at] = flat.mean(axis=0), lower, upper
        for end in (lower, upper):
            below = np.moveaxis(draws <= end, (0, 1), (-2, -1)).astype(np.float64)
            share = below.mean(axis=(-2, -1))
            error = np.sqrt(share * (1 - share) / effective_sample_size(below))
            out.error[at] = np.maximum(out.error[at], np.where(lower == upper, 0.0, error))

    for (a, b), rows in by_pair(pairs):
        log_pi = _log_weights(model, theta, request.class_prior)
        with np.errstate(invalid="ignore"):  # NaN where neither class can be
            ratio = log_pi[..., a] - log_pi[..., b]
        rest = np.repeat(ratio[..., None], len(rows), axis=-1)
        for columns, family, _, own, _ in model.family.blocks(theta=theta):
            x = X[rows] if isinstance(columns, slice) else X[rows][:, columns]
            own = _theta_at(family, own, CLASS, [a, b])
            for j, term, left in _columns_of_draws(family.at(CLASS, [a, b]), own, x):
                rest = rest + left
                put(rows, every[columns][j], term)
        put(rows, np.array([n_features]), rest[..., None])
    return out


def _log_weights(model: ClassModel, theta: Theta, class_prior: Array | None) -> Array:
    """(chain, draw, C)."""
    if class_prior is None:
        log_pi = log_class_weights(model.family, theta)
    else:
        log_pi = log_weights(class_prior)
    lead = draw_shape(model.family, theta)
    return np.broadcast_to(log_pi, (*lead, log_pi.shape[-1]))


def _theta_at(family: ConjugateFamily, theta: Theta, dim: str, index: Any) -> dict[str, Array]:
    return {
        name: theta[name].take(index, dims.index(dim) - len(dims)) if dim in dims else theta[name]
        for name, dims in family.params.items()
    }


def _columns_of_draws(
    family: ConjugateFamily, theta: Theta, X: Matrix
) -> Iterator[tuple[Any, Array, Any]]:
    """Columns, their terms (chain, draw, n, d), and what is left over, (chain, draw, n) or 0."""
    if family.separable:
        for j in range(X.shape[1]):
            part = family.at(FEATURE, [j])
            log_p = part.log_likelihood(X[:, [j]], _theta_at(family, theta, FEATURE, [j]))
            yield [j], (log_p[..., 0] - log_p[..., 1])[..., None], 0.0
    elif family.capability(TokenDraws) is not None:
        try:
            w, _ = require(family, LinearRule, TERMS).linear_form(theta)
        except NotLinearError:
            raise NotImplementedError(
                f"the terms of {type(family).__name__} are not read from draws; leave `posterior` "
                "out, and do not ask for method='draws'"
            ) from None
        x = np.asarray(X.toarray() if sparse.issparse(X) else X)
        for j in range(x.shape[1]):
            term = (w[..., 0, j] - w[..., 1, j])[..., None, None]
            yield [j], np.where(x[:, [j]] == 0, 0.0, x[:, [j]] * term), 0.0
    else:
        term, rest = require(family, FeatureTerms, TERMS).log_odds_terms(X, 0, 1, theta)
        yield slice(None), term, rest
