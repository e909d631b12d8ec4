"""What a fitted classifier is: columns, classes, priors, evidence and warnings, on one page."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.datatree import tree
from bayesgen.datatree.names import POSTERIOR, SAMPLE_STATS
from bayesgen.estimators import prior_words
from bayesgen.estimators.explaining import Explaining
from bayesgen.families.capabilities import ObservedCells
from bayesgen.families.names import CLASS, CONTEXT, FEATURE
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

SHOWN = 20  # columns, classes or members in print
_FEW_ROWS = 5  # of a class: fewer are worth a remark


@dataclass(frozen=True)
class Summary:
    """What ``clf.summary()`` returns; `print` shows it, notebooks as HTML.

    Attributes
    ----------
    title : str
    table : xarray.Dataset
        (feature) ``kind``, ``missing`` cells (NaN where statistics do not tell), ``prior`` in the
        column's units, and ``prior_range``, where 90 % of its cells would be under the prior
        alone; (class) ``rows``. Attributes: ``log_evidence``, ``inference``, ``class_prior``.
    sentences : tuple of str
        Class counts, priors that are no column's, evidence, warnings.
    """

    title: str
    table: "xr.Dataset"
    sentences: tuple[str, ...]

    def to_dataframe(self) -> "pd.DataFrame":
        """One row per column."""
        frame: pd.DataFrame = self.table.drop_dims(CLASS).to_dataframe()
        return frame

    def _shown(self) -> "pd.DataFrame":
        """The first lines of the table, as text."""
        frame = self.to_dataframe().iloc[:SHOWN].rename_axis(None)
        missing = [f"{n:.0f}" if n else "" for n in np.nan_to_num(frame["missing"])]
        frame = frame.assign(missing=missing)
        frame.columns = frame.columns.str.replace("_", " ")
        return frame.loc[:, (frame != "").any()]

    def _n_lines(self) -> int:
        return int(self.table.sizes.get(FEATURE, 0))

    def __repr__(self) -> str:
        lines, more = [self.title], self._n_lines() - SHOWN
        if self._n_lines():
            frame = self._shown()
            frame.insert(0, "column", frame.index.astype(str))
            heads = ["" if head == "column" else head for head in frame.columns]
            cells = [heads, *frame.astype(str).values.tolist()]
            width = [max(len(row[j]) for row in cells) for j in range(len(heads))]
            lines += ["  " + "  ".join(map(str.ljust, row, width)).rstrip() for row in cells]
        if more > 0:
            lines.append(f"  ... and {more} more")
        return "\n".join([*lines, *self.sentences])

    def _repr_html_(self) -> str:
        more = self._n_lines() - SHOWN
        table = self._shown().to_html(border=0) if self._n_lines() else ""
        told = [*([f"... and {more} more"] if more > 0 else []), *self.sentences]
        items = "".join(f"<li>{escape(sentence)}</li>" for sentence in told)
        return f"<div><p><b>{escape(self.title)}</b></p>{table}<ul>{items}</ul></div>"


def with_summary(clf: Any) -> str:
    """HTML for notebooks: scikit-learn's diagram, and once fitted the summary below it."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils import estimator_html_repr

    diagram: str = estimator_html_repr(clf)
    try:
        return diagram + clf.summary()._repr_html_()
    except NotFittedError:
        return diagram


