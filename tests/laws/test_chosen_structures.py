"""A forest that the rows choose is chosen again without each row, and has no evidence."""

import numpy as np
import pytest

import bayesgen as bg
from bayesgen.families.errors import NoPosteriorError

N, D = 40, 6
Y = np.arange(N) % 2


def of_bits(structure):
    bits = {"bernoulli": list(range(D))}
    return bg.TreeAugmentedNB(4.0, 8.0, structure=structure, columns=bits, prior="default")


def noise(seed):
    return np.random.default_rng(seed).integers(0, 2, (N, D)).astype(float)


@pytest.mark.parametrize("structure", ["tree", "map", "average"])
def test_leave_one_out_is_that_of_refits_where_the_columns_are_noise(structure):
    for seed in range(3):
        X = noise(seed)
        weight = 1.0 + np.arange(N) % 3
        for groups in (None, np.arange(N) % 13):
            names = np.arange(N) if groups is None else groups
            left_out = of_bits(structure).fit(X, Y, sample_weight=weight)
            left_out = left_out.loo_log_joint(X, Y, weight, groups=groups)
            for i in range(0, N, 3):
                kept = names != names[i]
                less = of_bits(structure).fit(X[kept], Y[kept], sample_weight=weight[kept])
                expected = less.predict_log_proba(X[[i]])[0] + less.score_samples(X[[i]])
                np.testing.assert_allclose(left_out[i], expected, rtol=1e-9, atol=1e-9)


def test_a_forest_that_rows_choose_has_no_evidence_and_takes_no_edges():
    X = noise(0)
    models = {name: of_bits(name).fit(X, Y) for name in ("map", "average")}
    with pytest.raises(NoPosteriorError, match="structure='map' has chosen the forests"):
        models["map"].log_evidence_  # noqa: B018 - the property raises
    assert "No evidence: structure='map'" in str(models["map"].summary())
    table = bg.compare_models(models, X, Y).table
    assert np.isnan(table["log_evidence"].sel(model="map"))
    with pytest.raises(ValueError, match="chooses the edges by the rows"):
        of_bits("tree").set_params(edges=np.zeros((D, D))).fit(X, Y)


def test_parts_choose_the_forest_of_the_whole(tmp_path):
    X = noise(1)
    whole, parts = of_bits("tree").fit(X, Y), of_bits("tree")
    for at in (slice(0, 9), slice(9, None)):
        parts.partial_fit(X[at], Y[at], classes=[0, 1])
    whole.save(tmp_path / "tree.nc")
    for other in (parts, bg.load(tmp_path / "tree.nc")):
        np.testing.assert_allclose(other.predict_proba(X), whole.predict_proba(X), rtol=1e-9)
        np.testing.assert_array_equal(
            other.edge_probabilities()["probability"], whole.edge_probabilities()["probability"]
        )
