"""Rows, labels, weights and hyper-parameters of any type through the estimators."""

import numpy as np

from tests.fuzz.judge import DefectError, ask, check_evidence, check_probabilities, refusal

ODD = (np.nan, np.inf, -np.inf, 0.0, -1.0, 1e-320, 1e300, -1e300, 0.5, 2.0**53)
ESTIMATORS = (
    *("GaussianNB", "LinearDiscriminant", "QuadraticDiscriminant", "BernoulliNB", "MixedNB"),
    *("CategoricalNB", "MultinomialNB", "PoissonNB", "TreeAugmentedNB", "MarkovNB"),
    *("GenerativeClassifier", "LogLinearPool"),
)
TYPES = ["f4", "f2", "g", ">f8", ">i4", "i8", "u1", "i1", "?", "c16", "M8[s]", "m8[s]"]
TYPES += ["O", "U5", "S5"]
CHOICES = {  # of settings that are words
    "variance": ("class", "tied", "spherical", "class_spherical", "wild"),
    "covariance": ("full", "diagonal", "spherical"),
    "structure": ("average", "tree", "map", "fixed"),
    "prior": ("default", "empirical"),
    "weights": ("uniform", "evidence"),
    "unseen": ("prior", "ignore", "raise"),
    "tokens": ("char", "word"),
    "n": (0, 1, 2, 3),
    "order": (0, 1, 3, 2.0),
    "n_bins": (0, 1, 3, 10**6),
}


def words_at_random(rng, n):
    return ["".join(rng.choice([*"ab \x00é"], rng.integers(0, 6))) for _ in range(n)]


def array_at_random(rng, n, d):
    """Rows of any type, container and size."""
    form = rng.integers(8)
    X = rng.normal(size=(n, d)) if form < 2 else rng.integers(0, 4, (n, d)).astype(float)
    if X.size and rng.random() < 0.4:
        X.flat[rng.integers(X.size, size=2)] = ODD[rng.integers(len(ODD))]
    match form:
        case 3:
            return rng.choice(np.array(["a", "b", None], dtype=object), (n, d))
        case 4:
            with np.errstate(all="ignore"):
                return X.astype(rng.choice(TYPES))
        case 5:
            return table_at_random(rng, X)
        case 6:
            return layout_at_random(rng, X)
        case 7 if rng.random() < 0.5:
            return words_at_random(rng, n)
    return X


def table_at_random(rng, X):
    """A table of pandas or Arrow; not of polars, whose threads do not outlive a fork."""
    import pandas as pd

    names = [f"x{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names)
    match rng.integers(8) if X.size else 0:
        case 0:
            return frame.astype("Float64")
        case 1:
            return frame.where(frame.abs() < 100, 0).round().astype("Int64")
        case 2:
            return frame.astype(str).astype("category")
        case 3:
            return frame.set_axis(["x0"] * X.shape[1], axis=1)
        case 4:
            return frame.set_axis(pd.MultiIndex.from_tuples([(k, "u") for k in names]), axis=1)
        case 5:
            return frame.set_axis(pd.MultiIndex.from_tuples([(k, 0) for k in range(len(X))]))
        case 6:
            import pyarrow as pa

            return pa.table({name: X[:, j] for j, name in enumerate(names)})
    mixed = frame.assign(w=rng.choice(["u", "v"], len(X)), t=rng.random(len(X)) < 0.5)
    return mixed.assign(when=pd.Timestamp("2024-02-29")) if rng.random() < 0.2 else mixed


def layout_at_random(rng, X):
    """The same rows in another layout of memory, masked, structured or sparse."""
    from scipy import sparse

    read_only = X.copy()
    read_only.flags.writeable = False
    fields = np.rec.fromarrays(X.T, names=[f"f{j}" for j in range(X.shape[1])]) if X.size else X
    formats = ("csr", "csc", None, "lil", "dok", "bsr", "dia")
    layouts = (
        *(read_only, fields, np.asfortranarray(X), np.ma.masked_invalid(X), X[::-1, ::-1]),
        *(np.repeat(X, 2, axis=1)[:, ::2], X.tolist(), [*X], X.ravel(), X[None]),
        *([] if not X.size else [sparse.coo_array(X).asformat(rng.choice(formats))] * 4),
        *([] if not X.size else [sparse.csr_matrix(X)] * 2),
    )
    return layouts[rng.integers(len(layouts))]


def labels_at_random(rng, n):
    """Labels of any type."""
    y = rng.choice([0, 1, 2], n) if rng.random() < 0.6 else rng.choice(["a", "b"], n)
    if rng.random() < 0.1:
        return rng.choice(np.array([None, np.nan, 1, "a", True], dtype=object), n)
    if rng.random() < 0.3:
        import pandas as pd

        forms = (list, pd.Series, pd.Categorical, lambda v: v.astype(object), lambda v: v[:, None])
        forms += (lambda v: v == v[:1], lambda v: v.astype("S2"), np.asfortranarray)
        return forms[rng.integers(len(forms))](y)
    return y


def python(rng, folder):
    """Rows, labels, weights and hyper-parameters at random through the estimators."""
    import bayesgen as bg

    n, d = int(rng.choice([0, 1, 2, 5, 20])), int(rng.choice([0, 1, 2, 5]))
    y = labels_at_random(rng, n)
    weight = None if rng.random() < 0.6 else rng.choice([0, 1, 0.5, 1e15, *ODD], n)
    clf = getattr(bg, str(rng.choice(ESTIMATORS)))()
    settings = clf.get_params(deep=False)
    numbers = [k for k, v in settings.items() if isinstance(v, float)]
    if numbers and rng.random() < 0.2:
        clf.set_params(**{str(rng.choice(numbers)): ODD[rng.integers(len(ODD))]})
    words = [k for k in settings if k in CHOICES]
    if words and rng.random() < 0.3:
        name = str(rng.choice(words))
        clf.set_params(**{name: CHOICES[name][rng.integers(len(CHOICES[name]))]})
    X = array_at_random(rng, n, d)
    before = repr(X)
    with refusal():
        clf.fit(X, y, **({} if weight is None else {"sample_weight": weight}))
    with refusal():
        p = clf.predict_proba(X)
    check_probabilities(p, len(clf.classes_))
    check_evidence(clf)
    if repr(X) != before:
        raise DefectError("the rows were changed")
    ask(clf, X, y, rng, folder)
    with refusal():
        clf.save(folder / "m.nc")
    if not np.array_equal(bg.load(folder / "m.nc").predict_proba(X), p):
        raise DefectError("another model is loaded than was saved")
    return "predicted"
