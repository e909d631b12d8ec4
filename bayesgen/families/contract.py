r"""The contract of a prior-likelihood pair: statistics in, posterior out, predictive out.

Shapes, once and for all::

    N rows, D features, C classes, S draws
    X       (N, D)        rows; NaN is a missing cell; dense, or CSR for discrete families
    y       (N,)          class codes 0 .. C-1
    weight  (N,)          non-negative row weights, or None
    theta   {name: (..., *dims)}   parameters; ``dims`` as in `Family.params`, any leading axes
    log densities         (..., N, C)

A family is a frozen dataclass of hyper-parameters, and is also the posterior: `update` returns the
same class with new numbers. That is all there is to conjugacy here::

    stats = family.stats(X, y, n_classes)  # one pass; `merge` the parts of a large data set
    prior = family.resolve(stats)  # data-scaled defaults filled in, all arrays (C, D)
    posterior = prior.update(stats)
    posterior.log_predictive(X_new)  # (N, C): log p(x | y = c, data), no theta left

A family without closed forms implements `Family` alone. What else it may offer: `capabilities`.
"""

import abc
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from bayesgen.families.errors import refuse_negative
from bayesgen.families.names import CATEGORY, CATEGORY_BIS, CLASS, FEATURE, Method, Tensor
from bayesgen.families.records import Record
from bayesgen.numerics.rows import Matrix, remainder, row_blocks
from bayesgen.numerics.special import Array

Theta = Mapping[str, Array]
Tensors = dict[str, Tensor]  # {name: tensor of a PyMC model}
Variables = dict[str, tuple[tuple[str, ...], Array]]  # {name: (dims, array)}
_CATEGORIES = (CATEGORY, CATEGORY_BIS)  # the last axes of a table
_FOLDERS = ("conjugate", "sampled")


@dataclass(frozen=True, eq=False)
class Stats(Record):
    """Sufficient statistics of some rows: a commutative monoid that can be pickled.

    The class adds field by field, of as many categories as either knows; statistics that are not
    sums (means, scatter) override `merge` and `remove`. An array field whose first dim is ``class``
    has one entry per class.
    """

    largest_cell: ClassVar[float] = 1e151  # of X, in size: its square can be added up

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
        for name, pair in self._pairs(other):
            refuse_negative(name, pair[0] - pair[1], pair[0])
        return self._combine(other, remainder)

    def _combine(self, other: Self, operation: Callable[[Array, Array], Array]) -> Self:
        return replace(self, **{name: operation(*pair) for name, pair in self._pairs(other)})

    def _pairs(self, other: Self) -> Iterator[tuple[str, list[Array]]]:
        """Each array of both, padded where one knows more categories than the other."""
        for name, (dims, value) in self.arrays().items():
            pair, axes = [value, getattr(other, name)], sum(d in _CATEGORIES for d in dims)
            k = max(a.shape[-1] for a in pair) if axes else 0
            yield name, [padded(a, k, axes) for a in pair]

    def reindex_classes(self, codes: Array, n_classes: int) -> Self:
        """Return the same rows, with class k renamed ``codes[k]`` among `n_classes` classes."""
        arrays = {}
        for name, (dims, value) in self.arrays().items():
            if dims[:1] == (CLASS,):
                wide = np.zeros((n_classes, *value.shape[1:]), dtype=value.dtype)
                wide[codes] = value
                arrays[name] = wide
        return replace(self, **arrays)

    def pooled(self) -> Self:
        """Return the same rows, all of one class."""
        n_classes = max(len(v) for dims, v in self.arrays().values() if dims[:1] == (CLASS,))
        return reduce(lambda a, b: a.merge(b), (self.at(CLASS, [c]) for c in range(n_classes)))


def padded(table: Array, k: int, axes: int = 1) -> Array:
    """Pad a table with zeros up to `k` categories along the last axes."""
    more = k - table.shape[-1] if axes else 0
    widths = [(0, 0)] * (table.ndim - axes) + [(0, more)] * axes
    return table if more <= 0 else np.pad(table, widths)


class Block(NamedTuple):
    """Columns that one family describes, with their part of statistics and of theta."""

    columns: Any
    family: Any
    stats: Any
    theta: Any
    prefix: str = ""  # before the names of its variables in a PyMC model


