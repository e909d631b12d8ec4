r"""The contract of a prior-likelihood pair: statistics in, posterior out, predictive out.

Shapes, once and for all::

    N rows, D features, C classes, S draws
    X       (N, D)        rows; NaN is a missing cell; dense, or CSR for discrete families
    y       (N,)          class codes 0 .. C-1
    weight  (N,)          non-negative row weights, or None
    theta   {name: (..., *dims)}   parameters; ``dims`` as in `Family.params`, any leading axes
    log densities         (..., N, C)

A family is a frozen dataclass of hyper-parameters and is also the posterior: `update` returns the
same class with new numbers. That is all there is to conjugacy here::

    stats = family.stats(X, y, n_classes)  # one pass; `merge` the parts of a large data set
    prior = family.resolve(stats)  # data-scaled defaults filled in, all arrays (C, D)
    posterior = prior.update(stats)
    posterior.log_predictive(X_new)  # (N, C): log p(x | y = c, data), no theta left

A family without closed forms implements `Family` alone and is fitted by MCMC: `params`,
`log_likelihood`, `simulate` and `to_pymc` are enough.
"""

import abc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from bayesgen.families.errors import NotLinearError, refuse_negative
from bayesgen.families.names import CLASS, FEATURE, Method
from bayesgen.families.records import Record
from bayesgen.numerics.rows import Matrix, remainder, row_blocks
from bayesgen.numerics.special import Array

Theta = Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Stats(Record):
    """Sufficient statistics of some rows: a commutative monoid that can be pickled.

    The base class adds field by field; statistics that are not sums (means, scatter) override
    `merge` and `remove`. An array field whose first dim is ``class`` has one entry a class.
    """

    def merge(self, other: Self) -> Self:
        """Statistics of the rows of both."""
        return self._combine(other, np.add)

    def remove(self, other: Self) -> Self:
        """Statistics after forgetting the rows of `other`, which must have been merged before.

        Raises
        ------
        ValueError
            If something would become negative: those rows were never part of these statistics.
        """
        for name, (_, value) in self.arrays().items():
            refuse_negative(name, value - getattr(other, name), value)
        return self._combine(other, remainder)

    def _combine(self, other: Self, operation: Callable[[Array, Array], Array]) -> Self:
        return replace(
            self,
            **{
                name: operation(value, getattr(other, name))
                for name, (_, value) in self.arrays().items()
            },
        )

    def reindex_classes(self, codes: Array, n_classes: int) -> Self:
        """The same rows, with class k renamed ``codes[k]`` among `n_classes` classes."""
        out = {}
        for name, (dims, value) in self.arrays().items():
            if dims[:1] == (CLASS,):
                wide = np.zeros((n_classes, *value.shape[1:]), dtype=value.dtype)
                wide[codes] = value
                out[name] = wide
        return replace(self, **out)

    def pooled(self) -> Self:
        """The same rows, all of one class."""
        n_classes = max(
            value.shape[0] for dims, value in self.arrays().values() if dims[:1] == (CLASS,)
        )
        return reduce(lambda a, b: a.merge(b), (self.at(CLASS, [c]) for c in range(n_classes)))


