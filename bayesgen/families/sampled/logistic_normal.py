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
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.linalg import eigh, helmert
from scipy.optimize import minimize
from scipy.special import logsumexp

from bayesgen.families.contract import Family, Theta
from bayesgen.families.names import CLASS, FEATURE, FEATURE_BIS, OBS
from bayesgen.families.records import array, guide, prior_object
from bayesgen.families.shared import pymc_parts
from bayesgen.families.shared.documents import (
    WordCounts,
    counted_dirichlet,
    refuse_fractional_counts,
)
from bayesgen.families.shared.hyperparameters import broadcast_prior
from bayesgen.families.shared.pymc_parts import declare as declare_data
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
        Pilot counts, in whose coordinates `centre` is sampled (`documents`); no density depends on
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
            for rows in row_blocks(X.shape[0], len(own) * n_classes * len(z), _TABLE):
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
        import pymc as pm
        import pytensor.tensor as pt

        if X is not None and _has_guide(self):
            return _declare_round(self, prefix, X, y, summed)
        prior = declare_data(self, "prior", prefix)
        dims = {name: pymc_parts.prefixed(prefix, d) for name, d in self.params.items()}
        w, r = prior["reference"], prior["direction"]
        centre = pymc_parts.parameter(
            self,
            prefix,
            "centre",
            lambda centre, dims: counted_dirichlet(centre, prior["alpha"], w, dims),
        )
        by_factor = dims["loading"][:2]
        spread = pymc_parts.parameter(
            self, prefix, "spread", lambda name, d: pm.HalfNormal(name, 1.0, dims=d)
        )
        unit = pm.ZeroSumNormal(f"{prefix}unit", sigma=1.0, n_zerosum_axes=1, dims=dims["loading"])
        along = pm.HalfNormal(f"{prefix}along", 1.0, dims=by_factor)
        # the parts along r_l: of factor k itself `along`, of earlier ones those of `unit`, else 0
        parts = []
        for k in range(self.factors):
            part = unit[:, k]
            for l in range(k, self.factors):
                part = part - r[:, l] * (r[:, l] * part).sum(axis=-1, keepdims=True)
            parts.append(part + r[:, k] * along[:, k, None])
        loading = pm.Deterministic(
            f"{prefix}loading", spread[:, :, None] * pt.stack(parts, axis=1), dims=dims["loading"]
        )
        theta = {"centre": centre, "loading": loading}
        if X is not None:
            _condition(self, prefix, X, y, theta, summed)
        return theta

    def relabelled(self, draws: dict[str, Array], X: Matrix, y: Array) -> dict[str, Array]:
        """Loadings of either sign with their positive part along `direction`."""
        if "loading_white" not in draws:
            return {}
        loading = np.asarray(draws["loading"])
        along = (loading * self.direction).sum(axis=-1, keepdims=True)
        return {"loading": np.where(along < 0, -loading, loading)}

    def pymc_log_likelihood(self, X: Matrix, theta: Any, *, prefix: str = "") -> Any:
        """As `log_likelihood`, on the same grid."""
        import pymc as pm
        import pytensor.tensor as pt

        self.check(X)
        cells = stored_cells(X, slice(None))
        length = row_sums(cells.data, cells.indptr)
        coefficient = log_factorial(length) - row_sums(log_factorial(cells.data), cells.indptr)
        z, log_w = self.grid()
        n_words = pm.Data(f"{prefix}length", length)
        exponent = log_w - n_words[:, None, None] * _log_norm(theta, z)
        for k in range(self.factors):
            along = pymc_parts.sum_cells(f"{prefix}along_{k}", cells, theta["loading"][:, k].T)
            exponent = exponent + along[:, :, None] * z[:, k]
        words = pymc_parts.sum_cells(f"{prefix}counts", cells, pt.log(theta["centre"]).T)
        constant = pm.Data(f"{prefix}coefficient", coefficient)[:, None]
        return _log_sum_exp(exponent, 2) + words + constant


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


