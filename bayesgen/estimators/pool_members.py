"""Members that ``LogLinearPool("auto")`` chooses for the columns it is given."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from bayesgen.encoding.reader import Rows
from bayesgen.encoding.suspects import documents
from bayesgen.encoding.tables import feature_names
from bayesgen.encoding.tokens import Split
from bayesgen.encoding.views import REAL, SomeColumns, TableView, TextLength, ViewName
from bayesgen.estimators.classifier import GenerativeClassifier
from bayesgen.estimators.counts import BernoulliNB, MultinomialNB
from bayesgen.estimators.forests import MetaTreeForest
from bayesgen.estimators.gaussian import GaussianNB, LinearDiscriminant, QuadraticDiscriminant
from bayesgen.estimators.tables import MixedNB
from bayesgen.estimators.text import MarkovNB
from bayesgen.posterior.pooled import Member, MemberRows

_MOST_WORK = 2e10  # operations of one member: some seconds
_TREES, _TREE_ROWS = (16, 200), 5_000_000  # label trees, and rows times trees


class Size(NamedTuple):
    """Size of a table whose categories are indicators, and the seed of members that draw."""

    n_rows: int
    n_classes: int
    n_columns: int
    seed: int = 0


@dataclass(frozen=True)
class Candidate:
    """A member of a table, what it sees of it, and the operations that it costs."""

    name: str
    make: Callable[[Size], GenerativeClassifier]
    cost: Callable[[Size], float]
    view: ViewName | None = None
    of_reals: bool = False  # whether a table without real columns has it


def _cost_of_one(size: Size) -> float:
    """Count the operations of one covariance for all classes."""
    return float(size.n_rows * size.n_columns**2 + 10 * size.n_columns**3)


def _cost_of_each(size: Size) -> float:
    """Count the operations of a covariance for each class."""
    return float(size.n_rows * size.n_columns**2 + 10 * size.n_classes * size.n_columns**3)


def _make_trees(size: Size) -> MetaTreeForest:
    n_trees = int(np.clip(_TREE_ROWS // size.n_rows, *_TREES))
    alpha = min(0.1, 1 / size.n_classes)  # exponents say how far the trees are to be believed
    return MetaTreeForest(n_trees, alpha=alpha, candidates=6.0, random_state=size.seed)


def _make_linear(size: Size) -> LinearDiscriminant:
    return LinearDiscriminant(prior="default")


def _make_quadratic(size: Size) -> QuadraticDiscriminant:
    return QuadraticDiscriminant(prior="default")


CANDIDATES = (
    Candidate("linear", _make_linear, _cost_of_one, "numbers"),
    Candidate("linear on normal scores", _make_linear, _cost_of_one, "normal scores", True),
    Candidate("quadratic on normal scores", _make_quadratic, _cost_of_each, "normal scores"),
    Candidate("label trees", _make_trees, lambda size: 0.0),
)


def choose_members(
    rows: MemberRows, n_classes: int, seed: int = 0
) -> tuple[list[Member], dict[str, str]]:
    """Return members for the columns, and the reasons for leaving out others.

    Parameters
    ----------
    rows : for training: a table, sparse counts, or documents
    n_classes : int
    seed : int
        Of label trees.
    """
    if sparse.issparse(rows.X):
        return _choose_for_counts(rows.X), {}
    if _holds_texts(rows.X):
        return _choose_for_documents(rows.rows), {}
    texts = documents(rows.X)
    if not texts:
        return _choose_for_table(rows, None, n_classes, seed)
    others = tuple(name for name in feature_names(rows.X) or () if name not in texts)
    members: list[Member] = []
    left_out: dict[str, str] = {}
    if others:
        members, left_out = _choose_for_table(rows, others, n_classes, seed)
    for name in texts:
        members += [
            replace(member, name=f"{name}: {member.name}", selection=name)
            for member in _choose_for_documents(rows.selected(name))
        ]
    return members, left_out


def _holds_texts(X) -> bool:
    if len(getattr(X, "shape", (0,))) == 2 or hasattr(X, "columns"):
        return False
    cells: Sequence[Any] = list(X[:5] if not hasattr(X, "iloc") else X.iloc[:5])
    # a missing text is refused where documents are read, by its position
    return any(isinstance(cell, str) for cell in cells)


def _choose_for_documents(rows: Rows) -> list[Member]:
    """Return the members; `tests/benchmarks/language_models.py` says what each brings."""
    members = [Member(f"characters, order {n}", MarkovNB(n)) for n in (1, 2, 3, 4)]
    members += [Member(f"words, order {n}", MarkovNB(n, tokens="word")) for n in (1, 2)]
    bags: tuple[tuple[str, Split, float], ...] = (
        ("distinct words", "distinct word", 0.1),
        ("parts of words", "word part", 0.03),
    )
    members += [Member(name, MarkovNB(1, alpha, cut, fold=True)) for name, cut, alpha in bags]
    members.append(Member("length", GaussianNB(), TextLength.learn(rows.X)))
    return [replace(m, clf=m.clf.set_params(prior="default")) for m in members]


def _choose_for_counts(X) -> list[Member]:
    values = X.data[X.data != 0]
    members = [Member("bits", BernoulliNB(binarize=0.0, prior="default"))]
    if (values > 0).all() and (np.round(values) == values).all():
        members.append(Member("counts", MultinomialNB(prior="default")))
    return members


def _choose_for_table(
    rows: MemberRows, selection: SomeColumns | None, n_classes: int, seed: int
) -> tuple[list[Member], dict[str, str]]:
    independent = Member("independent columns", MixedNB(prior="default"), selection=selection)
    encoded = rows.learnt(independent, independent.clf.__bayesgen_learner__().reader)
    reader: Any = encoded.reader
    schema, cells = reader.encoder, encoded.encoded
    members, left_out = [independent], {}
    for candidate in CANDIDATES:
        if candidate.of_reals and not {*schema.kinds} & {*REAL}:
            continue
        view = None if candidate.view is None else TableView.learn(schema, cells, candidate.view)
        n_columns = len(schema.kinds) if view is None else len(view.centre)
        size = Size(len(encoded), n_classes, n_columns, seed)
        if not n_columns:
            left_out[candidate.name] = "no category is in two rows, and there are no numbers"
        elif (cost := candidate.cost(size)) > _MOST_WORK:
            left_out[candidate.name] = (
                f"{size.n_rows} rows of {size.n_columns} columns, with an indicator for each "
                f"category, would take {cost:.0e} operations"
            )
        else:
            members.append(Member(candidate.name, candidate.make(size), view, selection=selection))
    return members, left_out