@dataclass(frozen=True, eq=False)
class Family(Record, abc.ABC):
    """A class-conditional distribution p(x | theta_c) with a prior on theta: all MCMC needs."""

    sparse: ClassVar[bool] = False  # whether X may be a CSR matrix
    missing: ClassVar[str] = "marginalised"  # what NaN means; else the reason why it is refused
    fits_missing: ClassVar[bool] = True  # False: NaN has a closed form in prediction alone
    # True: `log_likelihood` is log p(y = c | x_i, theta), and nothing is said of x
    discriminative: ClassVar[bool] = False
    # whether log p(x | theta_c) is a sum over the columns, the parameters of each in arrays with
    # the dim ``feature``: then ``at(FEATURE, [j])`` is the family of column j alone
    separable: ClassVar[bool] = False

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """A few resolved priors that differ in kind: the law tests draw their data from them."""
        return []

    @property
    @abc.abstractmethod
    def params(self) -> dict[str, tuple[str, ...]]:
        """{name: dims} of theta, the same in NumPy, DataTree and PyMC."""

    @abc.abstractmethod
    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """(..., N, C) log p(x_i | theta_c) for any leading axes of draws in `theta`."""

    def discriminant(self, X: Matrix, theta: Theta) -> Array:
        """(..., N, C) `log_likelihood` up to a term that the classes of a row have in common.

        All that p(y | x, theta) takes. For families in which the common term is what costs.
        """
        return self.log_likelihood(X, theta)

    @abc.abstractmethod
    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Any:
        """(N, D) rows of the classes `y`; `theta` is one value, or one for each row (N, *dims)."""

    def to_pymc(
        self,
        *,
        prefix: str = "",
        X: Matrix | None = None,
        y: Any = None,
        stats: Any = None,
    ) -> dict[str, Any]:
        """Declare theta in the PyMC model on the stack, and condition it on rows or statistics.

        Parameters
        ----------
        prefix : str
            Stands before the name of every variable and dim but ``class``, as in `Columns`.
        X, y : rows (N, D) and their class codes, a tensor (N,)
            Likelihood of the rows, as the observed variable ``x`` with dims (obs_id, feature).
        stats : Stats
            Likelihood through the sufficient statistics, the potential ``x``: the same function
            of theta up to a constant, at a cost that does not depend on the number of rows.
            Neither: the prior alone. With rows as well: the statistics of the fit, which decide
            on the coordinates that are sampled (`pymc_coordinates`), and on nothing else.

        Returns
        -------
        {name: tensor}
            The parameters of `params`, by their names without prefix.
        """
        raise NotImplementedError(f"{type(self).__name__} has no PyMC model")

    def pymc_log_likelihood(self, X: Matrix, theta: Mapping[str, Any], *, prefix: str = "") -> Any:
        """(N, C) tensor of log p(x_i | theta_c), for rows whose class is not known.

        Parameters
        ----------
        X : rows as `log_likelihood` takes them
            Data of the PyMC model on the stack.
        theta : {name: tensor}
            What `to_pymc` returned.
        prefix : str
            As in `to_pymc`.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no pymc_log_likelihood: rows without a label need it"
        )

    def with_defaults(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> Self:
        """The prior with its data-scaled defaults filled in; `y` is -1 where there is no label.

        For families that are fitted by MCMC; a conjugate one takes them from its statistics
        (`ConjugateFamily.resolve`).
        """
        return self

    def guided_by(self, X: Matrix, y: Array, n_classes: int) -> Self:
        """The same prior, in coordinates that suit the posterior of these rows; as above."""
        blank = {f.name: None for f in fields(self) if "guide" in f.metadata}
        return replace(self, **blank).with_defaults(X, y, n_classes)

    @property
    def hyperparameters(self) -> dict[str, tuple[str, ...]]:
        """{name: dims} of the variables of `to_pymc` that theta has a prior of.

        Of those whose meaning does not depend on the rows; a prior object may stand for some.
        """
        return {}

    def identified(self, theta: Theta) -> dict[str, tuple[tuple[str, ...], Array]]:
        """{name: (dims, (..., *dims))} functions of theta that the likelihood tells apart.

        `params` themselves, unless different values of them are the same density of x, and which
        one a sampler finds is chance.
        """
        return {name: (dims, np.asarray(theta[name])) for name, dims in self.params.items()}

    def start(self, rng: np.random.Generator) -> dict[str, Array] | None:
        """Values of the free variables of `to_pymc` where a chain starts.

        None: near the centre of the prior, which is right unless the posterior has several modes
        or is far away.
        """
        return None

    def coords(self) -> dict[str, Any]:
        """{dim: labels} of the dims in `params` that are neither class nor feature."""
        return {}

    def given_rows(self, X: Matrix) -> Self:
        """The family whose `simulate` takes from the rows X what is given: lengths, exposures."""
        return self

    def for_plug_in(self, method: Method) -> Self:
        """The family whose `log_likelihood` scores the theta of a plug-in method.

        Self, unless the likelihood takes something from the prior that theta cannot carry (the
        probability of a category never seen).
        """
        return self

    def read_stats(self, arrays: Mapping[str, Array], settings: Mapping[str, Any]) -> "Stats":
        """Statistics back from their `arrays` and `settings`: none, where none are sufficient."""
        return Stats()

    def prepared(self, stats: Any) -> Self:
        """The same prior, for a PyMC model of rows of which `stats` gives a rough idea.

        A family may choose by it what the density does not depend on: coordinates in which to
        sample, contexts of a table.
        """
        return self

    def pymc_coordinates(
        self, theta: Theta, stats: Any
    ) -> dict[str, tuple[tuple[str, ...], Array]]:
        """Free variables of `to_pymc` that are not in `params`, behind draws of theta.

        With them a posterior drawn in closed form has all that PyMC asks of one.

        Parameters
        ----------
        theta : {name: (..., *dims)}
        stats : Stats or None
            Of the rows that the PyMC model is conditioned on; None is the prior.

        Returns
        -------
        {name: (dims, (..., *dims))}
        """
        return {}

    def relabelled(self, draws: dict[str, Array], X: Matrix, y: Array) -> dict[str, Array]:
        """The same draws, with one meaning for each label that the likelihood does not tell apart.

        Parameters
        ----------
        draws : {name: (chain, draw, *dims)}
            All variables of the PyMC model.
        X, y : training rows
            `y` as in `with_defaults`.

        Returns
        -------
        {name: (chain, draw, *dims)}
            Of the variables that change.
        """
        return {}

    def pymc_data(self, stats: Any) -> dict[str, Array]:
        """{name: array} of the prior's data containers in `to_pymc`.

        `stats` as in `pymc_coordinates`. PyMC takes a posterior for this model's own only if it
        finds them in ``constant_data``.
        """
        return {
            f"prior_{name}": a for name, (_, a) in self.arrays().items() if a.dtype.kind in "fiub"
        }

    def blocks(self, stats: Any = None, theta: Any = None) -> "Iterator[Block]":
        """Blocks of columns with a family of their own."""
        yield Block(slice(None), self, stats, theta)

    def log_odds_terms(
        self, X: Matrix, a: int, b: int, theta: Theta | None = None
    ) -> tuple[Array, Array]:
        """Terms (..., N, D) and rest (..., N) of log p(x | theta_a) - log p(x | theta_b).

        For families whose columns are correlated. `theta` has any leading axes; None asks for the
        expectations under this posterior. A missing cell contributes 0.
        """
        raise NotImplementedError(
            f"the log-odds of {type(self).__name__} are not known as a sum over features"
        )

    def rows_of(self, theta: Theta, name: str, y: Array) -> Array:
        """The parameter of each row's class: (N, *dims without class), for `simulate`."""
        dims, value = self.params[name], theta[name]
        one_each = value.ndim > len(dims)
        if dims[:1] == (CLASS,):
            return value[np.arange(len(y)), y] if one_each else value[y]
        return value if one_each else value[None]


