"""Whether the rows look as the model has them: replicates, dependence, typicality."""

from typing import Any

import numpy as np
from scipy import sparse, stats

from bayesgen.encoding.literals import listed, one_line
from bayesgen.numerics.special import Array
from bayesgen.reporting import figures
from bayesgen.reporting.held_out import HeldOut
from bayesgen.reporting.parts import Section, Table, count, number, signed

_REPLICATES = 200
_ROWS = 1_000  # of each class at most this many are replicated
_CELLS = 20_000_000  # of all replicates together
_FEATURES = 20  # of a picture
_FEWEST = 8  # rows of a class of which something is said
_NOMINAL = ("categorical", "binned")
_LIMIT = 1.96
_PAIRS = 12


def predictive_checks(held: HeldOut) -> Section:
    """Means and standard deviations of each feature in each class, against replicates."""
    own = _generative(held)
    X, names = _table(held), _names(held)
    kinds = _kinds(held)
    rng = np.random.default_rng(held.seed)
    z = np.full((X.shape[1], len(held.labels), 2), np.nan)
    n_replicates = int(
        np.clip(_CELLS // max(1, min(held.n, _ROWS) * X.size // len(X)), 40, _REPLICATES)
    )
    for c in range(len(held.labels)):
        at = np.flatnonzero(held.codes == c)[:_ROWS]
        if len(at) < _FEWEST:
            continue
        x = X[at]
        modes = [_mode(x[:, j]) if kinds[j] in _NOMINAL else None for j in range(X.shape[1])]
        seen = _statistics(x, modes)
        gaps = np.isnan(x)
        found = []
        for _ in range(n_replicates):
            new = np.array(own.simulate(rng, len(at), np.full(len(at), c), True)[0], dtype=float)
            new[gaps] = np.nan
            found.append(_statistics(new, modes))
        replicates = np.stack(found)
        with np.errstate(all="ignore"):
            sd = replicates.std(axis=0)
            z[:, c] = np.where(sd > 0, (seen - replicates.mean(axis=0)) / sd, np.nan)
    known = np.isfinite(z)
    if not known.any():
        raise ValueError(f"no class has {_FEWEST} rows")
    size = np.where(known, np.abs(z), 0.0).reshape(len(z), -1).max(axis=1)
    order = np.argsort(-size, kind="stable")[:_FEATURES]
    beyond, of = int((np.abs(z[known]) > _LIMIT).sum()), int(known.sum())
    far = [f"{names[j]}" for j in order if size[j] > 4]
    text = [
        f"{beyond} of {of} statistics lie outside what the model produces itself in 95 % of cases; "
        f"{0.05 * of:.1f} would by chance."
        + (f" It describes these least: {listed(far, 8, ' and ')}." if far else "")
    ]
    rows = []
    flat = np.where(known, np.abs(z), 0.0)
    for i in np.argsort(-flat, axis=None, kind="stable")[:_PAIRS]:
        j, c, s = np.unravel_index(i, z.shape)
        if flat[j, c, s] > _LIMIT:
            what = (
                "share of its mode" if kinds[j] in _NOMINAL else ("mean", "standard deviation")[s]
            )
            rows.append([names[j], held.labels[c], what, signed(float(z[j, c, s]), 1)])
    out = Section("checks", "Do the rows look like the model's?", text)
    out.figures = [figures.z_scores([names[j] for j in order], z[order], held.labels, _LIMIT)]
    if rows:
        out.tables = [Table("The largest differences", ["feature", "class", "of", "z"], rows, 3)]
    most = min(held.n, _ROWS)
    out.notes = [
        f"{n_replicates} replicates of the held-out rows of each class (at most {most}), each from "
        "one draw of the posterior, with the same cells missing."
    ]
    out.data = {"z": {names[j]: z[j].tolist() for j in order}, "classes": held.labels}
    return out


def _generative(held: HeldOut) -> Any:
    if held.is_pool:
        raise ValueError("a pool of predictives has no density of x; report on its members")
    if held.clf.prior_.family.discriminative:
        raise ValueError("a discriminative model says nothing of x")
    return held.clf.fitted_.posterior


def _table(held: HeldOut) -> Array:
    """(n, D) the rows as numbers and codes."""
    encoded = held.clf.fitted_.encoded(held.X)
    if sparse.issparse(encoded) or np.ndim(encoded) != 2 or encoded.dtype.kind not in "fiub":
        raise ValueError("it is of tables of numbers and categories")
    return np.asarray(encoded, dtype=float)


def _names(held: HeldOut) -> list[str]:
    return [one_line(name, 40) for name in held.clf.fitted_.feature_names]


def _kinds(held: HeldOut) -> list[str]:
    kinds: list[str] = held.clf.summary().table["kind"].values.tolist()
    return kinds


def _mode(x: Array) -> float:
    values, n = np.unique(x[~np.isnan(x)], return_counts=True)
    return float(values[np.argmax(n)]) if len(values) else 0.0


def _statistics(x: Array, modes: list[float | None]) -> Array:
    """(D, 2) mean and standard deviation of each column; of categories the share of the mode."""
    gaps = np.isnan(x)
    n = np.maximum((~gaps).sum(axis=0), 1)
    filled = np.where(gaps, 0.0, x)
    mean = filled.sum(axis=0) / n
    sd = np.sqrt((np.where(gaps, 0.0, x - mean) ** 2).sum(axis=0) / n)
    for j, mode in enumerate(modes):
        if mode is not None:
            mean[j], sd[j] = (x[:, j] == mode).sum() / n[j], 0.0
    bits = ((x == 0) | (x == 1) | gaps).all(axis=0)
    return np.stack([mean, np.where(bits, 0.0, sd)], axis=1)


def dependence(held: HeldOut) -> Section:
    """Edges of a forest; of naive Bayes, correlations within classes that it leaves out."""
    if hasattr(held.clf, "edge_probabilities"):
        return _edges(held)
    family = _generative(held).prior.family
    if not all(block.family.separable for block in family.blocks()):
        raise ValueError("the model has dependences of its own, without probabilities of edges")
    encoded = _table(held)
    kinds = np.array(_kinds(held))
    columns = np.flatnonzero(~np.isin(kinds, _NOMINAL))[:100]
    if len(columns) < 2:
        raise ValueError("there are not two columns of numbers")
    names = [_names(held)[j] for j in columns]
    rho, n = _within_classes(encoded[:, columns], held.codes)
    upper = np.triu_indices(len(columns), 1)
    size = np.nan_to_num(np.abs(rho[upper]))
    limit = stats.norm.isf(0.005) / np.sqrt(max(n - len(held.labels), 4))  # 1 in 100 by chance
    order = np.argsort(-size, kind="stable")[:_PAIRS]
    pairs = [(names[upper[0][k]], names[upper[1][k]], float(rho[upper][k])) for k in order]
    strong = int((size > max(limit, 0.2)).sum())
    text = [
        f"The model takes the columns of a class for independent. {strong} of {len(size)} pairs "
        f"have a rank correlation beyond ±{number(max(limit, 0.2), 2)} within the classes: "
        + (
            "what they share is counted twice, which makes probabilities too extreme. A "
            "LogLinearPool, LinearDiscriminant or TreeAugmentedNB takes it into account."
            if strong
            else "a fair description."
        )
    ]
    rows = [[a, b, signed(r, 2)] for a, b, r in pairs if abs(r) > limit]
    out = Section("dependence", "Dependence within classes", text)
    if rows:
        out.tables = [
            Table(
                "Largest rank correlations within classes",
                ["column", "and", "correlation"],
                rows,
                2,
            )
        ]
    if 2 < len(columns) <= 15:
        shown = np.nan_to_num(np.abs(rho))
        np.fill_diagonal(shown, 0)
        what = "Rank correlations within classes: " + "; ".join(
            f"{a} and {b} {r:.2f}" for a, b, r in pairs[:6]
        )
        caption = "Shades: size of the rank correlation, pooled over classes."
        out.figures = [_of_pairs(shown, rho, names, what, caption)]
    out.data = {
        "pairs": [{"a": a, "b": b, "correlation": r} for a, b, r in pairs],
        "limit": float(limit),
    }
    return out


def _of_pairs(shades: Array, numbers: Array, names: list[str], what: str, caption: str) -> Any:
    """A matrix of columns against columns, its diagonal empty."""
    texts = [
        ["" if i == j else number(float(v), 1) for j, v in enumerate(line)]
        for i, line in enumerate(numbers)
    ]
    return figures.matrix(shades, names, names, texts, f"{what}.", caption)


def _within_classes(X: Array, codes: Array) -> tuple[Array, int]:
    """Rank correlation of each pair of columns within classes, and the number of rows behind it."""
    total, weight = np.zeros((X.shape[1], X.shape[1])), 0
    for c in np.unique(codes):
        x = X[codes == c]
        if len(x) < _FEWEST:
            continue
        ranks = np.apply_along_axis(_normal_scores, 0, x)
        with np.errstate(all="ignore"):
            r = np.corrcoef(ranks, rowvar=False)
        total += len(x) * np.nan_to_num(r)
        weight += len(x)
    if not weight:
        raise ValueError(f"no class has {_FEWEST} rows")
    return total / weight, weight


def _normal_scores(x: Array) -> Array:
    """Centred ranks; a missing cell is in the middle."""
    gaps = np.isnan(x)
    out = np.zeros(len(x))
    if (~gaps).any():
        ranks = stats.rankdata(x[~gaps])
        out[~gaps] = ranks - ranks.mean()
    return out


def _edges(held: HeldOut) -> Section:
    p = held.clf.edge_probabilities()["probability"].values
    names = _names(held)
    upper = np.triu_indices(len(names), 1)
    each = p[:, upper[0], upper[1]]  # (class, pair)
    order = np.argsort(-each.max(axis=0), kind="stable")[:_PAIRS]
    rows = [
        [names[upper[0][k]], names[upper[1][k]], *(number(float(v), 2) for v in each[:8, k])]
        for k in order
        if each[:, k].max() > 0.05
    ]
    sure = int((each.max(axis=0) > 0.5).sum())
    text = [
        f"{count(sure, 'pair')} of columns of {len(upper[0])} are neighbours with probability "
        "above "
        "0.5 in some class. An edge has no direction and is no causal claim."
    ]
    out = Section("dependence", "Dependence within classes", text)
    if rows:
        head = ["column", "and", *held.labels[:8]]
        out.tables = [Table("Probability that two columns are neighbours, by class", head, rows, 2)]
    if 2 < len(names) <= 15:
        top = p.max(axis=0)
        what = "Edge probabilities, the largest over classes: " + "; ".join(
            f"{names[upper[0][k]]} and {names[upper[1][k]]} {each[:, k].max():.2f}"
            for k in order[:6]
        )
        caption = "Shades: probability of an edge, the largest over the classes."
        out.figures = [_of_pairs(top, top, names, what, caption)]
    out.data = {
        "edges": [
            {
                "a": names[a],
                "b": names[b],
                "probability": dict(zip(held.labels, p[:, a, b].tolist(), strict=True)),
            }
            for a, b in zip(upper[0][order], upper[1][order], strict=True)
        ]
    }
    return out


def typicality(held: HeldOut) -> Section:
    """Whether the rows are like the training rows."""
    if not held.is_pool:
        _generative(held)
    found = held.clf.typicality(held.X, held.training)
    tail = found["overall"].values
    strange = np.flatnonzero(tail < 0.01)
    expected = 0.01 * held.n
    text = [
        f"Of {count(held.n, 'row')}, {len(strange)} {'is' if len(strange) == 1 else 'are'} less "
        "probable than all but 1 % of the training rows; "
        f"{expected:.1f} would be if they came from the same source."
        + (
            " They do not seem to come from the same source."
            if len(strange) > expected + 3 * np.sqrt(expected) + 1
            else ""
        )
    ]
    order = np.argsort(tail, kind="stable")[:_FEWEST]
    by_class = found["by_class"].values
    rows = [
        [held.name(int(i)), held.labels[held.codes[i]], number(float(tail[i]), 4),
         held.labels[int(by_class[i].argmax())], number(float(by_class[i].max()), 4)]
        for i in order
    ]  # fmt: skip
    out = Section("typicality", "Rows unlike the training rows", text)
    out.tables = [
        Table(
            "The least typical rows: share of training rows at most as probable",
            ["row", "label", "overall", "nearest class", "within it"], rows, 2,
        )
    ]  # fmt: skip
    out.figures = [
        figures.histogram(
            tail, 20, "share of training rows at most as probable", "Typicality of the rows",
            "Level with the line if the rows are drawn as the training rows were; a peak at the "
            "left: rows unlike any seen."
            + (" Of a pool the right may stand higher." if held.is_pool else ""),
        )
    ]  # fmt: skip
    out.data = {
        "below_0.01": len(strange),
        "expected": expected,
        "quantiles": np.quantile(tail, [0, 0.01, 0.05, 0.25, 0.5, 0.75, 1]),
    }
    return out
