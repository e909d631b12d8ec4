"""``bayesgen fit``: learn a classifier from a table and save it."""

import warnings
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesgen.cli.console import (
    UserError,
    blamed_on,
    busy,
    class_counts,
    note,
    plain_table,
    stdout,
)
from bayesgen.cli.options import Target
from bayesgen.encoding.literals import did_you_mean, listed, one_line, shown

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from bayesgen.cli.columns import Feature
    from bayesgen.cli.files import Table
    from bayesgen.cli.learning import Tally
    from bayesgen.io.tabular import Rows

_MOST_SHOWN = 24  # columns in the summary
_WIDEST_NAME = 32  # of a column in it


class Model(StrEnum):
    """The classifiers by their short names."""

    MIXED = "mixed"
    GAUSSIAN = "gaussian"
    BERNOULLI = "bernoulli"
    CATEGORICAL = "categorical"
    MULTINOMIAL = "multinomial"
    POISSON = "poisson"
    LDA = "lda"
    QDA = "qda"
    HISTOGRAM = "histogram"
    FOREST = "forest"
    GAUSSIAN_FOREST = "gaussian-forest"
    ANDE = "ande"
    MARKOV = "markov"
    AUTO = "auto"


class Tokens(StrEnum):
    """How a language model cuts texts."""

    CHAR = "char"
    WORD = "word"


