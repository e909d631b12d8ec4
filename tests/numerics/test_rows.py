"""Sums that do not cancel; the forms of rows: tests/laws/test_input_kinds."""

import math

import numpy as np
import pytest
from scipy import sparse

from bayesgen.numerics.rows import (
    exact_parts,
    refuse_negative_counts,
    sum_except,
)


def test_negative_counts_are_refused_with_their_place():
    X = np.array([[1.0, 2.0, np.nan], [0.0, -3.0, 1.0]])
    for form in (X, sparse.csr_matrix(X), np.nan_to_num(X).astype(np.int32)):
        with pytest.raises(ValueError, match="row 1, feature 1 is -3"):
            refuse_negative_counts(form)
    for form in (np.abs(X), np.zeros((0, 2)), X[:1], np.array([[True]]), sparse.csr_matrix((3, 2))):
        refuse_negative_counts(form)
    refuse_negative_counts(np.full((2, 2), np.nan))


def test_sum_except_has_no_cancellation():
    rng = np.random.default_rng(6)
    table = rng.random((3, 200)) * np.where(rng.random(200) < 0.05, 1e12, 1.0)
    mask = table.max(axis=0) > 1e6  # leave the huge entries out
    masks = np.stack([mask, np.zeros(200, dtype=bool), np.ones(200, dtype=bool)])
    expected = np.array([[math.fsum(row[~m]) for row in table] for m in masks])
    parts = exact_parts(table)
    for form in (masks, sparse.csr_matrix(masks.astype(float))):
        np.testing.assert_allclose(sum_except(form, parts), expected, rtol=1e-12, atol=1e-10)
    assert np.all(exact_parts(np.zeros((2, 3))) == 0)
