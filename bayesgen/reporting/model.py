"""What was fitted: columns, priors and their influence, pool, leave-one-out, sampling."""

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse, stats

from bayesgen.checks.compare_models import compare_models
from bayesgen.checks.label_errors import label_errors
from bayesgen.checks.priors import prior_sensitivity
from bayesgen.checks.validate import Validation, as_text
from bayesgen.encoding.labelled import labelled
from bayesgen.encoding.literals import listed, one_line
from bayesgen.estimators.pool import PoolReader, chosen, learnt
from bayesgen.explain.feature_relevance import feature_relevance
from bayesgen.numerics.special import Array
from bayesgen.plots import drawing
from bayesgen.reporting.figures import Figure, bars, differences, matrix
from bayesgen.reporting.held_out import HeldOut
from bayesgen.reporting.parts import Section, Table, count, number, share, signed

_MOST_WORK = 300_000  # training rows x classes for which other models are fitted
_SENSITIVE_ROWS = 500
_SHOWN = 60  # columns in a table
_FEATURES = 20  # of a picture


def fitted(held: HeldOut) -> Section:
    """Columns and kinds, class counts, missing cells, priors in units."""
    if held.is_pool:
        raise ValueError("its members have columns")
    found, out = held.summary, Section("fitted")
    said = [s for s in found.sentences if not s.startswith("Warning")]
    out.notes = [s for s in found.sentences if s.startswith("Warning")]
    out.text = [" ".join([f"{found.title}.", *said])]
    frame, table = found.to_dataframe(), found.table
    if len(frame):
        shown = frame.iloc[:_SHOWN]
        columns = {
            "column": [one_line(name, 40) for name in shown.index],
            "kind": shown["kind"],
            "prior": shown["prior"],
            "90 % of cells under it": shown["prior_range"],
            "missing": ["" if n != n or not n else f"{n:g}" for n in shown["missing"]],
        }
        used = [head for head, cells in columns.items() if head == "column" or any(cells)]
        rows = list(zip(*(columns[head] for head in used), strict=True))
        more = "" if len(frame) <= _SHOWN else f"; {len(frame) - _SHOWN} more"
        caption = f"Columns, and priors in their units{more}"
        out.tables.append(Table(caption, used, rows, len(used) - ("missing" in used)))
    out.data = {
        "columns": frame.head(1000).to_dict("index"),
        "rows": table["rows"].values if "rows" in table else None,
        "attributes": dict(table.attrs),
    }
    return out


def influence(held: HeldOut) -> Section:
    """What each hyper-parameter decides, and all together."""
    at = held.some(_SENSITIVE_ROWS)
    found = prior_sensitivity(held.clf, held.rows(at))
    names = found["hyperparameter"].values.tolist()
    width, moved = np.ptp(found["range"].values, axis=2), found["changes"].values.sum(axis=0)
    mean, widest = width.mean(axis=0).tolist(), width.max(axis=0).tolist()
    rows = [
        [name, number(mean[k], 4), number(widest[k]), str(moved[k])] for k, name in enumerate(names)
    ]
    if widest[-1] < 0.05:
        word = "The prior decides next to nothing here"
    elif widest[-1] < 0.2:
        word = "The prior matters for some rows"
    else:
        word = "The prior decides some rows: think about it"
    text = (
        f"{word}. With a prior worth half to twice as many rows, the probability of the most "
        f"probable class stays within a range of {number(widest[-1])} in every row, and another "
        f"class becomes the most probable in {moved[-1]} of {count(len(at), 'row')}."
    )
    caption = "Range of that probability, with one hyper-parameter worth half to twice as many rows"
    head = ["hyper-parameter", "mean range", "largest range", "other class"]
    data = {
        name: {"mean_range": mean[k], "largest_range": widest[k], "labels_changed": int(moved[k])}
        for k, name in enumerate(names)
    }
    return Section("influence", [text], [Table(caption, head, rows)], data=data)


