"""The numbers of the documents that the project grew from, and of the data that go with them.

Sources: shared/seeds, shared/DATA.md "Published figures", shared/MATH.md B and I.
"""

from pathlib import Path

import numpy as np
import pytest

import bayesgen as bg
from bayesgen.datasets import POKEMON_STATS, load_pokemon
from bayesgen.families.conjugate.dirichlet_markov import DirichletMarkov
from bayesgen.families.conjugate.dirichlet_multinomial import DirichletMultinomial
from bayesgen.predict.probabilities import ImpossibleRowError

SHARED = Path(__file__).parents[2] / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data is not here")

THIRTEEN = np.array([[1, 1]] + 4 * [[1, 0]] + 4 * [[0, 1]] + 4 * [[0, 0]])
THIRTEEN_Y = np.array([1] + 12 * [2])
CELL = (2 * THIRTEEN[:, :1] + THIRTEEN[:, 1:]).astype(int)  # one feature with four values
# ten balls of each box teach the colours, class_prior= the choice of the box
BLUE = np.r_[np.repeat([1, 0], [8, 2]), np.repeat([1, 0], [4, 6])][:, None]
BOX, BOXES = np.repeat([1, 2], 10), {1: 2 / 3, 2: 1 / 3}
ONE_WORD = [[1, 0, 0], [0, 1, 0]]
# MATH.md B: one row of ones against three rows with a single one in each column
BITS = [5 * [1], [1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]]
# MATH.md B: equal mean probabilities of the word, 2/6 and 3/9, of unequal weight
WORD_COUNTS = [[1, 0, 0, 0, 0], [2, 2, 0, 0, 0]]
WORDS = ["dog", "cat", "tulip", "rose"]
PETS, FLOWERS = [0.5, 0.4, 0.05, 0.05], [0.1, 0.1, 0.5, 0.3]
DOCUMENT = ["dog", "dog", "cat", "dog", "cat", "tulip"]
FULL, MEAN, MLE = "posterior_predictive", "posterior_mean", "mle"
UNIFORM, JEFFREYS = bg.BernoulliNB(), bg.BernoulliNB(0.5, 0.5, class_alpha=0.5)
COUNTS, FOUR_VALUES = bg.MultinomialNB(), bg.CategoricalNB(categories=4)
PUBLISHED = [  # rows, labels, new row, method: p of the first class, as printed or by hand
    (UNIFORM, BLUE, BOX, [1], MLE, 0.8),
    (UNIFORM, BLUE, BOX, [0], MLE, 0.4),
    (UNIFORM, THIRTEEN, THIRTEEN_Y, [1, 1], MLE, 3 / 7),
    (UNIFORM, THIRTEEN, THIRTEEN_Y, [1, 1], FULL, 1568 / 4493),
    (JEFFREYS, THIRTEEN, THIRTEEN_Y, [1, 1], FULL, "0.3603412"),
    # without the assumption of independence maximum likelihood is sure, and Bayes undecided
    (FOUR_VALUES, CELL, THIRTEEN_Y, [3], FULL, "0.4961240"),
    (FOUR_VALUES, CELL, THIRTEEN_Y, [3], MLE, 1.0),
    # Gamma(2+5)/Gamma(2) over Gamma(1+5)/Gamma(1) = 6!/5! = 6, the totals being equal
    (COUNTS, ONE_WORD, "ab", [5, 0, 0], FULL, 6 / 7),
    (COUNTS, ONE_WORD, "ab", [5, 0, 0], MEAN, 32 / 33),
    (COUNTS, ONE_WORD, "ab", [1, 0, 0], FULL, 2 / 3),
    (COUNTS, ONE_WORD, "ab", [1, 0, 0], MEAN, 2 / 3),
    (UNIFORM, BITS, [0, 1, 1, 1], 5 * [1], FULL, "0.865411"),
    # pi 1/3 and 2/3, theta 2/3 and 2/5
    (UNIFORM, BITS, [0, 1, 1, 1], 5 * [1], FULL, 1 / (1 + 2 * (3 / 5) ** 5)),
    (COUNTS, WORD_COUNTS, "ab", [5, 0, 0, 0, 0], FULL, "0.593361"),
    (COUNTS, WORD_COUNTS, "ab", [5, 0, 0, 0, 0], MEAN, 0.5),
]


@pytest.mark.parametrize(("clf", "X", "y", "row", "method", "expected"), PUBLISHED)
def test_published_probabilities(clf, X, y, row, method, expected):
    clf.fit(X, list(y))
    p = clf.predict_proba([row], method, class_prior=BOXES if X is BLUE else None)[0, 0]
    digits = len(expected) - 2 if isinstance(expected, str) else 14
    assert p == pytest.approx(float(expected), abs=0.5 * 10.0**-digits, rel=1e-14)


