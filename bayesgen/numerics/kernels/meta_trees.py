"""Trees of tests of single cells: grown on some rows, counted on all, averaged over their prunings.

Nodes of all trees stand in one array, each child behind its parent and the two children of a node
next to each other. ``test`` is -1 for a leaf, else three times the column plus `RIGHT`, `LEFT` or
`BOTH`, where a missing cell goes. A number goes left if it is at most ``cut``. Of a column of
categories ``cut`` is a set of codes below 52 as the bits of a whole number, or -1 - k for the code
k alone; members go left.

A missing cell goes to one side if rows that chose the test lack the cell. Otherwise the row is
divided: ``left`` of it goes left, the share of the rows that chose the test. A row with an unknown
category, the code -1, is always divided.

Random numbers are hashes of what they are for, so that trees, rows and draws may be computed in
any order and by any number of threads.
"""

import math

import numpy as np

from bayesgen.numerics.kernels.compiling import compiled

Array = np.ndarray


# kinds (D,), 1 for codes of categories and else 0; test, cut, child, left (node,); roots (tree,)
Forest = tuple[Array, Array, Array, Array, Array, Array]
# cells (N, D), codes, weight, and keys of the rows' groups and which of the groups with this key
# each is, both empty where it does not matter who chooses (N,)
Rows = tuple[Array, Array, Array, Array, Array]
# held, labels of the half that weighs prunings, and every, of all rows (node, C); log P_e, log P_w,
# share, the probability to be a leaf if no ancestor is one (node,); mean, that of classes (node, C)
Nodes = tuple[Array, Array, Array, Array, Array, Array]
# nodes that a row reaches, each behind its parent (node,); places of their children in this list,
# or -1 (node, 2); the part of the row that comes there, and whether the row ends there (node,)
Reached = tuple[Array, Array, Array, Array]

RIGHT, LEFT, BOTH = 0, 1, 2  # where a missing cell goes
SET = 52  # codes in a set: whole numbers of so many bits are exact in float64
_ALL = np.finfo(np.float64).max  # a cut above all numbers
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MOST = 2048  # rows of a node by which tests are compared
_TRIES = 10  # of each candidate: two rows that may not differ in a column


