"""compare_predictives against scikit-learn's scores and a calibration error by hand."""

import numpy as np
import pytest
from scipy import special, stats
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.metrics import accuracy_score, log_loss

import bayesgen as bg
from bayesgen.checks.compare import score
from bayesgen.families.names import METHODS
from bayesgen.posterior.drawn import DrawnPosterior


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    y = np.array(["setosa", "versicolor", "virginica"])[y]
    test = np.arange(150) % 3 == 2
    clf = bg.QuadraticDiscriminant().fit(X[~test], y[~test])
    return clf, X[test], y[test], bg.compare_predictives(clf, X[test], y[test])


@pytest.mark.parametrize("method", ["posterior_predictive", "posterior_mean", "map", "mle"])
def test_scores(iris, method):
    clf, X, y, table = iris
    p = clf.predict_proba(X, method=method)
    row = table.sel(predictive=method)
    assert float(row.accuracy) == accuracy_score(y, clf.predict(X, method=method))
    assert float(row.log_loss) == pytest.approx(log_loss(y, p, labels=clf.classes_), rel=1e-12)
    truth = y[:, None] == clf.classes_
    assert float(row.brier) == pytest.approx(np.mean(((p - truth) ** 2).sum(axis=1)), rel=1e-12)
    ece = 0.0  # bin by bin
    top, right = p.max(axis=1), clf.classes_[p.argmax(axis=1)] == y
    for low in np.arange(15) / 15:
        inside = (top >= low) & ((top < low + 1 / 15) | (low == 14 / 15))
        if inside.any():
            ece += inside.mean() * abs(right[inside].mean() - top[inside].mean())
    assert float(row.ece) == pytest.approx(ece, abs=1e-12)
    assert int(row.impossible) == 0
    assert str(row.note.item()) == ""


@pytest.mark.parametrize(
    ("load", "peer", "published"),
    [
        (load_iris, LinearDiscriminantAnalysis("lsqr"), [0.9800, 0.0540, 0.0349, 0.0271]),
        (load_wine, QuadraticDiscriminantAnalysis(), [1.0, 0.0012, 0.0002, 0.0012]),
        (
            load_breast_cancer,
            LinearDiscriminantAnalysis("lsqr", shrinkage="auto"),
            [0.9524, 0.0987, 0.0641, 0.0287],
        ),
        (
            load_digits,
            LinearDiscriminantAnalysis("lsqr", shrinkage="auto"),
            [0.9382, 0.2584, 0.0889, 0.0397],
        ),
    ],
)
def test_scores_of_peers_as_published(load, peer, published):
    """shared/DATA.md, "baseline": accuracy, log loss, Brier and calibration error to 4 digits."""
    X, y = load(return_X_y=True)
    test = np.arange(len(y)) % 3 == 2
    p = peer.fit(X[~test], y[~test]).predict_proba(X[test])
    with np.errstate(divide="ignore"):
        got = score(np.log(p), y[test])
    assert [got[k] for k in ("accuracy", "log_loss", "brier", "ece")] == pytest.approx(
        published, abs=5e-5
    )


def test_an_undefined_estimate_has_no_numbers_and_a_reason():
    X, y = np.eye(4), ["a", "b", "b", "b"]
    table = bg.compare_predictives(bg.QuadraticDiscriminant().fit(X, y), X, y)
    row = table.sel(predictive="mle")
    assert np.isnan(row.log_loss)
    assert "class 'a'" in row.note.item()
    assert "singular" in row.note.item()
    assert np.isfinite(table.log_loss.sel(predictive="posterior_predictive"))


def test_an_impossible_row_has_no_probability_anywhere():
    got = score(np.array([[-np.inf, -np.inf], [0.0, -np.inf]]), np.array([0, 0]))
    assert got == {
        "accuracy": 0.5,
        "log_loss": np.inf,
        "brier": 0.5,  # 1 and 0
        "ece": 0.0,
        "impossible": 1.0,
    }


def test_rows_and_labels_are_checked(iris):
    clf, X, y, _ = iris
    with pytest.raises(ValueError, match=r"'tulip' is not a class.*\(row \d+\)"):
        bg.compare_predictives(clf, X, ["tulip", *y[1:]])
    with pytest.raises(ValueError, match="50 rows"):
        bg.compare_predictives(clf, X, y[:-1])


def test_standard_errors_and_paired_differences(iris):
    clf, X, y, table = iris
    truth = y[:, None] == clf.classes_
    terms = {"log_loss": {}, "brier": {}}
    for method in METHODS:
        p = clf.predict_proba(X, method=method)
        terms["log_loss"][method] = -np.log(p[truth])
        terms["brier"][method] = ((p - truth) ** 2).sum(axis=1)
    for name, own in terms.items():
        for method in METHODS:
            row = table.sel(predictive=method)
            assert float(row[f"{name}_se"]) == pytest.approx(stats.sem(own[method]), rel=1e-9)
            gap = own[method] - own["posterior_predictive"]
            assert float(row[f"{name}_diff"]) == pytest.approx(gap.mean(), rel=1e-9, abs=1e-15)
            assert float(row[f"{name}_diff_se"]) == pytest.approx(stats.sem(gap), rel=1e-9)
            assert float(row[f"{name}_diff_median"]) == pytest.approx(np.median(gap), abs=1e-15)
            wins = ((gap < 0) + 0.5 * (gap == 0)).mean()
            assert float(row[f"{name}_diff_wins"]) == pytest.approx(wins, rel=1e-12)


