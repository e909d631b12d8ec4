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
    count,
    did_you_mean,
    listed,
    note,
    plain_table,
    shortened,
    stdout,
    with_examples,
)

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table as RichTable

    from bayesgen.cli.columns import Feature
    from bayesgen.cli.files import Table
    from bayesgen.io.tabular import Rows
    from bayesgen.numerics.special import Array

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
    MARKOV = "markov"
    AUTO = "auto"


class Tokens(StrEnum):
    """How a language model cuts texts."""

    CHAR = "char"
    WORD = "word"


_ESTIMATORS = {
    Model.MIXED: "MixedNB",
    Model.GAUSSIAN: "GaussianNB",
    Model.BERNOULLI: "BernoulliNB",
    Model.CATEGORICAL: "CategoricalNB",
    Model.MULTINOMIAL: "MultinomialNB",
    Model.POISSON: "PoissonNB",
    Model.LDA: "LinearDiscriminant",
    Model.QDA: "QuadraticDiscriminant",
    Model.MARKOV: "MarkovNB",
    Model.AUTO: "LogLinearPool",
}
_ONE_KIND = {  # what all columns are read as, where the model has no choice
    Model.GAUSSIAN: "gaussian",
    Model.LDA: "gaussian",
    Model.QDA: "gaussian",
    Model.BERNOULLI: "bernoulli",
    Model.MULTINOMIAL: "multinomial",
    Model.POISSON: "poisson",
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    text = with_examples(
        fit,
        "bayesgen fit penguins.csv --target species -o penguins.nc",
        "bayesgen fit penguins.csv --target species --drop year -o penguins.nc",
        "bayesgen fit visits.parquet --target ill --kind visits=poisson -o ill.nc",
        "bayesgen fit iris.csv --target kind --model lda -o iris.nc",
        "bayesgen fit sms.tsv --target label --model markov --text text -o sms.nc",
        "bayesgen fit penguins.csv --target species --model auto -o pool.nc",
    )
    app.command("fit", help=text)(fit)


def fit(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Table with labels: .csv, .tsv or .parquet.")
    ],
    target: Annotated[
        str, typer.Option("--target", "-t", metavar="COLUMN", help="Column with the labels.")
    ],
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
            help="Read a column of a mixed model as gaussian, categorical, bernoulli, poisson or "
            "multinomial; repeatable.",
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
) -> None:
    """Learn a classifier from a table and save it.

    A mixed model takes numbers for gaussian, text for categorical, true and false for bernoulli
    columns, unless --kind says otherwise; auto pools several models of the same columns, with
    exponents from exact leave-one-out; in the other models all columns are alike. An empty cell,
    NA, NaN, null or None is missing and is left out exactly. Rows without a label are dropped.
    """
    import numpy as np

    from bayesgen.cli import columns, files, writing
    from bayesgen.encoding import suspects

    writing.check_output(output, data)
    table = files.open_table(data)
    columns.find(target, table)
    kinds = _parse_kinds(kind or [], model, table, {target, *(drop or [])})
    documents = model is Model.MARKOV or (model is Model.AUTO and text is not None)
    names = choose_columns(table, target, drop or [], documents, text)
    whole = files.read_whole(table, [target, *names])
    labelled, labels = columns.labels(whole.cells(target), table)
    clf, X, features = untrained(whole, table, names, model, kinds, documents, order, tokens)
    X = columns.take(X, labelled)
    if not documents:
        X, labels = _complete_rows(X, labels, clf, model, drop_incomplete)
    with busy("learning"), blamed_on(data), warnings.catch_warnings():
        warnings.simplefilter("ignore", suspects.ColumnWarning)  # which kinds were named, it
        clf.fit(X, labels)  # does not know
    suspects.warn(suspects.find(X, chosen=kinds))
    if documents:  # so that `predict` finds the texts; the model does not need it
        clf.feature_names_in_ = np.array(names, dtype=object)
    with blamed_on(f"cannot write {output}"):
        clf.save(output.resolve())
    _summary(clf, X, features, output)


# ---------------------------------------------------------------------------------- arguments


def _parse_kinds(given: list[str], model: Model, table: "Table", taken: set[str]) -> dict[str, str]:
    """{column: kind} from ``COLUMN=KIND`` arguments."""
    from bayesgen.cli.columns import find
    from bayesgen.encoding.schema import KINDS

    if given and model is not Model.MIXED:
        raise UserError(f"--kind is for --model mixed; in a {model} model all columns are alike")
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
            raise UserError(f"name the column with the texts by --text; there are {listed(names)}")
        return names
    if find(text, table) not in names:
        raise UserError(f"--text {text}: it is the target or dropped")
    if rest := [name for name in names if name != text]:
        note(f"{table.path}: {listed(rest)} left out, a language model reads one column")
    return [text]