# ------------------------------------------------------------------------------------------------
# Coordinates in which the posterior of a class of correlated words is round.
#
# A document x of length L has :math:`\log p(x) = \log \sum_q w_q e^{x\ell + z_q x\lambda - L\,
# \text{lse}(\ell + z_q \lambda)}`, with log word probabilities ell and loadings lambda, both known
# up to a constant: E, the contrasts of the words, and :math:`\ell = E t, \lambda = E \beta`. Under
# a Dirichlet prior on softmax(ell) and :math:`\beta \sim \text{Normal}(0, s^2)` the mode of (t,
# beta) is found, and with H the negative second derivatives there,
#
# .. math:: t \mid \beta \approx \text{Normal}(t_0 - H_{tt}^{-1} H_{t\beta} (\beta - \beta_0),
#           H_{tt}^{-1}), \qquad
#           A = H_{\beta\beta} - H_{\beta t} H_{tt}^{-1} H_{t\beta} = V\,\text{diag}(a)\,V^\top
#
# A, the likelihood's part, is what the rows say of beta when t is integrated out. In its axes, and
# whatever the spread s,
#
# .. math:: b = V^\top\beta, \qquad b_i \mid s \approx
#           \text{Normal}\Big(\frac{p_i}{a_i + s^{-2}}, \frac{1}{a_i + s^{-2}}\Big)
#
# In distances from these means, in these standard deviations, the posterior is near the standard
# Normal: words that are always used together, and words never used, are no trouble, nor is a
# spread near 0.
#
# Source: Papaspiliopoulos, Roberts and Sköld (2007), A general framework for the parametrization
# of hierarchical models; Girolami and Calderhead (2011), Riemann manifold Langevin and Hamiltonian
# Monte Carlo methods (curvature as coordinates; here it is taken once, at the mode).

_SWEEPS = 3  # of mode and spread, in turns


class Guide(NamedTuple):
    """Of C classes: what turns D - 1 round coordinates of each into ell and lambda."""

    origin: Array  # (C, D) ell at the mode
    place: Array  # (C, D - 1) b at the mode
    slope: Array  # (C, D, D - 1) of ell in b
    width: Array  # (C, D, D - 1) of ell in round coordinates
    axes: Array  # (C, D, D - 1) of lambda: E V
    information: Array  # (C, D - 1) a
    pull: Array  # (C, D - 1) p

    @classmethod
    def of(cls, classes: list[Any], alpha: Array, z: Array, log_w: Array, first: Array) -> "Guide":
        """Of the documents of each class.

        Parameters
        ----------
        classes : CSR matrices (N_c, D)
        alpha : (C, D)
        z, log_w : (Q,)
        first : (C, D) loadings to start from
        """
        parts = [
            _of_class(_Documents(cells, a, z, log_w), start)
            for cells, a, start in zip(classes, alpha, first, strict=True)
        ]
        return cls(*(np.stack(part) for part in zip(*parts, strict=True)))


def _of_class(documents: "_Documents", first: Array) -> tuple[Array, ...]:
    n_words = len(first)
    E = helmert(n_words).T
    at = np.concatenate([np.log(documents.pilot), first])
    s = 1.0
    for _ in range(_SWEEPS):
        found = minimize(
            documents.value_and_gradient, at, (s,), "L-BFGS-B", True, options={"maxiter": 1000}
        )
        at = found.x
        H = documents.information(at)
        tt, tb, bb = (E.T @ part @ E for part in (H[0], H[1], H[2]))
        size, axes = eigh(tt)
        root = axes / np.sqrt(np.maximum(size, 1e-3 * size.max()))  # H_tt^-1 = root root'
        slope = -root @ (root.T @ tb)
        a, V = eigh(bb + tb.T @ slope)
        a = np.maximum(a, 0.0)
        beta = V.T @ (E.T @ at[n_words:])
        s = float(np.sqrt(np.mean(beta**2 + 1 / (a + s**-2))))
    ell = at[:n_words]
    return ell - ell.mean(), beta, E @ slope @ V, E @ root, E @ V, a, (a + s**-2) * beta


