"""`fit(inference="nuts")`: missing labels against enumeration, missing cells against Gibbs."""

import pickle
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats
from scipy.special import logsumexp, softmax
from sklearn.base import clone

import bayesgen as bg
from bayesgen.checks.agreement import compare
from bayesgen.encoding.labels import is_labelled, labels_and_mask
from bayesgen.families import registry
from bayesgen.families.approximate_family import ApproximateFamily
from bayesgen.families.capabilities import UnlabelledRows
from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
from bayesgen.families.conjugate.columns import Columns
from bayesgen.families.conjugate.normal_inverse_wishart import NormalInverseWishart
from bayesgen.families.errors import NoClosedFormError
from bayesgen.families.shared import gaussian
from bayesgen.inference import nuts, sampled
from bayesgen.numerics.kernels import gaussian as missing_cells
from bayesgen.posterior.drawn import DrawnPosterior
from bayesgen.posterior.fitted import Fitted
from bayesgen.posterior.training import Training
from tests.graphs import PYTHON, pt, pytensor
from tests.selection import rest_is_slow

NAN = np.nan


# of others, for them to mend
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


# ------------------------------------------------------------- Normal rows with missing cells


def rows_with_gaps(n: int = 60, d: int = 4, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** np.arange(d) + 5.0
    X[rng.random((n, d)) < 0.3] = NAN
    X[0], X[1] = NAN, 5.0  # nothing observed, everything observed
    mu = rng.normal(size=(3, d)) * 10.0 ** np.arange(d)
    A = rng.normal(size=(3, d, d)) * 10.0 ** np.arange(d)[:, None]
    return X, mu, A @ A.transpose(0, 2, 1) + np.diag(100.0 ** np.arange(d))


def kernel_arguments(X: np.ndarray) -> tuple[np.ndarray, ...]:
    at = gaussian.Patterns.of(X)  # whole numbers as PyMC hands them over
    return np.nan_to_num(X), *(a.astype(np.int32) for a in (at.order, at.first, at.seen))


def by_scipy(X: np.ndarray, mu: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    out = np.zeros((len(X), len(mu)))
    for i, c in np.ndindex(out.shape):
        seen = ~np.isnan(X[i])
        if seen.any():
            part = sigma[c % len(sigma)][np.ix_(seen, seen)]
            out[i, c] = stats.multivariate_normal.logpdf(X[i, seen], mu[c, seen], part)
    return out


@pytest.mark.parametrize("shared", [False, True])
def test_densities_of_the_observed_cells_are_scipys(shared):
    X, mu, sigma = rows_with_gaps()
    sigma = sigma[:1] if shared else sigma
    found = missing_cells.observed_normal(*kernel_arguments(X), mu, sigma)
    np.testing.assert_allclose(found, by_scipy(X, mu, sigma), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shared", [False, True])
def test_their_gradient_is_that_of_finite_differences(shared):
    X, mu, sigma = rows_with_gaps(d=3)
    sigma = sigma[:1] if shared else sigma
    weight = np.random.default_rng(1).normal(size=(len(X), 3))
    arguments = kernel_arguments(X)
    d_mu, d_sigma = missing_cells.observed_normal_gradient(*arguments, mu, sigma, weight)

    def total(mu: np.ndarray, sigma: np.ndarray) -> float:
        return float((weight * missing_cells.observed_normal(*arguments, mu, sigma)).sum())

    rng, h = np.random.default_rng(2), 1e-6
    unit = 10.0 ** np.arange(3)
    for _ in range(5):
        step = rng.normal(size=mu.shape) * unit
        slope = (total(mu + h * step, sigma) - total(mu - h * step, sigma)) / (2 * h)
        assert np.sum(d_mu * step) == pytest.approx(slope, rel=1e-6)
        step = rng.normal(size=sigma.shape) * np.outer(unit, unit)
        step = step + step.transpose(0, 2, 1)
        slope = (total(mu, sigma + h * step) - total(mu, sigma - h * step)) / (2 * h)
        assert np.sum(d_sigma * step) == pytest.approx(slope, rel=1e-6)


def test_a_covariance_that_is_none_has_no_density():
    X, mu, _ = rows_with_gaps(d=2)
    bad = np.array([[[1.0, 2.0], [2.0, 1.0]]])
    found = missing_cells.observed_normal(*kernel_arguments(X), mu, bad)
    assert np.isnan(found[~np.isnan(X).any(axis=1)]).all()


def test_sigma_points_have_the_likelihood_of_the_rows():
    X, mu, sigma = rows_with_gaps(2000)
    weight = np.random.default_rng(3).random(len(X)) + 0.1
    points, mass = gaussian.sigma_points(X, weight)
    assert len(points) <= 2 * 4 * 16
    np.testing.assert_allclose(mass.sum(), weight.sum())
    np.testing.assert_allclose(
        mass @ by_scipy(points, mu, sigma), weight @ by_scipy(X, mu, sigma), rtol=1e-10
    )


def test_sigma_points_of_few_equal_or_empty_rows():
    rows = np.array([[1.0, NAN], [NAN, NAN], [NAN, NAN]])
    points, mass = gaussian.sigma_points(rows, np.array([1.0, 2.0, 0.5]))
    assert sorted(mass.tolist()) == [1.0, 2.5]
    same = np.tile([3.0, 1e8], (9, 1))
    points, mass = gaussian.sigma_points(same, np.ones(9))
    np.testing.assert_array_equal(points, np.tile([3.0, 1e8], (4, 1)))


# ------------------------------------------------------------------------------ labels or none

UNKNOWN = [
    ([0, 1, -1, 1], [1, 1, 0, 1]),
    ([0.0, 1.0, -1.0], [1, 1, 0]),
    ([0.0, 1.0, NAN], [1, 1, 0]),
    (["a", None, "b"], [1, 0, 1]),
    ([1, None, -1], [1, 0, 1]),  # beside another marker -1 is a label
    (np.ma.masked_array([-1, 1, -1], [False, False, True]), [1, 1, 0]),
    (np.ma.masked_array(["a", "b", "b"], [False, True, False]), [1, 0, 1]),
    (pd.Series(["a", None, "b"], dtype="string"), [1, 0, 1]),
    (pd.Series([0, None, 1], dtype="Int64"), [1, 0, 1]),
    (np.array([2, 0, -1], dtype=object), [1, 1, 0]),
    (np.array([3, 255], dtype=np.uint8), [1, 1]),
    ([True, False], [1, 1]),
    ([-1, 1, 1], [1, 1, 1]),  # two classes, as many write them
    ([-1.0, 1.0], [1, 1]),
    (np.ma.masked_array([-1, 1, 1], [0, 0, 1]), [1, 1, 0]),
]


@pytest.mark.parametrize(("y", "known"), UNKNOWN)
def test_which_rows_have_a_label(y, known):
    assert is_labelled(*labels_and_mask(y)).tolist() == [bool(k) for k in known]


def test_no_label_at_all_is_refused():
    with pytest.raises(ValueError, match="no row of y has a label"):
        is_labelled(*labels_and_mask([-1, -1]))


@pytest.mark.parametrize(
    "y", [["a", None, "b"], np.ma.masked_array([0, 1, 1], [True, False, False]), [0.0, NAN, 1.0]]
)
def test_the_closed_form_names_the_way_out(y):
    with pytest.raises(ValueError, match="inference='nuts'"):
        bg.GaussianNB().fit([[1.0], [2.0], [3.0]], y)


def test_arguments_of_fit():
    X, y = [[1.0], [2.0], [4.0]], ["a", "b", "b"]
    with pytest.raises(ValueError, match="inference must be one of 'closed form', 'nuts'"):
        bg.GaussianNB().fit(X, y, inference="vi")
    with pytest.raises(TypeError, match="got draws, which is for inference='nuts' alone"):
        bg.GaussianNB().fit(X, y, draws=100)
    with pytest.raises(ValueError, match="draws must be an integer"):
        bg.GaussianNB().fit(X, y, inference="nuts", draws=0)
    with pytest.raises(ValueError, match="prior='empirical' maximises the evidence"):
        bg.GaussianNB(prior="empirical").fit(X, [0, None, 1], inference="nuts")
    with pytest.raises(ValueError, match=r"has no closed form|have no closed form.*'nuts'"):
        bg.QuadraticDiscriminant().fit([[1.0, NAN], [2.0, 1.0], [0.0, 3.0]], y)


# --------------------------------------------------------------- one model, in NumPy and PyMC

RNG = np.random.default_rng(7)
N = 20
BITS = RNG.integers(0, 2, (N, 3)).astype(float)
BITS[RNG.random(BITS.shape) < 0.2] = NAN
REALS = RNG.normal(size=(N, 3)) * [1.0, 10.0, 1.0] + [1e3, 0.0, 0.0]
REALS[:, 1] += 5 * REALS[:, 2]
GAPS = np.where(RNG.random(REALS.shape) < 0.2, NAN, REALS)
WORDS = RNG.choice(["u", "v", "w"], (N, 2)).astype(object)
WORDS[:, 1] = np.where(WORDS[:, 1] == "w", None, WORDS[:, 1])
TABLE = pd.DataFrame(GAPS[:, :2], columns=["p", "q"]).assign(
    bit=RNG.random(N) < 0.4, word=WORDS[:, 0]
)
TEXTS = ["".join(RNG.choice(list("abc"), RNG.integers(0, 6))) for _ in range(N)]
Y = np.array([0, 1] * 4 + [-1] * (N - 8))
BLOCKS = Columns(("full", "bits"), (NormalInverseWishart(), BetaBernoulli()), ((0, 1), (2,)))
CASES = {
    "categories": (bg.CategoricalNB(), WORDS),
    "normal": (bg.GaussianNB(), GAPS),
    "mixed": (bg.MixedNB(), TABLE),
    "quadratic": (bg.QuadraticDiscriminant(), GAPS),
    "constant": (bg.QuadraticDiscriminant(), np.where([False, True, False], 3.0, GAPS)),
    "ngrams": (bg.MarkovNB(order=2), TEXTS),
    "blocks": (
        bg.GenerativeClassifier(BLOCKS),
        np.column_stack([GAPS[:, :2], np.nan_to_num(BITS[:, 2])]),
    ),
}
some_cases = pytest.mark.parametrize("case", rest_is_slow(CASES, ["mixed", "quadratic", "ngrams"]))


def modelled(clf: Any, X: Any, codes: Any, weight: Any = None) -> tuple[Any, Any, Any]:
    """The classifier as it is before sampling, its PyMC model, and the rows encoded."""
    clf, classes = clone(clf), np.unique(codes[codes >= 0])
    learner = clf.__bayesgen_learner__()
    reader, found = learner.reader.admit(X, first=True)
    reader, found = reader.learnt(found, exact=False)
    rows = found.encoded
    data = sampled.Data(rows, codes, len(classes), weight)
    goal = sampled.target(learner.unresolved(reader, classes), clf.prior, data)
    training = Training(len(codes), int((codes < 0).sum()), "nuts", goal.exact)
    pilot = DrawnPosterior(goal.prior, goal.pilot, goal.pilot_stats, {})
    clf.fitted_ = Fitted(type(clf).__name__, classes, reader, pilot, training)
    coords = clf.fitted_.coords
    clf.start, model = goal.start(coords), goal.to_pymc(coords)
    return clf, model, rows


def at(tensor: Any, model: Any, theta: dict[str, np.ndarray]) -> Any:
    """A tensor of a model as a function of the parameters themselves."""
    inputs = {name: model[name] for name in theta}
    values = {  # listed by cell: padding is 0 in every class
        name: v[:, (v > 0).any(axis=0)] if v.ndim == inputs[name].ndim + 1 else v
        for name, v in theta.items()
    }
    run = pytensor.function([*inputs.values()], tensor, mode=PYTHON, on_unused_input="ignore")
    return run(*values.values())


@pytest.mark.parametrize("case", CASES)
def test_the_rows_have_the_likelihood_of_the_formula(case):
    clf, model, X = modelled(*CASES[case], Y)
    _, weighted_model, _ = modelled(*CASES[case], Y, np.arange(N) / 10 + 0.1)
    differences = []
    for seed in range(3):
        draws = clf.fitted_.posterior.model.draw(np.random.default_rng(seed), 1)
        joint = clf.fitted_.posterior.model.family.log_likelihood(X, draws)[0] + np.log(draws["pi"])
        rows = np.where(Y < 0, logsumexp(joint, axis=1), joint[np.arange(N), Y])
        theta = {k: v[0] for k, v in draws.items()}
        found = [
            sum(at(p, built, theta) for p in built.potentials) for built in (model, weighted_model)
        ]
        differences.append([found[0] - rows.sum(), found[1] - rows @ (np.arange(N) / 10 + 0.1)])
    # up to a constant: the coefficients of counts
    np.testing.assert_allclose(np.ptp(differences, axis=0), 0, atol=1e-8)


@some_cases
def test_chains_start_inside_the_support(case):
    clf, model, _ = modelled(*CASES[case], Y)
    points = nuts.starting_points(model, clf.start, None)
    first, again, other = points(3), points(3), points(4)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    shapes = model.eval_rv_shapes()
    values, k = {}, 0
    for variable in model.free_RVs:
        name = model.rvs_to_values[variable].name
        size = int(np.prod(shapes[name]))
        values[name] = first[k : k + size].reshape(shapes[name])
        k += size
    assert k == len(first)
    assert np.isfinite(model.compile_logp(mode=PYTHON)(values))
    # the parameters are those that were drawn
    theta = clf.start(np.random.default_rng(3))
    for variable in model.free_RVs:
        transform, value = model.rvs_to_transforms[variable], model.rvs_to_values[variable]
        if transform is not None and variable.name in ("pi", "theta", "rate"):
            back = transform.backward(pt.as_tensor(values[value.name]), *variable.owner.inputs)
            np.testing.assert_allclose(back.eval(mode=PYTHON), theta[variable.name])


def test_every_family_takes_rows_without_a_label():
    for kind in registry().values():
        if issubclass(kind, ApproximateFamily):  # never fitted by draws
            continue
        for family in kind.examples(2, 2):
            known = family.capability(UnlabelledRows) is not None
            assert known != bool(family.no_pymc), kind  # or it says why there is no model at all


def test_default_priors_see_all_rows_and_complete_rows_as_the_closed_form_does():
    clf, _, _ = modelled(bg.QuadraticDiscriminant(), REALS, np.arange(N) % 2)
    closed = bg.QuadraticDiscriminant().fit(REALS, np.arange(N) % 2)
    np.testing.assert_array_equal(clf.prior_.family.psi, closed.prior_.family.psi)
    assert clf.log_evidence_ == closed.log_evidence_
    missing = REALS.copy()
    missing[3, 1] = NAN
    near, _, _ = modelled(bg.QuadraticDiscriminant(), missing, np.arange(N) % 2)
    np.testing.assert_allclose(near.prior_.family.psi, closed.prior_.family.psi, rtol=0.2, atol=9)
    # a column that varies among the unlabelled rows alone is used
    some = np.where((Y < 0)[:, None] | [True, False, True], REALS, 0.0)
    half, _, _ = modelled(bg.GaussianNB(), some, Y)
    assert not half.prior_.family.ignored.any()


def test_a_graph_of_the_fit_needs_its_rows():
    clf, model, _ = modelled(bg.QuadraticDiscriminant(), GAPS, Y)
    with pytest.raises(NoClosedFormError, match=r"call to_pymc\(X, y\)"):
        clf.to_pymc()
    again = clf.to_pymc(GAPS, Y)
    point = model.initial_point(0)
    values = [m.compile_logp(mode=PYTHON)(point) for m in (model, again)]
    assert values[0] == values[1]
    assert "partial" not in clf.to_pymc(observed=False).named_vars


# ------------------------------------------------------------------------------- diagnostics


def chains(shift: float = 0.0, divergences: int = 0, draws: int = 1000) -> Any:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, draws))
    x[1] += shift
    posterior = xr.Dataset(
        {"x": (("chain", "draw"), x), "constant": (("chain", "draw"), np.ones((2, draws)))},
        {"chain": [0, 1], "draw": np.arange(draws)},
    )
    diverging = np.arange(2 * draws).reshape(2, draws) < divergences
    return posterior, xr.Dataset({"diverging": (("chain", "draw"), diverging)})


def test_sound_chains_are_silent():
    found = nuts.warn_unless_sound(*chains())
    assert found.complaints() == []
    assert found.r_hat < 1.01
    assert found.ess > 1500


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"divergences": 3}, r"3 draw\(s\) diverged.*target_accept=0.95"),
        ({"shift": 1.0}, r"R-hat of x is 1\..*label more rows"),
        ({"draws": 60}, r"x has \d+ effective draws \(< 100 a chain\).*more draws"),
        ({"draws": 3}, "every parameter has 6 effective draws"),
    ],
)
def test_each_trouble_is_said_with_what_to_try(arguments, said):
    with pytest.warns(nuts.SamplingWarning, match=said) as caught:
        nuts.warn_unless_sound(*chains(**arguments))
    assert len(caught) == 1


