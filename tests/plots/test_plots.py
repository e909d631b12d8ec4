"""Pictures hold the numbers that they are of: artists against the tables behind them."""

import sys

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.colors import to_hex, to_rgb
from scipy import stats

import bayesgen as bg
from bayesgen import plots
from bayesgen.checks.comparison import (
    DENSITIES,
    LEFT_OUT,
    NUTS,
    PARAMETERS,
    PROBABILITIES,
    STATISTICS,
    Scores,
    drawn,
    identity,
    table,
)
from bayesgen.checks.validate import Validation
from bayesgen.plots.models import reliability
from bayesgen.plots.style import CLASSES, INK, look, written_apart

LABELS = np.array(["ant", "bee", "cat"])


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    plt.close("all")


def make(n_classes):
    y = np.arange(30) % n_classes
    X = np.random.default_rng(1).normal(size=(30, 2)) + 1.5 * np.eye(3)[y][:, :2]
    frame = pd.DataFrame(X, columns=["length", "width"], index=[f"row {i}" for i in range(30)])
    return frame, LABELS[y]


@pytest.fixture(scope="module")
def two():
    X, y = make(2)
    return bg.GaussianNB().fit(X[:12], y[:12]), X, y


@pytest.fixture(scope="module")
def three():
    X, y = make(3)
    return bg.QuadraticDiscriminant().fit(X[:15], y[:15]), X, y


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = pd.DataFrame({"size": rng.normal(size=60) + 2 * y, "sex": rng.random(60) < 0.3 + 0.4 * y})
    X["place"] = rng.choice(["sea", "lake"], 60)
    X["place"] = X["place"].where(rng.random(60) < 0.8)  # some are missing
    return bg.MixedNB().fit(X, LABELS[y]), X, LABELS[y]


def marks(ax, marker):
    """Points drawn with a marker: (n, 2), in the order in which they were drawn."""
    lines = [line for line in ax.lines if line.get_marker() == marker]
    return np.concatenate([line.get_xydata() for line in lines])


def segments(ax, colours=CLASSES):
    """Intervals in a class's colour, (n, 2, 2)."""
    lines = [c for c in ax.collections if hasattr(c, "get_segments")]
    return np.array(
        [s for c in lines if to_hex(c.get_colors()[0]) in colours for s in c.get_segments()]
    )


def contours(ax, colour):
    sets = [c for c in ax.collections if type(c).__name__ == "QuadContourSet"]
    return [c for c in sets if to_hex(c.get_edgecolor()[0]) == colour]


def words(labels):
    return [text.get_text() for text in labels]


def legend(ax):
    return words(ax.get_legend().get_texts())


def heights(ax):
    return [bar.get_height() for bar in ax.patches]


# ------------------------------------------------------------------------------------ every one


def validation():
    """Six z-scores of ten beyond the threshold, and an identity that does not hold."""
    scores = [Scores(*np.array([[z, z + 1]] * 3), *np.ones((2, 2))) for z in (-5.0, -3, -1, 5, 7)]
    scores = dict(zip(STATISTICS, scores, strict=True))
    lines = [
        drawn(stage, name, ["a", "b"], scores, NUTS)
        for name, stage in (("p(y | x, D)", PROBABILITIES), ("mu", PARAMETERS))
    ]
    lines.append(identity(DENSITIES, "evidence", {"one": 1.0, "another": 2.0}))
    lines.append(identity(LEFT_OUT, "leave-one-out", {"one": 1.0, "another": 1.0}))
    run = {"estimator": "GaussianNB", "divergences": 0}
    return Validation(table(lines, 0.01), xr.DataTree(), 0.01, run)


PICTURES = {
    "class_probability": lambda clf, X, y: (clf, X[:4]),
    "comparison": lambda clf, X, y: (bg.compare_models({"a": clf, "b": clf}, X[:15], y[:15]),),
    "contributions": lambda clf, X, y: (clf, X[:4]),
    "densities": lambda clf, X, y: (clf, X, y),
    "effects": lambda clf, X, y: (clf, X, y),
    "regions": lambda clf, X, y: (clf, X, y),
    "reliability": lambda clf, X, y: (clf, X, y),
    "validation": lambda clf, X, y: (validation(),),
}
OPTIONS = {"effects": {"most": 1}, "regions": {"overlay": None}}