@pytest.mark.parametrize(
    ("clf", "X", "y", "row", "mean", "sd"),
    [
        (UNIFORM, BITS, [0, 1, 1, 1], 5 * [1], 0.781513, 0.249),
        (COUNTS, WORD_COUNTS, "ab", [5, 0, 0, 0, 0], 0.486550, 0.400),
    ],
    ids=["five bits", "five times"],
)
def test_published_spread(clf, X, y, row, mean, sd):
    """Mean and standard deviation of p(y = first class | x, theta): not the predictive."""
    n = 100_000
    table = clf.fit(X, list(y)).predict_uncertainty([row], draws=n)
    spread = table.isel(obs_id=0, **{"class": 0})
    mcse = sd / np.sqrt(n)
    assert spread["mean"].item() == pytest.approx(mean, abs=4 * mcse)
    assert spread["sd"].item() == pytest.approx(sd, abs=4 * mcse + 5e-4)  # the published digit


def test_thirteen_rows_mean_over_draws_is_another_number():
    clf = bg.BernoulliNB().fit(THIRTEEN, THIRTEEN_Y)
    draws = clf.model_.draw(np.random.default_rng(5), 40_000)
    joint = np.exp(clf.model_.family.log_likelihood(np.array([[1, 1]]), draws))[:, 0]
    joint = joint * draws["pi"]
    rho = joint[:, 0] / joint.sum(axis=1)
    mcse = rho.std() / np.sqrt(len(rho))
    assert abs(rho.mean() - 0.334160) < 4 * mcse
    squares = (rho - rho.mean()) ** 2
    mcse_sd = squares.std() / (2 * rho.std() * np.sqrt(len(rho)))
    assert abs(rho.std() - 0.211) < 4 * mcse_sd + 5e-4  # the published digit
    for share, end in ((0.05, 0.0447), (0.95, 0.7232)):
        below = np.mean(rho <= end)
        assert abs(below - share) < 4 * np.sqrt(share * (1 - share) / len(rho)) + 2e-4
    assert abs(clf.predict_proba([[1, 1]])[0, 0] - rho.mean()) > 10 * mcse


def _water_or_normal(columns):
    X, y = load_pokemon()
    two = y.isin(["water", "normal"])
    train = (X["id"] < 400)[two].to_numpy()
    X, y = X.loc[two, list(columns)].to_numpy(), y[two].to_numpy()
    return X[train], y[train], X[~train], y[~train]


def test_pokemon_maximum_likelihood():
    """The slide's matrix for Normal is its scatter about *Water's* mean; this is the right one."""
    X, y, _, _ = _water_or_normal(["defense", "sp_defense"])
    assert {c: int((y == c).sum()) for c in set(y)} == {"water": 79, "normal": 61}
    clf = bg.QuadraticDiscriminant().fit(X, y)
    theta = clf.model_.estimate("mle", clf.stats_)
    water, normal = (list(clf.classes_).index(c) for c in ("water", "normal"))
    np.testing.assert_allclose(theta["mu"][water], [75.038, 71.329], atol=5e-4)
    np.testing.assert_allclose(theta["mu"][normal], [55.557, 59.836], atol=5e-4)
    upper = np.triu_indices(2)
    np.testing.assert_allclose(theta["Sigma"][water][upper], [873.859, 327.203, 928.676], atol=6e-4)
    np.testing.assert_allclose(
        theta["Sigma"][normal][upper], [468.279, 197.764, 552.694], atol=6e-4
    )
    about_water = theta["Sigma"][normal] + np.outer(*2 * [theta["mu"][normal] - theta["mu"][water]])
    np.testing.assert_allclose(about_water[upper], [847, 422, 685], atol=1.0)


@pytest.mark.parametrize(
    ("estimator", "columns", "right"),
    [
        (bg.QuadraticDiscriminant, ["defense", "sp_defense"], 36),
        (bg.QuadraticDiscriminant, POKEMON_STATS, 45),
        (bg.LinearDiscriminant, POKEMON_STATS, 54),
    ],
    ids=["two-features", "six-features", "six-features-shared"],
)
def test_pokemon_accuracy(estimator, columns, right):
    X, y, X_test, y_test = _water_or_normal(columns)
    clf = estimator().fit(X, y)
    assert len(y_test) == 70
    assert (clf.predict(X_test, method="mle") == y_test).sum() == right


# ---------------------------------------------------- generative_models_text_and_gaussians


