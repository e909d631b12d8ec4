"""Averages of distribution functions over points, their quantiles, and sums over classes.

Shapes: n rows, M components of a mixture, C classes, S points, Q probabilities.
"""

import numpy as np

from bayesgen.numerics.kernels.arithmetic import exp, log1p
from bayesgen.numerics.kernels.compiling import compiled, compiled_sums

Array = np.ndarray


@compiled_sums
def solve(
    cells: Array,
    first: Array,
    size: Array,
    start: Array,
    spacing: Array,
    weight: Array,
    draws: Array,
    rest: Array,
    loc: Array,
    scale: Array,
    p: Array,
    logit: Array,
    z: Array,
    error: Array,
    l: Array,
) -> None:  # pragma: no cover - compiled
    """Quantiles l (n, C, Q) at p of each class against the rest, and (n,) their largest error.

    Newton's method on the scale of the logit, as in `predict.expansion`: first with a quarter
    of the points, which are a set as good as all are, then with all; the last step is as short
    as there. The error is the standard error of the percentile by the spread of eight blocks.

    Parameters
    ----------
    cells : (K, 4) tables of distribution functions
    first, size, start, spacing : (n, M, C) where the table of each begins and ends
    weight : (n, M, C) of the components
    draws, rest : (n, M, C, S) log densities, and of each the log sum over the other classes
    loc, scale : (n, M, C, S or 1) of the variables that the tables are of
    p, logit, z : (n, C, Q) probabilities, their logits and normal quantiles
    error : (n,), l : (n, C, Q)
        Outputs.
    """
    n, n_parts, n_classes, n_points = rest.shape
    width = n_points // 8
    each = np.empty(8)
    shift, rate = np.empty((n_parts, n_points)), np.empty((n_parts, n_points))
    for i in range(n):
        for c in range(n_classes):
            left, right = np.inf, -np.inf
            m1, m2, m3 = 0.0, 0.0, 0.0
            for m in range(n_parts):
                w = weight[i, m, c]
                if w > 0:
                    once = 1 / spacing[i, m, c]
                    begin = start[i, m, c]
                    end = begin + size[i, m, c] * spacing[i, m, c]
                    if loc.shape[3] == 1:
                        at, r = loc[i, m, c, 0], once / scale[i, m, c, 0]
                        for s in range(n_points):
                            rate[m, s] = r
                            shift[m, s] = (rest[i, m, c, s] - at) * r - begin * once
                        least, most = np.inf, -np.inf
                        for s in range(n_points):
                            least = min(least, rest[i, m, c, s])
                            most = max(most, rest[i, m, c, s])
                        left = min(left, at + begin * scale[i, m, c, 0] - most)
                        right = max(right, at + end * scale[i, m, c, 0] - least)
                    else:
                        for s in range(n_points):
                            r = once / scale[i, m, c, s]
                            rate[m, s] = r
                            at = rest[i, m, c, s] - loc[i, m, c, s]
                            shift[m, s] = at * r - begin * once
                            left = min(left, begin * scale[i, m, c, s] - at)
                            right = max(right, end * scale[i, m, c, s] - at)
                    o1, o2, o3 = 0.0, 0.0, 0.0
                    base = draws[i, m, c, 0] - rest[i, m, c, 0]
                    for s in range(n_points):
                        y = draws[i, m, c, s] - rest[i, m, c, s] - base
                        o1 += y
                        o2 += y * y
                        o3 += y * y * y
                    o1, o2, o3 = o1 / n_points, o2 / n_points, o3 / n_points
                    m1 += w * (base + o1)
                    o3 += 2 * o1**3 - 3 * o1 * o2
                    m2 += w * (o2 - o1 * o1)
                    m3 += w * o3
            sd = np.sqrt(max(m2, 0.0))
            skew = min(max(m3 / max(sd, 1e-300) ** 3, -1.0), 1.0)
            for q in range(p.shape[2]):
                low, high = left, right
                v = z[i, c, q]
                x = m1 + sd * (v + (v * v - 1) * skew / 6)
                x = min(max(x, low), high)
                want, goal = p[i, c, q], logit[i, c, q]
                part = 4 if width % 4 == 0 else 1  # first by every fourth block alone
                for _ in range(40):
                    slope = 0.0
                    each[:] = 0.0
                    used = n_points // part
                    step_of = used // 8
                    for m in range(n_parts):
                        w = weight[i, m, c]
                        if w > 0:
                            at = first[i, m, c]
                            top = size[i, m, c] * (1 - 1e-12)
                            for b in range(8):
                                v = 0.0
                                own = 0.0
                                for s in range(b * step_of, (b + 1) * step_of):
                                    r = rate[m, s]
                                    place = min(max(x * r + shift[m, s], 0.0), top)
                                    j = int(place)
                                    f = place - j
                                    j += at
                                    c1, c2, c3 = cells[j, 1], cells[j, 2], cells[j, 3]
                                    v += cells[j, 0] + f * (c1 + f * (c2 + f * c3))
                                    own += r * (c1 + f * (2 * c2 + f * 3 * c3))
                                each[b] += w * v
                                slope += w * own
                    mean = 0.0
                    for b in range(8):
                        mean += each[b]
                    mean = min(max(mean / used, 0.0), 1.0)
                    slope /= used
                    if mean < want:
                        low = x
                    else:
                        high = x
                    miss = np.log(mean / (1 - mean)) - goal
                    step = x - miss * mean * (1 - mean) / slope
                    inside = low <= step <= high
                    short = inside and abs(step - x) < abs(miss) * sd
                    done = abs(miss) < 0.001 or (abs(miss) < 0.03 and short)
                    if short or (inside and not done):
                        x = step
                    elif not done:
                        x = (low + high) / 2
                    if done:
                        if part == 1:
                            break
                        part, low, high = 1, left, right
                l[i, c, q] = x
                spread = 0.0
                for b in range(8):
                    spread += (each[b] / width - mean) ** 2
                error[i] = max(error[i], np.sqrt(spread / 56))