def draw(name, model, **options):
    ax = getattr(plots, f"plot_{name}")(*PICTURES[name](*model), **OPTIONS.get(name, {}), **options)
    return ax[0] if name == "effects" else ax


@pytest.mark.parametrize("name", [name.removeprefix("plot_") for name in plots.__all__])
def test_axes_in_axes_out(three, name, monkeypatch):
    _, (left, right) = plt.subplots(1, 2)
    before = dict(mpl.rcParams)
    assert draw(name, three, ax=right) is right
    assert not left.lines
    fresh = draw(name, three, figsize=(6.5, 4.5))
    assert fresh.figure is not right.figure
    assert fresh.figure.get_size_inches().tolist() == [6.5, 4.5]
    assert dict(mpl.rcParams) == before
    fresh.figure.canvas.draw()  # nothing fails, or warns, when it is drawn
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "bayesgen\[plots\]"'):
        draw(name, three)


@pytest.mark.parametrize("name", ["densities", "effects", "regions", "reliability"])
def test_labels_are_checked(three, name, monkeypatch):
    clf, X, y = three
    for expensive in ("predict_proba", "predict_interval", "predict_posterior"):
        monkeypatch.setattr(type(clf), expensive, None)  # not called before the check
    plot = getattr(plots, f"plot_{name}")
    with pytest.raises(ValueError, match="30 rows, but y has shape"):
        plot(clf, X, y[:-1])
    with pytest.raises(ValueError, match="'dog' is not a class"):
        plot(clf, X, ["dog", *y[1:]])
    with pytest.raises(TypeError, match="1 matplotlib Axes needed"):
        plot(clf, X, y, ax="here")
    with pytest.raises(ValueError, match="leave it out where ax is given"):
        plot(clf, X, y, figsize=(3, 2), ax=plt.subplots()[1])


# ------------------------------------------------------------------------ models, closed forms


def test_a_validation_has_causes_above_consequences():
    checked = validation()
    ax = plots.plot_validation(checked)
    assert words(ax.get_yticklabels()) == ["mu", "evidence (identity)", "p(y | x, D)"]
    failed = checked.failed()
    assert failed["variable"].tolist() == ["mu"] * 6 + ["evidence"] + ["p(y | x, D)"] * 6
    outside = np.concatenate([c.get_xydata() for c in ax.lines if c.get_color() == CLASSES[1]])
    np.testing.assert_allclose(outside[:, 1], [0] * 6 + [2] * 6)
    limit = checked.threshold
    z = np.clip(np.sort(failed["difference"].iloc[:6]), None, 1.7 * limit)
    np.testing.assert_allclose(np.sort(outside[:6, 0]), z)
    power = checked.power(0.5)
    assert power.index.tolist() == ["p(y | x, D)", "mu"]
    np.testing.assert_allclose(power["shift"], limit)


def test_plug_ins_are_compared_with_their_predictive(three):
    clf, X, y = three
    other = bg.GaussianNB(kappa0=9.0).fit(X, y)
    table = bg.compare_predictives({"one": clf, "two": other}, X, y)
    table["log_loss_diff"][1, 3] = np.inf
    table["log_loss_diff"][0, 2] = np.nan  # no such estimate: no line
    best, worse = table.model.values[table.log_loss.values[:, 0].argsort()]
    ax = plots.plot_comparison(table)
    lines = words(ax.get_yticklabels())
    assert (len(lines), lines[0], lines[-1]) == (
        6,
        f"{worse} less {best}",
        "two: maximum likelihood",
    )
    diff = table["log_loss_diff"].values[:, 1:].ravel()[[0, 2, 3, 4]]
    above = table["log_loss_above_best"].sel(model=worse).values[0]
    np.testing.assert_allclose(marks(ax, "o")[:, 0], [above, *diff, np.nan])
    wins = 100 * table["log_loss_diff_wins"].values[0, 1]
    assert f"the plug-in wins {wins:.0f} % of rows" in ax.texts[1].get_text()
    assert f"{worse} wins " in ax.texts[0].get_text()
    assert "∞ " in words(ax.texts)


