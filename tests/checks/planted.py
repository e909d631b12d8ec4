"""Classifiers, rows, and errors planted in their closed forms, for the tests of `bg.validate`."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

import bayesgen as bg
from bayesgen.checks import validate as module
from bayesgen.estimators.classifier import GenerativeClassifier
from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
from bayesgen.families.conjugate.columns import Columns
from bayesgen.families.conjugate.dirichlet_categorical import DirichletCategorical
from bayesgen.families.conjugate.dirichlet_multinomial import DirichletMultinomial
from bayesgen.families.conjugate.gamma_poisson import GammaPoisson
from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
from bayesgen.families.conjugate.normal_inverse_wishart import NormalInverseWishart
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.model import ClassModel, ClassStats

RNG = np.random.default_rng(17)
Y = np.array(list("aabbbaabbbaabbb"))
REALS = RNG.normal(size=(15, 2)) + (Y == "b")[:, None] * [1.5, -0.5]
BITS = (REALS > 0).astype(int)
COUNTS = RNG.poisson(2.0, (15, 2))
BLOCKS = Columns(
    ("full", "bits"), (NormalInverseWishart(), BetaBernoulli(alpha=1.0, beta=1.0)), ((0, 1), (2,))
)

# errors go into the block of correlated columns
MIXED = np.column_stack([REALS, BITS[:, 0]])
CLASSIFIERS: dict[str, tuple[Any, Any, type]] = {
    name: (clf.set_params(class_alpha=3.0), X, family)
    for name, clf, X, family in (
        ("BernoulliNB", bg.BernoulliNB(), BITS, BetaBernoulli),
        ("PoissonNB", bg.PoissonNB(), COUNTS, GammaPoisson),
        ("GaussianNB", bg.GaussianNB(), REALS, NormalInverseGamma),
        ("LinearDiscriminant", bg.LinearDiscriminant(), REALS, NormalInverseWishart),
        ("QuadraticDiscriminant", bg.QuadraticDiscriminant(), REALS, NormalInverseWishart),
        ("CategoricalNB", bg.CategoricalNB(), COUNTS.clip(max=2), DirichletCategorical),
        ("MultinomialNB", bg.MultinomialNB(), BITS, DirichletMultinomial),
        ("Columns", bg.GenerativeClassifier(BLOCKS), MIXED, NormalInverseWishart),
    )
}


def draws_in_place_of_nuts(
    monkeypatch: Any, fitted: Any = None, wrong: Any = None, n_made: int = 2000
) -> None:
    """`sample_posterior` draws from the closed form: of `fitted`, or of whatever it is asked of.

    `wrong` changes the tree; `n_made` rows of a class are simulated.
    """
    right = GenerativeClassifier.draw_posterior
    trees = {} if fitted is None else {"now": right(fitted, 1000, 4, 3, groups=())}

    def sample(self: Any, draws: int, chains: int, random_state: int, **_: Any) -> Any:
        tree = trees["now"].copy() if trees else right(self, draws, chains, random_state, groups=())
        sizes = {name: tree["posterior"].sizes[name] for name in ("chain", "draw")}
        diverging = (tuple(sizes), np.zeros(tuple(sizes.values()), dtype=bool))
        tree["sample_stats"] = xr.Dataset({"diverging": diverging})
        return wrong(tree) if wrong else tree

    monkeypatch.setattr(GenerativeClassifier, "sample_posterior", sample)
    monkeypatch.setattr(module, "_SIMULATED", n_made)


def wrapped(name: str, wrong: Callable[..., Any]) -> Callable[[Any, type], None]:
    """Replace a method of a class by ``wrong(right result, self, *arguments)``."""

    def plant(monkeypatch: Any, cls: type) -> None:
        right = getattr(cls, name)

        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            return wrong(right(self, *args, **kwargs), self, *args, **kwargs)

        monkeypatch.setattr(cls, name, method)

    return plant


def in_model(name: str, wrong: Callable[..., Any]) -> Callable[[Any, type], None]:
    """The same in `ClassModel`, whatever the family."""
    return in_class(ClassModel, name, wrong)


def in_class(cls: type, name: str, wrong: Callable[..., Any]) -> Callable[[Any, type], None]:
    """The same in another class, whatever the family."""
    return lambda monkeypatch, _: wrapped(name, wrong)(monkeypatch, cls)


def scaled(name: str, factor: float) -> Callable[..., Any]:
    """A theta with one parameter times a factor."""
    return lambda theta, *_: theta | {name: factor * theta[name]}


def in_update(**fields: Callable[..., Any]) -> Callable[[Any, type], None]:
    """Fields of the posterior as functions of (posterior, prior, statistics)."""

    def wrong(out: Any, prior: Any, rows: Any) -> Any:
        return replace(out, **{name: f(out, prior, rows) for name, f in fields.items()})

    return wrapped("update", wrong)


def shrunk(theta: Any, *_: Any) -> Any:
    """Draws of Sigma with off-diagonals 3 % too small."""
    sigma = theta["Sigma"]
    return theta | {"Sigma": sigma * np.where(np.eye(sigma.shape[-1]) > 0, 1.0, 0.97)}


THREE = ("BernoulliNB", "GaussianNB", "QuadraticDiscriminant")
GAUSSIAN = ("GaussianNB",)
FULL = ("LinearDiscriminant", "QuadraticDiscriminant", "Columns")
NORMAL = (*GAUSSIAN, *FULL)
DISCRETE = ("BernoulliNB", "PoissonNB", "CategoricalNB", "MultinomialNB")

# {error: (classifiers, how it is planted, a word of the reason)}; all found without a sampler
EXACT: dict[str, tuple[tuple[str, ...], Callable[[Any, type], None], str]] = {
    "class_alpha ignored by prediction": (
        THREE,
        in_model("mean_weights", lambda _, m: (m.alpha - 3) / (m.alpha - 3).sum()),
        "class_alpha",
    ),
    "class_alpha ignored by the prior": (
        THREE,
        in_model("resolve", lambda out, *_: replace(out, alpha=np.ones(2))),
        "class_alpha",
    ),
    "tied class weights": (THREE, in_model("mean_weights", lambda *_: np.full(2, 0.5)), "p(y = "),
    "class prior forgotten": (
        THREE,
        in_model("update", lambda out, _, rows: replace(out, alpha=rows.count)),
        "log evidence",
    ),
    "mle is the mean": (
        DISCRETE,
        lambda patch, cls: patch.setattr(
            cls, "mle", lambda self, stats: self.resolve(stats).update(stats).mean()
        ),
        "method='mle'",
    ),
    "mle with a Bessel factor": (GAUSSIAN, wrapped("mle", scaled("sigma2", 9 / 8)), "method='mle'"),
    "mle of Sigma with a Bessel factor": (
        FULL,
        wrapped("mle", scaled("Sigma", 15 / 14)),
        "method='mle'",
    ),
    "map is the mean": (
        ("BernoulliNB", "PoissonNB", *NORMAL),
        lambda patch, cls: patch.setattr(cls, "map", cls.mean),
        "method='map'",
    ),
    "map of the variance alone": (
        GAUSSIAN,
        wrapped(
            "map", lambda theta, f: theta | {"sigma2": theta["sigma2"] * (f.nu + 3) / (f.nu + 2)}
        ),
        "method='map'",
    ),
    "map with class counts": (
        THREE,
        in_model(
            "class_weights",
            lambda value, m, method, _: m.alpha / m.alpha.sum() if method == "map" else value,
        ),
        "method='map'",
    ),
    "n - 1": (NORMAL, in_update(nu=lambda out, *_: out.nu - 1), "log evidence"),
    "nu0 + 1/2": (NORMAL, in_update(nu=lambda out, *_: out.nu + 0.5), "log evidence"),
    "Bessel factor": (
        FULL,
        in_update(psi=lambda out, prior, _: prior.psi + (out.psi - prior.psi) * 15 / 14),
        "log evidence",
    ),
    "kappa dropped": (NORMAL, in_update(kappa=lambda _, __, rows: rows.n), "log evidence"),
    "pseudo-count off by one": (
        ("BernoulliNB", "CategoricalNB", "MultinomialNB"),
        in_update(alpha=lambda out, *_: out.alpha + 1),
        "log evidence",
    ),
    "shape off by one": (
        ("PoissonNB",),
        in_update(shape=lambda out, *_: out.shape + 1),
        "log evidence",
    ),
    "1e-6 in the evidence": (
        THREE,
        wrapped("log_evidence", lambda value, *_: value * (1 + 1e-6)),
        "log evidence",
    ),
    "1e-5 in the predictive": (
        THREE,
        wrapped("log_predictive", lambda value, *_: value + 1e-5),
        "predictive",
    ),
    # of the identities on a few rows
    "1e-6 absolute in the evidence": (
        THREE,
        wrapped("log_evidence", lambda value, *_: value + 1e-6),
        "one-step log predictives",
    ),
    "leave-one-out keeps the row": (
        THREE,
        in_class(
            ExactPosterior, "without_each", lambda out, own, X, *__: (own.log_joint(X), out[1])
        ),
        "leave-one-out of row",
    ),
    "leave-one-out keeps the count of the class": (
        THREE,
        in_class(
            ExactPosterior,
            "without_each",
            lambda out, own, X, y, w, *_: (
                out[0]
                - np.log(own.prior.alpha + own.stats.count - np.eye(2)[y] * w[:, None])
                + np.log(own.prior.alpha + own.stats.count),
                out[1],
            ),
        ),
        "leave-one-out of row",
    ),
    "merge of the first half alone": (
        THREE,
        in_class(ClassStats, "merge", lambda _, first, __: first),
        "two halves",
    ),
    "merge forgets counts": (
        THREE,
        in_class(ClassStats, "merge", lambda out, first, __: replace(out, count=first.count)),
        "two halves",
    ),
    "contributions times 1.001": (
        GAUSSIAN,
        in_class(
            GenerativeClassifier,
            "explain",
            lambda out, *_, **__: out.assign(predictive=1.001 * out["predictive"]),
        ),
        "contributions of row",
    ),
}


def narrow(prob: float) -> Callable[[Any, type], None]:
    """``predict_interval`` of 0.9 with the posterior probability `prob`."""

    def plant(monkeypatch: Any, _: type) -> None:
        for clf, *_rest in CLASSIFIERS.values():
            cls = type(clf)
            right = cls.predict_interval

            def method(self: Any, X: Any, p: Any = None, *args: Any, right: Any = right, **kw: Any):
                kw["prob"] = prob
                return right(self, X, *args, **kw)

            monkeypatch.setattr(cls, "predict_interval", method)

    return plant


# found with draws
DRAWN: dict[str, tuple[tuple[str, ...], Callable[[Any, type], None], str]] = {
    "level 0.9 reported as 0.86": (THREE, narrow(0.86), "90 % interval"),
    "mean is the mode": (
        ("BernoulliNB", "PoissonNB", "MultinomialNB"),
        lambda patch, cls: patch.setattr(cls, "mean", cls.map),
        "mean of E ",
    ),
    "mean of the variance is its scale": (
        GAUSSIAN,
        wrapped("mean", lambda theta, f: theta | {"sigma2": theta["sigma2"] * (f.nu - 2) / f.nu}),
        "mean of E sigma2",
    ),
    "mean of Sigma off by one": (FULL, wrapped("mean", scaled("Sigma", 0.96)), "mean of E "),
    "off-diagonal draws of Sigma times 0.97": (FULL, wrapped("draw", shrunk), "Sigma"),
    "simulated rows times 1.02": (
        NORMAL,
        wrapped("simulate_predictive", lambda rows, *_: 1.02 * rows),
        "simulated",
    ),
}
