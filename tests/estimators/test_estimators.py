"""The faces through their public methods: laws that hold for each, and SciPy's densities.

`CASES` holds every face with data of its kind: three classes, missing cells where they may be, a
category (a word, a letter) that only the last class knows.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import arviz as az
import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr
from scipy import optimize, sparse, stats
from scipy.special import logsumexp, softmax
from sklearn.utils import _safe_indexing as take

import bayesgen as bg
from bayesgen.estimators import FACES
from bayesgen.estimators.sampled import SampledClassifier
from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
from bayesgen.families.contract import NotLinearError, UndefinedEstimateError
from bayesgen.families.names import METHODS
from bayesgen.predict.probabilities import ImpossibleRowError

NAN = np.nan
LABELS = np.array(["ash", "birch", "cedar"])
PLUG_INS = METHODS[1:]

# -------------------------------------------------------------------------------------- data


def holes(rng, X, share=0.1):
    """X with missing cells, but none in the first rows."""
    gone = rng.random(X.shape) < share
    gone[:9] = False
    return np.where(gone, NAN, X)


def bits(rng, c):
    p = np.array([[0.2, 0.8, 0.5, 0.9], [0.7, 0.3, 0.5, 0.6], [0.5, 0.5, 0.1, 0.3]])
    return holes(rng, (rng.random((len(c), 4)) < p[c]).astype(float))


def words(rng, c):
    colours = np.array(["red", "blue", "green"], dtype=object)
    sizes = np.array(["S", "M", "L", "XL"], dtype=object)
    colour = colours[np.where(rng.random(len(c)) < 0.6, c, rng.integers(0, 2, len(c)))]
    size = sizes[np.minimum(rng.integers(0, 3, len(c)) + (c == 2), 3)]
    X = np.stack([colour, size], axis=1)
    X[9 + np.flatnonzero(rng.random(len(c) - 9) < 0.1), 0] = None
    return X


def counts(rng, c):
    rate = np.array([[2.0, 1, 7, 3], [5, 2, 1, 3], [1, 9, 2, 3]])
    return rng.poisson(rate[c]).astype(float)


def counts_with_holes(rng, c):
    return holes(rng, counts(rng, c))


def reals(rng, c):
    mean = np.array([[0.0, 2, 5], [1, 0, 4], [3, 1, 9]])
    spread = np.array([[1.0, 2, 0.5], [0.5, 1, 2], [1, 1, 1]])
    X = mean[c] + spread[c] * rng.normal(size=(len(c), 3))
    return X @ np.array([[1.0, 0.3, 0], [0, 1, 0.5], [0, 0, 1]])


def reals_with_holes(rng, c):
    return holes(rng, reals(rng, c))


def table(rng, c):
    real, word, count = reals_with_holes(rng, c), words(rng, c), counts(rng, c)
    return pd.DataFrame(
        {
            "length": real[:, 0],
            "colour": word[:, 0],
            "eggs": count[:, 1],
            "wild": rng.random(len(c)) < np.array([0.2, 0.5, 0.9])[c],
            "weight": real[:, 2],
            "size": word[:, 1],
        }
    )


KINDS = {
    "gaussian": ["length", "weight"],
    "categorical": ["colour", "size"],
    "poisson": ["eggs"],
    "bernoulli": ["wild"],
}


def texts(rng, c):
    letters = ["aab ", "abb ", "bccc "]
    lengths = 1 + rng.integers(0, 8, len(c))
    return ["".join(rng.choice(list(letters[k]), n)) for k, n in zip(c, lengths, strict=True)]


class Case(NamedTuple):
    make: Callable[[], Any]
    rows: Callable[..., Any]
    fixed: bool = True  # the prior does not look at the data
    tol: float = 1e-9


def gaussian(variance="class"):
    groups = {"class": 3, "tied": 1, "spherical": 1, "class_spherical": 1}[variance]
    return bg.GaussianNB(
        mu0=[1.0, 0.0, 4.0],
        kappa0=0.5,
        nu0=4.0,
        sigma2_0=np.array([1.5, 2.0, 1.0])[:groups] if groups == 3 else 1.5,
        variance=variance,
    )


PSI = np.array([[2.0, 0.5, 0.0], [0.5, 3.0, 1.0], [0.0, 1.0, 4.0]])
FULL = {"mu0": [1.0, 0.0, 4.0], "kappa0": 0.5, "nu0": 6.0, "psi0": PSI}
FLAT = {"mu0": 1.0, "kappa0": 0.5, "nu0": 4.0, "psi0": 2.0}

CASES = {
    "BernoulliNB": Case(lambda: bg.BernoulliNB(1.5, [2.0, 1, 1, 3]), bits),
    "CategoricalNB": Case(bg.CategoricalNB, words, fixed=False),
    "CategoricalNB declared": Case(
        lambda: bg.CategoricalNB(1.5, {0: ["red", "green", "blue"], 1: ["S", "M", "L", "XL"]}),
        words,
    ),
    "MultinomialNB": Case(lambda: bg.MultinomialNB(1.5, class_alpha=2.0), counts),
    "PoissonNB": Case(bg.PoissonNB, counts_with_holes, fixed=False),
    "PoissonNB rate": Case(lambda: bg.PoissonNB(2.0, 0.5), counts_with_holes),
    "GaussianNB": Case(bg.GaussianNB, reals_with_holes, fixed=False),
    **{
        f"GaussianNB {v}": Case(lambda v=v: gaussian(v), reals_with_holes)
        for v in ("class", "tied", "spherical", "class_spherical")
    },
    "MixedNB": Case(lambda: bg.MixedNB(KINDS), table, fixed=False),
    "LinearDiscriminant": Case(bg.LinearDiscriminant, reals, fixed=False),
    "LinearDiscriminant full": Case(lambda: bg.LinearDiscriminant(**FULL), reals),
    "QuadraticDiscriminant": Case(bg.QuadraticDiscriminant, reals, fixed=False),
    "QuadraticDiscriminant full": Case(lambda: bg.QuadraticDiscriminant(**FULL), reals),
    **{
        f"{face.__name__} {v}": Case(lambda face=face, v=v: face(**FLAT, covariance=v), reals)
        for face in (bg.LinearDiscriminant, bg.QuadraticDiscriminant)
        for v in ("diagonal", "spherical")
    },
    "MarkovNB 1": Case(lambda: bg.MarkovNB(1, 1.5), texts, fixed=False),
    "MarkovNB 2": Case(lambda: bg.MarkovNB(2, 1.5, vocabulary=list("abc ")), texts),
    "GenerativeClassifier": Case(
        lambda: bg.GenerativeClassifier(NormalInverseGamma(variance="tied")),
        reals_with_holes,
        fixed=False,
    ),
    # the evidence is flat at its top: the optimum is known to about 1e-6
    "GaussianNB empirical": Case(
        lambda: bg.GaussianNB(prior="empirical"), reals_with_holes, fixed=False, tol=1e-4
    ),
    "MultinomialNB empirical": Case(
        lambda: bg.MultinomialNB(prior="empirical"), counts, fixed=False, tol=1e-4
    ),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
FIXED = {name: case for name, case in CASES.items() if case.fixed}
# small parts often ask for a degenerate prior, which is what the warning says
degenerate = pytest.mark.filterwarnings("ignore:prior='empirical'. the evidence has no interior")


def sample(case, n=60, seed=7):
    """Rows, codes, labels: the classes one after another in turn, in random order after 9 rows."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    rng.shuffle(codes[9:])
    return case.rows(rng, codes), codes, LABELS[codes]


def fitted(case, **size):
    X, _, y = sample(case, **size)
    return case.make().fit(X, y), X, y


def stack(X, Z):
    """Rows of X, then rows of Z."""
    if isinstance(X, pd.DataFrame):
        return pd.concat([X, Z], ignore_index=True)
    return [*X, *Z] if isinstance(X, list) else np.concatenate([X, Z])


def defined(clf, X):
    """The methods whose estimate exists, and their log joint densities."""
    out = {}
    for method in METHODS:
        try:
            out[method] = clf.predict_joint_log_proba(X, method=method)
        except UndefinedEstimateError:
            continue
    assert "posterior_predictive" in out
    return out


def assert_same(a, b, X, tol=1e-9):
    """Two classifiers that learnt the same from the same rows, in whatever order."""
    np.testing.assert_array_equal(a.classes_, b.classes_)
    assert a.n_rows_seen_ == b.n_rows_seen_
    assert a.log_evidence_ == pytest.approx(b.log_evidence_, rel=tol)
    mine, theirs = defined(a, X), defined(b, X)
    assert mine.keys() == theirs.keys()
    for method in mine:
        np.testing.assert_allclose(mine[method], theirs[method], rtol=tol, atol=tol)


def test_every_face_has_a_case():
    closed = {face for face in FACES if not issubclass(face, SampledClassifier)}
    assert {type(case.make()) for case in CASES.values()} == closed


# ------------------------------------------------------------------------------ probabilities


@every_case
def test_probabilities_joint_densities_and_row_densities_agree(case):
    clf, X, y = fitted(case)
    for method, joint in defined(clf, X).items():
        possible = np.isfinite(joint).any(axis=1)
        if not possible.all():
            assert method == "mle" or method == "map"
            X, y, joint = take(X, possible.nonzero()[0]), y[possible], joint[possible]
        log_x = logsumexp(joint, axis=1)
        p = clf.predict_proba(X, method=method)
        np.testing.assert_allclose(p, softmax(joint, axis=1), rtol=1e-12)
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-14)
        np.testing.assert_allclose(clf.score_samples(X, method=method), log_x, rtol=1e-12)
        log_p = clf.predict_log_proba(X, method=method)
        np.testing.assert_allclose(log_p, joint - log_x[:, None], rtol=1e-10, atol=1e-12)
        best = clf.classes_[joint.argmax(axis=1)]
        np.testing.assert_array_equal(clf.predict(X, method=method), best)
        np.testing.assert_array_equal(clf.decision_function(X, method=method), log_p)
    assert clf.score(X, y) == np.mean(clf.predict(X) == y) > 0.5


