"""``bayesgen demo``: what integrating parameters out gains, and how sure it is of penguins."""

from typing import TYPE_CHECKING, Any, cast

from bayesgen.cli.console import (
    busy,
    method_name,
    plain_table,
    show_caption,
    stdout,
)

if TYPE_CHECKING:
    from rich.console import Console

    from bayesgen.families.names import Method

_SEEN = (5, 40)  # wines of each kind in a training set
_REPEATS = 20
_DOUBTFUL = 5
_PROB = 0.9  # of their intervals


def demo() -> None:
    """Show what integrating the parameters out gains, and what else there is.

    Scores the exact posterior predictive and the usual plug-in estimates on wines, from 5 and from
    40 of each kind. Then learns the species from two thirds of the Palmer penguins: weighs three
    models by their evidence; shows the birds that it is least certain of, with intervals; and pools
    several models for the best probabilities.

    Examples
    --------
    bayesgen demo
    bayesgen demo | less
    """
    with busy("weighing penguins"):
        story = _Story()
    console = stdout(widest=80)  # prose, and tables of 79 columns
    story.tell_gain(console)
    story.tell_start(console)
    story.tell_evidence(console)
    story.tell_doubts(console)
    story.tell_pool(console)
    console.print("\nYour own table:", style="bold")
    console.print("  bayesgen fit DATA.csv --target COLUMN -o model.nc", markup=False)
    console.print("  bayesgen predict model.nc NEW.csv -o out.csv", markup=False)
    console.print(
        "  bayesgen report model.nc HELD_OUT.csv --target COLUMN -o report.html", markup=False
    )


