r"""Coordinates of word probabilities in which a posterior is round.

With weights w, roughly the probabilities themselves,

.. math:: y_k = \log p_k - \sum_l w_l \log p_l, \qquad u_k = \sqrt{w_k}\, y_k

u is orthogonal to the unit vector of the square roots of w; a reflection turns that vector into
the last axis, and the other D - 1 coordinates of u are what is sampled. The Fisher information of
n draws at p = w is then n times the identity, whatever the rare and frequent categories, where
PyMC's coordinates leave the last category's standard deviation to the sum of all others.
"""

from typing import Any


def weighted_simplex(w: Any) -> Any:
    """Transform of probabilities (..., D), D > 1, to (..., D - 1) coordinates.

    Parameters
    ----------
    w : tensor (..., D), > 0
        Weights that sum to 1 over the last axis.
    """
    import pytensor.tensor as pt
    from pymc.logprob.transforms import Transform

    root = pt.sqrt(w)
    # the reflection I - v v'/h turns `root` into minus the last axis
    last = root[..., -1][..., None]  # not root[..., -1:], whose length PyTensor does not know
    v = pt.concatenate([root[..., :-1], last + 1], axis=-1)
    h = 1 + last

    def reflected(u: Any) -> Any:
        return u - v * ((v * u).sum(axis=-1, keepdims=True) / h)

    class WeightedSimplex(Transform):
        name = "weighted"
        ndim_supp = 1

        def forward(self, value: Any, *inputs: Any) -> Any:
            log_p = pt.log(value)
            y = log_p - (w * log_p).sum(axis=-1, keepdims=True)
            return reflected(root * y)[..., :-1]

        def backward(self, value: Any, *inputs: Any) -> Any:
            u = reflected(pt.concatenate([value, pt.zeros_like(last)], axis=-1))
            return pt.special.softmax(u / root, axis=-1)

        def log_jac_det(self, value: Any, *inputs: Any) -> Any:
            u = reflected(pt.concatenate([value, pt.zeros_like(last)], axis=-1))
            return (pt.special.log_softmax(u / root, axis=-1) - pt.log(w) / 2).sum(axis=-1)

    return WeightedSimplex()