class _Documents:
    """The log likelihood of the documents of a class, its slope and its curvature."""

    def __init__(self, cells: Any, alpha: Array, z: Array, log_w: Array) -> None:
        self.cells, self.alpha, self.z, self.log_w = cells, alpha, z, log_w
        self.length = row_sums(cells.data, cells.indptr)
        self.total = np.asarray(cells.sum(axis=0)).ravel()
        self.pilot = (self.total + alpha) / (self.total + alpha).sum()

    def value_and_gradient(self, at: Array, s: float) -> tuple[float, Array]:
        """Minus the log posterior density at (ell, lambda) given s, and its gradient."""
        ell, loading = np.split(at, 2)
        log_p, r, P = self._parts(ell, loading)
        own = logsumexp(ell)
        value = log_p.sum() + self.alpha @ (ell - own) - loading @ loading / (2 * s**2)
        weight = self.length @ r
        shown = self.cells.T @ (r @ self.z)
        slope = self.total - weight @ P + self.alpha - self.alpha.sum() * np.exp(ell - own)
        slope_loading = shown - (self.z * weight) @ P - loading / s**2
        return -value, -np.concatenate([slope, slope_loading])

    def _parts(self, ell: Array, loading: Array) -> tuple[Array, Array, Array]:
        """(N,) log p, (N, Q) which z each document has, (Q, D) word probabilities at each z."""
        words = ell + self.z[:, None] * loading
        lse = logsumexp(words, axis=1)
        exponent = np.outer(self.cells @ loading, self.z) - np.outer(self.length, lse) + self.log_w
        log_p = logsumexp(exponent, axis=1)
        r = np.exp(exponent - log_p[:, None])
        return log_p + self.cells @ ell, r, np.exp(words - lse[:, None])

    def information(self, at: Array) -> tuple[Array, Array, Array]:
        """Minus the second derivatives: of ell (prior included), of ell and lambda, of lambda."""
        ell, loading = np.split(at, 2)
        _, r, P = self._parts(ell, loading)
        prior = np.exp(ell - logsumexp(ell))
        X, L, z = self.cells, self.length, self.z
        weight, square = L @ r, (L * L) @ r
        drawn = np.asarray(X.T @ (r * L[:, None]))  # (D, Q)
        mean = [np.asarray(X.multiply((r @ z**k)[:, None]).todense()) for k in (0, 1)]
        mean = [m - L[:, None] * ((r * z**k) @ P) for k, m in zip((0, 1), mean, strict=True)]
        out = []
        for k, (first, second) in enumerate(((0, 0), (0, 1), (1, 1))):
            zk = z**k
            expected = np.diag((weight * zk) @ P) - (P.T * (weight * zk)) @ P
            cross = (drawn * zk) @ P
            moment = np.asarray((X.T @ X.multiply((r @ zk)[:, None])).todense())
            moment = moment - cross - cross.T + (P.T * (square * zk)) @ P
            out.append(expected - moment + mean[first].T @ mean[second])
        total = self.alpha.sum()
        out[0] = out[0] + total * (np.diag(prior) - np.outer(prior, prior))
        return out[0], out[1], out[2]


# ------------------------------------------------------------------------------------------------
# The model in PyMC: in the coordinates of the prior, or in those that suit given rows.

_ROUND = 1 << 21  # numbers of one matrix (class, word, coordinate) of a guide: 16 MiB


def _condition(
    f: "LogisticNormal", prefix: str, X: Matrix, y: Any, theta: Any, summed: bool
) -> None:
    import pymc as pm

    if summed:
        pm.Potential(f"{prefix}x", _log_rows(f, f"{prefix}x", X, pymc_parts.known_codes(y), theta))
    else:
        _observe(f, prefix, X, y, theta)


def _observe(f: "LogisticNormal", prefix: str, X: Matrix, y: Any, theta: Any) -> None:
    """Rows as they are, each a multinomial with z on one node of the grid."""
    import pymc as pm
    import pytensor.tensor as pt

    f.check(X)
    refuse_fractional_counts(stored_cells(X, slice(None)).data)
    counts = pymc_parts.cells_data(prefix, X, whole=True)
    z, log_w = f.grid()

    def draw(n: Any, log_centre: Any, loading: Any, size: Any) -> Any:
        k = pm.Categorical.dist(logit_p=log_w, size=n.shape if size is None else size)
        along = (pt.as_tensor(z)[k][..., None] * loading).sum(axis=-2)
        return pm.Multinomial.dist(n, pt.special.softmax(log_centre + along, axis=-1), size=size)

    def log_p(x: Any, n: Any, log_centre: Any, loading: Any) -> Any:
        words = log_centre[..., None, :] + (loading[..., None, :, :] * z[..., None]).sum(axis=-2)
        words = pt.special.log_softmax(words, axis=-1)
        each = (x[..., None, :] * words).sum(axis=-1) + log_w
        coefficient = pt.gammaln(n + 1) - pt.gammaln(x + 1).sum(axis=-1)
        return pt.logsumexp(each, axis=-1) + coefficient

    pm.CustomDist(
        f"{prefix}x",
        counts.sum(axis=1),
        pt.log(theta["centre"])[y],
        theta["loading"][y],
        dist=draw,
        logp=log_p,
        signature="(),(d),(f,d)->(d)",
        class_name="LogisticNormalMultinomial",
        observed=counts,
        dims=(OBS, f"{prefix}{FEATURE}"),
    )


def _has_guide(f: "LogisticNormal") -> bool:
    """Whether rows set the coordinates."""
    default = f.centre is None and f.spread is None and f.factors == 1
    return default and f.alpha.size * f.alpha.shape[1] <= _ROUND


