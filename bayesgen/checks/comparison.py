"""One table for all that is computed twice: closed form, draws, graph.

A line is one number by two routes: its stage, variable and place (``check``); ``value`` by
``source`` and ``expected`` by ``against``; their ``difference``, and what is ``allowed``.

- Of draws the difference is a z-score, and what all of them together exceed with a stated
  probability is allowed (Bonferroni).
- Numbers without draws differ by rounding: the difference is relative to the magnitudes that were
  added up, and some digits are allowed. Such a line is an identity; it has the worst of all places.

A quantity that cannot be compared has no difference and a ``note`` that says why.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm

from bayesgen.checks.agreement import Scores
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import pandas as pd

PARAMETERS, DENSITIES, PROBABILITIES = "parameters", "densities", "probabilities"
INTERVALS, ESTIMATES, EXPLANATIONS = "intervals", "plug-in estimates", "explanations"
SIMULATED, LEFT_OUT, MERGED = "simulated rows", "leave-one-out", "merged statistics"
# each is computed from those before it: the first that is wrong is where to look
STAGES = [PARAMETERS, DENSITIES, PROBABILITIES, INTERVALS, ESTIMATES]
STAGES += [EXPLANATIONS, SIMULATED, LEFT_OUT, MERGED]
NUTS, INDEPENDENT = "NUTS", "independent draws"
IDENTITY = "identity"  # statistic of a number without draws
DIGITS = 1e-8  # of an identity
_TEXT = ("stage", "variable", "check", "statistic", "source", "against", "unit", "note")
_NUMBERS = ("value", "expected", "difference", "allowed", "error", "ess", "r_hat")


def drawn(
    stage: str,
    variable: str,
    labels: list[str],
    scores: Mapping[str, Scores],
    source: str,
    against: str = "closed form",
    unit: str = "sd",
    r_hat: Array | float = np.nan,
) -> "pd.DataFrame":
    """Return a line for each of K quantities and each statistic; those that are NaN are left out.

    `unit` is that of the error of a mean.
    """
    import pandas as pd

    words = {"stage": stage, "variable": variable, "source": source, "against": against}
    lines = [
        pd.DataFrame({"check": labels, "statistic": statistic, "r_hat": r_hat, **one._asdict()})
        for statistic, one in scores.items()
    ]
    return pd.concat(lines).dropna(subset="difference").assign(**words, unit=unit)


def identity(
    stage: str,
    variable: str,
    routes: Mapping[str, Any],
    size: Any = None,
    place: Callable[..., str] = lambda *_: "",
    digits: float = DIGITS,
    note: str = "",
) -> "pd.DataFrame":
    """Return the line of an array that two routes {name: values} give, at its worst place.

    Parameters
    ----------
    size : array, optional
        Magnitudes of the terms behind the values, whose rounding is no error. Default: the values.
    place : callable
        Indices into the array to words.
    note : str
        What is wrong if they differ.
    """
    import pandas as pd

    (source, value), (against, expected) = routes.items()
    value, expected = np.broadcast_arrays(np.asarray(value, np.float64), expected)
    with np.errstate(invalid="ignore"):
        relative = np.abs(value - expected) / (1 + np.abs(expected if size is None else size))
    # the same infinity is no difference; one infinity is
    difference = np.where(value == expected, 0.0, np.nan_to_num(relative, nan=np.inf))
    worst = np.unravel_index(difference.argmax(), difference.shape)
    line = {"stage": stage, "variable": variable, "check": place(*worst), "statistic": IDENTITY}
    line |= {"source": source, "against": against, "note": note}
    numbers = {"value": value, "expected": expected, "difference": difference}
    return pd.DataFrame([line | {k: v[worst] for k, v in numbers.items()} | {"allowed": digits}])


def skipped(stage: str, variable: str, why: object) -> "pd.DataFrame":
    """Return the line of a quantity that could not be compared."""
    import pandas as pd

    return pd.DataFrame([{"stage": stage, "variable": variable, "note": str(why)}])


def table(lines: Iterable["pd.DataFrame"], false_alarm: float) -> "pd.DataFrame":
    """Join lines, and allow what right draws exceed anywhere with probability `false_alarm`."""
    import pandas as pd

    joined = pd.concat(lines, ignore_index=True).reindex(columns=[*_TEXT, *_NUMBERS])
    joined = joined.astype(dict.fromkeys(_TEXT, object)).fillna(dict.fromkeys(_TEXT, ""))
    by_draws = of_draws(joined)
    joined.loc[by_draws, "allowed"] = norm.isf(false_alarm / (2 * max(1, by_draws.sum())))
    return joined


def of_draws(lines: "pd.DataFrame") -> "pd.Series":
    """Return which lines compare draws."""
    return lines["difference"].notna() & (lines["statistic"] != IDENTITY)


def failed(lines: "pd.DataFrame") -> "pd.DataFrame":
    """Return the lines that differ by more than is allowed."""
    return lines[lines["difference"].abs() > lines["allowed"]]


def place(line: Any) -> str:
    """Return what a line of `table` is of: variable and element."""
    if line.variable in line.check:
        return str(line.check)
    return f"{line.variable} of {line.check}" if line.check else str(line.variable)


def sentence(line: Any) -> str:
    """Return what a line of `table` says, with both numbers."""
    if line.statistic != IDENTITY:
        return (
            f"{line.statistic} of {place(line)}: {line.value:.6g} by {line.source}, "
            f"{line.expected:.6g} by {line.against} (|z| = {abs(line.difference):.1f})"
        )
    routes = f"{line.value:.10g} by {line.source}, {line.expected:.10g} by {line.against}"
    return ": ".join(filter(None, [place(line), routes, line.note]))
