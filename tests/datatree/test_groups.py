"""Groups that models are criticised by: against SciPy, row by row, and by their laws."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from scipy.special import logsumexp

import bayesgen as bg
from bayesgen.datatree import groups
from bayesgen.posterior import drawn
from tests.datatree.fits import BOTH, Fit
from tests.estimators.cases import KINDS

RNG, N = np.random.default_rng(0), 12
EVERY = ("prior", "prior_predictive", "posterior_predictive", "log_likelihood", "log_prior")


FITS = ("GaussianNB", "LinearDiscriminant", "QuadraticDiscriminant", "BernoulliNB", "MultinomialNB")
FITS += ("PoissonNB", "CategoricalNB", "MixedNB", "MarkovNB 2")
BY_NAME = {name: Fit(name, N, EVERY, 500, 4) for name in FITS}
every_case = pytest.mark.parametrize("case", BY_NAME.values(), ids=FITS)
REAL, LABELS = BY_NAME["GaussianNB"].X, BY_NAME["GaussianNB"].y


# ------------------------------------------------------------------------------- log likelihood


@every_case
def test_log_likelihood_is_that_of_each_row_and_its_label(case: Fit) -> None:
    group = case.tree["log_likelihood"]
    of_label = case.log_joint[..., np.arange(N), case.codes]
    np.testing.assert_allclose(group["joint"], of_label, rtol=1e-10)
    given_x = of_label - logsumexp(case.log_joint, axis=-1)
    np.testing.assert_allclose(group["label"], given_x, rtol=1e-8, atol=1e-9)


UV = [["u"]] * 3 + [["v"]] * 3


@pytest.mark.filterwarnings("ignore::bayesgen.UnknownCategoryWarning")
@pytest.mark.parametrize(
    ("clf", "X", "new", "expected"),
    [  # p(y, x | D) of a new row of class b: four of the six rows
        (bg.CategoricalNB(unseen="prior"), UV, [["z"]], 5 / 8 * 1 / 7),
        (bg.CategoricalNB(), UV, [["z"]], 5 / 8),  # as a missing cell: no evidence
        (bg.MarkovNB(order=1), ["u"] * 3 + ["v"] * 3, ["zz"], 5 / 8),  # no evidence
        (bg.MarkovNB(order=2), ["uv"] * 3 + ["vu"] * 3, ["uu"], 5 / 8 * 2 / 6 * 1 / 3),
    ],
    ids=["category", "ignored category", "token", "context"],
)
def test_what_theta_does_not_tell_of_a_row_is_averaged_over_the_posterior(
    clf: Any, X: Any, new: Any, expected: float
) -> None:
    """A category, a token or a context that the rows of the fit do not have."""
    clf.fit(X, ["a", "a", "b", "b", "b", "b"])
    tree = clf.draw_posterior(1000, 4, X=new, y=["b"], groups=EVERY, replicate=["label"])
    p = np.exp(tree["log_likelihood"]["joint"].values.ravel())
    assert abs(p.mean() - expected) < 5 * p.std() / len(p) ** 0.5
    mean = np.exp(tree["log_likelihood"]["label"].values).mean()
    drawn = (tree["posterior_predictive"]["label"].values == 1).mean()
    assert abs(drawn - mean) < 5 * 0.5 / len(p) ** 0.5
    assert np.isfinite(tree["log_prior"]["theta"].values).all()


class Given:
    """A family whose log densities (chain, draw, N, C) are given, whatever X says."""

    discriminative = False

    def __init__(self, density: np.ndarray) -> None:
        self.density = density
        self.params = {"density": ("class",)}

    def log_likelihood(self, X: Any, theta: Any) -> np.ndarray:
        rows = X[:, 0].astype(int)
        return self.density[..., rows, :]


def of_given(density: np.ndarray, y: np.ndarray, indicators: Any = ()) -> Any:
    *lead, n, n_classes = density.shape
    theta = {"pi": np.full((*lead, n_classes), 1 / n_classes)}
    theta["density"] = np.zeros((*lead, n_classes))
    family: Any = Given(density)
    rows = np.arange(n, dtype=float)[:, None]
    return groups.log_likelihood(family, theta, rows, y, indicators)


@settings(deadline=None)
@given(
    arrays(
        np.float64,
        st.tuples(st.just(1), st.just(5), st.integers(1, 3), st.integers(1, 7)),
        elements=st.one_of(st.floats(-1e6, 1e6), st.just(-np.inf)),
    )
)
def test_labels_and_indicators_given_x_are_log_probabilities(density: np.ndarray) -> None:
    n, n_classes = density.shape[2:]
    y = np.arange(n) % n_classes
    scores = of_given(density.copy(), y, range(n_classes))
    assert not np.isnan(scores["joint"]).any()
    possible = np.isfinite(density).any(axis=-1)
    with np.errstate(invalid="ignore"):
        p = np.exp(density - logsumexp(density, axis=-1, keepdims=True))
    expected = {"label": np.take_along_axis(p, y[None, None, :, None], axis=-1)[..., 0]}
    for c in range(n_classes):
        others = np.delete(p, c, axis=-1).sum(axis=-1)
        expected[f"is_{c}"] = np.where(y == c, p[..., c], others)
    for name, value in expected.items():
        assert np.isnan(scores[name][~possible]).all()
        assert (scores[name][possible] <= 0).all()
        np.testing.assert_allclose(
            np.exp(scores[name][possible]), value[possible], rtol=1e-8, atol=1e-12
        )
    for name in ("joint", "label"):
        np.testing.assert_array_equal(of_given(density.copy(), y)[name], scores[name])


def test_a_label_that_is_nearly_certain_keeps_its_digits() -> None:
    log_odds = np.array([[-15.0, -16.0, -15.5, -17.0, -14.0]])
    density = np.stack([np.zeros_like(log_odds), log_odds], axis=-1)[:, :, None]
    scores = of_given(density, np.zeros(1, dtype=int), ("a", "b"))
    for name in ("label", "is_a", "is_b"):
        expected = -np.log1p(np.exp(log_odds))
        np.testing.assert_allclose(scores[name][..., 0], expected, rtol=1e-12)


def test_densities_that_all_draws_share_are_made_different() -> None:
    log_p = np.zeros((2, 50, 4))
    log_p[..., 1] = RNG.normal(size=(2, 50))
    log_p[..., 2] = -np.inf
    log_p[..., 3] = 3e5
    broken = groups.break_ties(log_p)
    np.testing.assert_array_equal(broken[..., 1:3], log_p[..., 1:3])
    for k in (0, 3):
        assert np.unique(broken[..., k]).size == 100
        np.testing.assert_allclose(broken[..., k], log_p[..., k], rtol=2e-12, atol=2e-10)
    assert (broken <= log_p).all()
    np.testing.assert_array_equal(groups.break_ties(log_p[:1, :1]), log_p[:1, :1])


@every_case
def test_blocks_of_rows_give_the_same(case: Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    family = case.fitted.model_.family
    few = {name: value[:, :20] for name, value in case.theta.items()}
    whole = groups.log_likelihood(family, few, case.encoded, case.codes)
    monkeypatch.setattr(drawn, "BLOCK", 3 * 4 * 20 * 5)  # five rows at a time
    blocks = [rows for rows, _ in drawn.log_densities(family, few, case.encoded, 3)]
    assert len(blocks) > 1
    parts = groups.log_likelihood(family, few, case.encoded, case.codes)
    for name in whole:
        np.testing.assert_allclose(whole[name], parts[name], rtol=1e-12, atol=1e-12)


# ----------------------------------------------------------------------------------- log prior


def test_log_prior_and_likelihood_add_up_to_the_posterior() -> None:
    """Bayes' theorem at every draw: log prior + sum of joint - log posterior = log evidence."""
    for case in BY_NAME.values():
        if case.name == "MarkovNB 2":  # the density of the prior is that of other contexts
            continue
        prior = case.tree["log_prior"]
        joint = case.tree["log_likelihood"]["joint"].sum("obs_id")
        posterior = case.fitted.model_.log_density(case.theta)
        evidence = prior["pi"] + prior["theta"] + joint - posterior
        np.testing.assert_allclose(evidence, case.fitted.log_evidence_, rtol=1e-8)


