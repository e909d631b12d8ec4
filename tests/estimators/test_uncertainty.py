"""predict_interval, predict_posterior, predict_uncertainty: what they rest on, and their edges.

That their draws are those of theta is a law (tests/laws/test_intervals), that the three are of the
same draws is asked in tests/predict/test_draws.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.special import entr, softmax
from sklearn.utils import _safe_indexing as take

import bayesgen as bg
from bayesgen.datatree.tree import read_draws
from tests.estimators.cases import CASES, LABELS, sample

N_DRAWS = 400


@pytest.fixture(scope="module", params=["MarkovNB 2", "MixedNB", "BernoulliNB", "GaussianNB"])
def case(request):
    """A fit, 6 rows, a tree of draws, and log joints (draw, row, class) by Bayes' rule at each."""
    X, _, y = sample(CASES[request.param], n=36)
    clf = CASES[request.param].make().fit(X, y)
    rows = take(X, np.arange(6))
    tree = clf.draw_posterior(N_DRAWS, 1, random_state=3, groups=[])
    variables = read_draws(tree, clf.model_.params, clf.fitted_.coords)
    draws = {name: values[0] for name, values in variables.items()}
    log_x = clf.model_.family.log_likelihood(clf.fitted_.read(rows).encoded, draws)
    return clf, rows, tree, np.log(draws["pi"])[:, None, :] + log_x


@pytest.mark.filterwarnings("ignore::bayesgen.MonteCarloWarning")
def test_draws_of_a_posterior_are_used_one_by_one(case):
    clf, X, tree, joint = case
    rho, of_draws = softmax(joint, axis=-1), clf.with_posterior(tree)
    intervals = of_draws.predict_interval(X, prob=0.9, kind="eti")["interval"]
    expected = np.quantile(rho, [0.05, 0.95], axis=0).transpose(1, 2, 0)
    np.testing.assert_allclose(intervals, expected, atol=1e-3)
    for n, every in ((None, slice(None)), (7, np.linspace(0, N_DRAWS - 1, 7).astype(int))):
        drawn = of_draws.predict_posterior(X, draws=n)["predictions"]["class_probability"]
        assert drawn.dims == ("chain", "draw", "obs_id", "class")
        np.testing.assert_allclose(drawn[0], rho[every], atol=1e-12)
    table = of_draws.predict_uncertainty(X)
    np.testing.assert_allclose(table["mean"], rho.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(table["sd"], rho.std(axis=0), atol=1e-12)
    np.testing.assert_allclose(table["aleatoric"], entr(rho).sum(axis=-1).mean(axis=0))
    np.testing.assert_allclose(table["total"], entr(rho.mean(axis=0)).sum(axis=-1), atol=0.02)


@pytest.mark.parametrize("kind", ["eti", "hdi"])
def test_what_tables_of_intervals_and_entropies_say(case, kind):
    clf, X, *_ = case
    intervals = clf.predict_interval(X, prob=0.8, kind=kind)
    assert intervals["interval"].dims == ("obs_id", "class", "bound")
    assert intervals["class"].values.tolist() == LABELS.tolist()
    assert intervals["bound"].values.tolist() == ["lower", "upper"]
    assert intervals.attrs["title"] == f"80 % intervals ({kind}) of class probabilities"
    np.testing.assert_array_equal(intervals["predictive"], clf.predict_proba(X))
    assert (intervals["log_odds"].diff("bound") > 0).all()
    table, bits = clf.predict_uncertainty(X), clf.predict_uncertainty(X, unit="bits")
    assert table.attrs["title"] == "entropy of each row's label, in nats"
    np.testing.assert_allclose(table["epistemic"], table["total"] - table["aleatoric"])
    np.testing.assert_allclose(table["top"].sum("class"), 1, atol=5e-3)
    np.testing.assert_allclose(bits["total"], table["total"] / np.log(2), rtol=1e-12)


@pytest.mark.parametrize("name", ["GaussianNB", "MarkovNB 2"])
def test_one_class_is_certain(name):
    X = CASES[name].rows(np.random.default_rng(2), np.zeros(12, dtype=int))
    clf = CASES[name].make().fit(X, np.repeat("only", 12))
    for model in (clf, clf.with_posterior(clf.draw_posterior(20, 2, groups=[]))):
        intervals = model.predict_interval(X)
        assert (intervals["interval"] == 1).all()
        assert (intervals["log_odds"] == np.inf).all()
        table = model.predict_uncertainty(X)
        for what in ("total", "aleatoric", "epistemic", "sd"):
            np.testing.assert_allclose(table[what], 0, atol=1e-12)
        assert (table["top"] == 1).all()
        assert (model.predict_posterior(X, 5)["predictions"]["class_probability"] == 1).all()


@pytest.mark.parametrize(
    "method", ["predict_interval", "predict_posterior", "predict_uncertainty", "explain"]
)
def test_no_rows_of_a_table(method):
    """Classifiers that read tables take them, as chunks may have none."""
    X = pd.DataFrame({"a": ["p", "q"], "b": [1.0, 2.5]})
    answer = getattr(bg.MixedNB().fit(X, ["u", "v"]), method)(X[:0])
    answer = answer["predictions"] if method == "predict_posterior" else answer
    assert answer.sizes["obs_id"] == 0
