"""Errors that say which class and which feature they are about."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesgen.errors import Facts, InputError
from bayesgen.numerics.special import Array


class NoClosedFormError(Facts, ValueError, AttributeError):
    """The method needs a closed form, and this fit has none; `hasattr` is then False."""


class UndefinedEstimateError(Facts, ValueError):
    """A point estimate that does not exist, with the cell where it fails.

    Parameters
    ----------
    estimate : str
        "mle", "map" or "posterior_mean".
    reason : str
    class_index, feature_index : int or None
    class_name, feature_name
        In the user's own names; the latter is also `column`.
    advice : str, optional
    """

    def __init__(
        self,
        estimate: str,
        reason: str,
        class_index: int | None = None,
        feature_index: int | None = None,
        class_name: Any = None,
        feature_name: Any = None,
        advice: str | None = None,
    ) -> None:
        self.estimate, self.reason = estimate, reason
        self.class_index, self.feature_index = class_index, feature_index
        c = class_index if class_name is None else class_name
        j = feature_index if feature_name is None else feature_name
        named = (("class", c), ("feature", j))
        self.where = ", ".join(f"{what} {name!r}" for what, name in named if name is not None)
        place = f" for {self.where}" if self.where else ""
        why = f"method={estimate!r} is undefined{place}: {reason}"
        super().__init__(why, column=j, advice=advice)

    @property
    def cause(self) -> str:
        """Return the reason with the class and the feature, whatever the estimate is called."""
        return f"{self.where}: {self.reason}" if self.where else self.reason

    def renamed(self, class_names: Any, feature_names: Any) -> "UndefinedEstimateError":
        """Return the same error in the user's own names."""

        def name(names, k: int | None):
            value = None if k is None or k >= len(names) else names[k]
            return value.item() if isinstance(value, np.generic) else value

        c, j = self.class_index, self.feature_index
        names = name(class_names, c), name(feature_names, j)
        return UndefinedEstimateError(self.estimate, self.reason, c, j, *names, self.advice)


class NoPosteriorError(Facts, NotImplementedError):
    """Something was asked of the posterior of theta, which only its predictive approximates."""


class IncompleteRowError(Facts, ValueError):
    """A cell is not known, and only probabilities are summed over what it may be."""


class NotLinearError(Facts, ValueError):
    """The decision rule asked for is not linear in the features; the message says why."""


def refuse_undefined(estimate: str, bad: Array, reason: str, advice: str | None = None) -> None:
    """Raise `UndefinedEstimateError` at the first True cell of `bad`, (C,) or (C, D, ...)."""
    bad = np.asarray(bad)
    if bad.any():
        cell: list[int | None] = [*map(int, np.argwhere(bad)[0]), None]
        c, j = cell[:2]
        raise UndefinedEstimateError(estimate, reason, c, j, advice=advice)


def refuse_negative(name: str, value: Array, before: Array) -> None:
    """Raise if removing rows left a count below zero by more than rounding."""
    if value.size and np.any(value < -1e-9 * np.maximum(1.0, np.abs(before))):
        raise ValueError(
            f"remove: {name!r} would become negative ({float(np.min(value)):g}); "
            "only rows that were merged before can be removed"
        )


class PriorShapeError(InputError):
    """A hyper-parameter has a shape that does not broadcast to the classes and features."""


class MissingCapabilityError(Facts, NotImplementedError):
    """A family does not have the capability that a caller needs.

    Parameters
    ----------
    what : str
        What was asked for.
    capability : str
        Its protocol in `bayesgen.families.capabilities`.
    members : sequence of str
        The methods of the protocol.
    families : sequence of str
        The classes that lack them.
    """

    def __init__(
        self, what: str, capability: str, members: Sequence[str], families: Sequence[str]
    ) -> None:
        self.what, self.capability = what, capability
        self.members, self.families = tuple(members), tuple(families)
        super().__init__(
            f"{what} needs the capability {capability} ({', '.join(members)}), which "
            f"{' and '.join(families)} does not offer; see bayesgen.families.capabilities"
        )
