"""The classifiers by their short names, and one of them for the columns of a table."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesgen.cli.console import (
    UserError,
    blamed_on,
    busy,
    note,
)
from bayesgen.encoding.literals import did_you_mean, listed, shown

if TYPE_CHECKING:
    from bayesgen.cli.columns import Feature
    from bayesgen.cli.files import Table
    from bayesgen.io.tabular import Rows


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
    META_TREES = "meta-trees"
    MARKOV = "markov"
    AUTO = "auto"


class Tokens(StrEnum):
    """How a language model cuts texts."""

    CHAR = "char"
    WORD = "word"


def classifier(model: Model) -> Any:
    """The public class that a short name stands for."""
    from bayesgen.estimators import ESTIMATORS, LogLinearPool

    return next(one for one in (*ESTIMATORS, LogLinearPool) if short_name(one) == model)


def short_name(kind: type) -> str:
    """What the command line calls a class: what it says itself, or the first word of its name."""
    return str(vars(kind).get("_short_name", kind.__name__.removesuffix("NB").lower()))


def at_once(model: Model) -> bool:
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


def parse_kinds(given: list[str], model: Model, table: "Table", taken: set[str]) -> dict[str, str]:
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
            features = features_of(table, holds, names, model, kinds, documents)
            X = Reader(features).read(whole)
    except UserError as mistake:
        raise UserError(f"{table.path}: {mistake}; {advice(model)}") from None
    return new_classifier(model, features, order, tokens), X, features


def advice(model: Model) -> str:
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


def features_of(
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


def new_classifier(model: Model, features: "list[Feature]", order: int, tokens: Tokens) -> Any:
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


def save(clf: Any, table: "Table", output: Path) -> None:
    """Write the model, unless the table holds what no model file can."""
    with blamed_on(table.path), blamed_on(f"cannot write {output}", (OSError,)):
        clf.save(output)