@dataclass(frozen=True, eq=False)
class Family(Record, abc.ABC):
    """A class-conditional distribution p(x | theta_c) with a prior on theta: all MCMC needs."""

    conjugate: ClassVar[bool] = False
    statistics: ClassVar[type[Stats]] = Stats  # what `stats` returns, if there are any
    sparse: ClassVar[bool] = False  # whether X may be a CSR matrix
    missing: ClassVar[str] = "marginalised"  # what NaN means; else the reason why it is refused
    # whether `to_pymc` takes ``summed=True``: rows as one potential, cheaper than row by row
    sums_rows: ClassVar[bool] = False
    positions: ClassVar[tuple[str, ...]] = ()  # parameters that name columns, which have no mean
    fits_missing: ClassVar[bool] = True  # False: NaN has a closed form in prediction alone
    # True: `log_likelihood` is log p(y = c | x_i, theta), and nothing is said of x
    discriminative: ClassVar[bool] = False
    no_theta: ClassVar[str] = ""  # why there is no posterior of theta, if there is none
    holds: ClassVar[str] = ""  # its cells: "real", "count", "bit", "category", "code", "token"
    kind: ClassVar[str] = ""  # what its columns are called in print; "": the name of the class
    no_pymc: ClassVar[str] = ""  # why theta is not what PyMC has variables of, if it is not
    # whether log p(x | theta_c) is a sum over columns: ``at(FEATURE, [j])`` is that of column j
    separable: ClassVar[bool] = False
    default_draws: ClassVar[int] = 2000  # of class probabilities, in closed form
    draws_by_row: ClassVar[bool] = False  # `DensityDraws`, where it is offered
    # {attribute: parameter}: where scikit-learn's users look for the posterior means
    attributes: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Return a few resolved priors that differ in kind, from which the laws draw their data."""
        return []

    @property
    @abc.abstractmethod
    def params(self) -> dict[str, tuple[str, ...]]:
        """{name: dims} of theta, the same in NumPy, DataTree and PyMC."""

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """Return (..., N, C) log p(x_i | theta_c) for any leading axes of draws in `theta`.

        A family that leaves it out has that of its `to_pymc`, in NumPy.
        """
        return self._graph(theta, X).log_likelihood(X, theta)

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array):
        """Draw (N, D) rows of classes `y`; `theta` is one value, or one for each row (N, *dims).

        A family that leaves it out draws them by PyMC, as its `to_pymc` says.
        """
        return self._graph(theta).simulate(rng, theta, y)

    def mle_of_rows(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> dict[str, Array] | None:
        """Maximum-likelihood theta of a sampled family; None: there is no closed form of it."""
        return None

    def held_model(self, theta: Theta) -> tuple[Tensor, dict[str, Array]] | None:
        """Return a PyMC model that holds the training rows, and draws of its free variables.

        None: the fit keeps the rows, and `to_pymc` makes the model.
        """
        return None

    @cached_property
    def _graphs(self) -> dict[Any, Any]:
        """{sizes: rows of the graph} of what has been asked for."""
        return {}

    def _graph(self, theta: Theta, X=None):
        """Rows as `to_pymc` declares them, for theta and columns of these sizes."""
        from bayesgen.families.shared.graph_rows import of_family

        sizes = {
            dim: n
            for name, dims in self.params.items()
            for dim, n in zip(dims[::-1], np.shape(theta[name])[::-1], strict=False)
        }
        if X is not None:
            sizes[FEATURE] = X.shape[1]
        key = tuple(sorted(sizes.items()))
        if key not in self._graphs:
            self._graphs[key] = of_family(self, sizes, X)
        return self._graphs[key]

    def to_pymc(self, *, prefix: str = "", X: Matrix | None = None, y=None, stats=None) -> Tensors:
        """Declare theta in the PyMC model on the stack, and condition it on rows or statistics.

        Parameters
        ----------
        prefix : str
            Stands before the name of every variable and dim but ``class``, as in `Columns`.
        X, y : rows (N, D) and their class codes, a tensor (N,)
            Likelihood of the rows, as the observed variable ``x`` with dims (obs_id, feature): for
            another y, and other rows in the data container ``cells``, it is theirs.
        stats : Stats
            Likelihood through the sufficient statistics, the potential ``x``: the same function
            of theta up to a constant, at a cost that does not depend on the number of rows.
            Neither: the prior alone. With rows as well: the statistics of the fit, which decide
            on the coordinates that are sampled (`pymc_coordinates`), and on nothing else.

        A family of `sums_rows` also takes ``summed=True``: the log likelihood of all rows together
        as the potential ``x``, by as few terms as the family knows, for MCMC.

        Returns
        -------
        {name: tensor}
            The parameters of `params`, by their names without prefix.
        """
        why = f": {self.no_pymc}" if self.no_pymc else ""
        raise NotImplementedError(f"{type(self).__name__} has no PyMC model{why}")

    @property
    def no_evidence(self) -> str:
        """Why the density of the rows is no evidence of the model; "" where it is one."""
        return self.no_theta

    @property
    def no_class_prior(self) -> str:
        """Why the class weights cannot be replaced; "" where they can."""
        return ""

    # -- what most families have nothing to say of ---------------------------------------------

    def with_defaults(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> Self:
        """Return the prior of a sampled family with the defaults that the rows set.

        Also in coordinates that suit the posterior of these rows, where they are not set. Rows
        without a label have y = -1.
        """
        return self

    def row_densities(self, theta: Theta, X: Matrix, y: Array) -> Variables:
        """{name: (dims, (chain, draw, row))} of some training rows: by these chains are compared.

        For theta of which different values are the same density of x (labels, signs): which one
        a sampler finds is chance.
        """
        return {}

    def prepared(self, stats) -> Self:
        """Return the same prior, told of the rows before a PyMC model of them.

        By `stats` it may choose what the density does not depend on: coordinates in which to
        sample, contexts of a table. None: whatever the rows will be, theta has the same shape.
        """
        return self

    def pymc_coordinates(self, theta: Theta, stats) -> Variables:
        """{name: (dims, (..., *dims))} of the free variables of `to_pymc` not in `params`.

        With them draws of theta in closed form have all that PyMC asks of a posterior. `stats`
        are those of the rows that the PyMC model is conditioned on; None is the prior.
        """
        return {}

    def pymc_data(self, stats, *, prefix: str = "") -> dict[str, Array]:
        """{name: array} of the data containers in `to_pymc` that are not the rows'."""
        numbers = ((name, a) for name, (_, a) in self.arrays().items() if a.dtype.kind in "fiub")
        return {f"prior_{prefix}{name}": a for name, a in numbers}

    def observed_cells(self, stats) -> Array | None:
        """Return (C, D) rows of each class, by weight, in which the column was not missing.

        None: the statistics do not tell.
        """
        return None

    def given_rows(self, X: Matrix) -> Self:
        """Return the family whose `simulate` takes lengths or exposures from the rows X."""
        return self

    def for_plug_in(self, method: Method) -> Self:
        """Return the family whose `log_likelihood` scores the theta of a plug-in method.

        It takes from the prior what theta cannot carry: the probability of a category never seen.
        """
        return self

    def discriminant(self, X: Matrix, theta: Theta) -> Array:
        """Return `log_likelihood` (..., N, C) up to a term that the classes of a row share."""
        return self.log_likelihood(X, theta)

    def margins(self) -> "Family":
        """Return the family of independent columns with the same margins."""
        return self

    # -- what every family has ---------------------------------------------------------------

    @classmethod
    def column_kind(cls) -> str:
        """`kind`, or the name of the class in words."""
        return cls.kind or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", cls.__name__).lower()

    def capability[K](self, kind: type[K]) -> K | None:
        """Return the object that answers for a protocol of `capabilities`, or None."""
        return self if isinstance(self, kind) else None

    def blocks(self, stats=None, theta=None) -> Iterator[Block]:
        """Blocks of columns with a family of their own."""
        yield Block(slice(None), self, stats, theta)

    def with_blocks(self, families: Sequence[Any]):
        """Return the family of the same blocks, in their order, with other families."""
        (family,) = families
        return family

    def coords(self) -> dict[str, Any]:
        """{dim: labels} of the dims in `params` that are neither class nor feature."""
        return {}

    def read_stats(self, arrays: Mapping[str, Array], settings: Mapping[str, Any]) -> Stats:
        """Statistics back from their `arrays` and `settings`."""
        return self.statistics.from_parts(arrays, settings)

    def rows_of(self, theta: Theta, name: str, y: Array) -> Array:
        """Return the parameter of each row's class: (N, *dims without class), for `simulate`."""
        dims, value = self.params[name], theta[name]
        one_each = value.ndim > len(dims)
        if dims[:1] == (CLASS,):
            return value[np.arange(len(y)), y] if one_each else value[y]
        return value if one_each else value[None]


