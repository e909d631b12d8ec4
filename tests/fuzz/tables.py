"""CSV and Parquet files through the command line, called in this process."""

import io
import sys
import unicodedata
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import cache

from tests.fuzz.judge import DefectError, RefusedError, check_probabilities
from tests.fuzz.model_files import changed_bytes

CELLS = ("", "NA", "1", "0", "-1", "1e308", "1e-320", "nan", "inf", "TRUE", "x", "=1+1", "\x1b[2J")
CELLS += ("9007199254740993", "é\u202e", '"', "a,b", "x" * 5000, "\x00", "1_000", " 2 ", "٣")
CELLS += ("=cmd|' /C calc'!A0", "@SUM(1)", "2024-02-30", "2024-02-29T12:00:00Z", "false", "+1")
CELLS += ('"a\nb"', '"a""b"', "\x9b2J", "\x07", "\u2028", "\ud7ff", "1,5", "0x1F", "-0", "1e400")
NAMES = ("a", "b", "a", "", " a", "=1+1", "\x1b[2J", '"a,b"', "é\u202e", "prediction", "x" * 3000)
MODELS = (
    *("mixed", "mixed", "gaussian", "categorical", "bernoulli", "poisson", "lda", "qda"),
    *("multinomial", "forest", "markov", "auto"),
)


def table_text(rng):
    """A small CSV file: of numbers, categories and texts, in places spoiled."""
    n, names = int(rng.integers(0, 30)), [*"abcd"[: rng.integers(1, 5)], "y"]
    columns = [rng.choice(CELLS, 3).tolist() if rng.random() < 0.4 else None for _ in names]
    if rng.random() < 0.15:
        names[rng.integers(len(names) - 1)] = NAMES[rng.integers(len(NAMES))]
    labels = ["p", "q"] if rng.random() < 0.9 else rng.choice(CELLS, 2).tolist()
    separator = "," if rng.random() < 0.95 else str(rng.choice(["\t", ";", "|"]))
    lines = [separator.join(names)]
    for _ in range(n):
        cells = [f"{rng.normal():.3f}" if c is None else str(rng.choice(c)) for c in columns]
        cells[-1] = str(rng.choice(labels))
        if rng.random() < 0.1:
            cells[rng.integers(len(cells))] = CELLS[rng.integers(len(CELLS))]
        if rng.random() < 0.005:  # a ragged row
            cells = cells[: rng.integers(len(cells) + 1)] * int(rng.integers(1, 3))
        lines.append(separator.join(cells))
    if n and rng.random() < 0.005:
        lines[rng.integers(n) + 1] = "x" * 5_000_000 + ",1,p"
    text = str(rng.choice(["\n", "\n", "\n", "\r\n", "\r"])).join(lines)
    raw = text.encode(str(rng.choice(["utf-8"] * 8 + ["utf-8-sig", "utf-16"])))
    return changed_bytes(rng, raw) if 4 < len(raw) < 1e6 and rng.random() < 0.3 else raw


@cache
def command_line():
    """The command that `app` makes anew for every call."""
    import typer

    from bayesgen.cli import app

    return typer.main.get_command(app)


def command(*arguments):
    """Run a command in this process; its exit code, 0 or 2, and in that case one short line."""
    errors, said = io.StringIO(), io.StringIO()
    code = 0
    with redirect_stderr(errors), redirect_stdout(said):
        try:
            command_line().main([str(a) for a in arguments], prog_name="bayesgen")
        except SystemExit as end:
            code = end.code or 0
    if code in {130, 143}:  # a signal
        sys.exit(code)
    text = said.getvalue() + errors.getvalue()
    steering = {c for c in text if unicodedata.category(c)[0] == "C"} - {"\n"}
    if steering and "--json" not in arguments:
        raise DefectError(f"the terminal gets {steering}")
    if len(max(text.splitlines(), key=len, default="")) > 2100:
        raise DefectError(f"a line has {max(map(len, text.splitlines()))} characters")
    mistakes = [line for line in errors.getvalue().splitlines() if not line.startswith("note: ")]
    if code == 0 and not mistakes:
        return
    if code != 2 or len(mistakes) != 1:
        raise DefectError(f"exit code {code}, {mistakes[:3]}"[:1000])
    raise RefusedError(mistakes[0])


