"""The numbers of every public method, recorded once: a change of structure changes none of them.

    .venv/bin/python -m tests.recorded.numbers            # what differs from the record
    .venv/bin/python -m tests.recorded.numbers --update   # record anew: say why in the commit

Every classifier meets one small table and every public method and function is called with fixed
seeds. Of each array two weighted sums are kept, with weights that no permutation leaves alone: a
change of one cell in its last digits but three is seen. NUTS is replaced by draws from the prior.
`LogLinearPool`, whose numbers are being mended, is not here.
"""

import argparse
import contextlib
import copy
import functools
import io
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from scipy import sparse

import bayesgen as bg
from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
from bayesgen.inference import nuts
from tests.estimators import cases, test_sampled

RECORD = Path(__file__).with_name("numbers.npz")
PLUG_INS = ("posterior_mean", "map", "mle")
REFUSED = (ValueError, AttributeError, NotImplementedError, TypeError)
SETTINGS = (
    "BernoulliNB",
    "CategoricalNB",
    "MultinomialNB",
    "PoissonNB",
    "GaussianNB",
    "GaussianNB tied",
    "HistogramNB",
    "MixedNB",
    "LinearDiscriminant",
    "QuadraticDiscriminant",
    "QuadraticDiscriminant diagonal",
    "MarkovNB 1",
    "MarkovNB 2",
    "MarkovNB context tree",
    "GaussianNB empirical",
)


def _more() -> dict[str, tuple[Callable[[], Any], Any]]:
    """Classifiers that `tests.estimators.cases` does not hold, with what makes their rows."""
    return {
        "GenerativeClassifier": (
            lambda: bg.GenerativeClassifier(NormalInverseGamma(variance="spherical")),
            cases.reals,
        ),
        "GaussianNB loo": (lambda: bg.GaussianNB(prior="loo"), cases.reals),
        "CategoricalNB ignore": (lambda: bg.CategoricalNB(unseen="ignore"), cases.words),
        "TreeAugmentedNB": (
            lambda: bg.TreeAugmentedNB(columns=TREE_KINDS, unseen="ignore"),
            cases.table,
        ),
        "TreeAugmentedGaussianNB": (bg.TreeAugmentedGaussianNB, cases.reals),
        "AnDE": (lambda: bg.AnDE(columns=TREE_KINDS), cases.table),
    }


TREE_KINDS = {"gaussian": ["length", "weight", "eggs"], "categorical": ["colour", "wild", "size"]}


def sums(value: Any) -> tuple[float, float, float]:
    """Two weighted sums of the cells of an array, and the sum of their sizes."""
    found = np.asarray(value.todense() if sparse.issparse(value) else value)
    if found.dtype.kind == "O" and all(isinstance(v, str) for v in found.ravel()):
        found = found.astype(str)
    if found.dtype.kind in "USO":  # the letters
        text = "\n".join(map(repr, found.ravel().tolist()))
        found = np.frombuffer(text.encode(), dtype=np.uint8)
    x = found.astype(np.float64).ravel()
    x = np.where(np.isnan(x), 0.7071, np.clip(x, -1e300, 1e300))
    x = np.where(np.abs(x) == 1e300, 7.389 * np.sign(x), x)
    k = np.arange(1, len(x) + 1)
    a, b = 1.5 + np.sin(k), 1.5 + np.cos(0.7 * k + 0.1 * k / (1 + k))
    return float(a @ x), float(b @ x), float(np.abs(x) @ (a + b))


def parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The arrays of what a method returned, by name."""
    if value is None or isinstance(value, str):
        yield name, np.array([str(value)])
    elif hasattr(value, "subtree"):  # DataTree
        for node in value.subtree:
            yield from parts(f"{name}{node.path}", node.to_dataset(inherit=False))
    elif hasattr(value, "data_vars"):
        for key, variable in value.data_vars.items():
            yield f"{name}.{key}", variable.values
    elif isinstance(value, pd.DataFrame):
        for key in value:
            yield f"{name}.{key}", value[key].to_numpy()
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            yield from parts(f"{name}.{key}", entry)
    elif hasattr(value, "_fields"):
        for key in value._fields:
            yield from parts(f"{name}.{key}", getattr(value, key))
    elif isinstance(value, tuple | list) and any(hasattr(v, "shape") for v in value):
        for i, entry in enumerate(value):
            yield from parts(f"{name}.{i}", entry)
    else:
        yield name, np.asarray(getattr(value, "values", value))


def some(X: Any, at: Any) -> Any:
    """Rows of a table or of texts."""
    if isinstance(X, pd.DataFrame):
        return X.iloc[list(at)].reset_index(drop=True)
    return [X[i] for i in at] if isinstance(X, list) else X[list(at)]


def calls(clf: Any, X: Any, y: Any) -> dict[str, Callable[[], Any]]:
    """Every public method of a fitted classifier, by what is recorded of it."""
    new = some(X, (0, 10, 14, 23, 37))
    few, one = some(X, (0, 14)), some(X, (0,))  # of what takes seconds
    n = len(y)
    weights = dict(zip(clf.classes_.tolist(), (0.2, 0.5, 0.3), strict=True))

    def draws() -> Any:
        try:
            return clf.draw_posterior(20, 2, random_state=3)
        except REFUSED:
            return clf.posterior_

    every: dict[str, Callable[[], Any]] = {
        "joint": lambda: clf.predict_joint_log_proba(new),
        "log_proba": lambda: clf.predict_log_proba(new, class_prior=weights),
        "proba": lambda: clf.predict_proba(new),
        "proba of draws": lambda: clf.predict_proba(new, posterior=draws()),
        "label": lambda: clf.predict(X),
        "decision": lambda: clf.decision_function(new),
        "density": lambda: clf.score_samples(new),
        "monte carlo": lambda: clf.predict_monte_carlo(new, draws()),
        "relevance": lambda: clf.predict_proba(new, relevance="averaged"),
        "interval": lambda: clf.predict_interval(new, 0.8),
        "interval hdi": lambda: clf.predict_interval(new, 0.8, "hdi", class_prior=weights),
        "interval draws": lambda: clf.predict_interval(one, 0.8, method="draws", random_state=1),
        "interval of draws": lambda: clf.predict_interval(new, 0.8, posterior=draws()),
        "interval with row": lambda: clf.predict_interval(few, 0.8, given="training and row"),
        "posterior of p": lambda: clf.predict_posterior(new, 20, 2, random_state=2),
        "posterior of p per row": lambda: clf.predict_posterior(
            new, 20, per_row=True, random_state=2
        ),
        "uncertainty": lambda: clf.predict_uncertainty(new),
        "uncertainty with row": lambda: clf.predict_uncertainty(
            one, "bits", "training and row", random_state=4
        ),
        "explain": lambda: clf.explain(new, prob=0.8),
        "explain of draws": lambda: clf.explain(new, posterior=draws(), prob=0.8),
        "typicality": lambda: clf.typicality(new, (X, y)),
        "set": lambda: clf.predict_set(new, 0.8),
        "set by class": lambda: clf.predict_set(new, 0.8, True, (X, y)),
        "loo": lambda: clf.loo(X, y).elpd_i,
        "loo joint": lambda: clf.loo(X, y, "joint").elpd_i,
        "loo_log_joint": lambda: clf.loo_log_joint(X, y),
        "loo groups": lambda: clf.loo_log_joint(X, y, groups=np.arange(n) // 5),
        "simulate": lambda: clf.simulate(5, random_state=1),
        "simulate draw": lambda: clf.simulate(5, random_state=1, source="draw"),
        "summary": lambda: clf.summary().to_dataframe().select_dtypes("number"),
        **{f"estimates {m}": lambda m=m: clf.estimates(m) for m in PLUG_INS},
        **{f"joint {m}": lambda m=m: clf.predict_joint_log_proba(new, m) for m in PLUG_INS},
        "linear form": lambda: clf.linear_form("posterior_mean"),
        "linear form predictive": lambda: clf.linear_form(),
        "draw": lambda: clf.draw_posterior(3, 2, random_state=5),
        "groups": lambda: clf.posterior_groups(some(X, range(6)), y[:6], random_state=1),
        "posterior_": lambda: clf.posterior_["posterior"].to_dataset().mean(("chain", "draw")),
        "fit group": lambda: clf.draw_posterior(2, 1)["fit"],
        "perplexity": lambda: clf.perplexity(X[:3]),
        "edges": lambda: clf.edge_probabilities(),
        "feature_relevance": lambda: bg.feature_relevance(clf),
        "mutual_information": lambda: bg.mutual_information(clf),
        "mutual_information of draws": lambda: bg.mutual_information(clf, posterior=True, draws=20),
        "top_words": lambda: bg.top_words(clf, 2),
        "decide": lambda: bg.decide(clf, new, reject=0.2, typicality=0.02),
        "class prior": lambda: bg.estimate_class_prior(clf, new, draws=5, chains=2)["posterior"],
        "influence": lambda: bg.row_influence(clf, X, y, rows=range(6), progressbar=False),
        "plug-ins compared": lambda: bg.compare_predictives(clf, X, y),
        "compared": lambda: bg.compare_models({"a": clf, "b": clf}, X, y).table.drop_vars("pool"),
    }
    for name in ("coef_", "intercept_", "class_count_", "class_log_prior_", "theta_", "var_"):
        every[name] = lambda name=name: getattr(clf, name)
    for name in ("means_", "covariance_", "feature_log_prob_", "log_evidence_"):
        every[name] = lambda name=name: getattr(clf, name)
    return every


def learning(make: Callable[[], Any], X: Any, y: Any) -> dict[str, Callable[[], Any]]:
    """What comes of a classifier that learns in other ways than by one fit."""
    n, new = len(y), some(X, (0, 10, 14))
    first, second = range(n // 2), range(n // 2, n)

    def parts_of() -> list[Any]:
        return [make().fit(some(X, at), y[list(at)]) for at in (first, second)]

    def saved() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            fitted = make().fit(X, y)
            fitted.save(f"{folder}/m.nc")
            own = {"family": fitted.family} if type(fitted) is bg.GenerativeClassifier else {}
            return bg.load(f"{folder}/m.nc", **own).predict_proba(new)

    def in_parts() -> Any:
        clf = make().partial_fit(some(X, first), y[list(first)], np.unique(y))
        return clf.partial_fit(some(X, second), y[list(second)])

    @functools.cache
    def gibbs() -> Any:
        labels = np.where(np.arange(n) % 7 == 6, None, y.astype(object))
        options = {"draws": 20, "tune": 5, "chains": 2, "random_state": 3}
        return make().fit(X, labels, inference="gibbs", **options)

    weight = 0.5 + (np.arange(n) % 4)
    weight[5] = 0.0
    return {
        "weighted": lambda: make().fit(X, y, weight).predict_joint_log_proba(new),
        "weighted loo": lambda: make().fit(X, y, weight).loo(X, y, sample_weight=weight).elpd_i,
        "partial_fit": lambda: in_parts().predict_joint_log_proba(new),
        "merge": lambda: (
            parts_of()[0].merge(make().fit(some(X, second), y[n // 2 :])).log_evidence_
        ),
        "forget": lambda: make().fit(X, y).forget(some(X, second), y[n // 2 :]).log_evidence_,
        "stream": lambda: (
            bg.fit_stream(
                make(), ((some(X, at), y[list(at)]) for at in (first, second)), classes=np.unique(y)
            ).log_evidence_
        ),
        "saved": saved,
        "gibbs": lambda: gibbs().predict_proba(new),
        "gibbs draws": lambda: gibbs().posterior_["posterior"].to_dataset(),
        "gibbs interval": lambda: gibbs().predict_interval(new, 0.8),
        "learning curve": lambda: bg.learning_curve(
            {"a": make()}, X, y, (5, 9), 2, progressbar=False
        ),
    }


def subjects() -> Iterator[tuple[str, Callable[[], Any], Any, Any]]:
    """(name, what makes the classifier, X, y)."""
    known = {n: (cases.CASES[n].make, cases.CASES[n].rows) for n in SETTINGS} | _more()
    for name, (make, rows) in known.items():
        rng = np.random.default_rng(7)
        codes = np.arange(48) % 3
        rng.shuffle(codes[9:])
        yield name, make, rows(rng, codes), cases.LABELS[codes]
    for name, kind in test_sampled.DATA.items():
        cls = test_sampled.SAMPLED[name]

        def make(cls: Any = cls) -> Any:
            return cls(draws=30, tune=1, chains=2, random_state=4)

        yield name, make, np.tile(test_sampled.KINDS[kind], (2, 1)), np.tile(test_sampled.Y, 2)


def numbers(only: str = "") -> dict[str, tuple[float, float, float]]:
    """Sums of everything, by "classifier: call: variable"; what is refused is not there."""
    sound = test_sampled.SOUND
    out: dict[str, tuple[float, float, float]] = {}
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stderr(io.StringIO()),  # progress of the samplers
        mock.patch.object(nuts, "sample", test_sampled.draws_of_the_prior),
        mock.patch("bayesgen.inference.nuts.warn_unless_sound", return_value=sound),
    ):
        warnings.simplefilter("ignore")
        for name, make, X, y in subjects():
            if only and only != name:
                continue
            clf = make().fit(X, y)
            every = calls(clf, X, y)
            if isinstance(clf, bg.AnDE):
                del every["uncertainty with row"]
            if not clf.prior_.family.conjugate:
                slow = ("influence", "compared", "explain", "uncertainty with row", "interval hdi")
                every = {k: v for k, v in every.items() if not k.startswith(slow)}
            else:
                every |= learning(make, X, y)
            for call, ask in every.items():
                try:
                    found = copy.deepcopy(ask())
                except REFUSED:
                    continue
                out |= {k: sums(v) for k, v in parts(f"{name}: {call}: ", found)}
    return out


def recorded() -> dict[str, tuple[float, float]]:
    """What the file holds."""
    with np.load(RECORD) as file:
        names = bytes(file["names"]).decode().split("\n")
        pairs = file["sums"].tolist()
    return {n: (a, b) for n, (a, b) in zip(names, pairs, strict=True)}


def differences(only: str = "") -> list[str]:
    """What is missing or differs by more than 1e-12 of the sum of sizes."""
    found, out = numbers(only), []
    for name, kept in recorded().items():
        if only and only != name.partition(":")[0]:
            continue
        if name not in found:
            out.append(f"{name} is missing")
            continue
        a, b, size = found[name]
        off = max(abs(a - kept[0]), abs(b - kept[1]))
        if not off <= 1e-12 * max(size, 1e-300):
            out.append(f"{name} differs by {off / max(size, 1e-300):.2g} of its size")
    return out


def main() -> None:
    """Compare, or record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--only", default="", help="the name of one classifier")
    options = parser.parse_args()
    if options.update:
        found = numbers()
        text = np.frombuffer("\n".join(found).encode(), dtype=np.uint8)
        values = np.array([v[:2] for v in found.values()])
        np.savez_compressed(RECORD, names=text, sums=values)
        sys.stdout.write(f"{len(found)} arrays, {RECORD.stat().st_size} bytes\n")
    else:
        sys.stdout.write("\n".join([*differences(options.only), "compared\n"]))


if __name__ == "__main__":
    main()