@every_case
def test_another_class_prior_is_an_exact_label_shift(case):
    clf, X, _ = fitted(case)
    new = np.array([0.7, 0.1, 0.2])
    for method in ("posterior_predictive", "posterior_mean"):
        old = clf.predict_proba(X, method=method)
        shifted = old * new / clf.model_.class_weights(method, clf.stats_)
        expected = shifted / shifted.sum(axis=1, keepdims=True)
        got = clf.predict_proba(X, method=method, class_prior=new)
        np.testing.assert_allclose(got, expected, rtol=1e-9)
        log_x = clf.score_samples(X, method=method, class_prior=new)
        joint = clf.predict_joint_log_proba(X, method=method, class_prior=new)
        np.testing.assert_allclose(log_x, logsumexp(joint, axis=1), rtol=1e-12)


def test_class_prior_by_position_by_label_and_as_a_series():
    clf, X, _ = fitted(CASES["GaussianNB"])
    expected = clf.predict_proba(X, class_prior=[0.7, 0.1, 0.2])
    weights = {"cedar": 0.2, "ash": 0.7, "birch": 0.1}
    for prior in (
        weights,
        pd.Series(weights),  # such as y.value_counts(normalize=True): by label, not by position
        pd.Series(weights, index=pd.CategoricalIndex(weights)),
        np.array([0.7, 0.1, 0.2]),
        (0.7, 0.1, 0.2),
        pl.Series([0.7, 0.1, 0.2]),
    ):
        np.testing.assert_array_equal(clf.predict_proba(X, class_prior=prior), expected)


def test_a_class_with_weight_zero_is_impossible():
    clf, X, _ = fitted(CASES["GaussianNB"])
    p = clf.predict_proba(X, class_prior={"ash": 0, "birch": 0.5, "cedar": 0.5})
    assert np.all(p[:, 0] == 0)
    np.testing.assert_allclose(p.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([0.5, 0.5], r"shape \(2,\), but there are 3 classes: \['ash', 'birch', 'cedar'\]"),
        (0.5, r"shape \(\)"),
        ([0.5, 0.5, 0.5], r"sum to 1.*1\.5.*divide by the sum"),
        ([1.5, -0.5, 0.0], "non-negative"),
        ([NAN, 0.5, 0.5], "sum to 1"),
        ({"ash": 0.5, "birch": 0.5}, r"no weight for \['cedar'\]"),
        ({"ash": 0.5, "birch": 0.3, "elm": 0.2}, "'elm' is not a class"),
        ({0: 0.5, 1: 0.3, 2: 0.2}, "0 is not a class; the classes are"),
        ("uniform", "one weight a class.*'uniform'"),
        ([[0.2, 0.3, 0.5]], r"shape \(1, 3\)"),
    ],
)
def test_a_bad_class_prior_is_refused(prior, message):
    clf, X, _ = fitted(CASES["GaussianNB"])
    for predict in (clf.predict, clf.predict_proba, clf.score_samples, clf.decision_function):
        with pytest.raises(ValueError, match=message):
            predict(X, class_prior=prior)


def test_an_unknown_method_is_refused():
    clf, X, _ = fitted(CASES["GaussianNB"])
    with pytest.raises(ValueError, match="'posterior_predictive', 'posterior_mean', 'map', 'mle'"):
        clf.predict(X, method="bayes")
    with pytest.raises(ValueError, match="method must be one of"):
        clf.linear_form("bayes")


@every_case
def test_decision_function_of_two_classes_is_the_log_odds_of_the_second(case):
    X, codes, y = sample(case)
    two = np.flatnonzero(codes < 2)
    X, y = take(X, two), y[two]
    clf = case.make().fit(X, y)
    p = clf.predict_proba(X)
    d = clf.decision_function(X)
    assert d.shape == (len(two),)
    np.testing.assert_allclose(d, np.log(p[:, 1]) - np.log(p[:, 0]), rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(d > 0, clf.predict(X) == "birch")


# --------------------------------------------------------------------- parts, merges, weights


@degenerate
@every_case
def test_partial_fit_in_parts_is_one_fit(case):
    X, codes, y = sample(case)
    order = np.argsort(codes, kind="stable")  # the last part brings a new class and new values
    whole = case.make().fit(X, y)
    parts = case.make()
    for rows in np.split(order, [7, 25, 46]):
        parts.partial_fit(take(X, rows), y[rows])
    assert_same(parts, whole, X, case.tol)
    declared = case.make()
    for rows in np.split(order, [7, 25, 46]):
        declared.partial_fit(take(X, rows), y[rows], classes=LABELS[::-1])
    assert_same(declared, whole, X, case.tol)


@degenerate
@every_case
def test_merge_is_one_fit(case):
    X, codes, y = sample(case)
    whole = case.make().fit(X, y)
    for left in (codes == 2, codes < 2, np.arange(len(y)) % 4 == 0, codes == 1):
        a, b = np.flatnonzero(left), np.flatnonzero(~left)
        one = case.make().fit(take(X, a), y[a])
        other = case.make().fit(take(X, b), y[b])
        before = other.log_evidence_
        assert one.merge(other) is one
        assert_same(one, whole, X, case.tol)
        assert other.log_evidence_ == before
        assert other.n_rows_seen_ == len(b)


@degenerate
@every_case
def test_integer_weights_are_repeated_rows_and_weight_zero_is_no_row(case):
    X, codes, y = sample(case)
    weight = np.random.default_rng(2).integers(0, 4, len(y))
    weight[codes == 2] = 0  # a class, and the values that only it knows, that are not there
    weighted = case.make().fit(X, y, sample_weight=weight)
    assert weighted.classes_.tolist() == ["ash", "birch"]
    rows = np.repeat(np.arange(len(y)), weight)
    repeated = case.make().fit(take(X, rows), y[rows])
    repeated.n_rows_seen_ = weighted.n_rows_seen_ = 0
    assert_same(weighted, repeated, X, case.tol)
    parts = case.make()
    for rows in np.array_split(np.arange(len(y)), 3):
        parts.partial_fit(take(X, rows), y[rows], sample_weight=weight[rows].tolist())
    parts.n_rows_seen_ = 0
    assert_same(parts, weighted, X, case.tol)


def test_fractional_weights_multiply_the_statistics():
    X, _, y = sample(CASES["BernoulliNB"])
    half = bg.BernoulliNB().fit(X, y, sample_weight=np.full(len(y), 0.5))
    whole = bg.BernoulliNB().fit(X, y)
    np.testing.assert_allclose(half.stats_.features.ones, whole.stats_.features.ones / 2)
    np.testing.assert_allclose(half.stats_.count, whole.stats_.count / 2)


def test_the_empirical_prior_has_the_largest_evidence():
    X, _, y = sample(CASES["MultinomialNB"])
    best = bg.MultinomialNB(prior="empirical").fit(X, y)

    def loss(log_alpha):
        return -bg.MultinomialNB(alpha=np.exp(log_alpha)).fit(X, y).log_evidence_

    top = optimize.minimize_scalar(loss, bounds=(-10, 10), options={"xatol": 1e-6})
    assert best.log_evidence_ == pytest.approx(-top.fun, rel=1e-10)
    np.testing.assert_allclose(best.prior_.family.alpha, np.exp(top.x), rtol=1e-3)
    X, _, y = sample(CASES["GaussianNB"])
    best = bg.GaussianNB(prior="empirical").fit(X, y)
    assert best.log_evidence_ > bg.GaussianNB().fit(X, y).log_evidence_
    hyper = {"kappa0": "kappa", "nu0": "nu", "sigma2_0": "sigma2"}
    found = {name: getattr(best.prior_.family, own) for name, own in hyper.items()}
    for name, value in found.items():
        for factor in (0.8, 1.25):
            near = bg.GaussianNB(**(found | {name: factor * value})).fit(X, y)
            assert near.log_evidence_ < best.log_evidence_


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0] * 59 + [-1.0], "[Nn]egative"),
        ([1.0] * 59, r"\(59,\)"),
        ([1.0] * 59 + [NAN], "NaN"),
        ([0.0] * 60, "at least one non-zero"),
    ],
)
def test_bad_weights_are_refused(weight, message):
    X, _, y = sample(CASES["GaussianNB"])
    with pytest.raises(ValueError, match=message):
        bg.GaussianNB().fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("case", FIXED.values(), ids=FIXED)
def test_log_evidence_is_the_product_of_one_step_predictives(case):
    X, _, y = sample(case, n=30)
    clf = case.make().partial_fit(take(X, [0, 1, 2]), y[:3], classes=LABELS)
    total = clf.log_evidence_
    for i in range(3, 30):
        row = take(X, [i])
        total += clf.predict_joint_log_proba(row)[0, clf.classes_ == y[i]].item()
        clf.partial_fit(row, y[i : i + 1])
    assert clf.log_evidence_ == pytest.approx(total, rel=1e-10)


def test_merge_refuses_what_does_not_belong_together():
    X, _, y = sample(CASES["LinearDiscriminant"])
    clf = bg.LinearDiscriminant().fit(X, y)
    with pytest.raises(TypeError, match="QuadraticDiscriminant into LinearDiscriminant"):
        clf.merge(bg.QuadraticDiscriminant().fit(X, y))
    with pytest.raises(ValueError, match="differ in covariance: 'full' and 'diagonal'"):
        clf.merge(bg.LinearDiscriminant(covariance="diagonal").fit(X, y))
    with pytest.raises(ValueError, match="differ in nu0"):
        clf.merge(bg.LinearDiscriminant(nu0=9.0).fit(X, y))
    with pytest.raises(ValueError, match="n_features_in_: 3 and 2"):
        clf.merge(bg.LinearDiscriminant().fit(X[:, :2], y))
    with pytest.raises(TypeError, match="labels of one type"):
        clf.merge(bg.LinearDiscriminant().fit(X, np.arange(len(y)) % 3))
    named = bg.LinearDiscriminant().fit(pd.DataFrame(X, columns=list("abc")), y)
    with pytest.raises(ValueError, match="feature_names_in_"):
        named.merge(bg.LinearDiscriminant().fit(pd.DataFrame(X, columns=list("abd")), y))
    with pytest.raises(ValueError, match=r"binarize: 0\.0 and 0\.5"):
        bg.BernoulliNB().fit(X, y).merge(bg.BernoulliNB(binarize=0.5).fit(X, y))
    with pytest.raises(ValueError, match="differ in family"):
        bg.GenerativeClassifier(NormalInverseGamma()).fit(X, y).merge(
            bg.GenerativeClassifier(NormalInverseGamma(variance="tied")).fit(X, y)
        )
    assert_same(clf, bg.LinearDiscriminant().fit(X, y), X)  # and nothing of it stayed


