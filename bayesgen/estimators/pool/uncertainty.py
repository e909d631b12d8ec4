"""How sure a pool is: class probabilities under draws of the members' parameters and exponents."""

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from bayesgen.datatree import tree
from bayesgen.datatree.tree import named_rows
from bayesgen.estimators.pool.explanation import feature_draws
from bayesgen.estimators.pool.members import Member
from bayesgen.families.names import BOUND, CHAIN, CLASS, DRAW, OBS
from bayesgen.inference.exponents import Exponents, comparable
from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.predict import from_draws
from bayesgen.predict.interval.request import IntervalRequest
from bayesgen.predict.left_out import log_odds

if TYPE_CHECKING:
    import xarray as xr

    from bayesgen.predict.interval.request import KindName


_CENTRED = 1e-6  # largest difference of a mean probability and its prediction
_MOST_STEPS = 200


class PoolUncertainty:
    """Intervals, entropies and draws of the class probabilities of a fitted pool."""

    classes_: Array
    exponents: str
    _members_: list[Member]
    _exponents: Exponents
    _offset_: Array

    def _log_proba(self, X: Any, class_prior: Any = None) -> Array:
        """(N, C) log of the pooled class probabilities."""
        raise NotImplementedError

    def _scores(self, X: Any) -> Array:
        """(M, N, C) members' scores of new rows."""
        raise NotImplementedError

    def _shift(self, class_prior: Any) -> Array:
        """(C,) log-odds that other class weights add."""
        raise NotImplementedError

    @named_rows
    def predict_interval(
        self,
        X: Any,
        prob: float | None = None,
        kind: "KindName | None" = None,
        given: Literal["training", "training and row"] = "training",
        class_prior: Any = None,
        draws: int = 1000,
        random_state: Any = 0,
    ) -> "xr.Dataset":
        """Interval of the pooled probability of each class, by draws of parameters and exponents.

        What varies are exponents and intercepts, drawn from their posterior, and the members'
        scores, by their parameters' posteriors as if all members erred together (they learn from
        the same rows, and independent errors would cancel). Each row's draws are shifted in log
        odds, so that their mean is the prediction. An interval that would still not hold the
        prediction is made wider, so that a pool's always does; that of a single classifier may
        not (`GenerativeClassifier.predict_interval`, Notes). It is an interval
        of what the pool may say, no posterior of a model of x: how often it holds the probability
        that made the rows is measured in the documentation (benchmarks, "Pools").

        Parameters
        ----------
        X : rows
        prob, kind, class_prior
            As in `GenerativeClassifier.predict_interval`.
        given : {"training"}
            ``"training and row"`` is refused: a pool has no density of a row to learn from.
        draws : int
            Of the members' parameters, with as many of exponents and intercepts.
        random_state : int or numpy.random.Generator

        Returns
        -------
        xarray.Dataset
            ``interval`` and ``log_odds`` (obs_id, class, bound), ``predictive`` (obs_id, class),
            ``error`` (obs_id), as of a generative classifier.

        Warns
        -----
        UserWarning
            If members have a predictive and no posterior (hierarchical smoothing): they enter by
            it, and what their parameters leave open is not in the interval.
        """
        if given != "training":
            raise NotImplementedError(
                "given='training and row' needs a density of x, and a pool of predictives has "
                "none; ask a member: pool.members_[name].predict_interval(X, given=...)"
            )
        check_is_fitted(self, "exponents_")
        request = IntervalRequest.of(prob, kind)
        blocks = self._joint_draws(X, draws, random_state, class_prior)
        found = from_draws.by_rows(lambda joint: from_draws.interval(joint, request), blocks)
        log_p = self._log_proba(X, class_prior)
        by_class, p, odds = (OBS, CLASS), np.exp(log_p), log_odds(log_p)

        def ends(lower: Array, upper: Array, own: Array) -> Array:
            return np.stack([np.minimum(lower, own), np.maximum(upper, own)], axis=-1)

        out = tree.group(
            {
                "interval": ((*by_class, BOUND), ends(found.lower, found.upper, p)),
                "log_odds": (
                    (*by_class, BOUND),
                    ends(found.log_odds_lower, found.log_odds_upper, odds),
                ),
                "predictive": (by_class, p),
                "route": ((OBS,), found.method),
                "error": ((OBS,), found.error),
            },
            {CLASS: self.classes_, BOUND: ["lower", "upper"]},
        )
        return out.assign_attrs(prob=request.prob, kind=request.kind)

    @named_rows
    def predict_uncertainty(
        self,
        X: Any,
        unit: Literal["nats", "bits"] = "nats",
        class_prior: Any = None,
        draws: int = 1000,
        random_state: Any = 0,
    ) -> "xr.Dataset":
        """Entropy of the label, and how much of it is of parameters and exponents.

        As `GenerativeClassifier.predict_uncertainty`, by the draws of `predict_interval`: ``mean``
        is `predict_proba`, to 1e-6, or to 1e-3 in rows that 200 steps do not centre.
        """
        if unit not in ("nats", "bits"):
            raise ValueError(f"unit must be 'nats' or 'bits', got {unit!r}")
        check_is_fitted(self, "exponents_")
        blocks = self._joint_draws(X, draws, random_state, class_prior)
        found = from_draws.by_rows(from_draws.averages, blocks)
        scale = 1.0 if unit == "nats" else 1 / np.log(2)
        by_row, by_class = (OBS,), (OBS, CLASS)
        out = tree.group(
            {
                "total": (by_row, found.total * scale),
                "aleatoric": (by_row, found.aleatoric * scale),
                "epistemic": (by_row, (found.total - found.aleatoric) * scale),
                "mean": (by_class, found.mean),
                "sd": (by_class, found.sd),
                "top": (by_class, found.top),
                "route": (by_row, np.full(len(found.total), "draws")),
                "error": (by_row, found.error),
            },
            {CLASS: self.classes_},
        )
        return out.assign_attrs(unit=unit, given="training")

    @named_rows
    def predict_posterior(
        self, X: Any, draws: int = 1000, class_prior: Any = None, random_state: Any = 0
    ) -> "xr.DataTree":
        """Draws of the class probabilities, as `predict_interval` makes them.

        Their mean is `predict_proba`, to 1e-6, or to 1e-3 in rows that 200 steps do not centre.
        """
        import xarray as xr

        check_is_fitted(self, "exponents_")
        blocks = self._joint_draws(X, draws, random_state, class_prior, together=True)
        rho = np.concatenate([np.exp(log_softmax(joint)) for _, joint in blocks], axis=2)
        group = tree.group(
            {"class_probability": ((CHAIN, DRAW, OBS, CLASS), rho)}, {CLASS: self.classes_}
        )
        return xr.DataTree.from_dict({"/predictions": group})

    def _joint_draws(
        self, X: Any, draws: int, random_state: Any, class_prior: Any, together: bool = False
    ) -> Iterator[tuple[slice, Array]]:
        """(rows, (1, draws, n, C) pooled scores), blocks of rows.

        Members with very many parameters draw them anew for each block, unless all rows are to be
        taken `together`: of one row the distribution is the same.
        """
        if not isinstance(draws, int | np.integer) or draws < 2:
            raise ValueError(f"draws must be an integer >= 2, got {draws!r}")
        if held := [member.name for member in self._members_ if member.approximate]:
            warnings.warn(
                f"members without a posterior enter by their predictive ({', '.join(held)}): how "
                "uncertain their parameters are is not in these intervals and draws",
                UserWarning,
                stacklevel=3,
            )
        n = _num_samples(X)
        if n == 0:
            raise ValueError("Found array with 0 sample(s): there are no rows to draw for")
        rng = np.random.default_rng(random_state)
        anew = [self.exponents == "model" and m.too_large(draws) for m in self._members_]
        thetas = [
            {} if each else m.draw(rng, draws) for m, each in zip(self._members_, anew, strict=True)
        ]
        at = rng.permutation(np.arange(draws) % self._exponents.n_draws)
        eta, b = (drawn[at] for drawn in self._exponents.flat)
        b = b + self._offset_ + self._shift(class_prior)
        large = 128 if any(anew) else 8  # blocks of 256 or 16 MiB
        blocks = row_blocks(n, max(1, draws * len(self.classes_) // large))
        for rows in [slice(0, n)] if together else blocks:
            part = _safe_indexing(X, np.arange(rows.start, rows.stop))
            scores = self._scores(part)
            joint = np.einsum("sm,mnc->snc", eta, scores, optimize=True) + b[:, None]
            away, sd = np.zeros_like(joint), []
            first = 0
            for member, theta, each in zip(self._members_, thetas, anew, strict=True):
                if self.exponents == "feature":
                    encoded = member.clf.fitted_.encoded(member.rows(part))
                    own, used = feature_draws(member, encoded, theta, eta[:, first:])
                    first += used
                else:
                    drawn = (
                        member.log_joint_drawn(part, rng, draws, together)
                        if each
                        else member.log_joint_of_draws(part, theta)
                    )
                    own = comparable(drawn)
                    own = eta[:, first, None, None] * (own - own.mean(axis=0))
                    first += 1
                away += own
                sd.append(np.sqrt((own - own.mean(axis=2, keepdims=True)).var(axis=0).mean(axis=1)))
            lost = np.sqrt(np.square(sd).sum(axis=0))  # of independent draws: some cancel
            away *= np.where(lost > 0, np.sum(sd, axis=0) / np.where(lost > 0, lost, 1), 1)[:, None]
            target = log_softmax(
                self._exponents.log_proba(scores, self._offset_) + self._shift(class_prior)
            )
            yield rows, _centred(joint + away, target)[None]


def _centred(joint: Array, log_p: Array) -> Array:
    """(S, n, C) with a constant for each row and class, so that mean probabilities are `log_p`."""
    p = np.exp(log_p)
    for _ in range(_MOST_STEPS):
        mean = np.exp(log_softmax(joint)).mean(axis=0)
        if np.abs(mean - p).max() < _CENTRED:
            break
        known = (mean > 0) & (p > 0)
        joint = joint + np.log(np.where(known, p, 1.0) / np.where(known, mean, 1.0))
    return joint
