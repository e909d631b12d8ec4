"""`simulate`: rows of the predictive, and of one draw."""

import numpy as np
import pytest

from tests.estimators.cases import CASES, LABELS, first_cases, fitted


@first_cases
@pytest.mark.parametrize("source", ["predictive", "draw"])
def test_simulated_rows_are_rows_of_the_classifier(case, source):
    clf, _, _ = fitted(case)
    X, y = clf.simulate(40, random_state=1, source=source)
    assert len(X) == len(y) == 40
    assert set(y) <= set(LABELS)
    again, labels = clf.simulate(40, random_state=1, source=source)
    np.testing.assert_array_equal(np.asarray(again, dtype=object), np.asarray(X, dtype=object))
    np.testing.assert_array_equal(labels, y)
    other, _ = clf.simulate(40, random_state=2, source=source)
    assert not np.array_equal(np.asarray(other, dtype=object), np.asarray(X, dtype=object))
    assert np.isfinite(clf.score_samples(X)).all()
    assert case.make().fit(X, y).n_rows_seen_ == 40
    _, y = clf.simulate(5, "birch", source=source)
    assert y.tolist() == ["birch"] * 5
    wanted = ["cedar", "ash", "cedar"]
    _, y = clf.simulate(3, wanted, random_state=np.random.default_rng(0), source=source)
    assert y.tolist() == wanted
    X, y = clf.simulate(0, source=source)
    assert len(X) == len(y) == 0


def test_simulate_refuses_what_it_cannot_do():
    clf, _, _ = fitted(CASES["GaussianNB"])
    with pytest.raises(ValueError, match="'elm' is not a class"):
        clf.simulate(3, "elm")
    with pytest.raises(ValueError, match="'predictive' or 'draw'"):
        clf.simulate(3, source="prior")
    with pytest.raises(ValueError, match="n must be >= 0"):
        clf.simulate(-1)
