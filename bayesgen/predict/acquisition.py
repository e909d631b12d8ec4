r"""Choose the missing cell of a row to measure next, and when to stop measuring.

With x_o the known cells of a row, the cell of column j has the values v with probability
:math:`p(v \mid x_o, D) = \sum_c p(c \mid x_o, D)\, p(v \mid c, x_o, D)`. Knowing it is worth

.. math:: \text{gain}_j = H(y \mid x_o, D) - \sum_v p(v \mid x_o, D)\, H(y \mid x_o, v, D) \ge 0,
          \qquad \text{saving}_j = r(x_o) - \sum_v p(v \mid x_o, D)\, r(x_o, v)

for decisions of expected cost :math:`r(x) = \min_a \sum_c \text{cost}(c, a)\, p(c \mid x, D)`.
Parameters are integrated out. Categories, bits and bins are summed over. Real cells are integrated
by Gauss-Legendre panels between the quantiles of all classes, whose weights are normalised: a
column is then a channel with finitely many values, so that gains are not negative.

Tempered: :math:`\tilde p(c \mid x) \propto \pi_c\, p(x \mid c, D)^\eta` takes the place of
p(c | x, D), and p(v | c, x_o, D) stays. The updates then assume another
distribution of v: a gain may be negative, and gains do not add up.

Source: Lindley (1956), On a measure of the information provided by an experiment; Howard (1966),
Information value theory; Heckerman, Horvitz and Middleton (1993), for myopic stopping.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax as log_soft
from scipy.special import xlogy

from bayesgen.datatree import tree
from bayesgen.encoding.tables import find_column
from bayesgen.families.capabilities import StudentCells
from bayesgen.families.names import FEATURE, METHODS, OBS
from bayesgen.families.shared.separate_columns import separate_columns
from bayesgen.numerics.seeds import generator
from bayesgen.numerics.special import Array
from bayesgen.posterior.fitted import Fitted, fitted_of
from bayesgen.posterior.model import log_weights
from bayesgen.predict import incomplete
from bayesgen.predict.costs import read_costs
from bayesgen.predict.leave_one_out import log_weights_of, rows_of_fit

if TYPE_CHECKING:
    import xarray as xr

Temper = float | Literal["loo"]

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(5)  # of a panel
_QUANTILES = (0.0, 0.03, 0.2, 0.5, 0.8, 0.97, 1.0)  # of draws of a class: ends of panels
_BEYOND = np.array([1.0, 4.0, 16.0, 64.0, 256.0])  # ends beyond all draws, in their range
_SPREADS = np.array([0.6, 1.4, 2.6, 5.0, 12.0, 40.0, 200.0])  # ends of panels of a t density
_DRAWS = 200  # of each class
_MOST_COUNTS = 512  # values of a count that are summed over one by one
_BLOCK = 1 << 21  # row x value at a time
_MOST_AHEAD = 1 << 26  # steps of a row that looks two measurements ahead: a second
_FUTURES, _FAR = 32, 12  # draws of each class and cells of them, where no single cell pays
_NO_GAIN = 1e-12  # a value up to this is rounding


class _Cells(NamedTuple):
    """Values that cells may have, column after column."""

    column: Array  # (J,)
    start: Array  # (J,) where the values of a column begin
    value: Array  # (T,)
    log_p: Array  # (T, C) given class and known cells; probabilities of a column sum to 1

    @classmethod
    def of(cls, column: Array, value: Array, log_p: Array) -> "_Cells":
        """From the column (T,) of each value and log weights up to a factor of column and class."""
        real = np.isfinite(log_p.max(axis=1))
        column, value, log_p = column[real], value[real], log_p[real]
        which, start, n = np.unique(column, return_index=True, return_counts=True)
        total = np.logaddexp.reduceat(log_p, start, axis=0) if len(start) else log_p
        return cls(which, start, value, log_p - np.repeat(total, n, axis=0))


@dataclass(frozen=True)
class _Asker:
    """A fit, its exponent and the costs: what a cell of a row is worth."""

    fitted: Fitted
    log_pi: Array  # (C,)
    replaced: bool  # whether these are not the fitted ones
    exponent: float
    loss: Array | None  # (class, action); None: the log score
    cost: Array  # (D,)

    @classmethod
    def of(
        cls,
        fitted: Fitted,
        temper: Temper,
        cost: Any,
        decision_cost: Any,
        class_prior: Any,
        training: Any,
    ) -> "_Asker":
        fitted.refuse_if_discriminative("next_measurement")
        family = fitted.family
        if family.missing != "marginalised" and not fitted.reader.sums_missing:
            raise NotImplementedError(
                f"next_measurement needs densities of rows with missing cells: {family.missing}"
            )
        own = fitted.weights_of(class_prior)
        weights = fitted.posterior.class_weights() if own is None else own
        number = isinstance(temper, int | float | np.number) and 0 < temper < np.inf
        if temper != "loo" and not number:
            raise ValueError(f"temper must be 'loo' or an exponent > 0, got {temper!r}")
        exponent = loo_exponent(fitted, training) if temper == "loo" else float(temper)
        loss = None if decision_cost is None else read_costs(decision_cost, fitted.classes).values
        log_pi, replaced = log_weights(weights), own is not None
        return cls(fitted, log_pi, replaced, exponent, loss, _costs(cost, fitted))

    def rows(self, X: Any) -> Array:
        """(N, D) encoded rows; a missing cell is NaN also where it has a category of its own."""
        found = self.fitted.read(X).encoded
        if sparse.issparse(found):
            raise TypeError(
                "next_measurement needs tables in which a cell may be missing (NaN); in a sparse X "
                "a cell that is not stored is 0: pass X.toarray()"
            )
        found = np.array(found, dtype=np.float64)
        if self.fitted.reader.sums_missing:
            encoder = self.fitted.reader.encoder
            found[(found == encoder.levels - 1) & np.array(encoder.missing)] = np.nan
        return found

    def log_x(self, X: Array) -> Array:
        """(N, C) log p(x | y = c, D) of the known cells."""
        own, method = self.fitted.posterior, METHODS[0]
        if not self.replaced:
            joint = incomplete.log_joint(self.fitted, own, X, method, None, "probability")
            return joint - self.log_pi
        equal = np.full(len(self.log_pi), 1 / len(self.log_pi))  # a weight may be 0
        joint = incomplete.log_joint(self.fitted, own, X, method, equal, "probability")
        return joint + np.log(len(equal))

    def log_p(self, log_x: Array) -> Array:
        """(N, C) log probabilities of the classes, tempered."""
        found: Array = log_soft(self.log_pi + self.exponent * log_x, axis=-1)
        return found

    # -- values that cells may have --------------------------------------------------------------

    @cached_property
    def values(self) -> tuple[Array, Array, Array]:
        """Column, value and log width (T,) each, of all columns."""
        names, found = range(len(self.fitted.column_names)), []
        for block in self.fitted.family.blocks():
            family: Any = block.family
            for k, j in enumerate(np.arange(len(names))[block.columns]):
                if family.kind == "histogram":
                    ends = family.edges[k, : family.n_edges[k]]
                    v = np.r_[np.nextafter(ends[0], -np.inf), ends]
                    width = family.log_scales[k, : len(v)]
                elif family.holds in ("real", "count"):
                    v, width = self._drawn(j, family.holds == "count")
                    if hasattr(family, "spike"):  # a point of mass, not of a length
                        v, width = np.r_[v, family.spike[k]], np.r_[width, 0.0]
                else:
                    v = np.arange(self._size(family, k, j))
                    width = np.zeros(len(v))
                found.append((np.full(len(v), j), v, width))
        column, value, width = map(np.concatenate, zip(*found, strict=True))
        order = np.argsort(column, kind="stable")
        return column[order], value[order], width[order]

    def _size(self, family: Any, k: int, j: int) -> int:
        """Number of codes of column j, column k of its family."""
        if family.holds == "bit":
            return 2
        if self.fitted.reader.sums_missing:
            return int(incomplete.gap_sizes(self.fitted)[j])
        alpha: Any = getattr(family, "alpha", None)
        return int((alpha[0, k] > 0).sum() if np.ndim(alpha) == 3 else family.n_categories[k])

    @cached_property
    def _draws(self) -> Array:
        """(C, n, D) rows of the posterior predictive of each class."""
        codes = np.repeat(np.arange(len(self.log_pi)), _DRAWS)
        rows, _ = self.fitted.posterior.simulate(np.random.default_rng(0), len(codes), codes, False)
        return np.asarray(rows, dtype=np.float64).reshape(len(self.log_pi), _DRAWS, -1)

    def _drawn(self, j: int, count: bool) -> tuple[Array, Array]:
        """Values and log widths of a real or counted column, where its draws are."""
        x = self._draws[:, :, j]
        low, high = x.min(), x.max()
        far = _BEYOND * max(high - low, 1e-9 * max(abs(low), abs(high)), 1e-300)
        ends = np.r_[np.quantile(x, _QUANTILES, axis=1).ravel(), low - far, high + far]
        if not count:
            return tuple(a[0] for a in _panels(np.sort(ends)[None]))
        if 2 * high < _MOST_COUNTS:
            v = np.arange(2 * high + 10)
        else:
            v = np.unique(np.maximum(_panels(np.sort(ends)[None])[0][0].round(), 0))
        middle = (v[1:] + v[:-1] + 1) / 2
        return v, np.log(np.diff(np.r_[v[0], np.floor(middle), v[-1] + 1]))

    @cached_property
    def common(self) -> _Cells | None:
        """Values of all columns where these are independent given the class, else None."""
        blocks = list(self.fitted.family.blocks())
        exact = self.fitted.training.exact and hasattr(self.fitted.posterior, "log_columns_without")
        if not (exact and all(getattr(b.family, "independent", False) for b in blocks)):
            return None
        column, value, width = self.values
        log_p = np.zeros((len(value), len(self.log_pi)))
        classes, one = np.arange(len(self.log_pi))[:, None, None], np.ones((1, 1, 1))
        for block in blocks:
            own = np.arange(len(self.fitted.column_names))[block.columns]
            at = np.flatnonzero(np.isin(column, own))
            place = np.searchsorted(own, column[at])
            single = separate_columns(block.family)
            for c, code in enumerate(classes):
                log_p[at, c] = single.cell_cgf(value[at], place, code, one)[0] + width[at]
        return _Cells.of(column, value, log_p)

    def cells(self, row: Array) -> _Cells:
        """Values of the missing cells of a row (D,)."""
        gaps = np.flatnonzero(np.isnan(row))
        student = self.fitted.family.capability(StudentCells)
        if student is not None and hasattr(self.fitted.posterior, "log_columns_without"):
            centre, scale, freedom = (a[:, gaps] for a in student.cells_given(row))
            ends = centre[..., None] + scale[..., None] * np.r_[-_SPREADS, 0.0, _SPREADS]
            ends = np.sort(np.moveaxis(ends, 0, 1).reshape(len(gaps), -1), axis=1)
            v, width = _panels(ends)
            r = (v - centre[..., None]) / scale[..., None]  # (C, J, K)
            power = ((freedom + 1) / 2)[..., None]
            log_p = width - power * np.log1p(r * r / freedom[..., None])
            return _Cells.of(
                np.repeat(gaps, v.shape[1]), v.ravel(), log_p.reshape(len(centre), -1).T
            )
        column, value, width = (a[np.isin(self.values[0], gaps)] for a in self.values)
        filled = np.repeat(row[None], len(value), axis=0)
        filled[np.arange(len(value)), column] = value
        return _Cells.of(column, value, self.log_x(filled) + width[:, None])

    # -- what they are worth ---------------------------------------------------------------------

    def worth(self, X: Array, log_x: Array) -> tuple[Array, Array]:
        """(N, D) gain and saving of each missing cell; NaN of a known one."""
        out, missing = np.full((2, *X.shape), np.nan), np.isnan(X)
        if self.common is None:
            for i in np.flatnonzero(missing.any(axis=1)):
                cells = self.cells(X[i])
                out[:, i, cells.column] = self._worth(log_x[i : i + 1], cells)[:, 0]
            return out[0], out[1]
        step = max(1, _BLOCK // max(1, len(self.common.value)))
        for start in range(0, len(X), step):
            found = self._worth(log_x[start : start + step], self.common)
            out[:, start : start + step, self.common.column] = found
        out[:, ~missing] = np.nan
        return out[0], out[1]

    def _worth(self, log_x: Array, cells: _Cells) -> Array:
        """(2, N, J) gain and saving of the columns of `cells`."""
        log_p = self.log_p(log_x)
        p, w = np.exp(log_p), np.exp(cells.log_p)
        log_u = self.exponent * cells.log_p
        u = np.exp(log_u - log_u.max(axis=1, keepdims=True))
        of_value = p @ w.T
        total = np.maximum(p @ u.T, 1e-300)
        mean = np.hstack([xlogy(p, p), p]) @ np.hstack([u, xlogy(u, u)]).T / total
        entropy = np.log(total) - mean
        saving = gain = _entropy(p)[:, None] - _by_column(of_value * entropy, cells)
        if self.loss is not None:
            after = [(p * cost) @ u.T for cost in self.loss.T]
            expected = _by_column(of_value * (np.min(after, axis=0) / total), cells)
            saving = self.risk(p)[:, None] - expected
        found = np.stack([gain, saving])
        return np.maximum(found, 0) if self.exponent == 1 else found  # below 0 is rounding

    def value(self, X: Array, log_x: Array, steps: int = 1) -> tuple[Array, Array]:
        """(N, D) gain, and saving less cost, looking one or two measurements ahead."""
        gain, saving = self.worth(X, log_x)
        value = saving - self.cost
        if steps == 2:
            for i in np.flatnonzero(np.isnan(X).any(axis=1)):
                value[i] += self._later(X[i], log_x[i])
        return gain, value

    def run(
        self, whole: Array, codes: Array, policy: str, random: Array, probability: float
    ) -> tuple[tuple[Any, ...], Array]:
        """`_MEASURED` of complete rows measured by a policy, and the order of a fixed one."""
        n, n_columns = whole.shape
        each, X = np.arange(n), np.full(whole.shape, np.nan)
        hidden = ~np.isnan(whole)
        paid, curve = np.zeros(n), []
        order: list[int] = []
        stopped, decided = np.full(n, np.nan), np.full(n, np.nan)
        for k in range(n_columns + 1):
            log_x = self.log_x(X)
            log_p = self.log_p(log_x)
            loss = -np.maximum(log_p[each, codes], -700.0)
            p, after = np.exp(log_p), loss
            if self.loss is not None:
                after = self.loss[codes, (p @ self.loss).argmin(axis=1)]
            wrong = log_p.argmax(axis=1) != codes
            sure = (log_p.max(axis=1) >= np.log(probability)) | ~hidden.any(axis=1)
            decided[sure & np.isnan(decided)] = k
            curve.append([a.mean() for a in (loss, wrong, paid, after, self.risk(p))])
            if policy != "random order" and k < n_columns:
                gain, value = (np.where(hidden, a, np.nan) for a in self.value(X, log_x))
            if policy == "next":
                stop, column = np.ones(n, dtype=bool), np.zeros(n, dtype=int)
                if k < n_columns:
                    stop, column = self.plan(gain, value, log_x, np.isnan(stopped))
                over = stop & np.isnan(stopped)
                stopped[over] = (paid + after)[over]
                gone = stop & hidden.any(axis=1)  # the curve goes on
                column[gone] = np.where(hidden, gain, -np.inf)[gone].argmax(axis=1)
            elif policy == "random order" and k < n_columns:
                column = random[:, k]
            elif k < n_columns:
                mean = np.where(hidden, gain, 0.0).mean(axis=0)
                mean[order] = -np.inf
                order.append(int(mean.argmax()))
                column = np.full(n, order[-1])
            if k < n_columns:
                asked = hidden[each, column]
                paid += np.where(asked, self.cost[column], 0.0)
                X[each[asked], column[asked]] = whole[each[asked], column[asked]]
                hidden[each, column] = False
        table = np.array(curve).T
        measured, after, expected = table[2:]
        total = stopped.mean()
        if policy != "next":
            total = (measured + after)[(measured + expected).argmin()]
        cells = np.where(np.isnan(decided), n_columns, decided).mean()
        found = (*table, cells, total)
        return found, np.array(order)

    @cached_property
    def _futures(self) -> Array:
        """(C, S, D, C) log densities of cells drawn from each class, column by column."""
        assert self.common is not None
        rng, cells = np.random.default_rng(0), self.common
        n_classes, n = len(self.log_pi), np.diff(np.r_[cells.start, len(cells.value)])
        out = np.zeros((n_classes, _FUTURES, len(self.cost), n_classes))
        for j, start, k in zip(cells.column, cells.start, n, strict=True):
            log_p = cells.log_p[start : start + k]
            for c in range(n_classes):
                u = (rng.permutation(_FUTURES) + rng.random()) / _FUTURES
                at = np.searchsorted(np.cumsum(np.exp(log_p[:, c])), u)
                out[c, :, j] = log_p[np.minimum(at, k - 1)]
        return out

    def risk(self, p: Array) -> Array:
        """(...) expected cost of the best decision at class probabilities (..., C)."""
        return _entropy(p) if self.loss is None else np.asarray((p @ self.loss).min(axis=-1))

    def plan(
        self, gain: Array, value: Array, log_x: Array, open_: Array | None = None
    ) -> tuple[Array, Array]:
        """(N,) whether to stop, and the next column.

        Where no single cell pays, several may: up to `_FAR` in the order of their gains, by draws
        of rows. Cells that are NaN are known; `open_` (N,): rows of which it is asked.
        """
        single = np.where(np.isnan(value), -np.inf, value)
        stop, column = single.max(axis=1) <= _NO_GAIN, single.argmax(axis=1)
        if self.common is None or not stop.any():
            return stop, column
        order = np.argsort(-np.where(np.isnan(gain), -np.inf, gain), axis=1)[:, :_FAR]
        known = np.isnan(np.take_along_axis(gain, order, axis=1))
        price = np.where(known, 0.0, self.cost[order]).cumsum(axis=1)
        now = self.risk(p := np.exp(self.log_p(log_x)))
        least = price[:, 0] + _NO_GAIN  # more than this is there to be saved
        asked = stop & ~known[:, 0] & (now > least)
        for i in np.flatnonzero(asked if open_ is None else asked & open_):
            steps = np.where(known[i][:, None], 0.0, self._futures[:, :, order[i]])
            after = self.risk(np.exp(self.log_p(log_x[i] + steps.cumsum(axis=2))))  # (C, S, k)
            if now[i] - (p[i] @ after.mean(axis=1) + price[i]).min() > _NO_GAIN:
                stop[i], column[i] = False, order[i, 0]
        return stop, column

    def _later(self, row: Array, log_x: Array) -> Array:
        """(D,) expected value of the best next measurement after each."""
        cells = self.cells(row)
        if len(cells.value) ** 2 * len(log_x) > _MOST_AHEAD:
            raise ValueError(
                f"steps=2 looks at {len(cells.value)} values of {len(cells.column)} missing cells, "
                "and at as many after each: use steps=1, or fill cells that will not be measured"
            )
        n = np.diff(np.r_[cells.start, len(cells.value)])
        filled = np.repeat(row[None], len(cells.value), axis=0)
        filled[np.arange(len(filled)), np.repeat(cells.column, n)] = cells.value
        _, value = self.value(filled, log_x + cells.log_p)
        best = np.fmax.reduce(value, axis=1, initial=0.0)
        of_value = np.exp(self.log_p(log_x[None])) @ np.exp(cells.log_p).T
        out = np.zeros(len(row))
        out[cells.column] = _by_column(of_value * best, cells)[0]
        return out


def _entropy(p: Array) -> Array:
    """(...) of probabilities (..., C), in nats."""
    return np.asarray(-xlogy(p, p).sum(axis=-1))


def _by_column(terms: Array, cells: _Cells) -> Array:
    """(N, J) sums over the values of each column."""
    return np.add.reduceat(terms, cells.start, axis=1)


def _panels(ends: Array) -> tuple[Array, Array]:
    """(J, K) points and log weights of Gauss-Legendre rules between rising ends (J, n)."""
    half = np.diff(ends, axis=1)[..., None] / 2
    middle = (ends[:, 1:] + ends[:, :-1])[..., None] / 2
    with np.errstate(divide="ignore"):
        log_weight = np.log(half * _WEIGHTS)
    return (middle + half * _POINTS).reshape(len(ends), -1), log_weight.reshape(len(ends), -1)


def _costs(cost: Any, fitted: Fitted) -> Array:
    """(D,) costs of the columns."""
    names = fitted.column_names
    if isinstance(cost, Mapping):
        places = {name: j for j, name in enumerate(names)}
        out = np.full(len(names), np.nan)
        for key, price in cost.items():
            out[find_column(key, places, len(names), "cost")] = price
        if np.isnan(out).any():
            raise ValueError(f"cost has no entry for column {names[int(np.isnan(out).argmax())]!r}")
    else:
        given = np.asarray(0.0 if cost is None else cost, dtype=np.float64)
        if given.shape not in ((), (len(names),)):
            raise ValueError(f"cost must be a number or one for each of {len(names)} columns")
        out = np.array(np.broadcast_to(given, len(names)))
    if not (np.isfinite(out) & (out >= 0)).all():
        raise ValueError("cost must be finite numbers >= 0")
    return out


def loo_exponent(fitted: Fitted, training: Any = None) -> float:
    """Exponent of p(x | y) under which the training labels are best predicted, leave-one-out."""
    encoded, codes, weight = rows_of_fit(fitted, training).only_scored()
    joint, _ = fitted.posterior.log_joint_without(encoded, codes, weight)
    log_pi = log_weights_of(fitted, codes, weight)
    log_x = joint - log_pi

    def loss(log_exponent: float) -> float:
        log_p = log_soft(log_pi + np.exp(log_exponent) * log_x, axis=1)
        # a Normal prior of the logarithm about 0: separable rows have no largest exponent
        return float(-weight @ log_p[np.arange(len(codes)), codes] + log_exponent**2 / 8)

    return float(np.exp(minimize_scalar(loss, bounds=(-5, 2), method="bounded").x))


def next_measurement(
    fitted: Fitted,
    X: Any,
    cost: Any,
    decision_cost: Any,
    temper: Temper,
    steps: int,
    class_prior: Any,
    training: Any,
) -> "xr.Dataset":
    """As `GenerativeClassifier.next_measurement`."""
    if steps not in (1, 2):
        raise ValueError(f"steps must be 1 or 2, got {steps!r}")
    asker = _Asker.of(fitted, temper, cost, decision_cost, class_prior, training)
    rows = asker.rows(X)
    log_x = asker.log_x(rows)
    gain, value = asker.value(rows, log_x, steps)
    names = np.array(fitted.column_names, dtype=object)
    stop, column = asker.plan(gain, value, log_x)
    out = tree.group(
        {
            "gain": ((OBS, FEATURE), gain),
            "value": ((OBS, FEATURE), value),
            "stop": ((OBS,), stop),
            "best": ((OBS,), np.where(stop, "", names[column])),
        },
        {FEATURE: fitted.column_names},
    )
    unit = "nats" if decision_cost is None else "the unit of decision_cost"
    return out.assign_attrs(exponent=asker.exponent, steps=steps, unit_of_value=unit)


# ------------------------------------------------------------------------------------------------
# Policies on labelled rows whose cells are hidden and measured one by one.

POLICIES = ("next", "fixed order", "random order")


def acquisition_curve(
    clf: Any,
    X: Any,
    y: Any,
    cost: Any = None,
    decision_cost: Any = None,
    *,
    temper: Temper = 1.0,
    probability: float = 0.95,
    class_prior: Any = None,
    training: Any = None,
    random_state: Any = 0,
) -> "xr.Dataset":
    """Return loss and cost against the number of measured cells, for three policies.

    All cells of labelled rows are hidden, then measured one by one: by ``next_measurement``, in the
    order that is best on average, and in a random order for each row.

    Parameters
    ----------
    clf : fitted classifier
    X, y : (N, D) and (N,)
        Rows outside the training rows. A cell that is missing here is never measured.
    cost, decision_cost, temper, class_prior, training
        Costs, exponent, class weights and training rows: see ``clf.next_measurement``.
    probability : float
        Probability of the most probable class from which a row counts as decided.
    random_state : int or numpy.random.Generator
        Seed of the random orders.

    Returns
    -------
    xarray.Dataset
        (policy, n_cells) ``log_loss`` and ``error_rate`` of the labels; ``measured``, the cost of
        the cells measured so far, ``decided``, that of the decisions taken with them, and
        ``expected``, the model's expectation of the latter; all per row. (policy)
        ``cells_to_probability``, the mean number of cells until one class has `probability` (all
        cells, if it never does); ``total_cost``, of measurements and decisions: for ``next`` each
        row stops by ``next_measurement``, for the orders at the one number of cells at which the
        model expects the least cost. ``order`` (place), the names of the fixed
        order: at each step the column of the largest mean gain over the rows, which needs no
        labels.

    Examples
    --------
    >>> import bayesgen as bg
    >>> import numpy as np
    >>> X, y = bg.datasets.load_penguins()
    >>> test = np.arange(len(y)) % 3 == 2
    >>> clf = bg.MixedNB().fit(X[~test], y[~test])
    >>> curve = bg.acquisition_curve(clf, X[test], y[test])
    >>> curve["cells_to_probability"].to_series().round(1).to_dict()
    {'next': 2.1, 'fixed order': 2.2, 'random order': 3.1}
    """
    fitted = fitted_of(clf, "acquisition_curve")
    asker = _Asker.of(fitted, temper, cost, decision_cost, class_prior, training)
    whole, codes = asker.rows(X), fitted.codes_of(y)
    if len(whole) != len(codes):
        raise ValueError(f"X has {len(whole)} rows, but y has {len(codes)}")
    n_columns = whole.shape[1]
    rng = generator(random_state)
    random = rng.permuted(np.tile(np.arange(n_columns), (len(whole), 1)), axis=1)
    found: dict[str, list[Any]] = {name: [] for name in _MEASURED}
    for policy in POLICIES:
        runs, order = asker.run(whole, codes, policy, random, probability)
        for name, values in zip(_MEASURED, runs, strict=True):
            found[name].append(values)
        if policy == "fixed order":
            best_order = np.array(fitted.column_names, dtype=object)[order]
    dims = [("policy", "n_cells")] * 5 + [("policy",)] * 2
    table = tree.group(
        {
            **{k: (d, np.array(v)) for d, (k, v) in zip(dims, found.items(), strict=True)},
            "order": (("place",), best_order),
        },
        {"policy": list(POLICIES)},
    )
    return table.assign_attrs(exponent=asker.exponent, probability=probability, rows=len(whole))


_MEASURED = (
    "log_loss",
    "error_rate",
    "measured",
    "decided",
    "expected",
    "cells_to_probability",
    "total_cost",
)
