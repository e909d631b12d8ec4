"""Correlated words: the mass against adaptive quadrature, the PyMC model, one fit by NUTS."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import integrate, sparse, stats
from scipy.linalg import helmert
from scipy.special import gammaln, log_softmax, logsumexp, softmax

import bayesgen as bg
from bayesgen.families.names import CLASS, FEATURE
from bayesgen.families.sampled.logistic_normal import FACTOR, LogisticNormal, _Documents
from bayesgen.posterior.model import ClassModel
from tests.families.sampled.recovery import inside, likelier, sound
from tests.graphs import PYTHON, named_at, slope_error

RNG = np.random.default_rng(7)
C, D, N = 2, 5, 10
Y = np.arange(N) % C
X = RNG.multinomial(12, RNG.dirichlet(np.ones(D)), N).astype(float)
X[3] = 0


def parameters(factors: int, scale: float = 1.0) -> dict[str, np.ndarray]:
    return {
        "centre": RNG.dirichlet(np.ones(D), C),
        "loading": scale * RNG.normal(size=(C, factors, D)),
    }


def integral(x: np.ndarray, centre: np.ndarray, loading: np.ndarray) -> float:
    """log of the integral over one z, by SciPy."""

    log_coefficient = gammaln(x.sum() + 1) - gammaln(x + 1).sum()

    def log_p(z: float) -> float:
        log_p = log_softmax(np.log(centre) + z * loading[0])
        return float(log_coefficient + x @ log_p - z * z / 2 - np.log(2 * np.pi) / 2)

    z = np.linspace(-8, 8, 801)
    values = [log_p(v) for v in z]
    peak, top = z[np.argmax(values)], max(values)
    options: Any = {"points": [peak - 0.5, peak, peak + 0.5], "limit": 200}
    area = integrate.quad(lambda v: np.exp(log_p(v) - top), -8, 8, **options)[0]
    return float(np.log(area) + top)


def test_mass_is_the_integral_to_the_stated_error():
    """Documents as long as the grid was made for, and words that vary by a factor of e."""
    theta = parameters(1)
    for c in range(C):  # v = 1
        p = theta["centre"][c]
        loading = theta["loading"][c, 0] - p @ theta["loading"][c, 0]
        theta["loading"][c, 0] = loading / np.sqrt(p @ loading**2)
    long = LogisticNormal(length=60).simulate(np.random.default_rng(8), theta, Y)
    family = LogisticNormal().with_defaults(long, Y, C)
    found = family.log_likelihood(long, theta)
    finer = replace(family, nodes=2 * family.nodes).log_likelihood(long, theta)
    for i, c in np.ndindex(N, C):
        exact = integral(long[i], theta["centre"][c], theta["loading"][c])
        assert found[i, c] == pytest.approx(exact, abs=5e-3)
        assert finer[i, c] == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("factors", [1, 2])
def test_mass_is_that_of_the_mixture_over_the_nodes(factors, form):
    family, theta = LogisticNormal(factors=factors, nodes=9), parameters(factors)
    z, log_w = family.grid()
    assert z.shape == (9**factors, factors)
    expected = np.empty((N, C))
    for i, c in np.ndindex(N, C):
        p = softmax(np.log(theta["centre"][c]) + z @ theta["loading"][c], axis=1)
        expected[i, c] = logsumexp(log_w + stats.multinomial.logpmf(X[i], X[i].sum(), p))
    found = family.log_likelihood(form(X), theta)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_the_grid_has_the_moments_of_a_normal():
    for factors in (1, 2):
        z, log_w = LogisticNormal(factors=factors, nodes=21).grid()
        w = np.exp(log_w)
        assert w.sum() == pytest.approx(1)
        np.testing.assert_allclose(w @ z, 0, atol=1e-12)
        np.testing.assert_allclose((z.T * w) @ z, np.eye(factors), atol=3e-4)


# ------------------------------------------------------------------------------------ defaults


@pytest.mark.parametrize("n_features", [6, 100])
def test_directions_are_those_of_the_loadings(n_features):
    """By the dense route and the sparse one: orthonormal contrasts near the true loading."""
    rng = np.random.default_rng(1)
    loading = 0.7 * rng.normal(size=(1, 1, n_features))
    loading -= loading.mean()
    theta = {"centre": np.full((1, n_features), 1 / n_features), "loading": loading}
    family = LogisticNormal(length=50)
    rows = family.simulate(rng, theta, np.zeros(600, dtype=int))
    found = LogisticNormal().with_defaults(sparse.csr_matrix(rows), np.zeros(600, int), 1)
    r = found.direction[0, 0]
    assert r @ r == pytest.approx(1)
    assert r.sum() == pytest.approx(0, abs=1e-10)
    assert abs(r @ loading[0, 0]) > 0.8 * np.linalg.norm(loading)
    two = LogisticNormal(factors=2).with_defaults(rows, np.zeros(600, int), 1).direction[0]
    np.testing.assert_allclose(two @ two.T, np.eye(2), atol=1e-10)


def test_defaults_by_hand():
    rows = np.array([[3, 1, 0], [0, 2, 1], [4, 0, 0], [1, 1, 1]])
    y = np.array([0, 1, -1, 0])
    family = LogisticNormal().with_defaults(rows, y, 2)
    np.testing.assert_array_equal(family.reference, [[5, 3, 2], [1, 3, 2]])
    assert family.length == 4  # of 14/4
    assert family.nodes == 1 + np.ceil(9 * 0.6 * np.sqrt(5))


# ---------------------------------------------------------------------------------------- PyMC


def at_some_point(family: LogisticNormal, names: list[str], seed: int = 2) -> Any:
    """A conditioned model, a point of its free variables, and what `names` are there."""
    coords = {CLASS: ["a", "b"], FEATURE: list("pqrst")}
    model = ClassModel(np.ones(C), family).to_pymc(coords, X=sparse.csr_matrix(X), y=Y)
    assert model.named_vars_to_dims["loading"] == (CLASS, FACTOR, FEATURE)
    rng = np.random.default_rng(seed)
    point = {k: v + 0.3 * rng.normal(size=v.shape) for k, v in model.initial_point().items()}
    return model, point, named_at(model, names)


def test_loadings_are_lower_triangular_along_the_directions():
    family = LogisticNormal(factors=2, nodes=9).with_defaults(X, Y, C)
    model, point, values = at_some_point(family, ["loading", "spread", "along"])
    assert slope_error(model, point) < 1e-6
    loading, spread, along = values(point)
    np.testing.assert_allclose(loading.sum(axis=-1), 0, atol=1e-9)
    part = np.einsum("ckj,clj->ckl", loading / spread[..., None], family.direction)
    np.testing.assert_allclose(np.diagonal(part, axis1=1, axis2=2), along, rtol=1e-7)
    np.testing.assert_allclose(np.triu(part, 1), 0, atol=1e-9)


def test_round_coordinates_have_the_density_of_the_prior_and_the_rows():
    """By the change of variables, whose determinant is that of finite differences."""
    family = LogisticNormal(nodes=9, alpha=1.5).with_defaults(X, Y, C)
    contrasts = helmert(D)

    def whole(seed: int) -> float:
        model, point, values = at_some_point(family, ["pi", "centre", "loading", "spread"], seed)
        names = list(point)
        sizes = np.cumsum([point[k].size for k in names])

        def natural(flat: np.ndarray) -> np.ndarray:
            parts = np.split(flat, sizes[:-1])
            own = {k: v.reshape(point[k].shape) for k, v in zip(names, parts, strict=True)}
            pi, centre, loading, spread = values(own)
            others = np.log(centre) @ contrasts.T, loading @ contrasts.T, np.log(spread)
            return np.concatenate([np.log(pi[:1] / pi[1:]), *map(np.ravel, others)])

        flat = np.concatenate([np.ravel(point[k]) for k in names])
        step = 1e-5 * np.eye(len(flat))
        slopes = [(natural(flat + h) - natural(flat - h)) / 2e-5 for h in step]
        pi, centre, loading, spread = values(point)
        density = family.log_likelihood(X, {"centre": centre, "loading": loading})
        expected = density[np.arange(N), Y].sum() + np.log(pi)[Y].sum()
        expected += np.log(pi).sum() + 1.5 * np.log(centre).sum()
        expected += stats.norm.logpdf(loading @ contrasts.T, 0, spread[..., None]).sum()
        expected += (stats.halfnorm.logpdf(spread) + np.log(spread)).sum()
        expected += np.linalg.slogdet(np.array(slopes))[1]
        return float(model.compile_logp(mode=PYTHON)(point) - expected)

    first, *others = (whole(seed) for seed in range(3))
    np.testing.assert_allclose(others, first, atol=1e-5)


def test_round_coordinates_are_round():
    """Curvature 1 in every direction, where there are rows and where there are none."""
    rng = np.random.default_rng(5)
    theta, y = parameters(1), np.repeat([0, 1], [300, 0])
    rows = LogisticNormal(length=20).simulate(rng, theta, y).astype(float)
    family = LogisticNormal().with_defaults(rows, y, C)
    coords = {CLASS: ["a", "b"], FEATURE: list("pqrst")}
    model = ClassModel(np.ones(C), family).to_pymc(coords, X=rows, y=y)
    white = [model["centre_white"], model["loading_white"]]
    point = model.initial_point()
    for v in white:
        point[v.name] = 0 * point[v.name]
    # not the spread's, whose mode is elsewhere
    slope, names = model.compile_dlogp(vars=white, mode=PYTHON), [v.name for v in white]
    whole = np.concatenate([np.ravel(point[name]) for name in names])
    ends = np.cumsum([point[name].size for name in names])[:-1]

    def slopes(move: np.ndarray) -> np.ndarray:
        parts = zip(names, np.split(whole + move, ends), strict=True)
        return slope(point | {name: part.reshape(point[name].shape) for name, part in parts})

    second = [(slopes(h) - slopes(-h)) / 2e-4 for h in 1e-4 * np.eye(len(whole))]
    np.testing.assert_allclose(np.linalg.eigvals(-np.array(second)).real, 1, atol=0.3)


def test_loadings_of_either_sign_are_put_right():
    family = LogisticNormal().with_defaults(X, Y, C)
    loading = RNG.normal(size=(2, 3, C, 1, D))
    found = family.relabelled({"loading": loading, "loading_white": loading}, X, Y)["loading"]
    assert ((found * family.direction).sum(axis=-1) > 0).all()
    np.testing.assert_array_equal(np.abs(found), np.abs(loading))
    assert family.relabelled({"loading": loading}, X, Y) == {}


@pytest.mark.parametrize("alpha", [0.5, 3.0])
def test_slope_and_curvature_of_a_class_are_those_of_finite_differences(alpha):
    z = np.linspace(-4.5, 4.5, 17)
    log_w = -np.square(z) / 2 - logsumexp(-np.square(z) / 2)
    documents = _Documents(sparse.csr_matrix(X), np.full(D, alpha), z, log_w)
    at = 0.7 * RNG.normal(size=2 * D)

    def differences(f: Any) -> np.ndarray:
        return np.array([(f(at + h) - f(at - h)) / 2e-5 for h in 1e-5 * np.eye(2 * D)])

    slope = differences(lambda v: documents.value_and_gradient(v, 0.8)[0])
    np.testing.assert_allclose(documents.value_and_gradient(at, 0.8)[1], slope, atol=1e-6)
    curvature = differences(lambda v: documents.value_and_gradient(v, np.inf)[1])
    own, both, other = documents.information(at)
    np.testing.assert_allclose(own, curvature[:D, :D], atol=1e-6)
    np.testing.assert_allclose(both, curvature[:D, D:], atol=1e-6)
    np.testing.assert_allclose(other, curvature[D:, D:], atol=1e-6)


# -------------------------------------------------------------------------------------- errors


def test_what_cannot_be_fitted_is_refused():
    with pytest.raises(ValueError, match="less than the number of words, which is 5; got 5"):
        bg.LogisticNormalNB(factors=5).fit(X, Y)
    bad = X.copy()
    bad[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN: nan in row 1, column 'x2'; a document"):
        bg.LogisticNormalNB().fit(bad, Y)
    bad[1, 2] = 0.5
    with pytest.raises(ValueError, match=r"counts must be whole numbers to be fitted, got 0\.5"):
        bg.LogisticNormalNB().fit(bad, Y)


# ---------------------------------------------------------------------------------------- NUTS


@pytest.mark.slow
def test_nuts_finds_the_loadings_and_beats_the_multinomial():
    rng = np.random.default_rng(3)
    n, d = 200, 8
    centre = rng.dirichlet(np.full(d, 5.0), 1) * np.exp(0.4 * rng.normal(size=(2, d)))
    loading = 1.2 * rng.normal(size=(2, 1, d))
    truth = {
        "centre": centre / centre.sum(axis=1, keepdims=True),
        "loading": loading - loading.mean(axis=-1, keepdims=True),
    }
    y = rng.integers(0, 2, 2 * n)
    rows = LogisticNormal(length=rng.integers(3, 30, 2 * n)).simulate(rng, truth, y)
    clf = bg.LogisticNormalNB(draws=1000, tune=1000, chains=2, random_state=1)
    clf.fit(sparse.csr_matrix(rows[:n]), y[:n], progressbar=False)
    posterior = sound(clf, 1.02)
    direction = clf.prior_.family.direction
    sign = np.sign(np.einsum("ckj,ckj->ck", truth["loading"], direction))
    truth["loading"] = truth["loading"] * sign[..., None]
    held = [inside(posterior[name], value).ravel() for name, value in truth.items()]
    assert np.concatenate(held).mean() >= 0.9
    assert likelier(clf, bg.MultinomialNB().fit(rows[:n], y[:n]), rows[n:], y[n:])
