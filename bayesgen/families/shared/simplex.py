r"""Coordinates of word probabilities in which a posterior is round.

With pilot counts n_k, and w their proportions,

.. math:: y_k = \log p_k - \sum_l w_l \log p_l, \qquad u_k = \sqrt{n_k}\, y_k

u is orthogonal to the unit vector of the square roots of w; a reflection turns that vector into
the last axis, and the other D - 1 coordinates of u are what is sampled. The Fisher information of
such counts at p = w is then the identity: standard deviations are near 1, and correlations near
0, for rare and frequent categories alike.
"""

from collections.abc import Callable
from typing import Any

from bayesgen.families.shared.pymc_parts import guided


def counted_dirichlet(name: str, alpha: Any, counts: Any, dims: tuple[str, ...]) -> Any:
    """Probabilities (..., D), D > 1, with a Dirichlet prior, sampled in D - 1 coordinates.

    Parameters
    ----------
    alpha, counts : tensors (..., D), > 0
    """
    import pymc as pm

    signature = "(k),(k)->(k)"
    return guided(name, pm.Dirichlet, (alpha,), (counts,), counted_simplex(), dims, signature)


def counted_simplex() -> Any:
    """Transform of probabilities to these coordinates; n is a guide."""
    import pytensor.tensor as pt
    from pymc.logprob.transforms import Transform

    class CountedSimplex(Transform):
        name = "counted"
        ndim_supp = 1

        def forward(self, value: Any, *inputs: Any) -> Any:
            _, total, w, root, _, reflected = _reflection(inputs)
            log_p = pt.log(value)
            y = log_p - (w * log_p).sum(axis=-1, keepdims=True)
            return pt.sqrt(total) * reflected(root * y)[..., :-1]

        def backward(self, value: Any, *inputs: Any) -> Any:
            return pt.special.softmax(self._log_ratio(value, inputs), axis=-1)

        def log_jac_det(self, value: Any, *inputs: Any) -> Any:
            log_p = pt.special.log_softmax(self._log_ratio(value, inputs), axis=-1)
            counts, total, *_ = _reflection(inputs)
            scale = pt.log(counts).sum(axis=-1) - pt.log(total[..., 0])
            return log_p.sum(axis=-1) - scale / 2

        def _log_ratio(self, value: Any, inputs: Any) -> Any:
            _, total, _, root, last, reflected = _reflection(inputs)
            u = reflected(pt.concatenate([value, pt.zeros_like(last)], axis=-1))
            return u / (pt.sqrt(total) * root)

    return CountedSimplex()


def _reflection(inputs: Any) -> tuple[Any, Any, Any, Any, Any, Callable[[Any], Any]]:
    """Counts, their total, w, its root, the root's last axis, and the reflection."""
    import pytensor.tensor as pt

    counts = inputs[2]
    total = counts.sum(axis=-1, keepdims=True)
    w = counts / total
    root = pt.sqrt(w)
    # the reflection I - v v'/h turns `root` into minus the last axis
    last = root[..., -1][..., None]  # not root[..., -1:], whose length PyTensor does not know
    v = pt.concatenate([root[..., :-1], last + 1], axis=-1)
    h = 1 + last

    def reflected(u: Any) -> Any:
        return u - v * ((v * u).sum(axis=-1, keepdims=True) / h)

    return counts, total, w, root, last, reflected
