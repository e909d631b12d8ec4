"""What families refuse: hyper-parameters, codes, tokens and cells, each by one sentence."""

from functools import partial

import numpy as np
import pytest

import bayesgen as bg
from bayesgen.families.conjugate.dirichlet_categorical import DirichletCategorical
from bayesgen.families.conjugate.dirichlet_forest import DirichletForest
from bayesgen.families.conjugate.dirichlet_markov import DirichletMarkov
from bayesgen.families.conjugate.gamma_poisson import GammaPoisson
from bayesgen.families.sampled.logistic_regression import LogisticRegression
from bayesgen.families.sampled.negative_binomial import NegativeBinomial
from bayesgen.families.shared.ngrams import START

RNG = np.random.default_rng(0)
Y = np.arange(60) % 2
CODES = RNG.integers(0, (3, 2, 4, 1), (60, 4)).astype(float)
REALS, COUNTS = RNG.normal(size=(60, 2)), RNG.poisson(3.0, (60, 2)).astype(float)


def spoiled(X, row, column, cell):
    X = X.copy()
    X[row, column] = cell
    return X


def codes(X=CODES, n_categories=(3, 2, 4, 1), **prior):
    family = DirichletCategorical(n_categories=n_categories, **prior)
    return family.resolve(family.stats(X, Y, 2))


def forest(n_columns=2, **settings):
    stats = DirichletForest().stats(RNG.integers(0, 2, (60, n_columns)), Y, 2)
    return DirichletForest(**settings).resolve(stats)


def texts(*documents, order=2, n_tokens=3):
    X = np.empty(len(documents), dtype=object)
    X[:] = [np.array(document) if document else np.zeros(0, dtype=int) for document in documents]
    return DirichletMarkov(order, n_tokens).stats(X, np.zeros(len(X), dtype=int), 1)


def markov(*settings, of=None):
    return DirichletMarkov(*settings).resolve(of or texts([0], []))


def rates(X):
    theta = {"mu": np.ones((2, 2)), "delta": np.ones(2)}
    return NegativeBinomial(exposure=np.array([1.0, 0])).log_likelihood(X, theta)


def fit(make, X=REALS, y=Y, **options):
    return make(**options).fit(X, y)


mixture, regression = (
    partial(fit, make) for make in (bg.MixtureDiscriminant, bg.BayesianLogisticRegression)
)
counts = partial(fit, bg.NegativeBinomialNB)
NONE_OF = "row 7, feature 2: {} is not one of the category"
SAYS_NOTHING = r"row 3{}; p\(y \| x\) says nothing of x"
GAPS = spoiled(REALS, 3, 1, np.nan)
REFUSALS = [
    (partial(codes, alpha=-1.0), "alpha must be > 0"),
    (partial(codes, alpha=np.ones((2, 4, 2))), "does not broadcast"),
    (partial(codes, alpha=np.ones((2, 4, 4))), "0 beyond them"),
    (partial(codes, alpha=np.zeros((2, 4, 4))), "zeros may only pad"),
    (partial(codes, n_categories=(3, 2, 4)), "3 entries for 4 features"),
    (partial(codes, new=-1.0), "new must be >= 0"),
    (partial(codes, spoiled(CODES, 7, 2, -1)), NONE_OF.format("-1.0")),
    (partial(codes, spoiled(CODES, 7, 2, 0.5)), NONE_OF.format("0.5")),
    (partial(codes, spoiled(CODES, 7, 1, 3)), "feature 1 has 2 declared categories"),
    (partial(forest, structure="all"), "structure must be"),
    (partial(forest, structure="fixed"), "needs edges"),
    (partial(forest, structure="fixed", edges=np.triu(np.ones((2, 2)))), "symmetric"),
    (partial(forest, 3, structure="fixed", edges=np.ones((3, 3))), "without cycles"),
    (partial(forest, edges=np.ones((3, 3))), r"edges has shape \(3, 3\): it must be a matrix"),
    (partial(forest, edges=[]), r"edges has shape \(0,\): it must be a matrix"),
    (partial(forest, edges=np.ones((7, 1, 1))), r"edges has shape \(7, 1, 1\)"),
    (partial(forest, levels=np.array([2, 2, 2])), "3 entries for 2 features"),
    (partial(forest, strength=-1.0), "strength must be > 0"),
    (
        lambda: DirichletForest(levels=np.array([2, 2])).stats(np.full((60, 2), 2), Y, 2),
        "not one of the category codes",
    ),
    (partial(texts, [0], [1, 3]), r"document 1 has the token code 3; codes are 0 \.\. 2"),
    (partial(texts, [1], [1, -1]), r"document 1 has a token outside the vocabulary"),
    (partial(texts, [START], [1]), "document 0 has the token code -2"),
    (partial(texts, [0.5]), "integer token codes"),
    (partial(markov, 0), "order must be at least 1, got 0"),
    (partial(markov, 1.5), "order must be an integer"),
    (partial(markov, 3, 3, of=texts([0])), "order 2 for a model of order 3"),
    (partial(markov, 2, 2, of=texts([0])), "3 tokens for a model of 2"),
    (partial(markov, 2, 3, 0.0), "alpha must be > 0"),
    (lambda: texts([0]).merge(texts([0], order=3)), "order 2 and of order 3"),
    (lambda: markov(2, of=texts([], n_tokens=0)), "vocabulary is empty"),
    (
        lambda: GammaPoisson(rate=0.0).resolve(GammaPoisson().stats(COUNTS, Y, 2)),
        "rate must be > 0",
    ),
    (partial(mixture, n_components=0), "integer >= 1"),
    (partial(mixture, n_components="many"), "integer >= 1"),
    (partial(mixture, n_components=[1, 2, 3]), "3 entries, but there are 2 classes"),
    (partial(mixture, n_components={0: 1}), r"\[1\] are missing"),
    (partial(mixture, covariance="spherical"), "covariance must be"),
    (partial(mixture, component_alpha=0.0), "component_alpha must be > 0"),
    (partial(regression, GAPS), "'x1' in row 3; p.y . x. says nothing of x"),
    (partial(regression, features="cubic"), "must be one of 'linear', 'quadratic'"),
    (partial(regression, coef_scale=0.0), "coef_scale must be > 0"),
    (partial(regression, y=np.zeros(60)), "all of one class"),
    (lambda: LogisticRegression().with_defaults(GAPS, Y, 2), SAYS_NOTHING.format(", feature 1")),
    (partial(rates, spoiled(COUNTS, 2, 0, 0.0)), "exposure must be > 0 and finite, got 0 in row 2"),
    (partial(rates, spoiled(COUNTS, 2, 0, np.nan)), r"exposure is missing \(NaN\) in row 2"),
    (partial(rates, spoiled(COUNTS, 2, 0, np.inf)), "exposure must be > 0 and finite"),
    (partial(counts, COUNTS, exposure="words"), "exposure='words' is not a column of X"),
    (partial(counts, COUNTS, exposure=4), "exposure=4, but X has 2 columns"),
    (partial(counts, spoiled(COUNTS, 1, 1, 0.5)), r"counts must be whole numbers .*, got 0\.5"),
    (partial(counts, spoiled(COUNTS, 1, 1, -1)), r"Negative values .* row 1, column 'x1'"),
]


@pytest.mark.parametrize(("call", "message"), REFUSALS, ids=[words for _, words in REFUSALS])
def test_what_families_refuse(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
