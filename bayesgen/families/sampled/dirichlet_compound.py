r"""Bursty documents: each has word probabilities of its own, theta_i | y=c ~ Dirichlet(s_c mean_c).

.. math::

    p(x \mid \alpha, L) = \frac{L!}{\prod_j x_j!}\,
        \frac{\prod_j \alpha_j (\alpha_j + 1) \cdots (\alpha_j + x_j - 1)}
             {s (s + 1) \cdots (s + L - 1)}, \qquad \alpha_j = s\,\text{mean}_j

The length L of a document is given. mean_c are the word probabilities of a class, the
concentration s_c, in words, says how alike its documents are: a word that has been drawn is drawn
again with probability (alpha_j + 1)/(s + 1). With s large the words are independent draws: the
multinomial.

.. math::

    \text{mean}_c \sim \text{Dirichlet}(a), \quad
    \log s_c \sim \text{Normal}(\log \bar L, 2^2)

a = 1 as in the multinomial family, and the mean length of a document, at which the variance of a
count is about twice a multinomial's. Prefer it to the multinomial where words are repeated once
they have been used, which is all real text. Do not mistake it for the predictive of the conjugate
family, which is of the same form: there one theta_c is unknown, and shared by all documents.

Source: Madsen, Kauchak and Elkan (2005), Modeling word burstiness using the Dirichlet
distribution, ICML.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from bayesgen.families.contract import Family, Theta
from bayesgen.families.names import CLASS, FEATURE, OBS
from bayesgen.families.records import array, guide, prior_object
from bayesgen.families.shared import pymc_parts
from bayesgen.families.shared.documents import (
    Factors,
    WordCounts,
    counted_dirichlet,
    log_product,
    refuse_fractional_counts,
    row_of_cells,
)
from bayesgen.families.shared.hyperparameters import broadcast_prior
from bayesgen.numerics import rows as passes
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, draw_log_gamma, log_factorial, log_gamma_difference

_TABLE = 1 << 20  # numbers of one table (draw, class, distinct cell): 8 MiB


@dataclass(frozen=True, eq=False)
class DirichletCompound(WordCounts, Family):
    """Bags of words, each from word probabilities of its own.

    Parameters
    ----------
    mean, concentration : prior objects, optional
        Of the word probabilities (class, feature), which sum to 1 over the features, and of s
        (class,), in words. None: the default above.
    alpha : float or array broadcasting to (class, feature), > 0
        Pseudo-counts a of each word, in words, of the default prior of `mean`.
    typical : float, optional
        Median of the default prior of s, in words. None: the mean length of a document.
    reference : array (class, feature), optional
        Pilot counts, in whose coordinates `mean` is sampled (`documents`); no density depends on
        them. None: in how many documents a word occurs, plus alpha.
    length : int or array (N,), optional
        Words in a simulated document. None: the mean length.
    """

    sums_rows: ClassVar[bool] = True

    mean: Any = prior_object()
    concentration: Any = prior_object()
    alpha: Any = array(CLASS, FEATURE, default=1.0)
    typical: Any = array(default=None)
    reference: Any = guide(CLASS, FEATURE)
    length: Any = None

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``mean``: probability of each word; ``concentration``: s, in words."""
        return {"mean": (CLASS, FEATURE), "concentration": (CLASS,)}

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Flat; unequal words, in short documents."""
        flat = np.ones((n_classes, n_features))
        unequal = 0.5 + np.arange(flat.size).reshape(flat.shape) % 5
        return [
            cls(alpha=flat, typical=np.array(20.0), reference=flat, length=20),
            cls(alpha=unequal, typical=np.array(3.0), reference=unequal, length=4),
        ]

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """(..., N, C) log masses of the documents, coefficient included."""
        self.check(X)
        mean, total = (np.asarray(theta[k], np.float64) for k in ("mean", "concentration"))
        *batch, n_classes, n_features = mean.shape
        total = total.reshape(-1, n_classes, 1)
        alpha = mean.reshape(-1, n_classes, n_features) * total
        out = np.empty((len(alpha), X.shape[0], n_classes))
        for rows, cells in passes.stored_blocks(X, 0):
            length, which = np.unique(
                passes.row_sums(cells.data, cells.indptr), return_inverse=True
            )
            word, times, shared = passes.distinct_cells(cells)
            coefficient = log_factorial(length)[which] - passes.row_sums(
                log_factorial(cells.data), cells.indptr
            )
            for own in passes.row_blocks(
                len(alpha), n_classes * max(len(times), len(which)), _TABLE
            ):
                with np.errstate(invalid="ignore"):  # a mean that underflowed to 0: -inf
                    words = log_gamma_difference(alpha[own][..., word], times)
                document = passes.shared_sums(shared, words)
                document -= log_gamma_difference(total[own], length)[..., which]
                out[own, rows] = np.moveaxis(document + coefficient, -1, -2)
        return out.reshape(*batch, X.shape[0], n_classes)

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """(N, D) documents of `length` words, as int64."""
        alpha = self.rows_of(theta, "mean", y) * self.rows_of(theta, "concentration", y)[..., None]
        log_gamma = draw_log_gamma(rng, alpha, alpha.shape)
        p = np.exp(log_gamma - log_gamma.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        return rng.multinomial(100 if self.length is None else self.length, p)

    def with_defaults(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> Self:
        """Pseudo-counts as an array, the mean length, and pilot counts."""
        self.check(X)
        alpha = broadcast_prior("alpha", self.alpha, (n_classes, X.shape[1]))
        cells = passes.stored_cells(X, slice(None))
        length = np.average(passes.row_sums(cells.data, cells.indptr), weights=weight)
        labelled = np.flatnonzero(y >= 0)
        # in how many documents: repetitions say little
        seen = passes.class_sums(cells[labelled], y[labelled], n_classes, None, np.sign) + alpha
        drawn = max(1, round(float(length))) if self.length is None else self.length
        out = replace(self, alpha=alpha, length=drawn)
        return out.filled(typical=np.array(max(1.0, length)), reference=seen)

    def to_pymc(
        self,
        *,
        prefix: str = "",
        X: Matrix | None = None,
        y: Any = None,
        stats: Any = None,
        summed: bool = False,
    ) -> dict[str, Any]:
        """Dirichlet means, log-Normal concentrations; rows, summed by their distinct factors."""
        import pymc as pm
        import pytensor.tensor as pt

        prior = pymc_parts.declare(self, "prior", prefix)

        def default(name: str, dims: tuple[str, ...]) -> Any:
            if self.alpha.shape[-1] == 1:
                return pymc_parts.dirichlet(name, self.alpha, prior["alpha"], dims)
            return counted_dirichlet(name, prior["alpha"], prior["reference"], dims)

        mean = pymc_parts.parameter(self, prefix, "mean", default)
        total = pymc_parts.parameter(
            self,
            prefix,
            "concentration",
            lambda total, dims: pm.LogNormal(total, pt.log(prior["typical"]), 2.0, dims=dims),
        )
        if X is not None and summed:
            log_p = self._log_rows(f"{prefix}x", X, pymc_parts.known_codes(y), mean, total)
            pm.Potential(f"{prefix}x", log_p)
        elif X is not None:
            self.check(X)
            refuse_fractional_counts(passes.stored_cells(X, slice(None)).data)
            counts = pymc_parts.cells_data(prefix, X, whole=True)
            pm.DirichletMultinomial(
                f"{prefix}x",
                n=counts.sum(axis=1),
                a=(mean * total[:, None])[y],
                observed=counts,
                dims=(OBS, f"{prefix}{FEATURE}"),
            )
        return {"mean": mean, "concentration": total}

    def _log_rows(self, name: str, X: Matrix, y: Array, mean: Any, total: Any) -> Any:
        """Tensor: log likelihood of labelled rows, by the distinct factors of their masses."""
        import pymc as pm
        import pytensor.tensor as pt

        self.check(X)
        cells = passes.stored_cells(X, slice(None))
        refuse_fractional_counts(cells.data)
        length = passes.row_sums(cells.data, cells.indptr)
        words = Factors.of(y[row_of_cells(cells)] * X.shape[1] + cells.indices, cells.data)
        documents = Factors.of(y, length)
        alpha = (mean * total[:, None]).ravel()
        constant = np.sum(log_factorial(length)) - np.sum(log_factorial(cells.data))
        return (
            words.log_sum(f"{name}_words", alpha, pt.ones_like(alpha))
            - documents.log_sum(f"{name}_documents", total, pt.ones_like(total))
            + pm.Data(f"{name}_constant", float(constant))
        )

    def pymc_log_likelihood(self, X: Matrix, theta: Any, *, prefix: str = "") -> Any:
        """Sums over the words that occur, and the terms of the lengths."""
        import pymc as pm
        import pytensor.tensor as pt

        self.check(X)
        cells = passes.stored_cells(X, slice(None))
        length, which = np.unique(passes.row_sums(cells.data, cells.indptr), return_inverse=True)
        column, times, shared = passes.distinct_cells(cells)
        total = theta["concentration"]
        word = pm.Data(f"{prefix}word", column.astype(np.int64))
        x = pm.Data(f"{prefix}times", times)[:, None]
        n = pm.Data(f"{prefix}length", length)[:, None]
        alpha = (theta["mean"] * total[:, None]).T[word]
        words = log_product(alpha, 1.0, x) - pt.gammaln(x + 1)
        documents = log_product(total, 1.0, n) - pt.gammaln(n + 1)
        row = pm.Data(f"{prefix}length_of", which.astype(np.int64))
        return pymc_parts.sum_cells(f"{prefix}counts", shared, words) - documents[row]