def test_equal_arguments_may_be_different_objects():
    X, _, y = sample(CASES["LinearDiscriminant"])
    make = [
        lambda: bg.LinearDiscriminant(mu0=np.zeros(3), psi0=[1, 1, 1]),
        lambda: bg.GenerativeClassifier(NormalInverseGamma(mu=np.zeros(3))),
        lambda: bg.MixedNB({"gaussian": [0, 1, 2]}),
    ]
    for case in make:
        assert_same(case().fit(X[:9], y[:9]).merge(case().fit(X[9:], y[9:])), case().fit(X, y), X)


@pytest.mark.parametrize("name", ["CategoricalNB", "MultinomialNB", "QuadraticDiscriminant full"])
def test_a_call_that_fails_changes_nothing(name):
    case = CASES[name]
    clf, X, y = fitted(case)
    bad = pd.DataFrame(X).map(lambda v: v if isinstance(v, str) else NAN).to_numpy()
    before = defined(clf, X), clf.log_evidence_, clf.n_rows_seen_, clf.classes_
    if name == "CategoricalNB":
        bad[:, 0] = [1j] * len(bad)
    for call in (clf.fit, clf.partial_fit):
        with pytest.raises((TypeError, ValueError)):
            call(bad, np.full(len(y), "yew"))
        after = defined(clf, X), clf.log_evidence_, clf.n_rows_seen_, clf.classes_
        np.testing.assert_equal(after, before)


# --------------------------------------------------------------------------------- posterior_


@every_case
def test_posterior_is_a_tree_that_arviz_takes(case):
    clf, X, y = fitted(case)
    tree = clf.posterior_
    assert isinstance(tree, xr.DataTree)
    assert set(tree.children) == {"posterior", "fit", "constant_data", "observed_data"}
    assert tree.attrs["route"] == "closed form"
    assert tree.attrs["estimator"] == type(clf).__name__
    assert "stats_class" in tree["observed_data"]
    draws = tree["posterior"].to_dataset()
    assert draws.sizes["chain"] == 4
    assert draws.sizes["draw"] == 500
    assert draws["pi"].dims == ("chain", "draw", "class")
    np.testing.assert_allclose(draws["pi"].sum("class"), 1)
    assert draws["class"].values.tolist() == LABELS.tolist()
    order = ["chain", "draw", "class", "context", "feature", "feature_bis", "category", "token"]
    order.append("feature_category")
    for variable in draws.data_vars.values():
        dims = [d.split("_", 1)[-1] if d.startswith(tuple(KINDS)) else d for d in variable.dims]
        assert dims == sorted(dims, key=[*order, "axis", "axis_pair"].index)
        assert dims[:2] == ["chain", "draw"]
        assert np.isfinite(variable).all()
    fit = tree["fit"].to_dataset()
    np.testing.assert_array_equal(fit["stats_class"], np.bincount(np.searchsorted(LABELS, y)))
    summary = az.summary(tree, var_names=["pi"])
    assert len(summary) == 3
    assert summary.index.tolist() == [f"pi[{label}]" for label in LABELS]
    assert clf.posterior_ is tree  # made once
    clf.partial_fit(X, y)
    assert clf.posterior_ is not tree  # and made anew


@every_case
def test_draws_of_the_class_weights_and_parameters_have_the_posterior_means(case):
    clf, _, y = fitted(case)
    mean = clf.model_.family.mean()
    alpha = np.broadcast_to(clf.class_alpha, 3) + np.unique(y, return_counts=True)[1]
    mean["pi"] = alpha / alpha.sum()
    draws = clf.draw_posterior(draws=1000, chains=2, random_state=3)["posterior"]
    for name, exact in mean.items():
        values = draws[name].values.reshape(2000, -1)
        mcse = values.std(axis=0) / np.sqrt(2000)  # the draws are independent
        if draws[name].dims[-1].endswith("feature_category"):  # without padding, which is 0
            exact = exact[exact > 0]
        z = (values.mean(axis=0) - np.ravel(exact)) / np.where(mcse > 0, mcse, 1)
        assert np.abs(z).max() < 5, name


def test_draws_are_reproducible_and_as_many_as_asked():
    clf, _, _ = fitted(CASES["GaussianNB"])
    a, b, c = (clf.draw_posterior(7, 3, seed)["posterior"].to_dataset() for seed in (1, 1, 2))
    assert (a.sizes["chain"], a.sizes["draw"]) == (3, 7)
    xr.testing.assert_identical(a, b)
    assert not a.equals(c)
    assert clf.draw_posterior(random_state=np.random.default_rng(0)).attrs.get("seed") is None
    assert clf.draw_posterior(random_state=5).attrs["seed"] == 5


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_names_of_features_and_classes_reach_the_coordinates(frame):
    names = ["bill", "flipper", "mass"]
    X, _, y = sample(CASES["LinearDiscriminant"])
    named = frame(dict(zip(names, X.T, strict=True)))
    for face in (bg.GaussianNB, bg.LinearDiscriminant, bg.GenerativeClassifier, bg.MixedNB):
        clf = face().fit(named, y)
        draws = clf.posterior_["posterior"]
        dim = "gaussian_feature" if face is bg.MixedNB else "feature"
        assert draws.coords[dim].values.tolist() == names
        assert draws.coords["class"].values.tolist() == LABELS.tolist()
        plain = face().fit(X, y)
        np.testing.assert_array_equal(clf.predict_proba(named), plain.predict_proba(X))
        dims = plain.posterior_["posterior"].coords[dim].values.tolist()
        assert dims == ["x0", "x1", "x2"]
    assert draws.coords["class"].dtype.kind in "UTO"
    assert bg.LinearDiscriminant().fit(named, y).feature_names_in_.tolist() == names


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_names_of_columns_of_several_kinds_reach_the_coordinates(frame):
    X, _, y = sample(CASES["MixedNB"])
    clf = bg.MixedNB(KINDS).fit(X if frame is pd.DataFrame else pl.from_pandas(X), y)
    coords = clf.posterior_["posterior"].coords
    for kind, names in KINDS.items():
        if kind == "categorical":
            own = coords["categorical_feature_category"].attrs["feature"]
            assert list(dict.fromkeys(own)) == names
        else:
            assert coords[f"{kind}_feature"].values.tolist() == names
    one = bg.CategoricalNB().fit(frame({"colour": ["red", "blue"]}), ["a", "b"])
    posterior = one.posterior_["posterior"]
    assert posterior.coords["feature"].values.tolist() == ["colour"]
    assert posterior.coords["category"].values.tolist() == ["blue", "red"]


def test_columns_in_another_order_are_refused_as_by_scikit_learn():
    X, _, y = sample(CASES["MixedNB"])
    for clf, frame in (
        (bg.MixedNB(KINDS), X),
        (bg.CategoricalNB(), X[["colour", "size"]]),
        (bg.PoissonNB(), X[["eggs", "wild"]].astype(float)),
    ):
        clf.fit(frame, y)
        with pytest.raises(ValueError, match="same order"):
            clf.predict(frame[frame.columns[::-1]])


# ----------------------------------------------------------------------------------- simulate


@every_case
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


def test_simulated_rows_follow_the_predictive():
    clf, _, y = fitted(CASES["GaussianNB class"])
    n = 20_000
    X, labels = clf.simulate(n, random_state=0)
    weights = (1 + np.unique(y, return_counts=True)[1]) / (3 + len(y))
    share = np.array([np.mean(labels == label) for label in LABELS])
    assert np.abs((share - weights) / np.sqrt(weights * (1 - weights) / n)).max() < 4
    posterior = clf.model_.family  # a Student t in each column
    for c, label in enumerate(LABELS):
        rows = X[labels == label]
        for j in range(3):
            scale = np.sqrt(posterior.sigma2[c, j] * (1 + 1 / posterior.kappa[c, j]))
            loc = posterior.mu[c, j] + posterior.shift[j]
            test = stats.kstest(rows[:, j], stats.t(posterior.nu[c, j], loc, scale).cdf)
            assert test.pvalue > 1e-4


def test_simulate_refuses_what_it_cannot_do():
    clf, _, _ = fitted(CASES["GaussianNB"])
    with pytest.raises(ValueError, match="'elm' is not a class"):
        clf.simulate(3, "elm")
    with pytest.raises(ValueError, match="'predictive' or 'draw'"):
        clf.simulate(3, source="prior")
    with pytest.raises(ValueError, match="n must be >= 0"):
        clf.simulate(-1)


# -------------------------------------------------------------------------------- linear_form

LINEAR = [
    ("BernoulliNB", METHODS),
    ("MultinomialNB", PLUG_INS),
    ("PoissonNB rate", PLUG_INS),
    ("GaussianNB tied", PLUG_INS),
    ("GaussianNB spherical", PLUG_INS),
    ("LinearDiscriminant", PLUG_INS),
    ("LinearDiscriminant full", PLUG_INS),
    ("LinearDiscriminant diagonal", PLUG_INS),
    ("LinearDiscriminant spherical", PLUG_INS),
    ("GenerativeClassifier", PLUG_INS),
]