@pytest.mark.parametrize("n", [2, 3])
def test_models_are_compared_with_the_best(two, n):
    clf, X, y = two
    models = [clf, bg.GaussianNB(variance="tied"), bg.GaussianNB(kappa0=9.0)][:n]
    compared = bg.compare_models(dict(zip("abc", models, strict=False)), X[:12], y[:12])
    table, ax = compared.table, plots.plot_comparison(compared)
    first = 1 if n == 2 else 0  # of two models, their difference alone
    gap, se = table["elpd_diff"].values[first:], table["dse"].values[first:]
    np.testing.assert_array_equal(marks(ax, "o"), np.column_stack([gap, np.arange(len(gap))]))
    np.testing.assert_allclose(segments(ax)[:, :, 0], np.column_stack([gap - se, gap + se]))
    names = table.model.values.tolist()
    assert words(ax.get_yticklabels()) == ([f"{names[1]} less {names[0]}"] if n == 2 else names)


# ---------------------------------------------------------------------------------------- rows


def test_class_probabilities_of_rows(two, three):
    clf, X, _ = two
    ax = plots.plot_class_probability(clf, X[:5], prob=0.8, kind="eti")
    table = clf.predict_interval(X[:5], 0.8, "eti")
    shown = segments(ax, CLASSES[1:2])
    np.testing.assert_allclose(shown[:, :, 0], table["interval"][:, 1])
    np.testing.assert_allclose(shown[:, 0, 1], np.arange(5))
    np.testing.assert_allclose(marks(ax, "D")[:, 0], clf.predict_proba(X[:5])[:, 1])
    mean = clf.predict_uncertainty(X[:5])["mean"][:, 1]
    np.testing.assert_allclose(marks(ax, "|")[:, 0], mean)
    assert words(ax.get_yticklabels()) == list(X.index[:5])
    assert ax.get_xlabel() == "p(bee | x)"
    assert "80 % of p(y | x, θ)" in legend(ax)
    assert ax.yaxis_inverted()
    clf, X, _ = three
    ax = plots.plot_class_probability(clf, X[:3], names=list("xyz"))
    np.testing.assert_allclose(marks(ax, "D")[:, 0], clf.predict_proba(X[:3]).T.ravel())
    assert legend(ax)[:3] == LABELS.tolist()
    assert words(ax.get_yticklabels()) == ["x", "y", "z"]


def test_contributions():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = pd.DataFrame(rng.normal(size=(60, 4)) + y[:, None], columns=["a", "b", "c", "d"])
    clf = bg.GaussianNB().fit(X, y)
    table = clf.explain(X[:3])
    ax = plots.plot_contributions(clf, X, row=2, most=3)
    terms = table["predictive"].values[2]
    order = np.argsort(-np.abs(terms))
    first = [f"{name} = {X[name][2]:.4g}" for name in X.columns[order[:3]]]
    assert words(ax.get_yticklabels()) == [*first, "1 other", "class weights"]
    shown = [*terms[order], table["predictive_intercept"].values[2]]
    np.testing.assert_allclose(marks(ax, "D")[:, 0], shown)
    total = clf.decision_function(X[2:3])[0]
    assert marks(ax, "D")[:, 0].sum() == pytest.approx(total)
    assert f"{total:+.1f} nats" in ax.get_title(loc="left")


def test_contributions_of_an_array_of_tokens():
    X, y = np.array([[0, 1], [0, 2], [1, 2], [2, 2]] * 3), [0, 1, 1, 0] * 3
    clf = bg.MarkovNB(order=1).fit(X, y)
    ax = plots.plot_contributions(clf, X, row=1)
    assert {*words(ax.get_yticklabels())[:-1]} == {*clf.explain(X[1:2])["feature"].values}


# ------------------------------------------------------------------------------------- regions


