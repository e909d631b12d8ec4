r"""The model in PyMC: in the coordinates of the prior, or in those that suit given rows.

Coordinates in which the posterior of a class of correlated words is round.

A document x of length L has :math:`\log p(x) = \log \sum_q w_q e^{x\ell + z_q x\lambda - L\,
\text{lse}(\ell + z_q \lambda)}`, with log word probabilities ell and loadings lambda, both known up
to a constant: E, the contrasts of the words, and :math:`\ell = E t, \lambda = E \beta`. Under a
Dirichlet prior on softmax(ell) and :math:`\beta \sim \text{Normal}(0, s^2)` the mode of (t, beta)
is found, and with H the negative second derivatives there,

.. math:: t \mid \beta \approx \text{Normal}(t_0 - H_{tt}^{-1} H_{t\beta} (\beta - \beta_0),
          H_{tt}^{-1}), \qquad
          A = H_{\beta\beta} - H_{\beta t} H_{tt}^{-1} H_{t\beta} = V\,\text{diag}(a)\,V^\top

A, the likelihood's part, is what the rows say of beta when t is integrated out. In its axes, and
whatever the spread s,

.. math:: b = V^\top\beta, \qquad b_i \mid s \approx
          \text{Normal}\Big(\frac{p_i}{a_i + s^{-2}}, \frac{1}{a_i + s^{-2}}\Big)

In distances from these means, in these standard deviations, the posterior is near the standard
Normal: words that are always used together, and words never used, are no trouble, nor is a spread
near 0.

Source: Papaspiliopoulos, Roberts and Sköld (2007), A general framework for the parametrization of
hierarchical models; Girolami and Calderhead (2011), Riemann manifold Langevin and Hamiltonian Monte
Carlo methods (curvature as coordinates; here it is taken once, at the mode).
"""

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import eigh, helmert
from scipy.optimize import minimize
from scipy.special import logsumexp

from bayesgen.families.names import CLASS
from bayesgen.families.shared.pymc_parts import declare as declare_data
from bayesgen.families.shared.pymc_parts import parameter, prefixed, sum_cells
from bayesgen.families.shared.rising import known_codes, refuse_fractional_counts
from bayesgen.families.shared.simplex import counted_simplex
from bayesgen.numerics.rows import Matrix, class_sums, row_sums, stored_cells
from bayesgen.numerics.special import Array, log_factorial

if TYPE_CHECKING:
    from bayesgen.families.sampled.logistic_normal.family import LogisticNormal

_ROUND = 1 << 21  # numbers of one matrix (class, word, coordinate) of a guide: 16 MiB


def declare(f: "LogisticNormal", prefix: str, X: Matrix | None, y: Any) -> dict[str, Any]:
    """As `Family.to_pymc`."""
    import pymc as pm
    import pytensor.tensor as pt

    if X is not None and _has_guide(f):
        return _declare_round(f, prefix, X, known_codes(y))
    prior = declare_data(f, "prior", prefix)
    dims = {name: prefixed(prefix, d) for name, d in f.params.items()}
    w, r = prior["reference"], prior["direction"]
    centre = parameter(
        f,
        prefix,
        "centre",
        lambda centre, dims: pm.Dirichlet(
            centre,
            prior["alpha"] + pt.zeros(w.shape),  # PyMC must meet w before the transform
            default_transform=counted_simplex(w),
            dims=dims,
        ),
    )
    by_factor = dims["loading"][:2]
    spread = parameter(f, prefix, "spread", lambda name, d: pm.HalfNormal(name, 1.0, dims=d))
    unit = pm.ZeroSumNormal(f"{prefix}unit", sigma=1.0, n_zerosum_axes=1, dims=dims["loading"])
    along = pm.HalfNormal(f"{prefix}along", 1.0, dims=by_factor)
    # the parts along r_l: of factor k itself `along`, of earlier ones those of `unit`, else 0
    parts = []
    for k in range(f.factors):
        part = unit[:, k]
        for l in range(k, f.factors):
            part = part - r[:, l] * (r[:, l] * part).sum(axis=-1, keepdims=True)
        parts.append(part + r[:, k] * along[:, k, None])
    loading = pm.Deterministic(
        f"{prefix}loading", spread[:, :, None] * pt.stack(parts, axis=1), dims=dims["loading"]
    )
    theta = {"centre": centre, "loading": loading}
    if X is not None:
        log_p = _log_rows(f, f"{prefix}x", X, known_codes(y), theta)
        pm.Potential(f"{prefix}x", log_p)
    return theta