@pytest.mark.parametrize("name", [name for name, _ in LINEAR])
def test_linear_form_is_the_decision_function(name):
    case, methods = CASES[name], dict(LINEAR)[name]
    X, codes, y = sample(case)
    complete = np.flatnonzero(~np.isnan(X).any(axis=1))
    for rows in (complete, complete[codes[complete] < 2]):
        clf = case.make().fit(X[rows], y[rows])
        for method in methods:
            w, w0 = clf.linear_form(method)
            if method == "mle" and not np.isfinite(w).all():  # a bit that a class never varies
                continue
            joint = clf.predict_joint_log_proba(X[rows], method=method)
            if len(clf.classes_) == 2:
                assert w.shape == (X.shape[1],)
                assert isinstance(w0, float)
                d = clf.decision_function(X[rows], method=method)
                np.testing.assert_allclose(X[rows] @ w + w0, d, rtol=1e-8, atol=1e-8)
            else:
                assert w.shape == (3, X.shape[1])
                rest = joint - (X[rows] @ w.T + w0)  # a constant of the row
                np.testing.assert_allclose(rest, rest[:, :1] * np.ones(3), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "method", "reason"),
    [
        ("MultinomialNB", "posterior_predictive", "Dirichlet-multinomial"),
        ("PoissonNB", "posterior_predictive", "negative binomial"),
        ("GaussianNB", "posterior_predictive", "Student t"),
        ("GaussianNB", "map", "own variances and the rule is quadratic"),
        ("GaussianNB tied", "posterior_predictive", "Student t"),
        ("LinearDiscriminant", "posterior_predictive", "curved unless"),
        ("QuadraticDiscriminant", "mle", "LinearDiscriminant is linear"),
        ("CategoricalNB", "posterior_mean", "indicator for each category"),
        ("MixedNB", "map", "quadratic|indicator"),
        ("MarkovNB 2", "posterior_mean", "not linear"),
    ],
)
def test_rules_that_are_not_linear_say_why(name, method, reason):
    clf, _, _ = fitted(CASES[name])
    with pytest.raises(NotLinearError, match=reason):
        clf.linear_form(method)


def test_mixed_bits_and_tied_normals_are_linear():
    X, _, y = sample(CASES["MixedNB"])
    X = X[["wild", "length"]].dropna()
    clf = bg.MixedNB(variance="tied").fit(X, y[X.index])
    w, w0 = clf.linear_form("map")
    rest = clf.predict_joint_log_proba(X, "map") - (X.to_numpy(dtype=float) @ w.T + w0)
    np.testing.assert_allclose(rest, rest[:, :1] * np.ones(3), rtol=1e-8)


# --------------------------------------------------------------------- classes and their labels


@degenerate
@every_case
def test_one_class_is_certain(case):
    X, codes, y = sample(case)
    rows = np.flatnonzero(codes == 1)
    clf = case.make().fit(take(X, rows), y[rows])
    np.testing.assert_array_equal(clf.predict_proba(X), np.ones((60, 1)))
    assert set(clf.predict(X)) == {"birch"}
    assert np.isfinite(clf.log_evidence_)


@every_case
def test_a_class_without_rows_keeps_its_prior(case):
    X, codes, y = sample(case)
    rows = np.flatnonzero(codes < 2)
    clf = case.make().partial_fit(take(X, rows), y[rows], classes=LABELS)
    assert clf.classes_.tolist() == LABELS.tolist()
    joint = clf.predict_joint_log_proba(X)
    assert np.isfinite(joint).all()
    alpha = np.broadcast_to(clf.class_alpha, 3)
    weight = alpha + np.bincount(codes[rows], minlength=3)
    np.testing.assert_allclose(clf.model_.alpha, weight)
    # its density is the same whatever the other classes' rows say, if the prior does not look
    with pytest.raises(UndefinedEstimateError, match="'cedar'"):
        clf.predict(X, method="mle")
    pooled = getattr(clf, "variance", "") in ("tied", "spherical")
    if case.fixed and not pooled and not isinstance(clf, bg.LinearDiscriminant):
        # its density is the same, whatever rows the other classes have
        few = case.make().partial_fit(take(X, rows[:9]), y[rows[:9]], classes=LABELS)
        mine, theirs = (m.predict_joint_log_proba(X)[:, 2] for m in (clf, few))
        total = alpha.sum() + np.array([len(rows), 9])
        np.testing.assert_allclose(mine + np.log(total[0]), theirs + np.log(total[1]), rtol=1e-9)


LABEL_TYPES = {
    "str": ["p", "q", "r"],
    "object": np.array(["p", "q", "r"], dtype=object),
    "int": [-3, 0, 12],
    "int8": np.array([1, 2, 3], dtype=np.int8),
    "float": [0.0, 1.0, 2.0],
    "numpy str": np.array(["p", "qq", "rrr"]),
}


@pytest.mark.parametrize("labels", LABEL_TYPES.values(), ids=LABEL_TYPES)
def test_labels_of_any_type(labels):
    X, codes, _ = sample(CASES["GaussianNB"])
    y = np.asarray(labels)[codes]
    reference = bg.GaussianNB().fit(X, codes).predict_proba(X)
    for given in (y, y.tolist(), pd.Series(y), pl.Series(y.tolist()), pd.Categorical(y)):
        clf = bg.GaussianNB().fit(X, given)
        assert clf.classes_.tolist() == sorted(np.asarray(labels).tolist())
        np.testing.assert_array_equal(clf.predict_proba(X), reference)
        assert set(clf.predict(X).tolist()) <= set(np.asarray(labels).tolist())
        assert clf.score(X, given) > 0.7


def test_boolean_and_date_labels():
    X, codes, _ = sample(CASES["GaussianNB"])
    clf = bg.GaussianNB().fit(X, codes == 1)
    assert clf.classes_.dtype == bool
    assert clf.predict(X).dtype == bool
    p = clf.predict_proba(X, class_prior={True: 0.25, False: 0.75})
    np.testing.assert_array_equal(p, clf.predict_proba(X, class_prior=[0.75, 0.25]))
    days = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="datetime64[D]")
    assert bg.GaussianNB().fit(X, days[codes]).predict(X).dtype.kind == "M"
    nullable = pd.Series(codes, dtype="Int64")
    assert bg.GaussianNB().fit(X, nullable).classes_.tolist() == [0, 1, 2]


def test_pandas_categories_that_do_not_occur_are_no_classes():
    X, codes, _ = sample(CASES["GaussianNB"])
    y = pd.Categorical(LABELS[codes], categories=["yew", *LABELS[::-1]])
    assert bg.GaussianNB().fit(X, y).classes_.tolist() == LABELS.tolist()


@pytest.mark.parametrize(
    "y",
    [
        [NAN, 1.0, 0.0],
        np.array([0.0, NAN, 1.0]),
        ["a", None, "b"],
        np.array(["a", None, "b"], dtype=object),
        pd.Series(["a", "b", None]),
        pd.Series(["a", "b", pd.NA], dtype="string"),
        pd.Series([0, 1, None], dtype="Int64"),
        pd.Series([True, False, None], dtype="boolean"),
        pd.Categorical(["a", "b", None]),
        pl.Series(["a", "b", None]),
        np.array(["2020-01-01", "NaT", "2021-01-01"], dtype="datetime64[D]"),
    ],
    ids=str,
)
def test_rows_without_a_label_are_refused(y):
    with pytest.raises(ValueError, match="no label in 1 row"):
        bg.GaussianNB().fit([[0.0], [1.0], [2.0]], y)


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        ([1, "a", 2], TypeError, "of one type, got 1 in row 0 and 'a' in row 1"),
        (np.array([1, "a", 2.5], dtype=object), ValueError, "[Uu]nknown label type"),
        ([0.0, np.inf, 1.0], ValueError, "infinite label in row 1"),
        ([0.1, 0.2, 0.35], ValueError, "[Uu]nknown label type"),
        ([0, 1], ValueError, "inconsistent numbers of samples"),
        (None, ValueError, "requires y"),
        ([[0, 1], [1, 0], [1, 1]], ValueError, "1d array"),
    ],
    ids=str,
)
def test_bad_labels_are_refused(y, error, message):
    with pytest.raises(error, match=message):
        bg.GaussianNB().fit([[0.0], [1.0], [2.0]], y)


def test_labels_of_two_types_do_not_become_strings():
    X, codes, y = sample(CASES["GaussianNB"])
    clf = bg.GaussianNB().fit(X, codes)
    with pytest.raises(TypeError, match="labels of one type"):
        clf.partial_fit(X, y)
    with pytest.raises(TypeError, match="labels of one type"):
        bg.GaussianNB().partial_fit(X, codes, classes=["0", "1", "2"])
    assert clf.classes_.tolist() == [0, 1, 2]
    assert bg.GaussianNB().fit(X, codes > 0).partial_fit(X, codes).classes_.tolist() == [0, 1, 2]


def test_declared_classes_must_hold_the_labels():
    X, _, y = sample(CASES["GaussianNB"])
    with pytest.raises(ValueError, match=r"not in classes: \['cedar'\]"):
        bg.GaussianNB().partial_fit(X, y, classes=["ash", "birch"])


# ------------------------------------------------------- every number by SciPy's own densities
#
# Each oracle returns {method: (N, C)} log densities of new rows given the class, from the training
# rows, codes and hyper-parameters alone: MATH.md section A, densities by scipy.stats.


def by_class(X, codes, density):
    """Stack ``density(rows of class c, c)`` -> {method: (N,)} over the classes."""
    columns = [density(X[codes == c], c) for c in range(3)]
    return {m: np.stack([column[m] for column in columns], axis=1) for m in METHODS}


def log_class_weights(codes, alpha=1.0):
    n = np.bincount(codes, minlength=3)
    a = n + alpha
    weights = {"mle": n, "map": a - 1, "posterior_mean": a, "posterior_predictive": a}
    return {method: np.log(w / w.sum()) for method, w in weights.items()}


def bernoulli(X, codes, new, a0, b0):
    def density(rows, c):
        ones, zeros = (rows == 1).sum(axis=0), (rows == 0).sum(axis=0)
        a, b = a0 + ones, b0 + zeros
        p = {
            "mle": ones / (ones + zeros),
            "map": (a - 1) / (a + b - 2),
            "posterior_mean": a / (a + b),
        }
        out = {m: np.nansum(stats.bernoulli.logpmf(new, p[m]), axis=1) for m in PLUG_INS}
        out["posterior_predictive"] = np.nansum(stats.betabinom.logpmf(new, 1, a, b), axis=1)
        return out

    return by_class(X, codes, density)