def fit(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Table with labels: .csv, .tsv or .parquet.")
    ],
    target: Target,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the model goes (netCDF).")
    ],
    model: Annotated[
        Model, typer.Option("--model", "-m", metavar="NAME", help=f"{', '.join(Model)}.")
    ] = Model.MIXED,
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", metavar="COLUMN", help="Leave a column out; repeatable."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="COLUMN=KIND",
            help="Read a column of mixed, forest or ande as gaussian, categorical or bernoulli, of "
            "mixed also as poisson or multinomial; repeatable.",
        ),
    ] = None,
    drop_incomplete: Annotated[
        bool,
        typer.Option(
            "--drop-incomplete",
            help="Leave out rows with a missing cell; lda, qda and multinomial ask for it.",
        ),
    ] = False,
    text: Annotated[
        str | None,
        typer.Option("--text", metavar="COLUMN", help="Column with the texts (markov, auto)."),
    ] = None,
    order: Annotated[
        int, typer.Option("--order", min=1, metavar="N", help="Tokens of an n-gram (markov).")
    ] = 2,
    tokens: Annotated[
        Tokens,
        typer.Option("--tokens", metavar="NAME", help="Cut texts into char or word (markov)."),
    ] = Tokens.CHAR,
    test: Annotated[
        float | None,
        typer.Option(
            "--test",
            min=0.01,
            max=0.99,
            metavar="FRACTION",
            help="Hold out this share of the rows, drawn at random, and score them.",
        ),
    ] = None,
) -> None:
    """Learn a classifier from a table and save it.

    A mixed model takes numbers for gaussian, text for categorical, true and false for bernoulli
    columns, unless --kind says otherwise; so do forest and ande, which cut numbers into bins and
    let columns depend on each other. auto pools several models of the same columns, with exponents
    from exact leave-one-out; in the other models all columns are alike. An empty cell, NA, NaN,
    null or None is missing and is left out exactly. Rows without a label are dropped. The file is
    read in parts, so it may be larger than memory (but not for auto, forest, ande and histogram):
    what the columns hold is decided on the first million cells and checked on all others.

    Examples
    --------
    bayesgen fit penguins.csv --target species -o penguins.nc
    bayesgen fit penguins.csv --target species --drop year -o penguins.nc
    bayesgen fit visits.parquet --target ill --kind visits=poisson -o ill.nc
    bayesgen fit iris.csv --target kind --model lda -o iris.nc
    bayesgen fit sms.tsv --target label --model markov --text text -o sms.nc
    bayesgen fit penguins.csv --target species --model auto -o pool.nc
    bayesgen fit penguins.csv --target species --test 0.3 -o penguins.nc
    """
    from bayesgen.cli import columns, files, learning, writing
    from bayesgen.encoding import suspects

    writing.check_output(output, data)
    table = files.open_table(data)
    columns.find(target, table)
    kinds = _parse_kinds(kind or [], model, table, {target, *(drop or [])})
    documents = reads_texts(model) or (model is Model.AUTO and text is not None)
    names = choose_columns(table, target, drop or [], documents, text)
    if test is not None:
        from bayesgen.cli import holdout

        how = (model, kinds, documents, order, tokens, drop_incomplete)
        holdout.fit(table, target, names, how, test, output)
        return
    plan = learning.Plan(
        table=table,
        target=target,
        names=names,
        checked=decided_by_cells(names, model, kinds, documents),
        features_of=lambda holds: _features(table, holds, names, model, kinds, documents),
        untrained=lambda features: _new(model, features, order, tokens),
        drop_incomplete=drop_incomplete,
        advice=_advice(model),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", suspects.ColumnWarning)  # which kinds were named, it
        # does not know
        clf, tally = (learning.learn_at_once if _at_once(model) else learning.learn)(plan)
    texts = getattr(clf, "text_columns_", ())  # which a pool has read as such
    normal = {f.name for f in tally.features if f.kind == "gaussian"} - {*kinds}
    odd = suspects.find(
        tally.head,
        set(names) - {*texts},
        chosen=kinds,
        normal=normal if model is Model.MIXED else (),
    )
    suspects.warn(odd)
    for feature in tally.features:
        if feature.name in texts:
            feature.kind = "text"
    if documents:  # so that `predict` finds the texts; the model does not need it
        columns.name_columns(clf, names)
    save(clf, table, output)
    _summary(clf, tally, output)


# ---------------------------------------------------------------------------------- arguments


def classifier(model: Model) -> Any:
    """The public class that a short name stands for."""
    from bayesgen.estimators import ESTIMATORS, LogLinearPool

    return next(one for one in (*ESTIMATORS, LogLinearPool) if short_name(one) == model)


def short_name(kind: type) -> str:
    """What the command line calls a class: what it says itself, or the first word of its name."""
    return str(vars(kind).get("_short_name", kind.__name__.removesuffix("NB").lower()))


def _at_once(model: Model) -> bool:
    """Whether bins or members are chosen from all rows."""
    return _holds(model)[0] == "code" or not hasattr(classifier(model)(), "partial_fit")


def reads_texts(model: Model) -> bool:
    """Whether X is one column of texts."""
    return _holds(model)[0] == "token"


def _of_mixed_columns(model: Model) -> bool:
    """Whether columns may be of several kinds, "" and "code": or all are alike."""
    return _holds(model)[0] in ("", "code")


def _holds(model: Model) -> tuple[str, str]:
    """What all columns hold, and their kind, by the family of the classifier; "" of a pool."""
    family = getattr(classifier(model)(), "_family_type", None)
    if family is None:
        return "", ""
    return family.holds, "gaussian" if family.holds == "real" else family.kind


def _parse_kinds(given: list[str], model: Model, table: "Table", taken: set[str]) -> dict[str, str]:
    """{column: kind} from ``COLUMN=KIND`` arguments."""
    from bayesgen.cli.columns import find
    from bayesgen.encoding.schema import KINDS

    if given and model is Model.AUTO:
        raise UserError(
            "--kind is for --model mixed, forest or ande; auto chooses by what cells are"
        )
    if given and not _of_mixed_columns(model):
        raise UserError(
            f"--kind is for --model mixed, forest or ande; in a {model} model all columns are alike"
        )
    out: dict[str, str] = {}
    for argument in given:
        name, equals, kind = argument.rpartition("=")
        if not equals:
            raise UserError(f"--kind {argument}: write COLUMN=KIND, such as visits=poisson")
        if find(name, table) in taken:
            raise UserError(f"--kind {argument}: {name!r} is the target or dropped")
        if kind not in KINDS:
            raise UserError(f"--kind {argument}: no kind {kind!r}{did_you_mean(kind, KINDS)}")
        if out.setdefault(name, kind) != kind:
            raise UserError(f"--kind gives {name!r} two kinds, {out[name]} and {kind}")
    return out


def choose_columns(
    table: "Table", target: str, drop: list[str], documents: bool, text: str | None
) -> list[str]:
    """The columns of X, in the order of the file."""
    from bayesgen.cli.columns import find

    dropped = {find(name, table) for name in drop}
    if target in dropped:
        raise UserError(f"--drop {target}: it is the target")
    names = [name for name in table.names if name != target and name not in dropped]
    if not names:
        raise UserError(f"{table.path} has no column left to learn from")
    if not documents:
        if text is not None:
            raise UserError("--text is for --model markov or auto")
        return names
    if text is None:
        if len(names) > 1:
            raise UserError(
                f"name the column with the texts by --text; there are {listed(map(shown, names))}"
            )
        return names
    if find(text, table) not in names:
        raise UserError(f"--text {text}: it is the target or dropped")
    if rest := [name for name in names if name != text]:
        note(
            f"{table.path}: {listed(map(shown, rest))} left out, a language model reads one column"
        )
    return [text]


# -------------------------------------------------------------------------------------- model


def untrained(
    whole: "Rows",
    table: "Table",
    names: list[str],
    model: Model,
    kinds: dict[str, str],
    documents: bool,
    order: int = 2,
    tokens: Tokens = Tokens.CHAR,
) -> "tuple[Any, Any, list[Feature]]":
    """The classifier, not yet fitted; all rows as it takes them; and how they were read."""
    from bayesgen.cli.columns import Reader

    holds = {name: whole.cells(name).holds() for name in names}
    try:
        with busy("sorting out columns"):
            features = _features(table, holds, names, model, kinds, documents)
            X = Reader(features).read(whole)
    except UserError as mistake:
        raise UserError(f"{table.path}: {mistake}; {_advice(model)}") from None
    return _new(model, features, order, tokens), X, features


def _advice(model: Model) -> str:
    """What can be done about a column that a model cannot learn from."""
    other = "" if _of_mixed_columns(model) else ", or use --model mixed"
    return f"leave it out by --drop{other}"


def decided_by_cells(
    names: list[str], model: Model, kinds: dict[str, str], documents: bool
) -> list[str]:
    """The columns of which their cells decide how they are read."""
    if documents or _holds(model)[0] not in ("", "code", "category"):
        return []
    return [name for name in names if kinds.get(name, "categorical") == "categorical"]


def _features(
    table: "Table",
    holds: dict[str, str],
    names: list[str],
    model: Model,
    kinds: dict[str, str],
    documents: bool,
) -> "list[Feature]":
    """How each column is read, by what it holds as a whole."""
    from bayesgen.cli.columns import Feature

    if documents:
        return [Feature(name, "documents") for name in names]
    out = []
    for name in names:
        if holds[name] == "empty":
            raise UserError(f"column {name!r} is empty")
        natural = {"boolean": "bernoulli", "number": "gaussian", "text": "categorical"}[holds[name]]
        if table.is_nominal(name):
            natural = "categorical"
        kind = kinds.get(name, natural) if _of_mixed_columns(model) else _holds(model)[1]
        by_dtype = kind == "bernoulli" and model is Model.AUTO  # members look at the cells
        out.append(
            Feature(name, kind, holds[name] if kind == "categorical" or by_dtype else "number")
        )
    return out


def _new(model: Model, features: "list[Feature]", order: int, tokens: Tokens) -> Any:
    """The classifier, not yet fitted."""
    options: dict[str, Any] = {}
    if _of_mixed_columns(model) and model is not Model.AUTO:
        kinds = dict.fromkeys(feature.kind for feature in features)
        options["columns"] = {k: [f.name for f in features if f.kind == k] for k in kinds}
    elif _holds(model)[0] == "bit":
        options["binarize"] = None
    elif reads_texts(model):
        options |= {"order": order, "tokens": str(tokens)}
    return classifier(model)(**options)


# ------------------------------------------------------------------------------------- summary


def save(clf: Any, table: "Table", output: Path) -> None:
    """Write the model, unless the table holds what no model file can."""
    with blamed_on(table.path), blamed_on(f"cannot write {output}", (OSError,)):
        clf.save(output)


def _summary(clf: Any, tally: "Tally", output: Path) -> None:
    """What was learned from what."""
    console = stdout()
    if tally.missing:
        console.print()
        console.print(_column_table(tally))
    console.print()
    lines = [_learned(clf), f"Written to {output}."]
    if hasattr(clf, "log_evidence_"):
        lines[1] = f"Log evidence {clf.log_evidence_:.2f} nats. {lines[1]}"
    console.print(*lines, sep="\n", markup=False, soft_wrap=True)


def _learned(clf: Any) -> str:
    """What the model is, and of how many rows of each class."""
    if hasattr(clf, "stats_"):
        rows = class_counts(clf.classes_, clf.stats_.count)
        return f"{type(clf).__name__} has learned from {rows}."
    return f"{clf.summary()}"


def _column_table(tally: "Tally") -> "RichTable":
    from rich.text import Text

    from bayesgen.encoding.column import of_one_type

    out = plain_table()
    shown_names = [feature.name for feature in tally.features[:_MOST_SHOWN]]
    rest = f"and {n} more" if (n := len(tally.features) - _MOST_SHOWN) > 0 else ""
    widest = min(_WIDEST_NAME, max(map(len, [*shown_names, rest])))
    out.add_column("column", overflow="fold", width=max(widest, 12))
    out.add_column("kind", no_wrap=True, min_width=11)
    # what is left: long lists of categories are cut, not the columns beside them
    room = stdout().width - max(widest, 12) - 27
    out.add_column("values", overflow="ellipsis", no_wrap=True, max_width=max(room, 8))
    out.add_column("missing", justify="right", no_wrap=True)
    for feature in tally.features[:_MOST_SHOWN]:
        if feature.kind in ("categorical", "text"):
            own = tally.found[feature.name]
            found = sorted(of_one_type(own, own))
            shown = f"{len(found)}: " + ", ".join(map(one_line, found[:20]))
        else:
            low, high = tally.ends.get(feature.name, (float("nan"), float("nan")))
            shown = f"{low:.6g} to {high:.6g}"
        n_missing = tally.missing[feature.name]
        out.add_row(Text(one_line(feature.name)), feature.kind, Text(shown), str(n_missing or ""))
    if rest:
        out.add_row(rest, "", "", "")
    return out
