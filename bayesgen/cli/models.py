"""The classifiers by their short names, and what is to be learned of the columns of a table."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from bayesgen.cli.console import UserError, blamed_on, note
from bayesgen.encoding.literals import listed, shown
from bayesgen.errors import Facts, InputError
from bayesgen.io.formats import TableError

if TYPE_CHECKING:
    from bayesgen.cli.columns import Columns
    from bayesgen.cli.files import Table

_HEAD = 10_000  # rows in which codes and the word None are looked for


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
    FOREST = "forest"
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


def reads_texts(model: Model) -> bool:
    """Whether X is one column of texts."""
    return _holds(model)[0] == "token"


@dataclass(frozen=True)
class Plan:
    """What is to be learned from a file: a model of some of its columns."""

    table: "Table"
    target: str
    names: list[str]  # of the columns of X
    model: Model
    kinds: dict[str, str]  # of columns, as the user has named them
    documents: bool  # whether X is one column of texts
    order: int | None = None  # of n-grams; None: 2
    tokens: Tokens | None = None  # None: char
    drop_incomplete: bool = False

    @classmethod
    def of(
        cls,
        table: "Table",
        target: str,
        model: Model,
        drop: list[str],
        kind: list[str],
        text: str | None,
        **options: Any,
    ) -> "Plan":
        """As the arguments of a command say; an error where they do not fit the table."""
        kinds = _parsed(kind, model, table, {target, *drop})
        documents = reads_texts(model) or (model is Model.AUTO and text is not None)
        for name in ("order", "tokens"):
            if options.get(name) is not None and not reads_texts(model):
                raise UserError(f"--{name} is for --model markov; {model} has no such setting")
        names = _chosen(table, target, drop, documents, text)
        return cls(table, target, names, model, kinds, documents, **options)

    @property
    def at_once(self) -> bool:
        """Whether bins are chosen from all rows."""
        if self.model is Model.AUTO:
            return False
        chosen = _holds(self.model)[0] == "code"
        return chosen or not hasattr(classifier(self.model)(), "partial_fit")

    def advice(self, mistake: Facts) -> str | None:
        """What can be done about a column that the model cannot learn from."""
        if mistake.column not in self.names:
            return None
        other = "" if _of_mixed_columns(self.model) else ", or use --model mixed"
        return f"leave it out by --drop{other}"

    def look(self) -> "Look":
        """Return what the columns hold as a whole, and say what may be read otherwise."""
        from bayesgen.cli.columns import Columns

        looked_at = [self.target] if self.documents else [self.target, *self.names]
        with blamed_on(errors=(InputError,), advice=self.advice):
            holds = self.table.kinds(looked_at)
        if not holds:
            raise TableError(f"{self.table.path} has a header and no rows")
        for name, held in holds.items():
            if held == "empty":
                why = ": there are no labels" if name == self.target else ""
                raise UserError(f"{self.table.path}: column {name!r} is empty{why}")
        if self.documents:
            columns = Columns(dict.fromkeys(self.names, "document"), self.names)
            return Look(holds[self.target], columns, dict.fromkeys(self.names, "documents"))
        naturally = {"boolean": "bernoulli", "number": "gaussian", "text": "categorical"}
        kinds: dict[str, str] = {}
        types: dict[str, str | None] = {}
        for name in self.names:
            kinds[name] = _holds(self.model)[1]
            if _of_mixed_columns(self.model):
                kind = "categorical" if name in self.table.nominal else naturally[holds[name]]
                kinds[name] = self.kinds.get(name, kind)
            bits = kinds[name] == "bernoulli" and holds[name] == "boolean"
            types[name] = holds[name] if bits or kinds[name] == "categorical" else "number"
        self._note_codes(holds)
        return Look(holds[self.target], Columns(types, self.names), kinds)

    def _note_codes(self, holds: dict[str, str]) -> None:
        """Say which categories are read as numbers and may be codes, or have the word None."""
        names = [self.target]
        if _holds(self.model)[0] in ("", "code", "category"):
            kinds = self.kinds
            names += [n for n in self.names if kinds.get(n, "categorical") == "categorical"]
        names = [] if self.table.schema is not None else names
        raw = dict.fromkeys(names, "document")
        head = next(self.table.rows(raw, _HEAD)).frame if names else {}
        for name in names:
            codes = head[name].str.strip()
            padded = codes[codes.str.fullmatch(r"0\d+")]
            if holds[name] == "number" and len(padded):
                note(
                    f"column {name!r} holds {shown(padded.iloc[0])}, read as the number "
                    f"{int(padded.iloc[0])}: if its zeros matter, as in postal codes, write a "
                    "letter before each cell"
                )
            if holds[name] == "text" and (codes == "None").any():
                note(
                    f"column {name!r} holds None, read as a missing cell: if it is one of the "
                    "categories, write it otherwise, as none"
                )

    def untrained(self, kinds: dict[str, str]) -> Any:
        """Return the classifier, not yet fitted."""
        options: dict[str, Any] = {}
        if _of_mixed_columns(self.model) and self.model is not Model.AUTO:
            options["columns"] = {
                kind: [name for name in kinds if kinds[name] == kind]
                for kind in dict.fromkeys(kinds.values())
            }
        elif _holds(self.model)[0] == "bit":
            options["binarize"] = None
        elif reads_texts(self.model):
            options |= {"order": self.order or 2, "tokens": str(self.tokens or Tokens.CHAR)}
        return classifier(self.model)(**options)


class Look(NamedTuple):
    """What the columns of a file hold: the type of the labels, and how each column is read."""

    label_type: str
    columns: "Columns"
    kinds: dict[str, str]


def _of_mixed_columns(model: Model) -> bool:
    """Whether columns may be of several kinds, "" and "code": or all are alike."""
    return _holds(model)[0] in ("", "code")


def _holds(model: Model) -> tuple[str, str]:
    """What all columns hold, and their kind, by the family of the classifier; "" of a pool."""
    family = getattr(classifier(model)(), "_family_type", None)
    if family is None:
        return "", ""
    return family.holds, "gaussian" if family.holds == "real" else family.kind


_BINNED = ("gaussian", "categorical", "bernoulli")  # kinds of models that cut columns into bins


def _parsed(given: list[str], model: Model, table: "Table", taken: set[str]) -> dict[str, str]:
    """{column: kind} from ``COLUMN=KIND`` arguments."""
    from bayesgen.cli.columns import find
    from bayesgen.encoding.schema import KINDS

    kinds = KINDS if model is Model.MIXED else _BINNED
    if given and (model is Model.AUTO or not _of_mixed_columns(model)):
        auto = "auto chooses by what cells are"
        alike = f"in a {model} model all columns are alike"
        raise UserError(
            f"--kind is for --model mixed or forest; {auto if model is Model.AUTO else alike}"
        )
    out: dict[str, str] = {}
    for argument in given:
        name, equals, kind = argument.rpartition("=")
        if not equals:
            raise UserError(f"--kind {argument}: write COLUMN=KIND, such as visits=poisson")
        if find(name, table) in taken:
            raise UserError(f"--kind {argument}: {name!r} is the target or dropped")
        if kind not in kinds:
            raise UserError(
                f"--kind {argument}: {model} has no kind {kind!r}; its kinds are {listed(kinds)}"
            )
        if out.setdefault(name, kind) != kind:
            raise UserError(f"--kind gives {name!r} two kinds, {out[name]} and {kind}")
    return out


def _chosen(
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
