"""What a pool says of its training rows without themselves, and sets of labels from that."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesgen.datatree.tree import named_rows
from bayesgen.inference.exponents import ExponentPrior, Exponents, without_each_row
from bayesgen.numerics.special import Array
from bayesgen.predict.leave_one_out import TrainingRows
from bayesgen.predict.left_out import LeftOut, check_coverage, log_odds, prediction_sets

if TYPE_CHECKING:
    import xarray as xr
    from arviz_stats.utils import ELPDData


class PoolLeaveOneOut:
    """Leave-one-out scores of a fitted pool."""

    classes_: Array
    n_rows_: int
    _exponents: Exponents
    _prior_: ExponentPrior
    _offset_: Array
    random_state: int | None
    _data: tuple[Array, Array, Array] | None
    _loo_scores: LeftOut | None

    def _log_proba(self, X: Any, class_prior: Any = None) -> Array:
        """(N, C) log of the pooled class probabilities."""
        raise NotImplementedError

    def _training_scores(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, Array, TrainingRows]:
        """Members' scores of training rows without themselves, and the rows."""
        raise NotImplementedError

    def loo(
        self, X: Any, y: Any, target: Literal["label"] = "label", sample_weight: Any = None
    ) -> "ELPDData":
        """Leave-one-out score of the labels, as ArviZ holds it.

        Parameters
        ----------
        X, y, sample_weight : the training rows
        target : {"label"}
            A pool has no joint density of x and y.

        Returns
        -------
        arviz_stats ELPDData
            As of `GenerativeClassifier.loo`.

        Notes
        -----
        Members are without the row exactly (or by importance sampling, where they were fitted by
        draws). Exponents and intercepts are without it by Pareto-smoothed importance weights of
        their draws; new draws are made without a row that has a tenth of the weight or more. The
        members' scores of the other rows stay as they are.
        """
        return self._loo(X, y, target, sample_weight)[0]

    def _loo(
        self, X: Any, y: Any, target: str = "label", sample_weight: Any = None
    ) -> "tuple[ELPDData, Array, TrainingRows]":
        """`loo`; (n, C) log probabilities of the rows that it scores; those rows."""
        if target != "label":
            raise ValueError(f"target must be 'label', got {target!r}: a pool has no density of x")
        check_is_fitted(self, "exponents_")
        scores, at, rows = self._training_scores(X, y, sample_weight)
        log_p, k = self._without_each_row(scores, rows.codes, rows.weight)
        own_class = np.arange(len(rows.codes)), rows.codes
        from bayesgen.checks.loo import elpd

        in_sample = self._log_proba(rows.X)[own_class]
        found = elpd(log_p[own_class], in_sample, at, target, k, self._exponents.n_draws)
        return found, log_p, rows

    def _without_each_row(self, scores: Array, codes: Array, weight: Array) -> tuple[Array, Array]:
        data = scores, codes, weight, self._prior_, self._offset_, self.random_state
        return without_each_row(self._exponents, *data)

    @named_rows
    def predict_set(
        self, X: Any, coverage: float = 0.9, by_class: bool = False, training: Any = None
    ) -> "xr.Dataset":
        """A set of labels for each row; about a share `coverage` of the sets hold the true one.

        As `GenerativeClassifier.predict_set`, from the leave-one-out probabilities of `loo`.

        Parameters
        ----------
        X : rows
        coverage, by_class
            As there.
        training : (X, y) or (X, y, sample_weight), optional
            Needed of a pool whose model file was written by an earlier version alone.
        """
        check_is_fitted(self, "exponents_")
        coverage = check_coverage(coverage)
        left_out = self._left_out(training)
        joint = self._log_proba(X)
        return prediction_sets(left_out, joint, self.classes_, coverage, by_class)

    def _left_out(self, training: Any = None) -> LeftOut:
        if training is None and self._loo_scores is not None:
            return self._loo_scores
        if training is not None:
            scores, _, rows = self._training_scores(*training, *[None] * (3 - len(training)))
            codes, weight = rows.codes, rows.weight
        elif self._data is not None:
            scores, codes, weight = self._data
        else:
            raise ValueError(
                "the file of this pool holds no scores of its training rows: pass "
                "training=(X, y) or training=(X, y, sample_weight)"
            )
        odds = log_odds(self._without_each_row(scores, codes, weight)[0])
        unknown = np.full(len(codes), np.nan)
        own = odds[np.arange(len(codes)), codes]
        self._loo_scores = LeftOut(codes, weight, unknown, unknown, own).sorted()
        return self._loo_scores