def test_regions_and_boundaries(three):
    clf, X, y = three
    ax = plots.plot_regions(clf, X, y, overlay=None, boundaries=["posterior_predictive", "map"])
    tint = ax.images[0].get_array()
    corners = pd.DataFrame(
        [[x, y] for x in ax.get_xlim() for y in ax.get_ylim()], columns=["length", "width"]
    )
    chosen = [to_rgb(CLASSES[LABELS.tolist().index(label)]) for label in clf.predict(corners)]
    shown = [tint[0, 0], tint[-1, 0], tint[0, -1], tint[-1, -1]]
    np.testing.assert_allclose(shown, 1 - 0.16 * (1 - np.array(chosen)))
    assert len(marks(ax, "o")) == 30
    rules = ["posterior predictive rule", "posterior mode (MAP) rule"]
    assert legend(ax) == [*LABELS, *rules, "lines hold 50 %, 90 %"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("length", "width")
    # on a boundary the two best classes are equally probable
    solid = [c for c in contours(ax, INK) if c.get_linestyle()[0][1] is None]
    points = np.concatenate([p.vertices for c in solid for p in c.get_paths() if len(p.vertices)])
    p = np.sort(clf.predict_proba(pd.DataFrame(points, columns=["length", "width"])), axis=1)
    np.testing.assert_allclose(p[:, 2], p[:, 1], atol=0.02)
    few = bg.QuadraticDiscriminant().fit(X[:6], y[:6])  # two rows a class: no estimate
    ax = plots.plot_regions(few, X, overlay=None, boundaries=["posterior_predictive", "mle"])
    assert legend(ax)[3:-1] == ["posterior predictive rule"]


def test_contours_hold_their_mass_and_the_overlay_is_epistemic_entropy(two):
    clf, X, _ = two
    ax = plots.plot_regions(clf, X)
    for k, c in enumerate(clf.classes_):
        (drawn,) = contours(ax, CLASSES[k])
        rows, _ = clf.simulate(4000, y=c, random_state=7)
        rows = pd.DataFrame(rows, columns=["length", "width"])
        density = clf.score_samples(rows, class_prior=np.eye(2)[k])
        share = [(density > level).mean() for level in drawn.levels]
        np.testing.assert_allclose(share, [0.9, 0.5], atol=0.03)
    shade = ax.images[1].get_array()
    gx, gy = (np.linspace(*ends, len(shade)) for ends in (ax.get_xlim(), ax.get_ylim()))
    i, j = [3, 20, 40, 60], [50, 30, 10, 64]
    rows = pd.DataFrame({"length": gx[j], "width": gy[i]})
    expected = clf.predict_uncertainty(rows)["epistemic"].values
    np.testing.assert_allclose(shade[i, j], expected, atol=0.08)
    assert ax.figure.axes[-1].get_xlabel() == "epistemic entropy [nats]"


# ------------------------------------------------------------------------- effects and densities


def test_effects_are_those_of_the_widest_range(mixed):
    clf, X, y = mixed
    panels = plots.plot_effects(clf, X, y, classes="ant", most=2)
    x, p = panels[0].lines[3].get_xydata().T
    typical = {name: X[name].mode()[0] for name in ("sex", "place")} | {"size": X["size"].median()}
    values = {"size": x, "sex": [False, True], "place": ["lake", "sea"]}
    along = {
        name: clf.predict_proba(pd.DataFrame(typical | {name: values[name]})[X.columns])[:, 0]
        for name in values
    }
    widest = sorted(along, key=lambda name: -np.ptp(along[name]))
    assert [ax.get_title(loc="left") for ax in panels] == widest[:2] == ["size", "sex"]
    np.testing.assert_allclose(p, along["size"])
    np.testing.assert_allclose(heights(panels[1]), along["sex"])


def test_density_of_a_real_column(mixed):
    clf, X, y = mixed
    ax = plots.plot_densities(clf, X, y, "size")
    curves = {line.get_label(): line for line in ax.lines}
    alone = bg.GaussianNB().fit(X[["size"]], y)
    for k, label in enumerate(LABELS[:2]):
        x, p = curves[label].get_xydata().T
        log_p = alone.score_samples(pd.DataFrame({"size": x}), class_prior=np.eye(2)[k])
        np.testing.assert_allclose(p, np.exp(log_p), rtol=1e-9)
        rows = np.concatenate([r.get_xdata() for r in ax.lines if r.get_color() == CLASSES[k]])
        assert set(X["size"][y == label]) <= set(rows)
    assert legend(ax) == ["ant", "bee", "middle 50 %", "middle 90 %", "rows"]


@pytest.mark.parametrize(
    ("feature", "names"), [("place", ["lake", "sea"]), ("sex", ["False", "True"])]
)
def test_density_of_categories(mixed, feature, names):
    clf, X, y = mixed
    ax = plots.plot_densities(clf, X, y, feature)
    p = np.reshape(heights(ax), (2, 2))  # class, category
    np.testing.assert_allclose(p.sum(axis=1), 1)
    cells = X[feature].dropna()
    mine = cells[y[cells.index] == "bee"].astype(str)
    count = np.array([(mine == name).sum() for name in names])
    np.testing.assert_allclose(p[1], (count + 1) / (count.sum() + 2))
    assert words(ax.get_xticklabels()) == names
    np.testing.assert_allclose(ax.lines[1].get_ydata(), count / count.sum())


def test_density_of_counts():
    counts, y = np.random.default_rng(0).poisson(3, (60, 2)), LABELS[np.arange(60) % 2]
    clf = bg.PoissonNB().fit(counts, y)
    ax = plots.plot_densities(clf, counts, feature=1, classes=["bee"])
    x, p = ax.lines[0].get_xydata().T
    np.testing.assert_array_equal(x, np.arange(counts[:, 1].max() + 1))
    total, prior = counts[y == "bee", 1].sum(), clf.prior_.family
    shape, rate = total + prior.shape[1, 1], 30 + prior.rate[1, 1]
    np.testing.assert_allclose(p, stats.nbinom.pmf(x, shape, rate / (rate + 1)), rtol=1e-9)


def test_density_of_bins(mixed):
    _, X, y = mixed
    X = X[["size", "sex"]]
    ax = plots.plot_densities(bg.TreeAugmentedNB(n_bins=3).fit(X, y), X, y)
    assert "simulated rows per class" in ax.get_title(loc="left")
    mcse = np.sqrt(0.25 / 10_000)
    seen = np.array([line.get_ydata() for line in ax.lines if len(line.get_ydata()) > 0])
    assert np.all(np.abs(np.reshape(heights(ax), (2, 3)) - seen) < 5 * mcse + 1 / 15)


@pytest.mark.filterwarnings("ignore:look at")  # columns of many categories
def test_many_categories_and_classes_stay_legible():
    """Names of 60 countries ran into each other and pushed the axes out of the figure."""
    i = np.arange(240)
    X = pd.DataFrame({"country": [f"country {k} of the world" for k in i % 60], "x": i % 7})
    clf = bg.MixedNB().fit(X, i % 15)
    ax = plots.plot_densities(clf, X, i % 15, "country", classes=[0, 3])
    rows = pd.DataFrame({"country": sorted(set(X["country"])), "x": np.nan})
    p = np.exp([clf.score_samples(rows, class_prior=np.eye(15)[k]) for k in (0, 3)])
    kept = rows["country"].isin(words(ax.get_xticklabels())).values
    np.testing.assert_allclose(marks(ax, "o")[:, 1].reshape(2, 40), p[:, kept])
    assert p[:, ~kept].max() <= p[:, kept].max(axis=0).min()
    assert "40 of 60 categories" in ax.get_xlabel()


# --------------------------------------------------------------------------------- reliability


def test_bins_of_equally_many_rows():
    rng = np.random.default_rng(3)
    p = rng.uniform(size=100)
    hit = rng.uniform(size=100) < p
    bins = reliability(p, hit, 5, 0.9)
    assert bins.size.tolist() == [20] * 5
    order = np.argsort(p).reshape(5, 20)
    k = hit[order].sum(axis=1)
    np.testing.assert_allclose(bins.predicted, p[order].mean(axis=1))
    np.testing.assert_allclose(bins.observed, k / 20)
    low, high = stats.beta(k + 0.5, 20 - k + 0.5).interval(0.9)
    np.testing.assert_allclose(bins.lower, np.where(k == 0, 0, low))
    np.testing.assert_allclose(bins.upper, np.where(k == 20, 1, high))


def test_equal_probabilities_share_a_bin():
    bins = reliability(np.repeat([0.0, 0.5, 1.0], 10), np.repeat([False, True], 15), 10, 0.9)
    assert bins.predicted.tolist() == bins.observed.tolist() == [0, 0.5, 1]
    assert (bins.lower[0], bins.upper[2]) == (0, 1)


@pytest.mark.parametrize(
    ("model", "classes", "of"),
    [("two", None, "bee"), ("three", None, "the most probable class"), ("three", "cat", "cat")],
)
def test_reliability_diagram(request, model, classes, of):
    clf, X, y = request.getfixturevalue(model)
    ax = plots.plot_reliability(clf, X, y, classes=classes, bins=3, prob=0.8)
    p = clf.predict_proba(X)
    if of in LABELS:
        bins = reliability(p[:, clf.classes_.tolist().index(of)], y == of, 3, 0.8)
    else:
        bins = reliability(p.max(axis=1), clf.predict(X) == y, 3, 0.8)
    np.testing.assert_allclose(marks(ax, "o"), np.column_stack([bins.predicted, bins.observed]))
    np.testing.assert_allclose(segments(ax)[:, :, 1], np.column_stack([bins.lower, bins.upper]))
    assert ax.get_xlabel() == f"predicted probability of {of}"
    assert "80 % interval" in ax.get_ylabel()


def test_reliability_of_several_and_of_pools(two):
    clf, X, y = two
    pool = bg.LogLinearPool([bg.GaussianNB()]).fit(X[:12], y[:12])
    plug_in = clf.predict_proba(X, method="map")
    ax = plots.plot_reliability({"naive": clf, "pool": pool, "plug-in": plug_in}, X, y, bins=3)
    assert legend(ax) == ["naive", "pool", "plug-in"]
    curves = [line for line in ax.lines if line.get_label() in legend(ax)]
    for k, p in enumerate((clf.predict_proba(X), pool.predict_proba(X), plug_in)):
        bins = reliability(p[:, 1], y == "bee", 3, 0.89)
        np.testing.assert_allclose(curves[k].get_ydata(), bins.observed)
        assert curves[k].get_color() == CLASSES[k]
    assert plots.plot_reliability({"plug-in": plug_in}, None, y).get_xlabel().endswith("bee")


# ------------------------------------------------------------------------------------- refusals


def test_no_two_classes_look_alike():
    assert len({(one.color, str(one.dashes), one.hatch) for one in map(look, range(32))}) == 32


def test_what_is_refused(two, three):
    clf, X, y = two
    one = bg.GaussianNB().fit(X[["length"]], y)
    counts = np.random.default_rng(0).poisson(3, (30, 2))
    pool, words = (
        m.fit(counts, y) for m in (bg.LogLinearPool([bg.GaussianNB()]), bg.MultinomialNB())
    )
    p, thirds = clf.predict_proba(X), bg.GaussianNB().fit(X, np.arange(30) % 3)
    for plot, arguments, options, error, match in (
        ("comparison", [clf.predict_uncertainty(X)], {}, TypeError, "got a ResultTable of total, "),
        ("comparison", [[1.0]], {}, TypeError, "bg.compare_models.*got a list$"),
        ("validation", [[1.0]], {}, TypeError, "what bg.validate returns, got a list"),
        ("contributions", [clf, X], {"row": 30}, ValueError, "among the 30 of X, got 30"),
        ("class_probability", [clf, pd.concat([X, X, X])], {}, ValueError, "at most 60"),
        ("class_probability", [clf, X[:3]], {"names": "ab"}, ValueError, "but there are 3 rows"),
        ("class_probability", [clf, X], {"classes": ["dog"]}, ValueError, "'dog' is not a class"),
        ("densities", [clf, X[:0]], {}, ValueError, "X has no rows"),
        ("densities", [clf, X[["width"]]], {}, ValueError, "X lacks the columns 'length'"),
        ("densities", [pool, counts], {}, TypeError, "LogLinearPool"),
        ("densities", [words, counts], {}, TypeError, "given the total of their row"),
        ("effects", [clf, X], {"at": [1.0]}, ValueError, "at has 1 cells, but there are 2"),
        ("regions", [clf, X], {"overlay": "fog"}, ValueError, "overlay must be"),
        ("regions", [one, X[["length"]]], {}, ValueError, "fit on two columns"),
        ("reliability", three, {"bins": 0}, ValueError, "bins must be an integer"),
        ("reliability", [{}, X, y], {}, ValueError, "nothing to draw"),
        ("reliability", [{"a": p[:3]}, X, y], {}, ValueError, r"\(30, 2\).* got shape \(3, 2\)"),
        ("reliability", [{"a": clf, "b": thirds}, X, y], {}, ValueError, "the classes of 'a' are"),
        (
            "reliability",
            [pool, counts, y],
            {"method": "map"},
            ValueError,
            "a pool is of predictives",
        ),
    ):
        with pytest.raises(error, match=match):
            getattr(plots, f"plot_{plot}")(*arguments, **options)
    sequences = bg.MarkovNB().fit(["ab", "ba", "cc"], [0, 0, 1])
    for name in ("effects", "densities"):
        with pytest.raises(TypeError, match="reads sequences"):
            getattr(plots, f"plot_{name}")(sequences, ["ab"])


def test_long_names_lose_their_middle_unless_they_would_look_alike():
    long, short = "a name that is long, and goes on and on", "b"
    assert written_apart([long, short], 20) == ["a name th...n and on", short]
    names = [f"a name that is long, number {i}, and goes on and on" for i in (1, 10, 2)]
    assert [" ".join(text.split()) for text in written_apart(names, 20)] == names
