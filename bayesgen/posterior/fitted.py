"""What a fit makes: one frozen object that all else is a function of."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from bayesgen.encoding.cells import LARGE, refuse_far_cells
from bayesgen.encoding.labels import codes_of, weights_by_class
from bayesgen.encoding.reader import Reader, Rows
from bayesgen.encoding.tables import KeptRows
from bayesgen.families.contract import Family
from bayesgen.families.errors import NoClosedFormError, NoPosteriorError
from bayesgen.families.names import CLASS, CONTEXT
from bayesgen.numerics.special import Array
from bayesgen.posterior.drawn import DrawnPosterior
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.pooled import PooledPosterior

if TYPE_CHECKING:
    import xarray as xr

    from bayesgen.predict.left_out import LeftOut

Posterior = ExactPosterior | DrawnPosterior | PooledPosterior

# ------------------------------------------------------------------------------------------------
# The rows behind a posterior: how many there were, and the rows themselves.

GIVEN: Final = "draws given"  # how a posterior was found that the user brings


class LabelledRows(NamedTuple):
    """Rows as the family takes them, with what is known of each."""

    X: Any
    codes: np.ndarray  # (N,) of classes, -1 where there is no label
    weight: np.ndarray  # (N,)
    groups: np.ndarray | None = None  # (N,) rows of the same number are left out together

    def at(self, rows: np.ndarray) -> "LabelledRows":
        """Return some of the rows."""
        groups = None if self.groups is None else self.groups[rows]
        return LabelledRows(self.X[rows], self.codes[rows], self.weight[rows], groups)

    @property
    def scored(self) -> np.ndarray:
        """Positions of the rows that have a label and a weight."""
        return np.flatnonzero((self.codes >= 0) & (self.weight > 0))

    def only_scored(self) -> "LabelledRows":
        """Return the scored rows; raise ValueError if there is none."""
        positions = self.scored
        if not len(positions):
            raise ValueError("no training row has a label and a weight above 0")
        return self if len(positions) == len(self.codes) else self.at(positions)


@dataclass(frozen=True)
class Training:
    """The rows behind a posterior.

    Parameters
    ----------
    n_rows, n_unlabelled : int
    inference : str
        How the posterior was found: "closed form", "nuts", or `GIVEN`.
    unlabelled_weight : float, optional
        That of rows without a label, where it was found by leave-one-out.
    weighed : Weighed, optional
        How it was found, and the scores of the labelled rows.
    rows : KeptRows, optional
        While they are in memory anyway.
    groups : (N,) int, optional
        Of all rows that fit was given: those of the same number are left out together.
    weight : (N,), optional
        Of all rows that fit was given, where copies count as one row.
    suspects : {column: what is odd about it}
    scores : LeftOut, optional
        What the posterior says of each row without it, once it was asked for.
    left_out : {member of a pool: why it was not taken}
    draws : xarray.DataTree, optional
        Those of the fit, or of a posterior in closed form once they were asked for.
    prior : PriorChoice, optional
        How the prior was chosen, of a fit in closed form.
    """

    n_rows: int
    n_unlabelled: int = 0
    inference: str = "closed form"
    unlabelled_weight: float | None = None
    weighed: Any = None
    rows: KeptRows | None = None
    groups: np.ndarray | None = None
    weight: np.ndarray | None = None
    suspects: dict[str, str] = field(default_factory=dict)
    scores: "LeftOut | None" = None
    left_out: dict[str, str] = field(default_factory=dict)
    draws: "xr.DataTree | None" = None
    prior: Any = None

    @property
    def estimated(self) -> str:
        """Return the argument of `fit` by which weights of rows were estimated, or ""."""
        return "unlabelled='weighted'" if self.unlabelled_weight else ""


# ------------------------------------------------------------------------------------------------
# Rows, posterior and names together.


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a classifier has learnt: predictions, explanations, checks are functions of it.

    Parameters
    ----------
    name : str
        The classifier, as errors call it.
    classes : (C,) labels, sorted
    reader : Reader
        How rows are read.
    posterior : ExactPosterior, DrawnPosterior or PooledPosterior
    training : Training
        What is known of the rows behind it.
    """

    name: str
    classes: Array
    reader: Reader
    posterior: Posterior
    training: Training

    # -- rows and labels ---------------------------------------------------------------------

    def read(self, X) -> Rows:
        """New rows, checked against the columns of the fit; `Rows` have been so."""
        if hasattr(X, "map_partitions"):
            raise TypeError(
                "X is a dask data frame: X.map_partitions(clf.predict_proba) predicts block by "
                "block, X.compute() takes all rows into memory"
            )
        return X if isinstance(X, Rows) else self.reader.read(X)

    def encoded(self, X):
        """New rows as the family takes them; IncompleteRowError where a cell must be known."""
        encoded = self.read(X).encoded
        self.reader.refuse_incomplete(encoded)
        return encoded

    def encoded_near(self, X):
        """Return the same; a ValueError for a cell too far away to say how sure the classes are.

        Where no cell is beyond `LARGE`, one pass is all.
        """
        encoded = self.encoded(X)
        cells = encoded.data if sparse.issparse(encoded) else encoded
        if getattr(getattr(cells, "dtype", None), "kind", "O") in "iuf" and cells.size:
            ends = np.fmin.reduce(cells, axis=None), np.fmax.reduce(cells, axis=None)
            if max(abs(float(end)) for end in ends) > LARGE:
                posterior = self.posterior
                features = posterior.stats.features if posterior.exact else None
                refuse_far_cells(
                    posterior.prior.family, encoded, features, lambda: self.feature_names
                )
        return encoded

    def codes_of(self, labels) -> Array:
        """Return (N,) positions of labels among the classes; refuse one that is not known."""
        return codes_of(labels, self.classes, True)

    def weights_of(self, class_prior) -> Array | None:
        """Return (C,) class weights that replace the fitted ones."""
        if class_prior is None:
            return None
        if not self.posterior.has_weights:
            raise NotImplementedError(no_density("class_prior=", self.name))
        if why := self.family.no_class_prior:
            raise ValueError(f"class_prior= is refused: {why}")
        return weights_by_class(class_prior, self.classes)

    @property
    def models(self) -> list["Fitted"]:
        """Itself, or the members of a pool."""
        return [member.fitted for member in self.posterior.members] or [self]

    def parts(self, X, *, of_training: bool = False) -> list[tuple["Fitted", Rows]]:
        """`models`, and new rows as each has read them, or rows of training."""
        rows = self.read(X)
        members = self.posterior.members
        if not members:
            return [(self, rows)]
        seen = rows.encoded.as_training if of_training else rows.encoded
        return [(member.fitted, seen.read(member)) for member in members]

    # -- names -------------------------------------------------------------------------------

    @property
    def family(self) -> Family:
        """Return the posterior's family."""
        family: Family = self.posterior.model.family
        return family

    @property
    def feature_names(self) -> list[Any]:
        """Names of the features."""
        return self.reader.feature_names(self.family)

    @property
    def column_names(self) -> list[str]:
        """Names of the columns; documents have none."""
        coords = self.reader.coords(self.family)
        return [] if CONTEXT in coords else [str(name) for name in self.feature_names]

    @property
    def coords(self) -> dict[str, Any]:
        """{dim: labels} of the posterior."""
        return {CLASS: self.classes, **self.reader.coords(self.family)}

    # -- kinds of posterior ------------------------------------------------------------------

    @property
    def closed_form(self) -> ExactPosterior:
        """Return the posterior in closed form.

        Raises
        ------
        NoClosedFormError
        """
        posterior = self.posterior
        if posterior.exact:
            return cast(ExactPosterior, posterior)
        conjugate = posterior.prior.family.conjugate
        raise NoClosedFormError(
            "the posterior has no closed form: "
            + (
                "with_posterior gave the classifier draws"
                if self.training.inference == GIVEN
                else f"{type(posterior.prior.family).__name__} has no conjugate prior"
            )
            + ". The posterior is in posterior_, as draws, and the predict methods use it; "
            "what needs the closed form is not available (evidence, partial_fit, merge, "
            "linear_form, mutual information, draws by draw_posterior and sample_posterior)"
            + (": fit the rows for that" if conjugate else "")
        )

    def refuse_if_discriminative(self, what: str) -> None:
        """Raise NotImplementedError where there is no density of x."""
        if not self.posterior.model.generative:
            raise NotImplementedError(no_density(what, self.name))

    def refuse_estimated_weights(self, what: str) -> None:
        """Raise NoPosteriorError where the weights of rows, or their labels, were estimated."""
        if self.training.estimated:
            raise NoPosteriorError(
                f"{what} is refused after {self.training.estimated}: the posterior of the weighed "
                "rows does not know that the weights are estimated, and is too narrow. "
                "unlabelled='ignore' has it"
            )

    # -- the next one ------------------------------------------------------------------------

    def with_training(self, **facts) -> "Fitted":
        """Return the same with what has become known of the training rows."""
        return replace(self, training=replace(self.training, **facts))


