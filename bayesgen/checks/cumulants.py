r"""The cumulant generating function K of log joint densities against draws.

With a_c = log p(y = c, x | theta), for some rows x:

- its first derivative at 0 is E a_c;
- at imaginary t it is the logarithm of the characteristic function: means of cosines and sines,
  whose error is Normal whatever the tails, and which hold the covariance of a_c and a_d;
- at real t, of :math:`e^{t \cdot a}`, where the draws are enough for that: their sums may exceed 2.
"""

from typing import Any

import numpy as np

from bayesgen.checks.agreement import compare_mean
from bayesgen.checks.quantities import Comparisons
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import ClassModel

_STEP = 1e-3  # of a standard deviation, in the derivative
_POWERS = (0.5, 3.0)


def add_cumulants(
    into: Comparisons, model: ClassModel, rows: Any, log_joint: Array, places: list[list[str]]
) -> None:
    """Compare K with draws of the log joint densities.

    Parameters
    ----------
    model : ClassModel
        The posterior.
    rows : (N, D) as the family takes them
    log_joint : (chain, draw, N, C)
        By NUTS.
    places : N lists of C words
    """
    n_classes = log_joint.shape[-1]
    unit = np.eye(n_classes)
    series: dict[str, list[Array]] = {"E log p(x, y | theta)": []}
    exact: dict[str, list[float]] = {"E log p(x, y | theta)": []}
    labels: dict[str, list[str]] = {"E log p(x, y | theta)": []}

    def put(name: str, place: str, value: Array, expected: float) -> None:
        series.setdefault(name, []).append(value)
        exact.setdefault(name, []).append(expected)
        labels.setdefault(name, []).append(place)

    for i, places_of_row in enumerate(places):
        row = rows[i : i + 1]

        def cgf(t: Array, row: Any = row) -> Array:
            found: Array = model.cgf(row, t[:, None, :])[:, 0]
            return found

        for c, place in enumerate(places_of_row):
            a, d = log_joint[:, :, i, c], (c + 1) % n_classes
            sd = a.std()
            if sd == 0:
                continue
            h = _STEP / sd * unit[c]
            ahead, behind = cgf(np.stack([h, -h]))
            mean = (ahead - behind) / (2 * _STEP / sd)
            put("E log p(x, y | theta)", place, a, float(mean))
            directions = [(place, unit[c], a)]
            if n_classes > 1:
                other = places_of_row[d]
                difference = a - log_joint[:, :, i, d]
                directions.append((f"{place} - {other}", unit[c] - unit[d], difference))
            for words, t, value in directions:
                spread = value.std()
                if spread == 0:
                    continue
                centre = value.mean()
                phase = (value - centre) / spread
                log_phi = cgf(1j * t[None] / spread)[0] - 1j * centre / spread
                phi = np.exp(log_phi)
                put("characteristic function", f"{words}, cos", np.cos(phase), phi.real)
                put("characteristic function", f"{words}, sin", np.sin(phase), phi.imag)
            top = a.max()
            for power in _POWERS:
                t = power / sd if power < 1 else power
                expected = np.exp(cgf(t * unit[c][None])[0] - t * top)
                put("E p(x, y | theta)^t", f"{place}, t = {t:.3g}", np.exp(t * (a - top)), expected)
    for name, values in series.items():
        if values:
            found = compare_mean(np.stack(values, axis=-1), np.array(exact[name]))
            into.add(name, labels[name], found)