def draws_of(x: Any) -> Any:
    """A posterior of one parameter from its draws (chain, draw)."""
    constant = np.full(np.shape(x), 3.0)
    own = {"x": (("chain", "draw"), x), "constant": (("chain", "draw"), constant)}
    return xr.Dataset(own), xr.Dataset()


_X = np.random.default_rng(0).normal(size=(4, 1000))


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (_X[:1], "one chain has no other"),
        (_X[[0, 1, 0, 2]], "chains 0 and 2 are identical"),
        (np.where(np.arange(4)[:, None] == 2, 0.7, _X), "chain 2 never moved"),
        (np.zeros((4, 1000)), "no parameter varies"),
        (np.repeat([[0.0], [1.0]], 1000, axis=1), "chain 0 never moved"),
        (np.where(np.arange(1000) == 7, np.nan, _X), "some draws are not finite.*R-hat of x"),
        (np.where(np.arange(1000) == 7, np.inf, _X), "some draws are not finite"),
    ],
)
def test_chains_that_numbers_do_not_judge(x, said):
    with pytest.warns(nuts.SamplingWarning, match=said):
        found = nuts.warn_unless_sound(*draws_of(x))
    assert found.attributes()["verdict"] != "sound"


def test_the_verdict_is_kept_in_files(tmp_path):
    rows, labels = np.arange(12.0)[:, None] % 5, np.arange(12) % 2
    partly = np.where(np.arange(12) == 2, -1, labels)
    clf = bg.GaussianNB()
    with pytest.warns(nuts.SamplingWarning, match="one chain"):
        clf.fit(rows, partly, inference="gibbs", chains=1, random_state=0, progressbar=False)
    clf.save(tmp_path / "model.nc")
    kept = bg.load(tmp_path / "model.nc").posterior_.attrs
    assert kept["verdict"].startswith("one chain has no other")
    assert (kept["divergences"], kept["r_hat"], kept["ess"]) == tuple(
        clf.posterior_.attrs[name] for name in ("divergences", "r_hat", "ess")
    )


