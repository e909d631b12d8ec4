"""Tables of counts as chance deals them."""

import numpy as np
from scipy.stats import hypergeom

from bayesgen.families.shared.codes import deal

COUNTS = np.array([[[3, 0, 4, 1], [2, 2, 2, 2]], [[5, 1, 0, 0], [1, 4, 0, 1]], [[0, 2, 1, 1]] * 2])


def test_margins_stay_and_a_cell_is_hypergeometric():
    rng = np.random.default_rng(2)
    found = np.array([deal(rng, COUNTS) for _ in range(2000)])
    np.testing.assert_array_equal(found.sum(axis=1), np.broadcast_to(COUNTS.sum(0), (2000, 2, 4)))
    np.testing.assert_array_equal(found.sum(axis=3), np.broadcast_to(COUNTS.sum(2), (2000, 3, 2)))
    for c, d, k in np.ndindex(COUNTS.shape):
        law = hypergeom(COUNTS[:, d].sum(), COUNTS[:, d, k].sum(), COUNTS[c, d].sum())
        assert abs(found[:, c, d, k].mean() - law.mean()) <= 5 * law.std() / np.sqrt(2000)


def test_more_than_numpy_deals_is_normal():
    few, many = 10 * COUNTS, 10**9 * COUNTS.astype(float)
    rng = np.random.default_rng(3)
    found = np.array([deal(rng, many) for _ in range(400)])
    np.testing.assert_array_equal(found[0].sum(axis=0), many.sum(axis=0))
    n, good, drawn = (many.sum(axis=(0, 2))[0], many[:, 0, 0].sum(), many[0, 0].sum())
    share = good / n
    sd = np.sqrt(drawn * share * (1 - share) * (n - drawn) / (n - 1))
    own = found[:, 0, 0, 0]
    assert abs(own.mean() - drawn * share) <= 5 * sd / np.sqrt(400)
    assert abs(own.std() / sd - 1) <= 5 / np.sqrt(800)
    assert deal(rng, few).sum() == few.sum()
