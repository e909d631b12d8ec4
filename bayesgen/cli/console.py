"""What the commands say: notes and errors on stderr, tables on stdout, signs of life."""

import functools
import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer

from bayesgen.encoding.literals import count, listed, one_line, shortened, without_controls
from bayesgen.encoding.unknown import UnknownCategoryWarning
from bayesgen.errors import Facts, placed
from bayesgen.io.formats import Reading, TableError

if TYPE_CHECKING:
    from rich.status import Status

    from bayesgen.numerics.special import Array


# ------------------------------------------------------------------------------------------------
# Arguments and options that several commands have.

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model that fit has written.")]
Target = Annotated[
    str, typer.Option("--target", "-t", metavar="COLUMN", help="Column with the labels.")
]
Texts = Annotated[
    str | None,
    typer.Option("--text", metavar="COLUMN", help="Column with the texts (language models)."),
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group", metavar="COLUMN", help="Rows with the same cell are left out together."
    ),
]
Costs = Annotated[
    list[str] | None,
    typer.Option(
        "--cost",
        metavar="TRUE,DECISION=X",
        help="What a decision costs where TRUE is the label; repeatable. Other mistakes cost 1.",
    ),
]
Reject = Annotated[
    float | None,
    typer.Option("--reject", min=0, metavar="X", help="Cost of a row that is left undecided."),
]


_MARKS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|", "blank": " ", "\\t": "\t"}


def _csv(flags: str, metavar: str | None, text: str):
    panel = "How CSV files are read (default: as they look)"
    return typer.Option(flags, metavar=metavar, help=text, rich_help_panel=panel)


