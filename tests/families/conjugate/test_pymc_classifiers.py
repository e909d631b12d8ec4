"""PyMC models of classifiers with a closed form: their names, labels, class weights and draws.

That a family's graph is its closed form is asked by ``tests/laws/test_pymc.py``; what PyMC makes of
draws of the closed form, by ``tests/datatree/test_arviz.py``.
"""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import bayesgen as bg
from tests.graphs import PYTHON, named_at, pm

RNG = np.random.default_rng(0)
N, Y = 30, np.array(list("abc"))[np.arange(30) % 3]
CODES = np.arange(N) % 3


def _with_gaps(X: np.ndarray) -> np.ndarray:
    X = X.astype(object if X.dtype.kind in "US" else float)
    X[2, 1] = X[5, 0] = np.nan
    return X


COUNTS = RNG.poisson(2.0, (N, 4)).astype(float)
REALS = RNG.normal(size=(N, 3)) @ [[1.0, 0.8, 0.0], [0.0, 0.6, 0.0], [0.5, 0.0, 20.0]]
REALS += CODES[:, None] * [1.0, -0.5, 30.0] + [5.0, -3.0, 200.0]
CASES = {
    "bits": (bg.BernoulliNB(), _with_gaps((RNG.random((N, 4)) < 0.4).astype(float))),
    "reals": (bg.GaussianNB(), _with_gaps(REALS)),
    "mixed": (
        bg.MixedNB(),
        pd.DataFrame(_with_gaps(REALS)[:, :2], columns=["p", "q"]).assign(
            bit=RNG.random(N) < 0.4, word=RNG.choice(["u", "v", "w"], N)
        ),
    ),
}


# of others, for them to mend
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.mark.parametrize("name", CASES)
def test_rows_statistics_and_closed_form_have_one_log_density(name: str) -> None:
    """The class weights and labels included: differences between points are those in NumPy."""
    clf, X = CASES[name]
    encoded = clf.fit(X, Y).fitted_.read(X).encoded
    models = [clf.to_pymc(X, Y, likelihood="rows"), clf.to_pymc()]
    by_rows, by_statistics = (m.compile_logp(jacobian=False, mode=PYTHON) for m in models)
    names = list(clf.prior_.params)
    theta_of = named_at(models[0], names)
    start = models[0].initial_point(0)
    for _ in range(2):
        point = {name: v + 0.3 * RNG.normal(size=v.shape) for name, v in start.items()}
        log_p = float(by_rows(point))
        assert float(by_statistics(point)) == pytest.approx(log_p, rel=1e-9)
        theta = dict(zip(names, map(np.asarray, theta_of(point)), strict=True))
        rows = clf.prior_.family.log_likelihood(encoded, theta)[np.arange(N), CODES]
        prior = stats.dirichlet.logpdf(theta["pi"], clf.prior_.alpha)
        prior += clf.prior_.family.log_density({k: theta[k] for k in names if k != "pi"})
        expected = rows.sum() + np.log(theta["pi"])[CODES].sum() + prior
        assert log_p == pytest.approx(float(expected), rel=1e-9)


def test_ragged_theta_has_the_jacobian_of_pymc_s_simplex() -> None:
    """Row by row the density of the free coordinates is that of a Dirichlet of its own."""
    alpha = np.array([[[2.0, 1.0, 0.5], [1.0, 3.0, 0.0], [1.0, 0.0, 0.0]]])
    family = bg.families.DirichletCategorical(alpha, new=1.0)
    coords = {"class": ["a"], "feature": list("pqr"), "category": range(3)}
    with pm.Model(coords=coords) as ragged:
        family.to_pymc()
    with pm.Model() as parts:
        pm.Dirichlet("three", alpha[0, 0])
        pm.Dirichlet("two", alpha[0, 1, :2])
    ours, theirs = (m.compile_logp(mode=PYTHON) for m in (ragged, parts))
    for _ in range(3):
        z = RNG.normal(size=3)
        (value,) = ragged.value_vars
        assert ours({value.name: z[None]}) == pytest.approx(
            theirs({"three_simplex__": z[:2], "two_simplex__": z[2:]}), rel=1e-12
        )


def test_one_feature_of_a_multinomial_is_no_random_variable() -> None:
    model = bg.MultinomialNB().fit(COUNTS[:, :1], Y).to_pymc()
    assert [v.name for v in model.free_RVs] == ["pi"]
    assert [v.name for v in model.deterministics] == ["theta"]


@pytest.mark.parametrize("estimator", [bg.MultinomialNB, bg.PoissonNB])
def test_fractional_counts_go_through_statistics(estimator: Any) -> None:
    clf = estimator().fit(COUNTS + 0.25, Y)
    assert np.isfinite(clf.to_pymc().compile_logp(mode=PYTHON)(clf.to_pymc().initial_point()))
    with pytest.raises(ValueError, match="likelihood='statistics'"):
        clf.to_pymc(COUNTS + 0.25, Y, likelihood="rows")


def test_rows_that_the_model_has_no_place_for_are_refused() -> None:
    X = np.array([["p0", "q1"], ["p1", "q0"], ["p1", "q2"]])
    clf = bg.CategoricalNB(unseen="prior").fit(X, list("abc"))
    X[0, 0] = "p9"
    text = bg.MarkovNB(order=2, vocabulary="abcd").fit(["abab", "bab", "abc"], list("xyz"))
    linear = bg.LinearDiscriminant().fit(REALS, Y)
    for model, rows, y, message in (
        (clf, X, list("abc"), r"column 0 holds .* in row 0, which is not among"),
        (text, ["dab"], ["x"], "contexts that are not among the"),
        (linear, _with_gaps(REALS), Y, "missing cells"),
    ):
        with pytest.raises(ValueError, match=message):
            model.to_pymc(rows, y, likelihood="rows")
