"""Labels to codes: what is looked up or counted is what sorting finds."""

import numpy as np
import pytest

from bayesgen.encoding.labels import code_labels

RNG = np.random.default_rng(1)


@pytest.mark.parametrize(
    "y",
    [
        RNG.choice(["b", "a", "ccc"], 50),
        RNG.choice(["b", "a", "ccc"], 50).astype(object),
        np.array([np.str_("b"), "b", "a", "ä", "Z", "a", "", ""] * 9, dtype=object),
        np.array(["x"] * 3),
        RNG.integers(-3, 3, 50),
        RNG.integers(0, 2, 50).astype(bool),
        RNG.choice([0.0, 2.0, 7.0], 50),
        RNG.choice(np.array(["2020-01-01", "2021-02-03"], dtype="M8[D]"), 50),
    ],
    ids=lambda y: f"{y.dtype.str}-{len(y)}",
)
def test_codes_are_those_of_sorted_labels(y):
    labels, codes = code_labels(y)
    known, places = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(labels, known, strict=True)
    np.testing.assert_array_equal(codes, places)
    np.testing.assert_array_equal(labels[codes], y)


@pytest.mark.parametrize("missing", [None, np.nan])
def test_a_missing_label_among_strings_is_refused(missing):
    with pytest.raises(ValueError, match=r"no label in 1 row\(s\), the first is row 2"):
        code_labels(np.array(["a", "b", missing, "a", "b"], dtype=object))