class Summarising(Explaining):
    """`summary`, and the HTML of notebooks."""

    _suspects: dict[str, str]

    def summary(self) -> Summary:
        """Columns and kinds, class counts, missing cells, priors in units, evidence, warnings.

        Returns
        -------
        Summary
            Print it; ``table`` and ``to_dataframe()`` hold the same for programs.

        Examples
        --------
        >>> import bayesgen as bg
        >>> X, y = bg.datasets.load_penguins()
        >>> bg.MixedNB().fit(X[["island", "bill_depth_mm"]], y).summary()
        MixedNB, closed form: 344 rows
                         kind         missing  prior                                             prior range
          island         categorical           1 pseudo-count of each
          bill_depth_mm  gaussian     2        mean 17.2, worth 0.1 rows; sd 1.12, worth 3 rows  8.38 to 25.9
        Rows: Adelie (152), Chinstrap (68), Gentoo (124).
        Class weights: 1 pseudo-count of each class.
        Prior: variance='class'.
        Log evidence: -1089.30 nats.
        """  # noqa: E501 - a table
        own = self._fitted()
        coords = self._coords()
        names = [str(name) for name in self._column_names()]
        n = len(names)
        kind, words, spread = (np.full(n, "", dtype=object) for _ in range(3))
        missing, of_all = np.full(n, np.nan), []
        stats = own.stats.features if "stats_" in self.__dict__ else None
        for block in own.prior.family.blocks(stats):
            at = np.arange(n)[block.columns]
            kind[at] = block.family.column_kind()
            found = prior_words.columns_of(block.family, len(at))
            words[at], spread[at] = [w for w, _ in found], [r for _, r in found]
            missing[at] = self._n_missing(block)
            if general := prior_words.of_all_columns(block.family):
                of_all.append(general)
        rows = self._class_rows()
        variables: dict[str, Any] = {
            "kind": ((FEATURE,), kind.astype(str)),
            "missing": ((FEATURE,), missing),
            "prior": ((FEATURE,), words.astype(str)),
            "prior_range": ((FEATURE,), spread.astype(str)),
        }
        if rows is not None:
            variables["rows"] = ((CLASS,), rows)
        exact = self.inference_ == "closed form" and not own.prior.family.no_evidence
        evidence = self.log_evidence_ if exact else np.nan
        table = tree.group(variables, {FEATURE: names, CLASS: coords[CLASS]})
        table = table.assign_attrs(
            log_evidence=float(evidence),
            inference=self.inference_,
            class_prior=np.asarray(own.prior.alpha).tolist(),
        )
        seen = getattr(self, "n_rows_seen_", None)
        told = "" if seen is None else f": {_rows(seen)}"
        title = f"{type(self).__name__}, {_ROUTES.get(self.inference_, self.inference_)}{told}"
        return Summary(title, table, tuple(self._sentences(rows, of_all, float(evidence))))

    def _column_names(self) -> list[Any]:
        """Names of the columns of X, none of documents."""
        return [] if CONTEXT in self._coords() else self._feature_names()

    def _cells_as_read(self) -> list[Any]:
        """Of each column, how cells become what the family describes; None: as they are.

        Two models describe the same where these are equal.
        """
        return [None] * len(self._column_names())

    def _n_missing(self, block: Any) -> float | Array:
        """Missing cells of the columns of a block, NaN where statistics do not tell."""
        cells = block.family.capability(ObservedCells)
        if cells is None or block.stats is None:
            family = block.family
            complete = not family.fits_missing or family.missing != "marginalised"
            return 0.0 if complete and block.stats is not None else np.nan
        observed = cells.observed_cells(block.stats).sum(axis=0)
        lost: Array = np.maximum(np.round(self.stats_.count.sum() - observed, 6), 0.0)
        return lost

    def _class_rows(self) -> Array | None:
        """(C,) labelled rows of each class, by weight; None where they are not known."""
        own = self._fitted()
        return None if own.stats is None else np.asarray(own.stats.count, dtype=float)

    def _sentences(self, rows: Array | None, of_all: list[str], evidence: float) -> list[str]:
        out = []
        labels = [str(label) for label in self.classes_]
        if rows is not None:
            each = _listed([f"{k} ({n:g})" for k, n in zip(labels, rows, strict=True)])
            seen = getattr(self, "n_rows_seen_", rows.sum()) - getattr(self, "n_unlabelled_", 0)
            weighted = rows.sum() != seen or (rows != np.round(rows)).any()
            how = ", counted by weight as missing cells are" if weighted else ""
            out.append(f"Rows{how}: {each}.")
        if self._family_type.discriminative:
            out.append("Discriminative: p(y | x) alone; nothing is said of x.")
        else:
            alpha = prior_words.shown(np.ravel(self._fitted().prior.alpha))
            s = "" if alpha == "1" else "s"
            out.append(f"Class weights: {alpha} pseudo-count{s} of each class.")
        out += [f"Prior: {general}." for general in of_all]
        if self.prior != "default":
            out.append(f"Prior strengths chosen from the rows (prior={self.prior!r}).")
        if evidence == evidence:
            out.append(f"Log evidence: {evidence:.2f} nats.")
        if why := (family := self._fitted().prior.family).no_evidence:
            lacks = "No evidence and no intervals" if family.approximate else "No evidence"
            out.append(f"{lacks}: {why}.")
        return out + [f"Warning: {text}." for text in self._cautions(rows)]

    def _cautions(self, rows: Array | None) -> list[str]:
        """What to look at before the numbers are believed."""
        out = [f"column {name!r} {why}" for name, why in self.__dict__.get("_suspects", {}).items()]
        if rows is not None and len(few := np.flatnonzero(rows < _FEW_ROWS)):
            names = _listed([f"{self.classes_[c]} ({rows[c]:g})" for c in few])
            out.append(
                f"classes with fewer than {_FEW_ROWS} rows, where the prior decides: {names}"
            )
        if n := getattr(self, "n_unlabelled_", 0):
            out.append(f"{_rows(n)} without a label were averaged over")
        if self.inference_ != "closed form":
            out += self._cautions_of_draws()
        return out

    def _cautions_of_draws(self) -> list[str]:
        from bayesgen.inference import diagnostics

        draws = self.posterior_
        stats = draws[SAMPLE_STATS].to_dataset() if SAMPLE_STATS in draws else None
        if self.inference_ not in ("nuts", "gibbs") or stats is None:
            return [f"the posterior is an approximation ({self.inference_})"]
        return diagnostics.diagnose(draws[POSTERIOR].to_dataset(), stats).complaints()

    _html_repr = with_summary


_ROUTES = {
    "nuts": "sampled by NUTS",
    "gibbs": "sampled by Gibbs",
    "laplace": "Laplace's approximation",
    "advi": "a variational approximation",
    "pathfinder": "a Pathfinder approximation",
}


def _rows(n: float) -> str:
    return f"{n:g} row" + ("" if n == 1 else "s")


def _listed(texts: list[str]) -> str:
    more = len(texts) - SHOWN
    return ", ".join(texts[:SHOWN]) + (f" and {more} more" if more > 0 else "")
