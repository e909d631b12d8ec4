r"""Joint cumulant generating functions of whole documents, trees and tables integrated out.

:math:`p(x \mid \theta, T)^t` adds t times the document's counts to those of the leaves of T, so
that of the sums over trees nothing changes but the counts. For complex t every sum
:math:`w e^a + (1-w) e^b` has a logarithm on one branch: a and b are known on theirs, the larger
term is taken out, and where along the way from the real axis the two terms change places while
they are whole turns apart, these turns are put right.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesgen.families.shared.suffixes import DocumentLevel, document_levels
from bayesgen.numerics.rows import cgf_by_rows, row_blocks, row_sums
from bayesgen.numerics.special import Array, log1p, log_gamma_difference

if TYPE_CHECKING:
    from bayesgen.families.conjugate.context_tree.family import ContextTree

_NEAR = np.pi / 2  # radians from the real axis, within which no sum leaves its first branch
_HALF = 2.5  # radians that two terms may turn against each other at all, or
_STEP = 2.0  # between two points of a path
_FEWEST, _MOST = 8, 128  # points of a path


def log_mixture(log_odds: Array, a: Array, b: Array) -> Array:
    """log of w e^a + (1 - w) e^b, w of these log odds."""
    out: Array = np.logaddexp(a - np.logaddexp(0, -log_odds), b - np.logaddexp(0, log_odds))
    return out


def _complex_mixture(log_odds: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """The same of complex a and b, and how far the terms have turned, in radians.

    The first axis is a path that begins on the real axis. Where a and b are on the branch that is
    continuous along it, so is the result, but for what happens between its points; b has turned
    against a by the second result between two of them, 0 if never by half a turn. Of a single
    point: either of them in all.
    """
    gap = b - a - log_odds
    first = gap.real <= 0
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        out = np.where(first, a - np.logaddexp(0, -log_odds), b - np.logaddexp(0, log_odds))
        out += log1p(np.exp(np.where(first, gap, -gap)))
        swap = first[1:] != first[:-1]
        if swap.any():  # where the terms are of equal size, at a phase that is interpolated
            part = gap.real[:-1] / np.where(swap, gap.real[:-1] - gap.real[1:], 1.0)
            phase = gap.imag[:-1] + part * (gap.imag[1:] - gap.imag[:-1])
            turns = 2 * np.pi * np.round(phase / (2 * np.pi))
            jump = np.where(swap, np.where(first[1:], turns, -turns), 0.0)
            out.imag[1:] += np.cumsum(np.where(np.isfinite(jump), jump, 0.0), axis=0)
    if len(gap) == 1:
        return out, np.maximum(np.abs(a.imag), np.abs(b.imag))[0]
    step = np.abs(np.diff(gap.imag, axis=0)).max(axis=0)
    return out, np.where(np.abs(gap.imag).max(axis=0) < _HALF, 0.0, step)


class Changes(NamedTuple):
    """Of the logs of sums over trees below contexts that documents visit."""

    delta: list[Array]  # (..., R) of each level 0 .. D
    turn: Array  # (..., N) for complex t, the furthest that terms have turned (`_complex_mixture`)


def changes(
    f: "ContextTree", docs: list[DocumentLevel], c: int, t: Array, *, of_prior: bool = False
) -> Changes:
    """By counts of t times those of the documents, in class c.

    Parameters
    ----------
    docs : levels 0 .. D of n documents
    t : (..., n or 1)
        Complex: the first axis is a path from real t.
    of_prior : bool
        As if nothing had been seen.
    """
    delta: list[Array] = []
    turn = np.zeros((*t.shape[1:-1], docs[0].docs.n_rows))
    strength, cell = f.strength[c], f.strength[c] * f.base[c]
    for k in range(f.order - 1, -1, -1):
        own, weights = docs[k].docs, f.weights[k]
        context, gram = f.levels[k].find(own.grams)
        if of_prior:
            context, gram = np.full((2, len(own.grams)), -1)
        gram, context, token = gram[own.gram], context[own.run_gram], own.grams[own.gram, -1]
        each = t.shape[-1] > 1
        n, many = (
            count * (t[..., row] if each else t)
            for count, row in ((own.n, own.row), (own.run_n, own.run_row))
        )
        leaf = row_sums(log_gamma_difference(cell[token] + weights.counts[c, gram], n), own.starts)
        leaf = leaf - log_gamma_difference(strength + weights.total[c, context], many)
        if k == f.order - 1:
            delta = [leaf]
            continue
        split = row_sums(delta[0][..., docs[k].order], docs[k].edges)
        log_odds = weights.log_odds[c, context]
        if not np.iscomplexobj(t):
            delta.insert(0, log_mixture(log_odds, leaf, split))
            continue
        mixed, angle = _complex_mixture(log_odds, leaf, split)
        delta.insert(0, mixed)
        visited = np.flatnonzero(np.diff(own.run_row, prepend=-1))
        most = np.maximum.reduceat(angle, visited, axis=-1) if len(visited) else angle
        at = own.run_row[visited]
        turn[..., at] = np.maximum(turn[..., at], most)
    return Changes(delta, turn)


def of_prior(f: "ContextTree", docs: list[DocumentLevel], c: int) -> list[Array]:
    """Of each level, (R,) log probabilities of what documents have after contexts never seen."""
    return changes(f, docs, c, np.ones(1), of_prior=True).delta


def log_change(f: "ContextTree", docs: list[DocumentLevel], c: int, t: Array) -> Array:
    """(..., N) log E p(x | theta)^t in class c, for t (..., n or 1), on some branch."""
    return _by_document(docs, changes(f, docs, c, t).delta[0])


def _by_document(docs: list[DocumentLevel], values: Array) -> Array:
    """(..., N) from values of the empty context (..., R); 0 of an empty document."""
    own = docs[0].docs
    out = np.zeros((*values.shape[:-1], own.n_rows), dtype=values.dtype)
    out[..., own.run_row] = values
    return out


def cgf(f: "ContextTree", X: Array, t: Array) -> Array:
    """(..., N), as in `ConjugateFamily.cgf`."""
    t = np.asarray(t)
    n_entries = f.order * (sum(map(len, X)) // max(1, len(X)) + 1)

    def cell(rows: slice, t: Array) -> Array:
        own = X[rows]
        docs = document_levels(own, f.order, f.n_tokens)
        out = np.zeros((*t.shape[:-2], len(own)), dtype=np.result_type(t, np.float64))
        for c in range(len(f.strength)):
            tc = t[..., c]
            if not tc.any():
                continue
            if not np.iscomplexobj(t):
                out += log_change(f, docs, c, tc)
                continue
            found = changes(f, docs, c, tc[None])
            value = _by_document(docs, found.delta[0])[0]
            far = np.argwhere(found.turn >= _NEAR)  # else no sum has left its first branch
            if len(far):
                at = tuple(far.T)
                t_far = np.broadcast_to(tc, value.shape)[at]
                value[at] = _followed(f, own[far[:, -1]], c, t_far, n_entries)
            out += value
        return out

    return cgf_by_rows(cell, len(X), n_entries, t)


def _followed(
    f: "ContextTree", X: Array, c: int, t: Array, n_entries: int, points: int = _FEWEST
) -> Array:
    """(n,) the same of documents (n,) at t (n,), along paths from its real part."""
    out = np.empty(len(t), dtype=np.complex128)
    along = np.linspace(0.0, 1.0, points)[:, None]
    rough = np.zeros(len(t), dtype=bool)
    for some in row_blocks(len(t), 4 * points * n_entries):
        docs = document_levels(X[some], f.order, f.n_tokens)
        path = changes(f, docs, c, t[some].real + 1j * along * t[some].imag)
        out[some] = _by_document(docs, path.delta[0])[-1]
        rough[some] = path.turn > _STEP
    if rough.any() and points < _MOST:
        out[rough] = _followed(f, X[rough], c, t[rough], n_entries, 4 * points)
    return out
