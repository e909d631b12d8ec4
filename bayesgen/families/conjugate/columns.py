"""Columns of several kinds: a product of families over blocks of columns.

Given the class the blocks are independent, in the prior and in the posterior, so log densities and
evidences add.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import Any, ClassVar, Self

import numpy as np

from bayesgen.families.capabilities import (
    FeatureInformation,
    LinearRule,
    ThetaDensity,
    UnlabelledRows,
    require,
)
from bayesgen.families.contract import (
    Block,
    ConjugateFamily,
    Stats,
    Tensors,
    Theta,
    Variables,
    registry,
)
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import Method
from bayesgen.families.shared.densities import log_product
from bayesgen.families.shared.pymc_parts import prefixed
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array

# capabilities that a product has where every block has them
_OF_EVERY_BLOCK = (ThetaDensity, UnlabelledRows, LinearRule, FeatureInformation)


@dataclass(frozen=True, eq=False)
class ColumnsStats(Stats):
    """The statistics of each block."""

    names: tuple[str, ...] = ()
    parts: tuple[Stats, ...] = ()

    def merge(self, other: Self) -> Self:
        """Block by block."""
        pairs = zip(self.parts, other.parts, strict=True)
        return replace(self, parts=tuple(a.merge(b) for a, b in pairs))

    def remove(self, other: Self) -> Self:
        """Block by block."""
        pairs = zip(self.parts, other.parts, strict=True)
        return replace(self, parts=tuple(a.remove(b) for a, b in pairs))

    def reindex_classes(self, codes: Array, n_classes: int) -> Self:
        """Block by block."""
        return replace(self, parts=tuple(p.reindex_classes(codes, n_classes) for p in self.parts))

    def pooled(self) -> Self:
        """Block by block."""
        return replace(self, parts=tuple(p.pooled() for p in self.parts))

    def arrays(self) -> dict[str, tuple[tuple[str, ...], Array]]:
        """{block_field: (dims, array)}; every dim but ``class`` carries the block's name."""
        return _prefixed_arrays(self.names, self.parts)

    def settings(self) -> dict[str, Any]:
        """Block names, and the settings of each block."""
        return {"names": list(self.names), "parts": [p.settings() for p in self.parts]}