@compiled
def averages(
    a: Array,
    mean: Array,
    variance: Array,
    top: Array,
    entropy: Array,
    level: Array,
    spread: Array,
) -> None:  # pragma: no cover - compiled
    """Of the softmax over the classes of draws (n, C, replicate, draw), as in `uncertainty`."""
    n, n_classes, n_replicates, size = a.shape
    most, total = np.empty(size), np.empty(size)
    rho = np.empty((n_replicates, n_classes, size))
    for i in range(n):
        level[i], spread[i] = 0.0, 0.0
        for b in range(n_replicates):
            for s in range(size):
                most[s], total[s] = a[i, 0, b, s], 0.0
            for c in range(1, n_classes):
                for s in range(size):
                    most[s] = max(most[s], a[i, c, b, s])
            for c in range(n_classes):
                for s in range(size):
                    rho[b, c, s] = exp(max(a[i, c, b, s] - most[s], -740.0))
                for s in range(size):
                    total[s] += rho[b, c, s]
            for s in range(size):
                total[s] = 1.0 / total[s]
            h = 0.0
            for c in range(n_classes):
                m, l1 = 0.0, 0.0
                for s in range(size):
                    x = a[i, c, b, s] - most[s]
                    r = rho[b, c, s] * total[s]
                    rho[b, c, s] = r
                    m += r
                    h -= r * max(x, -740.0)
                    l1 += x
                mean[i, b, c] = m / size
                level[i, c] += l1
            for s in range(size):
                total[s] = -log1p(1.0 / total[s] - 1.0)
                h -= total[s]
            entropy[i, b] = h / size
            shift = 0.0
            for s in range(size):
                shift += total[s]
            for c in range(n_classes):
                level[i, c] += shift
                l2 = 0.0
                for s in range(size):
                    l2 += (a[i, c, b, s] - most[s] + total[s]) ** 2
                spread[i, c] += l2
                hits = 0.0
                for s in range(size):
                    if a[i, c, b, s] == most[s]:
                        ties = 0
                        for d in range(n_classes):
                            ties += a[i, d, b, s] == most[s]
                        hits += 1.0 / ties
                top[i, b, c] = hits / size
        for c in range(n_classes):
            level[i, c] /= n_replicates * size
            squares = spread[i, c] / (n_replicates * size)
            spread[i, c] = np.sqrt(max(squares - level[i, c] ** 2, 0.0))
            m = 0.0
            for b in range(n_replicates):
                m += mean[i, b, c]
            m /= n_replicates
            for b in range(n_replicates):
                v = 0.0
                for s in range(size):
                    v += (rho[b, c, s] - m) ** 2
                variance[i, b, c] = v / size


# ------------------------------------------------------------------------------------------------
# Class probabilities from log joint densities, in place.

_ROWS = 128


@compiled
def log_softmax(a: Array) -> int:  # pragma: no cover - compiled
    """Normalise the rows of (N, C), in place; how many are -inf throughout, which stay so."""
    n_classes = a.shape[1]
    impossible = 0
    t = np.empty((n_classes, _ROWS))  # a few rows on their side: loops over rows, many at a time
    top, total, ties = np.empty(_ROWS), np.empty(_ROWS), np.empty(_ROWS)
    for start in range(0, len(a), _ROWS):
        n = min(_ROWS, len(a) - start)
        for r in range(n):
            for c in range(n_classes):
                t[c, r] = a[start + r, c]
        top[:], total[:], ties[:] = -np.inf, 0.0, -1.0
        for c in range(n_classes):
            for r in range(n):
                top[r] = t[c, r] if t[c, r] > top[r] else top[r]
        for c in range(n_classes):
            for r in range(n):
                t[c, r] -= top[r]
                term = exp(t[c, r])
                total[r] += term if t[c, r] != 0.0 else 0.0
                ties[r] += 1.0 if t[c, r] == 0.0 else 0.0
        for r in range(n):
            total[r] = log1p(total[r] + ties[r])  # but for one exp(0): 1e-20 beside 1 is kept
        for r in range(n):
            if abs(top[r]) == np.inf:
                nowhere = True
                for c in range(n_classes):
                    t[c, r] = a[start + r, c]
                    nowhere &= t[c, r] == -np.inf
                impossible += nowhere
                total[r] = 0.0 if nowhere else abs(top[r])
        for r in range(n):
            for c in range(n_classes):
                a[start + r, c] = t[c, r] - total[r]
    return impossible
