"""Draws of what training rows do not tell: labels and cells that are missing."""

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesgen.datatree import tree
from bayesgen.datatree.groups import labels_given_x
from bayesgen.families.capabilities import MissingCells, require
from bayesgen.families.names import CHAIN, DRAW
from bayesgen.inference.incomplete import has_gaps
from bayesgen.inference.sampled import Data
from bayesgen.numerics.special import Array
from bayesgen.posterior.drawn import DrawnPosterior

if TYPE_CHECKING:
    import xarray as xr

_BYTES = 1 << 30  # imputations that would be larger are left out
UNLABELLED, CELL = "unlabelled_row", "cell"


class Imputed(NamedTuple):
    """Draws of missing labels and cells, and which rows and columns they stand in."""

    variables: dict[str, Any]
    unlabelled: Array  # (L,) rows
    row: Array  # (M,) of the cells
    column: Array  # (M,)

    def named(self, features: list[Any], at: Array | None) -> "xr.Dataset":
        """As a Dataset; `at` are the positions of the rows among those that were given."""
        place = (lambda rows: rows) if at is None else at.__getitem__
        coords: dict[str, Any] = {}
        if len(self.unlabelled):
            coords[UNLABELLED] = place(self.unlabelled)
        if "imputed" in self.variables:
            names = np.array([str(n) for n in features])
            coords |= {"row": (CELL, place(self.row)), "column": (CELL, names[self.column])}
        return tree.group(self.variables, {}).assign_coords(coords)


def imputed(
    posterior: DrawnPosterior, exact: bool, rng: np.random.Generator, data: Data
) -> Imputed | None:
    """Draws given theta and what the rows do tell; None if nothing is missing.

    Parameters
    ----------
    posterior : DrawnPosterior
    exact : bool
        Whether the rows have a closed form: missing cells then need no draws.
    rng : numpy.random.Generator
    data : Data
        Training rows.

    Warns
    -----
    UserWarning
        If the draws would take more than 1 GiB, and are not made.
    """
    model, X, codes = posterior.model, data.X, data.codes
    family, theta = model.family, posterior.theta
    unlabelled = np.flatnonzero(codes < 0)
    gaps = np.array([], dtype=int)
    if not exact and has_gaps(family):
        gaps = np.flatnonzero(np.isnan(X).any(axis=1))
    if not (len(unlabelled) or len(gaps)) or not model.generative:
        return None
    lead = posterior.shape
    size = len(unlabelled) + (int(np.isnan(X[gaps]).sum()) if len(gaps) else 0)
    if 8 * size * int(np.prod(lead)) > _BYTES:
        warnings.warn(
            f"draws of {size} missing labels and cells would take more than 1 GiB: "
            "posterior_ has no group posterior_predictive; the rest is not affected",
            UserWarning,
            stacklevel=4,
        )
        return None
    variables: dict[str, Any] = {}
    row = column = np.array([], dtype=int)
    drawn = np.broadcast_to(codes, (*lead, len(codes))).copy()
    if len(unlabelled):
        found = labels_given_x(rng, family, theta, X[unlabelled])
        drawn[..., unlabelled] = found
        variables["imputed_label"] = ((CHAIN, DRAW, UNLABELLED), found)
    if len(gaps):
        flat = {k: v.reshape(-1, *v.shape[2:]) for k, v in theta.items()}
        own = drawn[..., gaps].reshape(-1, len(gaps))
        cells = require(family, MissingCells, "draws of missing cells")
        values, row, column = cells.draw_missing(rng, X[gaps], own, flat)
        variables["imputed"] = ((CHAIN, DRAW, CELL), values.reshape(*lead, -1))
        row = gaps[row]
    return Imputed(variables, unlabelled, row, column)