# --------------------------------------------------------------------------------------- rows


def _complete_rows(
    X: "pd.DataFrame", labels: "Array", clf: Any, model: Model, drop_incomplete: bool
) -> tuple["pd.DataFrame", "Array"]:
    """Leave out rows with missing cells if the user says so, refuse them if the model cannot."""
    from sklearn.utils import get_tags

    complete = X.notna().all(axis=1).to_numpy()
    n_lost = int((~complete).sum())
    if not n_lost:
        return X, labels
    if drop_incomplete:
        if n_lost == len(X):
            raise UserError("every row has a missing cell: --drop-incomplete leaves none")
        note(f"{count(n_lost, 'row')} with missing cells dropped")
        return X[complete], labels[complete]
    if not get_tags(clf).input_tags.allow_nan:
        row = X.index[~complete][0]
        name = X.columns[X.loc[row].isna()][0]
        raise UserError(
            f"--model {model} cannot learn from rows with missing cells; there are {n_lost}, the "
            f"first is row {row + 1} (column {name!r}): leave them out by --drop-incomplete, or "
            "use another model"
        )
    return X, labels


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

    try:
        with busy("sorting out columns"):
            features = _features(whole, names, model, kinds, documents)
            X = Reader(features).read(whole)
    except UserError as mistake:
        other = "" if model in (Model.MIXED, Model.AUTO) else ", or use --model mixed"
        raise UserError(f"{table.path}: {mistake}; leave it out by --drop{other}") from None
    return _new(model, features, order, tokens), X, features


def _features(
    whole: "Rows", names: list[str], model: Model, kinds: dict[str, str], documents: bool
) -> "list[Feature]":
    """Decide from whole columns how each is read."""
    from bayesgen.cli.columns import Feature

    if documents:
        return [Feature(name, "documents") for name in names]
    out = []
    for name in names:
        cells = whole.cells(name)
        holds = cells.holds()
        if holds == "empty":
            raise UserError(f"column {name!r} is empty")
        natural = {"boolean": "bernoulli", "number": "gaussian", "text": "categorical"}[holds]
        if cells.is_nominal:
            natural = "categorical"
        if model in (Model.MIXED, Model.AUTO):
            kind = kinds.get(name, natural)
        else:
            kind = _ONE_KIND.get(model, "categorical")
        out.append(Feature(name, kind, holds if kind == "categorical" else "number"))
    return out


def _new(model: Model, features: "list[Feature]", order: int, tokens: Tokens) -> Any:
    """The classifier, not yet fitted."""
    from bayesgen import estimators

    options: dict[str, Any] = {}
    if model is Model.MIXED:
        kinds = dict.fromkeys(feature.kind for feature in features)
        options["columns"] = {k: [f.name for f in features if f.kind == k] for k in kinds}
    elif model is Model.BERNOULLI:
        options["binarize"] = None
    elif model is Model.MARKOV:
        options |= {"order": order, "tokens": str(tokens)}
    return getattr(estimators, _ESTIMATORS[model])(**options)


# ------------------------------------------------------------------------------------- summary


def _summary(clf: Any, X: Any, features: "list[Feature]", output: Path) -> None:
    """What was learned from what."""
    console = stdout()
    if hasattr(X, "columns"):
        console.print()
        console.print(_column_table(X, features))
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


def _column_table(X: Any, features: "list[Feature]") -> "RichTable":
    from rich.text import Text

    out = plain_table()
    widest = min(_WIDEST_NAME, max(len(feature.name) for feature in features[:_MOST_SHOWN]))
    out.add_column("column", overflow="ellipsis", no_wrap=True, width=max(widest, 12))
    out.add_column("kind", no_wrap=True, min_width=11)
    # what is left: long lists of categories are cut, not the columns beside them
    room = stdout().width - max(widest, 12) - 27
    out.add_column("values", overflow="ellipsis", no_wrap=True, max_width=max(room, 8))
    out.add_column("missing", justify="right", no_wrap=True)
    for feature in features[:_MOST_SHOWN]:
        values = X[feature.name].dropna()
        if feature.kind == "categorical":
            found = sorted(values.unique().tolist())
            shown = f"{len(found)}: " + ", ".join(map(shortened, found[:20]))
        else:
            shown = f"{values.min():.6g} to {values.max():.6g}"
        n_missing = int(X[feature.name].isna().sum())
        out.add_row(Text(shortened(feature.name)), feature.kind, Text(shown), str(n_missing or ""))
    if len(features) > _MOST_SHOWN:
        out.add_row(f"and {len(features) - _MOST_SHOWN} more", "", "", "")
    return out
