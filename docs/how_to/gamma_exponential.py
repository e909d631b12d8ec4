"""Waiting times: the exponential with its conjugate prior, a whole family in one file."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesgen.families import (
    ConjugateFamily,
    Stats,
    array,
    broadcast_prior,
    refuse_undefined,
)
from bayesgen.numerics.rows import class_sums, split_missing
from bayesgen.numerics.special import log_gamma_difference

CELLS = ("class", "feature")


@dataclass(frozen=True, eq=False)
class WaitStats(Stats):
    """Number and sum of the observed cells."""

    rows: Any = array(*CELLS)
    total: Any = array(*CELLS)


@dataclass(frozen=True, eq=False)
class GammaExponential(ConjugateFamily):
    """x_j | y=c ~ Exponential(lam_cj), lam ~ Gamma(shape, rate): waiting times."""

    statistics = WaitStats
    tunable = ("shape", "rate")
    shape: Any = array(*CELLS, default=1.0)
    rate: Any = array(*CELLS, default=1.0)

    @property
    def params(self):
        return {"lam": CELLS}

    @classmethod
    def examples(cls, n_classes, n_features):
        return [cls(np.full((n_classes, n_features), 3.0), np.full((n_classes, n_features), 2.0))]

    def log_likelihood(self, X, theta):
        lam = np.asarray(theta["lam"])[..., None, :, :]
        return np.nansum(np.log(lam) - lam * X[:, None, :], axis=-1)

    def simulate(self, rng, theta, y):
        return rng.exponential(1 / self.rows_of(theta, "lam", y))

    def stats(self, X, y, n_classes, weight=None):
        X, missing = split_missing(np.asarray(X, dtype=float))
        seen = np.ones_like(X) if missing is None else 1.0 - missing
        return WaitStats(
            class_sums(seen, y, n_classes, weight), class_sums(X, y, n_classes, weight)
        )

    def resolve(self, stats):
        cells = stats.rows.shape
        shape, rate = (broadcast_prior(k, getattr(self, k), cells) for k in ("shape", "rate"))
        return replace(self, shape=shape, rate=rate)

    def update(self, stats):
        return replace(self, shape=self.shape + stats.rows, rate=self.rate + stats.total)

    def mle(self, stats):
        refuse_undefined("mle", stats.total <= 0, "nothing was waited for")
        return {"lam": stats.rows / stats.total}

    def map(self):
        refuse_undefined("map", self.shape < 1, "the density is unbounded at 0")
        return {"lam": (self.shape - 1) / self.rate}

    def mean(self):
        return {"lam": self.shape / self.rate}

    def draw(self, rng, n):
        return {"lam": rng.gamma(self.shape, 1 / self.rate, size=(n, *self.shape.shape))}

    def log_predictive(self, X):
        a, b = self.shape, self.rate
        return np.nansum(np.log(a / b) - (a + 1) * np.log1p(X[:, None, :] / b), axis=-1)

    def log_evidence(self, stats):
        a, b, n, s = self.shape, self.rate, stats.rows, stats.total
        return float(np.sum(log_gamma_difference(a, n) - n * np.log(b) - (a + n) * np.log1p(s / b)))
