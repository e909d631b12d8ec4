"""Tables with names, categories and columns of several kinds: CategoricalNB, MixedNB."""

from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils import Tags

from bayesgen.encoding.reader import Align, Reader, Rows
from bayesgen.encoding.schema import TableSchema
from bayesgen.encoding.tables import Table, refuse_elsewhere, refuse_other_order
from bayesgen.errors import refuse_unknown
from bayesgen.estimators.arguments import Categories, Kinds, PriorValue, make_constructor
from bayesgen.estimators.classifier import GenerativeClassifier
from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
from bayesgen.families.conjugate.columns import Columns
from bayesgen.families.conjugate.dirichlet_categorical import DirichletCategorical
from bayesgen.families.conjugate.dirichlet_multinomial import DirichletMultinomial
from bayesgen.families.conjugate.gamma_poisson import GammaPoisson
from bayesgen.families.conjugate.log_normal import LogNormal
from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma, Variance
from bayesgen.families.contract import Family
from bayesgen.families.names import FEATURE
from bayesgen.families.shared.pymc_parts import category_coords
from bayesgen.numerics.special import Array

Unseen = Literal["ignore", "prior", "raise"]
_NO_PARAMETER = (
    "the PyMC model has no parameter for it: declare it (categories=) and fit again, leave the row "
    "out"
)


@dataclass(frozen=True, eq=False)
class TableReader(Reader):
    """Tables of any columns: the user's own object is kept until it is encoded."""

    unseen: str = "ignore"

    shares: ClassVar[bool] = True
    unseen_words: ClassVar[tuple[str, ...]] = ("prior", "ignore", "raise")

    def admit(self, X: Any, *, first: bool = False) -> tuple[Self, Rows]:
        """Rows, checked; see `Reader.admit`. Of `Rows` the table that they hold is taken."""
        shared = X if isinstance(X, Rows) else None
        X = X if shared is None else shared.X
        refuse_unknown("unseen", self.unseen, self.unseen_words)
        refuse_elsewhere(X)
        if not hasattr(X, "shape"):
            X = np.asarray(X, dtype=object)
        # refuses what is not a table before any work is done
        table = Table(X) if shared is None else shared.table
        reader = self.of_columns(X, first)
        return reader, Rows(X, reader, table, shared)


