"""Sampling by NUTS: one program a shape, weighted rows, refusals, what is said of chains."""

from collections import deque
from typing import Any

import numpy as np
import pytest
import xarray as xr

import bayesgen as bg
from bayesgen.inference import nuts, trees
from bayesgen.inference.nuts import SamplingError, refuse_incomplete
from tests.averages import averages
from tests.graphs import PYTHON, pm, pytensor

RNG = np.random.default_rng(2)
Y = np.array(list("abcabcabcabcabcabc"))
X = RNG.normal(size=(18, 2)) + (Y == "b")[:, None]
BITS = (X > 0).astype(int)
FEW = {"draws": 150, "tune": 200, "chains": 2, "random_state": 1, "progressbar": False}


# of others, for them to mend
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def graph(clf: Any, X: Any, y: Any) -> Any:
    return clf.fit(X, y).to_pymc()


def same_program(first: Any, second: Any) -> bool:
    """Whether a compiled model of the one would serve the other; nothing is compiled."""
    kept = deque(maxlen=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nuts, "KEPT", kept)
        patch.setattr("nutpie.compile_pymc_model", lambda model: Program(model))
        nuts.compiled(first, False)
        program = nuts.compiled(second, False).program
    if program.data is not None:
        for name, value in program.data.items():
            np.testing.assert_array_equal(value, second[name].get_value())
    return program.data is not None


class Program:
    """In the place of what nutpie compiles."""

    def __init__(self, model: Any, data: Any = None) -> None:
        self.model, self.data = model, data
        self.shared_var_keys = {v: v.name for v in model.data_vars}

    def with_data(self, **data: Any) -> "Program":
        return Program(self.model, data)


# ------------------------------------------------------------------------- one program a shape

SAME = {
    "categorical": (bg.CategoricalNB, np.stack([BITS[:, 0], np.arange(18) % 3], axis=1)),
    "Gaussian": (bg.GaussianNB, X),
    "quadratic": (bg.QuadraticDiscriminant, X),
}


@pytest.mark.parametrize("name", SAME)
def test_other_rows_and_hyperparameters_are_the_same_program(name):
    estimator, rows = SAME[name]
    first = graph(estimator(), rows, Y)
    assert same_program(first, graph(estimator(), rows[6:], Y[6:]))
    assert same_program(first, graph(estimator(class_alpha=2.5), rows, Y))
    labels = np.where(Y == "a", "first", Y)  # other names of as many classes
    assert same_program(first, graph(estimator(), rows, labels))


def test_another_shape_or_prior_of_another_kind_is_another_program():
    first = graph(bg.GaussianNB(), X, Y)
    assert not same_program(first, graph(bg.GaussianNB(), X[:, :1], Y))
    assert not same_program(first, graph(bg.GaussianNB(), X[Y != "c"], Y[Y != "c"]))
    assert not same_program(first, graph(bg.GaussianNB(variance="tied"), X, Y))
    assert not same_program(first, graph(bg.QuadraticDiscriminant(), X, Y))
    ragged = np.stack([BITS[:, 0], np.arange(18) % 3], axis=1)
    other = np.stack([np.arange(18) % 3, BITS[:, 0]], axis=1)  # as many cells in other places
    first = graph(bg.CategoricalNB(), ragged, Y)
    assert not same_program(first, graph(bg.CategoricalNB(), other, Y))


def test_a_constant_in_the_graph_tells_programs_apart():
    def model(constant: float) -> Any:
        with pm.Model() as graph:
            data = pm.Data("d", np.ones(2))
            z = pm.Normal("z", 0, 1, shape=2)
            pm.Potential("p", (constant * data * z).sum())
        return graph

    assert same_program(model(2.0), model(2.0))
    assert not same_program(model(2.0), model(3.0))


# ------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nuts_sampler": "emcee"}, "nuts_sampler must be one of 'nutpie', 'pymc', 'numpyro',"),
        ({"draws": 0}, "draws must be an integer >= 1, got 0"),
        ({"draws": 10.5}, "draws must be an integer"),
        ({"tune": -1}, "tune must be an integer >= 0"),
        ({"chains": 0}, "chains must be an integer >= 1"),
        ({"X": X}, "X and y must be given together"),
        ({"groups": ["posterior"]}, "groups must be of prior,"),
        ({"groups": ["log_likelihood"]}, "'log_likelihood' is about rows: give X and y"),
    ],
)
def test_arguments_are_checked_before_any_work(options, message, monkeypatch):
    monkeypatch.setattr(nuts, "compiled", lambda *_: pytest.fail("compiled"))
    with pytest.raises(ValueError, match=message):
        bg.GaussianNB().fit(X, Y).sample_posterior(**(FEW | options))


ROWS, GAPS = [[1.0], [2.0], [4.0]], [[1.0, np.nan], [2.0, 1.0], [0.0, 3.0]]


