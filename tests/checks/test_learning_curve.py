"""learning_curve against a loop of fits."""

from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score
from sklearn.naive_bayes import GaussianNB

import bayesgen as bg
from bayesgen.checks import learning_curve as module


@pytest.fixture(scope="module")
def found():
    X, y = load_iris(return_X_y=True)
    models = {"lda": bg.LinearDiscriminant(), "nb": bg.GaussianNB(), "theirs": GaussianNB()}
    return bg.learning_curve(
        models, X, y, (3, 20, 50), repeats=4, methods=("posterior_predictive", "mle")
    )


def test_scores_are_those_of_fits(found):
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    for n in (3, 20):
        for r in range(4):
            chosen = [rng.choice(np.flatnonzero(y == c), n, replace=False) for c in range(3)]
            train = np.sort(np.concatenate(chosen))
            test = np.setdiff1d(np.arange(150), train)
            for name, clf in (("lda", bg.LinearDiscriminant()), ("theirs", GaussianNB())):
                log_p = clf.fit(X[train], y[train]).predict_log_proba(X[test])
                row = found.sel(
                    model=name, train_size=n, repeat=r, predictive="posterior_predictive"
                )
                assert float(row.accuracy) == accuracy_score(y[test], log_p.argmax(axis=1))
                loss = -log_p[np.arange(len(test)), y[test]].mean()
                assert float(row.log_loss) == pytest.approx(loss, rel=1e-9)


def test_errors_are_over_repeats(found):
    loss = found["log_loss"].sel(predictive="posterior_predictive")
    own = found.sel(model="nb", train_size=20, predictive="posterior_predictive")
    a, b = (loss.sel(model=name, train_size=20).values for name in ("nb", "lda"))
    assert float(own.log_loss_mean) == pytest.approx(a.mean())
    assert float(own.log_loss_se) == pytest.approx(stats.sem(a))
    assert float(own.log_loss_diff) == pytest.approx((a - b).mean())
    assert float(own.log_loss_diff_se) == pytest.approx(stats.sem(a - b))
    other = found.sel(model="nb", train_size=20, predictive="mle")  # against the first of all
    c = other.log_loss.values
    assert float(other.log_loss_diff_se) == pytest.approx(stats.sem(c - b), nan_ok=True)
    assert float(other.log_loss_within) == pytest.approx((c - a).mean())  # of the same model
    assert float(other.log_loss_within_se) == pytest.approx(stats.sem(c - a))
    assert float(other.log_loss_within_median) == pytest.approx(np.median(c - a))
    assert float(other.log_loss_within_wins) == np.mean(c < a)
    assert float(own.log_loss_within_wins) == 0.5


def test_what_does_not_exist_has_no_numbers(found):
    assert found.train_size.values.tolist() == [3, 20]  # a class has 50 rows
    theirs = found.sel(model="theirs", predictive="mle")
    assert np.isnan(theirs.log_loss).all()  # another classifier's only probabilities are the first
    few = found.sel(model="lda", predictive="mle", train_size=20)
    assert not np.isnan(few.log_loss).any()


def test_frames_keep_their_columns():
    X, y = bg.datasets.load_penguins()
    table = bg.learning_curve({"m": bg.MixedNB()}, X, y, train_sizes=[5], repeats=2)
    assert float(table.accuracy.mean()) > 0.8
    assert isinstance(X, pd.DataFrame)


@pytest.mark.parametrize("form", [sparse.bsr_array, sparse.dia_array])
def test_sparse_forms_without_rows(form):
    X, y = np.random.default_rng(0).poisson(1.0, (20, 3)).astype(float), np.arange(20) % 2
    dense, own = (
        bg.learning_curve(
            {"poisson": bg.PoissonNB()}, rows, y, [3], repeats=2, random_state=0, progressbar=False
        )
        for rows in (X, form(X))
    )
    np.testing.assert_allclose(own["log_loss"], dense["log_loss"], rtol=1e-12)


def test_refusals():
    X, y = load_iris(return_X_y=True)
    models = {"nb": bg.GaussianNB()}
    with pytest.raises(ValueError, match="from 1 to 49"):
        bg.learning_curve(models, X, y, train_sizes=[50])
    with pytest.raises(ValueError, match="at least 2"):
        bg.learning_curve(models, X, y, repeats=1)
    with pytest.raises(ValueError, match="methods must be"):
        bg.learning_curve(models, X, y, methods=["MLE"])
    with pytest.raises(ValueError, match="one or more"):
        bg.learning_curve({}, X, y)


def test_progress_counts_the_fits(monkeypatch):
    seen = []

    @contextmanager
    def record(what, total, shown):
        yield lambda done, rows: seen.append((done, total))

    monkeypatch.setattr(module, "row_progress", record)
    X, y = load_iris(return_X_y=True)
    bg.learning_curve({"nb": bg.GaussianNB()}, X, y, train_sizes=[5, 9], repeats=3)
    assert seen == [(k, 6.0) for k in range(1, 7)]