# ---------------------------------------------------------------------- replicates of the rows


def assert_frequencies(hits: np.ndarray, p: np.ndarray) -> None:
    """Bernoulli draws (n, ...) given their probabilities, within Monte Carlo error."""
    se = np.sqrt((p * (1 - p)).sum(axis=0)) + 1e-12
    z = (hits - p).sum(axis=0) / se
    assert np.abs(z).max() < 4.5
    assert np.square(z).mean() < 1 + 4.5 * np.sqrt(2 / z.size)


@every_case
def test_labels_are_drawn_given_x(case: Fit) -> None:
    drawn = case.tree["posterior_predictive"]["label"].values.reshape(-1, N)
    p = np.exp(case.log_joint - logsumexp(case.log_joint, axis=-1, keepdims=True))
    for c in range(2):
        assert_frequencies(drawn == c, p[..., c].reshape(-1, N))
    assert set(np.unique(drawn)) <= {0, 1, 2}


def marginal(column: int, c: int, family: Any) -> Any:
    """SciPy's distribution of one column of a new row of class `c`, parameters integrated out."""
    scale = np.sqrt(family.sigma2 * (1 + 1 / family.kappa))[c, column]
    df = np.broadcast_to(family.nu, family.sigma2.shape)[c, column]
    return stats.t(df, family.mu[c, column] + family.shift[column], scale)