def categorical(X, codes, new, levels, alpha):
    def density(rows, c):
        out = dict.fromkeys(METHODS, 0.0)
        for j, values in enumerate(levels):
            n = np.array([np.sum(rows[:, j] == v) for v in values])
            a = alpha + n
            p = {"mle": n / n.sum(), "map": (a - 1) / (a - 1).sum(), "posterior_mean": a / a.sum()}
            p["posterior_predictive"] = p["posterior_mean"]
            cells = np.array([[v == cell for v in values] for cell in new[:, j]])
            seen = cells.any(axis=1)  # the others are missing
            for method in METHODS:
                mass = stats.multinomial.logpmf(cells[seen], 1, p[method])
                out[method] = out[method] + np.bincount(np.flatnonzero(seen), mass, len(new))
        return out

    return by_class(X, codes, density)


def multinomial(X, codes, new, alpha):
    def density(rows, c):
        n = rows.sum(axis=0)
        a, length = alpha + n, new.sum(axis=1).astype(int)
        p = {"mle": n / n.sum(), "map": (a - 1) / (a - 1).sum(), "posterior_mean": a / a.sum()}
        out = {m: stats.multinomial.logpmf(new, length, p[m]) for m in PLUG_INS}
        whole = new.astype(int)
        out["posterior_predictive"] = stats.dirichlet_multinomial.logpmf(whole, a, length)
        return out

    return by_class(X, codes, density)


def poisson(X, codes, new, shape, rate):
    def density(rows, c):
        n, total = np.sum(~np.isnan(rows), axis=0), np.nansum(rows, axis=0)
        a, b = shape + total, rate + n
        at = {"mle": total / n, "map": (a - 1) / b, "posterior_mean": a / b}
        out = {m: np.nansum(stats.poisson.logpmf(new, at[m]), axis=1) for m in PLUG_INS}
        out["posterior_predictive"] = np.nansum(stats.nbinom.logpmf(new, a, b / (b + 1)), axis=1)
        return out

    return by_class(X, codes, density)


def normal_inverse_gamma(X, codes, new, m0, k0, nu0, s2, variance):
    D = X.shape[1]
    n, mean, scatter = np.zeros((3, D)), np.zeros((3, D)), np.zeros((3, D))
    for c in range(3):
        rows = X[codes == c]
        n[c], mean[c] = np.sum(~np.isnan(rows), axis=0), np.nanmean(rows, axis=0)
        scatter[c] = np.nansum((rows - mean[c]) ** 2, axis=0)
    k = k0 + n
    m = (k0 * m0 + n * mean) / k
    ss = scatter + k0 * n / k * (mean - m0) ** 2
    axes = {"class": (), "tied": (0,), "class_spherical": (1,), "spherical": (0, 1)}[variance]

    def grouped(cells):
        return cells.sum(axis=axes, keepdims=True) if axes else cells

    nu = nu0 + grouped(n)
    SS = nu0 * s2 + grouped(ss)
    J = grouped(np.ones((3, D)))
    sigma2 = {
        "mle": grouped(scatter) / grouped(n),
        "map": SS / (nu + 2 + J),
        "posterior_mean": SS / (nu - 2),
    }
    nu, scale = np.broadcast_to(nu, (3, D)), np.broadcast_to(SS / nu, (3, D)) * (1 + 1 / k)
    out = {}
    for method in PLUG_INS:
        at, sd = (mean if method == "mle" else m), np.sqrt(np.broadcast_to(sigma2[method], (3, D)))
        columns = [np.nansum(stats.norm.logpdf(new, at[c], sd[c]), axis=1) for c in range(3)]
        out[method] = np.stack(columns, axis=1)
    if "spherical" not in variance:
        columns = [stats.t.logpdf(new, nu[c], m[c], np.sqrt(scale[c])) for c in range(3)]
        out["posterior_predictive"] = np.stack([np.nansum(t, axis=1) for t in columns], axis=1)
        return out
    predictive = np.zeros((len(new), 3))  # one multivariate t over the observed cells
    for i, row in enumerate(new):
        o = ~np.isnan(row)
        for c in range(3):
            t = stats.multivariate_t(m[c, o], np.diag(scale[c, o]), nu[c, 0])
            predictive[i, c] = t.logpdf(row[o])
    return out | {"posterior_predictive": predictive}


def normal_inverse_wishart(X, codes, new, m0, k0, nu0, psi0, shared):
    D = X.shape[1]
    n = np.bincount(codes, minlength=3)
    mean = np.stack([X[codes == c].mean(axis=0) for c in range(3)])
    scatter = np.stack([(n[c] - 1) * np.cov(X[codes == c].T) for c in range(3)])
    k = k0 + n
    m = (k0 * m0 + n[:, None] * mean) / k[:, None]
    step = (k0 * n / k)[:, None, None] * np.einsum("ci,cj->cij", mean - m0, mean - m0)
    rows, means = n[:, None, None], 1
    if shared:
        scatter, step, rows, means = (*(v.sum(axis=0) for v in (scatter, step, rows)), 3)
    nu, psi = nu0 + rows, psi0 + scatter + step
    sigma = {
        "mle": scatter / rows,
        "map": psi / (nu + D + 1 + means),
        "posterior_mean": psi / (nu - D - 1),
    }
    nu = np.broadcast_to(np.ravel(nu), 3)
    psi = np.broadcast_to(psi, (3, D, D))
    out = {method: np.zeros((len(new), 3)) for method in METHODS}
    for i, row in enumerate(new):
        o = ~np.isnan(row)  # the others are integrated out
        for c in range(3):
            for method in PLUG_INS:
                at = (mean if method == "mle" else m)[c, o]
                cov = np.broadcast_to(sigma[method], (3, D, D))[c][np.ix_(o, o)]
                out[method][i, c] = stats.multivariate_normal.logpdf(row[o], at, cov)
            df = nu[c] - D + 1
            shape = psi[c][np.ix_(o, o)] * (1 + 1 / k[c]) / df
            out["posterior_predictive"][i, c] = stats.multivariate_t.logpdf(
                row[o], m[c, o], shape, df
            )
    return out


def markov(documents, codes, new, order, alphabet, alpha):
    """Token by token in a dictionary of counts; the predictive as the urn that it is."""

    def grams(document):
        padded = ["^"] * (order - 1) + list(document)
        return [
            (tuple(padded[i : i + order - 1]), padded[i + order - 1]) for i in range(len(document))
        ]

    out = {m: np.zeros((len(new), 3)) for m in ("posterior_mean", "posterior_predictive")}
    for c in range(3):
        n = {}
        for document in np.array(documents, dtype=object)[codes == c]:
            for gram in grams(document):
                n[gram] = n.get(gram, 0) + 1
        for i, document in enumerate(new):
            for method, learns in (("posterior_mean", False), ("posterior_predictive", True)):
                urn = dict(n)
                for context, token in grams(document):
                    total = sum(urn.get((context, t), 0) + alpha for t in alphabet)
                    mass = (urn.get((context, token), 0) + alpha) / total
                    out[method][i, c] += np.log(mass)
                    if learns:
                        urn[context, token] = urn.get((context, token), 0) + 1
    return out


def check_against(clf, new, densities, codes, class_alpha=1.0, tol=1e-9):
    """All methods of a fitted face against an oracle."""
    weights = log_class_weights(codes, class_alpha)
    for method, log_x in densities.items():
        joint = clf.predict_joint_log_proba(new, method=method)
        np.testing.assert_allclose(joint, log_x + weights[method], rtol=tol, err_msg=method)
        p = softmax(log_x + weights[method], axis=1)
        np.testing.assert_allclose(clf.predict_proba(new, method=method), p, rtol=1e-7)


def split(case, n_new=15):
    """A fitted face, its training rows and codes, and new rows of the same kind."""
    X, codes, y = sample(case)
    new, _, _ = sample(case, n=n_new, seed=8)
    return case.make().fit(X, y), X, codes, new


def test_bernoulli_by_scipy():
    clf, X, codes, new = split(CASES["BernoulliNB"])
    check_against(clf, new, bernoulli(X, codes, new, 1.5, np.array([2.0, 1, 1, 3])), codes)
    table = np.array([[1.5, 2], [2, 3], [4, 5]])[:, [0, 1, 1, 0]]  # a pseudo-count for each cell
    clf = bg.BernoulliNB(table, 2.5, class_alpha=[2.0, 3.0, 4.0]).fit(X, LABELS[codes])
    log_x = np.zeros((len(new), 3))
    for c in range(3):
        log_x[:, c] = bernoulli(X, codes, new, table[c], 2.5)["map"][:, c]
    expected = log_x + log_class_weights(codes, np.array([2.0, 3, 4]))["map"]
    np.testing.assert_allclose(clf.predict_joint_log_proba(new, "map"), expected, rtol=1e-10)


def test_sparse_bits_are_dense_bits():
    X, _, y = sample(CASES["BernoulliNB"])
    X = np.nan_to_num(X)
    for face in (bg.BernoulliNB, bg.MultinomialNB, bg.PoissonNB, bg.CategoricalNB):
        dense = face().fit(X, y)
        for form in (sparse.csr_matrix, sparse.csc_matrix, sparse.coo_array, sparse.csr_array):
            clf = face().fit(form(X), y)
            np.testing.assert_allclose(
                clf.predict_joint_log_proba(form(X)), dense.predict_joint_log_proba(X), rtol=1e-12
            )


def test_binarize_is_a_threshold():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    X[5, 1] = NAN
    bits_ = np.where(np.isnan(X), NAN, X > 0.3)
    ours = bg.BernoulliNB(binarize=0.3).fit(X, y).predict_joint_log_proba(X)
    expected = bg.BernoulliNB(binarize=None).fit(bits_, y).predict_joint_log_proba(bits_)
    np.testing.assert_array_equal(ours, expected)


