"""compare_predictives against scikit-learn's scores and a calibration error by hand."""

import numpy as np
import pytest
from scipy import special, stats
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.metrics import accuracy_score, log_loss

import bayesgen as bg
from bayesgen.checks.compare import score, scored
from bayesgen.families.names import METHODS
from bayesgen.posterior.drawn import DrawnPosterior

X, LABELS = load_iris(return_X_y=True)
LABELS = np.array(["setosa", "versicolor", "virginica"])[LABELS]
TEST = np.arange(150) % 3 == 2


@pytest.fixture(scope="module")
def iris():
    clf = bg.QuadraticDiscriminant().fit(X[~TEST], LABELS[~TEST])
    return clf, X[TEST], LABELS[TEST], bg.compare_predictives(clf, X[TEST], LABELS[TEST])


def calibration_error(p, hit):
    """Bin by bin."""
    error = 0.0
    for low in np.arange(15) / 15:
        inside = (p >= low) & ((p < low + 1 / 15) | (low == 14 / 15))
        if inside.any():
            error += inside.mean() * abs(hit[inside].mean() - p[inside].mean())
    return error


@pytest.mark.parametrize("method", METHODS)
def test_scores_their_errors_and_paired_differences(iris, method):
    clf, rows, y, table = iris
    row, truth = table.sel(predictive=method), y[:, None] == clf.classes_
    p, best = (clf.predict_proba(rows, method=name) for name in (method, METHODS[0]))
    assert float(row.accuracy) == accuracy_score(y, clf.predict(rows, method=method))
    assert float(row.log_loss) == pytest.approx(log_loss(y, p, labels=clf.classes_), rel=1e-12)
    assert float(row.brier) == pytest.approx(np.mean(((p - truth) ** 2).sum(axis=1)), rel=1e-12)
    hit = clf.classes_[p.argmax(axis=1)] == y
    assert float(row.ece) == pytest.approx(calibration_error(p.max(axis=1), hit), abs=1e-12)
    assert int(row.impossible) == 0
    assert str(row.note.item()) == ""
    losses = {"log_loss": -np.log(p[truth]), "brier": ((p - truth) ** 2).sum(axis=1)}
    of_best = {"log_loss": -np.log(best[truth]), "brier": ((best - truth) ** 2).sum(axis=1)}
    for name, loss in losses.items():
        gap = loss - of_best[name]
        expected = {"se": stats.sem(loss), "diff": gap.mean(), "diff_se": stats.sem(gap)}
        expected |= {"diff_median": np.median(gap)}
        expected |= {"diff_wins": ((gap < 0) + 0.5 * (gap == 0)).mean()}
        for key, value in expected.items():
            assert float(row[f"{name}_{key}"]) == pytest.approx(value, rel=1e-9, abs=1e-15), key


@pytest.mark.parametrize(
    ("load", "peer", "published"),
    [
        (load_wine, QuadraticDiscriminantAnalysis(), [1.0, 0.0012, 0.0002, 0.0012]),
        (
            load_breast_cancer,
            LinearDiscriminantAnalysis("lsqr", shrinkage="auto"),
            [0.9524, 0.0987, 0.0641, 0.0287],
        ),
    ],
)
def test_scores_of_peers_as_published(load, peer, published):
    """shared/DATA.md, "baseline": accuracy, log loss, Brier and calibration error to 4 digits."""
    rows, y = load(return_X_y=True)
    test = np.arange(len(y)) % 3 == 2
    p = peer.fit(rows[~test], y[~test]).predict_proba(rows[test])
    with np.errstate(divide="ignore"):
        scores = score(np.log(p), y[test])
    found = [scores[k] for k in ("accuracy", "log_loss", "brier", "ece")]
    assert found == pytest.approx(published, abs=5e-5)


def test_an_impossible_row_has_no_probability_anywhere():
    joint, codes = np.array([[-np.inf, -np.inf], [0.0, -np.inf]]), np.array([0, 0])
    scores = score(joint, codes)
    expected = {"accuracy": 0.5, "log_loss": np.inf, "brier": 0.5, "ece": 0.0, "impossible": 1.0}
    assert scores == expected  # Brier errors of 1 and 0
    note = scored("it", {METHODS[0]: joint}, codes)[0]["note"].item()
    assert note == "1 of 2 rows cannot occur under any class, counted as wrong"


