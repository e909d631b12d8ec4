r"""Correlated words: each document has word probabilities softmax(log centre_c + z' loading_c).

.. math::

    p(x \mid c) = \int \text{Multinomial}(x \mid L,
        \text{softmax}(\log \text{centre}_c + z^\top \Lambda_c))\, \text{Normal}(z \mid 0, I)\, dz

The log-odds of the words are Normal with covariance Lambda' Lambda of rank K: words that are used
together, or instead of each other. The length L is given. The integral has K dimensions, whatever
the number of words, and is a sum over a fixed grid of z (trapezoidal rule, `nodes` on each axis
from -4.5 to 4.5), the same in NumPy and in PyMC. With Q nodes of weight w_q,

.. math::

    \log p(x \mid c) = \log\frac{L!}{\prod_j x_j!} + x \cdot \log \text{centre}_c + \log \sum_q w_q
        \exp\big(z_q \cdot \Lambda_c x - L\, \text{lse}_{cq}\big), \quad
    \text{lse}_{cq} = \log \sum_j \text{centre}_{cj} e^{z_q \cdot \Lambda_{cj}}

so that a document enters by the K numbers Lambda x and its length. The weights are positive and
sum to 1: p(x | c) is a probability whatever the grid, that of a z on the nodes. It differs from
the integral by a factor of about :math:`1 \pm 2\exp(-2\pi^2 \sigma^2/h^2)`, h the distance of two
nodes and sigma the standard deviation of z given the document, about
:math:`(1 + L v)^{-1/2}` with v the variance of Lambda over the words. The default h is sigma/0.6
for v = 1 at all but the longest 5 % of the documents: 0.2 %, and less for shorter ones.

.. math::

    \text{centre}_c \sim \text{Dirichlet}(a), \quad
    \Lambda_{ck} = \text{spread}_{ck}\, \text{unit}_{ck}, \quad
    \text{spread}_{ck} \sim \text{HalfNormal}(1), \quad \text{unit}_{ck} \sim \text{Normal}(0, I)

unit sums to 0 over the words: a constant has no effect. Nor have rotations of the K factors, sign
changes among them: the loadings have a positive part along a direction that the rows suggest
(the leading eigenvectors of their factorial second moments), and a lower triangular one with a
positive diagonal if K > 1.

With one factor, the default priors and rows, what NUTS sees are coordinates in which the posterior
is round (`pymc_model`), and either sign of the loadings, put right afterwards.

Source: Aitchison and Shen (1980), Logistic-normal distributions: some properties and uses,
Biometrika 67; Blei and Lafferty (2007), A correlated topic model of Science, Annals of Applied
Statistics 1. Error of the trapezoidal rule: Trefethen and Weideman (2014), SIAM Review 56.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import logsumexp

from bayesgen.families.contract import Family, Theta
from bayesgen.families.names import CLASS, FEATURE, FEATURE_BIS
from bayesgen.families.records import array, guide, prior_object
from bayesgen.families.sampled.logistic_normal import pymc_model
from bayesgen.families.shared.hyperparameters import broadcast_prior
from bayesgen.families.shared.word_counts import WordCounts
from bayesgen.numerics.rows import (
    Matrix,
    class_sums,
    dot,
    dot_log,
    row_blocks,
    row_sums,
    stored_cells,
)
from bayesgen.numerics.special import Array, log_factorial

FACTOR = "factor"
_REACH = 4.5  # of the grid: a mass of 7e-6 is outside
_TABLE = 1 << 20  # numbers of one table (draw, row, class, node): 8 MiB


@dataclass(frozen=True, eq=False)
class LogisticNormal(WordCounts, Family):
    """Bags of words whose log-odds vary together from document to document.

    Parameters
    ----------
    centre, spread : prior objects, optional
        Of the word probabilities of a middling document (class, feature), which sum to 1 over the
        features, and of the standard deviation of the loadings (class, factor), in log-odds. None:
        the default above.
    alpha : float or array broadcasting to (class, feature), > 0
        Pseudo-counts a of each word, in words, of the default prior of `centre`.
    reference : array (class, feature), optional
        Pilot counts, in whose coordinates `centre` is sampled (`simplex`); no density depends on
        them. None: word counts plus alpha.
    direction : array (class, factor, feature), optional
        Orthonormal for each class, each with sum 0: along which the loadings are positive. None:
        from the rows.
    factors : int
        K.
    nodes : int, optional
        On each axis of the grid. None: from the lengths of the documents.
    length : int or array (N,), optional
        Words in a simulated document. None: the mean length.
    """

    sums_rows: ClassVar[bool] = True

    centre: Any = prior_object()
    spread: Any = prior_object()
    alpha: Any = array(CLASS, FEATURE, default=1.0)
    reference: Any = guide(CLASS, FEATURE)
    direction: Any = guide(CLASS, FACTOR, FEATURE)  # of loadings, the signs depend on it
    factors: int = 1
    nodes: int | None = None
    length: Any = None

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``centre``: word probabilities at z = 0; ``loading``: Lambda, in log-odds."""
        return {"centre": (CLASS, FEATURE), "loading": (CLASS, FACTOR, FEATURE)}

    def coords(self) -> dict[str, Any]:
        """Numbers of the factors."""
        return {FACTOR: np.arange(self.factors)}

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """One factor, and as many as there are contrasts of words, up to 2."""
        flat = np.ones((n_classes, n_features))
        contrast = np.linalg.svd(np.eye(n_features) - 1 / n_features)[0]
        out = []
        for factors in {1, min(2, n_features - 1)}:
            direction = np.broadcast_to(contrast.T[:factors], (n_classes, factors, n_features))
            out.append(cls(None, None, flat, flat, direction, factors, 17, 20))
        return out

    @property
    def hyperparameters(self) -> dict[str, tuple[str, ...]]:
        """``spread`` of the loadings."""
        return {"spread": (CLASS, FACTOR)}

    def identified(self, theta: Theta) -> dict[str, tuple[tuple[str, ...], Array]]:
        """The covariance of the log-odds instead of loadings, whose signs follow `direction`."""
        loading = np.asarray(theta["loading"])
        covariance = np.swapaxes(loading, -1, -2) @ loading
        return {
            "centre": (self.params["centre"], np.asarray(theta["centre"])),
            "covariance": ((CLASS, FEATURE, FEATURE_BIS), covariance),
        }

    # -- the grid ----------------------------------------------------------------------------

    def grid(self) -> tuple[Array, Array]:
        """Nodes (Q, K) and log weights (Q,)."""
        axis = np.linspace(-_REACH, _REACH, 25 if self.nodes is None else self.nodes)
        z = np.stack(np.meshgrid(*[axis] * self.factors, indexing="ij"), axis=-1)
        z = z.reshape(-1, self.factors)
        log_w = -np.square(z).sum(axis=-1) / 2
        return z, log_w - logsumexp(log_w)

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """(..., N, C) log masses of the documents, coefficient included."""
        self.check(X)
        centre, loading = (np.asarray(theta[k], np.float64) for k in ("centre", "loading"))
        *batch, n_classes, n_features = centre.shape
        centre = centre.reshape(-1, n_classes, n_features)
        loading = loading.reshape(-1, n_classes, self.factors, n_features)
        z, log_w = self.grid()
        cells = stored_cells(X, slice(None))
        length = row_sums(cells.data, cells.indptr)
        coefficient = log_factorial(length) - row_sums(log_factorial(cells.data), cells.indptr)
        out = np.empty((len(centre), X.shape[0], n_classes))
        for s in row_blocks(len(centre), centre[0].size * len(z)):
            with np.errstate(divide="ignore"):
                words = np.log(centre[s])[..., None] + np.einsum("sckj,qk->scjq", loading[s], z)
            lse = logsumexp(words, axis=2)  # (s, C, Q)
            own = centre[s]
            step = max(1, _TABLE // (len(own) * n_classes * len(z)))
            for start in range(0, X.shape[0], step):
                rows = slice(start, start + step)
                part = cells[rows]
                along = dot(part, np.moveaxis(loading[s], 2, 1))  # (s, K, n, C)
                exponent = np.einsum("sknc,qk->sncq", along, z) + log_w
                exponent -= length[rows, None, None] * lse[:, None]
                top = exponent.max(axis=-1, keepdims=True)
                exponent -= top
                found = np.log(np.exp(exponent, out=exponent).sum(axis=-1)) + top[..., 0]
                out[s, rows] = found + dot_log(part, own) + coefficient[rows, None]
        return out.reshape(*batch, X.shape[0], n_classes)

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """(N, D) documents of `length` words, as int64."""
        z, log_w = self.grid()
        drawn = z[rng.choice(len(z), size=len(y), p=np.exp(log_w))]
        with np.errstate(divide="ignore"):
            log_p = np.log(self.rows_of(theta, "centre", y))
        log_p = log_p + np.einsum("nkj,nk->nj", self.rows_of(theta, "loading", y), drawn)
        p = np.exp(log_p - log_p.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        return rng.multinomial(100 if self.length is None else self.length, p)

    # -- defaults ----------------------------------------------------------------------------

    def with_defaults(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> Self:
        """Pseudo-counts as an array, pilot counts, directions, the grid, the mean length."""
        self.check(X)
        n_features = X.shape[1]
        if not 1 <= self.factors < n_features:
            raise ValueError(
                f"factors must be at least 1 and less than the number of words, which is "
                f"{n_features}; got {self.factors!r}"
            )
        alpha = broadcast_prior("alpha", self.alpha, (n_classes, n_features))
        cells = stored_cells(X, slice(None))
        length = row_sums(cells.data, cells.indptr)
        labelled = np.flatnonzero(y >= 0)
        counts = class_sums(cells[labelled], y[labelled], n_classes) + alpha
        direction = self.direction
        if direction is None:
            own = [y == c if (y == c).any() else np.ones(len(y), bool) for c in range(n_classes)]
            direction = [
                directions(cells[rows], count / count.sum(), self.factors)
                for rows, count in zip(own, counts, strict=True)
            ]
        spacing = 1 / (0.6 * np.sqrt(1 + np.quantile(length, 0.95)))
        nodes = int(np.clip(1 + np.ceil(2 * _REACH / spacing), 9, 129))
        mean = np.average(length, weights=weight)
        return replace(
            self,
            alpha=alpha,
            reference=counts if self.reference is None else self.reference,
            direction=np.asarray(direction, dtype=np.float64),
            nodes=nodes if self.nodes is None else self.nodes,
            length=max(1, round(float(mean))) if self.length is None else self.length,
        )

    def start(self, rng: np.random.Generator) -> dict[str, Array] | None:
        """At the directions that the rows suggest: elsewhere there may be lesser modes."""
        if self.centre is not None or self.spread is not None:
            return None
        centre = np.stack([rng.dirichlet(a) for a in self.reference])
        noise = 0.2 * rng.normal(size=self.direction.shape)
        by_factor = self.direction.shape[:2]
        white = (len(centre), centre.shape[-1] - 1)
        return {
            "centre_white": 0.5 * rng.normal(size=white),
            "loading_white": 0.5 * rng.normal(size=white),
            "centre": np.maximum(centre, 1e-12),
            "spread": 0.5 * np.exp(rng.uniform(-0.3, 0.3, by_factor)),
            "unit": noise - noise.mean(axis=-1, keepdims=True),
            "along": np.full(by_factor, 0.5 * np.sqrt(self.direction.shape[-1])),
        }

    # -- PyMC --------------------------------------------------------------------------------

    def to_pymc(
        self,
        *,
        prefix: str = "",
        X: Matrix | None = None,
        y: Any = None,
        stats: Any = None,
        summed: bool = False,
    ) -> dict[str, Any]:
        """Dirichlet centres, zero-sum Normal loadings; rows, each over the grid.

        Given rows they decide on the coordinates: for other rows of a posterior that was sampled
        change the data ``cells`` and ``y`` of the model of the rows that it was sampled with.
        """
        return pymc_model.declare(self, prefix, X, y, summed)

    def relabelled(self, draws: dict[str, Array], X: Matrix, y: Array) -> dict[str, Array]:
        """Loadings of either sign with their positive part along `direction`."""
        if "loading_white" not in draws:
            return {}
        loading = np.asarray(draws["loading"])
        along = (loading * self.direction).sum(axis=-1, keepdims=True)
        return {"loading": np.where(along < 0, -loading, loading)}

    def pymc_log_likelihood(self, X: Matrix, theta: Any, *, prefix: str = "") -> Any:
        """As `log_likelihood`, on the same grid."""
        return pymc_model.log_likelihood(self, X, theta, prefix)


def directions(cells: Any, p: Array, n_factors: int) -> Array:
    r"""(K, D) orthonormal contrasts of words, along which the documents vary beyond chance.

    Leading eigenvectors e of :math:`P^{-1/2} (M - p p^\top) P^{-1/2}`, M the mean of
    :math:`(x x^\top - \text{diag}(x))/(L(L - 1))`, whose expectation is that of theta theta':
    what multinomial draws add is taken out. :math:`P^{1/2} e` weighs the words by what is known of
    them.
    """
    from scipy.sparse.linalg import LinearOperator, eigsh

    n_features = len(p)
    length = row_sums(cells.data, cells.indptr)
    pairs = float(np.sum(length * (length - 1)))
    total = np.asarray(cells.sum(axis=0)).ravel()
    root = np.sqrt(p)

    def times(v: Array) -> Array:
        u = v.ravel() / root
        moment = (cells.T @ (cells @ u) - total * u) / max(pairs, 1.0)
        return np.asarray((moment - p * (p @ u)) / root)

    if n_features <= max(64, 2 * n_factors + 1):
        matrix = np.stack([times(e) for e in np.eye(n_features)])
        vectors = np.linalg.eigh((matrix + matrix.T) / 2)[1][:, ::-1]
    else:
        operator = LinearOperator((n_features, n_features), matvec=times, dtype=np.float64)
        start = np.cos(np.arange(n_features))  # the same each time
        vectors = eigsh(operator, k=n_factors, which="LA", v0=start)[1][:, ::-1]
    basis = root[:, None] * vectors[:, :n_factors]
    q = np.linalg.qr(basis - basis.mean(axis=0))[0].T
    return q * np.sign(q[np.arange(n_factors), np.abs(q).argmax(axis=1)])[:, None]
