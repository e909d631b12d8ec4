"""`report`: what a classifier is worth on held-out rows, as one page."""

import json
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

from bayesgen.checks.validate import Validation
from bayesgen.encoding.literals import listed, without_controls
from bayesgen.encoding.unknown import UnknownCategoryWarning
from bayesgen.io.progress import row_progress
from bayesgen.io.storage import check_target, replacing
from bayesgen.posterior.fitted import through_pipelines
from bayesgen.reporting import decisions, model, rows
from bayesgen.reporting.held_out import HeldOut
from bayesgen.reporting.parts import TITLES, Section, Table, count, share
from bayesgen.version import __version__

# ------------------------------------------------------------------------------------------------
# A report as a page of HTML, as Markdown and as JSON.


@cache
def _template():
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise ImportError('a report needs jinja2: pip install "bayesgen[report]"') from None
    environment = Environment(
        loader=PackageLoader("bayesgen.reporting"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    return environment.get_template("page.html.j2")


def _inline(text: str) -> str:
    """Return text in which nothing is markup."""
    for sign in "\\`*_[]|#":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("<", "&lt;").replace(">", "&gt;")


def _as_markdown(table: Table) -> str:
    rule = ["---"] * table.text + ["---:"] * (len(table.head) - table.text)
    lines = [[_inline(name) for name in table.head], rule]
    lines += [[_inline(cell) for cell in row] for row in table.rows]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{_inline(table.caption)}\n\n{body}"


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
    notes : list of str
        Which sections were left out and why, and warnings.
    """

    title: str
    subtitle: str
    footer: str
    sections: tuple[Section, ...]
    tiles: list[rows.Tile]
    notes: list[str]

    def to_html(self) -> str:
        """Return one self-contained page: no script, nothing is fetched."""
        text: str = _template().render(report=self)
        text = without_controls(text)  # of labels, names and cells
        return "\n".join(line for line in text.splitlines() if line.strip()) + "\n"

    def to_markdown(self) -> str:
        """Return sentences and tables; of figures their descriptions."""
        blocks = [f"# {_inline(self.title)}", _inline(self.subtitle)]
        for section in self.sections:
            blocks.append(f"## {_inline(section.title)}")
            blocks += [_inline(sentence) for sentence in section.text]
            blocks += [_as_markdown(table) for table in section.tables]
            blocks += [f"*Figure: {_inline(figure.alt)}*" for figure in section.figures]
            blocks += [f"> {_inline(note)}" for note in section.notes]
        blocks += [_inline(note) for note in [*self.notes, self.footer]]
        return without_controls("\n\n".join(blocks)) + "\n"

    def to_json(self) -> str:
        """Return all numbers and sentences; NaN and infinities are null."""
        record = {
            "title": self.title,
            "subtitle": self.subtitle,
            "sections": {section.key: section.record for section in self.sections},
            "notes": self.notes,
            "footer": self.footer,
        }
        text = json.dumps(record, default=lambda value: getattr(value, "tolist", value.__str__)())
        finite = json.loads(text, parse_constant=lambda name: None)
        return json.dumps(finite, ensure_ascii=False, indent=1) + "\n"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write it whole or not at all, as its name ends: .html, .md or .json."""
        target = Path(path)
        content = {"html": self.to_html, "md": self.to_markdown, "json": self.to_json}
        text = content[_format_of(target)]()
        with replacing(target) as temporary:
            temporary.write_text(text, encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        from html import escape

        frame = 'style="width:100%;height:40rem;border:0" title="report"'
        return f'<iframe {frame} srcdoc="{escape(self.to_html(), quote=True)}"></iframe>'

    def __repr__(self) -> str:
        return "\n".join([self.title, *self.sections[0].text])


def _format_of(path: str | os.PathLike[str]) -> str:
    """Return the format that the name's ending stands for."""
    if ending := _ENDINGS.get(Path(path).suffix.lower()):
        return ending
    raise ValueError(f"{Path(path).name!r} does not end in .html, .md or .json")


def check_report(path: str | os.PathLike[str]) -> None:
    """Refuse, before any work, a place or an ending of no report."""
    _format_of(path)
    check_target(path)


@through_pipelines
def report(
    clf: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    training: Any = None,
    validation: Validation | None = None,
    cost: Any = None,
    title: str | None = None,
    prob: float | None = None,
    max_rows: int | None = None,
    random_state: int = 0,
    progressbar: bool = True,
) -> Report:
    """Write a page on the quality of a fitted classifier on held-out rows.

    The page has a verdict, the full predictive against plug-ins, calibration and the least certain
    rows with their reasons. For two classes it has AUC, sensitivity, specificity and predictive
    values by threshold. Costs of decisions, confusions, the columns and priors of the model, rows
    unlike the training rows, and sampling follow. The last section says what the classifier should
    not be used for.

    Parameters
    ----------
    clf : fitted classifier of this package
    X, y : (N, D), (N,)
        Labelled rows that it was not fitted to.
    path : str or path, optional
        The file to write: .html, .md or .json. An error leaves no partial file.
    training : (X, y) or (X, y, sample_weight), optional
        The rows of the fit, for typicality, if the classifier does not hold them.
    validation : Validation, optional
        The result of `bayesgen.validate`. It becomes a section.
    cost : array (class, decision), pandas.DataFrame, or {class: {decision: cost}}, optional
        Costs of decisions, as in `decide`. The page states what the decisions of lowest expected
        cost would have cost on these rows. With two classes costs choose the threshold, else 0.5.
    title : str, optional
    prob : float in (0, 1), optional
        Probability of all intervals; default ``az.rcParams["stats.ci_prob"]``.
    max_rows : int, optional
        Largest number of rows to use; more rows are sampled at random. Default: 20 000, or 2 000 if
        predictions are averages over draws. Costly sections use fewer rows and state the number.
    random_state : int
        Seed of everything that is drawn.
    progressbar : bool
        Show progress on stderr if it is a terminal.

    Returns
    -------
    Report
        It has ``save(path)``, ``to_html()``, ``to_markdown()`` and ``to_json()``.

    Raises
    ------
    ImportError
        If matplotlib or jinja2 is not installed: ``pip install "bayesgen[report]"``.
    ValueError, TypeError
        If the rows do not fit the classifier.

    Notes
    -----
    The page is one file without scripts or links to other files. Pictures are SVG inside the page,
    with descriptions for screen readers. The page has at most 2 MB, also for 10^6 rows.

    Examples
    --------
    >>> import bayesgen as bg
    >>> X, y = bg.datasets.load_penguins()
    >>> test = X.index % 3 == 2
    >>> clf = bg.MixedNB().fit(X[~test], y[~test])
    >>> page = bg.report(clf, X[test], y[test], progressbar=False)
    >>> [section.key for section in page.sections][:4]
    ['verdict', 'predictives', 'calibration', 'doubts']
    """
    if path is not None:
        check_report(path)
    held = HeldOut.of(clf, X, y, training, prob, max_rows, random_state, cost)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first, tiles = rows.verdict(held)
        sections, notes = _sections(held, validation, progressbar)
    messages = [w.message for w in caught]
    unknown = [m for m in messages if isinstance(m, UnknownCategoryWarning)]
    notes += dict.fromkeys(f"Warning: {m}." for m in messages if m not in unknown)
    names = [held.name(i) for i in range(held.n)]  # rows are named as the tables name them
    # the first is of all rows, the next are of some of them; a page's reader has no arguments
    notes += [f"Warning: {m.within('', names).told(None, None)}." for m in unknown[:1]]
    if prob is None:
        first.notes.append(
            f"Intervals hold {share(held.prob)}, the default of ArviZ; prob= sets another width."
        )
    kind = "training row" if held.is_training else "held-out row"
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    page = Report(
        title or f"{type(clf).__name__} on {count(held.n_given, kind)}",
        f"{len(held.labels)} class{'' if len(held.labels) == 1 else 'es'}: "
        + listed(held.labels, 12, " and "),
        f"Made by bayesgen {__version__} on {made}, seed {held.seed}. Class probabilities are "
        "posterior predictive: the parameters are integrated out.",
        (first, *sections),
        tiles,
        notes,
    )
    if path is not None:
        page.save(path)
    return page


def _sections(
    held: HeldOut, validation: Validation | None, progressbar: bool
) -> tuple[list[Section], list[str]]:
    """Return the sections after the verdict, and which were left out and why."""
    makers: dict[str, Callable[[HeldOut], Section]] = {
        "predictives": rows.predictives,
        "calibration": rows.calibration,
        "doubts": rows.least_certain,
        "decisions": decisions.decisions,
        "confusions": rows.confusions,
        "model": model.fitted,
        "typicality": model.typicality,
        "sampling": partial(model.sampling, validation=validation),
        "limits": model.limits,
    }
    sections, left_out = [], []
    with row_progress("writing the report", len(makers), progressbar) as advance:
        for i, (key, make) in enumerate(makers.items()):
            advance(i, held.n)
            try:
                sections.append(make(held))
            except (ValueError, NotImplementedError, TypeError) as reason:
                left_out.append(f"{TITLES[key]} left out: {reason}.")
    return sections, left_out
