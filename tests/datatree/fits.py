"""Fits whose trees are looked at: cases of the estimators with few rows."""

from collections.abc import Collection
from functools import cached_property
from typing import Any

import numpy as np

from bayesgen.datatree.tree import read_draws
from tests.estimators.cases import CASES, sample

BOTH = ("label", "x")


class Fit:
    """A case of the estimators, fitted and drawn from once."""

    def __init__(self, name: str, n: int, groups: Collection[str], *draws: int) -> None:
        self.name, self.groups, self.draws = name, groups, draws
        self.clf = CASES[name].make()
        self.X, self.codes, self.y = sample(CASES[name], n)

    @cached_property
    def fitted(self) -> Any:
        return self.clf.fit(self.X, self.y)

    @cached_property
    def encoded(self) -> Any:
        return self.fitted.fitted_.read(self.X).encoded

    @cached_property
    def tree(self) -> Any:
        rows = {"X": self.X, "y": self.y, "replicate": BOTH}
        return self.fitted.draw_posterior(*self.draws, groups=self.groups, **rows)

    @cached_property
    def theta(self) -> dict[str, np.ndarray]:
        return read_draws(self.tree, self.fitted.model_.params, self.fitted.fitted_.coords)

    @cached_property
    def log_joint(self) -> np.ndarray:
        """Return log p(c, x_i | theta) of every draw, (chain, draw, N, C)."""
        log_density = self.fitted.model_.family.log_likelihood(self.encoded, self.theta)
        return log_density + np.log(self.theta["pi"])[..., None, :]