def relevance(held: HeldOut) -> Section:
    """Posterior probability that each feature depends on the class."""
    table = feature_relevance(held.clf)
    names = [one_line(name, 40) for name in table["feature"].values]
    factor, p = table["log_bayes_factor"].values, table["probability"].values
    order = np.argsort(-factor, kind="stable")
    low, high = table["log_bayes_factor_range"].values.T
    nothing = [names[j] for j in order if high[j] < 0]
    open_ones = [names[j] for j in order if low[j] < 0 <= high[j]]
    together = len(np.unique(table["unit"].values)) < len(names)
    span = "whatever the strength of the prior, from 1/30 to 30 times its own"
    text = f"{len(names) - len(nothing) - len(open_ones)} of {len(names)} features depend on the "
    text += f"class with probability above 0.5 {span}."
    if nothing:
        told = listed(nothing, 12, " and ")
        text += f" {len(nothing)} tell nothing of the class at any of them: {told}."
    if open_ones:
        text += f" For {len(open_ones)} the prior decides: {listed(open_ones, 12, ' and ')}."
    top = order[:_FEATURES]
    rows = [
        [
            names[j],
            signed(factor[j], 1),
            f"{signed(low[j], 1)} to {signed(high[j], 1)}",
            number(p[j]),
        ]
        for j in order[:_SHOWN]
    ]
    out = Section("relevance", [text])
    out.tables = [
        Table(
            "Log Bayes factor of a parameter per class against one for all (nats), and probability "
            "of dependence at equal prior odds; range over the strength of the prior",
            ["feature", "log Bayes factor", "range", "probability"],
            rows,
        )
    ]
    if len(names) > 1 and not together:
        out.figures = [
            bars(
                [names[j] for j in top],
                factor[top],
                "log Bayes factor (nats)",
                "Log Bayes factor of dependence on the class",
                "Right of 0: the training rows speak for a dependence on the class.",
            )
        ]
    if together:
        out.notes = ["Features that are not independent given the class are judged together."]
    out.data = {
        n: {"log_bayes_factor": float(f), "range": [float(a), float(b)], "probability": float(q)}
        for n, f, a, b, q in zip(names, factor, low, high, p, strict=True)
    }
    return out


def pool(held: HeldOut) -> Section:
    """Exponents, and what they say of the members."""
    if not held.is_pool:
        raise ValueError("not a pool")
    found = held.summary
    names = [str(name) for name in found.table["member"].values]
    value, ends = found.table["exponent"].values, found.table["interval"].values
    order = np.argsort(-value, kind="stable")[:_FEATURES]
    rows = [
        [names[j], number(value[j]), f"{number(ends[j, 0])} to {number(ends[j, 1])}"] for j in order
    ]
    head = ["member", "exponent", f"{share(held.prob)} interval"]
    line = 1.0 if len(names) == 1 or held.clf.exponents == "feature" else 1 / len(names)
    figure = differences(
        [names[j] for j in order],
        value[order],
        ends[order],
        line,
        "exponent",
        "Exponents of the pool",
        "An exponent below 1 counts a member's evidence for less than it claims. The line: "
        + ("1." if line == 1 else "equal shares."),
    )
    exponents = dict(zip(names, value.tolist(), strict=True))
    return Section(
        "pool",
        list(found.sentences),
        [Table("Exponents of the members", head, rows)],
        [figure],
        data={"exponents": exponents, "sentences": found.sentences},
    )


