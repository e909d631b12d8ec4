"""`report`: what a classifier is worth on held-out rows, as one page."""

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from bayesgen.checks.validate import Validation
from bayesgen.encoding.literals import listed
from bayesgen.io.output import check_target, replacing
from bayesgen.reporting import criticism, doubts, model, page, provenance, scores
from bayesgen.reporting.held_out import HeldOut
from bayesgen.reporting.parts import Section, count

Format = Literal["html", "md", "json"]
_ENDINGS = {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md", ".json": "json"}


@dataclass(frozen=True)
class Report:
    """What `report` returns; notebooks show the page.

    Attributes
    ----------
    title, subtitle, footer : str
    sections : tuple of Section
        Sentences, tables, figures and numbers, in the order of the page.
    tiles : list of Tile
        The numbers of the first screen.
    """

    title: str
    subtitle: str
    footer: str
    sections: tuple[Section, ...]
    tiles: list[scores.Tile]

    def to_html(self) -> str:
        """One self-contained page."""
        return page.html(self)

    def to_markdown(self) -> str:
        """Sentences and tables."""
        return page.markdown(self)

    def to_json(self) -> str:
        """All numbers."""
        return page.as_json(self)

    def save(self, path: str | os.PathLike[str], format: Format | None = None) -> Path:
        """Write it whole or not at all, as its name ends: .html, .md or .json."""
        target = Path(path)
        how = format_of(target, format)
        make = {"html": self.to_html, "md": self.to_markdown, "json": self.to_json}[how]
        content = make()
        with replacing(target) as temporary:
            temporary.write_text(content, encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        from html import escape

        frame = 'style="width:100%;height:40rem;border:0" title="report"'
        return f'<iframe {frame} srcdoc="{escape(self.to_html(), quote=True)}"></iframe>'

    def __repr__(self) -> str:
        return "\n".join([self.title, *self.sections[0].text])


def format_of(path: str | os.PathLike[str], format: str | None) -> Format:
    """The format asked for, or that of the name's ending."""
    found = _ENDINGS.get(Path(path).suffix.lower()) if format is None else format
    if found not in ("html", "md", "json"):
        raise ValueError(
            f"the format of a report is html, md or json, not {format!r}"
            if format is not None
            else f"{Path(path).name!r} does not end in .html, .md or .json, and no format is named"
        )
    return found  # type: ignore[return-value]


def report(
    clf: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    training: Any = None,
    validation: Validation | None = None,
    format: Format | None = None,
    title: str | None = None,
    prob: float | None = None,
    max_rows: int | None = None,
    random_state: int = 0,
) -> Report:
    """What a fitted classifier is worth on held-out rows, as one page that can be passed on.

    Verdict, full predictive against plug-ins, calibration and the least certain rows with their
    reasons; then what was fitted, the influence of the prior, other models by leave-one-out, the
    exponents of a pool, relevance and contributions of the features, predictive checks, dependence
    within classes, typicality, sampling, and how the report was made.

    Parameters
    ----------
    clf : fitted classifier of this package
    X, y : (N, D), (N,)
        Labelled rows that it was not fitted to.
    path : str or path, optional
        Where it goes: .html, .md or .json. Written whole or not at all.
    training : (X, y) or (X, y, sample_weight), optional
        The rows of the fit, for leave-one-out of this and other models, and for typicality.
    validation : Validation, optional
        Of `bayesgen.validate`, whose result becomes a section.
    format : {"html", "md", "json"}, optional
        Default: by the ending of `path`.
    title : str, optional
    prob : float in (0, 1), optional
        Of all intervals; default ``az.rcParams["stats.ci_prob"]``.
    max_rows : int, optional
        Rows looked at, drawn at random from more. Default: 20 000, and 2 000 where predictions are
        averages over draws. Costly parts look at fewer; each says at how many.
    random_state : int
        Of whatever is drawn.

    Returns
    -------
    Report
        ``save(path)``, ``to_html()``, ``to_markdown()``, ``to_json()``.

    Raises
    ------
    ImportError
        Without matplotlib and jinja2: ``pip install "bayesgen[report]"``.
    ValueError, TypeError
        If the rows do not fit the classifier.

    Notes
    -----
    The page has no script and fetches nothing; pictures are inline SVG, with descriptions for who
    does not see them. It is the same for 10^3 and 10^6 rows, and at most 2 MB.

    Examples
    --------
    >>> import bayesgen as bg
    >>> X, y = bg.datasets.load_penguins()
    >>> test = X.index % 3 == 2
    >>> clf = bg.MixedNB().fit(X[~test], y[~test])
    >>> found = bg.report(clf, X[test], y[test])
    >>> [section.key for section in found.sections][:4]
    ['verdict', 'predictives', 'calibration', 'doubts']
    """
    start = perf_counter()
    if path is not None:
        format_of(path, format)
        check_target(path)
    held = HeldOut.of(clf, X, y, training, prob, max_rows, random_state)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sections, tiles, notes = _sections(held, validation)
    notes += dict.fromkeys(f"Warning: {w.message}." for w in caught)
    sections.append(provenance.reproduction(held, notes, perf_counter() - start))
    found = Report(
        title or f"{type(clf).__name__} on {count(held.n_given, held.what)}",
        f"{len(held.labels)} class{'' if len(held.labels) == 1 else 'es'}: "
        + listed(held.labels, 12, " and "),
        "Made by bayesgen. Class probabilities are posterior predictive: the parameters are "
        "integrated out.",
        tuple(sections),
        tiles,
    )
    if path is not None:
        found.save(path, format)
    return found


def _sections(
    held: HeldOut, validation: Validation | None
) -> tuple[list[Section], list[scores.Tile], list[str]]:
    """The sections in order, the tiles of the first, and what was left out and why."""
    predictives, compared = scores.predictives(held)
    verdict, tiles = scores.verdict(held, compared)
    sections = [verdict, predictives, scores.calibration(held), doubts.least_certain(held)]
    # what to call it where it is left out, "" if nobody misses it; the section
    optional: list[tuple[str, Callable[[], Section]]] = [
        ("", lambda: scores.confusions(held)),
        ("", lambda: model.pool(held)),
        ("", lambda: model.fitted(held)),
        ("" if held.is_pool else "Influence of the prior", lambda: model.influence(held)),
        ("Other models", lambda: model.comparison(held)),
        ("" if held.is_pool else "Relevance of the features", lambda: model.relevance(held)),
        ("Contributions of the features", lambda: doubts.contributions(held)),
        ("Predictive checks", lambda: criticism.predictive_checks(held)),
        ("Dependence within classes", lambda: criticism.dependence(held)),
        ("Typicality", lambda: criticism.typicality(held)),
        ("" if held.is_pool else "Sampling", lambda: model.sampling(held, validation)),
    ]
    left_out = []
    for name, make in optional:
        try:
            sections.append(make())
        except (ValueError, NotImplementedError, TypeError) as reason:
            if name:
                left_out.append(f"{name} left out: {reason}.")
    return sections, tiles, left_out
