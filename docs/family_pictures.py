"""The picture of each classifier's page. Nothing is sampled: densities and priors must do."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import special, stats

import bayesgen as bg
from bayesgen import plots
from bayesgen.datasets import load_languages, load_penguins
from bayesgen.plots.style import colour

INK, GREY = "#22272e", "#8a939d"
BILL = ["bill_length_mm", "bill_depth_mm"]


def draw(name: str) -> None:
    """Draw the picture of a classifier into a new figure."""
    style = {
        "axes.spines.top": False,
        "axes.spines.right": False,
        "figure.constrained_layout.use": True,
    }
    with plt.rc_context(style):
        globals()[f"_{name}"]()


def _axes(width: float = 6.4, height: float = 3.4, columns: int = 1):
    return plt.subplots(1, columns, figsize=(width, height))[1]


def _penguins(columns, each):
    """(first `each` birds of each species, their species, the other birds, theirs)."""
    X, y = load_penguins()
    X = X[columns].dropna()
    y = y[X.index]
    few = y.groupby(y).head(each).index
    return X.loc[few], y[few], X.drop(few), y.drop(few)


def _BernoulliNB():
    X = np.array([[1, 1]] + 4 * [[1, 0]] + 4 * [[0, 1]] + 4 * [[0, 0]])
    clf = bg.BernoulliNB().fit(X, [1] + 12 * [2])
    draws = clf.predict_posterior([[1, 1]], draws=4000, random_state=0)
    rho = draws["predictions"].dataset["class_probability"].sel({"class": 1}).to_numpy().ravel()
    ax = _axes()
    ax.hist(rho, bins=50, density=True, color=colour(0), alpha=0.35)
    for value, text, height in (
        (clf.predict_proba([[1, 1]])[0, 0], "predictive .349", 2.9),
        (clf.predict_proba([[1, 1]], method="mle")[0, 0], "maximum likelihood 3/7", 2.5),
    ):
        ax.axvline(value, color=INK, lw=1.5)
        ax.text(value + 0.01, height, text, color=INK)
    ax.set(
        xlabel="p(class 1 | x = (1, 1), θ)", ylabel="posterior density", ylim=(0, 3.2), xlim=(0, 1)
    )


def _CategoricalNB():
    X, y, _, _ = _penguins(["island"], 4)
    clf = bg.CategoricalNB(categories=[["Biscoe", "Dream", "Torgersen"]]).fit(X, y)
    islands = list(clf.categories_[0])
    ax = _axes()
    grid = pd.DataFrame({"island": islands})
    for c, name in enumerate(clf.classes_):
        p = np.exp(clf.score_samples(grid, class_prior=np.eye(3)[c]))
        at = np.arange(3) + (c - 1) * 0.27
        ax.bar(at, p, 0.25, color=colour(c), label=name)
        ax.plot(
            at, [np.mean(X.loc[y == name, "island"] == i) for i in islands], "o", color=INK, ms=4
        )
    ax.set_xticks(range(3), islands)
    ax.set(ylabel="p(island | species, D)", ylim=(0, 1.05))
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))


def _MultinomialNB():
    clf = bg.MultinomialNB().fit([[1, 0], [0, 1]], ["a", "b"])
    times = np.arange(13)
    ax = _axes()
    for method, line, text in (
        ("posterior_mean", "--", "plug-in of the posterior mean"),
        ("posterior_predictive", "-", "posterior predictive"),
    ):
        p = clf.predict_proba([[k, 0] for k in times], method=method)[:, 0]
        ax.plot(times, p, line, marker="o", ms=4, color=INK if line == "-" else GREY)
        ax.text(12.2, p[-1], text, va="center", color=INK if line == "-" else GREY)
    ax.set(
        xlabel="times that the document repeats word 1",
        ylabel="p(class a | document)",
        xlim=(0, 18),
    )
    ax.set_xticks(times[::2])


def _PoissonNB():
    clf = bg.PoissonNB(shape=1.0, rate=0.25).fit([[3], [4], [9], [11]], list("aabb"))
    x = np.arange(0, 16)
    p = np.exp(clf.score_samples(x[:, None], class_prior=[1, 0]))
    plug_in = np.exp(clf.score_samples(x[:, None], "mle", class_prior=[1, 0]))
    ax = _axes()
    ax.bar(x, p, 0.8, color=colour(0), alpha=0.6, label="predictive (negative binomial)")
    ax.plot(x, plug_in, "o--", color=INK, ms=4, label="plug-in (Poisson)")
    ax.set(xlabel="count", ylabel="p(count | class, D)")
    ax.legend(frameon=False)


def _GaussianNB():
    X, y, _, _ = _penguins(["bill_length_mm"], 4)
    two = y.isin(["Adelie", "Chinstrap"])
    clf = bg.GaussianNB().fit(X[two], y[two])
    grid = pd.DataFrame({"bill_length_mm": np.linspace(28, 63, 500)})
    ax = _axes()
    for c, name in enumerate(clf.classes_):
        for method, line in (("posterior_predictive", "-"), ("mle", "--")):
            p = np.exp(clf.score_samples(grid, method, class_prior=np.eye(2)[c]))
            ax.plot(grid["bill_length_mm"], p, line, color=colour(c))
        birds = X.loc[y == name, "bill_length_mm"]
        ax.plot(birds, 0 * birds, "|", ms=16, mew=2, color=colour(c), clip_on=False)
        ax.text(birds.mean(), 1.03 * p.max(), name, color=colour(c), ha="center", weight="bold")
    ax.set(xlabel="bill length [mm]", ylabel="p(x | species)", ylim=(0, None))


def _MixedNB():
    X, y = load_penguins()
    test = np.arange(len(X)) % 3 == 2
    clf = bg.MixedNB().fit(X[~test], y[~test])
    bird = X.loc[[332]]
    plots.plot_contributions(clf, bird, ax=_axes(7.0))


def _discriminant(clf, boundaries):
    X, y, _, _ = _penguins(BILL, 8)
    plots.plot_regions(clf.fit(X, y), X, y, boundaries=boundaries, ax=_axes(6.4, 4.6))


def _LinearDiscriminant():
    _discriminant(bg.LinearDiscriminant(), ["posterior_predictive"])


def _QuadraticDiscriminant():
    _discriminant(bg.QuadraticDiscriminant(), ["posterior_predictive", "mle"])


def _MarkovNB():
    X, y = load_languages()
    known = y.isin(["ita", "spa", "fra", "eng"])
    X, y = X[known], y[known]
    few = y.groupby(y).head(2).index
    clf = bg.MarkovNB(order=2).fit(X[few], y[few])
    text = X[y == "ita"].iloc[5]
    read = np.arange(1, 61)
    p = clf.predict_proba([text[:k] for k in read])
    ax = _axes()
    for c, name in enumerate(clf.classes_):
        ax.plot(read, p[:, c], color=colour(c), label=name)
    ax.set(xlabel=f"characters read of “{text[:36]}…”", ylabel="p(language | characters)")
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))


def _TreeAugmentedNB():
    X, y = load_penguins()
    X = X.select_dtypes("number").dropna()
    clf = bg.TreeAugmentedNB().fit(X, y[X.index])
    p = clf.edge_probabilities()["probability"].sel({"class": "Gentoo"}).to_numpy()
    names = [name.rsplit("_", 1)[0].replace("_", " ") for name in X]
    ax = _axes(5.4, 4.2)
    image = ax.imshow(p, vmin=0, vmax=1, cmap="Blues")
    ax.set_xticks(range(4), names, rotation=30, ha="right")
    ax.set_yticks(range(4), names)
    for (i, j), value in np.ndenumerate(p):
        if i != j:
            ax.text(
                j,
                i,
                f"{value:.2f}",
                ha="center",
                va="center",
                color="white" if value > 0.6 else INK,
            )
    ax.spines[:].set_visible(False)
    ax.figure.colorbar(image, label="probability of an edge")


def _MetaTreeForest():
    rng = np.random.default_rng(0)
    X = rng.random((1600, 5))
    parity = (X[:, :3] > 0.5).sum(axis=1) % 2
    ax = _axes(5.6)
    sizes = [50, 100, 200, 400, 600]
    for k, flipped in enumerate((0.0, 0.1)):
        y = (parity + (rng.random(1600) < flipped)) % 2
        for make, line in ((bg.MetaTreeForest, "o-"), (bg.QuadraticDiscriminant, "s:")):
            loss = []
            for n in sizes:
                log_p = make().fit(X[:n], y[:n]).predict_log_proba(X[600:])
                loss.append(-log_p[np.arange(1000), y[600:]].mean())
            label = f"{make.__name__}, {flipped:.0%} flipped"
            ax.plot(sizes, loss, line, color=colour(k), label=label)
    ax.set(xlabel="training rows", ylabel="log loss [nats]", ylim=(0, None))
    ax.legend(frameon=False, fontsize="small")


def _LogLinearPool():
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    test = np.arange(len(y)) % 3 == 2
    naive = bg.GaussianNB().fit(X[~test], y[~test])
    pool = bg.LogLinearPool([bg.GaussianNB()]).fit(X[~test], y[~test])
    axes = _axes(7.2, 3.4, 2)
    for ax, clf, name in zip(
        axes, (naive, pool), ("GaussianNB", "LogLinearPool([GaussianNB()])"), strict=True
    ):
        p = clf.predict_proba(X[test])[:, 1]
        for label in (0, 1):
            ax.hist(p[y[test] == label], np.linspace(0, 1, 21), color=colour(label), alpha=0.55)
        loss = -clf.predict_log_proba(X[test])[np.arange(test.sum()), y[test]].mean()
        ax.set(title=f"{name}\nlog loss {loss:.2f}", xlabel="p(benign | x)", yscale="log")
    axes[0].set_ylabel("held-out rows")


def _StudentTNB():
    x = np.linspace(-8, 8, 400)
    ax = _axes()
    ax.plot(x, stats.t.logpdf(x, 4), color=colour(0))
    ax.plot(x, stats.norm.logpdf(x), "--", color=INK)
    ax.text(5.6, -5.4, "Student t, ν = 4", color=colour(0))
    ax.text(3.4, -14, "Normal", color=INK)
    ax.set(xlabel="(x − μ) / σ", ylabel="log density", ylim=(-22, 0))


def _NegativeBinomialNB():
    x = np.arange(0, 21)
    ax = _axes()
    ax.bar(
        x,
        stats.nbinom.pmf(x, 4.0, 0.5),
        0.8,
        color=colour(0),
        alpha=0.6,
        label="negative binomial, δ = 1",
    )
    ax.plot(x, stats.poisson.pmf(x, 4.0), "o--", color=INK, ms=4, label="Poisson")
    ax.set(xlabel="count", ylabel="probability")
    ax.legend(frameon=False)


def _HierarchicalBernoulliNB():
    rng = np.random.default_rng(0)
    axes = _axes(6.8, 3.6, 2)
    mu = rng.normal(-1.5, 1.2, 300)
    for ax, tau in zip(axes, (0.2, 1.5), strict=True):
        theta = special.expit(mu[:, None] + tau * rng.normal(size=(300, 2)))
        ax.plot([0, 1], [0, 1], color=GREY, lw=0.8)
        ax.plot(*theta.T, "o", ms=3.5, color=colour(0), alpha=0.6, mew=0)
        ax.set(title=f"τ = {tau}", xlabel="θ of class 1", aspect="equal")
    axes[0].set_ylabel("θ of class 2")


def _MixtureDiscriminant():
    x = np.linspace(-4.5, 6.5, 200)
    grid = np.stack(np.meshgrid(x, x[::2]), axis=-1)
    two = 0.6 * stats.multivariate_normal([-1.5, 0], [[1, 0.6], [0.6, 1]]).pdf(grid)
    two += 0.4 * stats.multivariate_normal([2.6, 1.5], [[0.6, -0.3], [-0.3, 0.8]]).pdf(grid)
    one = stats.multivariate_normal([0.8, -1.6], [[1.5, 0], [0, 0.5]]).pdf(grid)
    ax = _axes(5.6, 4.2)
    ax.contourf(
        *np.moveaxis(grid, -1, 0),
        two,
        levels=[0.01, 0.03, 0.06, 0.2],
        colors=[colour(0)] * 3,
        alpha=0.3,
    )
    ax.contour(*np.moveaxis(grid, -1, 0), one, levels=[0.01, 0.04, 0.1], colors=[colour(1)])
    ax.set(xlabel="feature 1", ylabel="feature 2", ylim=(-4.5, 5))


def _BayesianLogisticRegression():
    rng = np.random.default_rng(0)
    z = np.linspace(-3, 3, 200)
    w, b = rng.normal(0, 2.5, (60, 1)), rng.normal(0, 5, (60, 1))
    ax = _axes()
    ax.plot(z, special.expit(w * z + b).T, color=colour(0), alpha=0.35, lw=1)
    ax.set(xlabel="standardised feature", ylabel="p(class 1 | x)")