def comparison(held: HeldOut) -> Section:
    """Leave-one-out of the training rows: this model beside others of the same columns."""
    if held.training is None:
        raise ValueError("give training=(X, y), the rows of the fit")
    X, y, *weight = held.training
    models, rows = _competitors(held, X, y, *weight)
    if len(models) == 1 and not held.is_pool:
        raise ValueError(
            f"there are more than {_MOST_WORK // len(held.labels)} training rows, or columns that "
            "no other model reads"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its notes say the same
        found = compare_models(models, rows, y, *weight)
    table = {str(name): variable.values for name, variable in found.table.variables.items()}
    names = [str(name) for name in table["model"]]
    below, se = table["elpd_diff"], table["dse"]
    lines = [
        [name, number(table["elpd"][i], 1), number(-below[i], 1), number(2 * se[i], 1),
         number(table["log_loss"][i]), share(table["accuracy"][i]), number(table["stacking"][i], 2)]
        for i, name in enumerate(names)
    ]  # fmt: skip
    n = count(found.table.attrs["rows"], "training label")
    text = [
        f"Each of {n} scored without its row, by exact leave-one-out; elpd is the sum of log "
        "probabilities."
    ]
    if not held.is_pool and len(names) > 1:
        mine = names.index(_THIS)
        text.append(_beside_the_best(names[0], mine, -below[mine], se[mine]))
    out = Section("models", text)
    out.notes = [f"{t}." for t in found.notes if "evidence" not in t]  # which is not shown
    head = ["model", "elpd", "below the best", "± 2 se", "log loss", "accuracy", "stacking"]
    out.tables = [Table("Models by leave-one-out, the best first", head, lines)]
    if len(names) > 1:
        error = np.nan_to_num(se)
        out.figures = [
            differences(
                names,
                below,
                np.stack([below - 2 * error, below + 2 * error], axis=1),
                0.0,
                "elpd, less that of the best (nats)",
                "Leave-one-out score less that of the best",
                "Bars: two standard errors of the paired difference.",
            )
        ]
    scores = found.table.data_vars
    out.data = {str(k): dict(zip(names, scores[k].values.tolist(), strict=True)) for k in scores}
    return out


def _beside_the_best(best: str, place: int, gap: float, se: float) -> str:
    """Of this model, which is at `place` and by `gap` below the best."""
    if place == 0:
        return "None of the others predicts the labels better than this model."
    if gap <= 2 * se:
        words = f"may be better: by {number(gap, 1)} nats, within two standard errors"
        return f"The model {best!r} {words}."
    words = f"predicts the labels better, by {number(gap, 1)} nats (standard error {number(se, 1)})"
    return f"The model {best!r} {words}."


_THIS = "this model"


def _competitors(
    held: HeldOut, X: Any, y: Array, *weight: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """{name: fitted classifier} and {name: its rows}."""
    if held.is_pool:
        parts = zip(held.clf.members_, held.clf.fitted_.parts(X), strict=True)
        return held.clf.members_, {name: rows for name, (_, rows) in parts}
    models, rows = {_THIS: held.clf}, {_THIS: X}
    if len(y) * len(held.labels) > _MOST_WORK:
        return models, rows
    try:
        read = PoolReader("pool").read(X)
        labels = labelled(read, y, *(weight or [None]))
        seen = labels.X.encoded
        others, _ = chosen(seen, len(held.labels), separable=False)
    except (TypeError, ValueError):  # a table of one kind that no other member reads
        return models, rows
    kinds = {type(held.clf).__name__}
    for member in others:
        if member.view is None and type(member.clf).__name__ in kinds and len(others) > 1:
            continue  # it is this model, or nearly
        try:
            fit = learnt(member, seen, labels)
        except (TypeError, ValueError, NotImplementedError):
            continue
        models[member.name], rows[member.name] = fit.clf, read.encoded.read(fit)
    return models, rows


def sampling(held: HeldOut, validation: Validation | None = None) -> Section:
    """Whether the sampler can be trusted, or agrees with the closed form."""
    out = Section("sampling")
    if validation is not None:
        out.text = [f"Closed form against NUTS: {validation.verdict}.", *validation.reasons]
        frame = validation.summary()
        lines = [[str(name), *line] for name, line in as_text(frame).T.items()]
        out.tables = [Table("What was compared", ["variable", *map(str, frame.columns)], lines)]
        out.notes = list(validation.remarks())
        out.data = {"verdict": validation.verdict, "variables": frame.to_dict("index")}
        return out
    route = getattr(held.clf, "inference_", "closed form")
    if route == "closed form" or held.is_pool:  # the exponents' draws are in its summary
        raise ValueError("nothing was sampled; validation=bg.validate(...) adds NUTS to the report")
    draws = held.clf.posterior_
    if route not in ("nuts", "gibbs"):
        out.text = [
            f"The posterior is an approximation ({route}) by a Normal in unconstrained coordinates."
        ]
        out.data = {"route": route}
        return out
    from bayesgen.inference.nuts import diagnose

    found = diagnose(draws["posterior"].to_dataset(), draws["sample_stats"].to_dataset())
    complaints = found.complaints()
    by = "NUTS" if route == "nuts" else "Gibbs"
    out.text = [
        f"{found.n_chains} chains by {by}: largest R-hat {number(found.r_hat)} "
        f"({found.r_hat_of or 'none'}), fewest effective draws {found.ess:.0f} ({found.ess_of}), "
        f"{count(found.divergences, 'divergence')}.",
        *([f"{c[0].upper()}{c[1:]}." for c in complaints] or ["The chains agree."]),
    ]
    numbers = {"r_hat": found.r_hat, "ess": found.ess, "divergences": found.divergences}
    out.data = {"route": route} | numbers
    return out


# ------------------------------------------------------------------------------------------------
# Whether the rows look as the model has them: replicates, dependence, typicality.

_REPLICATES = 200
_ROWS = 1_000  # of each class at most this many are replicated
_CELLS = 20_000_000  # of all replicates together
_NUMBERS = 1 << 22  # of some replicates at a time, their parameters included
_FEWEST = 8  # rows of a class of which something is said
_NOMINAL = ("categorical", "binned")
_LIMIT = 1.96
_PAIRS = 12
_SQUARE = 15  # columns of a matrix of pairs
_BINS = 20  # of typicality


def predictive_checks(held: HeldOut) -> Section:
    """Means and standard deviations of each feature in each class, against replicates."""
    own, X, names = _generative(held), _table(held), _names(held)
    nominal = np.isin(held.kinds, _NOMINAL)
    rng = np.random.default_rng(held.seed)
    z = np.full((X.shape[1], len(held.labels), 2), np.nan)
    n_cells = max(1, min(held.n, _ROWS) * X.shape[1])
    n_replicates = int(np.clip(_CELLS // n_cells, 40, _REPLICATES))
    for c in range(len(held.labels)):
        x = X[np.flatnonzero(held.codes == c)[:_ROWS]]
        if len(x) < _FEWEST:
            continue
        modes = np.where(nominal, [_mode(column) for column in x.T], np.nan)
        seen = _statistics(x[None], modes)[0]
        replicates = np.concatenate(
            [_statistics(new, modes) for new in _replicates(own, rng, x, c, n_replicates)]
        )
        with np.errstate(all="ignore"):
            sd = replicates.std(axis=0)
            z[:, c] = np.where(sd > 0, (seen - replicates.mean(axis=0)) / sd, np.nan)
    known = np.isfinite(z)
    if not known.any():
        raise ValueError(f"no class has {_FEWEST} rows")
    size = np.where(known, np.abs(z), 0.0)
    largest = size.reshape(len(z), -1).max(axis=1)
    order = np.argsort(-largest, kind="stable")[:_FEATURES]
    beyond, of = int((np.abs(z[known]) > _LIMIT).sum()), int(known.sum())
    far = [names[j] for j in order if largest[j] > 4]
    text = [
        f"{beyond} of {of} statistics lie outside what the model produces itself in 95 % of cases; "
        f"{0.05 * of:.1f} would by chance."
        + (f" It describes these least: {listed(far, 8, ' and ')}." if far else "")
    ]
    rows = []
    for i in np.argsort(-size, axis=None, kind="stable")[:_PAIRS]:
        j, c, s = np.unravel_index(i, z.shape)
        if size[j, c, s] > _LIMIT:
            what = "share of its mode" if nominal[j] else ("mean", "standard deviation")[s]
            rows.append([names[j], held.labels[c], what, signed(float(z[j, c, s]), 1)])
    shown = [names[j] for j in order]
    told = "; ".join(f"{name} {largest[j]:.1f}" for name, j in zip(shown, order, strict=True))
    figure = Figure(
        partial(drawing.z_scores, names=shown, z=z[order], labels=held.labels, limit=_LIMIT),
        1.1 + 0.3 * len(shown),
        f"Predictive checks, largest difference of each feature: {told}.",
        "Circles: means or shares; diamonds: standard deviations. Within the band: what the model "
        "would produce itself, in 95 % of cases. Beyond 8 at the edge.",
    )
    head = ["feature", "class", "of", "z"]
    return Section(
        "checks",
        text,
        [Table("The largest differences", head, rows, 3)] if rows else [],
        [figure],
        [
            f"{n_replicates} replicates of the held-out rows of each class (at most "
            f"{min(held.n, _ROWS)}), each from one draw of the posterior, with the same cells "
            "missing."
        ],
        {"z": {names[j]: z[j].tolist() for j in order}, "classes": held.labels},
    )


def _replicates(own: Any, rng: np.random.Generator, x: Array, c: int, n: int) -> Iterator[Array]:
    """(m, len(x), D) data sets like the rows x of class c, one draw of theta each; n in all."""
    n_numbers = sum(value[0, 0].size for value in own.draw(rng, 1, 1).values())
    at_once = max(1, min(n, _NUMBERS // (len(x) * (x.shape[1] + n_numbers))))
    for start in range(0, n, at_once):
        m = min(at_once, n - start)
        drawn = {k: v.reshape(-1, *v.shape[2:]) for k, v in own.draw(rng, m, 1).items()}
        known = len(next(iter(drawn.values())))
        which = np.arange(m) if known == m else rng.integers(known, size=m)
        rows = which[0] if m == 1 else np.repeat(which, len(x))
        theta = {name: value[rows] for name, value in drawn.items()}
        new = own.model.family.simulate(rng, theta, np.full(m * len(x), c))
        yield np.where(np.isnan(x), np.nan, np.asarray(new, dtype=float).reshape(m, *x.shape))


def _generative(held: HeldOut) -> Any:
    if held.is_pool:
        raise ValueError("a pool of predictives has no density of x; report on its members")
    if held.clf.prior_.family.discriminative:
        raise ValueError("a discriminative model says nothing of x")
    return held.clf.fitted_.posterior


def _table(held: HeldOut) -> Array:
    """(n, D) the rows as numbers and codes."""
    encoded = held.encoded(np.arange(held.n))
    if sparse.issparse(encoded) or np.ndim(encoded) != 2 or encoded.dtype.kind not in "fiub":
        raise ValueError("it is of tables of numbers and categories")
    return np.asarray(encoded, dtype=float)


def _names(held: HeldOut) -> list[str]:
    return [one_line(name, 40) for name in held.clf.fitted_.feature_names]


def _mode(x: Array) -> float:
    values, n = np.unique(x[~np.isnan(x)], return_counts=True)
    return float(values[np.argmax(n)]) if len(values) else 0.0


def _statistics(x: Array, modes: Array) -> Array:
    """(m, D, 2) mean and standard deviation of columns (m, n, D); of one with a mode its share."""
    gaps = np.isnan(x)
    n = np.maximum((~gaps).sum(axis=1), 1)
    mean = np.where(gaps, 0.0, x).sum(axis=1) / n
    sd = np.sqrt((np.where(gaps, 0.0, x - mean[:, None]) ** 2).sum(axis=1) / n)
    nominal = ~np.isnan(modes)
    mean = np.where(nominal, (x == modes).sum(axis=1) / n, mean)
    bits = ((x == 0) | (x == 1) | gaps).all(axis=1)
    return np.stack([mean, np.where(bits | nominal, 0.0, sd)], axis=2)


def dependence(held: HeldOut) -> Section:
    """Edges of a forest; of naive Bayes, correlations within classes that it leaves out."""
    if hasattr(held.clf, "edge_probabilities"):
        return _edges(held)
    family = _generative(held).prior.family
    if not all(block.family.separable for block in family.blocks()):
        raise ValueError("the model has dependences of its own, without probabilities of edges")
    encoded = _table(held)
    columns = np.flatnonzero(~np.isin(held.kinds, _NOMINAL))[:100]
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
    out = Section("dependence", text)
    if rows:
        head = ["column", "and", "correlation"]
        out.tables = [Table("Largest rank correlations within classes", head, rows, 2)]
    caption = "Shades: size of the rank correlation, pooled over classes."
    out.figures = _of_pairs(names, rho, pairs, "Rank correlations within classes", caption)
    told = [{"a": a, "b": b, "correlation": r} for a, b, r in pairs]
    out.data = {"pairs": told, "limit": float(limit)}
    return out


def _of_pairs(
    names: list[str], numbers: Array, pairs: list[tuple[str, str, float]], what: str, caption: str
) -> list[Figure]:
    """A matrix of columns against columns, its diagonal empty; none of two columns, and of many."""
    if not 2 < len(names) <= _SQUARE:
        return []
    texts = [[number(v, 1) for v in line] for line in numbers.tolist()]
    for i in range(len(names)):
        texts[i][i] = ""
    shades = np.nan_to_num(np.abs(numbers))
    np.fill_diagonal(shades, 0)
    told = "; ".join(f"{a} and {b} {r:.2f}" for a, b, r in pairs[:6])
    return [matrix(shades, names, texts, f"{what}: {told}.", caption)]


def _within_classes(X: Array, codes: Array) -> tuple[Array, int]:
    """Rank correlation of each pair of columns within classes, and the number of rows behind it."""
    total, weight = np.zeros((X.shape[1], X.shape[1])), 0
    for c in np.unique(codes):
        x = X[codes == c]
        if len(x) < _FEWEST:
            continue
        ranks = stats.rankdata(x, axis=0, nan_policy="omit")
        ranks = np.nan_to_num(ranks - (1 + np.sum(~np.isnan(x), axis=0)) / 2)  # missing: the middle
        with np.errstate(all="ignore"):
            r = np.corrcoef(ranks, rowvar=False)
        total += len(x) * np.nan_to_num(r)
        weight += len(x)
    if not weight:
        raise ValueError(f"no class has {_FEWEST} rows")
    return total / weight, weight


def _edges(held: HeldOut) -> Section:
    p = held.clf.edge_probabilities()["probability"].values
    names = _names(held)
    upper = np.triu_indices(len(names), 1)
    each = p[:, upper[0], upper[1]]  # (class, pair)
    order = np.argsort(-each.max(axis=0), kind="stable")[:_PAIRS]
    ends = [(names[upper[0][k]], names[upper[1][k]]) for k in order]
    rows = [
        [*pair, *(number(v, 2) for v in each[:8, k].tolist())]
        for pair, k in zip(ends, order, strict=True)
        if each[:, k].max() > 0.05
    ]
    sure = int((each.max(axis=0) > 0.5).sum())
    text = [
        f"{count(sure, 'pair')} of columns of {len(upper[0])} are neighbours with probability "
        "above 0.5 in some class. An edge has no direction and is no causal claim."
    ]
    out = Section("dependence", text)
    if rows:
        head = ["column", "and", *held.labels[:8]]
        out.tables = [Table("Probability that two columns are neighbours, by class", head, rows, 2)]
    largest = [(*pair, float(each[:, k].max())) for pair, k in zip(ends, order, strict=True)]
    what = "Edge probabilities, the largest over classes"
    caption = "Shades: probability of an edge, the largest over the classes."
    out.figures = _of_pairs(names, p.max(axis=0), largest, what, caption)
    by_class = [dict(zip(held.labels, each[:, k].tolist(), strict=True)) for k in order]
    out.data = {
        "edges": [
            {"a": a, "b": b, "probability": q} for (a, b), q in zip(ends, by_class, strict=True)
        ]
    }
    return out


def typicality(held: HeldOut) -> Section:
    """Whether the rows are like the training rows."""
    if not held.is_pool:
        _generative(held)
    found = held.clf.typicality(held.seen, held.training)
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
        [held.name(int(i)), held.labels[held.codes[i]], held.labels[int(by_class[i].argmax())],
         number(float(tail[i]), 4), number(float(by_class[i].max()), 4)]
        for i in order
    ]  # fmt: skip
    out = Section("typicality", text)
    out.tables = [
        Table(
            "The least typical rows: share of training rows at most as probable",
            ["row", "label" if held.labelled else "most probable", "nearest class", "overall",
             "within that class"], rows, 3,
        )
    ]  # fmt: skip
    each = np.histogram(tail, np.linspace(0, 1, _BINS + 1))[0] / len(tail)
    told = ", ".join(f"{share_of:.2f}" for share_of in each)
    xlabel = "share of training rows at most as probable"
    out.figures = [
        Figure(
            partial(drawing.shares, values=each, xlabel=xlabel),
            2.7,
            f"Typicality of the rows: shares of rows in {_BINS} equal bins {told}.",
            "Level with the line if the rows are drawn as the training rows were; a peak at the "
            "left: rows unlike any seen."
            + (" Of a pool the right may stand higher." if held.is_pool else ""),
        )
    ]
    if held.n < _FEWEST:
        out.figures = []
    out.data = {
        "below_0.01": len(strange),
        "expected": expected,
        "quantiles": np.quantile(tail, [0, 0.01, 0.05, 0.25, 0.5, 0.75, 1]),
    }
    return out


_DOUBTED, _SEEN = 10, 0.01  # training labels in a table, of at least this probability


def labels(held: HeldOut) -> Section:
    """Training labels that may be wrong."""
    given = (held.X, held.y) if held.is_training else held.training
    if given is None:
        raise ValueError("give training=(X, y), the rows of the fit")
    found = label_errors(held.clf, *given, form="one flip" if held.is_pool else "auto")
    wrong = found["wrong"].values
    worst = found.isel(obs_id=np.argsort(-wrong, kind="stable")[:_DOUBTED])
    low, high = found["noise_rate_interval"].values
    worst = worst.isel(obs_id=worst["wrong"].values >= _SEEN)
    rows = [one_line(row, 20) for row in worst["obs_id"].values.tolist()]
    told = (held.label_names(worst[name].values) for name in ("label", "other"))
    said = [number(p, 2) for p in worst["wrong"].values]
    lines = [list(line) for line in zip(rows, *told, said, strict=True)]
    text = (
        f"Of {count(len(wrong), 'training label')} {share(float(wrong.mean()))} are expected to be "
        f"wrong; the rate of errors is between {share(low)} and {share(high)}."
    )
    notes = [] if lines else [f"None of them is wrong with a probability of {_SEEN:g} or more."]
    if (exponent := float(found["exponent"])) < 0.5:
        notes += [
            f"This classifier is too sure (exponent {number(exponent, 2)} of its leave-one-out "
            "probabilities): some of these may be its own errors."
        ]
    head = ["row", "label", "rather", "probability that it is wrong"]
    return Section("labels",
        [text],
        [Table("The training rows to look at first", head, lines, 3)] if lines else [],
        notes=notes,
        data={"rate": float(found["noise_rate"]), "interval": [low, high], "exponent": exponent,
              "expected": float(wrong.sum()), "form": found.attrs["form"]},
    )  # fmt: skip
