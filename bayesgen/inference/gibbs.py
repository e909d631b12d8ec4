r"""Rows without a label, by data augmentation: labels given theta, theta given labels.

Each sweep draws the unknown labels from p(y | x, theta), adds their rows to the statistics, and
draws theta from the conjugate posterior: exact in the limit, nothing to compile, and as fast as
one pass over the unlabelled rows. It mixes slowly where most labels are missing and classes
overlap; R-hat and the effective sample size say so.

Source: Tanner and Wong (1987), The calculation of posterior distributions by data augmentation.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from bayesgen.families.names import CLASS_WEIGHTS
from bayesgen.inference.diagnostics import refuse_incomplete
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior.model import ClassModel, ClassStats, log_weights


def sample(
    prior: ClassModel,
    X: Matrix,
    codes: Array,
    weight: Array | None = None,
    *,
    draws: int = 1000,
    tune: int = 200,
    chains: int = 4,
    random_seed: int | None = None,
    progressbar: bool = True,
) -> dict[str, Array]:
    """Posterior draws {name: (chain, draw, *dims)} given labelled and unlabelled rows.

    Parameters
    ----------
    prior : ClassModel
        Of a conjugate family, resolved.
    X : (N, D) as the family's `stats` takes it
    codes : (N,)
        Class codes; -1 where there is no label.
    weight : (N,), optional
        Of the rows; whole numbers where there is no label, since each of so many equal rows has
        a label of its own.
    draws, tune, chains : int
        Sweeps of each chain that are kept, after `tune` that are not.
    """
    unknown = codes < 0
    n_classes = len(prior.alpha)
    loose = np.flatnonzero(unknown)
    copies = None if weight is None else weight[loose]
    if copies is not None and np.any(copies != np.floor(copies)):
        raise ValueError(
            "inference='gibbs' draws a label for each row, so the weight of a row without one must "
            "be a whole number; use inference='nuts'"
        )
    known = np.flatnonzero(~unknown)
    own = None if weight is None else weight[known]
    labelled = prior.stats(X[known], codes[known], n_classes, own)
    rows = X[loose]
    out: dict[str, Array] = {}
    seeds = np.random.SeedSequence(random_seed).spawn(chains)
    with _progress(chains * (draws + tune), progressbar) as advance:
        for chain, seed in enumerate(seeds):
            rng = np.random.default_rng(seed)
            model = prior.update(labelled)  # the first labels come from the labelled rows alone
            for sweep in range(-tune, draws):
                theta = {name: value[0] for name, value in model.draw(rng, 1).items()}
                if len(loose):
                    stats = _with_labels(rng, prior, theta, rows, copies)
                    model = prior.update(labelled.merge(stats))
                if sweep >= 0:
                    for name, value in theta.items():
                        if name not in out:
                            out[name] = np.empty((chains, draws, *np.shape(value)))
                        out[name][chain, sweep] = value
                advance()
    refuse_incomplete(out, chains, draws, "Gibbs")
    return out


def _with_labels(
    rng: np.random.Generator,
    prior: ClassModel,
    theta: dict[str, Array],
    X: Matrix,
    copies: Array | None,
) -> ClassStats:
    """Statistics of rows whose labels are drawn from p(y | x, theta)."""
    joint = prior.family.log_likelihood(X, theta) + log_weights(theta[CLASS_WEIGHTS])
    n_classes = joint.shape[1]
    if copies is None:
        codes = np.argmax(joint + rng.gumbel(size=joint.shape), axis=1)
        return prior.stats(X, codes, n_classes)
    share = rng.multinomial(copies.astype(np.int64), np.exp(log_softmax(joint)))
    row, codes = np.nonzero(share)
    return prior.stats(X[row], codes, n_classes, share[row, codes].astype(np.float64))


@contextmanager
def _progress(total: int, shown: bool) -> Iterator[Any]:
    if not shown:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Gibbs sweeps", total=total)
        yield lambda: bar.advance(task)