def no_density(what: str, name: str) -> str:
    """Why a discriminative classifier cannot have it."""
    return (
        f"{what} needs a density of x, and {name} is discriminative: it "
        "knows p(y | x) and says nothing of x; use a generative classifier for that"
    )


# ------------------------------------------------------------------------------------------------
# Pipelines of scikit-learn that end in a classifier of this package.


def final_estimator(clf: Any, X: Any) -> tuple[Any, Any]:
    """Return the last step of a pipeline, and the rows as that step receives them.

    Parameters
    ----------
    clf : fitted Pipeline, or fitted classifier
        A classifier is returned as it is, and so are the rows.
    X : rows as the pipeline takes them

    Returns
    -------
    classifier, rows
        For what a pipeline has no method of: ``clf.predict_interval(rows)``, ``clf.explain(rows)``.
        Columns have names if the step before has them: ``set_output(transform="pandas")``.

    Examples
    --------
    >>> import bayesgen as bg
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> pipe = make_pipeline(StandardScaler(), bg.GaussianNB())
    >>> pipe = pipe.fit([[1.0], [1.4], [4.0], [4.4]], ["a", "a", "b", "b"])
    >>> clf, rows = bg.final_estimator(pipe, [[2.0]])
    >>> clf.predict_interval(rows, prob=0.9)["interval"].sel({"class": "a"}).values.round(2)
    array([[0.37, 1.  ]])
    """
    if not hasattr(clf, "steps"):
        return clf, X
    front, last = clf[:-1], clf.steps[-1][1]
    return last, front.transform(X) if front.steps else X


