r"""Columns of several kinds, some of which have no closed form: those alone are drawn.

Given the class the blocks are independent, in the posterior too. With theta of the sampled blocks s
and the closed forms of the others,

.. math:: p(x | y=c, D) = \prod_b p_b(x_b | y=c, D) \,
          \mathrm{E} \prod_s p_s(x_s | \theta_{sc}) .

The expectation is over draws, so that only the sampled columns add a Monte Carlo error. Intervals
draw the parameters of the other blocks from their closed forms.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from bayesgen.families.capabilities import DataScaledDefaults, PartlyClosed
from bayesgen.families.conjugate.columns import Columns, product
from bayesgen.families.contract import Block, Stats, Theta
from bayesgen.families.errors import NoClosedFormError
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array


@dataclass(frozen=True, eq=False)
class SampledColumns(Columns):
    """Independent blocks of columns; those of `integrated` have no parameters left.

    Parameters
    ----------
    names, families, columns
        As in `Columns`; at least one family is not conjugate.
    integrated : tuple of str
        Blocks with a closed form whose parameters are integrated out of the densities.

    Examples
    --------
    >>> from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
    >>> from bayesgen.families.sampled.student_t import StudentT
    >>> family = SampledColumns(("t", "bit"), (StudentT(), BetaBernoulli()), ((0,), (1,)))
    >>> list(family.without_closed().params)
    ['t_mu', 't_sigma', 't_nu']
    """

    conjugate: ClassVar[bool] = False
    statistics: ClassVar[type[Stats]] = Stats

    integrated: tuple[str, ...] = ()

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """None: the laws hold for each block."""
        return []

    def blocks(self, stats: Any = None, theta: Any = None) -> Iterator[Block]:
        """The blocks; their statistics are empty, like those of the whole."""
        return (block._replace(stats=stats) for block in super().blocks(None, theta))

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """{block_param: dims} of the blocks that are not integrated out."""
        if not self.integrated:
            return super().params
        return self._only(lambda name, _: name not in self.integrated).params

    def capability[K](self, kind: type[K]) -> K | None:
        """What the blocks' own capabilities make up, and what this family has itself."""
        closed = any(family.conjugate for family in self.families)
        own = kind is DataScaledDefaults or (kind is PartlyClosed and closed)
        found: Any = self if own else product(self, kind)
        return found

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """(..., N, C) sum over blocks; of those integrated out the predictive."""

        def term(name: str, family: Any, x: Matrix) -> Array:
            if name in self.integrated:
                found: Array = family.log_predictive(x)
                return found
            own = {k: theta[f"{name}_{k}"] for k in family.params}
            return np.asarray(family.log_likelihood(x, own))

        return self._sum(term, X)

    # -- what is drawn, and what is not ------------------------------------------------------

    def with_defaults(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> Self:
        """Each block with the defaults that the rows set."""
        if (y < 0).any():
            raise NoClosedFormError(
                "rows without a label are not taken where some columns are sampled and others "
                "have a closed form: use unlabelled='ignore'"
            )

        def own(family: Any, x: Matrix) -> Any:
            if family.conjugate:
                return family.resolve(family.stats(x, y, n_classes, weight))
            asked = family.capability(DataScaledDefaults)
            return family if asked is None else asked.with_defaults(x, y, n_classes, weight)

        return self.with_blocks([own(family, X[:, c]) for _, family, c in self._blocks()])

    def given(self, X: Matrix, y: Array, n_classes: int, weight: Array | None) -> Self:
        """The posterior of the blocks that have a closed form; the others as they are."""
        return self.with_blocks(
            [
                family.update(family.stats(X[:, c], y, n_classes, weight))
                if family.conjugate
                else family
                for _, family, c in self._blocks()
            ]
        )

    def sampled(self) -> Self:
        """The blocks that need a sampler."""
        return self._only(lambda _, family: not family.conjugate)

    def without_closed(self) -> Self:
        """The same with the closed blocks integrated out."""
        closed = [name for name, family, _ in self._blocks() if family.conjugate]
        return replace(self, integrated=tuple(closed))

    def draw_closed(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """{block_param: (n, *dims)} independent draws of the closed blocks."""
        closed = self._only(lambda _, family: family.conjugate)
        return closed._estimate(lambda _, family: family.draw(rng, n)) if closed.names else {}

    def _only(self, chosen: Callable[[str, Any], bool]) -> Self:
        kept = [block for block in self._blocks() if chosen(block[0], block[1])]
        names, families, columns = zip(*kept, strict=True) if kept else ((), (), ())
        own = tuple(tuple(c) for c in columns)
        return replace(self, names=names, families=families, columns=own, integrated=())

    # -- files -------------------------------------------------------------------------------

    def read_stats(self, arrays: Mapping[str, Array], settings: Mapping[str, Any]) -> Any:
        """There are none."""
        return Stats()
