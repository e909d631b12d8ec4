"""What a fitted classifier says of each training row without that row."""

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from sklearn.utils.validation import check_consistent_length

from bayesgen.encoding.labels import is_labelled, labels_and_mask, refuse_unlabelled
from bayesgen.estimators.estimator import Estimator
from bayesgen.estimators.labelled import weights
from bayesgen.families.names import CLASS
from bayesgen.inference.closed_form import NoClosedFormError
from bayesgen.numerics.rows import class_counts
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior.exact import ExactPosterior

if TYPE_CHECKING:
    from arviz_stats.utils import ELPDData

_SAME = 1e-7  # relative: two sums of the same rows in another order differ by 1e-12 or so

_TRAINING_ROWS = (
    "leave-one-out needs the training rows, labels and weights: all of them, or some with "
    "partial=True"
)


class TrainingRows(NamedTuple):
    """Training rows as the family takes them."""

    X: Any
    codes: Array  # (N,) -1 where there is no label
    weight: Array  # (N,)

    @property
    def scored(self) -> Array:
        """Positions of the rows that have a label and a weight."""
        return np.flatnonzero((self.codes >= 0) & (self.weight > 0))


class LeaveOneOut(Estimator):
    """Exact leave-one-out, without a refit; of draws, by Pareto-smoothed importance sampling."""

    def loo_log_joint(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        partial: bool = False,
    ) -> Array:
        r"""(N, C) log p(y = c, x_i \| D without row i) of the training rows.

        Parameters
        ----------
        X, y, sample_weight : the training rows
            As given to `fit`. They are checked against the statistics of the fit.
        groups : (N,) or int, optional
            Labels of groups (sites, subjects, folds): each row is scored without its whole group.
            An integer K makes K folds, row i in fold ``i % K``.
        partial : bool
            `X` and `y` are some of the training rows, as a sample of a stream: their statistics
            are checked to be part of those of the fit.

        Returns
        -------
        (N, C)
            Normalised over the classes it is p(y = c | x_i, D without row i). A row of weight w
            leaves whole; a row of weight 0, or without a label, was never in.

        Raises
        ------
        ValueError
            If these are not the training rows.

        Notes
        -----
        One pass over the rows, at the cost of a prediction. Forests that rows choose
        (``structure="tree"``, ``"map"``) are chosen again without each row. What else was chosen
        from all rows stays as it was: means and scales of default priors; strengths and root
        weights that are None, or of ``prior="loo"`` and ``"empirical"``; ends of bins, categories,
        vocabularies, and the base of ``smoothing="context_tree"``. So the score is a little too
        high; refits of all of it, or rows that were held out, tell how much. After a fit by draws,
        Pareto-smoothed importance sampling.

        Examples
        --------
        >>> import bayesgen as bg
        >>> X, y = [[0, 1], [1, 1], [1, 0], [0, 0]], ["a", "a", "b", "b"]
        >>> joint = bg.BernoulliNB().fit(X, y).loo_log_joint(X, y)
        >>> np.exp(joint[0]).round(4)  # 2/5 * 1/3 * 2/3 and 3/5 * 1/2 * 1/4
        array([0.0889, 0.075 ])
        """
        own = self._fitted()
        rows = self._training_rows(X, y, sample_weight, partial)
        if groups is None:
            return own.log_joint_without(*rows)[0]
        return self._without_groups(own, rows, groups)

    def loo(
        self,
        X: Any,
        y: Any,
        target: Literal["label", "joint"] = "label",
        sample_weight: Any = None,
        *,
        groups: Any = None,
        partial: bool = False,
    ) -> "ELPDData":
        """Leave-one-out score of the fit, as ArviZ holds it.

        Parameters
        ----------
        X, y, sample_weight, groups, partial
            As in `loo_log_joint`.
        target : {"label", "joint"}
            Sum over rows of log p(y_i | x_i, D without row i), by which to choose a classifier; or
            of log p(x_i, y_i | D without row i), in which the features outweigh the label.

        Returns
        -------
        arviz_stats ELPDData
            ``elpd``, ``se``, ``p`` (effective number of parameters: the score with the row less
            the score without), ``elpd_i`` (obs_id) of the rows that have a label and a weight.
            `arviz.compare` and `arviz.plot_compare` take it beside others of the same rows and
            target. After a fit by draws also ``pareto_k``, and ``warning`` where it is too large.

        Notes
        -----
        The whole row leaves, features and label, with its whole weight; in the sums a row counts
        once, whatever its weight. ``az.loo(tree, var_name="label")`` of a
        generative model takes out the label alone: x_i then still tells of theta.

        Examples
        --------
        >>> import bayesgen as bg
        >>> X, y = bg.datasets.load_penguins()
        >>> X, y = X[["bill_length_mm"]].dropna(), y[X["bill_length_mm"].notna()]
        >>> round(bg.GaussianNB().fit(X, y).loo(X, y).elpd, 2)
        -172.17
        """
        return self._loo(X, y, target, sample_weight, groups, partial)[0]

    def _loo(
        self,
        X: Any,
        y: Any,
        target: str = "label",
        sample_weight: Any = None,
        groups: Any = None,
        partial: bool = False,
    ) -> "tuple[ELPDData, Array, TrainingRows]":
        """`loo`; (n, C) log joint densities of the n rows that it scores; those rows."""
        if target not in ("label", "joint"):
            raise ValueError(f"target must be 'label' or 'joint', got {target!r}")
        if target == "joint":
            self._refuse_if_discriminative("target='joint'")
        own = self._fitted()
        rows = self._training_rows(X, y, sample_weight, partial)
        at = rows.scored
        if not len(at):
            raise ValueError("no row has a label and a weight above 0: there is nothing to score")
        n_groups = k = None
        if groups is None:
            log_joint, k = own.log_joint_without(*rows)
        else:
            log_joint = self._without_groups(own, rows, groups)
            n_groups = len(np.unique(_groups(groups, len(rows.codes))))
        nobody = np.full(len(at), -1)
        full, _ = own.log_joint_without(rows.X[at], nobody, rows.weight[at])
        log_joint = left_out = log_joint[at]
        if target == "label":
            full, left_out = log_softmax(full), log_softmax(left_out)
        own_class = np.arange(len(at)), rows.codes[at]
        from bayesgen.checks.loo import elpd

        scores = elpd(
            left_out[own_class],
            full[own_class],
            at,
            target,
            None if k is None else k[at],
            0 if isinstance(own, ExactPosterior) else int(np.prod(own.shape)),
            n_groups,
        )
        return scores, log_joint, TrainingRows(rows.X[at], rows.codes[at], rows.weight[at])

    def _without_groups(self, own: Any, rows: TrainingRows, groups: Any) -> Array:
        if not isinstance(own, ExactPosterior):
            raise NoClosedFormError(
                "groups= leaves many rows out at once, which draws cannot (importance weights "
                "would rest on a few of them); fit again without each group"
            )
        inside = rows.scored
        found = _groups(groups, len(rows.codes))[inside]
        order = np.argsort(found, kind="stable")
        cuts = np.flatnonzero(np.diff(found[order])) + 1
        parts = np.split(order, cuts)
        out = own.log_joint(rows.X)
        out[inside] = own.log_joint_without_groups(
            rows.X[inside], rows.codes[inside], rows.weight[inside], parts
        )
        return out

    def _training_rows(
        self, X: Any, y: Any, sample_weight: Any, partial: bool, *, known: bool = False
    ) -> TrainingRows:
        """Rows, codes and weights; raises unless they are (some of) those of the fit.

        `known`: that they are is known, and not checked.
        """
        own = self._fitted()
        X = self._read(X, reset=False)
        values, masked = labels_and_mask(y)
        check_consistent_length(X, values)
        exact = isinstance(own, ExactPosterior)
        if exact:
            refuse_unlabelled(masked)
            codes = self._codes_of(values)
        else:
            labelled = is_labelled(values, masked)
            codes = np.full(len(values), -1)
            codes[labelled] = self._codes_of(values[labelled])
        weight = np.ones(len(codes))
        if sample_weight is not None:
            weight = weights(sample_weight, len(codes))
        rows = TrainingRows(self._encode(X), codes, weight)
        if known:
            return rows
        if exact:
            self._check_rows_of_fit(rows, partial)
        else:
            self._check_numbers(rows, partial)
        return rows

    def _check_numbers(self, rows: TrainingRows, partial: bool) -> None:
        """By the number of rows, and the class counts where the fit knew every label."""
        # rows of weight 0 are no rows to the fit
        n, seen = int(np.sum(rows.weight > 0)), getattr(self, "n_rows_seen_", None)
        if seen is not None and not partial and n != seen:
            raise ValueError(f"{_TRAINING_ROWS}; got {n} rows, and the fit had {seen}")
        if self.n_unlabelled_:
            return
        known = rows.codes >= 0
        fitted = self._fitted().stats.count
        count = class_counts(rows.codes[known], len(fitted), rows.weight[known])
        if np.any(count > (1 + _SAME) * fitted) if partial else _differ(count, fitted):
            raise _other_counts(count, fitted, self.classes_)

    def _check_rows_of_fit(self, rows: TrainingRows, partial: bool) -> None:
        """By the class counts and the evidence: a change of any cell changes it."""
        at = rows.scored
        some = TrainingRows(rows.X[at], rows.codes[at], rows.weight[at])
        prior, stats = self.prior_, self.stats_
        own = prior.stats(*some[:2], len(self.classes_), some.weight)
        approximate = bool(prior.family.approximate)
        if partial or approximate:
            try:
                rest = stats.remove(own)
            except ValueError as error:
                raise ValueError(f"{_TRAINING_ROWS}; some of these were not: {error}") from None
        if partial:
            return
        if _differ(own.count, stats.count):
            raise _other_counts(own.count, stats.count, self.classes_)
        if approximate:  # without an evidence
            left = [v for dims, v in rest.features.arrays().values() if CLASS in dims]
            if any((np.abs(v) > _SAME).any() for v in left):
                raise ValueError(f"{_TRAINING_ROWS}; these are only some of them")
            return
        fitted, given = prior.log_evidence(stats), prior.log_evidence(own)
        if not np.isclose(given, fitted, rtol=_SAME, atol=_SAME * len(some.codes)):
            raise ValueError(
                f"{_TRAINING_ROWS}; these have the same classes and other features: their log "
                f"evidence is {given:.6f}, that of the fit {fitted:.6f}"
            )


def _differ(count: Array, fitted: Array) -> bool:
    return not np.allclose(count, fitted, rtol=_SAME)


def _other_counts(count: Array, fitted: Array, classes: Array) -> ValueError:
    return ValueError(
        f"{_TRAINING_ROWS}; got weights {count.round(6).tolist()} of the classes "
        f"{classes.tolist()}, and the fit had {fitted.round(6).tolist()}"
    )


def _groups(groups: Any, n: int) -> Array:
    """(N,) codes of the groups."""
    if isinstance(groups, int | np.integer):
        if not 2 <= groups <= n:
            raise ValueError(f"groups must be at least 2 folds and at most {n} rows, got {groups}")
        return np.arange(n) % int(groups)
    found = np.asarray(groups)
    if found.shape != (n,):
        raise ValueError(f"groups must have one entry for each of {n} rows, got {found.shape}")
    codes: Array = np.unique(found, return_inverse=True)[1].ravel()
    return codes