def _declare_round(
    f: "LogisticNormal", prefix: str, X: Matrix, y: Any, summed: bool
) -> dict[str, Any]:
    """One factor under the default priors, given rows, in the coordinates of a `Guide`.

    ``loading_white`` is Normal given the spread; ``centre_white`` has the density of a
    Dirichlet centre, up to a constant, by the potential ``centre_prior``.
    """
    import pymc as pm
    import pytensor.tensor as pt

    f.check(X)
    prior = declare_data(f, "prior", prefix)
    n_classes, n_words = f.alpha.shape
    cells = stored_cells(X, slice(None)).astype(np.float64)
    z, log_w = f.grid()
    first = 0.3 * np.sqrt(n_words) * f.direction[:, 0]
    codes = pymc_parts.known_codes(y)
    classes = [cells[codes == c] for c in range(n_classes)]
    found = Guide.of(classes, f.alpha, z[:, 0], log_w, first)
    at = {k: pm.Data(f"{prefix}guide_{k}", v) for k, v in found._asdict().items()}
    model: Any = pm.modelcontext(None)
    model.add_coords({f"{prefix}contrast": np.arange(n_words - 1)})
    each = (CLASS, f"{prefix}contrast")
    dims = {name: pymc_parts.prefixed(prefix, d) for name, d in f.params.items()}

    spread = pm.HalfNormal(f"{prefix}spread", 1.0, dims=dims["loading"][:2])
    s = spread[:, 0][:, None]
    sd = 1 / pt.sqrt(at["information"] + s**-2)
    mean = at["pull"] * sd**2
    white = pm.Normal(f"{prefix}loading_white", -mean / sd, s / sd, dims=each)
    b = mean + sd * white
    loading = _times(at["axes"], b)
    loading = pm.Deterministic(f"{prefix}loading", loading[:, None, :], dims=dims["loading"])
    other = pm.Normal(f"{prefix}centre_white", 0.0, 1.0, dims=each)
    ell = at["origin"] + _times(at["slope"], b - at["place"]) + _times(at["width"], other)
    log_p = ell - _log_sum_exp(ell, 1)[:, None]
    centre = pm.Deterministic(f"{prefix}centre", pt.exp(log_p), dims=dims["centre"])
    density = (prior["alpha"] * log_p).sum() + (other**2).sum() / 2
    pm.Potential(f"{prefix}centre_prior", density)
    theta = {"centre": centre, "loading": loading}
    _condition(f, prefix, X, y, theta, summed)
    return theta


def _log_rows(f: "LogisticNormal", name: str, X: Matrix, y: Array, theta: Any) -> Any:
    """Tensor: log likelihood of labelled rows."""
    import pymc as pm
    import pytensor.tensor as pt

    f.check(X)
    cells = stored_cells(X, slice(None))
    refuse_fractional_counts(cells.data)
    centre, loading = theta["centre"], theta["loading"]
    n_classes = len(f.alpha)
    length = row_sums(cells.data, cells.indptr)
    counts = pm.Data(f"{name}_counts", class_sums(cells, y, n_classes))
    constant = float(np.sum(log_factorial(length)) - np.sum(log_factorial(cells.data)))
    out = (counts * pt.log(centre)).sum() + pm.Data(f"{name}_constant", constant)
    z, log_w = f.grid()
    cells = cells[np.argsort(y, kind="stable")]
    data = {
        "first": cells.indptr.astype(np.int64),
        "word": cells.indices.astype(np.int64),
        "count": cells.data.astype(np.float64),
        "of_class": np.searchsorted(np.sort(y), np.arange(n_classes + 1)),
    }
    rows = [pm.Data(f"{name}_{key}", value) for key, value in data.items()]
    grid = [pt.as_tensor(a) for a in (z, log_w)]
    return out + _grid_log_likelihood()(pt.log(centre), loading, *grid, *rows)[0].sum()


@cache
def _grid_log_likelihood() -> Any:
    """`kernels.sampling.grid_log_likelihood` as a PyTensor operation.

    One exponential for each document and node, for value and gradient together.
    """
    from bayesgen.numerics.kernels.sampling import grid_log_likelihood

    return pymc_parts.kernel_operation(
        grid_log_likelihood,
        lambda *given: [given[0][:1], *given[:2]],
        lambda _, outputs, g: [g[:, None] * outputs[1], g[:, None, None] * outputs[2]],
        (0, 1),
    )


def _times(matrix: Any, vector: Any) -> Any:
    """(C, D) product of tensors (C, D, M) and (C, M)."""
    import pytensor.tensor as pt

    return pt.matmul(matrix, vector[:, :, None])[:, :, 0]


def _log_norm(theta: Any, z: Array) -> Any:
    """(C, Q) tensor: log of the sum of centre_j exp(z . loading_j)."""
    import pytensor.tensor as pt

    words = pt.log(theta["centre"])[:, :, None]
    for k in range(z.shape[1]):
        words = words + theta["loading"][:, k, :, None] * z[:, k]
    return _log_sum_exp(words, 1)


def _log_sum_exp(a: Any, axis: int) -> Any:
    """PyTensor's, with one exponential for value and gradient together."""
    import pytensor.tensor as pt
    from pytensor.gradient import disconnected_grad

    top = disconnected_grad(a.max(axis=axis, keepdims=True))
    return pt.log(pt.exp(a - top).sum(axis=axis)) + top.squeeze(axis)