@pytest.mark.parametrize("name", ["CategoricalNB", "CategoricalNB declared"])
def test_categorical_by_scipy(name):
    alpha = 1.0 if name == "CategoricalNB" else 1.5
    clf, X, codes, new = split(CASES[name])
    levels = [["red", "green", "blue"], ["S", "M", "L", "XL"]]
    with np.errstate(divide="ignore"):
        oracle = categorical(X, codes, new, levels, alpha)
    possible = np.isfinite(np.stack(list(oracle.values()))).any(axis=2).all(axis=0)
    oracle = {method: log_x[possible] for method, log_x in oracle.items()}
    check_against(clf, new[possible], oracle, codes)


def test_unseen_categories_as_if_declared_ignored_or_refused():
    X, codes, y = sample(CASES["CategoricalNB"])
    new = np.array([["violet", "S"], ["red", "XXL"], ["violet", "XXL"]], dtype=object)
    levels = [["red", "green", "blue"], ["S", "M", "L", "XL"]]
    wide = [[*levels[0], "violet"], [*levels[1], "XXL"]]
    clf = bg.CategoricalNB(unseen="prior").fit(X, y)
    weights = log_class_weights(codes)["posterior_predictive"]
    for i, known in ((0, [wide[0], levels[1]]), (1, [levels[0], wide[1]]), (2, wide)):
        # as if that category had been declared for that column
        expected = categorical(X, codes, new[[i]], known, 1.0)["posterior_predictive"] + weights
        np.testing.assert_allclose(clf.predict_joint_log_proba(new[[i]]), expected, rtol=1e-12)
    firm = bg.CategoricalNB(1.5, unseen="prior").fit(X, y)
    with np.errstate(divide="ignore"):
        expected = categorical(X, codes, new, wide, 1.5)
    for method, log_x in expected.items():  # row 2: new in both columns
        joint = firm.predict_joint_log_proba(new[[2]], method=method)
        np.testing.assert_allclose(joint, log_x[[2]] + log_class_weights(codes)[method], rtol=1e-12)
    with pytest.raises(ImpossibleRowError):
        firm.predict(new, method="mle")
    clf = bg.CategoricalNB(unseen="ignore").fit(X, y)
    holes_ = np.array([[None, "S"], ["red", None], [None, None]], dtype=object)
    np.testing.assert_array_equal(clf.predict_proba(new), clf.predict_proba(holes_))
    clf = bg.CategoricalNB(unseen="raise").fit(pd.DataFrame(X, columns=["colour", "size"]), y)
    with pytest.raises(ValueError, match=r"column 'size' holds 'XXL' in row 1"):
        clf.predict(pd.DataFrame(new[[1, 1]], columns=["colour", "size"]).assign(size=["S", "XXL"]))
    clf = bg.MixedNB(unseen="raise").fit(pd.DataFrame(X, columns=["colour", "size"]), y)
    with pytest.raises(ValueError, match=r"column 'colour' holds 'violet' in row 2"):
        clf.predict(
            pd.DataFrame([["red", "S"]] * 2 + [["violet", "S"]], columns=["colour", "size"])
        )


def test_multinomial_by_scipy():
    clf, X, codes, new = split(CASES["MultinomialNB"])
    check_against(clf, new, multinomial(X, codes, new, 1.5), codes, class_alpha=2.0)


def test_poisson_by_scipy():
    clf, X, codes, new = split(CASES["PoissonNB rate"])
    check_against(clf, new, poisson(X, codes, new, 2.0, 0.5), codes)
    clf, X, codes, new = split(CASES["PoissonNB"])  # by default a shape of 1 at the pooled mean
    check_against(clf, new, poisson(X, codes, new, 1.0, 1 / np.nanmean(X, axis=0)), codes)


@pytest.mark.parametrize("variance", ["class", "tied", "spherical", "class_spherical"])
def test_gaussian_by_scipy(variance):
    clf, X, codes, new = split(CASES[f"GaussianNB {variance}"])
    m0, s2 = np.array([1.0, 0.0, 4.0]), clf.sigma2_0
    check_against(clf, new, normal_inverse_gamma(X, codes, new, m0, 0.5, 4.0, s2, variance), codes)


@pytest.mark.parametrize(
    ("face", "covariance", "variance"),
    [
        (bg.LinearDiscriminant, "diagonal", "tied"),
        (bg.LinearDiscriminant, "spherical", "spherical"),
        (bg.QuadraticDiscriminant, "diagonal", "class"),
        (bg.QuadraticDiscriminant, "spherical", "class_spherical"),
    ],
)
def test_discriminants_without_correlations_by_scipy(face, covariance, variance):
    clf, X, codes, new = split(CASES[f"{face.__name__} {covariance}"])
    new = holes(np.random.default_rng(1), np.repeat(new, 2, axis=0), 0.3)
    # E Sigma^-1 = nu0/psi0: a scaled-inverse-chi2(nu0, psi0/nu0)
    oracle = normal_inverse_gamma(X, codes, new, 1.0, 0.5, 4.0, 2.0 / 4.0, variance)
    check_against(clf, new, oracle, codes)


@pytest.mark.parametrize("face", [bg.LinearDiscriminant, bg.QuadraticDiscriminant])
def test_discriminants_by_scipy(face):
    clf, X, codes, new = split(CASES[f"{face.__name__} full"])
    new = np.vstack([new, holes(np.random.default_rng(1), np.repeat(new, 2, axis=0), 0.4)])
    new = new[~np.isnan(new).all(axis=1)]
    assert np.isnan(new).any()
    shared = face is bg.LinearDiscriminant
    m0 = np.array(FULL["mu0"])
    check_against(
        clf, new, normal_inverse_wishart(X, codes, new, m0, 0.5, 6.0, PSI, shared), codes, tol=1e-8
    )


def test_mixed_columns_are_the_sum_of_their_kinds():
    X, codes, y = sample(CASES["MixedNB"])
    new, _, _ = sample(CASES["MixedNB"], n=15, seed=8)
    hyper = {"mu0": 1.0, "kappa0": 0.5, "nu0": 4.0, "sigma2_0": 1.5}
    clf = bg.MixedNB(KINDS, alpha=1.5, beta=2.0, shape=2.0, rate=0.5, **hyper).fit(X, y)

    def part(kind, dtype=float):
        return X[KINDS[kind]].to_numpy(dtype), new[KINDS[kind]].to_numpy(dtype)

    def oracle(function, kind, *arguments, dtype=float):
        rows, others = part(kind, dtype)
        return function(rows, codes, others, *arguments)

    levels = [["red", "green", "blue"], ["S", "M", "L", "XL"]]
    with np.errstate(divide="ignore"):
        parts = [
            oracle(bernoulli, "bernoulli", 1.5, 2.0),
            oracle(categorical, "categorical", levels, 1.5, dtype=object),
            oracle(poisson, "poisson", 2.0, 0.5),
            oracle(normal_inverse_gamma, "gaussian", 1.0, 0.5, 4.0, 1.5, "class"),
        ]
    total = {method: sum(part[method] for part in parts) for method in METHODS}
    check_against(clf, new, {m: v for m, v in total.items() if np.isfinite(v).all()}, codes)
    assert np.isfinite(total["posterior_predictive"]).all()
    possible = np.isfinite(total["mle"]).any(axis=1)
    joint = clf.predict_joint_log_proba(new[possible], method="mle")
    expected = total["mle"][possible] + log_class_weights(codes)["mle"]
    np.testing.assert_allclose(joint, expected, rtol=1e-9)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_language_models_token_by_token(order):
    X, codes, y = sample(CASES["MarkovNB 1"])
    new, _, _ = sample(CASES["MarkovNB 1"], n=15, seed=8)
    clf = bg.MarkovNB(order, 1.5).fit(X, y)
    assert set(clf.vocabulary_.tokens) == set("abc ")
    check_against(clf, new, markov(X, codes, new, order, "abc ", 1.5), codes)


def test_perplexity_is_the_geometric_mean_of_surprise():
    X, codes, y = sample(CASES["MarkovNB 1"])
    clf = bg.MarkovNB(2, 1.5).fit(X, y)
    new = ["ab", "cab c", "a"]
    log_p = markov(X, codes, new, 2, "abc ", 1.5)["posterior_predictive"]
    expected = np.exp(-log_p[:, 1] / [2, 5, 1])
    np.testing.assert_allclose(clf.perplexity(new, "birch"), expected, rtol=1e-10)
    mixture = logsumexp(log_p + log_class_weights(codes)["posterior_predictive"], axis=1)
    np.testing.assert_allclose(clf.perplexity(new), np.exp(-mixture / [2, 5, 1]), rtol=1e-10)


# -------------------------------------------------------------------------------- missing cells


@pytest.mark.parametrize(
    "name",
    ["BernoulliNB", "PoissonNB rate", "GaussianNB class", "GaussianNB tied", "CategoricalNB"],
)
def test_a_missing_column_at_prediction_is_a_column_less(name):
    case = CASES[name]
    X, _, y = sample(case)
    clf = case.make()
    hyper = {
        k: np.asarray(v)[1:]
        for k, v in clf.get_params(deep=False).items()
        if np.ndim(v) == 1 and np.size(v) == X.shape[1]
    }
    less = case.make().set_params(**hyper).fit(X[:, 1:], y)
    gone = X.copy()
    gone[:, 0] = None if X.dtype == object else NAN
    clf.fit(X, y)
    for method, joint in defined(less, X[:, 1:]).items():
        got = clf.predict_joint_log_proba(gone, method=method)
        np.testing.assert_allclose(got, joint, rtol=1e-10)


