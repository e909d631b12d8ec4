"""The coordinates of word probabilities: there and back, their Jacobian, round at the counts."""

import numpy as np
import pytest

from bayesgen.families.shared.documents import counted_simplex
from tests.graphs import PYTHON

pt = pytest.importorskip("pytensor.tensor")


def test_coordinates_and_their_jacobian():
    rng = np.random.default_rng(0)
    counts = np.array([[3.0, 1.0, 0.5, 40.0], [2.0, 5.0, 9.0, 0.2]])
    transform, inputs = counted_simplex(), (None, None, pt.as_tensor(counts))
    value = pt.matrix(dtype="float64")
    back, log_jac = transform.backward(value, *inputs), transform.log_jac_det(value, *inputs)
    there = transform.forward(back, *inputs)

    def at(u):
        return [out.eval({value: u}, mode=PYTHON) for out in (back, log_jac, there)]

    def slopes(u, of=np.asarray):
        ends = [[of(at(u + sign * h * e)[0]) for sign in (1, -1)] for e in np.eye(3)]
        return np.stack([(up - down) / (2 * h) for up, down in ends], axis=1)

    u, h = rng.normal(size=(2, 3)), 1e-5
    p, found, again = at(u)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(again, u, rtol=1e-10, atol=1e-12)
    expected = np.linalg.slogdet(slopes(u)[..., :-1])[1]
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    shares = counts / counts.sum(axis=1, keepdims=True)
    origin = transform.forward(pt.as_tensor(shares), *inputs).eval(mode=PYTHON)
    at_counts = slopes(origin, np.log)
    information = np.einsum("cj,ckj,clj->ckl", counts, at_counts, at_counts)
    np.testing.assert_allclose(information, np.broadcast_to(np.eye(3), (2, 3, 3)), atol=1e-7)
