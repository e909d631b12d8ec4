"""Tables of categories, bits and binned real columns, for joint tables of several columns."""

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from bayesgen.encoding.binned import BinnedTable, MissingCells
from bayesgen.estimators.base import Align, GenerativeClassifier
from bayesgen.estimators.tables import _Table
from bayesgen.families.errors import IncompleteRowError
from bayesgen.families.names import CLASS, Method
from bayesgen.numerics.special import Array, log_sum_exp
from bayesgen.posterior.model import ClassStats, Quantity

if TYPE_CHECKING:
    import pymc as pm

_COMPLETIONS = 4096  # of one row with missing cells


_WIDEST = 1 << 15  # columns of which all pairs can be counted


class GivenStructure(GenerativeClassifier):
    """PyMC models for a given structure, as the average over all has a discrete parameter."""

    def to_pymc(
        self,
        X: Any = None,
        y: Any = None,
        *,
        likelihood: Literal["statistics", "rows"] = "statistics",
        observed: bool = True,
        structure: Any = None,
    ) -> "pm.Model":
        """The model for a given structure as a PyMC model; its variables are in the class's Notes.

        Parameters
        ----------
        X, y : rows and labels, optional
            In place of the statistics of the fit.
        likelihood : {"statistics"}
        observed : bool
            False: the prior alone.
        structure : array of int, "all", or None
            Of forests: (D,) or (class, D), the position of the column that each column depends on,
            -1 for none; None: the forest of the fit, if it has one. Of `TreeAugmentedNB` also
            "all": the mixture over all rooted forests of at most 4 columns, and None is "all" for
            an average. Of `AnDE`: (n,), the positions of the super-parents; None: in each class
            those of the largest weight, the first of equals.

        Returns
        -------
        pymc.Model
        """
        import pymc as pm
        import pytensor.tensor as pt

        self._fitted()
        if likelihood != "statistics":
            raise ValueError("likelihood must be 'statistics': rows are not independent given pi")
        if (X is None) != (y is None):
            raise ValueError("X and y must be given together")
        stats: ClassStats = self.stats_
        if X is not None:
            stats = self.prior_.stats(self._encoded(X), self._codes_of(y), len(self.classes_))
        prior: Any = self.prior_.family
        given = self._structure(prior, stats, structure)
        with pm.Model(coords={CLASS: self.classes_}) as model:
            pi = pm.Dirichlet("pi", self.prior_.alpha, dims=CLASS)
            if observed:
                pm.Potential("label", (stats.count * pt.log(pi)).sum())
            self._declare(prior, stats.features if observed else None, given)
        return model

    def _structure(self, prior: Any, stats: ClassStats, structure: Any) -> Any:
        """`structure`, checked, or the one that stands for None."""
        raise NotImplementedError

    def _declare(self, prior: Any, features: Any, structure: Any) -> None:
        """Put the variables of `structure` into the PyMC model on the stack."""
        raise NotImplementedError