# -------------------------------------------------------------- the posterior, by other means

FEW = {"draws": 1500, "tune": 800, "chains": 2, "random_state": 1, "progressbar": False}


class Enumeration:
    """The exact posterior, a mixture over the C^m labels of the rows that have none."""

    def __init__(self, clf: Any, X: Any, codes: np.ndarray) -> None:
        n_classes, open_rows = len(clf.classes_), np.flatnonzero(codes < 0)
        prior, log_weights, self.models = clf.prior_, [], []
        for labels in product(range(n_classes), repeat=len(open_rows)):
            full = codes.copy()
            full[open_rows] = labels
            statistics = prior.stats(X, full, n_classes)
            log_weights.append(prior.log_evidence(statistics))
            self.models.append(prior.update(statistics))
        self.weight = softmax(log_weights)

    def mean(self, value: Any) -> np.ndarray:
        return sum(w * value(m) for w, m in zip(self.weight, self.models, strict=True))

    def draw(self, n: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(0)
        counts = rng.multinomial(n, self.weight)
        parts = [m.draw(rng, k) for m, k in zip(self.models, counts, strict=True) if k]
        return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}

    def joint(self, X: Any) -> np.ndarray:
        def of(model: Any) -> np.ndarray:
            return np.exp(model.family.log_predictive(X)) * model.alpha / model.alpha.sum()

        return self.mean(of)


