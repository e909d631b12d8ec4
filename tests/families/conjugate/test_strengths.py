"""The pattern search finds the highest point of a lattice, at its edges too."""

import numpy as np
import pytest

from bayesgen.families.conjugate.dirichlet_forest import START, lattice_value, search_lattice


@pytest.mark.parametrize("peak", [(6, 0), (-4, -5), (18, 5), (3, -4), (11, 2), (-30, 50)])
@pytest.mark.parametrize("free", [(True, True), (True, False), (False, True)])
def test_the_highest_point(peak, free):
    def evidence(strength, root):
        place = 2 * np.log2(strength), 2 * np.log10(root / 7)
        return -sum((a - b) ** 2 for a, b in zip(place, peak, strict=True))

    edges = (-4, 18), (-5, 5)
    point = [
        min(max(at, low), high) if is_free else start
        for at, (low, high), is_free, start in zip(peak, edges, free, START, strict=True)
    ]
    assert search_lattice(evidence, 7, free) == lattice_value(7, (point[0], point[1]))
    assert lattice_value(7, (4, 2)) == pytest.approx((4.0, 70.0))
