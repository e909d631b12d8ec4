"""Capabilities of a product of families, made of the blocks' own.

A product offers what is listed in `_PRODUCTS`. Some capabilities need every block: a rule is linear
if all its parts are. Of others it is enough that one block offers them: the rest have nothing to
say, which each class below spells out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesgen.families import capabilities as kinds
from bayesgen.families.contract import ConjugateFamily, Stats, Theta
from bayesgen.families.names import CLASS, Method
from bayesgen.families.shared.pymc_parts import prior_data
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    from bayesgen.families.conjugate.columns.family import Columns, ColumnsStats


class Part(NamedTuple):
    """A block of columns, and what it offers."""

    name: str
    family: ConjugateFamily
    columns: list[int]
    offer: Any  # the block's capability, or None

    def theta(self, theta: Theta) -> dict[str, Array]:
        """The block's own parameters, without the name in front."""
        return {k: theta[f"{self.name}_{k}"] for k in self.family.params}

    def dims(self, dims: tuple[str, ...]) -> tuple[str, ...]:
        """Dims of the block as those of the product; every one but ``class`` has its name."""
        return tuple(d if d == CLASS else f"{self.name}_{d}" for d in dims)


@dataclass(frozen=True)
class _Product:
    """What a capability of a product is made of."""

    whole: "Columns"
    parts: list[Part]

    def _stats_of(self, stats: Any) -> list[Any]:
        return [None] * len(self.parts) if stats is None else list(stats.parts)

    def _each(self, change: Callable[[Any, Part], Any]) -> "Columns":
        """The product of changed families; blocks without the capability stay as they are."""
        pairs = ((p.family if p.offer is None else change(p.offer, p)) for p in self.parts)
        return self.whole.with_blocks(list(pairs))


class _ThetaDensity(_Product):
    def log_density(self, theta: Theta) -> Array:
        return self.whole.log_density(theta)


class _UnlabelledRows(_Product):
    def pymc_log_likelihood(self, X: Matrix, theta: Mapping[str, Any], *, prefix: str = "") -> Any:
        """Sum over blocks."""
        first, *rest = (
            p.offer.pymc_log_likelihood(
                X[:, p.columns], p.theta(theta), prefix=f"{prefix}{p.name}_"
            )
            for p in self.parts
        )
        return sum(rest, start=first)


class _PreparedPrior(_Product):
    def prepared(self, stats: "ColumnsStats | None") -> "Columns":
        own = dict(zip(self.whole.names, self._stats_of(stats), strict=True))
        return self._each(lambda offer, part: offer.prepared(own[part.name]))


class _SamplerCoordinates(_Product):
    def pymc_coordinates(self, theta: Theta, stats: "ColumnsStats | None") -> kinds.Variables:
        """Those of each block, under its name."""
        out: kinds.Variables = {}
        for part, own in zip(self.parts, self._stats_of(stats), strict=True):
            if part.offer is not None:
                free = part.offer.pymc_coordinates(part.theta(theta), own)
                out |= {f"{part.name}_{k}": (part.dims(d), v) for k, (d, v) in free.items()}
        return out

    def pymc_data(self, stats: "ColumnsStats | None") -> dict[str, Array]:
        """Those of each block, under the names that ``to_pymc`` gives them."""
        out: dict[str, Array] = {}
        for part, own in zip(self.parts, self._stats_of(stats), strict=True):
            if part.offer is not None:
                out |= {f"{part.name}_{k}": value for k, value in part.offer.pymc_data(own).items()}
                continue
            for key, value in prior_data(part.family).items():  # the block's name follows the role
                role, field = key.split("_", 1)
                out[f"{role}_{part.name}_{field}"] = value
        return out


