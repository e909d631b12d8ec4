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
from bayesgen.families.names import ACTION, OBS, Method
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import pandas as pd

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


class Costs(NamedTuple):
    """What each decision costs, by the true class."""

    values: Array  # (class, decision)
    decisions: Array  # (decision,) labels

    def expected(self, p: Array) -> Array:
        """Return (N, decision) expected costs under class probabilities (N, C)."""
        least = self.values.min(axis=0)  # apart: the same for every class, whatever p sums up to
        cost: Array = least + p @ (self.values - least)
        return cost


def read_costs(cost, classes: Array, reject: float | None = None) -> Costs:
    """Costs in the order of `classes`, checked; arguments as in `decide`."""
    import pandas as pd

    labels = classes.tolist()
    if cost is None:
        table = pd.DataFrame(1.0 - np.eye(len(labels)), labels, labels)
    elif isinstance(cost, Mapping):
        table = _of_mapping(cost, labels)
    elif isinstance(cost, pd.DataFrame):
        table = cost
    else:
        values = np.asarray(cost)
        if values.shape != (len(labels),) * 2:
            raise ValueError(
                f"cost has shape {values.shape}, but there are {len(labels)} classes: give a "
                f"(class, decision) array {(len(labels),) * 2} in the order {labels}, "
                "or a DataFrame or dict that names its decisions"
            )
        table = pd.DataFrame(values, labels, labels)
    if len(table) != len(labels) or set(table.index) != set(labels):
        raise ValueError(f"the rows of cost must be the classes {labels}, got {list(table.index)}")
    if table.columns.empty or not table.columns.is_unique:
        raise ValueError(f"cost must name each decision once, got {list(table.columns)}")
    if reject is not None:
        table = table.assign(**{REJECT: _cost_of_rejection(reject, table.columns)})
    decisions = _labels(table.columns.tolist())
    try:
        values = table.reindex(labels).to_numpy(dtype=np.float64)  # .loc would mask by booleans
    except (TypeError, ValueError):
        raise ValueError(
            "cost must be numbers: a (class, decision) array, a DataFrame with the true classes "
            f"as its index, or {{class: {{decision: cost}}}}; got {cost!r}"
        ) from None
    for c, a in np.argwhere(~(np.isfinite(values) & (values >= 0)))[:1]:
        raise ValueError(
            f"cost of {decisions[a]!s} where {labels[c]!s} is true must be a finite number "
            f">= 0, got {values[c, a]:g}; for gains, subtract each from the largest: the "
            "decisions stay the same"
        )
    return Costs(values, decisions)


def _of_mapping(cost: Mapping[Any, Any], labels: list[Any]) -> "pd.DataFrame":
    """Return the table of {class: {decision: cost}}: classes first, NaN where nothing is said."""
    import pandas as pd

    if not all(isinstance(row, Mapping) for row in cost.values()):
        raise ValueError(f"cost as a dict must be {{class: {{decision: cost}}}}, got {cost!r}")
    rows = {c: {c: 0.0, **row} for c, row in cost.items()}
    named = dict.fromkeys(decision for row in cost.values() for decision in row)
    classes_first = [c for c in labels if c in named]
    decisions = classes_first + [decision for decision in named if decision not in labels]
    return pd.DataFrame.from_dict(rows, orient="index").reindex(columns=decisions)


def _cost_of_rejection(reject: float, decisions: "pd.Index") -> float:
    price = np.asarray(reject)
    if price.shape != () or price.dtype.kind not in "fiu" or not 0 <= price < np.inf:
        raise ValueError(f"reject must be one finite number >= 0, the cost, got {reject!r}")
    if REJECT in decisions:
        raise ValueError(f"cost has a decision {REJECT!r} already: leave `reject` out")
    return float(price)


def _labels(values) -> Array:
    """One array of labels; what NumPy would turn into strings stays what it is."""
    if all(isinstance(v, str) for v in values) or not any(isinstance(v, str) for v in values):
        return np.array(values)
    labels = np.empty(len(values), dtype=object)
    labels[:] = values
    return labels