def z_scores(clf: Any, reference: dict[str, np.ndarray]) -> np.ndarray:
    """Of means, sds and quantiles, for all parameters that vary."""
    posterior = clf.posterior_["posterior"]
    out = []
    for name, drawn in reference.items():
        chain = posterior[name].values
        flat = chain.reshape(*chain.shape[:2], -1)
        drawn = drawn.reshape(len(drawn), -1)
        if flat.shape[-1] < drawn.shape[1]:  # listed by cell: padding is 0 in every draw
            drawn = drawn[:, (drawn > 0).any(axis=0)]
        use = drawn.std(axis=0) > 0
        out.append(compare(flat[..., use], drawn[:, use]).z)
    return np.concatenate(out)


def check(clf: Any, exact: Enumeration, X: Any, X_new: Any, shown: Any) -> None:
    z = z_scores(clf, exact.draw(40_000))
    assert np.abs(z).max() < 4.5, z
    joint = exact.joint(X_new)
    expected = joint / joint.sum(axis=1, keepdims=True)
    table = clf.predict_monte_carlo(shown)
    z = (table["probability"].values - expected) / table["mcse"].values
    assert np.abs(z).max() < 4.5, z
    np.testing.assert_allclose(clf.predict_proba(shown), table["probability"].values)
    z = (clf.predict_joint_log_proba(shown) - np.log(joint)) * np.sqrt(table["weight_ess"].values)
    assert np.abs(z).max() < 4.5, z  # 1/sqrt(weight_ess): sd of the log of a mean
    posterior_mean = clf.predict_proba(shown, method="posterior_mean")
    np.testing.assert_allclose(posterior_mean.sum(axis=1), 1)