class _Binned(GivenStructure, _Table):
    """Shared reading of tables as codes; missing cells of new rows are summed over."""

    def _set_bins(
        self, n_bins: int, cuts: Any, columns: Any, categories: Any, missing: MissingCells
    ) -> None:
        """Keep the constructor arguments that both of them have."""
        self.n_bins = n_bins
        self.cuts = cuts
        self.columns = columns
        self.categories = categories
        self.missing = missing

    def _levels(self) -> Array | None:
        """(D,) numbers of codes, once they are known."""
        encoder: BinnedTable | None = getattr(self, "encoder_", None)
        return None if encoder is None else encoder.levels

    def _learn(self, X: Any) -> BinnedTable:
        if self.unseen not in ("ignore", "raise"):
            raise ValueError(f"unseen must be 'ignore' or 'raise', got {self.unseen!r}")
        if "stats_" in self.__dict__:
            known: BinnedTable = self.encoder_
            self._refuse_unknown(known.encode(X), known)
            if any(known.missing):  # a category that is new would be coded as a missing cell
                _refuse_new(known, X)
            return known
        if self.columns is None and X.shape[1] > _WIDEST:  # before each is cut into bins
            raise ValueError(
                f"pairs of {X.shape[1]} columns need 1e9 counts or more: name fewer in columns="
            )
        found = BinnedTable.learn(
            X, self.n_bins, self.columns, self.categories, self.cuts, self.missing
        )
        self._refuse_unknown(found.encode(X), found)
        return found

    def _absorb(self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None) -> None:
        if "stats_" in self.__dict__:
            self._refuse_single_bins(X)
        super()._absorb(X, y, sample_weight, classes)

    def _refuse_single_bins(self, X: Any) -> None:
        """Raise where later rows tell nothing of a column that varies: it has the one bin.

        Of columns that vary within these rows; of all, if there was one row before.
        """
        schema, given = self.encoder_.schema, set(map(str, self.cuts or {}))
        names = schema.names or schema.positions
        single = [
            j
            for j, (kind, ends) in enumerate(zip(schema.kinds, self.encoder_.cuts, strict=True))
            if kind == "gaussian" and not ends and str(names[j]) not in given
        ]
        if not single:
            return
        try:
            cells = schema.encode(X)
        except (TypeError, ValueError):  # whoever reads the rows for good will say so
            return
        ends = (f.reduce(cells, axis=0, initial=np.nan) for f in (np.fmin, np.fmax))
        varies = np.less(*ends)
        lost = [j for j in single if varies[j] or self.n_rows_seen_ == 1]
        if lost:
            raise ValueError(
                f"column {names[lost[0]]!r} had one value in the first rows, from "
                "which bins are taken, so that what comes later tells nothing: declare cuts= (an "
                "empty list leaves the column one bin), or begin with more rows"
            )

    def _refuse_unknown(self, codes: Array, encoder: BinnedTable) -> None:
        """Raise where a training cell has no code."""
        gone = np.argwhere(np.isnan(codes))
        if len(gone):
            i, j = gone[0]
            names = encoder.schema.names
            name = f"column {encoder.schema.positions[j] if names is None else names[j]!r}"
            raise ValueError(
                f"row {i}, {name}: missing, or a category that the first rows did not have; "
                "pairs of incomplete rows have no common margins. Give missing='category', and "
                "declare categories= where rows come in parts"
            )

    def _widen(self, encoder: BinnedTable) -> Align:
        if encoder is not self.encoder_ and encoder.to_json() != self.encoder_.to_json():
            raise ValueError(
                "the two sides have different bins, categories or codes of missing cells, and "
                "tables of pairs cannot be recoded: declare cuts=, categories= and missing= on both"
            )
        return lambda stats: stats

    def _encode(self, X: Any) -> Array:
        if self.unseen == "raise":
            self.encoder_.schema.refuse_unseen(X)
        codes: Array = self.encoder_.encode(X)
        return codes

    def _encoded(self, X: Any) -> Array:
        codes: Array = super()._encoded(X)
        gone = np.argwhere(np.isnan(codes))
        if len(gone):
            i, j = gone[0]
            raise IncompleteRowError(
                f"column {self._feature_names()[j]!r} in row {i}: missing, or a category that the "
                "training rows did not have. predict_proba sums over what it may be; intervals, "
                "entropies and explanations need it: fit with missing='category', fill the cell, "
                "or leave the row out"
            )
        return codes

    def _decode(self, X: Any) -> Any:
        import pandas as pd

        return pd.DataFrame(dict(zip(self._feature_names(), self.encoder_.decode(X), strict=True)))

    def _scores(
        self, own: Any, X: Any, method: Method, weights: Array | None, quantity: Quantity
    ) -> Array:
        partial = np.flatnonzero(np.isnan(X).any(axis=1))
        if not len(partial):
            return super()._scores(own, X, method, weights, quantity)
        out = np.empty((len(X), len(self.classes_)))
        whole = np.setdiff1d(np.arange(len(X)), partial)
        if len(whole):
            out[whole] = own.log_joint(X[whole], method, weights, quantity)
        out[partial] = self._summed(own, X, partial, method, weights, quantity)
        return out

    def _summed(
        self,
        own: Any,
        X: Array,
        at: Array,
        method: Method,
        weights: Array | None,
        quantity: Quantity,
    ) -> Array:
        """Scores of the rows `at`, summed over what their missing cells may be."""
        out = np.empty((len(at), len(self.classes_)))
        for k, i in enumerate(at):
            rows = self._completions(X[i], int(i))
            out[k] = log_sum_exp(own.log_joint(rows, method, weights, quantity), axis=0)
        return out

    def _completions(self, row: Array, i: int) -> Array:
        """(K, D) every way to fill the missing cells of a row of codes."""
        gaps = np.flatnonzero(np.isnan(row))
        sizes = self._gap_sizes()[gaps]
        n = float(np.prod(sizes.astype(np.float64)))
        if n > _COMPLETIONS:
            raise ValueError(
                f"row {i} has {len(gaps)} cells that are not known, {n:.0f} completions; the exact "
                f"sum takes at most {_COMPLETIONS}. Fit with missing='category', or leave columns "
                "out"
            )
        rows = np.repeat(row[None], int(n), axis=0)
        rows[:, gaps] = list(product(*(range(size) for size in sizes)))
        return rows

    def _gap_sizes(self) -> Array:
        """(D,) number of codes that a missing cell of each column may have."""
        return self.encoder_.levels - np.array(self.encoder_.missing)

    def _cells_as_read(self) -> list[Any]:
        return list(zip(self.encoder_.cuts, self.encoder_.missing, strict=True))

    # -- names and files -------------------------------------------------------------------------

    def _feature_names(self) -> list[Any]:
        return list(self.encoder_.schema.labels)

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.encoder_ = BinnedTable.from_json(state["encoder"])

    def _check_same_features(self, other: Self) -> None:
        if self.encoder_.schema.names is None or other.encoder_.schema.names is None:
            super()._check_same_features(other)


def _refuse_new(known: BinnedTable, X: Any) -> None:
    try:
        known.schema.refuse_unseen(X)
    except ValueError as error:
        what = str(error).split(";")[0]
        raise ValueError(
            f"{what}; later parts take the categories of the first rows: declare categories="
        ) from None