def log_likelihood(f: "LogisticNormal", X: Matrix, theta: Any, prefix: str) -> Any:
    """(N, C), as in `UnlabelledRows`."""
    import pymc as pm
    import pytensor.tensor as pt

    f.check(X)
    cells = stored_cells(X, slice(None))
    length = row_sums(cells.data, cells.indptr)
    coefficient = log_factorial(length) - row_sums(log_factorial(cells.data), cells.indptr)
    z, log_w = f.grid()
    n_words = pm.Data(f"{prefix}length", length)
    exponent = log_w - n_words[:, None, None] * _log_norm(theta, z)
    for k in range(f.factors):
        along = sum_cells(f"{prefix}along_{k}", cells, theta["loading"][:, k].T)
        exponent = exponent + along[:, :, None] * z[:, k]
    words = sum_cells(f"{prefix}counts", cells, pt.log(theta["centre"]).T)
    constant = pm.Data(f"{prefix}coefficient", coefficient)[:, None]
    return _log_sum_exp(exponent, 2) + words + constant


def _has_guide(f: "LogisticNormal") -> bool:
    """Whether rows set the coordinates."""
    default = f.centre is None and f.spread is None and f.factors == 1
    return default and f.alpha.size * f.alpha.shape[1] <= _ROUND


def _declare_round(f: "LogisticNormal", prefix: str, X: Matrix, y: Array) -> dict[str, Any]:
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
    classes = [cells[y == c] for c in range(n_classes)]
    found = Guide.of(classes, f.alpha, z[:, 0], log_w, first)
    at = {k: pm.Data(f"{prefix}guide_{k}", v) for k, v in found._asdict().items()}
    model: Any = pm.modelcontext(None)
    model.add_coords({f"{prefix}contrast": np.arange(n_words - 1)})
    each = (CLASS, f"{prefix}contrast")
    dims = {name: prefixed(prefix, d) for name, d in f.params.items()}

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
    pm.Potential(f"{prefix}x", _log_rows(f, f"{prefix}x", X, y, theta))
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
    return out + _operation()(pt.log(centre), loading, *grid, *rows)[0].sum()


@cache
def _operation() -> Any:
    """`kernels.factor_grid.grid_log_likelihood` as a PyTensor operation.

    One exponential for each document and node, for value and gradient together.
    """
    from pytensor.gradient import disconnected_type
    from pytensor.graph.basic import Apply
    from pytensor.graph.op import Op
    from pytensor.link.numba.dispatch.basic import register_funcify_default_op_cache_key
    from pytensor.tensor.type import tensor

    from bayesgen.numerics.kernels.compiling import version
    from bayesgen.numerics.kernels.factor_grid import grid_log_likelihood

    class GridLogLikelihood(Op):
        __props__ = ()

        def make_node(self, *inputs: Any) -> Any:
            own = tensor(dtype="float64", shape=(None,))
            return Apply(self, list(inputs), [own, inputs[0].type(), inputs[1].type()])

        def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
            for cell, value in zip(outputs, grid_log_likelihood(*inputs), strict=True):
                cell[0] = value

        def connection_pattern(self, node: Any) -> list[list[bool]]:
            return [[True, False, False]] * 2 + [[False] * 3] * 6

        def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
            g = cotangents[0]
            own = [g[:, None] * outputs[1], g[:, None, None] * outputs[2]]
            return [*own, *(disconnected_type() for _ in inputs[2:])]

    @register_funcify_default_op_cache_key(GridLogLikelihood)
    def likelihood(op: Any, **kwargs: Any) -> Any:
        return grid_log_likelihood, version()

    return GridLogLikelihood()


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