class _Story:
    """The numbers, and the sections that show them."""

    def __init__(self) -> None:
        import numpy as np

        import bayesgen as bg
        from bayesgen.datasets import load_penguins

        self.X, self.y = load_penguins()
        self.test = np.arange(len(self.X)) % 3 == 2
        train = ~self.test
        X_test, y_test = self.X[self.test], self.y[self.test]
        self.losses = _losses_on_wine()
        self.clf = bg.MixedNB().fit(self.X[train], self.y[train])
        self.scores = bg.compare_predictives(self.clf, X_test, y_test)
        self.pool = bg.LogLinearPool().fit(self.X[train], self.y[train])
        self.pool_scores = bg.compare_predictives(self.pool, X_test, y_test)

        measured = self.X[train].select_dtypes("number").dropna()
        self.n_complete, self.measurements = len(measured), list(measured.columns)
        models = (
            (bg.LinearDiscriminant(), "one covariance"),
            (bg.QuadraticDiscriminant(), "one for each species"),
            (bg.GaussianNB(), "no covariance"),
        )
        self.evidence = {
            (type(clf).__name__, assumes): clf.fit(measured, self.y[measured.index]).log_evidence_
            for clf, assumes in models
        }

    def tell_gain(self, console: "Console") -> None:
        from rich.text import Text

        console.print("\nWines, with the parameters integrated out", style="bold")
        console.print(
            "Three cultivars by 13 measurements. Gaussian naive Bayes has seen 5 or 40 wines of "
            f"each. Log loss on the others, in nats: mean of {_REPEATS} random splits, and its "
            "standard error."
        )
        console.print()
        table = plain_table({"predictive": 33}, **{f"{n} of each seen": 18 for n in _SEEN})
        for method, losses in self.losses.items():
            mean, error = losses.mean(axis=1), losses.std(axis=1, ddof=1) / _REPEATS**0.5
            cells = [f"{m:.3f} +- {se:.3f}" for m, se in zip(mean, error, strict=True)]
            style = "cyan" if method == "posterior_predictive" else ""
            table.add_row(Text(method_name(method)), *cells, style=style)
        console.print(table)
        console.print()
        show_caption(
            console,
            "Less is better. With few rows an estimate is taken for the truth, and integration "
            "pays; with many rows there is nothing left to integrate over.",
        )

    def tell_start(self, console: "Console") -> None:
        n_test = int(self.test.sum())
        n_missing = int(self.X.isna().sum().sum())
        console.print("\nPenguins, and how sure it is of each", style="bold")
        console.print(
            f"A naive Bayes classifier of mixed columns has seen {len(self.X) - n_test} penguins "
            "of three species: four measurements, the island and the sex. It names the other "
            f"{n_test}, every third row. {n_missing} cells are missing; they are left out, not "
            "filled in."
        )

    def tell_evidence(self, console: "Console") -> None:
        import math

        _head(console, "Which model do the measurements support?")
        table = plain_table({"model": 23, "assumes": 23}, log_evidence=14, probability=12)
        best = max(self.evidence.values())
        total = sum(math.exp(value - best) for value in self.evidence.values())
        for (name, assumes), value in sorted(self.evidence.items(), key=lambda item: -item[1]):
            p = math.exp(value - best) / total
            cells = f"{value:.2f}", f"{p:.4f}" if p >= 1e-4 else f"{p:.0e}"
            table.add_row(name, assumes, *cells, style="cyan" if value == best else "")
        console.print(table)
        console.print()
        show_caption(
            console,
            "log p(measurements, species) in nats, the parameters integrated out. The three can be "
            f"compared: the same {self.n_complete} complete training rows and the same "
            f"{len(self.measurements)} columns for each, under default priors. Probability: if the "
            "three were equally likely before.",
        )

    def tell_doubts(self, console: "Console") -> None:
        import numpy as np
        from rich.text import Text

        X, y = self.X[self.test], self.y[self.test]
        losses = self.scores["log_loss"].to_series().drop("posterior_predictive")
        best_plug_in = cast("Method", str(losses.idxmin()))
        methods: list[Method] = ["posterior_predictive", best_plug_in]
        p = {method: self.clf.predict_proba(X, method=method) for method in methods}
        _head(console, "Which birds is it least certain of?")
        classes = dict.fromkeys(map(str, self.clf.classes_), 9)
        table = plain_table({"row": 3, "species": 12, "probability by": 26}, **classes)
        least = np.argsort(p[methods[0]].max(axis=1), kind="stable")[:_DOUBTFUL]
        open_ends = self.clf.predict_interval(X.iloc[least], prob=_PROB)["interval"].values
        for i, ends in zip(least, open_ends, strict=True):
            gaps = list(X.columns[X.iloc[i].isna()])
            firsts = {methods[0]: (str(X.index[i]), y.iloc[i])}
            for method in methods:
                row = p[method][i]
                wrong = self.clf.classes_[row.argmax()] != y.iloc[i]
                table.add_row(
                    *firsts.get(method, ("", Text(_without(gaps), style="dim"))),
                    Text.assemble(method_name(method), (" (wrong)" if wrong else "", "red")),
                    *(Text(f"{v:.3f}", style="bold" if v == row.max() else "") for v in row),
                    style="cyan" if method in firsts else "",
                )
                if method in firsts:
                    told = (f"{low:.2f}-{high:.2f}" for low, high in ends)
                    table.add_row("", "", f"  {_PROB:.0%} interval", *told, style="dim")
        console.print(table)
        console.print()
        complete = "Nothing is missing of these. " if X.iloc[least].notna().all(axis=None) else ""
        show_caption(
            console,
            f"{complete}Rows count from 0. The interval is what the training birds leave open. The "
            "plug-in is the one with the least log loss above.",
        )

    def tell_pool(self, console: "Console") -> None:
        _head(console, "Could the probabilities be better?")
        table = plain_table({"model": 34}, accuracy=9, log_loss=9, Brier=9)
        naive, pool = (type(clf).__name__ for clf in (self.clf, self.pool))
        of = {f"{naive}, as above": self.scores, pool: self.pool_scores}
        for name, scores in of.items():
            one = scores.isel(predictive=0)
            cells = [f"{one[k].item():.4f}" for k in ("accuracy", "log_loss", "brier")]
            table.add_row(name, *cells, style="cyan" if scores is self.pool_scores else "")
        console.print(table)
        console.print()
        ranked = sorted(zip(self.pool.exponents_, self.pool.members_, strict=True), reverse=True)
        first = ", ".join(f"{name} {exponent:.2f}" for exponent, name in ranked[:3])
        show_caption(
            console,
            f"A product of powers of {len(ranked)} models chosen for the columns, some with "
            "dependences between these. The posterior of the exponents is learned by leaving each "
            "training bird out in turn, without a refit; predictions are means over its draws. "
            f"The largest posterior means: {first}.",
        )


def _losses_on_wine() -> dict[str, Any]:
    """Return {method: (size, split) log losses on the wines left out}."""
    import numpy as np
    from sklearn.datasets import load_wine

    import bayesgen as bg
    from bayesgen.families.names import METHODS

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


def _head(console: "Console", text: str) -> None:
    from rich.text import Text

    console.print()
    console.print(Text(text, style="bold"))
    console.print()


def _without(names: list[str]) -> str:
    """What is missing of a bird."""
    return "without " + ", ".join(names) if names else ""
