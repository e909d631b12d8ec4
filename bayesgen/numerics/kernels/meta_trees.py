"""Trees of tests of single cells: grown on some rows, counted on all, averaged over their prunings.

Nodes of all trees stand in one array, each child behind its parent and the two children of a node
next to each other. ``test`` is -1 for a leaf, else twice the column, plus 1 where a missing cell
goes left. A number goes left if it is at most ``cut``. Of a column of categories ``cut`` is a set
of codes below 52 as the bits of a whole number, or -1 - k for the code k alone; members go left.

Random numbers are hashes of what they are for, so that trees, rows and draws may be computed in
any order and by any number of threads.
"""

import math

import numpy as np

from bayesgen.numerics.kernels.compiling import compiled

Array = np.ndarray

SET = 52  # codes in a set: whole numbers of so many bits are exact in float64
_STEP = np.uint64(0x9E3779B97F4A7C15)
_TRIES = 3  # of a candidate: two rows that differ in a column


@compiled
def _mixed(x: int) -> int:  # pragma: no cover - compiled
    """Hash of a 64-bit number (splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@compiled
def _uniform(state: Array) -> float:  # pragma: no cover - compiled
    """Next number in [0, 1); `state` (1,) moves on."""
    state[0] += _STEP
    return float(_mixed(state[0]) >> np.uint64(11)) * 2.0**-53


@compiled
def hash_rows(  # pragma: no cover - compiled
    bits: Array, codes: Array, weight: Array, seed: int, out: Array
) -> None:
    """Write to out uint64 (N,) a hash of the cells uint64 (N, D), class and weight of each row."""
    for i in range(len(bits)):
        h = _mixed(np.uint64(seed) + _STEP)
        for j in range(bits.shape[1]):
            h = _mixed(h ^ bits[i, j]) + _STEP
        out[i] = _mixed(h ^ (weight[i] + np.uint64(codes[i]) * _STEP))


@compiled
def chooses(key: int, copy: int, tree: int) -> bool:  # pragma: no cover - compiled
    """Whether a row is of the half that chooses the structure of a tree.

    Trees 2 s and 2 s + 1 swap their halves, and so do each two copies of one row.
    """
    bit = _mixed(key + _STEP * np.uint64(tree // 2 + 1)) >> np.uint64(63)
    return (int(bit) + copy + tree) % 2 == 0


@compiled
def half(keys: Array, copies: Array, tree: int) -> Array:  # pragma: no cover - compiled
    """Positions of the rows that choose the structure of a tree."""
    return np.array([i for i in range(len(keys)) if chooses(keys[i], copies[i], tree)], np.int64)


@compiled
def _goes_left(x: float, test: int, cut: float, nominal: Array) -> bool:  # pragma: no cover
    if x != x:
        return test % 2 == 1
    if not nominal[test // 2]:
        return x <= cut
    if cut < 0:
        return x == -1 - cut
    return 0 <= x < SET and (int(cut) >> int(x)) % 2 == 1


@compiled
def _log_rising(n: float, a: float, table: Array) -> float:  # pragma: no cover - compiled
    """log Gamma(a + n), from a table of whole numbers n where it reaches."""
    k = int(n)
    return table[k] if k == n and k < len(table) else math.lgamma(a + n)


@compiled
def _log_evidence(count: Array, a: float, one: Array, all_: Array) -> float:  # pragma: no cover
    """log of the Dirichlet-multinomial probability of labels, less that of none."""
    total, out = 0.0, 0.0
    for c in range(len(count)):
        total += count[c]
        out += _log_rising(count[c], a, one)
    return out - _log_rising(total, a * len(count), all_)


@compiled
def grow(  # pragma: no cover - compiled
    columns: Array,
    codes: Array,
    weight: Array,
    rows: Array,
    nominal: Array,
    n_classes: int,
    a: float,
    tables: tuple[Array, Array],
    n_candidates: int,
    least: int,
    seed: int,
) -> tuple[Array, Array, Array]:
    """Test, cut and left child (relative to the root) of the nodes of one tree.

    Parameters
    ----------
    columns : (D, N)
    codes, weight : (N,)
    rows : (n,) positions of the rows that choose; their order is changed
    nominal : bool (D,) whether a column holds codes of categories
    a : pseudo-count of each class
    tables : log Gamma(a + k) and log Gamma(C a + k), k = 0, 1, ...
    n_candidates : tests that are tried at a node
    least : rows of which a node is divided
    """
    one, all_ = tables
    most = max(1, 2 * len(rows) - 1)
    test = np.full(most, -1, np.int64)
    child = np.zeros(most, np.int64)
    cut = np.zeros(most)
    todo = np.zeros((len(rows) + 2, 3), np.int64)
    n_nodes, n_todo = 1, 1
    todo[0, 2] = len(rows)
    state = np.zeros(1, np.uint64)
    state[0] = np.uint64(seed)
    node, left, gap = np.zeros(n_classes), np.zeros(n_classes), np.zeros(n_classes)
    known = np.zeros((SET, 2))
    while n_todo:
        n_todo -= 1
        at, start, stop = todo[n_todo]
        node[:] = 0.0
        for i in rows[start:stop]:
            node[codes[i]] += weight[i]
        if stop - start < least or np.count_nonzero(node) < 2:
            continue
        best = -np.inf
        for k in range(n_candidates * (_TRIES + 1)):
            if k == n_candidates * _TRIES and best > -np.inf:
                break
            j = int(_uniform(state) * len(columns))
            x = columns[j]
            first = x[rows[start + int(_uniform(state) * (stop - start))]]
            other = x[rows[start + int(_uniform(state) * (stop - start))]]
            if first == other or (first != first and other != other):
                continue
            has_gap = first != first or other != other
            if has_gap:  # missing cells on one side, all others on the other
                where = float((1 << SET) - 1) if nominal[j] else np.inf
            elif not nominal[j]:
                low_cell, high_cell, u = min(first, other), max(first, other), _uniform(state)
                where = low_cell * (1 - u) + high_cell * u
                where = low_cell if where >= high_cell else where
            else:
                where = -1 - first
                if max(first, other) < SET and _uniform(state) < 0.5:
                    where = _set_of(x, codes, weight, rows[start:stop], first, known, state)
            left[:] = 0.0
            gap[:] = 0.0
            n_left, n_gap = 0, 0
            for i in rows[start:stop]:
                if x[i] != x[i]:
                    gap[codes[i]] += weight[i]
                    n_gap += 1
                elif _goes_left(x[i], 2 * j, where, nominal):
                    left[codes[i]] += weight[i]
                    n_left += 1
            if n_left == 0:
                continue
            right = node - left - gap
            for side in range(2 if n_gap and not has_gap else 1):
                parts = (left + gap, right) if side else (left, right + gap)
                score = _log_evidence(parts[0], a, one, all_)
                score += _log_evidence(parts[1], a, one, all_)
                if score > best:
                    best = score
                    missing_left = side if n_gap else int(left.sum() > right.sum())
                    test[at], cut[at] = 2 * j + missing_left, where
        if best == -np.inf:
            test[at] = -1
            continue
        x = columns[test[at] // 2]
        low, high = start, stop
        while low < high:
            if _goes_left(x[rows[low]], test[at], cut[at], nominal):
                low += 1
            else:
                high -= 1
                rows[low], rows[high] = rows[high], rows[low]
        child[at] = n_nodes
        todo[n_todo] = n_nodes, start, low
        todo[n_todo + 1] = n_nodes + 1, low, stop
        n_todo += 2
        n_nodes += 2
    return test[:n_nodes].copy(), cut[:n_nodes].copy(), child[:n_nodes].copy()


@compiled
def _set_of(  # pragma: no cover - compiled
    x: Array, codes: Array, weight: Array, rows: Array, first: float, known: Array, state: Array
) -> float:
    """A set of categories: those with the largest share of a class, as far as a random one."""
    known[:] = 0.0
    c = codes[rows[int(_uniform(state) * len(rows))]]
    for i in rows:
        if 0 <= x[i] < SET:
            known[int(x[i]), 0] += weight[i]
            known[int(x[i]), 1] += weight[i] * (codes[i] == c)
    own = known[int(first), 1] / known[int(first), 0]
    members, outside = 0, 0
    for k in range(SET):
        if known[k, 0] > 0:
            if known[k, 1] / known[k, 0] >= own:
                members |= 1 << k
            else:
                outside += 1
    return float(members) if outside else -1 - first


@compiled
def count(  # pragma: no cover - compiled
    X: Array,
    codes: Array,
    weight: Array,
    keys: Array,
    copies: Array,
    tree: int,
    structure: tuple[Array, Array, Array, Array],
    root: int,
    out: Array,
) -> None:
    """Add to out (node, C) the weights of the rows that pass each node of a tree.

    With `keys` (N,) only those that choose its structure; else `keys` is empty.
    """
    nominal, test, cut, child = structure
    for i in range(len(X)):
        if len(keys) and not chooses(keys[i], copies[i], tree):
            continue
        s = root
        out[s, codes[i]] += weight[i]
        while test[s] >= 0:
            left = _goes_left(X[i, test[s] // 2], test[s], cut[s], nominal)
            s = child[s] + (0 if left else 1)
            out[s, codes[i]] += weight[i]


@compiled
def prune(  # pragma: no cover - compiled
    test: Array, child: Array, held: Array, a: float, split: float, log_e: Array, log_w: Array
) -> None:
    """Write log P_e and log P_w of each node, from the counts (node, C) of the held-out half."""
    n_classes = held.shape[1]
    none = n_classes * math.lgamma(a) - math.lgamma(a * n_classes)
    nothing = np.zeros(0)
    for s in range(len(test) - 1, -1, -1):
        log_e[s] = _log_evidence(held[s], a, nothing, nothing) - none
        log_w[s] = log_e[s]
        if test[s] >= 0:
            whole = math.log1p(-split) + log_e[s]
            parts = math.log(split) + log_w[child[s]] + log_w[child[s] + 1]
            log_w[s] = np.logaddexp(whole, parts)


@compiled
def predict(  # pragma: no cover - compiled
    X: Array,
    structure: tuple[Array, Array, Array, Array],
    roots: Array,
    weight: Array,
    mean: Array,
    out: Array,
) -> None:
    """Add to out (n, C) the mean over trees of the average over prunings.

    Parameters
    ----------
    weight : (node,) probability that a node is a leaf, given that its ancestors are none
    mean : (node, C) class probabilities of a node as a leaf
    """
    nominal, test, cut, child = structure
    for root in roots:
        for i in range(len(X)):
            s, left_over = root, 1.0 / len(roots)
            while True:
                for c in range(out.shape[1]):
                    out[i, c] += left_over * weight[s] * mean[s, c]
                left_over *= 1 - weight[s]
                if test[s] < 0 or left_over == 0.0:
                    break
                left = _goes_left(X[i, test[s] // 2], test[s], cut[s], nominal)
                s = child[s] + (0 if left else 1)


@compiled
def predict_without(  # pragma: no cover - compiled
    X: Array,
    codes: Array,
    weight: Array,
    keys: Array,
    copies: Array,
    structure: tuple[Array, Array, Array, Array],
    roots: Array,
    held: Array,
    every: Array,
    log_e: Array,
    log_w: Array,
    a: float,
    split: float,
    out: Array,
) -> None:
    """Write to out (n, C) the probabilities of rows without themselves, by trees they did not choose.

    Parameters
    ----------
    held, every : (node, C) counts of the half that weighs prunings, and of all rows
    log_e, log_w : (node,) as `prune` writes them
    """
    nominal, test, cut, child = structure
    n_classes = out.shape[1]
    path = np.zeros(64, np.int64)
    for i in range(len(X)):
        n_trees, k, w = 0, codes[i], weight[i]
        out[i] = 0.0
        for tree in range(len(roots)):
            if chooses(keys[i], copies[i], tree):
                continue
            n_trees += 1
            s, depth = roots[tree], 0
            path[0] = s
            while test[s] >= 0:
                left = _goes_left(X[i, test[s] // 2], test[s], cut[s], nominal)
                s = child[s] + (0 if left else 1)
                depth += 1
                if depth == len(path):
                    path = np.concatenate((path, np.zeros(depth, np.int64)))
                path[depth] = s
            p = np.zeros(n_classes)
            below = 0.0
            for d in range(depth, -1, -1):
                s = path[d]
                n, own = held[s].sum(), held[s, k]
                alone = log_e[s] - math.lgamma(a + own) + math.lgamma(a + max(0.0, own - w))
                total = a * n_classes + n
                alone += math.lgamma(total) - math.lgamma(max(total - w, a * n_classes))
                share = 1.0
                if d < depth:
                    whole = math.log1p(-split) + alone
                    other = 2 * child[s] + 1 - path[d + 1]
                    parts = math.log(split) + below + log_w[other]
                    below = np.logaddexp(whole, parts)
                    share = math.exp(whole - below)
                else:
                    below = alone
                size = every[s].sum() - w + a * n_classes
                for c in range(n_classes):
                    e = (every[s, c] - (w if c == k else 0.0) + a) / size
                    p[c] = share * e + (1 - share) * p[c]
            out[i] += p
        out[i] /= n_trees