@pytest.mark.parametrize("face", [bg.LinearDiscriminant, bg.QuadraticDiscriminant])
def test_a_missing_column_of_a_discriminant_is_a_margin(face):
    X, _, y = sample(CASES["LinearDiscriminant"])
    clf = face(**FULL).fit(X, y)
    margin = {"mu0": FULL["mu0"][1:], "nu0": FULL["nu0"] - 1, "psi0": PSI[1:, 1:]}
    less = face(**(FULL | margin)).fit(X[:, 1:], y)
    gone = np.column_stack([np.full(len(X), NAN), X[:, 1:]])
    np.testing.assert_allclose(
        clf.predict_joint_log_proba(gone), less.predict_joint_log_proba(X[:, 1:]), rtol=1e-10
    )
    only_some = np.vstack([X[:30], gone[30:]])  # several patterns in one table
    np.testing.assert_allclose(clf.predict_proba(only_some)[:30], clf.predict_proba(X[:30]))
    np.testing.assert_allclose(clf.predict_proba(only_some)[30:], less.predict_proba(X[30:, 1:]))


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if n.split()[0] != "MarkovNB"])
def test_a_row_without_cells_has_the_class_weights(name):
    case = CASES[name]
    clf, X, _ = fitted(case)
    empty = pd.DataFrame({n: [None] for n in X}) if isinstance(X, pd.DataFrame) else X[:1].copy()
    if name.startswith("MultinomialNB"):
        empty[:] = 0  # no words; missing counts are refused
    elif not isinstance(X, pd.DataFrame):
        empty[:] = None if X.dtype == object else NAN
    weights = clf.model_.alpha / clf.model_.alpha.sum()
    np.testing.assert_allclose(clf.predict_proba(empty), weights[None], rtol=1e-12)
    np.testing.assert_allclose(clf.score_samples(empty), 0, atol=1e-12)


# -------------------------------------------------------------------------------------- errors


def frame(X, names="bill wing mass"):
    return pd.DataFrame(X, columns=names.split()[: np.shape(X)[1]])


ERRORS = {
    "bits": (
        lambda: bg.BernoulliNB(binarize=None).fit(frame([[0, 1], [1, 0], [0, 2]]), [0, 1, 1]),
        "0 and 1 only, got 2 in row 2, column 'wing'",
    ),
    "sparse bits": (
        lambda: bg.BernoulliNB(binarize=None).fit(sparse.csr_matrix([[0, 1], [0, 3]]), [0, 1]),
        "got 3 in row 1, column 'x1'",
    ),
    "negative counts": (
        lambda: bg.PoissonNB().fit(frame([[0, 1], [4, -2]]), [0, 1]),
        "must be >= 0, got -2 in row 1, column 'wing'",
    ),
    "negative sparse counts": (
        lambda: bg.MultinomialNB().fit(sparse.csr_matrix([[0, 1], [-4, 0]]), [0, 1]),
        "got -4 in row 1, column 'x0'",
    ),
    "missing counts": (
        lambda: bg.MultinomialNB().fit(frame([[0, 1], [4, NAN]]), [0, 1]),
        "NaN: nan in row 1, column 'wing'; a document with an unknown word count",
    ),
    "missing in training": (
        lambda: bg.LinearDiscriminant().fit(frame([[0, 1], [4, NAN], [2, 2]]), [0, 1, 1]),
        "column 'wing' in row 1.*covariance='diagonal' or GaussianNB",
    ),
    "mixed table": (
        lambda: bg.MixedNB({"poisson": ["bill"], "gaussian": ["wing"]}).fit(
            frame([[1, 2.5], [-3, 1]]), [0, 1]
        ),
        "column 'bill' holds -3 in row 1.*poisson",
    ),
    "unknown column": (
        lambda: bg.MixedNB({"gaussian": ["bill", "wings"]}).fit(frame([[1, 2.5], [3, 1]]), [0, 1]),
        "wings",
    ),
    "text among numbers": (
        lambda: bg.CategoricalNB().fit(np.array([["a"], [3]], dtype=object), [0, 1]),
        "column 0 mixes text",
    ),
    "nothing but missing cells": (
        lambda: bg.CategoricalNB().fit(pd.DataFrame({"a": ["x", "y"], "b": [None, None]}), [0, 1]),
        "column 'b' holds nothing but missing cells: declare its categories",
    ),
    "alpha by shape": (
        lambda: bg.BernoulliNB(alpha=[1.0, 2, 3]).fit([[0, 1], [1, 0]], [0, 1]),
        r"alpha has shape \(3,\).*\(class, feature\) = \(2, 2\)",
    ),
    "alpha by sign": (
        lambda: bg.MultinomialNB(alpha=0).fit([[0, 1], [1, 0]], [0, 1]),
        "alpha must be > 0, got 0: the prior would be improper",
    ),
    "class_alpha": (
        lambda: bg.GaussianNB(class_alpha=[1.0, 2, 3]).fit([[0.0], [1]], [0, 1]),
        r"class_alpha has shape \(3,\)",
    ),
    "nu0": (
        lambda: bg.QuadraticDiscriminant(nu0=1.0).fit([[0.0, 1, 2], [1, 2, 5]], [0, 1]),
        "nu0 must be > D - 1 = 2",
    ),
    "psi0": (
        lambda: bg.QuadraticDiscriminant(psi0=[[1.0, 2], [2, 1]]).fit([[0.0, 1], [2, 5]], [0, 1]),
        "psi0 must be symmetric positive definite",
    ),
    "diagonal psi0": (
        lambda: bg.LinearDiscriminant(psi0=PSI, covariance="diagonal").fit(np.eye(3), [0, 1, 1]),
        "psi0 has off-diagonal elements",
    ),
    "variance": (
        lambda: bg.GaussianNB(variance="shared").fit([[0.0], [1]], [0, 1]),
        "variance must be one of 'class'.*'shared'",
    ),
    "covariance": (
        lambda: bg.LinearDiscriminant(covariance="tied").fit([[0.0], [1]], [0, 1]),
        "covariance must be 'full', 'diagonal' or 'spherical', got 'tied'",
    ),
    "prior": (
        lambda: bg.GaussianNB(prior="flat").fit([[0.0], [1]], [0, 1]),
        "prior must be 'default' or 'empirical', got 'flat'",
    ),
    "unseen": (
        lambda: bg.CategoricalNB(unseen="skip").fit([["a"], ["b"]], [0, 1]),
        "unseen must be 'prior', 'ignore' or 'raise', got 'skip'",
    ),
    "tokens": (
        lambda: bg.MarkovNB(tokens="line").fit(["a", "b"], [0, 1]),
        "tokens must be 'char', 'word' or a callable, got 'line'",
    ),
    "order": (lambda: bg.MarkovNB(order=0).fit(["a", "b"], [0, 1]), "order"),
    "missing document": (
        lambda: bg.MarkovNB().fit(["a", None], [0, 1]),
        "document 1 is missing",
    ),
}


@pytest.mark.parametrize(("call", "message"), ERRORS.values(), ids=ERRORS)
def test_errors_say_what_where_and_what_to_do(call, message):
    with pytest.raises((TypeError, ValueError), match=f"(?s){message}"):
        call()


def test_a_family_must_be_a_family():
    with pytest.raises(TypeError, match="must be an instance of a Family"):
        bg.GenerativeClassifier(family="gaussian").fit([[0.0], [1]], [0, 1])


UNDEFINED = {
    "variance of a constant column": (
        lambda: bg.GaussianNB().fit(
            frame([[1, 5], [2, 6], [3, 7], [4, 7]]), ["ash", "ash", "birch", "birch"]
        ),
        "mle",
        ("class 'birch'", "feature 'wing'"),
    ),
    "flat Beta": (
        lambda: bg.BernoulliNB().partial_fit(
            frame([[0, NAN], [1, 1]]), ["ash", "birch"], classes=["ash", "birch"]
        ),
        "map",
        ("class 'ash'", "feature 'wing'"),
    ),
    "Gamma below 1": (
        lambda: bg.PoissonNB(shape=0.5, rate=1.0).fit(frame([[3, 1], [2, 0]]), ["ash", "birch"]),
        "map",
        ("class 'birch'", "feature 'wing'", "shape >= 1"),
    ),
    "no words": (
        lambda: bg.MultinomialNB().fit(frame([[3, 1], [0, 0]]), ["ash", "birch"]),
        "mle",
        ("class 'birch'", "0/0"),
    ),
    "singular covariance": (
        lambda: bg.QuadraticDiscriminant().fit(
            frame([[0, 1], [1, 3], [3, 1], [1, 2], [2, 4]]), ["ash"] * 3 + ["birch"] * 2
        ),
        "mle",
        ("class 'birch'", "singular", "method='map'"),
    ),
    "a block of a table": (
        lambda: bg.MixedNB({"bernoulli": ["wild"], "gaussian": ["bill", "wing"]}).fit(
            pd.DataFrame({"bill": [1, 2, 3.0], "wild": [1, 0, 1], "wing": [1, 1, 2.0]}),
            ["ash", "ash", "birch"],
        ),
        "mle",
        ("feature 'wing'", "class 'ash'"),
    ),
    "variance without expectation": (
        lambda: bg.GaussianNB(nu0=0.5).partial_fit(
            frame([[1.0, 2], [2.0, 1], [3, 3]]), ["ash"] * 3, classes=["ash", "birch"]
        ),
        "posterior_mean",
        ("class 'birch'", "nu0 > 2"),
    ),
    "class weights": (
        lambda: bg.GaussianNB(class_alpha=0.5).partial_fit(
            frame([[1.0], [2.0]]), ["ash", "ash"], classes=["ash", "birch"]
        ),
        "map",
        ("class 'birch'", "class_alpha"),
    ),
}


@pytest.mark.parametrize(("make", "method", "words_"), UNDEFINED.values(), ids=UNDEFINED)
def test_an_estimate_that_does_not_exist_is_named(make, method, words_):
    clf = make()
    X = frame(np.ones((1, clf.n_features_in_)))
    if isinstance(clf, bg.MixedNB):
        X = pd.DataFrame({"bill": [1.0], "wild": [1], "wing": [1.0]})
    for call in (clf.predict, clf.predict_proba, clf.score_samples):
        with pytest.raises(UndefinedEstimateError) as error:
            call(X, method=method)
        for word in (f"method={method!r} is undefined", *words_):
            assert word in str(error.value)
    assert np.isfinite(clf.predict_joint_log_proba(X)).all()  # the predictive always exists


