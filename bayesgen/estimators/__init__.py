"""The named classifiers: each chooses a family, its hyper-parameters and how X is read."""

import os
from typing import Any

from bayesgen.estimators.classifier import GenerativeClassifier
from bayesgen.estimators.counts import BernoulliNB, MultinomialNB, PoissonNB
from bayesgen.estimators.forests import MetaTreeForest, TreeAugmentedNB
from bayesgen.estimators.gaussian import GaussianNB, LinearDiscriminant, QuadraticDiscriminant
from bayesgen.estimators.pool import LogLinearPool
from bayesgen.estimators.sampled import (
    BayesianLogisticRegression,
    HierarchicalBernoulliNB,
    MixtureDiscriminant,
    NegativeBinomialNB,
    StudentTNB,
)
from bayesgen.estimators.tables import CategoricalNB, MixedNB
from bayesgen.estimators.text import MarkovNB
from bayesgen.io import storage

ESTIMATORS: tuple[type[GenerativeClassifier], ...] = (
    BernoulliNB,
    CategoricalNB,
    MultinomialNB,
    PoissonNB,
    GaussianNB,
    MixedNB,
    LinearDiscriminant,
    QuadraticDiscriminant,
    MarkovNB,
    TreeAugmentedNB,
    MetaTreeForest,
    BayesianLogisticRegression,
    HierarchicalBernoulliNB,
    MixtureDiscriminant,
    NegativeBinomialNB,
    StudentTNB,
    GenerativeClassifier,
)

__all__ = [
    "ESTIMATORS",
    "LogLinearPool",
    "load",
    *sorted(estimator.__name__ for estimator in ESTIMATORS),
]


def load(path: str | os.PathLike[str], **arguments: Any) -> GenerativeClassifier:
    """Read a classifier written by ``clf.save(path)``; nothing in the file is executed.

    Parameters
    ----------
    path : str or path
    **arguments
        Constructor arguments that a file cannot hold: ``family=`` of a `GenerativeClassifier`,
        a callable ``tokens=`` of a `MarkovNB`.

    Returns
    -------
    The fitted classifier, of the class that was saved: it predicts, resumes and merges. A file of a
    `LogLinearPool` gives one, which shares the predict methods.

    Raises
    ------
    FileNotFoundError
    ValueError
        If the file is damaged, foreign, or of another format version, or holds no valid model.

    Notes
    -----
    The file ends with the SHA-256 digest of its bytes, which finds damage and does not say who
    wrote it. Open files that you trust: a file holds no code, but it can predict whatever its
    author wants.

    Examples
    --------
    >>> import os, tempfile
    >>> from bayesgen.estimators import BernoulliNB
    >>> clf = BernoulliNB().fit([[0, 1], [1, 1]], ["a", "b"])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.nc")
    >>> clf.save(path)
    >>> bool((load(path).predict_proba([[0, 0]]) == clf.predict_proba([[0, 0]])).all())
    True
    """
    fit, state, draws = storage.read(path)
    singles: dict[str, Any] = {e.__name__: e for e in ESTIMATORS}
    estimators = {**singles, LogLinearPool.__name__: LogLinearPool}
    name, unsaved = state["estimator"], state["unsaved"]
    if name not in estimators:
        raise ValueError(
            f"{path} holds a {name!r}, which this version of bayesgen does not know; it knows "
            f"{', '.join(sorted(estimators))}"
        )
    absent = [argument for argument in unsaved if argument not in arguments]
    if absent:  # its default would be another model
        raise ValueError(
            f"{path} was saved with {absent[0]}=..., which a file cannot hold: give "
            f"load(path, {absent[0]}=...) what the {name} was made with"
        )
    with storage.complete(path, name):
        parameters = storage.arguments_from_json(state["parameters"])
        estimator: Any = estimators[name](**(parameters | arguments))
        estimator.fitted_ = estimator.__bayesgen_load__(fit, state, draws, singles)
        clf: GenerativeClassifier = estimator
        return clf
