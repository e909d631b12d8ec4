"""What rows are scored by, given theta: the family's log likelihood, or what replaces it."""

from collections.abc import Callable
from typing import Literal

from bayesgen.families.capabilities import Discriminant, PlugInScore
from bayesgen.families.contract import Family, Theta
from bayesgen.families.names import Method
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array

Quantity = Literal["density", "probability"]
Score = Callable[[Matrix, Theta], Array]


def score(family: Family, quantity: Quantity) -> Score:
    """(X, theta) to (..., N, C) log densities.

    Up to a term that the classes of a row have in common, for the ``"probability"`` of a class and
    where the family has it cheaper.
    """
    own = family.capability(Discriminant) if quantity == "probability" else None
    return family.log_likelihood if own is None else own.discriminant


def plug_in_score(family: Family, method: Method, quantity: Quantity) -> Score:
    """The same for the theta of a plug-in method."""
    own = family.capability(PlugInScore)
    return score(family if own is None else own.for_plug_in(method), quantity)