class _MissingCells(_Product):
    def default_stats(self, X: Matrix, y: Array, n_classes: int, weight: Array | None) -> Stats:
        def own(part: Part) -> Stats:
            of_rows = part.family.stats if part.offer is None else part.offer.default_stats
            found: Stats = of_rows(X[:, part.columns], y, n_classes, weight)
            return found

        return self.whole.join(map(own, self.parts))

    def completed(self, X: Matrix, c: int) -> Matrix:
        out = X.copy()
        for part in self.parts:
            if part.offer is not None:
                out[:, part.columns] = part.offer.completed(X[:, part.columns], c)
        return out

    def condensed(self, X: Matrix, weight: Array) -> tuple[Matrix, Array]:
        """The rows as they are."""
        return X, weight

    def draw_missing(
        self, rng: np.random.Generator, X: Matrix, y: Array, theta: Theta
    ) -> tuple[Array, Array, Array]:
        parts = []
        for part in self.parts:
            if part.offer is not None:
                x, own = X[:, part.columns], part.theta(theta)
                values, row, column = part.offer.draw_missing(rng, x, y, own)
                parts.append((values, row, np.asarray(part.columns)[column]))
        values, row, column = (np.concatenate(p, axis=-1) for p in zip(*parts, strict=True))
        order = np.lexsort([column, row])
        return values[:, order], row[order], column[order]


class _GivenRows(_Product):
    def given_rows(self, X: Matrix) -> "Columns":
        return self._each(lambda offer, part: offer.given_rows(X[:, part.columns]))


class _PlugInScore(_Product):
    def for_plug_in(self, method: Method) -> "Columns":
        return self._each(lambda offer, _: offer.for_plug_in(method))


class _DensityCumulants(_Product):
    def density_cumulants(self, X: Matrix, seen: int) -> Array:
        """Sum over blocks."""
        own = (p.offer.density_cumulants(X[:, p.columns], seen) for p in self.parts)
        return np.asarray(sum(own))


class _LinearRule(_Product):
    def linear_form(self, theta: Theta | None) -> tuple[Array, Array]:
        """The blocks' weights in the order of the columns."""
        w: Any = None
        w0: Any = 0.0
        for part in self.parts:
            own, own0 = part.offer.linear_form(None if theta is None else part.theta(theta))
            w = np.zeros((len(own), self.whole.n_features)) if w is None else w
            w[:, part.columns] = own
            w0 = w0 + own0
        return w, w0


class _FeatureInformation(_Product):
    def information(self, theta: Theta, weights: Array) -> Array:
        """(D,) each feature by its own family."""
        out = np.empty(self.whole.n_features)
        for part in self.parts:
            out[part.columns] = part.offer.information(part.theta(theta), weights)
        return out


class _NullDistribution(_Product):
    def draw_null(self, rng: np.random.Generator, stats: "ColumnsStats") -> Stats:
        own = zip(self.parts, stats.parts, strict=True)
        return self.whole.join(p.offer.draw_null(rng, s) for p, s in own)


_PRODUCTS: dict[type, tuple[Callable[[Any], bool], type[_Product]]] = {
    kinds.ThetaDensity: (all, _ThetaDensity),
    kinds.UnlabelledRows: (all, _UnlabelledRows),
    kinds.PreparedPrior: (any, _PreparedPrior),
    kinds.SamplerCoordinates: (any, _SamplerCoordinates),
    kinds.MissingCells: (any, _MissingCells),
    kinds.GivenRows: (any, _GivenRows),
    kinds.PlugInScore: (any, _PlugInScore),
    kinds.DensityCumulants: (all, _DensityCumulants),
    kinds.LinearRule: (all, _LinearRule),
    kinds.FeatureInformation: (all, _FeatureInformation),
    kinds.NullDistribution: (all, _NullDistribution),
}


def product(whole: "Columns", kind: type) -> Any:
    """What answers for a capability of `whole`: an object of `kind`, or None."""
    if kind not in _PRODUCTS:
        return None
    enough, made_of = _PRODUCTS[kind]
    blocks = zip(whole.names, whole.families, whole.columns, strict=True)
    parts = [Part(n, f, list(columns), f.capability(kind)) for n, f, columns in blocks]
    return made_of(whole, parts) if enough(p.offer is not None for p in parts) else None
