r"""Find wrong labels: a noisy channel between true and given labels, on leave-one-out.

The given label y_i is drawn from row z_i of a channel, z_i the true label,

.. math:: p(y \mid z) = (1 - \varepsilon) [y = z] + \frac{\varepsilon}{C - 1} [y \ne z], \qquad
          \varepsilon \sim \text{Beta}(1, 4)

*One flip.* If the labels of all other rows are right, then by the chain rule of the evidence

.. math:: p(z_i = c \mid X, y) \propto p(c \mid x_i, D_{-i})^{\eta} \, p(y_i \mid c)

with :math:`\eta = 1`: exactly the evidences of the C relabellings of row i. A model that leaves out
dependence is too sure, and takes its own mistakes for wrong labels; wrong labels of other rows make
it too timid. The exponent :math:`\eta`, log-normal with median 1 and sd 1, is learnt together with
:math:`\varepsilon` from the probability of the given labels,
:math:`\prod_i \sum_c p(c \mid x_i, D_{-i})^\eta p(y_i \mid c)`; both are integrated out on a grid.

*Iterated.* Rows are weighted by the probability that their label is right, and the posterior is
fitted again with these weights. Each row is left out of it whole. This is repeated (mean field).

Source: Lawrence and Schölkopf (2001), Estimating a kernel Fisher discriminant in the presence of
label noise, for the channel; Natarajan et al. (2013), Learning with noisy labels.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy.special import expit, log_expit, logit
from sklearn.base import clone

from bayesgen.datatree import tree
from bayesgen.encoding.literals import shown
from bayesgen.errors import refuse_unknown
from bayesgen.families.errors import NoClosedFormError
from bayesgen.families.names import BOUND, OBS
from bayesgen.numerics.special import Array, log_softmax, log_sum_exp
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.fitted import Fitted, at_training_rows, fitted_of, through_pipelines
from bayesgen.posterior.pooled import comparable
from bayesgen.predict.draws import IntervalRequest
from bayesgen.predict.leave_one_out import training_rows

if TYPE_CHECKING:
    from bayesgen.datatree.result_table import ResultTable

_RIGHT, _WRONG = 4.0, 1.0  # Beta prior of the rate, in rows
_EXPONENTS = np.linspace(-7.0, 2.5, 11)  # logs: the first grid
_RATES = np.linspace(-30.0, 5.0, 15)  # log-odds
_CLOSER = 12  # grids that close in, at most
_SETTLED = 0.6  # of its width a grid keeps when it has closed in
_NODES = 33  # of each axis of the last grid
_NEGLIGIBLE = 12.0  # nats below the top
_IMPOSSIBLE = -1e6  # nats, in place of the log of 0
_LEAST = 1e-6  # probability that a label is right
_CELLS = 1 << 22  # numbers of one array: 32 MiB
_PASSES = 5
_GAIN = 0.1  # nats by which a pass must make the given labels more probable
_BLURRED = 1.05  # exponent of a model that the wrong labels of others make too timid


@at_training_rows
@through_pipelines
def label_errors(
    clf: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    groups: Any = None,
    label_noise: Any = "estimate",
    exponent: Any = "estimate",
    form: Literal["auto", "one flip", "iterated"] = "auto",
    prob: float | None = None,
) -> "ResultTable":
    """Return the probability that each training label is wrong, and the likely true label.

    Parameters
    ----------
    clf : classifier or pool
        If it is not fitted, a clone is fitted to these rows.
    X, y, sample_weight : the training rows
        The arguments that `fit` was given; they are checked against the statistics.
    groups : (N,), optional
        Subject or source of each row: a row is scored without its whole group. None: the groups
        that `fit` was given.
    label_noise : "estimate" or float
        Rate of wrong labels, all other classes being equally likely. ``"estimate"``: it is learnt.
    exponent : "estimate" or float
        Power of the leave-one-out probabilities. 1: those of the model. Estimated: the power that
        the given labels support; a pool needs it less than a single classifier.
    form : {"auto", "one flip", "iterated"}
        ``"one flip"`` takes the labels of all other rows as they are. ``"iterated"`` fits up to 5
        times to rows weighted by the probability that their label is right; a pass costs a fit.
        ``"auto"`` iterates while passes make the given labels more probable, if the exponent of one
        flip is above 1.05: then wrong labels of other rows blur the probabilities. Below 1 the
        model errs, and passes would follow its errors. After a fit by draws it takes one flip.
    prob : float in (0, 1), optional
        Probability of the interval of the rate; default ``az.rcParams["stats.ci_prob"]``.

    Returns
    -------
    xarray.Dataset, which prints as a table
        (obs_id, the index of a frame): ``wrong``, probability that the label is wrong; ``label``,
        as given; ``other``, the most probable label if it is wrong; ``position``. Rows without a
        label or a weight are not in it. ``noise_rate``, the share of wrong labels, and
        ``noise_rate_interval`` (bound); ``exponent``. Attributes:
        ``form``, ``passes``.

    Raises
    ------
    ValueError
        If these are not the training rows, or there are fewer than two classes.
    NoClosedFormError
        If ``form="iterated"`` is asked of a fit by draws.

    Notes
    -----
    Check the rows with the highest probabilities first; those around 1/2 are undecided. Errors that
    depend on x (labels that are wrong only where classes are near each other) look like overlap of
    the classes and are not found: with 20 % of the labels changed in this way, the mean of
    ``wrong`` was .001 to .06. A known `label_noise` with ``exponent=1`` finds more of them.

    ``found.to_dataframe().groupby(["label", "other"])["wrong"].sum()`` is the expected number of
    errors of each kind.

    Probabilities are calibrated if the model is right and up to 10 % of the labels are flipped at
    random: 30 % of the labels with a stated probability of .3 are wrong. With 25 % they are too
    low: about 50 and 70 % of the labels with .3 and .5 were wrong.

    With labels flipped at random in eight open tables and a pool of three classifiers, the log loss
    of "is wrong" was at most .47 times that of one minus the leave-one-out probability. In clean
    tables the mean of ``wrong`` was at most .003 (``tests/benchmarks/label_errors.py``). A single
    classifier that is too sure (exponent below 1/2) finds fewer; use a pool of it.

    Examples
    --------
    >>> import bayesgen as bg
    >>> X, y = bg.datasets.load_penguins()
    >>> y[[4, 201]] = "Gentoo", "Adelie"  # two wrong labels
    >>> found = bg.label_errors(bg.MixedNB().fit(X, y), X, y)
    >>> found[["wrong", "label", "other"]].to_pandas().nlargest(3, "wrong").round(2)
            wrong      label   other
    obs_id
    4        1.00     Gentoo  Adelie
    201      1.00     Adelie  Gentoo
    306      0.14  Chinstrap  Adelie
    """
    refuse_unknown("form", form, ("auto", "one flip", "iterated"))
    request = IntervalRequest.of(prob, "eti")
    rows = _scored_rows(clf, X, y, sample_weight, groups)
    result, passes = _found(rows, clf.classes_, label_noise, exponent, form)
    rate, ends = result.rate(request.prob)
    names, classes = tree.row_names(X), clf.classes_
    table = tree.group(
        {
            "wrong": ((OBS,), result.wrong),
            "label": ((OBS,), classes[rows.codes]),
            "other": ((OBS,), classes[result.others.argmax(axis=1)]),
            "position": ((OBS,), rows.positions),
            "noise_rate": ((), np.array(rate)),
            "noise_rate_interval": ((BOUND,), ends),
            "exponent": ((), np.array(result.exponent)),
        },
        {
            OBS: rows.positions if names is None else names[rows.positions],
            BOUND: ["lower", "upper"],
        },
    ).assign_attrs(form="iterated" if passes else "one flip", passes=passes, prob=request.prob)
    title = (
        f"probability that each label is wrong, the largest first; {100 * rate:.1f} % of labels "
        f"({100 * request.prob:g} % interval {100 * ends[0]:.1f} to {100 * ends[1]:.1f} %)"
    )
    return tree.result_table(table, title, ["wrong", "label", "other"], first="wrong")


# ---------------------------------------------------------------------------------- leaving out


class ScoredRows(NamedTuple):
    """Training rows with a label and a weight, each scored without itself."""

    scores: Array  # (n, C) comparable log joint densities
    codes: Array  # (n,)
    weight: Array  # (n,)
    positions: Array  # (n,) positions among the rows given
    again: Callable[[Array], Array] | None  # their scores when they weigh (n,); None: by draws


def _scored_rows(clf, X, y, sample_weight=None, groups=None) -> ScoredRows:
    """Return the training rows of a classifier or a pool, each scored without its group."""
    fitted = fitted_of(clf, "label_errors", pools=True)
    rows = _of_fit(fitted, X, y, sample_weight, groups)
    if not fitted.posterior.members:
        return rows

    def again(weight: Array) -> Array:
        every = np.zeros(len(y))
        every[rows.positions] = weight
        subjects = fitted.training.groups if groups is None else groups
        again = clone(clf).fit(X, y, sample_weight=every, groups=subjects)
        return _scored_rows(again, X, y, every, subjects).scores

    return rows._replace(again=again)


def _of_fit(fitted: Fitted, X, y, sample_weight, groups) -> ScoredRows:
    rows = training_rows(fitted, X, y, sample_weight, groups=groups)
    posterior, positions, some = fitted.posterior, rows.scored, rows.only_scored()

    def again(weight: Array) -> Array:
        reweighted = some._replace(weight=weight)
        stats = posterior.prior.stats(
            reweighted.X, reweighted.codes, len(fitted.classes), weight, reweighted.groups
        )
        new = ExactPosterior(posterior.prior, posterior.prior.update(stats), stats)
        return comparable(new.log_joint_without(*reweighted)[0])

    scores = comparable(posterior.log_joint_without(*some)[0])
    return ScoredRows(
        scores, some.codes, some.weight, positions, again if posterior.exact else None
    )


def _found(
    rows: ScoredRows, classes: Array, label_noise, exponent, form: str
) -> "tuple[_Posterior, int]":
    """Posterior of the true labels, and how many passes have changed it."""
    if len(classes) < 2:
        raise ValueError(
            f"label errors need two classes, and every label is {classes.tolist()[0]!r}: there is "
            "no other that could be right"
        )
    stated = _log_odds(label_noise, len(classes)), _log_exponent(exponent)
    forced = form == "iterated"
    if rows.again is None and forced:
        raise NoClosedFormError(
            "form='iterated' fits again to weighed rows: after a fit by draws use form='one flip'"
        )
    current = _posterior(rows.scores, rows, *stated)
    if rows.again is None or form == "one flip" or not (forced or current.exponent > _BLURRED):
        return current, 0
    for passes in range(_PASSES):
        new = _posterior(rows.again(rows.weight * current.right), rows, *stated)
        if not forced and new.log_evidence < current.log_evidence + _GAIN:
            return current, passes
        current = new
    return current, _PASSES


# ---------------------------------------------------------------------------------- posterior


def _log_odds(label_noise: Any, n_classes: int) -> float | None:
    """Return the log-odds of a stated rate of wrong labels; None: it is estimated."""
    rate = _stated("label_noise", label_noise)
    if rate is None:
        return None
    most = 1 - 1 / n_classes
    if not 0 <= rate < most:
        raise ValueError(
            f"label_noise must be a rate of at least 0 and below {most:.3g}, got {rate:g}: with "
            f"{n_classes} classes, labels that are wrong as often are no evidence of the true ones"
        )
    return max(float(logit(rate)), _IMPOSSIBLE)


def _log_exponent(exponent: Any) -> float | None:
    value = _stated("exponent", exponent)
    if value is not None and not 0 < value < np.inf:
        raise ValueError(f"exponent must be 'estimate' or a number > 0, got {value:g}")
    return None if value is None else float(np.log(value))


def _stated(name: str, value: Any) -> float | None:
    """Return a number that is given in place of "estimate"."""
    if isinstance(value, str):
        refuse_unknown(name, value, ("estimate",))
        return None
    if not isinstance(value, Real):
        raise ValueError(f"{name} must be 'estimate' or a number, got {shown(value)}")
    return float(value)


@dataclass(frozen=True)
class _Posterior:
    """True labels, exponent and rate given the scores of rows."""

    wrong: Array  # (n,)
    others: Array  # (n, C) probabilities of true classes if the label is wrong
    exponent: float
    log_odds: Array  # (R,) of the rate, with `mass`
    mass: Array  # (R,)
    log_evidence: float  # of the given labels

    @property
    def right(self) -> Array:
        """Return (n,) probability that the label is right; 0 would be no row."""
        return np.maximum(1 - self.wrong, _LEAST)

    def rate(self, prob: float) -> tuple[float, Array]:
        """Return the mean of the rate, and the ends of its interval."""
        below = np.cumsum(self.mass) - self.mass / 2
        tails = np.array([1 - prob, 1 + prob]) / 2
        ends = expit(np.interp(tails, below, self.log_odds))
        return float(self.mass @ expit(self.log_odds)), ends


def _posterior(
    scores: Array, rows: ScoredRows, log_odds: float | None, log_exponent: float | None
) -> _Posterior:
    """Integrate log exponent u and log-odds l of the rate on a grid."""
    here, n_classes = (np.arange(len(scores)), rows.codes), scores.shape[1]
    others_alike = np.full(scores.shape, -np.log(n_classes - 1))  # log p(y | z) if it is wrong
    others_alike[here] = -np.inf

    def parts(u: Array) -> Iterator[tuple[Array, Array]]:
        """Yield (n,) log probabilities of the given label, right and wrong, but for the rate."""
        for some in np.array_split(u, -(-len(u) * scores.size // _CELLS)):
            log_q = log_softmax(np.exp(some)[:, None, None] * scores)
            yield from zip(log_q[:, *here], log_sum_exp(log_q + others_alike), strict=True)

    def log_density(grid: list[Array]) -> Array:
        u, l = grid
        log_p = np.empty((len(u), len(l)))
        for k, (right, wrong) in enumerate(parts(u)):
            for r in range(len(l)):
                terms = right + log_expit(-l[r]), wrong + log_expit(l[r])
                log_p[k, r] = rows.weight @ np.logaddexp(*terms)
        if log_exponent is None:
            log_p -= np.square(u)[:, None] / 2
        if log_odds is None:
            log_p += _WRONG * log_expit(l) + _RIGHT * log_expit(-l)
        return log_p

    grid, log_p = _integrated(
        log_density,
        [
            _EXPONENTS if log_exponent is None else np.array([log_exponent]),
            _RATES if log_odds is None else np.array([log_odds]),
        ],
    )
    cell = [v[1] - v[0] for v in grid if len(v) > 1]
    log_evidence = float(log_sum_exp(log_p.reshape(1, -1))[0] + np.log(cell).sum())
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    wrong = np.zeros(len(scores))
    for k, (of_right, of_wrong) in enumerate(parts(grid[0])):
        for r in np.flatnonzero(p[k]):
            l = grid[1][r]
            gap = of_wrong - of_right + log_expit(l) - log_expit(-l)
            wrong += p[k, r] * expit(gap)
    u = float(p.sum(axis=1) @ grid[0])
    others = np.exp(log_softmax(np.exp(u) * scores + others_alike))
    exponent = float(np.exp(u))
    return _Posterior(wrong, others, exponent, grid[1], p.sum(axis=0), log_evidence)


def _integrated(
    log_density: Callable[[list[Array]], Array], grid: list[Array]
) -> tuple[list[Array], Array]:
    """Equally spaced nodes of each axis where the mass is, and the log density there."""
    for _ in range(_CLOSER):
        log_p = log_density(grid)
        before, grid = grid, []
        for axis, v in enumerate(before):
            kept = v[log_p.max(axis=1 - axis) > log_p.max() - _NEGLIGIBLE]
            step = v[1] - v[0] if len(v) > 1 else 0.0
            grid.append(np.linspace(kept[0] - step, kept[-1] + step, len(v)))
        if all(np.ptp(v) >= _SETTLED * np.ptp(was) for v, was in zip(grid, before, strict=True)):
            break
    grid = [v if len(v) == 1 else np.linspace(v[0], v[-1], _NODES) for v in grid]
    return grid, log_density(grid)