ROWS = RNG.integers(0, 2, (12, 3)) ^ (np.arange(12) % 2)[:, None] * (RNG.random((12, 3)) < 0.7)
HALF = np.where(np.arange(12) < 7, np.arange(12) % 2, -1)


@pytest.fixture(scope="module")
def bits() -> Any:
    return bg.BernoulliNB(1.5, 1.2, class_alpha=[2.0, 1.0]).fit(ROWS, HALF, inference="nuts", **FEW)


@pytest.mark.slow
def test_bits_without_labels(bits):
    exact = Enumeration(bits, ROWS, HALF)
    new = np.array(list(product([0, 1], repeat=3)))
    check(bits, exact, ROWS, new, new)
    mean = bits.posterior_["posterior"]["theta"].mean(("chain", "draw")).values
    np.testing.assert_allclose(mean, exact.mean(lambda m: m.family.mean()["theta"]), atol=0.02)


@pytest.mark.slow
def test_labels_are_drawn_with_the_probabilities_of_the_enumeration(bits):
    open_rows = np.flatnonzero(HALF < 0)
    exact = np.zeros((len(open_rows), 2))
    n = len(open_rows)
    weight = Enumeration(bits, ROWS, HALF).weight
    for labels, w in zip(product(range(2), repeat=n), weight, strict=True):
        exact[np.arange(n), labels] += w
    drawn = bits.posterior_["posterior_predictive"]["imputed_label"]
    assert drawn["unlabelled_row"].values.tolist() == open_rows.tolist()
    share = (drawn == 1).mean(("chain", "draw")).values
    np.testing.assert_allclose(share, exact[:, 1], atol=0.05)