def through_pipelines[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Let a function of (classifier, X, ...) take pipelines, and {name: pipeline} too."""
    signature = inspect.signature(function)

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        call_arguments = signature.bind(*args, **kwargs)
        values = call_arguments.arguments
        models, X = next(iter(values.values())), values.get("X")
        many = isinstance(models, Mapping)
        if not any(hasattr(m, "steps") for m in (models.values() if many else [models])):
            return function(*args, **kwargs)
        first = next(iter(values))
        if many:
            rows = X if isinstance(X, Mapping) else dict.fromkeys(models, X)
            fitted_pipelines = {name: final_estimator(models[name], rows[name]) for name in models}
            values[first] = {name: clf for name, (clf, _) in fitted_pipelines.items()}
            values["X"] = {name: seen for name, (_, seen) in fitted_pipelines.items()}
        else:
            values[first], values["X"] = final_estimator(models, X)
            if (training := values.get("training")) is not None:
                values["training"] = (final_estimator(models, training[0])[1], *training[1:])
        call: Callable[..., R] = function
        return call(*call_arguments.args, **call_arguments.kwargs)

    return wrapped


def at_training_rows[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Let a function of (classifier, X, y, ...) fit a clone of what is not fitted to these rows.

    X, y and sample_weight are the training rows of a classifier, or pipeline, or of {name:
    classifier}. A fitted one is handed on as it is, and so is what others refuse.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        call_arguments = signature.bind(*args, **kwargs)
        arguments = call_arguments.arguments
        (first, models), (_, rows), (_, y) = list(arguments.items())[:3]
        weight = arguments.get("sample_weight")

        def ready(clf, X):
            name, last = getattr(clf, "steps", [("", clf)])[-1]
            if hasattr(last, "fitted_") or not hasattr(type(last), "estimates"):
                return clf
            key = f"{name}__sample_weight" if name else "sample_weight"
            return clone(clf).fit(X, y, **({} if weight is None else {key: weight}))

        if isinstance(models, Mapping):
            of_each = rows if isinstance(rows, Mapping) else dict.fromkeys(models, rows)
            arguments[first] = {
                k: ready(clf, of_each[k]) if k in of_each else clf for k, clf in models.items()
            }
        else:
            arguments[first] = ready(models, rows)
        call: Callable[..., R] = function
        return call(*call_arguments.args, **call_arguments.kwargs)

    return wrapped


def is_pool(clf) -> bool:
    """Return whether an estimator pools the classifiers in its ``members_``."""
    return getattr(clf, "__bayesgen_pool__", False) is True


def refuse_others(clf, function: str, *, pools: bool = True) -> None:
    """Raise TypeError unless `clf` is a classifier of this package; a pool too if none may be."""
    pool = is_pool(clf)
    if hasattr(type(clf), "estimates") and (pools or not pool):
        return
    name = type(clf).__name__
    hint = ""
    if pool:
        hint = ", which has no prior and posterior of its own: ask a member, pool.members_[name]"
    elif hasattr(clf, "steps"):
        hint = ": clf, rows = bg.final_estimator(pipeline, X) has its last step, and its rows"
    raise TypeError(f"{function} takes a generative classifier of bayesgen, got a {name}{hint}")


def fitted_of(clf, function: str, *, pools: bool = False) -> Fitted:
    """Return what a classifier of this package, and no pool unless `pools`, has learnt.

    Raises
    ------
    TypeError
        If it is something else.
    NotFittedError
        If it is not fitted.
    """
    refuse_others(clf, function, pools=pools)
    if not hasattr(clf, "fitted_"):
        raise NotFittedError(
            f"{function} needs a fitted classifier, and this {type(clf).__name__} is not: call "
            "fit(X, y) first"
        )
    fitted: Fitted = clf.fitted_
    return fitted
