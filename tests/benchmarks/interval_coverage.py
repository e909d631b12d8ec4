"""Coverage of intervals of class probabilities: run it, it prints a table.

    .venv/bin/python tests/benchmarks/interval_coverage.py             some minutes, one thread

Theta and class weights are drawn from the prior, training rows from theta, new rows from another
theta of the prior, since coverage is nominal for rows that do not depend on theta. An interval
covers if p(y | x, theta) is inside.
"""

import argparse
from collections.abc import Iterator

import numpy as np
from scipy.special import expit

from bayesgen.families import registry
from bayesgen.families.contract import ConjugateFamily
from bayesgen.numerics.special import log_odds_against_rest
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.model import ClassModel
from bayesgen.predict.draws import intervals
from bayesgen.predict.request import IntervalRequest

PROB = 0.89
CLASSES, ROWS = (2, 3, 6), (5, 20, 100)  # rows of each class on average


def priors(n_classes: int) -> Iterator[tuple[str, ConjugateFamily]]:
    """Example priors of every conjugate family that describes rows."""
    for name, family in registry().items():
        if issubclass(family, ConjugateFamily):
            for k, prior in enumerate(family.examples(n_classes, 4)):
                yield f"{name} {k}", prior


def covered(family: ConjugateFamily, n_classes: int, n: int, seed: int) -> float:
    """Share of class probabilities of 20 new rows inside their intervals, for one theta."""
    rng = np.random.default_rng(seed)
    theta, other = (
        {name: value[0] for name, value in family.draw(rng, 1).items()} for _ in range(2)
    )
    pi = rng.dirichlet(np.ones(n_classes))
    y = rng.choice(n_classes, size=n * n_classes, p=pi)
    X = family.simulate(rng, theta, y)
    new = family.simulate(rng, other, rng.choice(n_classes, size=20))
    prior = ClassModel(np.ones(n_classes), family)
    stats = prior.stats(X, y, n_classes)
    own = ExactPosterior(prior, prior.update(stats), stats)
    ends = intervals(own.log_joint_draws(new, 2000, seed), IntervalRequest(PROB, "eti"))
    log_joint = np.log(pi) + family.log_likelihood(new, theta)
    p = expit(log_odds_against_rest(log_joint.T).T)
    return float(np.mean((expit(ends.lower) <= p) & (p <= expit(ends.upper))))


def main() -> None:
    """Print coverage of every prior, and the cells that are too low."""
    parser = argparse.ArgumentParser(description="Coverage of intervals.")
    parser.add_argument("--sets", type=int, default=25, help="data sets of a cell")
    args = parser.parse_args()
    cells = [(n_classes, n) for n_classes in CLASSES for n in ROWS]
    print(f"{'prior':26s}" + "".join(f"{f'C {c}, {n}':>12s}" for c, n in cells))
    every, low = [], []
    for name in [name for name, _ in priors(2)]:
        line = f"{name:26s}"
        for n_classes, n in cells:
            family = dict(priors(n_classes))[name]
            shares = [covered(family, n_classes, n, seed) for seed in range(args.sets)]
            mean, error = np.mean(shares), np.std(shares, ddof=1) / np.sqrt(len(shares))
            every.append(mean)
            low += [(name, n_classes, n)] if mean < PROB - 3 * error else []
            line += f"{mean:7.2f}{error:5.2f}"
        print(line, flush=True)
    print(f"mean {np.mean(every):.3f}; below by more than 3 standard errors: {low}")


if __name__ == "__main__":
    main()
