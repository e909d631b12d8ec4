r"""Decisions of lowest expected cost under p(y | x, D).

.. math:: a^*(x) = \arg\min_a \sum_c p(y = c \mid x, D) \, \text{cost}(c, a)

No more than the posterior predictive enters: given the costs, the spread of p(y | x, theta) does
not change what is best to do now, only what more training rows would be worth. Source: Chow (1970),
On optimum recognition error and reject tradeoff; Murphy (2012), section 5.7.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesgen.datatree import tree
from bayesgen.datatree.tree import named_rows
from bayesgen.encoding.labels import codes_of
from bayesgen.families.names import ACTION, OBS, Method
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    from bayesgen.datatree.result_table import ResultTable

REJECT: Final = "reject"


@named_rows
def decide(
    clf: Any,
    X: Any,
    cost: Any = None,
    reject: float | None = None,
    class_prior: Any = None,
    method: Method = "posterior_predictive",
    typicality: float | None = None,
) -> "ResultTable":
    """Return the decision of lowest expected cost for each row.

    Parameters
    ----------
    clf : fitted classifier
    X : (N, D)
    cost : array (class, decision), pandas.DataFrame, or {class: {decision: cost}}, optional
        What a decision costs if a class is the true one, >= 0, in any one unit. The decisions of
        an array are the classes, in the order of ``clf.classes_``. A DataFrame has the true
        classes as its index and the decisions as its columns; they may be fewer or more than the
        classes, or others. In a dict, the decision for the true class itself costs 0 if left out.
        None: a wrong class costs 1.
    reject : float, optional
        Cost of leaving the row undecided, whatever its class. It adds the decision ``"reject"``. If
        every mistake costs 1, rows whose most probable class has less than 1 - `reject` get it.
    class_prior, method
        As in ``clf.predict_proba``.
    typicality : float in (0, 1), optional
        Rows that no class finds typical, with ``clf.typicality(X)`` below this for every class, get
        the decision ``"reject"`` whatever the costs: they are like no training row, and
        p(y | x, D) is then an extrapolation. About this share, or less, of the rows like the
        training rows is rejected. The typicality for a class of n rows is at least 1 / (n + 1). If
        a class has no rows, typicality rejects nothing.

    Returns
    -------
    xarray.Dataset, which prints as a table
        ``decision`` (obs_id); ``expected_cost`` (obs_id, action), of every
        decision; ``margin`` (obs_id), the extra cost of the second best: inf if there is no second,
        NaN for a row that is rejected because it is not typical. Ties go to the first decision,
        ``"reject"`` last. With `typicality` also ``typicality`` (obs_id), the largest of any class.

    Raises
    ------
    ValueError
        If a cost is missing, negative or not finite, or if classes and costs do not match; if
        `typicality` is asked for and the scores of the training rows are not known.

    Examples
    --------
    A missed fault costs ten times a false alarm; a look by hand costs 0.4.

    >>> import bayesgen as bg
    >>> X, y = [[1.0], [1.4], [1.2], [4.0], [4.4]], ["fine", "fine", "fine", "fault", "fault"]
    >>> clf = bg.GaussianNB().fit(X, y)
    >>> cost = {"fine": {"fault": 1.0}, "fault": {"fine": 10.0}}
    >>> bg.decide(clf, [[1.2], [2.2], [4.2]], cost, reject=0.4)["decision"].values
    array(['fine', 'reject', 'fault'], dtype='<U6')
    >>> bg.decide(clf, [[1.2], [90.0]], cost, typicality=0.35)["decision"].values
    array(['fine', 'reject'], dtype='<U6')
    """
    check_is_fitted(clf, "classes_")
    costs = read_costs(cost, clf.classes_, reject)
    options = {} if class_prior is None else {"class_prior": class_prior}
    if method != "posterior_predictive":  # which a pool does not have
        options["method"] = method
    p = np.asarray(clf.predict_proba(X, **options))
    expected = costs.expected(p)
    best = expected.argmin(axis=1)
    if len(costs.decisions) > 1:
        first, second = np.partition(expected, 1, axis=1)[:, :2].T
        margin = second - first
    else:
        margin = np.full(len(expected), np.inf)
    decision, extras = costs.decisions[best], {}
    if typicality is not None:
        extras["typicality"] = ((OBS,), largest := _largest_typicality(clf, X, typicality))
        odd = largest < typicality
        decision = _labels(
            [REJECT if o else d for o, d in zip(odd, decision.tolist(), strict=True)]
        )
        margin = np.where(odd, np.nan, margin)
    table = tree.group(
        {
            "decision": ((OBS,), decision),
            "expected_cost": ((OBS, ACTION), expected),
            "margin": ((OBS,), margin),
            **extras,
        },
        {ACTION: costs.decisions},
    )
    return tree.result_table(table, "decision of lowest expected cost for each row")


def _largest_typicality(clf, X, least) -> Array:
    """Return (N,) tail probability of the class that finds the row most typical."""
    value = np.asarray(least)
    if value.shape != () or value.dtype.kind not in "fiu" or not 0 < value < 1:
        raise ValueError(f"typicality must be a number between 0 and 1, got {least!r}")
    if not hasattr(clf, "typicality"):
        raise NotImplementedError(
            f"typicality= needs a density of rows, and a {type(clf).__name__} has none"
        )
    largest: Array = clf.typicality(X)["by_class"].values.max(axis=1)
    return largest


class _Costs(NamedTuple):
    values: Array  # (class, decision)
    decisions: Array  # (decision,) labels

    def expected(self, p: Array) -> Array:
        """Return (N, decision) expected costs under class probabilities (N, C)."""
        least = self.values.min(axis=0)  # apart: the same for every class, whatever p sums up to
        cost: Array = least + p @ (self.values - least)
        return cost


def read_costs(cost, classes: Array, reject: float | None = None) -> _Costs:
    """Costs in the order of `classes`, checked; arguments as in `decide`."""
    if reject is not None:
        return _with_reject(read_costs(cost, classes), reject)
    if cost is None:
        return _Costs(1.0 - np.eye(len(classes)), classes)
    if isinstance(cost, Mapping):
        costs = _of_mapping(cost, classes)
    elif hasattr(cost, "index") and hasattr(cost, "columns"):
        costs = _of_frame(cost, classes)
    else:
        values = _numbers(cost)
        if values.shape != (len(classes), len(classes)):
            raise ValueError(
                f"cost has shape {values.shape}, but there are {len(classes)} classes: give a "
                f"(class, decision) array {(len(classes),) * 2} in the order {classes.tolist()}, "
                "or a DataFrame or dict that names its decisions"
            )
        costs = _Costs(values, classes)
    bad = ~(np.isfinite(costs.values) & (costs.values >= 0))
    if bad.any():
        c, a = np.argwhere(bad)[0]
        raise ValueError(
            f"cost of {costs.decisions[a]!s} where {classes[c]!s} is true must be a finite number "
            f">= 0, got {costs.values[c, a]:g}; for gains, subtract each from the largest: the "
            "decisions stay the same"
        )
    return costs


def _numbers(values) -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "cost must be numbers: a (class, decision) array, a DataFrame with the true classes "
            f"as its index, or {{class: {{decision: cost}}}}; got {values!r}"
        ) from None


def _of_frame(cost, classes: Array) -> _Costs:
    order = _rows_by_class(list(cost.index), classes, "the index of cost")
    decisions = list(cost.columns)
    if not decisions or len(set(decisions)) < len(decisions):
        raise ValueError(f"the columns of cost must name each decision once, got {decisions}")
    return _Costs(_numbers(cost)[order], _labels(decisions))


def _of_mapping(cost, classes: Array) -> _Costs:
    order = _rows_by_class(list(cost), classes, "the keys of cost")
    rows = [list(cost.values())[i] for i in order]
    if not all(isinstance(row, Mapping) for row in rows):
        raise ValueError(f"cost as a dict must be {{class: {{decision: cost}}}}, got {cost!r}")
    named = dict.fromkeys(decision for row in rows for decision in row)
    if not named:
        raise ValueError(f"cost names no decision: {cost!r}")
    # the classes first, then other decisions as they come
    decisions = [c for c in classes.tolist() if c in named]
    decisions += [decision for decision in named if decision not in decisions]
    for c, row in zip(classes.tolist(), rows, strict=True):
        for decision in decisions:
            if decision not in row and decision != c:
                raise ValueError(f"cost does not say what {decision!r} costs where {c!r} is true")
    values = [[row.get(d, 0.0) for d in decisions] for row in rows]
    return _Costs(_numbers(values), _labels(decisions))


def _rows_by_class(labels, classes: Array, what: str) -> Array:
    """Return where each class is among `labels`, which must be the classes in any order."""
    try:
        codes = codes_of(_labels(labels), classes)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be the classes {classes.tolist()}, got {labels}") from None
    missing = np.setdiff1d(np.arange(len(classes)), codes)
    if missing.size:
        raise ValueError(f"cost has no row for the class(es) {classes[missing].tolist()}")
    if len(codes) > len(classes):
        raise ValueError(f"{what} has a class twice: {labels}")
    return np.argsort(codes)


def _with_reject(costs: _Costs, reject: float) -> _Costs:
    price = np.asarray(reject)
    if price.shape != () or price.dtype.kind not in "fiu" or not 0 <= price < np.inf:
        raise ValueError(f"reject must be one finite number >= 0, the cost, got {reject!r}")
    decisions = costs.decisions.tolist()
    if REJECT in decisions:
        raise ValueError(f"cost has a decision {REJECT!r} already: leave `reject` out")
    column = np.full((len(costs.values), 1), float(price))
    return _Costs(np.hstack([costs.values, column]), _labels([*decisions, REJECT]))


def _labels(values) -> Array:
    """One array of labels; what NumPy would turn into strings stays what it is."""
    if all(isinstance(v, str) for v in values) or not any(isinstance(v, str) for v in values):
        return np.array(values)
    labels = np.empty(len(values), dtype=object)
    labels[:] = values
    return labels