@pytest.mark.slow
def test_simulated_rows_have_the_predictive_distribution(bits):
    exact = Enumeration(bits, ROWS, HALF)
    new = np.array(list(product([0, 1], repeat=3)))
    joint, n = exact.joint(new), 100_000
    X, y = bits.simulate(n, random_state=1)
    for c in (0, 1):
        cells = np.bincount((X[y == c] * [4, 2, 1]).sum(axis=1), minlength=8) / n
        np.testing.assert_allclose(cells, joint[:, c], atol=0.012)
    X, y = bits.simulate(n, y=1, random_state=1)
    assert (y == 1).all()
    cells = np.bincount((X * [4, 2, 1]).sum(axis=1), minlength=8) / n
    np.testing.assert_allclose(cells, joint[:, 1] / joint[:, 1].sum(), atol=0.012)
    X, y = bits.simulate(50, source="draw", random_state=1)
    assert X.shape == (50, 3)


@pytest.mark.slow
def test_another_fit_forgets_the_draws(bits):
    clf = pickle.loads(pickle.dumps(bits))
    assert clone(clf).get_params() == bits.get_params()
    clf.fit(ROWS[:7], HALF[:7])
    assert clf.inference_ == "closed form"
    assert clf.posterior_.attrs["route"] == "closed form"
    fresh = clone(clf).fit(ROWS[:7], HALF[:7])
    np.testing.assert_array_equal(clf.predict_proba(ROWS), fresh.predict_proba(ROWS))