def test_black_swan():
    """A bit that no class has shown: impossible by maximum likelihood, unlikely by the rest."""
    X, y = [[0, 1], [0, 0], [0, 1], [0, 0]], ["a", "a", "b", "b"]
    clf = bg.BernoulliNB(alpha=2.0, beta=2.0).fit(X, y)
    new = [[0, 1], [1, 1], [0, 0], [1, 0]]
    for call in (clf.predict, clf.predict_proba, clf.predict_log_proba, clf.decision_function):
        with pytest.raises(ImpossibleRowError, match=r"2 row\(s\), the first at position 1"):
            call(new, method="mle")
    joint = clf.predict_joint_log_proba(new, method="mle")
    assert np.isneginf(joint).all(axis=1).tolist() == [False, True, False, True]
    np.testing.assert_array_equal(np.isneginf(clf.score_samples(new, "mle")), [0, 1, 0, 1])
    for method in METHODS[:3]:
        np.testing.assert_allclose(clf.predict_proba(new, method=method), 0.5)
    assert issubclass(ImpossibleRowError, ValueError)


def test_a_row_that_one_class_alone_can_produce_is_certain_by_maximum_likelihood():
    clf = bg.BernoulliNB().fit([[0], [1], [0], [0]], ["a", "a", "b", "b"])
    np.testing.assert_array_equal(clf.predict_proba([[1]], method="mle"), [[1.0, 0.0]])
    assert clf.decision_function([[1]], method="mle").tolist() == [-np.inf]
    # (1 + 1)/(2 + 2) against 1/(2 + 2)
    np.testing.assert_allclose(clf.predict_proba([[1]]), [[2 / 3, 1 / 3]])


# ------------------------------------------------------------------------------------ numerics

DYADIC = {  # cells are multiples of 1/64: an offset of 1e8 loses nothing
    **{
        f"GaussianNB {v}": (lambda v=v: bg.GaussianNB(variance=v))
        for v in ("class", "tied", "spherical", "class_spherical")
    },
    **{
        f"{face.__name__} {v}": (lambda face=face, v=v: face(covariance=v))
        for face in (bg.LinearDiscriminant, bg.QuadraticDiscriminant)
        for v in ("full", "diagonal", "spherical")
    },
    "MixedNB": bg.MixedNB,
}


def dyadic(seed=0, n=60):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    X = np.round(64 * reals(rng, codes)) / 64
    return X, LABELS[codes]


@pytest.mark.parametrize("make", DYADIC.values(), ids=DYADIC)
def test_an_offset_of_1e8_costs_no_digits(make):
    """A plug-in's theta holds the mean itself, which at 1e8 is rounded to 1e-8."""
    X, y = dyadic()
    new, _ = dyadic(1)
    offset = np.array([1e8, -1e8, 1e8])
    near = make().fit(X, y)
    far = make().fit(X + offset, y)
    parts = make()
    for rows in (slice(0, 20), slice(20, 25), slice(25, 60)):
        parts.partial_fit(X[rows] + offset, y[rows])
    merged = make().fit(X[:31] + offset, y[:31])
    merged.merge(make().fit(X[31:] + offset, y[31:]))
    for clf in (far, parts, merged):
        assert clf.log_evidence_ == pytest.approx(near.log_evidence_, rel=1e-9)
        for method in METHODS:
            np.testing.assert_allclose(
                clf.predict_joint_log_proba(new + offset, method=method),
                near.predict_joint_log_proba(new, method=method),
                rtol=1e-9 if method == "posterior_predictive" else 1e-7,
                atol=1e-9,
            )


@pytest.mark.parametrize("make", DYADIC.values(), ids=DYADIC)
def test_another_unit_is_the_same_model(make):
    X, y = dyadic()
    spherical = "spherical" in str(make())
    scale = np.full(3, 2.0**20) if spherical else 2.0 ** np.array([-30, 0, 40])
    a, b = make().fit(X, y), make().fit(X * scale, y)
    for method in METHODS:
        np.testing.assert_allclose(
            b.predict_proba(X * scale, method=method), a.predict_proba(X, method=method), rtol=1e-9
        )


@pytest.mark.parametrize("make", DYADIC.values(), ids=DYADIC)
def test_float32_is_read_as_the_float64_it_holds(make):
    X, y = dyadic()
    short = X.astype(np.float32)
    np.testing.assert_array_equal(short, X)
    a, b = make().fit(short, y), make().fit(X, y)
    for clf in (a, b):
        for rows in (short, X):
            np.testing.assert_allclose(clf.predict_proba(rows), b.predict_proba(X), rtol=1e-12)
    assert a.predict_proba(short).dtype == np.float64


def test_float32_that_has_lost_its_digits_is_said():
    X, y = dyadic()
    with pytest.warns(UserWarning, match="column 'x1' is float32 with mean 1e\\+08"):
        bg.GaussianNB().fit((X + np.array([0, 1e8, 0])).astype(np.float32), y)
    bg.GaussianNB().fit((X + 100).astype(np.float32), y)  # no warning: digits are left


@pytest.mark.parametrize("name", [n for n in DYADIC if "spherical" not in n])
@pytest.mark.parametrize("sizes", [(800, 800, 4), (20, 3, 3)])
def test_a_constant_column_leaves_the_probabilities_alone(name, sizes):
    rng = np.random.default_rng(4)
    codes = np.repeat(np.arange(3), sizes)
    X, y = reals(rng, codes), LABELS[codes]
    new = reals(rng, np.arange(30) % 3)
    make = DYADIC[name]
    alone = make().fit(X, y)
    for constant, later in ((5.0, 5.0), (0.0, 3.0), (-1e8, 0.0), (0.1, 0.1), (1e-300, 0.0)):
        wide = make().fit(np.insert(X, 1, constant, axis=1), y)
        rows = np.insert(new, 1, later, axis=1)
        for method in METHODS:
            if method == "mle":
                with pytest.raises(UndefinedEstimateError):
                    wide.predict_proba(rows, method=method)
                continue
            np.testing.assert_allclose(
                wide.predict_proba(rows, method=method),
                alone.predict_proba(new, method=method),
                rtol=1e-7,
                atol=1e-12,
            )


def test_nothing_but_constant_columns_leaves_the_class_weights():
    for name, make in DYADIC.items():
        if "spherical" not in name:  # there columns share a unit and constant ones take part
            clf = make().fit(np.full((5, 2), 3.0), [0, 0, 0, 1, 1])
            np.testing.assert_allclose(clf.predict_proba([[3.0, 4.0]]), [[4 / 7, 3 / 7]], rtol=1e-9)


mpmath.mp.dps = 50


def mp_negative_binomial(x, a, b):
    x, a, b = mpmath.mpf(x), mpmath.mpf(a), mpmath.mpf(b)
    log_choose = mpmath.loggamma(a + x) - mpmath.loggamma(a) - mpmath.loggamma(x + 1)
    return log_choose + a * mpmath.log(b / (b + 1)) - x * mpmath.log(b + 1)


def test_counts_of_1e12_poisson():
    X = np.array([[10**12, 3], [10**12 + 10**6, 5], [10**12 + 2 * 10**6, 10**9], [7, 10**9 + 5]])
    y = np.array([0, 0, 1, 1])
    clf = bg.PoissonNB(shape=2.0, rate=0.5).fit(X, y)
    new = np.array([[10**12 + 10**5, 4], [10**12 + 2 * 10**6, 10**9 + 7], [0, 0]])
    expected = np.zeros((3, 2))
    for c in range(2):
        a = [2 + int(v) for v in X[y == c].sum(axis=0)]
        for i, row in enumerate(new):
            log_p = sum(mp_negative_binomial(int(v), a[j], 2.5) for j, v in enumerate(row))
            expected[i, c] = log_p + mpmath.log(0.5)
    np.testing.assert_allclose(clf.predict_joint_log_proba(new), expected, rtol=1e-9)


def mp_dirichlet_multinomial(x, a):
    x, a = [mpmath.mpf(v) for v in x], [mpmath.mpf(v) for v in a]
    out = mpmath.loggamma(sum(x) + 1) + mpmath.loggamma(sum(a)) - mpmath.loggamma(sum(a) + sum(x))
    return out + sum(
        mpmath.loggamma(b + v) - mpmath.loggamma(b) - mpmath.loggamma(v + 1)
        for v, b in zip(x, a, strict=True)
    )


def test_counts_of_1e12_multinomial():
    X = np.array([[10**12, 3, 10**6], [10**11, 5, 10**9], [10**12, 10**12, 8]])
    y = np.array([0, 0, 1])
    clf = bg.MultinomialNB(alpha=0.5).fit(X, y)
    new = np.array([[10**12, 7, 10**8], [5, 1, 0], [10**12, 10**12, 10**3]])
    expected = np.zeros((3, 2))
    for c in range(2):
        a = [0.5 + int(v) for v in X[y == c].sum(axis=0)]
        for i, row in enumerate(new):
            log_p = mp_dirichlet_multinomial([int(v) for v in row], a)
            expected[i, c] = log_p + mpmath.log(mpmath.mpf([3, 2][c]) / 5)
    np.testing.assert_allclose(clf.predict_joint_log_proba(new), expected, rtol=1e-9)


def test_weights_of_1e12():
    weight = np.array([1e12, 3e12, 2e12, 2e12])
    clf = bg.BernoulliNB(alpha=0.5, beta=0.5).fit([[1], [0], [1], [0]], [0, 0, 1, 1], weight)
    a, b = mpmath.mpf(1e12) + 0.5, mpmath.mpf(3e12) + 0.5
    expected = mpmath.log(a / (a + b)) + mpmath.log(mpmath.mpf(4e12 + 1) / mpmath.mpf(8e12 + 2))
    assert clf.predict_joint_log_proba([[1]])[0, 0] == pytest.approx(float(expected), rel=1e-15)


def test_many_features_do_not_underflow():
    rng = np.random.default_rng(0)
    X, y = rng.random((20, 100_000)) < 0.5, np.arange(20) % 2
    clf = bg.BernoulliNB().fit(X, y)
    joint = clf.predict_joint_log_proba(X)
    assert joint.max() < -10_000
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1, rtol=1e-14)