@pytest.mark.parametrize("estimator", ["multinomial", "markov"])
def test_four_word_documents(estimator):
    """dog dog cat dog cat tulip: .001 against .000005, 200 times likelier."""
    if estimator == "markov":  # the sequence itself
        family = DirichletMarkov(order=1, n_tokens=4)
        X = np.empty(1, dtype=object)
        X[0] = np.array([WORDS.index(w) for w in DOCUMENT])
        stats = family.stats(X[[0, 0]], np.array([0, 1]), 2)
        family = family.resolve(stats).update(stats)
        theta = {"theta": np.array([PETS, FLOWERS])[:, None, :]}
        log_p = family.log_likelihood(X, theta)[0]
        np.testing.assert_allclose(np.exp(log_p), [1e-3, 5e-6], rtol=1e-12)
    else:  # the bag of words: 60 sequences have these counts
        counts = np.array([[DOCUMENT.count(w) for w in WORDS]])
        family = DirichletMultinomial()
        log_p = family.log_likelihood(counts, {"theta": np.array([PETS, FLOWERS])})[0]
        np.testing.assert_allclose(np.exp(log_p), [60e-3, 300e-6], rtol=1e-12)
    assert log_p[0] - log_p[1] == pytest.approx(np.log(200), rel=1e-12)
    assert log_p[0] - log_p[1] == pytest.approx(5.2983, abs=5e-5)


# ------------------------------------------------------------------ bayesian_naive_bayes


@pytest.fixture(scope="module")
def xwindows():
    data = np.load(SHARED / "xwindows.npz")
    bits = {k: np.unpackbits(data[f"{k}_bits"], axis=1)[:, :600] for k in ("train", "test")}
    labels = {k: data[f"{k}_label"] for k in ("train", "test")}  # 0 X Windows, 1 MS Windows
    return bits, labels, data["words"]


@needs_shared
def test_xwindows_errors_and_black_swans(xwindows):
    bits, labels, _ = xwindows
    clf = bg.BernoulliNB().fit(bits["train"], labels["train"])
    errors = {k: int((clf.predict(bits[k]) != labels[k]).sum()) for k in bits}
    assert errors == {"train": 75, "test": 168}
    with pytest.raises(ImpossibleRowError, match="probability 0 under every class"):
        clf.predict_proba(bits["test"], method="mle")
    joint = clf.predict_joint_log_proba(bits["test"], method="mle")
    assert int(np.isneginf(joint).all(axis=1).sum()) == 146
    assert np.isfinite(clf.predict_log_proba(bits["test"])).all()
    table = bg.compare_predictives(clf, bits["test"], labels["test"]).to_dataframe()
    assert table.loc["mle", "impossible"] == 146
    assert table.loc["posterior_predictive", "impossible"] == 0


@needs_shared
def test_xwindows_most_informative_words(xwindows):
    bits, labels, words = xwindows
    clf = bg.BernoulliNB().fit(bits["train"], labels["train"])
    smoothed = np.sort(bg.mutual_information(clf).to_numpy())[::-1]
    np.testing.assert_allclose(smoothed[:5], [0.2150, 0.0955, 0.0921, 0.0782, 0.0673], atol=5e-5)
    plain = np.sort(bg.mutual_information(clf, method="mle").to_numpy())[::-1]
    np.testing.assert_allclose(plain[:5], [0.2173, 0.0984, 0.0945, 0.0820, 0.0684], atol=5e-5)
    best = words[np.argsort(-bg.mutual_information(clf).to_numpy())[:5]]
    assert best.tolist() == ["windows", "microsoft", "dos", "motif", "window"]


# ------------------------------------------------------------------ generative_models_gda


def test_shared_covariance_is_linear_and_matches_the_seed():
    """w = Sigma^-1 (mu_1 - mu_2), w0 as in the seed, for the plug-in; sigmoid(w x + w0) = p."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [30, 20])
    X = rng.normal(size=(50, 2)) @ [[1.0, 0.4], [0.0, 0.7]] + 2.0 * y[:, None]
    clf = bg.LinearDiscriminant().fit(X, y)
    w, w0 = clf.linear_form("mle")
    mean = np.array([X[y == c].mean(axis=0) for c in (0, 1)])
    scatter = sum((X[y == c] - mean[c]).T @ (X[y == c] - mean[c]) for c in (0, 1))
    inverse = np.linalg.inv(scatter / 50)
    np.testing.assert_allclose(w, inverse @ (mean[1] - mean[0]), rtol=1e-10)
    seed_w0 = 0.5 * (mean[0] @ inverse @ mean[0] - mean[1] @ inverse @ mean[1]) + np.log(20 / 30)
    assert w0 == pytest.approx(seed_w0, rel=1e-10)
    p = clf.predict_proba(X, method="mle")[:, 1]
    np.testing.assert_allclose(p, 1 / (1 + np.exp(-(X @ w + w0))), rtol=1e-9)
