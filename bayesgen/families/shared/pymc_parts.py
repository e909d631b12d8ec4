"""Parts that the families' PyMC models share: data containers, dims, cells that are observed.

pymc is imported inside the functions: nothing here costs a user who does not sample.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from bayesgen.families.names import (
    CATEGORY,
    CLASS,
    FEATURE,
    FEATURE_CATEGORY,
    OBS,
    Label,
    Tensor,
)
from bayesgen.numerics.rows import Matrix, has_nan
from bayesgen.numerics.special import Array

# ------------------------------------------------------------------------------------------------
# Features with categories of their own: one dim for the cells that exist.
#
# NumPy arrays of such parameters are padded, (..., feature, category) with zeros up to the largest
# number of categories. In a PyMC model and in a DataTree they have one dim ``feature_category`` in
# place of the two, which lists feature by feature the categories that exist: a summary has no rows
# for others, and each row has the name of its category. Features that share their categories keep
# the two dims.


class Cells(tuple[str, ...]):
    """Labels "feature, category" of the cells, as coordinates of ``feature_category``.

    Parameters
    ----------
    features : sequence (D,)
    categories : for each feature a sequence (K_j,)

    Attributes
    ----------
    feature, category : array (F,)
        The labels of each cell on their own.
    row, column : int array (F,)
        Where it stands in the two dims.

    Examples
    --------
    >>> cells = Cells(["size", "hue"], [["S", "M", "L"], ["red", "blue"]])
    >>> list(cells)
    ['size, S', 'size, M', 'size, L', 'hue, red', 'hue, blue']
    """

    feature: Array
    category: Array
    row: Array
    column: Array

    def __new__(cls, features: Sequence[Label], categories: Sequence[Sequence[Label]]) -> "Cells":
        """Create the labels of all features in their order."""
        pairs = list(zip(features, categories, strict=True))
        cells = super().__new__(cls, (f"{f}, {k}" for f, names in pairs for k in names))
        cells.feature = _labels([f for f, names in pairs for _ in names])
        cells.category = _labels([k for _, names in pairs for k in names])
        number = [len(names) for names in categories]
        cells.row = np.repeat(np.arange(len(number)), number)
        cells.column = np.concatenate([np.arange(n) for n in number])
        return cells

    @classmethod
    def numbered(cls, real: Array, features: Sequence[Label] | None = None) -> "Cells":
        """Label the true cells of (D, K), with numbers for what has no names."""
        number = np.asarray(real).sum(axis=-1).tolist()
        return cls(range(len(number)) if features is None else features, [range(n) for n in number])


def _labels(values: list[Label]) -> Array:
    """Convert labels to one type, as a file can hold it."""
    labels = np.asarray(values)
    return labels.astype(str) if labels.dtype.kind == "O" else labels


def category_coords(
    features: Sequence[Label], categories: Sequence[Sequence[Label]], prefix: str = ""
) -> dict[str, Any]:
    """{dim: labels} of the categories: one list of names if all features share it, else `Cells`."""
    first = list(categories[0]) if categories else []
    if first and all(list(names) == first for names in categories):
        return {f"{prefix}{CATEGORY}": first}
    codes = list(range(max(map(len, categories), default=0)))
    cells = Cells(features, categories)
    return {f"{prefix}{CATEGORY}": codes, f"{prefix}{FEATURE_CATEGORY}": cells}


def cells_dim(dims: Sequence[str]) -> str | None:
    """Return the dim that may stand for the last two of a parameter, or None."""
    prefix = dims[-1].removesuffix(CATEGORY) if dims else ""
    if len(dims) < 2 or tuple(dims[-2:]) != (f"{prefix}{FEATURE}", f"{prefix}{CATEGORY}"):
        return None
    return f"{prefix}{FEATURE_CATEGORY}"


def cells_of(dims: Sequence[str], coords: Mapping[str, Sequence[Label]]) -> Cells | None:
    """Return the cells that stand for the last two dims under these coordinates, if they do."""
    cells = coords.get(cells_dim(dims) or "")
    return cells if isinstance(cells, Cells) else None


def by_cell(
    dims: tuple[str, ...], value: Array, coords: Mapping[str, Sequence[Label]]
) -> tuple[tuple[str, ...], Array]:
    """Dims and values as a tree has them, of a padded array (..., D, K); others as they are."""
    cells = cells_of(dims, coords)
    if cells is None:
        return dims, value
    return (*dims[:-2], str(cells_dim(dims))), np.asarray(value)[..., cells.row, cells.column]


def padded(value: Array, cells: Cells) -> Array:
    """Return (..., D, K) with zeros where there is no cell, of (..., F)."""
    shape = (int(cells.row[-1]) + 1, int(cells.column.max()) + 1)
    table = np.zeros((*np.shape(value)[:-1], *shape))
    table[..., cells.row, cells.column] = value
    return table


def prefixed(prefix: str, dims: tuple[str, ...]) -> tuple[str, ...]:
    """Return the dims of a block: every dim but ``class`` carries the prefix."""
    return tuple(d if d == CLASS else f"{prefix}{d}" for d in dims)


def declare(record, role: str, prefix: str) -> dict[str, Tensor]:
    """{field: pm.Data} of a record's arrays, as ``{role}_{prefix}{field}``.

    Hyper-parameters and statistics are data of the model, under the names that they have in the
    ``fit`` group: a compiled model of the same shape serves the next data set.
    """
    return {
        name: container(f"{role}_{prefix}{name}", value.astype(np.float64), prefixed(prefix, dims))
        for name, (dims, value) in record.arrays().items()
        if value.dtype.kind in "fiub"
    }


def container(name: str, value: Array, dims: tuple[str, ...]):
    """``pm.Data`` with dims; an axis of length 1 that stands for all has ``{dim}_all``."""
    import pymc as pm

    labels = pm.modelcontext(None).coords
    axis_dims = tuple(
        f"{d}_all" if n == 1 and len(labels.get(d) or range(2)) > 1 else d
        for d, n in zip(dims, value.shape, strict=False)
    )
    return pm.Data(name, value, dims=axis_dims if value.ndim == len(dims) else None)


Declared = Callable[
    [str, tuple[str, ...]], Tensor
]  # a function of (name, dims) declares a variable


def parameter(family, prefix: str, name: str, default: Declared):
    """`variable` of a parameter that the family has a prior object for."""
    dims = family.params[name]
    return variable(f"{prefix}{name}", getattr(family, name), prefixed(prefix, dims), default)


def variable(name: str, given, dims: tuple[str, ...], default: Declared):
    """Return the free variable `name` of the model on the stack: the user's prior, or the default.

    Parameters
    ----------
    given : prior object or None
        Of PyMC (``pm.Gamma.dist(2, 0.1)``), PreliZ (``pz.Gamma(2, 0.1)``), pymc-extras
        (``Prior("Gamma", alpha=2, beta=0.1)``), or a function of (name, dims) that declares the
        variable. Its own shape, if it has one, must broadcast to `dims`.
    default : function of (name, dims)
    """
    if given is None:
        return default(name, dims)
    import pymc as pm

    if hasattr(given, "create_variable"):  # pymc-extras
        prior = given
        if not getattr(given, "dims", None) and hasattr(given, "deepcopy"):
            prior = given.deepcopy()
            prior.dims = dims
        return prior.create_variable(name)
    if hasattr(given, "to_pymc"):  # PreliZ
        return given.to_pymc(name, dims=dims)
    if hasattr(given, "owner"):  # a PyMC distribution without a name
        from pymc.distributions.shape_utils import change_dist_size

        model = pm.modelcontext(None)
        shape = tuple(model.dim_lengths[d] for d in dims)
        return model.register_rv(change_dist_size(given, shape), name, dims=dims)
    if callable(given):
        return given(name, dims)
    raise TypeError(
        f"the prior of {name!r} must be a distribution of PyMC (pm.Normal.dist(0, 1)), PreliZ or "
        f"pymc-extras, or a function of (name, dims) that declares one; got {given!r}"
    )


def scale_above_rounding(family, prefix: str, scale, resolution):
    """Standard deviations: of the prior given, or log-Normal about `scale`, and above rounding.

    By default sigma^2 = r^2 + h^2/12, log r ~ Normal(log scale, 1), with the free variable
    ``{name}_raw`` for r and h the `resolution` in which values are recorded: n values that are
    equal by rounding would draw sigma to 0, as their likelihood grows as sigma^-n. A prior that is
    given is taken as it is.
    """
    import pymc as pm
    import pytensor.tensor as pt

    def default(name: str, dims: tuple[str, ...]):
        raw = pm.LogNormal(f"{name}_raw", pt.log(scale), 1.0, dims=dims)
        return pm.Deterministic(name, pt.sqrt(pt.sqr(raw) + pt.sqr(resolution) / 12), dims=dims)

    return parameter(family, prefix, "sigma", default)


def centred_normal(name: str, mean, sd, unit, dims: tuple[str, ...]):
    """Return a Normal location, sampled as its distance from the prior mean in `unit`.

    NUTS starts within 1 of the centre, which must not be far away whatever the unit of a column.
    The unit is an input of the variable: data that a transform holds by itself is left behind where
    a model is cloned (`pm.do`, `pm.observe`).
    """
    import pymc as pm
    import pytensor.tensor as pt
    from pymc.logprob.transforms import Transform

    class Centred(Transform):
        name = "centred"
        ndim_supp = 0

        def forward(self, value, *inputs):
            _, mean, _, unit, _ = inputs
            return (value - mean) / unit

        def backward(self, value, *inputs):
            _, mean, _, unit, _ = inputs
            return mean + unit * value

        def log_jac_det(self, value, *inputs):
            return pt.log(inputs[3]) + pt.zeros_like(value)

    return pm.CustomDist(
        name,
        mean,
        sd,
        unit,
        dist=lambda mean, sd, unit, size: pm.Normal.dist(mean, sd, size=given_size(size)),
        logp=lambda value, mean, sd, unit: pm.logp(pm.Normal.dist(mean, sd), value),
        class_name="Normal",
        transform=Centred(),
        dims=dims,
    )


def given_size(size):
    """Return the size that PyMC hands to a custom distribution; None for none."""
    from pymc.distributions.shape_utils import rv_size_is_none

    return None if rv_size_is_none(size) else size


def declare_location(family, prefix: str, m, s):
    """Locations ``mu`` with the prior given, or Normal about `m` with variance 10 s^2.

    By default the free variable is ``mu_raw``, the distance from `m` in units of `s`.
    """
    import pymc as pm

    def default(name: str, dims: tuple[str, ...]):
        raw = pm.Normal(f"{name}_raw", 0.0, np.sqrt(10.0), dims=dims)
        return pm.Deterministic(name, m + s * raw, dims=dims)

    return parameter(family, prefix, "mu", default)


# ----------------------------------------------------------------------------- rows, observed


def cells_data(prefix: str, X: Matrix, *, whole: bool = False):
    """Data container ``{prefix}cells`` (obs_id, feature) of rows, 0 where a cell is missing.

    Parameters
    ----------
    whole : bool
        Cells are counts or codes: whole numbers.
    """
    import pymc as pm

    values = np.asarray(X.todense()) if sparse.issparse(X) else np.asarray(X)
    if has_nan(values):
        values = np.where(np.isnan(values), 0.0, values)
    kind = np.int64 if whole else np.float64
    return pm.Data(f"{prefix}cells", values.astype(kind), dims=(OBS, f"{prefix}{FEATURE}"))


def seen_data(prefix: str, X: Matrix):
    """Data container ``{prefix}seen`` (obs_id, feature): 0 where a cell is missing, else 1."""
    import pymc as pm

    seen = np.ones(X.shape)
    if has_nan(X):
        seen -= np.isnan(X.toarray() if sparse.issparse(X) else np.asarray(X))
    return pm.Data(f"{prefix}seen", seen, dims=(OBS, f"{prefix}{FEATURE}"))


def observe_cells(
    prefix: str,
    X: Matrix,
    distribution: Callable[..., Tensor],
    *params,
    signature: str | None = None,
    counted=None,
    log_density: Callable[..., Tensor] | None = None,
):
    """Observe ``{prefix}x`` (obs_id, feature), cell by cell given theta.

    A cell that is not ``{prefix}seen`` has the log density 0, whatever its value, and is drawn like
    any other.

    Parameters
    ----------
    distribution : tensors to an unnamed PyMC distribution of cells, ``pm.Normal.dist``
    *params : what it takes, of shapes that broadcast to (N, D)
    signature : str
        Of `params`, where they have axes of their own, ``"(k)->()"``.
    counted : (D,) bool, optional
        False: the column is no part of the likelihood.
    log_density : (values, *params) to tensor, optional
        Of a distribution that is a function of others; None: PyMC's own.
    """
    import pymc as pm
    import pytensor.tensor as pt

    drawn = distribution(*params)
    whole = not drawn.dtype.startswith("float")
    seen = seen_data(prefix, X)
    if counted is not None and not np.all(counted):
        seen = seen * np.asarray(counted, dtype=np.float64)

    def log_p(value, seen, *own):
        inside = value * seen.astype(value.dtype)  # a fill-in need not be in the support
        if log_density is not None:
            return pt.switch(seen, log_density(inside, *own), 0.0)
        return pt.switch(seen, pm.logp(distribution(*own), inside), 0.0)

    return pm.CustomDist(
        f"{prefix}x",
        seen,
        *params,
        dist=lambda seen, *own: distribution(*own[:-1], size=given_size(own[-1])),
        logp=log_p,
        signature=None if signature is None else f"(),{signature}",
        class_name="Cells" if log_density else drawn.owner.op._print_name[0],
        observed=cells_data(prefix, X, whole=whole),
        dims=(OBS, f"{prefix}{FEATURE}"),
    )


def observe_rows(
    prefix: str,
    X: Matrix,
    y,
    name: str,
    draw: Callable[..., Tensor],
    log_likelihood: Callable[..., Tensor],
    signature: str,
    *params,
):
    """Observe ``{prefix}x`` (obs_id, feature), row by row given theta.

    Parameters
    ----------
    name : str
        Of the distribution.
    draw : (y, *params, size) to an unnamed PyMC distribution of rows
    log_likelihood : (rows, seen, *params) to (N, C), of the cells that are ``{prefix}seen``
    signature : str
        Of `params`, those of all classes: ``"(c,d),(c,d,d)->(d)"``.
    """
    import pymc as pm
    import pytensor.tensor as pt

    def log_p(value, seen, y, *own):
        return log_likelihood(value, seen, *own)[pt.arange(y.shape[0]), y]

    return pm.CustomDist(
        f"{prefix}x",
        seen_data(prefix, X),
        y,
        *params,
        dist=lambda seen, *own: draw(*own[:-1], given_size(own[-1])),
        logp=log_p,
        signature=f"(d),(),{signature}",
        class_name=name,
        observed=cells_data(prefix, X),
        dims=(OBS, f"{prefix}{FEATURE}"),
    )


def log_likelihood_of_cells(prefix: str, X: Matrix, distribution: Tensor, counted: Any = True):
    """Return (N, C) tensor: sums over the observed cells of rows, the data ``{prefix}rows``.

    Parameters
    ----------
    distribution : unnamed PyMC distribution of the cells of each class (C, D)
    counted : as in `observe_cells`
    """
    import pymc as pm
    import pytensor.tensor as pt

    seen = ~np.isnan(X) & counted
    x = pm.Data(f"{prefix}rows", np.where(seen, X, 0.0))[:, None, :]
    mask = pm.Data(f"{prefix}seen", seen.astype(np.float64))[:, None, :]
    inside = pt.switch(mask, x, 1.0)  # a fill-in need not be in the support
    return (mask * pm.logp(distribution, inside)).sum(axis=-1)


def sum_cells(name: str, cells: sparse.csr_matrix, table):
    """Return (N, C) tensor ``cells @ table``: sums over the cells of each row.

    Parameters
    ----------
    name : str
        Of the data containers that hold the cells, one row after another, and where each row ends:
        they say how many rows there are.
    cells : (N, R)
    table : tensor (R, C)
    """
    import pymc as pm
    import pytensor.tensor as pt

    end = pm.Data(f"{name}_end", cells.indptr[1:].astype(np.int64))
    place = pm.Data(f"{name}_at", cells.indices.astype(np.int64))
    count = pm.Data(f"{name}_count", cells.data.astype(np.float64))
    row = pt.searchsorted(end, pt.ones_like(place).cumsum())
    zeros = pt.zeros((end.shape[0], table.shape[1]))
    return zeros[row].inc(count[:, None] * table[place])


def sum_codes(name: str, X: Matrix, real: Array, theta):
    """Add up log probabilities of category codes over the observed cells: (N, C) tensor.

    Parameters
    ----------
    name : str
        As in `sum_cells`.
    X : (N, D) codes; NaN is a missing cell
    real : (D, K) bool
        False is padding, whose probability 0 has no logarithm.
    theta : tensor (C, D, K)
    """
    import pytensor.tensor as pt

    codes = np.asarray(X, dtype=np.float64)
    row, j = np.nonzero(~np.isnan(codes))
    code = codes[row, j].astype(np.int64)
    place = np.cumsum(real.ravel()).reshape(real.shape) - 1
    cells = sparse.csr_matrix(
        (np.ones(len(row)), (row, place[j, code])), shape=(len(codes), int(real.sum()))
    )
    return sum_cells(name, cells, pt.log(theta[(slice(None), *np.nonzero(real))]).T)


def dirichlet(name: str, alpha: Array, a, dims: tuple[str, ...]):
    """Variable `name`: probabilities over the last axis, with Dirichlet priors.

    Parameters
    ----------
    alpha : (C, ..., K) concentrations; zeros at the end of the last axis are padding
        Only the shape and the place of the padding are taken from here.
    a : their tensor

    Returns
    -------
    tensor (C, ..., K), 0 in the padding
        The Dirichlet of one category is a constant, no random variable. The variable itself has
        dims (class, feature_category) where features have categories of their own (`listed`).
    """
    import pymc as pm
    import pytensor.tensor as pt

    real = alpha > 0
    cell_dim = listed(dims, real[0])
    if not real[..., 1:].any():
        return declare_probabilities(name, pt.as_tensor(real.astype(np.float64)), real[0], dims)
    if cell_dim is None:
        return pm.Dirichlet(name, a, dims=dims)
    cells = _CellProbabilities(real[0])
    return cells.padded(
        pm.CustomDist(
            name,
            cells.flat(a),
            dist=cells.draw,
            logp=cells.log_p,
            signature="(k)->(k)",
            class_name="CellsDirichlet",
            transform=cells.transform(),
            dims=(*dims[:-2], cell_dim),
        )
    )


def listed(dims: tuple[str, ...], real: Array) -> str | None:
    """Return the dim of the cells that stands for (feature, category) in the model on the stack.

    None: features share their categories, and the two dims stay. Without labels in the model
    features differ where there is padding (False in `real`), and cells are numbered.
    """
    import pymc as pm

    cell_dim, model = cells_dim(dims), pm.modelcontext(None)
    if cell_dim is None or (cell_dim not in model.coords and real.all()):
        return None
    if cell_dim not in model.coords:
        model.add_coords({cell_dim: Cells.numbered(real, model.coords.get(dims[-2]))})
    return cell_dim


def declare_probabilities(name: str, p, real: Array, dims: tuple[str, ...]):
    """Deterministic `name` of padded probabilities (..., D, K); by cell where they are `listed`."""
    import pymc as pm

    cell_dim = listed(dims, real)
    if cell_dim is None:
        return pm.Deterministic(name, p, dims=dims)
    pm.Deterministic(name, p[(..., *np.nonzero(real))], dims=(*dims[:-2], cell_dim))
    return p


class _CellProbabilities:
    """A Dirichlet for each feature, over the cells that exist in one axis (..., F).

    Parameters
    ----------
    real : (D, K) bool
        False is padding, at the end of a row.
    """

    def __init__(self, real: Array) -> None:
        self.real, self.cells = real, np.nonzero(real)
        # where each cell of the table finds its value; padding, at a zero behind the last one
        self.source = np.full(real.shape, len(self.cells[0]))
        self.source[self.cells] = np.arange(len(self.cells[0]))

    def flat(self, table):
        """Return (..., F) of (..., D, K)."""
        return table[(..., *self.cells)]

    def padded(self, values):
        """Return (..., D, K) of (..., F), 0 in the padding."""
        import pytensor.tensor as pt

        zero = pt.zeros_like(values[..., :1])
        return pt.concatenate([values, zero], axis=-1)[..., self.source]

    def draw(self, a, size):
        """Gamma variates over the sum of each feature."""
        import pymc as pm
        import pytensor.tensor as pt

        if (size := given_size(size)) is not None:
            a = pt.broadcast_to(a, (*size, a.shape[-1]))
        gamma = self.padded(pm.Gamma.dist(a, 1.0))
        return self.flat(gamma / gamma.sum(axis=-1, keepdims=True))

    def log_p(self, value, a):
        """Sum over features of log Dirichlet densities."""
        import pytensor.tensor as pt
        from pymc.distributions.dist_math import logpow

        cells = logpow(value, a - 1) - pt.gammaln(a)
        log_p = cells.sum(axis=-1) + pt.gammaln(self.padded(a).sum(axis=-1)).sum(axis=-1)
        return pt.switch(pt.lt(value, 0).any(axis=-1), -np.inf, log_p)

    def transform(self):
        """Transform of the probabilities to their free coordinates.

        A feature with K_j categories has K_j - 1: the centred logarithms, as in PyMC's simplex
        transform; the last category's is minus their sum. Those of all features of a class stand
        in one axis.
        """
        import pytensor.tensor as pt
        from pymc.logprob.transforms import Transform

        cells, pattern = self, self.real
        number = pattern.sum(axis=-1)
        last = np.arange(pattern.shape[-1]) == number[:, None] - 1
        place = np.flatnonzero((pattern & ~last)[self.cells])  # of the free cells among the cells
        source = np.full(pattern.shape, len(place))
        source[pattern & ~last] = np.arange(len(place))

        class CellsSimplex(Transform):
            name = "ragged"  # one word: PyMC finds theta again in theta_ragged__
            ndim_supp = 1

            def forward(self, value, *inputs):
                log_value = cells.padded(pt.log(value))
                centre = log_value.sum(axis=-1, keepdims=True) / number[:, None]
                return cells.flat(log_value - centre)[..., place]

            def backward(self, value, *inputs):
                zero = pt.zeros((*value.shape[:-1], 1))
                z = pt.concatenate([value, zero], axis=-1)[..., source]
                z = z - last * z.sum(axis=-1, keepdims=True)
                return cells.flat(pt.special.softmax(pt.switch(pattern, z, -np.inf), axis=-1))

            def log_jac_det(self, value, *inputs):
                p = self.backward(value, *inputs)
                return np.log(number).sum() + pt.log(p).sum(axis=-1)

        return CellsSimplex()


# ------------------------------------------------------------- priors that sampled families share


def declare_contrasts(prefix: str, feature_dim: str):
    """Declare ``deviation``: how classes differ in each column, in units of their spread.

    Returns
    -------
    tensor (class, feature)
        Standard Normal contrasts that sum to 0 over the classes.
    """
    import pymc as pm

    return pm.ZeroSumNormal(f"{prefix}deviation", 1.0, dims=(feature_dim, CLASS)).T


def declare_correlation(family, prefix: str):
    """Declare ``correlation`` (..., D, D) with an LKJ prior of shape `family.eta`.

    It is the product of the free variable ``correlation_factor``, lower Cholesky factors, with
    their transposes.
    """
    import pymc as pm
    import pytensor.tensor as pt

    model, name = pm.modelcontext(None), f"{prefix}correlation"
    dims = prefixed(prefix, family.params["correlation"])
    shape = tuple(len(model.coords[d]) for d in dims)
    if shape[-1] == 1:
        return pm.Deterministic(name, pt.ones(shape), dims=dims)
    factor = pm.LKJCorr(f"{name}_factor", n=shape[-1], eta=family.eta, shape=shape, dims=dims)
    return pm.Deterministic(name, factor @ factor.mT, dims=dims)