def _reading(
    delimiter: Annotated[
        str | None,
        _csv("--delimiter", "MARK", "comma, semicolon, tab, bar, blank, or another character."),
    ] = None,
    decimal: Annotated[
        str | None, _csv("--decimal", "MARK", "Decimal mark of numbers: '.' or ','.")
    ] = None,
    header: Annotated[
        bool | None,
        _csv(
            "--header/--no-header",
            None,
            "Whether the first row names the columns; else they are c1, c2 and so on.",
        ),
    ] = None,
    comment: Annotated[
        str | None, _csv("--comment", "CHARACTER", "Pass over lines that begin with it.")
    ] = None,
    encoding: Annotated[
        str | None,
        _csv("--encoding", "NAME", "Such as cp1252; default: UTF-8, or UTF-16 by its mark."),
    ] = None,
    missing: Annotated[
        list[str] | None,
        _csv("--missing", "CELL", "A cell that stands for a missing one, as -999; repeatable."),
    ] = None,
    present: Annotated[
        list[str] | None,
        _csv("--not-missing", "CELL", "A text that does not, such as NA for Namibia; repeatable."),
    ] = None,
) -> Reading:
    """Return what the options say of a file."""
    delimiter = _MARKS.get(delimiter or "", delimiter)
    decimal = _MARKS.get(decimal or "", decimal)
    if delimiter is not None and len(delimiter) != 1:
        raise UserError(f"--delimiter {delimiter}: give one character, comma, tab or blank")
    if decimal not in (None, ".", ","):
        raise UserError(f"--decimal {decimal}: give . or ,")
    if decimal is not None and decimal == delimiter:
        raise UserError(f"--delimiter and --decimal are both {decimal}")
    if comment is not None and len(comment) != 1:
        raise UserError(f"--comment {comment}: give one character")
    return Reading(
        delimiter, decimal, header, comment, encoding,
        missing=tuple(missing or ()), present=tuple(present or ()),
    )  # fmt: skip


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of how files are read to a command, which gets them as its `reading`."""
    options = inspect.signature(_reading).parameters
    signature = inspect.signature(command)

    @functools.wraps(command)
    def run(**arguments) -> None:
        said = {name: arguments.pop(name) for name in options}
        command(**arguments, reading=_reading(**said))

    parameters = [p for name, p in signature.parameters.items() if name != "reading"]
    parameters = [p.replace(kind=p.KEYWORD_ONLY) for p in (*parameters, *options.values())]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


_LONGEST = 2000  # characters of a note or an error
_WIDEST = 100  # letters of a line of a paragraph


type Advice = Callable[[Facts], str | None]


class UserError(Exception):
    """What the user can put right; shown as one line, with exit code 2."""


@contextmanager
def blamed_on(
    what: object = "",
    errors: tuple[type[Exception], ...] = (ValueError, TypeError, OSError),
    rows: "Sequence[int] | Array" = (),
    advice: Advice | None = None,
) -> Iterator[None]:
    """Raise errors about the user's input as a `UserError`.

    Parameters
    ----------
    what : path or str
        What they are about; "" where they say it themselves.
    rows : sequence of int
        The numbers that rows have in the file, where the library counts them from 0.
    advice : callable, optional
        What to do about an error, in place of the library's advice about its own arguments.
    """
    try:
        with numbered_warnings(rows), placed("", rows if len(rows) else None):
            yield
    except TableError:  # which names its file
        raise
    except errors as mistake:
        text = told(mistake, advice)
        if isinstance(mistake, OSError) and what:
            text = mistake.strerror or text
        raise UserError(f"{what}: {text}" if what else text) from mistake


@contextmanager
def numbered_warnings(rows: "Sequence[int] | Array") -> Iterator[None]:
    """Give warnings of unknown categories the numbers that rows have in the file."""
    if not len(rows):
        yield
        return
    with warnings.catch_warnings():
        show = warnings.showwarning

        def show_numbered(message: Warning | str, *place, **options) -> None:
            if isinstance(message, UnknownCategoryWarning):
                message = message.within("", rows)
            show(message, *place, **options)

        warnings.showwarning = show_numbered
        yield


def told(message: Exception, advice: Advice | None = None) -> str:
    """Return the text of an error or a warning without advice in terms of the library."""
    if isinstance(message, Facts):
        return message.told(message.row, advice and advice(message))
    return str(message)


def class_counts(classes: "Array", counts: "Array", most: int = 12) -> str:
    """Return a text such as ``344 rows: Adelie 152, Chinstrap 68, Gentoo 124``."""
    labels = map(one_line, classes.tolist())
    pairs = [f"{label} {n:.0f}" for label, n in zip(labels, counts, strict=True)]
    return f"{count(int(sum(counts)), 'row')}: {listed(pairs, most)}"


# ------------------------------------------------------------------------------- two streams
#
# No label, name or cell of a file steers the terminal.


def show(*lines: str) -> None:
    """Print lines on stdout, as they are."""
    typer.echo(without_controls("\n".join(lines)))


def tell(paragraph: str, **style: bool) -> None:
    """Print a paragraph on stdout, no wider than the terminal."""
    width = min(_WIDEST, get_terminal_size().columns)
    text = fill(without_controls(paragraph), width, break_on_hyphens=False)
    typer.echo(typer.style(text, **style))


def note(text: str) -> None:
    """Print a line about something that was done and was not asked for."""
    _say(typer.style("note:", dim=True), text)


def error(text: str) -> None:
    """Print a line about why there is no result."""
    _say(typer.style("error:", bold=True, fg="red"), text)


def _say(label: str, text: str) -> None:
    line = " ".join(shortened(text, _LONGEST).split())
    typer.echo(f"{label} {without_controls(line)}", err=True)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Show the library's warnings as notes, without a place in the source.

    Unknown categories are told once at the end, of all rows of the file.
    """
    unknown: list[UnknownCategoryWarning] = []

    def show(message, *place, **options) -> None:
        if isinstance(message, UnknownCategoryWarning):
            unknown.append(message)
        else:
            note(told(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", UnknownCategoryWarning)
        warnings.showwarning = show
        warnings.filterwarnings("ignore", "look at th")  # of columns: `Plan.look` says it better
        yield
        if unknown:
            note(told(UnknownCategoryWarning.of_parts(unknown)))


# ------------------------------------------------------------------------------ signs of life


def busy(what: str) -> "Status":
    """Return a context with a sign of life on stderr, for work without known length."""
    from rich.console import Console

    return Console(stderr=True).status(f"[dim]{what} ...")


def help_text(function: Callable[..., None]) -> str:
    """Return the docstring as help text, with examples set line by line."""
    text, _, examples = inspect.cleandoc(function.__doc__ or "").partition(
        "\n\nExamples\n--------\n"
    )
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    lines = [f"  {line}" for line in examples.splitlines()]
    return "\n".join(["\n\n".join(paragraphs), "", "\b", "[bold]Examples[/bold]", *lines])
