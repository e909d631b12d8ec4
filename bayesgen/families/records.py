"""Records: frozen dataclasses whose array fields name their dims.

Priors and statistics are records: they can be written to a file, read back, and cut along a dim.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from bayesgen.numerics.special import Array

type Hyperparameter = Any  # number, array or None as the user gives it; resolved, an array
type PriorObject = Any  # what `pymc_parts.variable` takes


def array(*dims: str, default=MISSING, signed: bool = False):
    """Dataclass field of an array with named dims; the names are its shape comment.

    `signed` matters to statistics alone: what is not signed is never negative.
    """
    return field(default=default, metadata={"dims": dims, "signed": signed})


def prior_object():
    """Dataclass field of a prior as an object (`pymc_parts.variable`), None for the default."""
    return field(default=None, metadata={"prior": True})


@dataclass(frozen=True, eq=False)
class Record:
    """Frozen dataclass whose array fields name their dims, so that it can be written to a file."""

    def arrays(self) -> dict[str, tuple[tuple[str, ...], Array]]:
        """{field: (dims, array)} of the array fields; an axis of length 1 may stand for all."""
        return {
            f.name: (f.metadata["dims"], np.asarray(getattr(self, f.name)))
            for f in fields(self)
            if "dims" in f.metadata
        }

    def settings(self) -> dict[str, Any]:
        """Return the other fields: plain values that JSON can hold; prior objects are left out."""
        return {f.name: getattr(self, f.name) for f in fields(self) if not f.metadata}

    def with_prior_objects(self, other: Self) -> Self:
        """Return the same with the prior objects of `other`, which no file holds."""
        names = [f.name for f in fields(self) if "prior" in f.metadata]
        return replace(self, **{name: getattr(other, name) for name in names})

    def filled(self, **defaults: Array) -> Self:
        """Return the same with these fields as float64 arrays: the default of each that is None.

        What is given broadcasts to the shape of its default.
        """
        arrays = {}
        for name, default in defaults.items():
            value = np.asarray(
                default if (current := getattr(self, name)) is None else current, np.float64
            )
            shape = np.broadcast_shapes(value.shape, np.shape(default))
            arrays[name] = (
                value if value.shape == shape else np.array(np.broadcast_to(value, shape))
            )
        return replace(self, **arrays)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled, copied and hashed: no caches, a fit changes no prior."""
        cls = type(self)
        return {
            name: value
            for name, value in vars(self).items()
            if not isinstance(getattr(cls, name, None), cached_property)
        }

    @classmethod
    def from_parts(cls, arrays: Mapping[str, Array], settings: Mapping[str, Any]) -> Self:
        """Inverse of `arrays` and `settings`."""
        return cls(**{name: np.asarray(a) for name, a in arrays.items()}, **settings)

    def at(self, dim: str, index) -> Self:
        """Return the record at some positions of a dim; an axis of length 1 stands for all."""
        arrays = {}
        for name, (dims, value) in self.arrays().items():
            if dim in dims:
                axis = dims.index(dim) - len(dims)
                if value.ndim >= -axis and value.shape[axis] > 1:
                    first = axis == -value.ndim and np.shape(index) == (1,) and index[0] >= 0
                    # one class: a view, as tables of very many categories are large
                    arrays[name] = value[index[0] :][:1] if first else value.take(index, axis)
        return replace(self, **arrays)