def test_rows_and_labels_are_checked(iris):
    clf, rows, y, _ = iris
    with pytest.raises(ValueError, match=r"'tulip' is not a class.*\(row \d+\)"):
        bg.compare_predictives(clf, rows, ["tulip", *y[1:]])
    with pytest.raises(ValueError, match="50 rows"):
        bg.compare_predictives(clf, rows, y[:-1])
    two = bg.GaussianNB().fit(X[:100], LABELS[:100])
    with pytest.raises(ValueError, match="differ in their classes"):
        bg.compare_predictives({"q": clf, "two": two}, rows, y)
    with pytest.raises(ValueError, match="no model"):
        bg.compare_predictives({}, rows, y)


def test_several_models(iris):
    clf, rows, y, alone = iris
    other = bg.GaussianNB().fit(X[~TEST][:, :2], LABELS[~TEST])
    table = bg.compare_predictives({"q": clf, "n": other}, {"q": rows, "n": rows[:, :2]}, y)
    assert table.log_loss.dims == ("model", "predictive")
    assert table.estimator.values.tolist() == ["QuadraticDiscriminant", "GaussianNB"]
    for name in alone.data_vars:
        np.testing.assert_array_equal(table[name].sel(model="q"), alone[name])
    truth = y[:, None] == clf.classes_
    gap = np.log(clf.predict_proba(rows)[truth] / other.predict_proba(rows[:, :2])[truth])
    row = table.sel(model="n", predictive="posterior_predictive")
    assert float(row.log_loss_above_best) == pytest.approx(gap.mean())
    assert float(row.log_loss_above_best_se) == pytest.approx(stats.sem(gap))
    assert float(table.brier_above_best.sel(model="q", predictive="posterior_predictive")) == 0


def test_infinite_losses_have_no_error():
    rows, y = np.array([[0], [1], [1], [0]]), ["a", "a", "b", "b"]
    clf = bg.BernoulliNB().fit([[0], [0], [1], [1]], ["a", "a", "b", "b"])
    table = bg.compare_predictives(clf, rows, y).sel(predictive="mle")
    assert float(table.log_loss) == np.inf == float(table.log_loss_diff)
    assert "infinite log loss: some rows get probability 0" in table.note.item()
    assert np.isnan(table.log_loss_se)
    assert np.isnan(table.log_loss_diff_se)
    assert float(table.brier_se) > 0
    # one of three rows has an infinite loss, two a loss of 0 in place of -log (1 + 2)/(2 + 2)
    clear = bg.compare_predictives(clf, rows[:3], ["a", "a", "b"]).sel(predictive="mle")
    assert float(clear.log_loss_diff_median) == pytest.approx(np.log(3 / 4), rel=1e-12)
    assert float(clear.log_loss_diff_wins) == pytest.approx(2 / 3)


def test_what_is_printed_and_what_is_noted_below(iris):
    title, _, heads, *lines = repr(iris[3]).splitlines()
    assert "QuadraticDiscriminant, 50 rows" in title
    assert heads.split() == ["log_loss", "log_loss_diff", "log_loss_diff_se", "brier", "accuracy"]
    assert [line.split()[0] for line in lines[1:5]] == list(METHODS)
    rows, y = np.eye(4), ["a", "b", "b", "b"]
    table = bg.compare_predictives(bg.QuadraticDiscriminant().fit(rows, y), rows, y)
    assert np.isnan(table.log_loss.sel(predictive="mle"))
    assert np.isfinite(table.log_loss.sel(predictive="posterior_predictive"))
    note = table.note.sel(predictive="mle").item()
    assert "class 'a'" in note
    assert "singular" in note
    assert note[:40] in repr(table)


def test_the_monte_carlo_error_is_the_spread_over_sets_of_draws():
    """Of 300 sets of draws of the same posterior; drawn class weights and exact ones."""
    rng = np.random.default_rng(3)
    rows, y = rng.normal(size=(12, 1)) + np.arange(12)[:, None] % 2, np.arange(12) % 2
    clf = bg.GaussianNB().fit(rows, y)
    closed = clf.fitted_.posterior
    for exact in (True, False):
        losses, errors = [], []
        for _ in range(300):
            draws = closed.model.draw(rng, 200)
            theta = {name: v.reshape(2, 100, *v.shape[1:]) for name, v in draws.items()}
            posterior = DrawnPosterior(closed.prior, closed.model, closed.stats, theta, exact)
            joint = posterior.monte_carlo(rows).log_joint
            losses.append(-special.log_softmax(joint, axis=1)[np.arange(12), y].mean())
            errors.append(posterior.log_loss_error(rows, y))
        # 4 errors of a spread of 300
        assert np.mean(errors) == pytest.approx(np.std(losses), rel=0.2)
    table = bg.compare_predictives(clf.with_posterior(clf.draw_posterior(100, 2)), rows, y)
    assert table.log_loss_mcse.values[0] > 0
