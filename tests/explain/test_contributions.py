"""Contributions to the log-odds against SciPy, enumeration and draws made apart."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from scipy.special import digamma

import bayesgen as bg
from bayesgen.explain import contributions

N = 40
LABELS = np.array(["a", "b", "c"])


def rows(kind, n_classes=2, seed=0):
    """(classifier, X, y, new rows) with a missing cell where the kind has them."""
    rng = np.random.default_rng(seed)
    y = np.arange(N) % n_classes
    bits = (rng.random((N, 3)) < 0.2 + 0.2 * y[:, None]).astype(float)
    counts = rng.poisson(2.0 + y[:, None], (N, 3)).astype(float)
    real = rng.normal(size=(N, 3)) @ [[1, 0.8, 0], [0, 1, 0], [0, 0, 1]] + y[:, None]
    gaps = [bits.copy(), counts.copy(), real.copy()]
    for table in gaps:
        table[0, 1] = np.nan
    frame = pd.DataFrame(
        {"size": gaps[2][:, 0], "wet": bits[:, 1] > 0, "kind": rng.choice(list("uvw"), N)}
    )
    texts = ["".join(rng.choice(list("abc"), 6)) for _ in range(N)]
    clf, X = {
        "bernoulli": (bg.BernoulliNB(), gaps[0]),
        "categorical": (bg.CategoricalNB(), rng.integers(0, 3, (N, 3))),
        "poisson": (bg.PoissonNB(), gaps[1]),
        "gaussian": (bg.GaussianNB(), gaps[2]),
        "tied": (bg.GaussianNB(variance="tied"), gaps[2]),
        "spherical": (bg.GaussianNB(variance="spherical"), gaps[2]),
        "class_spherical": (bg.GaussianNB(variance="class_spherical"), gaps[2]),
        "multinomial": (bg.MultinomialNB(), sparse.csr_matrix(counts)),
        "markov": (bg.MarkovNB(order=2), texts),
        "mixed": (bg.MixedNB(), frame),
        "linear": (bg.LinearDiscriminant(), real),
        "quadratic": (bg.QuadraticDiscriminant(), real),
    }[kind]
    new = gaps[2][:5] if kind in ("linear", "quadratic") else X[:5]
    return clf.fit(X, LABELS[y]), X, LABELS[y], new


KINDS = (
    "bernoulli", "categorical", "poisson", "gaussian", "tied", "spherical", "class_spherical",
    "multinomial", "markov", "mixed", "linear", "quadratic",
)  # fmt: skip
DEPENDENT = ("spherical", "class_spherical", "linear", "quadratic")


def gap(table, name):
    """Largest distance of the sum of the terms from the log-odds."""
    total = table[name].sum("feature") + table[f"{name}_intercept"]
    return float(np.abs(total - table[f"{name}_log_odds"]).max())


# ------------------------------------------------------------------------------- additivity


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_contributions_add_up_to_the_log_odds(kind, n_classes):
    clf, _, _, new = rows(kind, n_classes)
    table = clf.explain(new)
    assert ("predictive" in table) == (kind not in DEPENDENT)
    if "predictive" in table:
        assert gap(table, "predictive") < 1e-10
    joint = clf.predict_joint_log_proba(new)
    a, b = (np.searchsorted(clf.classes_, table[k].values) for k in ("label", "against"))
    every = np.arange(len(a))
    tiny = 1e-60j * np.eye(n_classes)[:, None]  # slopes of all features at once
    mean = clf.model_.family.cgf(clf.fitted_.encoded(new), tiny).imag / 1e-60
    mean += digamma(clf.model_.alpha)[:, None]
    np.testing.assert_allclose(table["mean_log_odds"], mean[a, every] - mean[b, every], atol=1e-10)
    np.testing.assert_allclose(
        table.get("predictive_log_odds"), joint[every, a] - joint[every, b], atol=1e-10
    )
    if n_classes == 2:
        np.testing.assert_allclose(table["predictive_log_odds"], clf.decision_function(new))


@pytest.mark.parametrize("kind", ["gaussian", "tied", "spherical", "linear", "quadratic"])
@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_units_do_not_matter(kind, scale):
    clf, X, y, new = rows(kind)
    names = ["mean", "interval", "mean_intercept", "mean_log_odds"]
    names += [] if kind in DEPENDENT else ["predictive", "predictive_log_odds"]
    expected, table = clf.explain(new), clf.fit(X * scale, y).explain(new * scale)
    for name in names:
        np.testing.assert_allclose(table[name], expected[name], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", ["bernoulli", "poisson", "gaussian", "linear", "quadratic"])
def test_a_missing_cell_contributes_nothing(kind):
    clf, _, _, new = rows(kind)
    table = clf.explain(new)
    assert np.isnan(new[0, 1])
    cell = table.isel(obs_id=0, feature=1)
    assert float(cell["mean"]) == 0
    assert not cell["interval"].any()
    assert float(cell["error"]) == 0
    nothing = clf.explain(np.full((1, 3), np.nan))
    assert not nothing["mean"].any()


# ------------------------------------------------------------------------------ the numbers


def test_bits_against_scipy():
    clf, X, y, new = rows("bernoulli")
    table = clf.explain(new, classes=("b", "a"), prob=0.9, kind="eti", method="exact")
    ones, zeros = (
        np.stack([1 + np.nansum((v == X) & (y == c)[:, None], axis=0) for c in "ba"])
        for v in (1, 0)
    )
    p = np.where(new == 1, ones[:, None], zeros[:, None]).astype(float)
    total = (ones + zeros)[:, None]
    seen = ~np.isnan(new)
    log_mean, mean_log = np.log(p / total), digamma(p) - digamma(total)
    np.testing.assert_allclose(table["predictive"], seen * (log_mean[0] - log_mean[1]), rtol=1e-10)
    np.testing.assert_allclose(table["mean"], seen * (mean_log[0] - mean_log[1]), rtol=1e-10)
    alpha = [1 + np.sum(y == c) for c in "ba"]
    np.testing.assert_allclose(table["mean_intercept"], digamma(alpha[0]) - digamma(alpha[1]))
    np.testing.assert_allclose(table["predictive_intercept"], np.log(alpha[0] / alpha[1]))
    rng = np.random.default_rng(1)
    for j in (0, 2):
        a, b = (np.log(rng.beta(p[c, 0, j], (total[c, 0] - p[c, 0])[j], 200_000)) for c in (0, 1))
        ends = table["interval"].values[0, j]
        below = np.mean((a - b)[:, None] <= ends, axis=0)
        np.testing.assert_allclose(below, [0.05, 0.95], atol=0.0025)


def test_counts_and_reals_against_scipy():
    clf, X, y, new = rows("poisson")
    table = clf.explain(new)
    total = np.stack([np.nansum(X[y == c], axis=0) for c in "ba"])
    seen = np.stack([np.sum(~np.isnan(X[y == c]), axis=0) for c in "ba"])
    shape = 1.0 + total
    rate = np.nansum(~np.isnan(X), axis=0) / np.nansum(X, axis=0) + seen
    log_p = stats.nbinom.logpmf(new, shape[:, None], (rate / (1 + rate))[:, None])
    np.testing.assert_allclose(table["predictive"], np.nan_to_num(log_p[0] - log_p[1]), atol=1e-10)
    mean = new * (digamma(shape) - np.log(rate))[:, None] - (shape / rate)[:, None]
    np.testing.assert_allclose(table["mean"], np.nan_to_num(mean[0] - mean[1]), atol=1e-10)

    clf, _, _, new = rows("gaussian")
    family = clf.model_.family
    m, k, nu, s2 = (
        f[::-1] for f in (family.mu + family.shift, family.kappa, family.nu, family.sigma2)
    )
    table = clf.explain(new)
    log_p = stats.t.logpdf(new, nu[:, None], m[:, None], np.sqrt(s2 * (1 + 1 / k))[:, None])
    np.testing.assert_allclose(table["predictive"], np.nan_to_num(log_p[0] - log_p[1]), atol=1e-10)
    square = np.square(new - m[:, None]) / s2[:, None]
    mean = 0.5 * (digamma(nu / 2) - np.log(nu * s2 / 2) - 1 / k)[:, None] - square / 2
    np.testing.assert_allclose(table["mean"], np.nan_to_num(mean[0] - mean[1]), atol=1e-10)


def test_words_are_averaged_over_the_orders_of_the_chain_rule():
    X, y = np.array([[3, 1, 0], [0, 2, 2], [1, 0, 4]]), [0, 1, 1]
    clf = bg.MultinomialNB(alpha=0.5).fit(X, y)
    new = np.array([[2, 1, 1]])
    words = [0, 0, 1, 2]
    counts = np.array([[3.5, 1.5, 0.5], [1.5, 2.5, 6.5]])
    expected = np.zeros(3)
    orders = list(permutations(words))
    for order in orders:
        urn = counts.copy()
        for w in order:
            p = urn[:, w] / urn.sum(axis=1)
            expected[w] += np.log(p[1] / p[0]) / len(orders)
            urn[:, w] += 1
    table = clf.explain(new)
    np.testing.assert_allclose(table["predictive"][0], expected, rtol=1e-12)
    mean = digamma(counts) - digamma(counts.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(table["mean"][0], new[0] * (mean[1] - mean[0]), rtol=1e-12)
    rng = np.random.default_rng(0)
    theta = [np.log(rng.dirichlet(c, 200_000)) for c in counts]
    ends = clf.explain(new, prob=0.9, kind="eti", method="exact")["interval"].values[0]
    draws = new[0] * (theta[1] - theta[0])
    below = (draws[..., None] <= ends).mean(axis=0)
    np.testing.assert_allclose(below, [[0.05, 0.95]] * 3, atol=0.0025)


def test_language_models_name_their_ngrams():
    clf = bg.MarkovNB(order=2).fit(["abab", "aabb", "bbba", "bbbb"], [0, 0, 1, 1])
    table = clf.explain(["ab", "bx", ""], classes=(1, 0))
    assert table["feature"].values.tolist() == ["⊢a", "⊢b", "ab", "b␦"]
    # after "a" class 0 had b, b, a, b and class 1 nothing
    cell = table.sel(feature="ab")["predictive"].values
    np.testing.assert_allclose(cell, [np.log((1 / 2) / (4 / 6)), 0, 0], atol=1e-12)
    assert gap(table, "predictive") < 1e-12
    assert not table["mean"][2].any()
    one = bg.MarkovNB(order=1).fit(["aab", "abb", "bbb"], [0, 0, 1])
    bag = bg.MultinomialNB().fit([[2, 1], [1, 2], [0, 3]], [0, 0, 1])
    for name in ("predictive", "mean", "interval"):
        np.testing.assert_allclose(
            one.explain(["abba"])[name], bag.explain([[2, 2]])[name], rtol=1e-9
        )


@pytest.mark.parametrize("kind", ["linear", "quadratic"])
def test_correlated_features_against_draws(kind):
    clf, _, _, new = rows(kind)
    table = clf.explain(new, prob=0.8, kind="eti")
    theta = clf.model_.draw(np.random.default_rng(3), 20_000)
    mu, x = theta["mu"], new[1]
    sigma = theta["Sigma"] if kind == "quadratic" else np.stack([theta["Sigma"]] * 2, axis=1)
    precision = np.linalg.inv(sigma)
    if kind == "linear":
        w = np.einsum("sij,sj->si", precision[:, 0], mu[:, 1] - mu[:, 0])
        draws = w * (x - mu.mean(axis=1))
        rest = 0.0
    else:
        u = x - mu
        form = -0.5 * u * np.einsum("scij,scj->sci", precision, u)
        draws, log_det = form[:, 1] - form[:, 0], np.linalg.slogdet(precision)[1]
        rest = 0.5 * (log_det[:, 1] - log_det[:, 0])
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - table["mean"][1]) < 4.5 * error)
    below = (draws[..., None] <= table["interval"].values[1]).mean(axis=0)
    np.testing.assert_allclose(below, [[0.1, 0.9]] * 3, atol=0.025)  # 4096 draws: sd .005
    intercept = rest + np.log(theta["pi"][:, 1] / theta["pi"][:, 0])
    below = np.mean(intercept[:, None] <= table["interval_intercept"].values[1], axis=0)
    np.testing.assert_allclose(below, [0.1, 0.9], atol=0.01)
    log_p = clf.model_.family.log_likelihood(new[1:2], theta)[:, 0]
    np.testing.assert_allclose(
        draws.sum(axis=1) + intercept,
        log_p[:, 1] - log_p[:, 0] + np.log(theta["pi"][:, 1] / theta["pi"][:, 0]),
        atol=1e-9,
    )


# -------------------------------------------------------------------------------- intervals


@pytest.mark.parametrize("kind", ["bernoulli", "poisson", "gaussian", "spherical", "multinomial"])
def test_routes_agree(kind):
    clf, _, _, new = rows(kind, 3)
    ask = {"classes": ("c", "a"), "prob": 0.8, "kind": "eti"}
    exact = clf.explain(new, method="exact", **ask)
    auto = clf.explain(new, **ask)
    drawn = clf.explain(new, method="draws", **ask)
    width = (exact["interval"][..., 1] - exact["interval"][..., 0]).values[..., None]
    assert np.all(np.abs(auto["interval"] - exact["interval"]) <= 0.02 * width)
    assert np.all(np.abs(drawn["interval"] - exact["interval"]) <= 0.1 * width)
    np.testing.assert_array_equal(auto["mean"], exact["mean"])
    np.testing.assert_array_equal(drawn["mean"], exact["mean"])


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "markov"])
def test_draws_given_by_the_user(kind):
    clf, _, _, new = rows(kind)
    theta = clf.draw_posterior(draws=1000, chains=4)
    table = clf.explain(new, posterior=theta, prob=0.8, kind="eti")
    closed = clf.explain(new, prob=0.8, kind="eti", method="exact")
    assert "predictive" not in table
    assert gap(table, "mean") < 1e-9
    width = (closed["interval"][..., 1] - closed["interval"][..., 0]).values
    assert np.all(np.abs(table["mean"] - closed["mean"]) <= 0.05 * width)
    assert np.all(np.abs(table["interval"] - closed["interval"]) <= 0.15 * width[..., None])
    assert float(table["error"].max()) < 0.02


# -------------------------------------------------------------------------------- questions


def test_columns_with_equal_counts_are_asked_once(monkeypatch):
    rng = np.random.default_rng(5)
    y = np.arange(40) % 2
    few = rng.random((40, 3)) < 0.4 + 0.3 * y[:, None]
    many = np.repeat(few, 40, axis=1)
    asked = []
    whole = contributions._distributions
    monkeypatch.setattr(
        contributions,
        "_distributions",
        lambda source, predictive, *rest: (
            asked.append(len(predictive)) or whole(source, predictive, *rest)
        ),
    )
    found = bg.BernoulliNB().fit(many, y).explain(X=many[:4])
    assert max(asked) <= 6  # a bit and its contrary of three columns
    one = bg.BernoulliNB().fit(few, y).explain(X=few[:4])
    for name in ("mean", "predictive", "interval"):
        np.testing.assert_array_equal(found[name], one[name].values.repeat(40, axis=1))


def test_which_classes():
    clf, _, _, new = rows("gaussian", 3)
    joint = clf.predict_joint_log_proba(new)
    order = clf.classes_[np.argsort(-joint, axis=1)]
    top = clf.explain(new)
    assert top["label"].values.tolist() == order[:, 0].tolist()
    assert top["against"].values.tolist() == order[:, 1].tolist()
    assert "runner-up" in top.attrs["pair"]
    one = clf.explain(new, classes="b")
    assert set(one["label"].values) == {"b"}
    assert "b" not in one["against"].values
    ab, ba = clf.explain(new, classes=("a", "b")), clf.explain(new, classes=["b", "a"])
    np.testing.assert_allclose(ab["mean"], -ba["mean"], atol=1e-12)
    np.testing.assert_allclose(ab["interval"], -ba["interval"][..., ::-1], atol=1e-6)
    prior = {"a": 0.2, "b": 0.5, "c": 0.3}
    given_prior = clf.explain(new, classes=("a", "b"), class_prior=prior)
    np.testing.assert_allclose(given_prior["mean_intercept"], np.log(0.2 / 0.5))
    assert gap(given_prior, "predictive") < 1e-10


@pytest.mark.parametrize("method", ["auto", "draws"])
def test_a_class_of_weight_0_has_infinite_log_odds_against_it(method):
    clf, _, _, new = rows("gaussian", 3)
    found = clf.explain(new, classes=("b", "a"), class_prior=[0.0, 1.0, 0.0], method=method)
    for name in ("mean_intercept", "mean_log_odds", "predictive_log_odds", "interval_intercept"):
        assert (found[name] == np.inf).all(), name
    assert np.isfinite(found["interval"]).all()
    given = clf.explain(
        new, classes=("a", "b"), class_prior=[0.0, 1.0, 0.0], posterior=clf.posterior_
    )
    assert (given["mean_log_odds"] == -np.inf).all()
    assert (given["interval_intercept"] == -np.inf).all()
    neither = clf.explain(new, classes=("a", "c"), class_prior=[0.0, 1.0, 0.0], method=method)
    assert np.isnan(neither["mean_log_odds"]).all()


def test_names_of_a_frame():
    clf, _, _, new = rows("mixed")
    assert clf.explain(new)["feature"].values.tolist() == ["size", "wet", "kind"]


def test_a_category_that_cannot_be():
    from bayesgen.families.conjugate.dirichlet_categorical import DirichletCategorical

    family = DirichletCategorical(n_categories=(2,), new=[[0.0], [1.0]])
    clf = bg.GenerativeClassifier(family).fit(np.array([[0.0], [1], [1]]), [0, 0, 1])
    table = clf.explain([[-1.0], [1.0]])
    assert table["predictive"].values[0, 0] == np.inf == table["interval"].values[0, 0, 0]
    assert np.isfinite(table["predictive"].values[1])


def test_bad_questions():
    clf, _, _, new = rows("bernoulli")
    for classes, message in (
        ("z", "'z' is not a class"),
        (("a", "a"), "two different"),
        (("a",), "pair"),
        (("a", "b", "a"), "pair"),
    ):
        with pytest.raises(ValueError, match=message):
            clf.explain(new, classes=classes)
    with pytest.raises(ValueError, match="prob"):
        clf.explain(new, prob=1.5)
    with pytest.raises(ValueError, match="kind"):
        clf.explain(new, kind="both")
    with pytest.raises(ValueError, match="method"):
        clf.explain(new, method="guess")
    with pytest.raises(ValueError, match="two classes"):
        bg.BernoulliNB().fit([[0], [1]], ["a", "a"]).explain([[1]])
    markov, _, _, texts = rows("markov")
    with pytest.raises(NotImplementedError, match="draws"):
        markov.explain(texts, method="draws")


def test_draws_of_tables_with_almost_no_pseudo_counts_leave_terms():
    X = np.array([["a", "u"], ["b", "v"], ["a", "u"], ["b", "u"], ["a", "v"]], dtype=object)
    clf = bg.TreeAugmentedNB(strength=1e-3, root_weight=1.0).fit(X, [0, 1, 0, 1, 0])
    found = clf.explain([["b", "u"], ["a", "v"]])
    assert all(np.isfinite(found[name]).all() for name in found if found[name].dtype.kind == "f")
