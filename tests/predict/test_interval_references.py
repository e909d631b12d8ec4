"""Intervals by draws against ends found by inversion of characteristic functions.

The file holds what the package had before intervals were drawn (issue 39): ends of 89 % equal-tail
intervals of the first class, as log odds, from ``predict_interval(row, .89, "eti",
method="exact")``, by Gil-Pelaez inversion for two classes and 4096 quasi-random points for more,
whose own errors of a percentile are below .001. The share of draws beyond an end is binomial.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bayesgen as bg

FILE = Path(__file__).parent / "interval_references.json"
CASES = [(2, 5), (2, 20), (2, 100), (3, 5), (3, 100), (6, 20)]  # classes, rows of each
DRAWS, PROB = 20_000, 0.89


def data(kind: str, n_classes: int, n: int) -> tuple[Any, Any, Any]:
    """Training rows, labels, and one new row."""
    rng = np.random.default_rng([n_classes, n, len(kind)])
    y = np.repeat(np.arange(n_classes), n)
    centre = rng.normal(0, 1, (n_classes, 4))
    z = centre[y] + rng.normal(0, 1, (len(y), 4))
    new = centre[0] + rng.normal(0, 1, (1, 4))
    if kind in ("GaussianNB", "LinearDiscriminant", "QuadraticDiscriminant"):
        return z, y, new
    if kind == "BernoulliNB":
        return (z > 0).astype(int), y, (new > 0).astype(int)
    if kind == "CategoricalNB":
        return np.digitize(z, [-0.7, 0.7]), y, np.digitize(new, [-0.7, 0.7])
    rate = np.exp(0.7 * centre)
    return rng.poisson(rate[y]), y, rng.poisson(rate[:1])


CLASSIFIERS = ["BernoulliNB", "CategoricalNB", "GaussianNB", "LinearDiscriminant"]
CLASSIFIERS += ["MultinomialNB", "PoissonNB", "QuadraticDiscriminant"]


@pytest.mark.filterwarnings("ignore::bayesgen.UnknownCategoryWarning")
@pytest.mark.parametrize(("n_classes", "n"), CASES)
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_share_of_draws_beyond_the_ends(kind: str, n_classes: int, n: int) -> None:
    X, y, new = data(kind, n_classes, n)
    clf = getattr(bg, kind)(prior="default").fit(X, y)
    tree = clf.predict_posterior(new, DRAWS)
    p = tree["predictions"]["class_probability"].values[0, :, 0]
    ends = json.loads(FILE.read_text())[f"{kind} {n_classes} {n}"]
    q = (1 - PROB) / 2
    odds = np.log(p[:, 0]) - np.log(p[:, 1:].sum(axis=1))
    shares = np.array([np.mean(odds < ends[0]), np.mean(odds > ends[1])])
    assert np.abs(shares - q).max() < 4 * np.sqrt(q * (1 - q) / DRAWS) + 5e-4