def fit_and_predict(rng, path, folder):
    """Learn from a table and classify its rows, by a model at random; ask another command too."""
    import pandas as pd

    kind, model = str(rng.choice(MODELS)), folder / "m.nc"
    text = ("--text", "a") if kind == "markov" else ()
    more = ("--drop-incomplete",) if rng.random() < 0.5 and kind != "markov" else ()
    command("fit", path, "-t", "y", "-o", model, "--model", kind, *text, *more)
    what = rng.random()
    with suppress(RefusedError):
        if what < 0.1:
            command("predict", model, path, "-o", folder / "why.csv", "--explain", 2, *text)
        elif what < 0.2:
            command("compare", model, path, "-t", "y", *text)
        elif what < 0.22:
            output = folder / "report.html"
            command("report", model, path, "-t", "y", "-o", output, "--max-rows", 5, *text)
    interval = ("--interval", 0.9) if rng.random() < 0.1 else ()
    output = folder / str(rng.choice(["out.csv", "out.parquet"]))
    command("predict", model, path, "-o", output, *text, *interval)
    read = pd.read_csv if output.suffix == ".csv" else pd.read_parquet
    p = read(output).filter(regex="^(?!prediction|low_|high_)").to_numpy(float)
    check_probabilities(p, p.shape[1])
    if len(p) and not p.shape[1]:
        raise DefectError("there are no probabilities")
    return "predicted"


def csv(rng, folder):
    """A CSV file through the command line."""
    path = folder / ("in.csv" if rng.random() < 0.95 else "in.tsv")
    path.write_bytes(table_text(rng))
    return fit_and_predict(rng, path, folder)


def arrow_column(rng, n):
    """A column of any type that Parquet knows."""
    import pyarrow as pa

    whole, missing = rng.integers(0, 3, n), rng.random(n) < 0.1
    kinds = (
        lambda: pa.array(whole).cast(pa.decimal128(24, 2)),
        lambda: pa.array(whole).cast(pa.timestamp(str(rng.choice(["s", "us", "ns"])))),
        lambda: pa.array(whole.astype("i4")).cast(pa.date32()),
        lambda: pa.array([None if m else [k] for k, m in zip(whole, missing, strict=True)]),
        lambda: pa.array([{"u": k, "v": str(k)} for k in whole.tolist()]),
        lambda: pa.array(whole.astype(str), mask=missing).dictionary_encode(),
        lambda: pa.nulls(n),
        lambda: pa.array([bytes([k]) for k in whole.tolist()]),
        lambda: pa.array(whole > 0, mask=missing),
        lambda: pa.array(rng.normal(size=n).astype(rng.choice(["f2", "f4", "f8"])), mask=missing),
        lambda: pa.array(whole.astype(rng.choice(["i1", "u8", "i8", "u2"])), mask=missing),
        lambda: pa.array([CELLS[k] for k in whole + rng.integers(len(CELLS) - 2)]),
    )
    return kinds[rng.integers(len(kinds))]()


def parquet(rng, folder):
    """A Parquet file through the command line: of columns of any type, or a damaged one."""
    import pyarrow as pa
    from pyarrow import parquet as pq

    n = int(rng.integers(0, 60))
    columns = {"a": pa.array(rng.normal(size=n)), "b": pa.array(rng.choice(["u", "v"], n))}
    columns |= {"c": pa.array(rng.random(n) < 0.5), "y": pa.array(rng.choice(["p", "q"], n))}
    spoiled = rng.random() < 0.5
    if not spoiled:
        columns[str(rng.choice(["a", "b", "c", "c", "y"]))] = arrow_column(rng, n)
    path = folder / "in.parquet"
    compression = str(rng.choice(["none", "snappy", "zstd"]))
    pq.write_table(pa.table(columns), path, compression=compression)
    if spoiled:
        path.write_bytes(changed_bytes(rng, path.read_bytes()))
    return fit_and_predict(rng, path, folder)