@dataclass(frozen=True, eq=False)
class Columns(ConjugateFamily):
    """Independent blocks of columns, each with a family of its own.

    Parameters
    ----------
    names : tuple of str
        One for each block; it precedes the names of the block's parameters and dims.
    families : tuple of ConjugateFamily
    columns : tuple of tuple of int
        The columns of X that each block reads.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
    >>> from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
    >>> family = Columns(
    ...     ("gaussian", "bernoulli"), (NormalInverseGamma(), BetaBernoulli()), ((0,), (1,))
    ... )
    >>> X, y = np.array([[1.2, 1], [0.8, 0], [3.1, 1.0]]), np.array([0, 0, 1])
    >>> stats = family.stats(X, y, n_classes=2)
    >>> list(family.resolve(stats).params)
    ['gaussian_mu', 'gaussian_sigma2', 'bernoulli_theta']
    """

    statistics: ClassVar[type[Stats]] = ColumnsStats

    names: tuple[str, ...] = ()
    families: tuple[ConjugateFamily, ...] = ()
    columns: tuple[tuple[int, ...], ...] = ()

    def blocks(self, stats=None, theta=None) -> Iterator[Block]:
        """Yield the blocks."""
        parts = [None] * len(self.names) if stats is None else stats.parts
        blocks = zip(self.names, self.families, self.columns, parts, strict=True)
        for name, family, columns, block_stats in blocks:
            block_theta = theta and {k: theta[f"{name}_{k}"] for k in family.params}
            yield Block(list(columns), family, block_stats, block_theta, f"{name}_")

    @property
    def no_evidence(self) -> str:
        """Return the reason of the first block that has one."""
        return next((why for f in self.families if (why := f.no_evidence)), "")

    def with_blocks(self, families: Sequence[ConjugateFamily]) -> Self:
        """Return the same columns, described by other families."""
        return replace(self, families=tuple(families))

    def capability[K](self, kind: type[K]) -> K | None:
        """Return itself for what every block offers and a product has; else None."""
        offered = kind in _OF_EVERY_BLOCK and all(
            family.capability(kind) is not None for family in self.families
        )
        return super().capability(kind) if offered else None

    @property
    def n_features(self) -> int:
        """Columns of X in all blocks."""
        return sum(map(len, self.columns))

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """{block_param: dims}; every dim but ``class`` carries the block's name."""
        return {
            f"{b.prefix}{name}": prefixed(b.prefix, dims)
            for b in self.blocks()
            for name, dims in b.family.params.items()
        }

    def coords(self) -> dict[str, Any]:
        """Collect those of each block, under its name."""
        return {
            prefixed(b.prefix, (dim,))[0]: labels
            for b in self.blocks()
            for dim, labels in b.family.coords().items()
        }

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """Sum over blocks."""
        each = self.blocks(theta=theta)
        return reduce(np.add, (b.family.log_likelihood(X[:, b.columns], b.theta) for b in each))

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """Return (N, D) float rows."""
        each = self.blocks(theta=theta)
        return self._assemble([b.family.simulate(rng, b.theta, y) for b in each])

    def simulate_predictive(self, rng: np.random.Generator, y: Array) -> Array:
        """Return (N, D) float rows, a fresh theta for every row."""
        return self._assemble([family.simulate_predictive(rng, y) for family in self.families])

    def to_pymc(self, *, prefix: str = "", X: Matrix | None = None, y=None, stats=None) -> Tensors:
        """Each block under its own name."""
        variables: dict[str, Any] = {}
        for b in self.blocks(stats):
            rows = None if X is None else X[:, b.columns]
            theta = b.family.to_pymc(prefix=f"{prefix}{b.prefix}", X=rows, y=y, stats=b.stats)
            variables |= {f"{b.prefix}{name}": value for name, value in theta.items()}
        return variables

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Every other column Normal, the rest bits."""
        from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
        from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma

        real, bits = tuple(range(0, n_features, 2)), tuple(range(1, n_features, 2))
        blocks: list[tuple[str, type[ConjugateFamily], tuple[int, ...]]] = [
            ("gaussian", NormalInverseGamma, real),
            ("bernoulli", BetaBernoulli, bits),
        ]
        blocks = [b for b in blocks if b[2]]
        return [
            cls(
                tuple(name for name, _, _ in blocks),
                tuple(f.examples(n_classes, len(c))[0] for _, f, c in blocks),
                tuple(c for _, _, c in blocks),
            )
        ]

    def stats(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> ColumnsStats:
        """Return the statistics of each block."""
        return self.join(
            b.family.stats(X[:, b.columns], y, n_classes, weight) for b in self.blocks()
        )

    def resolve(self, stats: ColumnsStats) -> Self:
        """Each block from its own statistics."""
        return self.with_blocks([b.family.resolve(b.stats) for b in self.blocks(stats)])

    def update(self, stats: ColumnsStats) -> Self:
        """Block by block."""
        return self.with_blocks([b.family.update(b.stats) for b in self.blocks(stats)])

    def mle(self, stats: ColumnsStats) -> dict[str, Array]:
        """Block by block."""
        return self._estimate(lambda b: b.family.mle(b.stats), stats)

    def map(self) -> dict[str, Array]:
        """Block by block."""
        return self._estimate(lambda b: b.family.map())

    def mean(self) -> dict[str, Array]:
        """Block by block."""
        return self._estimate(lambda b: b.family.mean())

    def draw(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """Independent over blocks."""
        return self._estimate(lambda b: b.family.draw(rng, n))

    def n_parameters(self) -> int:
        """Add up those of all blocks."""
        return sum(f.n_parameters() for f in self.families)

    def log_density(self, theta: Theta) -> Array:
        """Return (...) sum over blocks."""
        terms = [
            require(b.family, ThetaDensity, "the density of theta").log_density(b.theta)
            for b in self.blocks(theta=theta)
        ]
        return log_product(np.stack(terms), 0)

    def log_predictive(self, X: Matrix) -> Array:
        """Return (N, C) sum over blocks."""
        return reduce(np.add, (b.family.log_predictive(X[:, b.columns]) for b in self.blocks()))

    def log_evidence(self, stats: ColumnsStats) -> float:
        """Sum over blocks."""
        return sum(b.family.log_evidence(b.stats) for b in self.blocks(stats))

    # -- what blocks may have to say -----------------------------------------------------------

    def prepared(self, stats: ColumnsStats | None) -> Self:
        """Block by block."""
        return self.with_blocks([b.family.prepared(b.stats) for b in self.blocks(stats)])

    def given_rows(self, X: Matrix) -> Self:
        """Block by block."""
        return self.with_blocks([b.family.given_rows(X[:, b.columns]) for b in self.blocks()])

    def for_plug_in(self, method: Method) -> Self:
        """Block by block."""
        return self.with_blocks([family.for_plug_in(method) for family in self.families])

    def pymc_coordinates(self, theta: Theta, stats: ColumnsStats | None) -> Variables:
        """Collect those of each block, under its name."""
        return {
            f"{b.prefix}{name}": (prefixed(b.prefix, dims), value)
            for b in self.blocks(stats, theta)
            for name, (dims, value) in b.family.pymc_coordinates(b.theta, b.stats).items()
        }

    def pymc_data(self, stats: ColumnsStats | None, *, prefix: str = "") -> dict[str, Array]:
        """Collect those of each block, under its name."""
        data: dict[str, Array] = {}
        for b in self.blocks(stats):
            data |= b.family.pymc_data(b.stats, prefix=f"{prefix}{b.prefix}")
        return data

    def pymc_log_likelihood(self, X: Matrix, theta: Mapping[str, Any], *, prefix: str = ""):
        """Sum over blocks."""
        first, *others = (
            b.family.pymc_log_likelihood(X[:, b.columns], b.theta, prefix=f"{prefix}{b.prefix}")
            for b in self.blocks(theta=theta)
        )
        return sum(others, start=first)

    def linear_form(self, theta: Theta | None) -> tuple[Array, Array]:
        """Return the blocks' weights in the order of the columns."""
        rules = [b.family.linear_form(b.theta) for b in self.blocks(theta=theta)]
        w = np.zeros((len(rules[0][0]), self.n_features))
        for columns, (block_w, _) in zip(self.columns, rules, strict=True):
            w[:, list(columns)] = block_w
        return w, sum(w0 for _, w0 in rules)

    def information(self, theta: Theta, weights: Array) -> Array:
        """Return (D,) each feature by its own family."""
        nats = np.empty(self.n_features)
        for b in self.blocks(theta=theta):
            nats[b.columns] = b.family.information(b.theta, weights)
        return nats

    # -- files -------------------------------------------------------------------------------

    def arrays(self) -> dict[str, tuple[tuple[str, ...], Array]]:
        """{block_field: (dims, array)}."""
        return _prefixed_arrays(self.names, self.families)

    def settings(self) -> dict[str, Any]:
        """Names, columns, and the class and settings of each block."""
        return {
            "names": list(self.names),
            "columns": [list(c) for c in self.columns],
            "families": [type(f).__name__ for f in self.families],
            "settings": [f.settings() for f in self.families],
        }

    @classmethod
    def from_parts(cls, arrays: Mapping[str, Array], settings: Mapping[str, Any]) -> Self:
        """Inverse of `arrays` and `settings`; the block's class is looked up in the folder."""
        classes, families = registry(), []
        blocks = zip(settings["names"], settings["families"], settings["settings"], strict=True)
        for name, kind, block_settings in blocks:
            own_arrays = _strip(arrays, name, classes[kind])
            families.append(classes[kind].from_parts(own_arrays, block_settings))
        columns = tuple(tuple(c) for c in settings["columns"])
        return cls(tuple(settings["names"]), tuple(families), columns)  # type: ignore[arg-type]

    def read_stats(self, arrays: Mapping[str, Array], settings: Mapping[str, Any]) -> ColumnsStats:
        """Each block reads its own."""
        blocks = zip(self.names, self.families, settings["parts"], strict=True)
        return self.join(
            family.read_stats(_strip(arrays, name, family.statistics), block_settings)
            for name, family, block_settings in blocks
        )

    def join(self, parts: Iterable[Stats]) -> ColumnsStats:
        """Return the statistics of the blocks as those of the product."""
        return ColumnsStats(self.names, tuple(parts))

    # -- plumbing ----------------------------------------------------------------------------

    def _assemble(self, rows_of_blocks: list[Array]) -> Array:
        cells = np.empty((len(rows_of_blocks[0]), self.n_features))
        for columns, rows in zip(self.columns, rows_of_blocks, strict=True):
            cells[:, list(columns)] = rows
        return cells

    def _estimate(
        self, estimate: Callable[[Block], Mapping[str, Array]], stats: ColumnsStats | None = None
    ) -> dict[str, Array]:
        estimates: dict[str, Array] = {}
        for block in self.blocks(stats):
            try:
                theta = estimate(block)
            except UndefinedEstimateError as error:  # the block counts its own columns
                j = error.feature_index
                raise UndefinedEstimateError(
                    error.estimate,
                    error.reason,
                    error.class_index,
                    None if j is None else block.columns[j],
                    advice=error.advice,
                ) from None
            estimates |= {f"{block.prefix}{name}": value for name, value in theta.items()}
        return estimates


def _prefixed_arrays(
    names: tuple[str, ...], records: tuple[Any, ...]
) -> dict[str, tuple[tuple[str, ...], Array]]:
    return {
        f"{name}_{field}": (prefixed(f"{name}_", dims), value)
        for name, record in zip(names, records, strict=True)
        for field, (dims, value) in record.arrays().items()
    }


def _strip(arrays: Mapping[str, Array], name: str, record: type) -> dict[str, Array]:
    """Return the block's own arrays (and no other's: block names may share a beginning)."""
    field_names = {f.name: f"{name}_{f.name}" for f in fields(record)}
    return {field: arrays[key] for field, key in field_names.items() if key in arrays}
