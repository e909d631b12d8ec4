"""``bayesgen demo``: what integrating parameters out gains, and how sure it is of penguins."""

from typing import TYPE_CHECKING

from bayesgen.cli.console import busy, show, tell
from bayesgen.families.names import METHOD_NAMES, METHODS

if TYPE_CHECKING:
    from bayesgen.numerics.special import Array

_SEEN = (5, 40)  # wines of each kind in a training set
_REPEATS = 20
_DOUBTFUL = 5


def demo() -> None:
    """Show what integrating the parameters out gains, and what else there is.

    Scores the exact posterior predictive and the usual plug-in estimates on wines, from 5 and from
    40 of each kind. Then learns the species from two thirds of the Palmer penguins, shows the birds
    that it is least certain of, with intervals, and pools several models for the best
    probabilities.

    Examples
    --------
    bayesgen demo
    bayesgen demo | less
    """
    with busy("tasting wines"):
        losses = _losses_on_wine()
    _tell_gain(losses)
    with busy("weighing penguins"):
        _tell_penguins()
    show("")
    tell("Your own table:", bold=True)
    for command in (
        "fit DATA.csv --target COLUMN -o model.nc",
        "predict model.nc NEW.csv -o out.csv",
        "report model.nc HELD_OUT.csv --target COLUMN -o report.html",
    ):
        show(f"  bayesgen {command}")


def _losses_on_wine() -> dict[str, "Array"]:
    """Return {method: (size, split) log losses on the wines left out}."""
    import numpy as np
    from sklearn.datasets import load_wine

    import bayesgen as bg

    X, y = load_wine(return_X_y=True)
    rng = np.random.default_rng(0)
    losses = np.empty((len(METHODS), len(_SEEN), _REPEATS))
    for i, size in enumerate(_SEEN):
        for k in range(_REPEATS):
            rows = [rng.choice(np.flatnonzero(y == c), size, replace=False) for c in np.unique(y)]
            seen = np.isin(np.arange(len(y)), rows)
            clf = bg.GaussianNB().fit(X[seen], y[seen])
            scores = bg.compare_predictives(clf, X[~seen], y[~seen])
            losses[:, i, k] = scores["log_loss"].values
    return dict(zip(METHODS, losses, strict=True))


def _tell_gain(losses: dict[str, "Array"]) -> None:
    import pandas as pd

    show("")
    tell("Wines, with the parameters integrated out", bold=True)
    tell(
        "Three cultivars by 13 measurements. Gaussian naive Bayes has seen 5 or 40 wines of each. "
        f"Log loss on the others, in nats: mean of {_REPEATS} random splits, and its standard "
        "error."
    )
    heads = [f"{n} of each seen" for n in _SEEN]
    exact, *plug_ins = losses
    names = {exact: METHOD_NAMES[exact]} | {k: f"plug-in: {METHOD_NAMES[k]}" for k in plug_ins}
    frame = pd.DataFrame({names[k]: _means(v) for k, v in losses.items()}, heads).T
    show("", frame.to_string(), "")
    tell(
        "Less is better. With few rows an estimate is taken for the truth, and integration pays; "
        "with many rows there is nothing left to integrate over.",
        dim=True,
    )


def _means(losses: "Array") -> list[str]:
    """Return means of (size, split) losses with their standard errors."""
    mean, error = losses.mean(axis=1), losses.std(axis=1, ddof=1) / _REPEATS**0.5
    return [f"{m:.3f} +- {se:.3f}" for m, se in zip(mean, error, strict=True)]


def _tell_penguins() -> None:
    import numpy as np
    import pandas as pd

    import bayesgen as bg

    X, y = bg.datasets.load_penguins()
    test = np.arange(len(X)) % 3 == 2
    clf = bg.MixedNB().fit(X[~test], y[~test])
    pool = bg.LogLinearPool().fit(X[~test], y[~test])
    show("")
    tell("Penguins, and how sure it is of each", bold=True)
    tell(
        f"A naive Bayes classifier of mixed columns has seen {(~test).sum()} penguins of three "
        "species: four measurements, the island and the sex. It names the other "
        f"{test.sum()}, every third row. {int(X.isna().sum().sum())} cells are missing; they are "
        "left out, not filled in. These are the birds that it is least certain of:"
    )
    p = clf.predict_proba(X[test])
    least = np.argsort(p.max(axis=1), kind="stable")[:_DOUBTFUL]
    intervals = clf.predict_interval(X[test].iloc[least])
    ends, prob = intervals["interval"].values, intervals.attrs["prob"]
    cells = [
        [f"{v:.2f} ({a:.2f}-{b:.2f})" for v, (a, b) in zip(p[i], interval, strict=True)]
        for i, interval in zip(least, ends, strict=True)
    ]
    table = pd.DataFrame(cells, X[test].index[least] + 1, clf.classes_)
    table.insert(0, "species", y[test].iloc[least].to_numpy())
    show("", table.to_string(), "")
    tell(
        f"Rows count from 1. In brackets the {prob:.0%} interval: what the training birds leave "
        "open.",
        dim=True,
    )
    show("")
    tell("Could the probabilities be better?", bold=True)
    models = {f"{type(clf).__name__}, as above": clf, type(pool).__name__: pool}
    scores = bg.compare_predictives(models, X[test], y[test]).isel(predictive=0).to_dataframe()
    frame = scores[["accuracy", "log_loss", "brier"]].rename_axis(None)
    show("", frame.to_string(float_format="{:.4f}".format), "")
    tell(
        f"A product of powers of {len(pool.members_)} models chosen for the columns. The "
        "posterior of the exponents is learned by leaving each training bird out in turn, without "
        "a refit.",
        dim=True,
    )
