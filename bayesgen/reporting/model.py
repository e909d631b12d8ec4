"""What was fitted: columns, priors and their influence, pool, leave-one-out, sampling."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse, stats

from bayesgen.checks.compare_models import compare_models
from bayesgen.checks.priors import prior_sensitivity
from bayesgen.checks.validate import Validation
from bayesgen.encoding.literals import listed, one_line
from bayesgen.estimators.pool import MemberRows, chosen, seen_by_members
from bayesgen.explain.feature_relevance import feature_relevance
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.reporting import figures
from bayesgen.reporting.held_out import HeldOut
from bayesgen.reporting.parts import Section, Table, count, number, share, signed

_MOST_WORK = 300_000  # training rows x classes for which other models are fitted
_INFLUENCE_ROWS = 2_000
_SENSITIVE_ROWS = 200
_SHOWN = 60  # columns in a table
_FEATURES = 20  # of a picture
_DEGREES = (0.5, 2.0)  # how much the prior is weakened and strengthened


def fitted(held: HeldOut) -> Section:
    """Columns and kinds, class counts, missing cells, priors in units."""
    found = held.clf.summary()
    out = Section("fitted", "What was fitted")
    told = [s for s in found.sentences if not s.startswith("Warning")]
    out.text = [" ".join([f"{found.title}.", *told])]
    out.notes = [s for s in found.sentences if s.startswith("Warning")]
    table = found.table
    if held.is_pool:
        out.text = [f"{found.title}.", f"Members: {', '.join(held.clf.members_)}."]
        out.data = {"sentences": found.sentences}
        return out
    frame = found.to_dataframe()
    if len(frame):
        shown = frame.iloc[:_SHOWN]
        head = ["column", "kind", "prior", "90 % of cells under it", "missing"]
        lost = ["" if n != n or not n else f"{n:g}" for n in shown["missing"]]
        rows = [
            list(line)
            for line in zip(
                [one_line(name, 40) for name in shown.index],
                shown["kind"],
                shown["prior"],
                shown["prior_range"],
                lost,
                strict=True,
            )
        ]
        used = [0, *(j for j in range(1, 5) if any(row[j] for row in rows))]
        rows = [[row[j] for j in used] for row in rows]
        more = "" if len(frame) <= _SHOWN else f"; {len(frame) - _SHOWN} more"
        out.tables.append(
            Table(
                f"Columns, and priors in their units{more}",
                [head[j] for j in used],
                rows,
                len(used) - (4 in used),
            )
        )
    out.data = {
        "columns": frame.head(1000).to_dict("index"),
        "rows": table["rows"].values if "rows" in table else None,
        "attributes": dict(table.attrs),
    }
    return out


def influence(held: HeldOut) -> Section:
    """What changes under priors half and twice as strong."""
    clf = held.clf
    if held.is_pool or getattr(clf, "inference_", "") != "closed form":
        raise ValueError("the prior is changed without a new fit only where there is a closed form")
    at = held.some(_INFLUENCE_ROWS)
    encoded, codes = clf.fitted_.encoded(held.rows(at)), held.codes[at]
    base = _log_p(clf, clf.model_, encoded)
    rows, data = [], {}
    for degree in _DEGREES:
        try:
            with np.errstate(all="ignore"):
                found = _log_p(clf, _posterior_with(clf, degree), encoded)
        except (ValueError, NotImplementedError, ArithmeticError, np.linalg.LinAlgError):
            continue
        if not np.isfinite(found).any(axis=1).all():
            continue
        own = np.arange(len(codes)), codes
        change = float((base[own] - found[own]).mean())
        moved = np.abs(np.exp(found) - np.exp(base)).max(axis=1)
        flipped = int((found.argmax(axis=1) != base.argmax(axis=1)).sum())
        name = "half as strong" if degree < 1 else "twice as strong"
        rows.append(
            [
                name,
                signed(change, 4),
                number(float(moved.mean()), 4),
                number(float(moved.max()), 3),
                str(flipped),
            ]
        )
        data[name] = {"log_loss_change": change, "mean_change": float(moved.mean()),
                      "largest_change": float(moved.max()), "labels_changed": flipped}  # fmt: skip
    if not rows:
        raise ValueError("this prior can be neither weakened nor strengthened")
    largest = max(d["largest_change"] for d in data.values())
    if largest < 0.05:
        word = "The prior decides next to nothing here"
    elif largest < 0.2:
        word = "The prior matters for some rows"
    else:
        word = "The prior decides some rows: think about it"
    text = (
        f"{word}: no probability moves by more than {number(largest, 3)} where it is "
        "weighted otherwise."
    )
    head = ["prior", "log loss", "mean change", "largest change", "labels changed"]
    caption = (
        f"Class probabilities of {count(len(at), 'row')} under priors worth half and "
        "twice as many rows"
    )
    tables = [Table(caption, head, rows), _by_hyperparameter(held, at[:_SENSITIVE_ROWS], data)]
    return Section("influence", "Does the prior matter?", [text], tables, data=data)


def _by_hyperparameter(held: HeldOut, at: Array, data: dict[str, Any]) -> Table:
    """What each hyper-parameter decides; its numbers are put into `data`."""
    found = prior_sensitivity(held.clf, held.rows(at))
    rows = []
    for name in found["hyperparameter"].values.tolist():
        own = found.sel(hyperparameter=name)
        width = np.ptp(own["range"].values, axis=1)
        mean, widest, moved = float(width.mean()), float(width.max()), int(own["changes"].sum())
        data[name] = {"mean_range": mean, "largest_range": widest, "labels_changed": moved}
        rows.append([name, number(mean, 4), number(widest, 3), str(moved)])
    caption = (
        f"Range of the probability of the class of {count(len(at), 'row')}, with one "
        "hyper-parameter worth half to twice as many rows"
    )
    return Table(
        caption, ["hyper-parameter", "mean range", "largest range", "labels changed"], rows
    )


def _log_p(clf: Any, model: Any, encoded: Any) -> Array:
    joint = replace(clf.fitted_.posterior, model=model).log_joint(encoded, quantity="probability")
    return np.asarray(log_softmax(joint))


def _posterior_with(clf: Any, degree: float) -> Any:
    """The posterior under the prior with its weight in rows multiplied."""
    prior = clf.prior_
    family = prior.family.with_strength(degree)
    return replace(prior, alpha=prior.alpha * degree, family=family).update(clf.stats_)


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
            signed(float(factor[j]), 1),
            f"{signed(float(low[j]), 1)} to {signed(float(high[j]), 1)}",
            number(float(p[j]), 3),
        ]
        for j in order[:_SHOWN]
    ]
    out = Section("relevance", "Which features matter", [text])
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
            figures.bars(
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
    found = held.clf.summary(held.prob)
    names = [str(name) for name in found.table["member"].values]
    value, ends = found.table["exponent"].values, found.table["interval"].values
    order = np.argsort(-value, kind="stable")[:_FEATURES]
    rows = [
        [names[j], number(value[j]), f"{number(ends[j, 0])} to {number(ends[j, 1])}"] for j in order
    ]
    out = Section("pool", "The pool's exponents", list(found.sentences))
    out.tables = [
        Table(
            "Exponents of the members", ["member", "exponent", f"{share(held.prob)} interval"], rows
        )
    ]
    line = 1.0 if len(names) == 1 or held.clf.exponents == "feature" else 1 / len(names)
    out.figures = [
        figures.intervals(
            [names[j] for j in order],
            value[order],
            ends[order],
            line,
            "exponent",
            "Exponents of the pool",
            "An exponent below 1 counts a member's evidence for less than it claims. The line: "
            + ("1." if line == 1 else "equal shares."),
        )
    ]
    out.data = {
        "exponents": dict(zip(names, value.tolist(), strict=True)),
        "sentences": found.sentences,
    }
    return out


def comparison(held: HeldOut) -> Section:
    """Leave-one-out of the training rows: this model beside others of the same columns."""
    if held.training is None:
        raise ValueError("give training=(X, y), the rows of the fit")
    X, y, *weight = held.training
    models, rows = _competitors(held, X, y, *weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its notes say the same
        found = compare_models(models, rows, y, *weight)
    table = found.table
    names = [str(name) for name in table["model"].values]
    head = ["model", "elpd", "below the best", "± 2 se", "log loss", "accuracy", "stacking"]
    lines = [
        [
            name,
            number(float(table["elpd"][i]), 1),
            number(-float(table["elpd_diff"][i]), 1),
            number(2 * float(table["dse"][i]), 1),
            number(float(table["log_loss"][i])),
            share(float(table["accuracy"][i])),
            number(float(table["stacking"][i]), 2),
        ]
        for i, name in enumerate(names)
    ]
    n = count(table.attrs["rows"], "training label")
    text = [
        f"Each of {n} scored without its row, by exact leave-one-out; elpd is the sum of log "
        "probabilities."
    ]
    mine = None if held.is_pool else names.index(_THIS)
    if mine is not None and len(names) > 1:
        gap, se = -float(table["elpd_diff"][mine]), float(table["dse"][mine])
        best = names[0]
        if mine == 0:
            text.append("None of the others predicts the labels better than this model.")
        elif gap <= 2 * se:
            text.append(
                f"The model {best!r} may be better: by {number(gap, 1)} nats, within two "
                "standard errors."
            )
        else:
            text.append(
                f"The model {best!r} predicts the labels better, by {number(gap, 1)} nats "
                f"(standard error {number(se, 1)})."
            )
    out = Section(
        "models", "Other models of the same rows", text, notes=[f"{t}." for t in found.notes]
    )
    if len(names) == 1:
        out.notes.append(
            "No other model was fitted: more than "
            f"{_MOST_WORK // len(held.labels)} training rows, or columns that they do not read."
        )
    out.tables = [Table("Models by leave-one-out, the best first", head, lines)]
    if len(names) > 1:
        below, error = table["elpd_diff"].values, np.nan_to_num(table["dse"].values)
        out.figures = [
            figures.intervals(
                names, below, np.stack([below - 2 * error, below + 2 * error], axis=1), 0.0,
                "elpd, less that of the best (nats)", "Leave-one-out score less that of the best",
                "Bars: two standard errors of the paired difference.",
            )
        ]  # fmt: skip
    out.data = {
        str(k): dict(zip(names, table[k].values.tolist(), strict=True)) for k in table.data_vars
    }
    return out


_THIS = "this model"


def _competitors(
    held: HeldOut, X: Any, y: Array, *weight: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """{name: fitted classifier} and {name: its rows}."""
    if held.is_pool:
        own = list(seen_by_members(held.clf, X))
        return {name: clf for name, clf, _ in own}, {name: seen for name, _, seen in own}
    models, rows = {_THIS: held.clf}, {_THIS: X}
    if len(y) * len(held.labels) > _MOST_WORK:
        return models, rows
    try:
        seen = MemberRows(X)
        others, _ = chosen(seen, len(held.labels), separable=False)
    except (TypeError, ValueError):  # a table of one kind that no other member reads
        return models, rows
    kinds = {type(held.clf).__name__}
    for member in others:
        if member.view is None and type(member.clf).__name__ in kinds and len(others) > 1:
            continue  # it is this model, or nearly
        try:
            fit = member.fit(seen, y, *(weight or [None]))
        except (TypeError, ValueError, NotImplementedError):
            continue
        models[member.name], rows[member.name] = fit.clf, seen.seen(fit)
    return models, rows


def sampling(held: HeldOut, validation: Validation | None = None) -> Section:
    """Whether the sampler can be trusted, or agrees with the closed form."""
    out = Section("sampling", "Sampling")
    if validation is not None:
        out.text = [
            f"Closed form against NUTS: {validation.verdict}. The largest |z| of "
            f"{validation.checks.attrs['comparisons']} comparisons is "
            f"{number(validation.largest_z, 2)}; "
            f"beyond {number(validation.threshold, 2)} with probability {validation.false_alarm:g} "
            "if both are right.",
            *validation.reasons,
        ]
        frame = validation.summary()
        digits = {"numbers": 0, "ESS": 0, "R-hat": 3}
        lines = [
            [str(name), *(number(float(v), digits.get(k, 2)) for k, v in line.items())]
            for name, line in frame.iterrows()
        ]
        out.tables = [Table("What was compared", ["variable", *map(str, frame.columns)], lines)]
        out.notes = [f"Not compared: {what}." for what in validation.not_compared]
        out.data = {"verdict": validation.verdict, "variables": frame.to_dict("index")}
        return out
    route = getattr(held.clf, "inference_", "closed form")
    if route == "closed form":
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
    out.text = [
        f"{found.n_chains} chains by {route.upper() if route == 'nuts' else 'Gibbs'}: largest "
        "R-hat "
        f"{number(found.r_hat, 3)} ({found.r_hat_of or 'none'}), fewest effective draws "
        f"{found.ess:.0f} "
        f"({found.ess_of}), {count(found.divergences, 'divergence')}.",
        *([f"{c[0].upper()}{c[1:]}." for c in complaints] or ["The chains agree."]),
    ]
    out.data = {
        "route": route,
        "r_hat": found.r_hat,
        "ess": found.ess,
        "divergences": found.divergences,
    }
    return out


# ------------------------------------------------------------------------------------------------
# Whether the rows look as the model has them: replicates, dependence, typicality.

_REPLICATES = 200
_ROWS = 1_000  # of each class at most this many are replicated
_CELLS = 20_000_000  # of all replicates together
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