def test_real_features_are_drawn_from_the_predictive() -> None:
    """Draws are independent: the columns of a row are so many draws of its class's predictive."""
    case = BY_NAME["GaussianNB"]
    posterior = case.tree["posterior_predictive"]["x"].values.reshape(-1, N, 3)
    for row, column in np.ndindex(3, 3):
        law = marginal(column, int(case.codes[row]), case.fitted.model_.family)
        assert stats.kstest(posterior[:, row, column], law.cdf).pvalue > 1e-4
    x = case.tree["prior_predictive"]["x"].values.reshape(-1, N, 3)
    label = case.tree["prior_predictive"]["label"].values.reshape(-1, N)
    for c, column in np.ndindex(3, 3):
        law = marginal(column, c, case.fitted.prior_.family)
        assert stats.kstest(x[label[:, 0] == c, 0, column], law.cdf).pvalue > 1e-4


def test_documents_keep_their_lengths() -> None:
    case = BY_NAME["MultinomialNB"]
    for group in ("posterior_predictive", "prior_predictive"):
        assert (case.tree[group]["x"].sum("feature") == case.X.sum(axis=1)).all()


def test_prior_predictive_rows_of_a_draw_share_their_weights() -> None:
    """Labels of a draw follow the Dirichlet-multinomial, not one multinomial for all draws."""
    label = BY_NAME["GaussianNB"].tree["prior_predictive"]["label"].values.reshape(-1, N)
    number = (label == 0).sum(axis=1)
    law = stats.betabinom(N, 1, 2).pmf(np.arange(N + 1))  # of Dirichlet(1, 1, 1) weights
    seen = np.bincount(number, minlength=N + 1)
    assert stats.chisquare(seen, law * len(number)).pvalue > 1e-4