@pytest.mark.parametrize(
    ("make", "X", "options", "error", "message"),
    [
        (bg.GaussianNB, ROWS, {"draws": 100}, TypeError, "got draws: options of NUTS are for"),
        (bg.StudentTNB, ROWS, {"draws": 0}, ValueError, "draws must be an integer"),
        (bg.QuadraticDiscriminant, GAPS, {}, ValueError, r"have no closed form.*drop or impute"),
    ],
)
def test_arguments_of_fit(make, X, options, error, message):
    with pytest.raises(error, match=message):
        make().fit(X, ["a", "b", "b"], **options)


def test_one_class_has_one_weight():
    model = bg.GaussianNB().fit(X, np.zeros(18)).to_pymc()
    assert "pi" in {v.name for v in model.deterministics}
    np.testing.assert_array_equal(model["pi"].eval(), [1.0])


def test_nothing_to_sample():
    with pm.Model() as model:
        pm.Data("d", np.ones(2))
    with pytest.raises(ValueError, match="no free variable"):
        nuts.sample(model)


# ------------------------------------------------------------------------------------ sampling


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayesgen.inference.nuts.SamplingWarning")
def test_one_compilation_serves_other_rows(monkeypatch, capsys):
    import nutpie

    monkeypatch.setattr(nuts, "KEPT", deque(maxlen=4))  # what other tests have left
    clf = bg.GaussianNB().fit(X, Y)
    tree = clf.sample_posterior(**(FEW | {"progressbar": True}))
    assert "compiling the model" in capsys.readouterr().err
    assert isinstance(tree, xr.DataTree)
    assert tree.attrs["route"] == "nuts"
    assert tree.attrs["seed"] == 1
    exact = clf.posterior_
    assert set(tree.children) == {*exact.children, "sample_stats"}
    for name, variable in exact["posterior"].data_vars.items():
        mine = tree["posterior"][name]
        assert mine.dims == variable.dims
        for dim in variable.dims[2:]:
            assert mine[dim].values.tolist() == variable[dim].values.tolist()
    stats = tree["sample_stats"]
    assert {"diverging", "tree_depth", "step_size", "lp", "energy"} <= set(stats.data_vars)
    assert stats["diverging"].dims == ("chain", "draw")

    monkeypatch.setattr(nutpie, "compile_pymc_model", lambda *_, **__: pytest.fail("compiled"))
    moved = bg.GaussianNB().fit(1e3 * X + 1e4, Y)
    again = moved.sample_posterior(**FEW)
    exact = moved.posterior_["posterior"]
    for name in ("mu", "sigma2"):
        mine, theirs = again["posterior"][name], exact[name]
        spread = theirs.std(("chain", "draw"))
        gap = (mine.mean(("chain", "draw")) - theirs.mean(("chain", "draw"))) / spread
        assert float(np.abs(gap).max()) < 0.5  # not the first rows' posterior by any means
    for dtype in (np.uint8, np.int16):  # labels of any type
        labels = np.arange(18).astype(dtype) % 3
        typed = bg.GaussianNB().fit(X, labels).sample_posterior(**FEW)
        assert typed["posterior"]["class"].values.tolist() == [0, 1, 2]
    # and back: the first data are not stuck either
    first = bg.GaussianNB().fit(X, Y).sample_posterior(**FEW)["posterior"]
    xr.testing.assert_equal(first["mu"], tree["posterior"]["mu"])


def test_a_sampler_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(nuts, "find_spec", lambda _: None)
    with pytest.raises(ImportError, match="pip install numpyro"):
        bg.GaussianNB().fit(X, Y).sample_posterior(**(FEW | {"nuts_sampler": "numpyro"}))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayesgen.inference.nuts.SamplingWarning")
@pytest.mark.parametrize("sampler", ["pymc", "numpyro"])
def test_samplers_of_pymc_with_groups_of_rows(sampler):
    pytest.importorskip(sampler)
    clf = bg.BernoulliNB().fit(BITS, Y)
    tree = clf.sample_posterior(
        **(FEW | {"nuts_sampler": sampler, "draws": 400}),
        X=BITS,
        y=Y,
        groups=["prior_predictive", "posterior_predictive", "log_likelihood", "log_prior", "prior"],
    )
    assert tree.attrs["sampler"] == sampler
    assert tree["posterior"]["theta"].dims == ("chain", "draw", "class", "feature")
    assert tree["posterior"]["class"].values.tolist() == ["a", "b", "c"]
    assert tree["log_likelihood"]["joint"].shape == (2, 400, 18)
    assert tree["observed_data"]["label"].values.tolist() == [0, 1, 2] * 6
    mean = tree["posterior"]["theta"].mean(("chain", "draw")).values
    np.testing.assert_allclose(mean, clf.model_.family.mean()["theta"], atol=0.04)
    means = averages(clf.with_posterior(tree), BITS)
    z = (means.probability - clf.predict_proba(BITS)) / means.mcse
    assert np.abs(z).max() < 4.5


# ------------------------------------------------------------------------------ incomplete draws


