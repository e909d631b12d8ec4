"""Progress bars on stderr, for long work that reads rows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def row_progress(
    what: str, total: float | None, shown: bool = True
) -> Iterator[Callable[[float, int], None]]:
    """Show a bar that is removed at the end; call what it yields with (done, rows so far).

    Parameters
    ----------
    total : float or None
        In the unit of `done`; None if nobody knows.
    shown : bool
        False: no bar. Where stderr is no terminal there is none either.
    """
    if shown:
        from rich.console import Console

        console = Console(stderr=True, highlight=False)
        shown = console.is_terminal
    if not shown:
        yield lambda done, rows: None
        return
    from rich import progress as bars

    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(bar_width=32),
        bars.TextColumn("[dim]{task.fields[rows]:,} rows"),
        bars.TimeRemainingColumn(compact=True) if total else bars.TimeElapsedColumn(),
    )
    with bars.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=total or None, rows=0)
        yield lambda done, rows: bar.update(task, completed=done, rows=rows)