@every_case
def test_rows_are_named_as_in_pymc(case: Fit) -> None:
    observed = case.tree["observed_data"]
    np.testing.assert_array_equal(observed["label"], case.codes)
    assert observed["label"].dtype == np.int64
    blocks = [f"{kind}_" for kind in KINDS] if case.name == "MixedNB" else [""]
    prefixes = [] if case.name == "MarkovNB 2" else blocks
    assert set(observed.data_vars) == {"label", *(f"{prefix}x" for prefix in prefixes)}
    for prefix in prefixes:
        x, dim = observed[f"{prefix}x"], f"{prefix}feature"
        assert x.dims == ("obs_id", dim)
        for group in ("posterior_predictive", "prior_predictive"):
            drawn = case.tree[group][f"{prefix}x"]
            assert drawn.dims == ("chain", "draw", *x.dims)
            assert drawn[dim].values.tolist() == x[dim].values.tolist()
            if not x.isnull().any():
                assert (drawn.dtype.kind in "iu") == (x.dtype.kind in "iu")
    if case.name == "MixedNB":
        for kind, columns in KINDS.items():
            assert observed[f"{kind}_feature"].values.tolist() == columns
        np.testing.assert_array_equal(observed["gaussian_x"], case.X[KINDS["gaussian"]])
        np.testing.assert_array_equal(observed["bernoulli_x"], case.X[KINDS["bernoulli"]])


# ------------------------------------------------------------------------------------ refusals


@pytest.fixture(scope="module")
def fitted() -> Any:
    return bg.GaussianNB().fit(REAL, LABELS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"groups": ["prior_predictive"]}, "is about rows: give X and y", id="prior"),
        pytest.param({"groups": ["predictions"]}, "groups must be of prior", id="unknown group"),
        pytest.param({"X": REAL}, "X and y must be given together", id="no labels"),
        pytest.param({"y": LABELS}, "X and y must be given together", id="no rows"),
        pytest.param({"X": REAL, "y": LABELS[:-1]}, r"\[11, 12\]", id="lengths"),
        pytest.param({"X": REAL, "y": ["dog", *LABELS[1:]]}, "'dog' is not a class", id="label"),
        pytest.param({"X": REAL[:, :2], "y": LABELS}, "2 features", id="columns"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    fitted: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        fitted.draw_posterior(**options)


def test_indicators_of_a_class_with_a_slash_are_refused() -> None:
    clf = bg.GaussianNB().fit(REAL, np.where(LABELS == "ash", "n/a", "b"))
    with pytest.raises(ValueError, match=r"'indicators' .* '/'.*'n/a'"):
        clf.draw_posterior(5, X=REAL, y=["b"] * len(REAL), replicate=["indicators"])
    assert "label" in clf.draw_posterior(5, X=REAL, y=["b"] * len(REAL))["posterior_predictive"]


@pytest.mark.parametrize(
    ("name", "numbers"),
    [("prior", 21), ("prior_predictive", 69), ("posterior_predictive", 48), ("log_likelihood", 24)],
)
def test_groups_that_would_not_fit_are_refused(
    fitted: Any, monkeypatch: pytest.MonkeyPatch, name: str, numbers: int
) -> None:
    asked: dict[str, Any] = {"X": REAL, "y": LABELS, "groups": [name], "replicate": BOTH}
    monkeypatch.setattr(groups, "_BYTES", 8 * numbers * 20)
    fitted.draw_posterior(10, 2, **asked)
    with pytest.raises(ValueError, match=f"{name} of 22 draws would take .* give fewer rows"):
        fitted.draw_posterior(11, 2, **asked)


# ------------------------------------------------------------------------------------ edge cases


def test_one_class_and_one_row() -> None:
    X, y = REAL[:1, :1], ["only"]
    tree = bg.GaussianNB().fit(X, y).draw_posterior(50, 2, X=X, y=y, groups=EVERY, replicate=BOTH)
    group = tree["log_likelihood"]
    np.testing.assert_allclose(group["label"], 0.0, atol=2e-10)
    assert group["joint"].shape == (2, 50, 1)
    assert (tree["posterior_predictive"]["label"] == 0).all()