class TableClassifier(GenerativeClassifier):
    """Tables of columns that are not all numbers."""

    unseen: str

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an argument; what becomes of categories never seen may change after a fit too."""
        super().__setattr__(name, value)
        if name == "unseen" and "fitted_" in self.__dict__:
            reader: Any = self.fitted_.reader
            self.fitted_ = replace(self.fitted_, reader=replace(reader, unseen=value))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags


@dataclass(frozen=True, eq=False)
class MixedColumns(TableReader):
    """Columns of several kinds; `kinds` and `declared` categories are what the user has named."""

    kinds: Any = None
    declared: Any = None

    @property
    def chosen(self) -> Collection[str]:
        """Columns that `columns` or `categories` name."""
        return self.encoder.chosen

    def learn_encoder(self, rows: Rows) -> TableSchema:
        """Return kind, position and categories of every column."""
        return TableSchema.learn(rows.table, self.kinds, self.declared)

    def further(self, rows: Rows) -> tuple[Self, Align, Align]:
        """Return the reader that knows the categories of further rows too."""
        schema = self.encoder.relearn(rows.table, self.declared)
        return self.merged(replace(self, encoder=schema))

    def recoded(self, encoder, codes, stats):
        """Return statistics whose counts of categories are in the codes of a merged schema."""
        n = encoder.n_categories
        parts = tuple(
            of_kind.reindex_categories(codes, n) if name == "categorical" else of_kind
            for name, of_kind in zip(stats.names, stats.parts, strict=True)
        )
        return replace(stats, parts=parts)

    def encode(self, rows: Rows) -> Array:
        """Return (N, D) numbers and codes."""
        codes: Array = rows.cells(self.encoder)
        unseen = None if self.unseen == "prior" else self.encoder.are_unknown(codes)
        if unseen is None:
            return codes
        if self.unseen == "raise":
            self.encoder.refuse_unseen(rows.table)
        return np.where(unseen, np.nan, codes)

    def refuse_unseen(self, rows: Rows) -> None:
        """Raise for a category that theta does not have."""
        if self.unseen == "prior":  # else they are missing, or refused when encoded
            self.encoder.refuse_unseen(rows.table, advice=_NO_PARAMETER)

    def decode(self, X: Any) -> Any:
        """Return a data frame of the columns."""
        import pandas as pd

        return pd.DataFrame(dict(zip(self.columns, self.encoder.decode(X), strict=True)))

    @property
    def columns(self) -> list[Any]:
        """Names of the columns, but for those that are left out."""
        return super().columns if self.encoder is None else list(self.encoder.labels)

    @property
    def normal_by_type(self) -> Collection[str]:
        """Columns that are Normal because they hold numbers."""
        pairs = zip(self.columns, self.encoder.kinds, strict=True)
        return {name for name, kind in pairs if kind == "gaussian"} - {*self.chosen}

    def coords(self, family: Family) -> dict[str, Any]:
        """{dim: labels} of the posterior, of each kind of columns its own."""
        names = np.array(self.columns, dtype=object)
        blocks = self.encoder.blocks
        names_by_dim: dict[str, Any] = {
            f"{k}_{FEATURE}": list(names[positions]) for k, positions in blocks.items()
        }
        if "categorical" in blocks:
            columns = names_by_dim[f"categorical_{FEATURE}"]
            values = [self.encoder.categories[k] for k in blocks["categorical"]]
            names_by_dim |= category_coords(columns, values, "categorical_")
        return names_by_dim


@dataclass(frozen=True, eq=False)
class CategoryColumns(MixedColumns):
    """Columns of categories alone."""

    def learn_encoder(self, rows: Rows) -> TableSchema:
        """Return the categories of the columns."""
        return TableSchema.learn(rows.table, None, self.declared, every="categorical")

    def recoded(self, encoder, codes, stats):
        """Return counts in the codes of merged categories."""
        return stats.reindex_categories(codes, encoder.n_categories)

    def decode(self, X: Any) -> Array:
        """Return the categories (N, D) of codes."""
        return np.stack(self.encoder.decode(X), axis=1)

    def coords(self, family: Family) -> dict[str, Any]:
        """{dim: labels} of the posterior, the categories among them."""
        return Reader.coords(self, family) | category_coords(self.columns, self.encoder.categories)


@make_constructor
class CategoricalNB(TableClassifier):
    r"""Naive Bayes for categories: x_j | y=c ~ Categorical(theta_cj), Dirichlet prior.

    Reads strings, numbers, booleans, pandas and polars categories; NaN and None are missing cells.

    Parameters
    ----------
    alpha : float or array broadcasting to (class, feature), or (class, feature, category)
        Dirichlet concentration: pseudo-counts of each category, in rows. Default 1.0.
    categories : None, int, list of lists, or {column: list}
        Declared categories of the columns; an int K declares the codes 0 .. K-1. None: those
        that occur, and those that a pandas or polars categorical dtype declares.
    unseen : {"ignore", "prior", "raise"}
        A category at prediction that is not among those known. "ignore": the cell counts as
        missing and is no evidence; "prior": its pseudo-count, as if it had been declared (for
        that row and column), which favours classes with few rows; "raise": an error that names
        column and category. The first two warn (`UnknownCategoryWarning`).
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    prior : {"loo", "default", "empirical"} or None
        Strength of the prior. ``"default"``: alpha as is stated. ``"loo"``: multiplied by the
        factors with the largest leave-one-out score of the labels. ``"empirical"``: by those with
        the largest evidence p(X, y). None: ``"loo"`` in `fit` if alpha is not given, else
        ``"default"`` (`GenerativeClassifier`).

    Attributes
    ----------
    categories_ : tuple of tuples
        The categories of each column, in the order of their codes.

    References
    ----------
    Murphy (2012), section 3.4.

    Examples
    --------
    >>> X = [["red", "S"], ["red", "M"], ["blue", "L"], ["blue", None]]
    >>> clf = CategoricalNB().fit(X, ["hot", "hot", "cold", "cold"])
    >>> clf.predict_proba([["red", "M"]]).round(3)
    array([[0.172, 0.828]])
    """

    _family_type: ClassVar[type[Family]] = DirichletCategorical

    alpha: PriorValue = 1.0
    categories: Categories = None
    unseen: Unseen = "ignore"
    _: KW_ONLY
    class_alpha: PriorValue = 1.0
    prior: str | None = None

    def _reader(self) -> Reader:
        return CategoryColumns(type(self).__name__, unseen=self.unseen, declared=self.categories)

    def _family(self, reader: Reader, classes: Array) -> Family:
        return DirichletCategorical(self.alpha, reader.encoder.n_categories)

    @property
    def categories_(self) -> tuple[tuple[Any, ...], ...]:
        """Return the categories of each column, in the order of their codes."""
        values: tuple[tuple[Any, ...], ...] = self.encoder_.categories
        return values

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags


@make_constructor
class MixedNB(TableClassifier):
    r"""Naive Bayes for columns of several kinds, each with its conjugate family.

    Parameters
    ----------
    columns : {kind: list of names or positions}, optional
        Kinds are "gaussian", "lognormal" (positive; the logarithm is Normal), "categorical",
        "bernoulli", "poisson", "multinomial", and "drop" for columns to leave out. Columns that
        are not named are read by dtype: booleans are bernoulli, strings and categories categorical,
        other numbers gaussian, with a warning where that is no model of their cells.
    categories : {column: list}, optional
        Declared categories, as in `CategoricalNB`; a column that is named here is categorical.
    unseen : {"ignore", "prior", "raise"}
        As in `CategoricalNB`.
    alpha : float or array broadcasting to (class, feature of the block), default 1.0
        Pseudo-counts of categories, words, and ones of bits.
    beta : float or array, default 1.0
        Pseudo-counts of zeros of bits.
    mu0, kappa0, nu0, sigma2_0
        As in `GaussianNB`, for the gaussian columns; lognormal ones have its defaults.
    variance
        As in `GaussianNB`, for gaussian and lognormal columns, each kind by itself.
    shape, rate
        As in `PoissonNB`, for the poisson columns.
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    prior : {"loo", "default", "empirical"} or None
        Strength of the prior. ``"default"`` uses the hyper-parameters as stated.
        ``"loo"`` multiplies them by the factors with the largest leave-one-out score of the labels,
        ``"empirical"`` by those with the largest evidence p(X, y). None is ``"loo"`` in `fit` if
        hyper-parameters are not given, else ``"default"`` (see `GenerativeClassifier`).

    Attributes
    ----------
    schema_ : TableSchema
        Kind, position and categories of every column.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"island": ["Dream", "Dream", "Biscoe", None]})
    >>> X = X.assign(bill=[39.1, 38.2, 46.0, 47.5], male=[True, False, True, False])
    >>> clf = MixedNB().fit(X, ["Adelie", "Adelie", "Gentoo", "Gentoo"])
    >>> clf.schema_.kinds
    ('categorical', 'gaussian', 'bernoulli')
    >>> clf.predict(X[:1])
    array(['Adelie'], dtype='<U6')
    """

    _family_type = Columns

    columns: Kinds = None
    categories: Categories = None
    unseen: Unseen = "ignore"
    _: KW_ONLY
    alpha: PriorValue = 1.0
    beta: PriorValue = 1.0
    mu0: PriorValue = None
    kappa0: PriorValue = None
    nu0: PriorValue = None
    sigma2_0: PriorValue = None
    variance: Variance = "class"
    shape: PriorValue = 1.0
    rate: PriorValue = None
    class_alpha: PriorValue = 1.0
    prior: str | None = None

    def _reader(self) -> Reader:
        return MixedColumns(
            type(self).__name__,
            unseen=self.unseen,
            kinds=self.columns,
            declared=self.categories,
        )

    def _family(self, reader: Reader, classes: Array) -> Columns:
        schema: TableSchema = reader.encoder
        make: dict[str, Any] = {
            "bernoulli": lambda: BetaBernoulli(self.alpha, self.beta),
            "categorical": lambda: DirichletCategorical(self.alpha, schema.n_categories),
            "multinomial": lambda: DirichletMultinomial(self.alpha),
            "poisson": lambda: GammaPoisson(self.shape, self.rate),
            "gaussian": lambda: NormalInverseGamma(
                self.mu0, self.kappa0, self.nu0, self.sigma2_0, variance=self.variance
            ),
            "lognormal": lambda: LogNormal(variance=self.variance),
        }
        blocks, names = schema.blocks, schema.names or ()
        arguments = {"gaussian": ("mu0", "kappa0", "nu0", "sigma2_0"), "poisson": ("shape", "rate")}
        for kind in blocks.keys() & arguments.keys():
            columns = [names[j] for j in blocks[kind] if names]
            for argument in arguments[kind]:
                refuse_other_order(
                    argument, getattr(self, argument), list(classes.tolist()), columns
                )
        return Columns(
            tuple(blocks),
            tuple(make[kind]() for kind in blocks),
            tuple(tuple(map(int, positions)) for positions in blocks.values()),
        )

    @property
    def schema_(self) -> TableSchema:
        """Kind, position and categories of every column."""
        schema: TableSchema = self.encoder_
        return schema
