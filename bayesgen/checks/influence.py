r"""Find training rows whose label the others contradict, and the influence of each row.

The influence of row i is a difference of two leave-one-out scores of all other rows,

.. math:: \sum_{j \ne i} \log p(y_j \mid x_j, D_{-i,-j}) - \log p(y_j \mid x_j, D_{-j}),

exact where the posterior has a closed form: the statistics of all rows but i are added up by
halving, and `posterior.removal` takes row j away. Source: Vehtari, Gelman and Gabry (2017),
Practical Bayesian model evaluation using leave-one-out, for the score; Cook and Weisberg (1982),
Residuals and influence in regression, chapter 3, for leaving out pairs.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.datatree import tree
from bayesgen.families.errors import NoClosedFormError
from bayesgen.families.names import CLASS, OBS
from bayesgen.io.progress import row_progress
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior.exact import ExactPosterior, fragile, leave_out_each, log_predictive_without
from bayesgen.posterior.fitted import at_training_rows, fitted_of, through_pipelines
from bayesgen.posterior.model import ClassStats, log_weights_without
from bayesgen.predict.leave_one_out import training_rows

if TYPE_CHECKING:
    import xarray as xr

_SCORES = 4_000_000  # that are computed without being asked for: all pairs of 2000 rows


@at_training_rows
@through_pipelines
def row_influence(
    clf: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    rows: Any = None,
    progressbar: bool = True,
) -> "xr.Dataset":
    """Find training labels that the other rows contradict, and rows that harm the others.

    Parameters
    ----------
    clf : classifier
        If it is not fitted, a clone is fitted to these rows.
    X, y, sample_weight : the training rows
        The arguments that `fit` was given; they are checked against the statistics.
    rows : array of int, optional
        Positions of the rows whose influence is wanted; the result has these alone. Default: all
        rows, with the influence of each of up to 2000 rows, and of 4 million / N of the least
        probable labels where there are more.
    progressbar : bool
        On stderr, if that is a terminal.

    Returns
    -------
    xarray.Dataset
        (obs_id, the index of a frame): ``position``; ``label``, as given; ``probability``, p(y_i |
        x_i, D without row i): if small, the label is wrong or the row unusual; ``other``, the most
        probable other label without the row, and ``other_probability``; ``change``, by how many
        nats the summed log p(y_j | x_j, D without row j) of all other rows rises when row i is
        forgotten as well: rows with a large one harm the others. NaN if it was not computed:
        importance weights after a fit by draws do not leave out pairs of rows. After a fit by draws
        also ``pareto_k``. Rows without a label or a weight are not in the result; with one class
        there is no ``other``.

    Raises
    ------
    ValueError
        If these are not the training rows.
    NoClosedFormError
        If `rows` are given and the fit is by draws.

    Notes ----- Each influence costs a pass over the rows: of all classes, or of the row's class
    alone if classes do not share parameters. Forgetting a row takes its whole weight away; in the
    sum each of the others counts once, whatever its weight.

    Examples
    --------
    >>> import bayesgen as bg
    >>> X, y = bg.datasets.load_penguins()
    >>> X = X[["bill_length_mm", "bill_depth_mm"]].dropna()
    >>> y = y[X.index].to_numpy().copy()
    >>> y[[3, 200]] = "Gentoo", "Adelie"  # two wrong labels
    >>> found = bg.row_influence(bg.QuadraticDiscriminant().fit(X, y), X, y)
    >>> worst = found.sortby("probability").isel(obs_id=[0, 1])
    >>> worst["position"].values.tolist(), worst["other"].values.tolist()
    ([3, 200], ['Adelie', 'Gentoo'])
    >>> worst["obs_id"].values.tolist()  # row 3 of the file has missing cells
    [4, 201]
    >>> worst["change"].values.round(2)  # nats: the others lose by forgetting one, and gain
    array([-1.25,  0.6 ])
    """
    fitted = fitted_of(clf, "row_influence", pools=True)
    own: Any = fitted.posterior
    exact = own.exact
    training = training_rows(fitted, X, y, sample_weight)
    at, (encoded, codes, weight) = training.scored, training.only_scored()
    joint, k = own.log_joint_without(encoded, codes, weight)
    log_p = log_softmax(joint)
    true = np.arange(len(at)), codes
    wrong = log_p.copy()
    wrong[true] = -np.inf
    other = wrong.argmax(axis=1)
    if rows is None:
        shown = np.arange(len(at))
        least = np.argsort(log_p[true], kind="stable")[: max(1, _SCORES // len(at))]
        asked = np.sort(least)
    else:
        if not exact:
            raise NoClosedFormError(
                "the influence of a row on the others needs the posterior in closed form: draws "
                "cannot leave out pairs of rows; leave `rows` out for the probabilities alone"
            )
        shown = asked = _positions(rows, at, len(training.codes))
    change = np.full(len(at), np.nan)
    if exact:
        with row_progress("leaving out", float(len(asked)), progressbar) as advance:
            _fill(own, encoded, codes, weight, joint, asked, change, advance)
    values = {
        "position": at,
        "label": clf.classes_[codes],
        "probability": np.exp(log_p[true]),
        "other": clf.classes_[other],
        "other_probability": np.exp(wrong.max(axis=1)),
        "change": change,
    }
    if len(clf.classes_) == 1:
        del values["other"], values["other_probability"]
    if k is not None:
        values["pareto_k"] = k
    variables = {name: ((OBS,), value[shown]) for name, value in values.items()}
    names = tree.row_names(X)
    return tree.group(variables, {OBS: at[shown] if names is None else names[at[shown]]})


def _positions(rows: Any, at: Array, n: int) -> Array:
    """Where the rows that the user names are among those that are scored."""
    asked = np.atleast_1d(np.asarray(rows))
    if asked.ndim != 1 or asked.dtype.kind not in "iu":
        raise ValueError("rows must be positions of training rows, as integers")
    place = np.full(n, -1)
    place[at] = np.arange(len(at))
    inside = (asked >= 0) & (asked < n)
    if not inside.all():
        raise ValueError(f"rows must be from 0 to {n - 1}, got {asked[~inside][0]}")
    found = place[asked]
    if (found < 0).any():
        raise ValueError(f"row {asked[found < 0][0]} has no label or no weight")
    return found


def _fill(
    own: ExactPosterior,
    X: Any,
    codes: Array,
    weight: Array,
    joint: Array,
    asked: Array,
    change: Array,
    advance: Callable[[float, int], None],
) -> None:
    """Entries `asked` of `change`."""
    n_classes = len(own.model.alpha)
    before = log_softmax(joint)[np.arange(len(codes)), codes]
    # log p(x_j | c) alone: the class weights change with every row that leaves
    log_x = joint - log_weights_without(own.prior.alpha, own.stats.count, codes, weight)
    apart = all(
        dims[:1] == (CLASS,)
        for block in own.model.family.blocks()
        for dims in block.family.params.values()
    )
    done = 0

    def stats_of(rows: Array) -> ClassStats:
        return own.prior.stats(X[rows], codes[rows], n_classes, weight[rows])

    def visit(rows: Array, stats: ClassStats) -> None:
        nonlocal done
        (i,) = rows
        less = replace(own, model=own.prior.update(stats), stats=stats)
        others = np.delete(np.arange(len(codes)), i)
        after = _one_class(less, X, codes, weight, log_x, i) if apart else None
        if after is None:
            found, _ = less.log_joint_without(X[others], codes[others], weight[others])
        else:
            found = after[others]
        scores = log_softmax(found)[np.arange(len(others)), codes[others]]
        change[i] = scores.sum() - before[others].sum()
        done += 1
        advance(done, done)

    rest = stats_of(np.delete(np.arange(len(codes)), asked))
    leave_out_each([asked[i : i + 1] for i in range(len(asked))], stats_of, rest, visit)


def _one_class(
    less: ExactPosterior, X: Any, codes: Array, weight: Array, log_x: Array, i: int
) -> Array | None:
    """(N, C) leave-one-out joint densities where the class of row i alone has changed.

    `less` is the posterior without row i. None if the closed form has lost too many digits.
    """
    k = codes[i]
    own = codes == k
    own[i] = False
    inside, outside = np.flatnonzero(own), np.flatnonzero(codes != k)
    column = np.zeros(len(codes))
    left = np.ones(len(inside))
    blocks = list(less.model.family.blocks())
    for block in blocks:
        cells = X if len(blocks) == 1 else X[:, block.columns]
        single = block.family.at(CLASS, [k])
        if len(outside):
            column[outside] += single.log_predictive(cells[outside])[:, 0]
        if len(inside):
            nobody_else = np.zeros(len(inside), dtype=np.int64)
            part, kept = log_predictive_without(single, cells[inside], nobody_else, weight[inside])
            column[inside] += part[:, 0]
            left = np.minimum(left, kept)
    if len(fragile(left, column[inside, None])):
        return None
    out = log_x.copy()
    out[:, k] = column
    out += log_weights_without(less.prior.alpha, less.stats.count, codes, weight)
    return out