@dataclass(frozen=True, eq=False)
class ConjugateFamily(Family):
    """A family whose posterior, predictive and evidence are closed forms.

    Hyper-parameters may be given as scalars, arrays that broadcast to (class, feature), or None
    for a data-scaled default. `resolve` turns them into full arrays; every method below it in
    this class works on a resolved family.
    """

    conjugate: ClassVar[bool] = True
    # hyper-parameters that empirical Bayes may multiply by a factor, and no others
    learns_scales: ClassVar[bool] = False  # `other_scales` are learned from the rows
    tunable: ClassVar[tuple[str, ...]] = ()

    @classmethod
    @abc.abstractmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Return a few resolved priors that differ in kind, from which the laws draw their data."""

    @abc.abstractmethod
    def stats(self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None) -> Stats:
        """Sufficient statistics of the rows, in one pass."""

    @abc.abstractmethod
    def resolve(self, stats) -> Self:
        """Return the prior with every hyper-parameter a full array.

        Hyper-parameters that are None are set from the *pooled* statistics, hence equivariant
        under shift and scale of each column (a variance common to all columns: of all of them by
        one factor), and the same for one fit, many chunks, or a merge.
        """

    def further(self, stats) -> Self:
        """Return the unresolved prior whose `stats` may be merged with these of earlier rows."""
        return self

    @abc.abstractmethod
    def update(self, stats) -> Self:
        """Return the posterior: same class, new numbers."""

    @abc.abstractmethod
    def mle(self, stats) -> dict[str, Array]:
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
        """Return (N, C) log p(x_i | y_i = c), theta integrated out, each row on its own."""

    @abc.abstractmethod
    def log_evidence(self, stats) -> float:
        """log p(X | y) of the rows behind `stats`, with this family as their prior."""

    def log_predictive_without(self, X: Matrix, y: Array, weight: Array) -> tuple[Array, Array]:
        """Return (N, C) log p(x_i | y_i = c) of each row, this posterior less the row itself.

        A family that leaves it out has each row left out by adding up all others, which takes a
        call for each row.

        Parameters
        ----------
        X, y, weight : rows of this posterior, their classes and weights (N,)

        Returns
        -------
        log_x : (N, C)
        left : (N,)
            The least share of a sum that is left without the row: relative rounding errors of the
            result grow as its inverse. 0: the row is to be left out by adding up the others.
        """
        return self.log_predictive(X), np.zeros(X.shape[0])

    # -- what every conjugate family has -----------------------------------------------------

    def log_density_at_mean(self, X: Matrix) -> Array:
        """Return (N, C) log p(x_i | theta = E[theta | D])."""
        return self.log_likelihood(X, self.mean())

    def refits(
        self, X: Matrix, y: Array, n_classes: int, weight: Array, new_weights: Iterable[Array]
    ) -> Iterator[Self]:
        """Yield the posterior of the rows with each of the new weights, from the prior of the fit.

        Structures that rows of the old weights have chosen stay.
        """
        for new in new_weights:
            yield self.update(self.stats(X, y, n_classes, new))

    def simulate_predictive(self, rng: np.random.Generator, y: Array):
        """Return (N, D) rows of the posterior predictive: a fresh theta for every row."""
        blocks = [
            self.simulate(rng, self.draw(rng, len(rows)), rows)
            for rows in (y[s] for s in row_blocks(len(y), self.n_parameters()))
        ]
        return np.concatenate(blocks) if blocks else self.simulate(rng, self.draw(rng, 1), y)

    def n_parameters(self) -> int:
        """Numbers in one theta: what a draw costs in memory."""
        return sum(a.size for a in self.draw(np.random.default_rng(0), 1).values())

    @property
    def independent(self) -> bool:
        """Return whether the columns are independent given the class, theta integrated out."""
        return self.separable

    def scaled(self, factors: Mapping[str, float]) -> Self:
        """Return the resolved prior with hyper-parameters multiplied, for empirical Bayes."""
        return replace(self, **{name: getattr(self, name) * f for name, f in factors.items()})

    def strengthened(self, factors: Mapping[str, float]) -> Self:
        """Scale for ``prior="loo"``: like `scaled`, but the weight of a scale leaves the scale."""
        return self.scaled(factors)

    def other_scales(self, given, stats) -> dict[str, Any]:
        """Return named resolved priors that ``prior="loo"`` tries next to this one.

        Parameters
        ----------
        given : the unresolved family
        stats : statistics of all rows
        """
        return {}


def registry() -> dict[str, type[Family]]:
    """{class name: class} of every family in the folders of families, sorted by file name."""
    families: dict[str, type[Family]] = {}
    for folder in _FOLDERS:
        package = importlib.import_module(f"bayesgen.families.{folder}")
        for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
            home = f"{package.__name__}.{module}"
            for name, value in vars(importlib.import_module(home)).items():
                if (
                    isinstance(value, type)
                    and issubclass(value, Family)
                    and (value.__module__ + ".").startswith(home + ".")
                ):
                    families[name] = value
    return families