def test_several_models(iris):
    lda_rows = load_iris().data
    clf, X, y, alone = iris
    labels = np.array(["setosa", "versicolor", "virginica"])[load_iris().target]
    train = np.arange(150) % 3 != 2
    other = bg.GaussianNB().fit(lda_rows[train][:, :2], labels[train])
    table = bg.compare_predictives({"q": clf, "n": other}, {"q": X, "n": X[:, :2]}, y)
    assert table.log_loss.dims == ("model", "predictive")
    assert table.estimator.values.tolist() == ["QuadraticDiscriminant", "GaussianNB"]
    for name in alone.data_vars:
        np.testing.assert_array_equal(table[name].sel(model="q"), alone[name])
    truth = np.searchsorted(clf.classes_, y)
    own, best = (
        -np.log(model.predict_proba(rows)[np.arange(50), truth])
        for model, rows in ((other, X[:, :2]), (clf, X))
    )
    row = table.sel(model="n", predictive="posterior_predictive")
    assert float(row.log_loss_above_best) == pytest.approx((own - best).mean())
    assert float(row.log_loss_above_best_se) == pytest.approx(stats.sem(own - best))
    assert float(table.brier_above_best.sel(model="q", predictive="posterior_predictive")) == 0
    two = bg.GaussianNB().fit(lda_rows[:100], labels[:100])
    with pytest.raises(ValueError, match="differ in their classes"):
        bg.compare_predictives({"q": clf, "two": two}, X, y)
    with pytest.raises(ValueError, match="no model"):
        bg.compare_predictives({}, X, y)


def test_infinite_losses_have_no_error():
    X, y = np.array([[0], [1], [1], [0]]), ["a", "a", "b", "b"]
    clf = bg.BernoulliNB().fit([[0], [0], [1], [1]], ["a", "a", "b", "b"])
    table = bg.compare_predictives(clf, X, y).sel(predictive="mle")
    assert float(table.log_loss) == np.inf == float(table.log_loss_diff)
    assert np.isnan(table.log_loss_se)
    assert np.isnan(table.log_loss_diff_se)
    assert float(table.brier_se) > 0
    # one of three rows has an infinite loss, two a loss of 0 in place of -log (1 + 2)/(2 + 2)
    clear = bg.compare_predictives(clf, X[:3], ["a", "a", "b"]).sel(predictive="mle")
    assert float(clear.log_loss) == np.inf
    assert float(clear.log_loss_diff_median) == pytest.approx(np.log(3 / 4), rel=1e-12)
    assert float(clear.log_loss_diff_wins) == pytest.approx(2 / 3)


def test_the_table_is_printed(iris):
    _, _, _, table = iris
    title, *lines = repr(table).splitlines()
    assert "QuadraticDiscriminant, 50 rows" in title
    lines = lines[1:]  # the title has two
    heads = ["log_loss", "log_loss_diff", "log_loss_diff_se", "brier", "accuracy"]
    assert lines[0].split() == heads
    assert [line.split()[0] for line in lines[2:6]] == list(METHODS)
    assert f"{table.log_loss.values[1]:.4f}" in lines[3]


def test_the_monte_carlo_error_is_the_spread_over_sets_of_draws():
    """Of 300 sets of draws of the same posterior; drawn class weights and exact ones."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(12, 1)) + np.arange(12)[:, None] % 2, np.arange(12) % 2
    clf = bg.GaussianNB().fit(X, y)
    closed = clf.fitted_.posterior
    for exact in (True, False):
        losses, errors = [], []
        for _ in range(300):
            draws = closed.model.draw(rng, 200)
            theta = {name: v.reshape(2, 100, *v.shape[1:]) for name, v in draws.items()}
            own = DrawnPosterior(closed.prior, closed.model, closed.stats, theta, exact)
            joint = own.estimate(X).log_joint
            losses.append(-special.log_softmax(joint, axis=1)[np.arange(12), y].mean())
            errors.append(own.log_loss_error(X, y))
        spread = np.std(losses)
        assert np.mean(errors) == pytest.approx(spread, rel=0.2)  # 4 errors of a spread of 300


def test_what_draws_cannot_tell_is_noted_below_the_table():
    X, y = np.arange(12.0)[:, None], np.arange(12) % 2
    clf = bg.GaussianNB().fit(X, y)
    table = bg.compare_predictives(clf.with_posterior(clf.draw_posterior(100, 2)), X, y)
    assert table.log_loss_mcse.values[0] > 0
    assert "map: method='map' is undefined" in repr(table)
