"""The command line ``bayesgen``: one module a command, and nothing heavy before it is needed.

A user's mistake is one line on stderr and exit code 2; an interrupt is exit code 130. Anything
else that goes wrong is a defect and keeps its traceback.
"""

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from bayesgen.cli import compare, demo, fit, predict, report, validate
from bayesgen.cli.console import UserError, error, help_text, note, warnings_as_notes
from bayesgen.io.formats import TableError

__all__ = ["app", "main"]

# typer brings click along in some releases and depends on it in others: its base of all usage
# errors is reached from the one class that every release exports
_UsageError: Any = typer.BadParameter.__mro__[1]
_INTERRUPTED = 130


class _Group(TyperGroup):
    """The commands, with every user error as one line and exit code 2."""

    def main(self, *args, **options):
        sys.exit(self._exit_code(*args, **options | {"standalone_mode": False}))

    def _exit_code(self, *args, **options):
        try:
            with warnings_as_notes():
                return super().main(*args, **options)
        except TableError as mistake:
            error(mistake.told(mistake.row, mistake.option))
        except UserError as mistake:
            error(str(mistake))
        except _UsageError as mistake:
            error(mistake.format_message())
        except (KeyboardInterrupt, typer.Abort):
            note("interrupted")
            return _INTERRUPTED
        return 2


app = typer.Typer(
    cls=_Group,
    name="bayesgen",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
commands: tuple[Callable[..., None], ...] = (
    demo.demo,
    fit.fit,
    predict.predict,
    compare.compare,
    report.report,
    validate.validate,
)
for command in commands:
    app.command(help=help_text(command))(command)


def _version(value: bool) -> None:
    if value:
        from bayesgen.version import __version__

        typer.echo(f"bayesgen {__version__}")
        raise typer.Exit


def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print it and leave."),
    ] = False,
) -> None:
    """Bayesian generative classifiers with the parameters integrated out.

    Learn a classifier from a CSV or Parquet table, predict class probabilities for new rows by the
    exact posterior predictive, and compare it with the usual plug-in estimates.

    Exit codes: 0, done; 1, `validate` does not agree; 2, a mistake in what was given, told in one
    line on stderr; 130, interrupted; 141, the reader of a pipe is gone; 143, terminated.
    `bayesgen --install-completion` teaches the shell to complete commands and options by the tab
    key.

    Examples
    --------
    bayesgen demo
    bayesgen fit penguins.csv --target species -o penguins.nc
    bayesgen predict penguins.nc new.csv -o out.csv
    bayesgen predict penguins.nc new.csv -o out.csv --explain 3
    bayesgen compare penguins.nc held_out.csv --target species
    bayesgen report penguins.nc held_out.csv --target species -o report.html
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.callback(invoke_without_command=True, help=help_text(_root))(_root)


def main() -> None:
    """Entry point of the console script."""
    import signal

    if hasattr(signal, "SIGPIPE"):  # `bayesgen ... | head` has read enough: no error
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by every `finally`: no file is left
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without some sign shows "?" for it
    app(prog_name="bayesgen")
