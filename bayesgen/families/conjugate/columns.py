"""Columns of several kinds: a product of families over blocks of columns.

Given the class the blocks are independent, in the prior and in the posterior, so log densities and
evidences add.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from bayesgen.families import capabilities as kinds
from bayesgen.families.capabilities import ThetaDensity, require
from bayesgen.families.contract import Block, ConjugateFamily, Stats, Theta, registry
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import Method
from bayesgen.families.shared.densities import log_product
from bayesgen.families.shared.pymc_parts import prefixed, prior_data
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array


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

    def _blocks(self) -> Iterator[tuple[str, ConjugateFamily, list[int]]]:
        for name, family, columns in zip(self.names, self.families, self.columns, strict=True):
            yield name, family, list(columns)

    def blocks(self, stats=None, theta=None) -> Iterator[Block]:
        """Yield the blocks."""
        for k, (name, family, columns) in enumerate(self._blocks()):
            block_theta = None if theta is None else _part(theta, name, family)
            yield Block(
                columns, family, None if stats is None else stats.parts[k], block_theta, f"{name}_"
            )

    @property
    def no_evidence(self) -> str:
        """Return the reason of the first block that has one."""
        return next((why for f in self.families if (why := f.no_evidence)), "")

    def with_blocks(self, families: Sequence[ConjugateFamily]) -> Self:
        """Return the same columns, described by other families."""
        return replace(self, families=tuple(families))

    def capability[K](self, kind: type[K]) -> K | None:
        """Combine the capabilities of the blocks."""
        answer: K | None = product(self, kind)
        return answer

    @property
    def n_features(self) -> int:
        """Columns of X in all blocks."""
        return sum(map(len, self.columns))

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """{block_param: dims}; every dim but ``class`` carries the block's name."""
        return {
            f"{name}_{param}": prefixed(f"{name}_", dims)
            for name, family, _ in self._blocks()
            for param, dims in family.params.items()
        }

    def coords(self) -> dict[str, Any]:
        """Collect those of each block, under its name."""
        return {
            prefixed(f"{name}_", (dim,))[0]: labels
            for name, family, _ in self._blocks()
            for dim, labels in family.coords().items()
        }

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """Sum over blocks."""
        return self._sum(
            lambda name, family, x: family.log_likelihood(x, _part(theta, name, family)), X
        )

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """Return (N, D) float rows."""
        return self._assemble(
            lambda name, family: family.simulate(rng, _part(theta, name, family), y), len(y)
        )

    def simulate_predictive(self, rng: np.random.Generator, y: Array) -> Array:
        """Return (N, D) float rows, a fresh theta for every row."""
        return self._assemble(lambda _, family: family.simulate_predictive(rng, y), len(y))

    def to_pymc(
        self, *, prefix: str = "", X: Matrix | None = None, y=None, stats=None
    ) -> dict[str, Any]:
        """Each block under its own name."""
        variables: dict[str, Any] = {}
        for k, (name, family, columns) in enumerate(self._blocks()):
            theta = family.to_pymc(
                prefix=f"{prefix}{name}_",
                X=None if X is None else X[:, columns],
                y=y,
                stats=None if stats is None else stats.parts[k],
            )
            variables |= {f"{name}_{param}": value for param, value in theta.items()}
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
        return self.join(f.stats(X[:, c], y, n_classes, weight) for _, f, c in self._blocks())

    def resolve(self, stats: ColumnsStats) -> Self:
        """Each block from its own statistics."""
        pairs = zip(self.families, stats.parts, strict=True)
        return self.with_blocks([f.resolve(s) for f, s in pairs])

    def update(self, stats: ColumnsStats) -> Self:
        """Block by block."""
        pairs = zip(self.families, stats.parts, strict=True)
        return self.with_blocks([f.update(s) for f, s in pairs])

    def mle(self, stats: ColumnsStats) -> dict[str, Array]:
        """Block by block."""
        parts = dict(zip(self.names, stats.parts, strict=True))
        return self._estimate(lambda name, family: family.mle(parts[name]))

    def map(self) -> dict[str, Array]:
        """Block by block."""
        return self._estimate(lambda _, family: family.map())

    def mean(self) -> dict[str, Array]:
        """Block by block."""
        return self._estimate(lambda _, family: family.mean())

    def draw(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """Independent over blocks."""
        return self._estimate(lambda _, family: family.draw(rng, n))

    def n_parameters(self) -> int:
        """Add up those of all blocks."""
        return sum(f.n_parameters() for f in self.families)

    def log_density(self, theta: Theta) -> Array:
        """Return (...) sum over blocks."""
        what = "the density of theta"
        parts = [
            require(f, ThetaDensity, what).log_density(_part(theta, name, f))
            for name, f, _ in self._blocks()
        ]
        return log_product(np.stack(parts), 0)

    def log_predictive(self, X: Matrix) -> Array:
        """Return (N, C) sum over blocks."""
        return self._sum(lambda _, family, x: family.log_predictive(x), X)

    def log_evidence(self, stats: ColumnsStats) -> float:
        """Sum over blocks."""
        pairs = zip(self.families, stats.parts, strict=True)
        return sum(f.log_evidence(s) for f, s in pairs)

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
        kinds_known = registry()
        families = []
        for name, kind, block_settings in zip(
            settings["names"], settings["families"], settings["settings"], strict=True
        ):
            families.append(
                kinds_known[kind].from_parts(
                    _strip(arrays, name, kinds_known[kind]), block_settings
                )
            )
        columns = tuple(tuple(c) for c in settings["columns"])
        return cls(tuple(settings["names"]), tuple(families), columns)  # type: ignore[arg-type]

    def read_stats(self, arrays: Mapping[str, Array], settings: Mapping[str, Any]) -> ColumnsStats:
        """Each block reads its own."""
        return self.join(
            family.read_stats(_strip(arrays, name, family.statistics), block_settings)
            for (name, family, _), block_settings in zip(
                self._blocks(), settings["parts"], strict=True
            )
        )

    def join(self, parts: Iterable[Stats]) -> ColumnsStats:
        """Return the statistics of the blocks as those of the product."""
        return ColumnsStats(self.names, tuple(parts))

    # -- plumbing ----------------------------------------------------------------------------

    def _sum(self, term: Callable[[str, ConjugateFamily, Matrix], Array], X: Matrix) -> Array:
        terms = [term(name, family, X[:, c]) for name, family, c in self._blocks()]
        return sum(terms[1:], start=terms[0])

    def _assemble(self, part: Callable[[str, ConjugateFamily], Array], n_rows: int) -> Array:
        cells = np.empty((n_rows, self.n_features))
        for name, family, columns in self._blocks():
            cells[:, columns] = part(name, family)
        return cells

    def _estimate(
        self, estimate: Callable[[str, ConjugateFamily], Mapping[str, Array]]
    ) -> dict[str, Array]:
        estimates: dict[str, Array] = {}
        for name, family, columns in self._blocks():
            try:
                theta = estimate(name, family)
            except UndefinedEstimateError as error:  # the block counts its own columns
                j = error.feature_index
                raise UndefinedEstimateError(
                    error.estimate,
                    error.reason,
                    error.class_index,
                    None if j is None else columns[j],
                    advice=error.advice,
                ) from None
            estimates |= {f"{name}_{param}": value for param, value in theta.items()}
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


def _part(theta: Theta, name: str, family: ConjugateFamily) -> dict[str, Array]:
    return {k: theta[f"{name}_{k}"] for k in family.params}


# ------------------------------------------------------------------------------------------------
# Capabilities of a product of families, made of the blocks' own.
#
# A product offers what is listed in `_PRODUCTS`. Some capabilities need every block: a rule is
# linear if all its parts are. Of others it is enough that one block offers them: the rest have
# nothing to say, which each class below spells out.


class Part(NamedTuple):
    """A block of columns, and what it offers."""

    name: str
    family: ConjugateFamily
    columns: list[int]
    offer: Any  # the block's capability, or None

    def theta(self, theta: Theta) -> dict[str, Array]:
        """Return the block's own parameters, without the name in front."""
        return _part(theta, self.name, self.family)

    def dims(self, dims: tuple[str, ...]) -> tuple[str, ...]:
        """Dims of the block as those of the product; every one but ``class`` has its name."""
        return prefixed(f"{self.name}_", dims)


@dataclass(frozen=True)
class _Product:
    """What a capability of a product is made of."""

    whole: "Columns"
    parts: list[Part]

    def _stats_of(self, stats) -> list[Any]:
        return [None] * len(self.parts) if stats is None else list(stats.parts)

    def _each(self, change: Callable[[Any, Part], Any]) -> "Columns":
        """Change the families that have the capability; keep the others."""
        pairs = ((p.family if p.offer is None else change(p.offer, p)) for p in self.parts)
        return self.whole.with_blocks(list(pairs))


class _ThetaDensity(_Product):
    def log_density(self, theta: Theta) -> Array:
        return self.whole.log_density(theta)


class _UnlabelledRows(_Product):
    def pymc_log_likelihood(self, X: Matrix, theta: Mapping[str, Any], *, prefix: str = ""):
        """Sum over blocks."""
        first, *others = (
            p.offer.pymc_log_likelihood(
                X[:, p.columns], p.theta(theta), prefix=f"{prefix}{p.name}_"
            )
            for p in self.parts
        )
        return sum(others, start=first)


class _PreparedPrior(_Product):
    def prepared(self, stats: "ColumnsStats | None") -> "Columns":
        block_stats = dict(zip(self.whole.names, self._stats_of(stats), strict=True))
        return self._each(lambda offer, part: offer.prepared(block_stats[part.name]))


class _SamplerCoordinates(_Product):
    def pymc_coordinates(self, theta: Theta, stats: "ColumnsStats | None") -> kinds.Variables:
        """Collect those of each block, under its name."""
        variables: kinds.Variables = {}
        for block, block_stats in zip(self.parts, self._stats_of(stats), strict=True):
            if block.offer is not None:
                free = block.offer.pymc_coordinates(block.theta(theta), block_stats)
                variables |= {f"{block.name}_{k}": (block.dims(d), v) for k, (d, v) in free.items()}
        return variables

    def pymc_data(self, stats: "ColumnsStats | None") -> dict[str, Array]:
        """Collect those of each block, under the names that ``to_pymc`` gives them."""
        data: dict[str, Array] = {}
        for block, block_stats in zip(self.parts, self._stats_of(stats), strict=True):
            if block.offer is not None:
                data |= {
                    f"{block.name}_{k}": value
                    for k, value in block.offer.pymc_data(block_stats).items()
                }
                continue
            for key, value in prior_data(block.family).items():  # the block's name follows the role
                role, field = key.split("_", 1)
                data[f"{role}_{block.name}_{field}"] = value
        return data


class _GivenRows(_Product):
    def given_rows(self, X: Matrix) -> "Columns":
        return self._each(lambda offer, part: offer.given_rows(X[:, part.columns]))


class _PlugInScore(_Product):
    def for_plug_in(self, method: Method) -> "Columns":
        return self._each(lambda offer, _: offer.for_plug_in(method))


class _LinearRule(_Product):
    def linear_form(self, theta: Theta | None) -> tuple[Array, Array]:
        """Return the blocks' weights in the order of the columns."""
        w: Any = None
        w0: Any = 0.0
        for block in self.parts:
            block_w, block_w0 = block.offer.linear_form(
                None if theta is None else block.theta(theta)
            )
            w = np.zeros((len(block_w), self.whole.n_features)) if w is None else w
            w[:, block.columns] = block_w
            w0 = w0 + block_w0
        return w, w0


class _FeatureInformation(_Product):
    def information(self, theta: Theta, weights: Array) -> Array:
        """Return (D,) each feature by its own family."""
        nats = np.empty(self.whole.n_features)
        for block in self.parts:
            nats[block.columns] = block.offer.information(block.theta(theta), weights)
        return nats


class _NullDistribution(_Product):
    def draw_null(self, rng: np.random.Generator, stats: "ColumnsStats") -> Stats:
        pairs = zip(self.parts, stats.parts, strict=True)
        return self.whole.join(p.offer.draw_null(rng, s) for p, s in pairs)


_PRODUCTS: dict[type, tuple[Callable[[Any], bool], type[_Product]]] = {
    kinds.ThetaDensity: (all, _ThetaDensity),
    kinds.UnlabelledRows: (all, _UnlabelledRows),
    kinds.PreparedPrior: (any, _PreparedPrior),
    kinds.SamplerCoordinates: (any, _SamplerCoordinates),
    kinds.GivenRows: (any, _GivenRows),
    kinds.PlugInScore: (any, _PlugInScore),
    kinds.LinearRule: (all, _LinearRule),
    kinds.FeatureInformation: (all, _FeatureInformation),
    kinds.NullDistribution: (all, _NullDistribution),
}


def product(whole: "Columns", kind: type):
    """Return the object that has the capability `kind` of `whole`, or None."""
    if kind not in _PRODUCTS:
        return None
    enough, made_of = _PRODUCTS[kind]
    blocks = zip(whole.names, whole.families, whole.columns, strict=True)
    parts = [Part(n, f, list(columns), f.capability(kind)) for n, f, columns in blocks]
    return made_of(whole, parts) if enough(p.offer is not None for p in parts) else None
