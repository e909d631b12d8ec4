"""Each dependency does what this package asks of it: one small use of each.

`make oldest` runs this file on the lowest versions that pyproject.toml allows, with all tests of
encodings and files: h5netcdf, pandas, narwhals, polars, pyarrow and dask are asked there.
"""

import subprocess
import sys

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax

import bayesgen as bg
from tests.estimators.test_against_scipy import log_class_weights, normal_inverse_gamma

pytestmark = [pytest.mark.slow, pytest.mark.oldest]

RNG = np.random.default_rng(12)
Y = np.repeat(["a", "b"], 20)
X = RNG.normal(size=(40, 2)) + (Y == "b")[:, None] * [1.0, 2.0]


@pytest.fixture(scope="module")
def clf():
    return bg.GaussianNB().fit(X, Y)


def test_scikit_learn():
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scores = cross_val_score(make_pipeline(StandardScaler(), bg.QuadraticDiscriminant()), X, Y)
    assert scores.mean() > 0.7


def test_numba():
    """Rows enough to be compiled for, against the density of each row in scipy."""
    n = 200_000
    rows = RNG.normal(size=(n, 3))
    y = (rows[:, 0] > 0.5).astype(int)
    clf = bg.GaussianNB(0.0, 1.0, 3.0, 1.0).fit(rows, y)
    log_x = normal_inverse_gamma(rows, y, rows[:5], 0.0, 1.0, 3.0, 1.0, "class")
    joint = log_x["posterior_predictive"] + log_class_weights(y)["posterior_predictive"]
    np.testing.assert_allclose(clf.predict_proba(rows)[:5], softmax(joint, axis=1), rtol=1e-8)


def test_arviz_intervals_and_summaries(clf):
    az = pytest.importorskip("arviz")
    ends = clf.predict_interval(X[:3], kind="hdi")["interval"]
    assert (ends.sel(bound="lower") < ends.sel(bound="upper")).all()
    assert len(az.summary(clf.posterior_, var_names=["pi"])) == 2
    assert (az.ess(clf.posterior_, var_names=["pi"])["pi"] > 500).all()


@pytest.mark.filterwarnings("ignore::bayesgen.inference.nuts.SamplingWarning")
def test_pymc_and_nutpie(clf):
    tree = clf.sample_posterior(draws=300, tune=300, chains=2, random_state=3, progressbar=False)
    pi = tree["posterior"]["pi"].to_numpy()[..., 0]
    exact = stats.beta(21, 21)
    assert pi.mean() == pytest.approx(exact.mean(), abs=6 * exact.std() / np.sqrt(300))


def test_matplotlib(clf):
    mpl = pytest.importorskip("matplotlib")
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    ax = bg.plots.plot_regions(clf, X, Y)
    ax.figure.canvas.draw()
    plt.close("all")


@pytest.mark.parametrize("command", [["--help"], ["fit", "--help"], ["demo"]])
def test_typer_and_rich(command):
    run = subprocess.run([sys.executable, "-m", "bayesgen", *command], capture_output=True)
    assert run.returncode == 0, run.stderr.decode()
    assert run.stdout