class Urns(NamedTuple):
    """Tokens drawn from tables with Dirichlet priors (urns), as P different draws of rows.

    Given theta, a row's log-density in class c is the sum of ``n log theta`` over its draws.
    """

    row: Array  # (P,)
    feature: Array  # (P,)
    n: Array  # (P,) how often the row has drawn this token
    drawn: Array  # (P,) tokens that the row has drawn from this urn
    cell: Array  # (C, P) pseudo-counts of the token
    total: Array  # (C, P) pseudo-counts in the urn


class Block(NamedTuple):
    """Columns that one family describes, with their share of statistics and of theta."""

    columns: Any
    family: Any
    stats: Any
    theta: Any


@dataclass(frozen=True, eq=False)
class ConjugateFamily(Family):
    """A family whose posterior, predictive and evidence are closed forms.

    Hyper-parameters may be given as scalars, arrays that broadcast to (class, feature), or None
    for a data-scaled default. `resolve` turns them into full arrays; every method below it in
    this class works on a resolved family.
    """

    statistics: ClassVar[type[Stats]] = Stats  # what `stats` returns
    # hyper-parameters that empirical Bayes may multiply by a factor, and no others
    tunable: ClassVar[tuple[str, ...]] = ()

    @classmethod
    @abc.abstractmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """A few resolved priors that differ in kind: the law tests draw their data from them."""

    @abc.abstractmethod
    def stats(self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None) -> Stats:
        """Sufficient statistics of the rows, in one pass."""

    @abc.abstractmethod
    def resolve(self, stats: Any) -> Self:
        """The prior with every hyper-parameter a full array.

        Hyper-parameters that are None are set from the *pooled* statistics, hence equivariant
        under shift and scale of the columns, and the same for one fit, many chunks, or a merge.
        """

    @abc.abstractmethod
    def update(self, stats: Any) -> Self:
        """The posterior: same class, new numbers."""

    @abc.abstractmethod
    def mle(self, stats: Any) -> dict[str, Array]:
        """Maximum-likelihood theta; raises `UndefinedEstimateError` where there is none."""

    @abc.abstractmethod
    def map(self) -> dict[str, Array]:
        """Joint mode of the density over theta, in the coordinates of `params`.

        A mode is not invariant under reparametrisation; the family says which coordinates.
        Raises `UndefinedEstimateError` where the density has no mode.
        """

    @abc.abstractmethod
    def mean(self) -> dict[str, Array]:
        """Expectation of theta; raises `UndefinedEstimateError` where it does not exist."""

    @abc.abstractmethod
    def draw(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """{name: (n, *dims)} independent draws of theta."""

    @abc.abstractmethod
    def log_predictive(self, X: Matrix) -> Array:
        """(N, C) log p(x_i | y_i = c), theta integrated out, each row on its own."""

    @abc.abstractmethod
    def log_evidence(self, stats: Any) -> float:
        """log p(X | y) of the rows behind `stats`, with this family as their prior."""

    @abc.abstractmethod
    def cgf(self, X: Matrix, t: Array) -> Array:
        """log E exp(sum_c t_c log p(x_i | theta_c)): joint cumulants of the class log-densities.

        Parameters
        ----------
        X : (N, D)
        t : (..., C), real or complex
            The leading axes broadcast against (N,): (C,) is one t for all rows, (K, 1, C) is K
            values for all rows, (K, N, C) is K values of each row's own.

        Returns
        -------
        (..., N)
            At a unit vector of t this is a column of `log_predictive`. For real t outside the
            domain (an argument of a gamma function or a logarithm is not positive): NaN or inf.
        """

    def log_density(self, theta: Theta) -> Array:
        """(...) log density of this prior or posterior at theta, for any leading axes of draws.

        With respect to Lebesgue measure in the coordinates of `params`: all but one of
        probabilities that sum to 1, the upper triangle of a covariance. -inf outside the support;
        +inf at a pole. For every theta, ``log_evidence(stats)`` is the log likelihood of the
        rows plus the prior's `log_density` minus the posterior's: Chib's (1995) "candidate's
        formula".
        """
        raise NotImplementedError(f"{type(self).__name__} does not define log_density")

    def simulate_predictive(self, rng: np.random.Generator, y: Array) -> Any:
        """(N, D) rows of the posterior predictive: a fresh theta for every row."""
        blocks = [
            self.simulate(rng, self.draw(rng, len(rows)), rows)
            for rows in (y[s] for s in row_blocks(len(y), self.n_parameters()))
        ]
        return np.concatenate(blocks) if blocks else self.simulate(rng, self.draw(rng, 1), y)

    def n_parameters(self) -> int:
        """Numbers in one theta: what a draw costs in memory."""
        return sum(a.size for a in self.draw(np.random.default_rng(0), 1).values())

    def read_stats(self, arrays: Mapping[str, Array], settings: Mapping[str, Any]) -> Stats:
        """Statistics back from their `arrays` and `settings`."""
        return self.statistics.from_parts(arrays, settings)

    # -- columns on their own ----------------------------------------------------------------

    @property
    def independent(self) -> bool:
        """Whether the columns are independent given the class, theta integrated out."""
        return self.separable

    def pooled(self) -> Self:
        """The prior of one theta for all classes.

        Raises
        ------
        ValueError
            If the classes have different priors: there is none for what they have in common.
        """
        for name, (dims, value) in self.arrays().items():
            if dims[:1] == (CLASS,) and value.ndim == len(dims) and (value != value[:1]).any():
                raise ValueError(
                    f"the prior's {name!r} differs between classes, so it says nothing of a "
                    "parameter that the classes share; give all classes one prior"
                )
        return self.at(CLASS, [0])

    def log_evidence_by_feature(self, stats: Any) -> Array:
        """(D,) the terms of `log_evidence`, for columns that are `independent`."""
        raise NotImplementedError(f"the evidence of {type(self).__name__} is no sum over columns")

    def cell_cgf(self, x: Array, column: Array, t: Array) -> Array:
        """Joint cgf of single cells: a row in which all else is missing, for each of n cells.

        Parameters
        ----------
        x, column : (n,)
            Values, none missing, and where they stand.
        t : (K, n or 1, C)

        Returns
        -------
        (K, n)
        """
        if not self.separable:
            raise NotImplementedError(f"the columns of {type(self).__name__} have no own density")
        n = len(x)
        out = np.empty((len(t), n), dtype=np.complex128 if np.iscomplexobj(t) else np.float64)
        for j in np.unique(column):
            own = np.flatnonzero(column == j)
            t_own = t if t.shape[1] == 1 else t[:, own]
            out[:, own] = self.at(FEATURE, [j]).cgf(x[own, None], t_own)
        return out

    def urns(self, X: Matrix) -> "Urns":
        """What rows of tokens have drawn from tables with Dirichlet priors."""
        raise NotImplementedError(f"{type(self).__name__} does not draw tokens")

    def rest_cgf(self, X: Matrix, t: Array) -> Array:
        """(K, N) joint cgf of what no feature of `log_odds_terms` accounts for, t (K, 1, C)."""
        return np.zeros((len(t), X.shape[0]), dtype=t.dtype)

    # -- rows without a closed form ----------------------------------------------------------

    def default_stats(self, X: Matrix, y: Array, n_classes: int, weight: Array | None) -> Any:
        """What `resolve` takes, also of rows whose missing cells have no closed form."""
        return self.stats(X, y, n_classes, weight)

    def completed(self, X: Matrix, c: int) -> Matrix:
        """Rows that `stats` takes: missing cells that it refuses at their means in class `c`."""
        return X

    def condensed(self, X: Matrix, weight: Array) -> tuple[Matrix, Array] | None:
        """Weighted rows, few, with the likelihood of rows of one class that `stats` cannot sum up.

        None: `stats` can, whatever cells are missing.
        """
        return None

    def draw_missing(
        self, rng: np.random.Generator, X: Matrix, y: Array, theta: Theta
    ) -> tuple[Array, Array, Array]:
        """Missing cells that `stats` refuses, given the observed ones, for draws of theta.

        Parameters
        ----------
        y : (S, N) class codes
        theta : {name: (S, *dims)}

        Returns
        -------
        values : (S, M)
        row, column : (M,)
        """
        none = np.empty(0, dtype=np.int64)
        return np.empty((len(y), 0)), none, none

    # -- optional capabilities ---------------------------------------------------------------

    def draw_log_density(self, rng: np.random.Generator, X: Matrix, n: int) -> Array:
        """(n, N, C) draws of the class log-densities of each row, for `uncertainty`.

        Up to a term common to the classes of a row. Joint over the classes of a row; rows may be
        dependent in any way, so that a family can draw what the density depends on instead of
        theta. The first axis of every ``size`` asked of `rng` is n or the block's share of it.
        """
        out = np.empty((n, X.shape[0], 0))
        for part in row_blocks(n, self.n_parameters() + X.shape[0]):
            found = self.log_likelihood(X, self.draw(rng, part.stop - part.start))
            if not out.shape[2]:
                out = np.empty((n, *found.shape[1:]))
            out[part] = found
        return out

    def linear_form(self, theta: Theta | None) -> tuple[Array, Array]:
        """(w, w0): (C, D) and (C,) with log p(x | theta_c) = x w_c + w0_c + g(x).

        `theta` is a plug-in, None asks for the posterior predictive. Raises `NotLinearError`
        with the reason where there is no such form.
        """
        raise NotLinearError(f"the rule of {type(self).__name__} is not linear in the features")

    def information(self, theta: Theta, weights: Array) -> Array:
        """(D,) mutual information of each feature and the class at one theta, in nats."""
        raise NotImplementedError(
            f"mutual information per feature is not defined for {type(self).__name__}"
        )

    def scaled(self, factors: Mapping[str, float]) -> Self:
        """The resolved prior with hyper-parameters multiplied, for empirical Bayes."""
        return replace(self, **{name: getattr(self, name) * f for name, f in factors.items()})