def test_the_chain_and_its_number_of_draws_are_named():
    draws = {"pi": np.ones((3, 10, 2)), "mu": np.ones((3, 10, 2, 2))}
    refuse_incomplete(draws, 3, 10, "NUTS")
    refuse_incomplete({"k": np.ones((3, 10), dtype=int)}, 3, 10, "NUTS")
    draws["mu"][1, 7:] = np.nan
    with pytest.raises(SamplingError, match="NUTS: chain 1 has 7 finite of 10 draws of 'mu'"):
        refuse_incomplete(draws, 3, 10, "NUTS")
    for missing in ((3, 20), (4, 10)):
        with pytest.raises(KeyboardInterrupt, match="NUTS was interrupted"):
            refuse_incomplete(draws, *missing, "NUTS")


def dataset(n_chains: int, n_draws: int, nan_from: int | None = None) -> xr.Dataset:
    """Draws of a `GaussianNB`, as a sampler returns them."""
    shapes = {"pi": ("class",), "mu": ("class", "feature"), "sigma2": ("class", "feature")}
    draws = xr.Dataset()
    for name, dims in shapes.items():
        value = np.full((n_chains, n_draws, *[2 for _ in dims]), 0.5)
        if nan_from is not None:
            value[-1, nan_from:] = np.nan
        draws[name] = (("chain", "draw", *dims), value)
    return draws


STUBS = {
    "short": dataset(2, 30),
    "padded": dataset(2, 50, nan_from=20),
    "fewer chains": dataset(1, 50),
}


@pytest.mark.parametrize("sampler", ["nutpie", "pymc"])
@pytest.mark.parametrize("kind", STUBS)
def test_missing_draws_are_an_interrupt_and_change_nothing(kind, sampler, monkeypatch):
    tree = xr.DataTree.from_dict({"posterior": STUBS[kind], "sample_stats": xr.Dataset()})
    monkeypatch.setattr(nuts, f"_by_{sampler}", lambda *_, **__: tree)
    clf = bg.GaussianNB().fit(X, Y == "b")
    before, probability = clf.__dict__.copy(), clf.predict_proba(X)
    options = {"draws": 50, "chains": 2, "nuts_sampler": sampler, "progressbar": False}
    with pytest.raises(KeyboardInterrupt, match=rf"NUTS \({sampler}\)"):
        clf.sample_posterior(**options)
    assert clf.__dict__ == before
    np.testing.assert_array_equal(clf.predict_proba(X), probability)


# ------------------------------------------------------------------------------ weighted rows

CODES = np.arange(18) % 2
WEIGHED = {
    "student": (bg.StudentTNB(), X),
    "counts": (bg.NegativeBinomialNB(), RNG.poisson(3.0, (18, 2)).astype(float)),
    "regression": (bg.BayesianLogisticRegression(), X),
}


def value(tensor: Any, model: Any, theta: dict[str, np.ndarray]) -> Any:
    """A tensor of a model as a function of the parameters themselves."""
    inputs = [model[name] for name in theta]
    run = pytensor.function(inputs, tensor, mode=PYTHON, on_unused_input="ignore")
    return run(*theta.values())


@pytest.mark.parametrize("case", WEIGHED)
def test_weights_multiply_the_log_likelihood_of_rows(case):
    clf, X = WEIGHED[case]
    weight = np.arange(18) / 10 + 0.1
    fitted, rows = clf.__bayesgen_learner__()._undrawn(X, CODES, weight)
    prior = fitted.posterior.prior
    model = trees.graph_of_rows(prior, rows, fitted.coords)
    (weighted,) = model.potentials
    for seed in range(3):
        theta = nuts.draw_prior(prior.to_pymc(fitted.coords), prior.params, 1, seed)
        one = {name: draws[0] for name, draws in theta.items()}
        joint = prior.family.log_likelihood(rows.X, one)
        if prior.generative:
            joint = joint + np.log(one["pi"])
        else:
            joint = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
        expected = weight @ joint[np.arange(18), CODES]
        log_p = value(weighted, model, one)
        np.testing.assert_allclose(log_p, expected, rtol=1e-8)


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
    diagnosis = nuts.warn_unless_sound(*chains())
    assert diagnosis.complaints() == []
    assert diagnosis.r_hat < 1.01
    assert diagnosis.ess > 1500


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
    variables = {"x": (("chain", "draw"), x), "constant": (("chain", "draw"), constant)}
    return xr.Dataset(variables), xr.Dataset()


_X = np.random.default_rng(0).normal(size=(4, 1000))


@pytest.mark.parametrize(
    "x",
    [
        np.where(np.arange(4)[:, None] == 2, 0.7, _X),
        np.zeros((4, 1000)),
        np.repeat([[0.0], [1.0]], 1000, axis=1),
    ],
    ids=["one stands still", "all at one place", "each at its place"],
)
def test_chains_that_do_not_move(x):
    with pytest.warns(nuts.SamplingWarning, match="R-hat of .* the chains disagree"):
        diagnosis = nuts.warn_unless_sound(*draws_of(x))
    assert diagnosis.attributes()["verdict"] != "sound"