@pytest.mark.slow
def test_categories_without_labels():
    X = np.array([["u", "p"], ["v", "q"], ["w", None], ["u", "q"], ["v", "p"], ["w", "q"]] * 2)
    y = ["a", "b", "b", "a", None, "a", None, None, "b", "a", None, "b"]
    clf = bg.CategoricalNB(1.3).fit(X, y, inference="nuts", **FEW)
    codes = np.array([-1 if v is None else "ab".index(v) for v in y])
    exact = Enumeration(clf, clf.fitted_.read(X).encoded, codes)
    new = np.array([["u", "p"], ["w", "q"], [None, "p"], [None, None]], dtype=object)
    check(clf, exact, X, clf.fitted_.read(new).encoded, new)


SMALL = np.array([[0.3, 1.0], [1.2, 0.2], [-0.5, 0.4], [2.9, 2.2], [3.5, 3.1], [2.2, 3.4]])
LOOSE = np.array([[0.9, 0.8], [2.6, 2.5], [1.7, 1.9], [0.1, -0.4], [3.0, 2.0]])


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator", [bg.GaussianNB, bg.LinearDiscriminant], ids=["diagonal", "full"]
)
def test_normal_rows_without_labels(estimator):
    X = np.vstack([SMALL, LOOSE])
    y = np.ma.masked_array([0] * 3 + [1] * 8, [False] * 6 + [True] * 5)
    clf = estimator().fit(X, y, inference="nuts", target_accept=0.9, **FEW)
    exact = Enumeration(clf, X, np.where(y.mask, -1, y.data))
    check(clf, exact, X, X, X)


@pytest.mark.slow
def test_with_nothing_missing_the_closed_form_is_there_as_well():
    X, y = np.vstack([SMALL, LOOSE]), np.array(list("aaabbbabbab"))
    clf = bg.QuadraticDiscriminant().fit(X, y, inference="nuts", **FEW)
    closed = bg.QuadraticDiscriminant().fit(X, y)
    assert clf.log_evidence_ == closed.log_evidence_
    z = z_scores(clf, closed.model_.draw(np.random.default_rng(0), 40_000))
    assert np.abs(z).max() < 4.5, z
    table = clf.predict_monte_carlo(X)
    z = (table["probability"].values - closed.predict_proba(X)) / table["mcse"].values
    assert np.abs(z[table["trusted"].values]).max() < 4.5
    assert "fit" in clf.posterior_.children
    with pytest.raises(NoClosedFormError, match="its draws do not add up"):
        clf.partial_fit(X, y)
    with pytest.raises(NoClosedFormError, match="its draws do not add up"):
        closed.merge(clf)


# ------------------------------------------------------------------------------- missing cells


def incomplete() -> tuple[np.ndarray, np.ndarray]:
    """Missing at random: the second cell is missing the more often, the larger the first."""
    rng = np.random.default_rng(8)
    y = np.repeat([0, 1], 12)
    X = rng.normal(size=(24, 2)) @ [[1.0, 0.9], [0.0, 0.5]] + y[:, None] * [1.5, -0.5]
    X[(X[:, 0] > np.quantile(X[:, 0], 0.6)) & (rng.random(24) < 0.8), 1] = NAN
    X[rng.choice(24, 3, replace=False), 0] = NAN
    return X, y