@compiled
def _mixed(x):  # pragma: no cover - compiled
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
def chooses(key, copy: int, tree: int) -> bool:  # pragma: no cover - compiled
    """Return whether a group of rows is in the half that chooses the structure of a tree.

    Trees 2 s and 2 s + 1 swap their halves, and so do each two equal groups.
    """
    bit = _mixed(key + _STEP * np.uint64(tree // 2 + 1)) >> np.uint64(63)
    return (int(bit) + copy + tree) % 2 == 0


@compiled
def half(keys: Array, copies: Array, tree: int) -> Array:  # pragma: no cover - compiled
    """Positions of the rows that choose the structure of a tree."""
    return np.array([i for i in range(len(keys)) if chooses(keys[i], copies[i], tree)], np.int64)


@compiled
def _goes_left(x: float, test: int, cut: float, kinds: Array) -> bool:  # pragma: no cover
    if x != x:
        return test % 3 == LEFT
    if kinds[test // 3] < 1:
        return x <= cut
    if cut < 0:
        return x == -1 - cut
    return 0 <= x < SET and (int(cut) >> int(x)) % 2 == 1


@compiled
def _divides(x: float, test: int, kinds: Array) -> bool:  # pragma: no cover - compiled
    """Return whether a row with this cell goes to both sides of a test."""
    return x < 0 and kinds[test // 3] == 1 if x == x else test % 3 == BOTH


@compiled
def _log_rising(n: float, a: float, table: Array) -> float:  # pragma: no cover - compiled
    """log Gamma(a + n), from a table of whole numbers n where it reaches."""
    k = int(n)
    return table[k] if k == n and k < len(table) else math.lgamma(a + n)


@compiled
def _log_evidence(  # pragma: no cover - compiled
    count: Array, a: float, tables: tuple[Array, Array]
) -> float:
    """log of the Dirichlet-multinomial probability of labels, less that of none."""
    total, log_p = 0.0, 0.0
    for c in range(len(count)):
        total += count[c]
        log_p += _log_rising(count[c], a, tables[0])
    return log_p - _log_rising(total, a * len(count), tables[1])


@compiled
def grow(  # pragma: no cover - compiled
    columns: Array,
    codes: Array,
    weight: Array,
    rows: Array,
    kinds: Array,
    n_classes: int,
    a: float,
    tables: tuple[Array, Array],
    n_candidates: int,
    least: int,
    seed: int,
) -> tuple[Array, Array, Array]:
    """Test, cut and left child (counted from the root) of the nodes of one tree.

    Parameters
    ----------
    columns : (D, N)
    codes, weight : (N,)
    rows : (n,) positions of the rows that choose; their order is changed
    kinds : (D,) 1: codes of categories; 0: numbers; -1: numbers of which none is missing
    a : pseudo-count of each class
    tables : log Gamma(a + k) and log Gamma(C a + k), k = 0, 1, ...
    n_candidates : tests that are compared at a node
    least : rows that are not divided
    """
    most = max(1, 2 * len(rows) - 1)
    test, child, cut = np.full(most, -1, np.int64), np.zeros(most, np.int64), np.zeros(most)
    todo = np.zeros((len(rows) + 2, 3), np.int64)
    todo[0, 2] = len(rows)
    n_nodes, n_todo = 1, 1
    y, w = codes[rows], weight[rows]
    node, left, gap = np.zeros(n_classes), np.zeros(n_classes), np.zeros(n_classes)
    tally, state = np.zeros((SET, 2)), np.full(1, seed, np.uint64)
    while n_todo:
        n_todo -= 1
        current, start, stop = todo[n_todo]
        node[:] = 0.0
        for i in range(start, stop):
            node[y[i]] += w[i]
        if stop - start <= least or np.count_nonzero(node) < 2:
            continue
        seen = min(stop, start + _MOST)
        if seen < stop:
            node[:] = 0.0
            for i in range(start, seen):
                node[y[i]] += w[i]
        best, best_gap, n_tried = -np.inf, 0, 0
        for _ in range(n_candidates * _TRIES):
            j = int(_uniform(state) * len(columns))
            x = columns[j]
            first = x[rows[start + int(_uniform(state) * (stop - start))]]
            other = x[rows[start + int(_uniform(state) * (stop - start))]]
            if first == other or (first != first and other != other):
                continue
            has_gap = first != first or other != other
            if has_gap:  # missing cells on one side, all others on the other
                where = float((1 << SET) - 1) if kinds[j] == 1 else _ALL
            elif kinds[j] != 1:
                where = math.floor((first + other) / 2) + 0.5 * (_uniform(state) < 0.5)
            elif max(first, other) < SET:
                node_rows = rows[start:seen]
                where = _set_of(x, node_rows, y[start:seen], w[start:seen], first, tally, state)
            else:
                where = -1 - first
            left[:] = 0.0
            gap[:] = 0.0
            n_gap = 0
            if kinds[j] < 0:  # without a branch
                for i in range(start, seen):
                    left[y[i]] += w[i] * (x[rows[i]] <= where)
            else:
                for i in range(start, seen):
                    cell = x[rows[i]]
                    if cell != cell:
                        gap[y[i]] += w[i]
                        n_gap += 1
                    elif _goes_left(cell, 3 * j, where, kinds):
                        left[y[i]] += w[i]
            right = node - left - gap
            if has_gap and left.sum() <= 0.0:  # codes beyond the sets
                continue
            for side in range(2 if n_gap and not has_gap else 1):
                parts = (left + gap, right) if side else (left, right + gap)
                score = _log_evidence(parts[0], a, tables) + _log_evidence(parts[1], a, tables)
                if score > best:
                    best, best_gap = score, n_gap
                    missing = side if n_gap else int(left.sum() > right.sum())
                    test[current], cut[current] = 3 * j + missing, where
            n_tried += 1
            if n_tried == n_candidates:
                break
        if n_tried == 0:
            continue
        x, low, high = columns[test[current] // 3], start, stop
        if best_gap == 0 and not np.isnan(x[rows[seen:stop]]).any():
            test[current] += BOTH - test[current] % 3
        while low < high:
            if _goes_left(x[rows[low]], test[current], cut[current], kinds):
                low += 1
            else:
                high -= 1
                rows[low], rows[high] = rows[high], rows[low]
                y[low], y[high] = y[high], y[low]
                w[low], w[high] = w[high], w[low]
        child[current] = n_nodes
        todo[n_todo] = n_nodes, start, low
        todo[n_todo + 1] = n_nodes + 1, low, stop
        n_todo += 2
        n_nodes += 2
    return test[:n_nodes].copy(), cut[:n_nodes].copy(), child[:n_nodes].copy()


@compiled
def _set_of(  # pragma: no cover - compiled
    x: Array, rows: Array, y: Array, w: Array, first: float, known: Array, state: Array
) -> float:
    """Return the set of categories where a random class is as frequent as in the first.

    For two classes such sets hold the best of all sets (Breiman et al. 1984, section 9.4).
    """
    known[:] = 0.0
    c = y[int(_uniform(state) * len(y))]
    for i in range(len(rows)):
        if 0 <= x[rows[i]] < SET:
            k = int(x[rows[i]])
            known[k, 0] += w[i]
            known[k, 1] += w[i] * (y[i] == c)
    if known[int(first), 0] == 0:  # not among these rows
        return -1 - first
    first_rate = known[int(first), 1] / known[int(first), 0]
    members, outside = 0, 0
    for k in range(SET):
        if known[k, 0] > 0:
            if known[k, 1] / known[k, 0] >= first_rate:
                members |= 1 << k
            else:
                outside += 1
    return float(members) if outside else -1 - first


@compiled
def _scratch(forest: Forest) -> Reached:  # pragma: no cover - compiled
    """Room for the nodes that a row reaches in one tree."""
    _, test, _, _, roots, _ = forest
    most = len(test) - roots[-1]
    for t in range(len(roots) - 1):
        most = max(most, roots[t + 1] - roots[t])
    ends = np.zeros(most, np.bool_)
    return np.zeros(most, np.int64), np.zeros((most, 2), np.int64), np.zeros(most), ends


@compiled
def _reach(  # pragma: no cover - compiled
    forest: Forest, root: int, x: Array, reached: Reached
) -> int:
    """Write the nodes that a row (D,) reaches; return their number.

    A row ends at a leaf, and at a node below which all tests are on missing cells.
    """
    kinds, test, cut, child, _, left = forest
    node, below, share, ends = reached
    node[0], share[0] = root, 1.0
    n_nodes, k = 1, 0
    while k < n_nodes:
        s = node[k]
        below[k] = -1
        if test[s] >= 0:
            cell = x[test[s] // 3]
            if _divides(cell, test[s], kinds):
                below[k, 0], below[k, 1] = n_nodes, n_nodes + 1
                node[n_nodes], share[n_nodes] = child[s], share[k] * left[s]
                node[n_nodes + 1], share[n_nodes + 1] = child[s] + 1, share[k] * (1 - left[s])
                n_nodes += 2
            else:
                below[k, 0] = n_nodes
                right = 0 if _goes_left(cell, test[s], cut[s], kinds) else 1
                node[n_nodes], share[n_nodes] = child[s] + right, share[k]
                n_nodes += 1
        k += 1
    for k in range(n_nodes - 1, -1, -1):
        one, two = below[k]
        ends[k] = one < 0 or (two >= 0 and ends[one] and ends[two])
    return n_nodes


@compiled
def count(  # pragma: no cover - compiled
    rows: Rows, tree: int, forest: Forest, counts: Array
) -> None:
    """Add to counts (node, C, S) S weights (N, S) of the rows that pass each node of a tree.

    Of rows with keys those alone that choose its structure.
    """
    cells, codes, weight, keys, copies = rows
    roots, reached = forest[4], _scratch(forest)
    node, _, share, _ = reached
    for i in range(len(cells)):
        if len(keys) and not chooses(keys[i], copies[i], tree):
            continue
        for k in range(_reach(forest, roots[tree], cells[i], reached)):
            counts[node[k], codes[i]] += weight[i] * share[k]


@compiled
def prune(  # pragma: no cover - compiled
    forest: Forest, held: Array, a: float, split: float, log_e: Array, log_w: Array
) -> None:
    """Write log P_e and log P_w of each node, from the counts (node, C) of the held-out half."""
    _, test, _, child, _, _ = forest
    n_classes = held.shape[1]
    none = n_classes * math.lgamma(a) - math.lgamma(a * n_classes)
    nothing = np.zeros(0), np.zeros(0)
    for s in range(len(held) - 1, -1, -1):
        log_e[s] = _log_evidence(held[s], a, nothing) - none
        log_w[s] = log_e[s]
        if test[s] >= 0:
            whole = math.log1p(-split) + log_e[s]
            below = child[s]
            log_w[s] = np.logaddexp(whole, math.log(split) + log_w[below] + log_w[below + 1])


@compiled
def _hand_down(  # pragma: no cover - compiled
    reached: Reached, k: int, left: float, part: float
) -> None:
    """Divide what is left of a row at its k-th node among the children of that node."""
    _, below, parts, _ = reached
    one, two = below[k]
    if two >= 0:
        parts[one], parts[two] = part * left, part * (1 - left)
    elif one >= 0:
        parts[one] = part


@compiled
def predict(X: Array, forest: Forest, nodes: Nodes, out: Array) -> None:  # pragma: no cover
    """Add to out (n, C) the mean over trees of the average over prunings."""
    kinds, test, cut, child, roots, left = forest
    reached = _scratch(forest)
    node, _, weight, ends = reached
    _, _, _, _, share, mean = nodes
    for root in roots:
        for i in range(len(X)):
            s, left_over = root, 1.0 / len(roots)
            while test[s] >= 0 and left_over > 0.0:  # until the row is divided
                cell = X[i, test[s] // 3]
                if _divides(cell, test[s], kinds):
                    break
                for c in range(out.shape[1]):
                    out[i, c] += left_over * share[s] * mean[s, c]
                left_over *= 1 - share[s]
                s = child[s] + (0 if _goes_left(cell, test[s], cut[s], kinds) else 1)
            if test[s] < 0 or left_over == 0.0:
                for c in range(out.shape[1]):
                    out[i, c] += left_over * mean[s, c]
                continue
            n_nodes = _reach(forest, s, X[i], reached)
            weight[0] = left_over
            for k in range(n_nodes):
                s = node[k]
                here = 1.0 if ends[k] else share[s]
                for c in range(out.shape[1]):
                    out[i, c] += weight[k] * here * mean[s, c]
                _hand_down(reached, k, left[s], weight[k] * (1 - here))


@compiled
def _log_step(z: float, w: float) -> float:  # pragma: no cover - compiled
    """Return log Gamma(z) - log Gamma(z - w)."""
    return math.log(z - 1.0) if w == 1.0 else math.lgamma(z) - math.lgamma(z - w)


@compiled
def predict_without(  # pragma: no cover - compiled
    rows: Rows,
    order: Array,
    starts: Array,
    forest: Forest,
    nodes: Nodes,
    a: float,
    split: float,
    out: Array,
) -> None:
    """Write to out (N, C), which is 0, the probabilities of rows without their groups.

    By the trees whose structure the group did not choose. The rows order[starts[g] : starts[g + 1]]
    are those of group g.
    """
    cells, codes, weight, keys, copies = rows
    _, test, _, child, roots, left = forest
    held, every, all_e, all_w, _, _ = nodes
    n_classes, reached = out.shape[1], _scratch(forest)
    node, _, path_weight, ends = reached
    most = len(node)
    place = np.full(most, -1, np.int64)  # of a node of the tree among those that the group reaches
    passed, share = np.zeros(most, np.int64), np.zeros(most)
    log_e, log_w = np.zeros(most), np.zeros(most)
    less, n_held, n_every = np.zeros((most, n_classes)), np.zeros(most), np.zeros(most)
    for tree in range(len(roots)):
        root = roots[tree]
        for g in range(len(starts) - 1):
            group = order[starts[g] : starts[g + 1]]
            if chooses(keys[group[0]], copies[group[0]], tree):
                continue
            n_passed, n_nodes = 0, 0
            for i in group:
                y = codes[i]
                n_nodes = _reach(forest, root, cells[i], reached)
                for k in range(n_nodes):
                    s, w = node[k], weight[i] * path_weight[k]
                    p = place[s - root]
                    if p < 0:
                        p = place[s - root] = n_passed
                        n_passed += 1
                        passed[p], log_e[p], less[p] = s, all_e[s], 0.0
                        n_held[p] = n_every[p] = a * n_classes
                        for c in range(n_classes):
                            n_held[p] += held[s, c]
                            n_every[p] += every[s, c]
                    log_e[p] += _log_step(n_held[p], w) - _log_step(a + held[s, y] - less[p, y], w)
                    less[p, y] += w
                    n_held[p] -= w
                    n_every[p] -= w
            for p in range(n_passed - 1, -1, -1):  # a child is behind its parent
                s, share[p], log_w[p] = passed[p], 1.0, log_e[p]
                if test[s] >= 0:
                    apart = math.log(split) - math.log1p(-split) - log_e[p]
                    for below in range(child[s], child[s] + 2):
                        q = place[below - root]
                        apart += all_w[below] if q < 0 else log_w[q]
                    share[p] = 1 / (1 + math.exp(min(apart, 700.0)))
                    log_w[p] += math.log1p(-split)
                    log_w[p] += apart if apart > 36.0 else math.log1p(math.exp(apart))
            for i in group:
                if len(group) > 1:
                    n_nodes = _reach(forest, root, cells[i], reached)
                path_weight[0] = 1.0
                for k in range(n_nodes):
                    s, p = node[k], place[node[k] - root]
                    here = 1.0 if ends[k] else share[p]
                    for c in range(n_classes):
                        mean = (every[s, c] - less[p, c] + a) / n_every[p]
                        out[i, c] += path_weight[k] * here * mean
                    _hand_down(reached, k, left[s], path_weight[k] * (1 - here))
            for p in range(n_passed):
                place[passed[p] - root] = -1
    for i in order[starts[0] : starts[-1]]:
        out[i] /= out[i].sum()