def gibbs(prior: Any, X: np.ndarray, y: np.ndarray, n: int) -> tuple[dict[str, Any], np.ndarray]:
    """Data augmentation (Tanner and Wong, 1987): cells given theta, theta given cells."""
    rng = np.random.default_rng(9)
    family, n_classes, dim = prior.family, 2, X.shape[1]
    full, missing = np.where(np.isnan(X), np.nanmean(X, axis=0), X), np.isnan(X)
    mu, sigma = np.empty((n, n_classes, dim)), np.empty((n, n_classes, dim, dim))
    cells = np.empty((n, missing.sum()))
    for s in range(n):
        for c in range(n_classes):
            own = full[y == c]
            k, mean = len(own), own.mean(axis=0)
            m0, kappa = family.mu[c] + family.shift, family.kappa[c]
            d = mean - m0
            psi = family.psi[c] + (own - mean).T @ (own - mean)
            psi = psi + kappa * k / (kappa + k) * np.outer(d, d)
            sigma[s, c] = stats.invwishart.rvs(family.nu[c] + k, psi, random_state=rng)
            centre = (kappa * m0 + k * mean) / (kappa + k)
            mu[s, c] = rng.multivariate_normal(centre, sigma[s, c] / (kappa + k))
        for i in np.flatnonzero(missing.any(axis=1)):
            m, S = mu[s, y[i]], sigma[s, y[i]]
            a, b = np.flatnonzero(missing[i]), np.flatnonzero(~missing[i])
            K = S[np.ix_(a, b)] @ np.linalg.inv(S[np.ix_(b, b)])
            step = rng.multivariate_normal(np.zeros(len(a)), S[np.ix_(a, a)] - K @ S[np.ix_(b, a)])
            full[i, a] = m[a] + K @ (full[i, b] - m[b]) + step
        cells[s] = full[missing]
    return {"mu": mu, "Sigma": sigma}, cells


@pytest.fixture(scope="module")
def gappy() -> Any:
    X, y = incomplete()
    return bg.QuadraticDiscriminant().fit(X, y, inference="nuts", **FEW)


@pytest.mark.slow
def test_missing_cells_agree_with_data_augmentation(gappy):
    X, y = incomplete()
    reference, cells = gibbs(gappy.prior_, X, y, 12_000)
    thin = slice(200, None, 5)  # hardly correlated any more
    z = z_scores(gappy, {k: v[thin] for k, v in reference.items()})
    assert np.abs(z).max() < 4.5, z
    imputed = gappy.posterior_["posterior_predictive"]["imputed"]
    row, column = np.nonzero(np.isnan(X))
    assert imputed["row"].values.tolist() == row.tolist()
    assert imputed["column"].values.tolist() == [f"x{j}" for j in column]
    z = compare(imputed.values, cells[thin]).z
    assert np.abs(z).max() < 4.5, z


@pytest.mark.slow
def test_the_class_weights_stay_exact_where_all_labels_are_known(gappy):
    X, _ = incomplete()
    table = gappy.predict_monte_carlo(X[:4], class_prior=[0.5, 0.5])  # 13/26 each
    np.testing.assert_allclose(gappy.predict_proba(X[:4]), table["probability"].values)
    assert gappy.n_unlabelled_ == 0
    again = gappy.predict_monte_carlo(X[:4], gappy.posterior_, class_prior=[0.5, 0.5])
    np.testing.assert_array_equal(again["mcse"], table["mcse"])


@pytest.mark.slow
def test_missing_cells_and_labels_at_once_in_a_data_frame(tmp_path):
    X, y = incomplete()
    frame = pd.DataFrame(X, columns=["length", "width"])
    labels = pd.Series(np.where(y, "b", "a"), dtype=object)
    labels[::4] = None
    clf = bg.LinearDiscriminant().fit(
        frame, labels, sample_weight=np.where(np.arange(24) == 5, 0, 1), inference="nuts", **FEW
    )
    group = clf.posterior_["posterior_predictive"]
    assert group["imputed_label"]["unlabelled_row"].values.tolist() == list(range(0, 24, 4))
    assert 5 not in group["imputed"]["row"]
    assert set(group["imputed"]["column"].values) == {"length", "width"}
    clf.save(tmp_path / "model.nc")
    again = bg.load(tmp_path / "model.nc")
    np.testing.assert_array_equal(again.predict_proba(frame), clf.predict_proba(frame))
    assert clf.predict(frame).shape == (24,)


def test_attributes_without_a_closed_form_are_told_by_hasattr():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), (np.arange(30) % 2).astype(float)
    y[0] = np.nan
    clf = bg.GaussianNB()
    with pytest.warns(bg.SamplingWarning):
        clf.fit(X, y, inference="gibbs", draws=20, chains=2, random_state=0, progressbar=False)
    for name in ("model_", "stats_", "log_evidence_", "coef_", "class_count_"):
        assert not hasattr(clf, name)
    with pytest.raises(NoClosedFormError, match="posterior_, as draws"):
        _ = clf.log_evidence_
