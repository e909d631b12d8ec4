"""Tables with names, categories and columns of several kinds: CategoricalNB, MixedNB."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.utils import Tags

from bayesgen.encoding.categories import Categories
from bayesgen.encoding.column_names import refuse_other_order
from bayesgen.encoding.in_memory import refuse_elsewhere
from bayesgen.encoding.schema import TableSchema
from bayesgen.encoding.tables import Table, read
from bayesgen.estimators.base import Align, GenerativeClassifier
from bayesgen.estimators.estimator import validated
from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
from bayesgen.families.conjugate.columns import Columns
from bayesgen.families.conjugate.dirichlet_categorical import DirichletCategorical
from bayesgen.families.conjugate.dirichlet_multinomial import DirichletMultinomial
from bayesgen.families.conjugate.gamma_poisson import GammaPoisson
from bayesgen.families.conjugate.normal_inverse_gamma.family import NormalInverseGamma, Variance
from bayesgen.families.contract import Family, Stats
from bayesgen.families.names import CLASS, FEATURE
from bayesgen.families.shared.category_codes import Codes
from bayesgen.families.shared.cells import category_coords
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array

Unseen = Literal["prior", "ignore", "raise"]


class _Table(GenerativeClassifier):
    """Shared reading of tables: the user's own object is kept until it is encoded."""

    unseen: str

    def _read(self, X: Any, *, reset: bool) -> Any:
        if self.unseen not in ("prior", "ignore", "raise"):
            raise ValueError(f"unseen must be 'prior', 'ignore' or 'raise', got {self.unseen!r}")
        refuse_elsewhere(X)
        if not hasattr(X, "shape"):
            X = np.asarray(X, dtype=object)
        if sparse.issparse(X) and not self._accepts_sparse():
            raise TypeError(
                f"{type(self).__name__} does not take sparse X; pass X.toarray() or a data frame"
            )
        rows = read(X)  # refuses what is not a table before any work is done
        if not hasattr(self, "schema_"):  # which finds columns by name
            self._check_names_of_array(X, reset=reset)
        if sparse.issparse(X):
            X = rows  # of which rows can be taken
        if not self._takes_as_it_is(X, reset, False):
            validated(self, X, reset=reset, skip_check_array=True)
        return X

    def _accepts_sparse(self) -> bool:
        return False

    def _state(self) -> dict[str, Any]:
        return {"encoder": self.encoder_.to_json()}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags


class CategoricalNB(_Table):
    r"""Naive Bayes for categories: x_j | y=c ~ Categorical(theta_cj), Dirichlet prior.

    Reads strings, numbers, booleans, pandas and polars categories, sparse codes; NaN and None are
    missing cells.

    Parameters
    ----------
    alpha : float or array broadcasting to (class, feature), or (class, feature, category)
        Dirichlet concentration: pseudo-counts of each category, in rows. Default 1.0.
    categories : None, int, list of lists, or {column: list}
        Declared categories of the columns; an int K declares the codes 0 .. K-1. None: those
        that occur, and those that a pandas or polars categorical dtype declares.
    unseen : {"prior", "ignore", "raise"}
        A category at prediction that is not among those known. "prior": its pseudo-count, as if
        it had been declared (for that row and column); "ignore": a missing cell; "raise": an
        error that names column and category.
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    prior : {"default", "empirical", "loo"}
        ``"empirical"`` rescales alpha to the largest evidence p(X, y), ``"loo"`` to the largest
        leave-one-out score of the labels, in `fit` alone (`GenerativeClassifier`).

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
    >>> clf.predict_proba([["red", "XL"]]).round(3)
    array([[0.286, 0.714]])
    """

    _family_type: type[Family] = DirichletCategorical

    def __init__(
        self,
        alpha: Any = 1.0,
        categories: Any = None,
        unseen: Unseen = "prior",
        *,
        class_alpha: Any = 1.0,
        prior: str = "default",
    ) -> None:
        self.alpha = alpha
        self.categories = categories
        self.unseen = unseen
        self.class_alpha = class_alpha
        self.prior = prior

    def _make_family(self) -> Family:
        encoder = getattr(self, "encoder_", None)
        if encoder is None:
            return DirichletCategorical(self.alpha)
        return DirichletCategorical(self.alpha, encoder.n_categories)

    def _accepts_sparse(self) -> bool:
        return True

    def _learn(self, X: Any) -> Categories:
        return Categories.learn(read(X), self.categories)

    def _widen(self, encoder: Categories) -> Align:
        self.encoder_, mine, theirs = self.encoder_.merge(encoder)
        n = self.encoder_.n_categories
        features = self.stats_.features.reindex_categories(mine, n)
        self.stats_ = replace(self.stats_, features=features)
        return lambda stats: stats.reindex_categories(theirs, n)  # type: ignore[attr-defined]

    def _encode(self, X: Any) -> Matrix:
        table = read(X)
        if self.unseen == "raise":
            self.encoder_.refuse_unseen(table)
        if self.unseen != "ignore" or self.encoder_.knows(table):
            return self.encoder_.codes_of(table)
        codes = self.encoder_.encode(table)
        values = codes.data if sparse.issparse(codes) else codes
        values[values == -1] = np.nan
        return codes

    def _refuse_unseen(self, X: Any) -> None:
        if self.unseen == "prior":  # else they are missing, or refused when encoded
            with _no_parameter():
                self.encoder_.refuse_unseen(read(X))

    def _encode_as_read(self, X: Any) -> Codes:
        table = read(X)
        if self.unseen == "raise":
            self.encoder_.refuse_unseen(table)
        codes = self.encoder_.read_codes(table, self.unseen == "ignore")
        return self._encode(X) if codes is None else codes

    def _decode(self, X: Any) -> Any:
        return self.encoder_.decode(X)

    @property
    def categories_(self) -> tuple[tuple[Any, ...], ...]:
        """The categories of each column, in the order of their codes."""
        values: tuple[tuple[Any, ...], ...] = self.encoder_.values
        return values

    def _coords(self) -> dict[str, Any]:
        return super()._coords() | category_coords(self._feature_names(), self.encoder_.values)

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.encoder_ = Categories.from_json(state["encoder"])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags


class MixedNB(_Table):
    r"""Naive Bayes for columns of several kinds, each with its conjugate family.

    Parameters
    ----------
    columns : {kind: list of names or positions}, optional
        Kinds are "gaussian", "categorical", "bernoulli", "poisson", "multinomial", and "drop" for
        columns to leave out; every column must be named. None: by dtype, booleans are bernoulli,
        strings and categories categorical, other numbers gaussian, with a warning where they are
        two numbers alone, such as 0 and 1.
    categories : {column: list}, optional
        Declared categories of categorical columns, as in `CategoricalNB`.
    unseen : {"prior", "ignore", "raise"}
        As in `CategoricalNB`.
    alpha : float or array broadcasting to (class, feature of the block), default 1.0
        Pseudo-counts of categories, words, and ones of bits.
    beta : float or array, default 1.0
        Pseudo-counts of zeros of bits.
    mu0, kappa0, nu0, sigma2_0, variance
        As in `GaussianNB`, for the gaussian columns.
    shape, rate
        As in `PoissonNB`, for the poisson columns.
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    prior : {"default", "empirical", "loo"}
        ``"empirical"`` rescales each block's hyper-parameters to the largest evidence p(X, y),
        ``"loo"`` to the largest leave-one-out score of the labels, in `fit` alone
        (`GenerativeClassifier`).

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

    def __init__(
        self,
        columns: Any = None,
        categories: Any = None,
        unseen: Unseen = "prior",
        *,
        alpha: Any = 1.0,
        beta: Any = 1.0,
        mu0: Any = None,
        kappa0: Any = None,
        nu0: Any = None,
        sigma2_0: Any = None,
        variance: Variance = "class",
        shape: Any = 1.0,
        rate: Any = None,
        class_alpha: Any = 1.0,
        prior: str = "default",
    ) -> None:
        self.columns = columns
        self.categories = categories
        self.unseen = unseen
        self.alpha = alpha
        self.beta = beta
        self.mu0 = mu0
        self.kappa0 = kappa0
        self.nu0 = nu0
        self.sigma2_0 = sigma2_0
        self.variance = variance
        self.shape = shape
        self.rate = rate
        self.class_alpha = class_alpha
        self.prior = prior

    def _make_family(self) -> Columns:
        schema = getattr(self, "encoder_", None)
        if schema is None:
            return Columns()
        make = {
            "bernoulli": lambda: BetaBernoulli(self.alpha, self.beta),
            "categorical": lambda: DirichletCategorical(self.alpha, schema.categories.n_categories),
            "multinomial": lambda: DirichletMultinomial(self.alpha),
            "poisson": lambda: GammaPoisson(self.shape, self.rate),
            "gaussian": lambda: NormalInverseGamma(
                self.mu0, self.kappa0, self.nu0, self.sigma2_0, variance=self.variance
            ),
        }
        blocks, names = schema.blocks, schema.names or ()
        arguments = {"gaussian": ("mu0", "kappa0", "nu0", "sigma2_0"), "poisson": ("shape", "rate")}
        for kind in blocks.keys() & arguments.keys():
            own = [names[j] for j in blocks[kind] if names]
            for argument in arguments[kind]:
                refuse_other_order(argument, getattr(self, argument), self._known_classes(), own)
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

    def _normal_by_type(self) -> Collection[str]:
        if self.columns is not None:
            return ()
        kinds = self.schema_.kinds
        return {n for n, k in zip(self._feature_names(), kinds, strict=True) if k == "gaussian"}

    def _learn(self, X: Any) -> TableSchema:
        table = Table(X)
        self._learnt_from = X, table  # which holds its texts as codes: `_encode` reads them again
        if "stats_" in self.__dict__:
            return self.schema_.relearn(table, self.categories)
        return TableSchema.learn(table, self.columns, self.categories)

    def _widen(self, encoder: TableSchema) -> Align:
        self.encoder_, mine, theirs = self.schema_.merge(encoder)
        n = self.schema_.categories.n_categories

        def aligned(stats: Any, maps: tuple[Array, ...]) -> Stats:
            parts = tuple(
                part.reindex_categories(maps, n) if name == "categorical" else part
                for name, part in zip(stats.names, stats.parts, strict=True)
            )
            out: Stats = replace(stats, parts=parts)
            return out

        self.stats_ = replace(self.stats_, features=aligned(self.stats_.features, mine))
        return lambda stats: aligned(stats, theirs)

    def _encode(self, X: Any) -> Array:
        of, table = self.__dict__.pop("_learnt_from", (None, None))
        codes = self.schema_.encode(table if of is X else X)
        if self.unseen == "prior":
            return codes
        nominal = self.schema_.blocks.get("categorical", np.array([], dtype=int))
        unseen = codes[:, nominal] == -1
        if unseen.any() and self.unseen == "raise":
            self.schema_.refuse_unseen(X)
        if self.unseen == "ignore":
            codes[:, nominal] = np.where(unseen, np.nan, codes[:, nominal])
        return codes

    def _refuse_unseen(self, X: Any) -> None:
        if self.unseen == "prior" and "categorical" in self.schema_.blocks:
            with _no_parameter():
                self.schema_.refuse_unseen(X)

    def _decode(self, X: Any) -> Any:
        import pandas as pd

        return pd.DataFrame(dict(zip(self._feature_names(), self.schema_.decode(X), strict=True)))

    def _feature_names(self) -> list[Any]:
        return list(self.schema_.labels)

    def _coords(self) -> dict[str, Any]:
        names = np.array(self._feature_names(), dtype=object)
        out: dict[str, Any] = {CLASS: self.classes_}
        for kind, positions in self.schema_.blocks.items():
            out[f"{kind}_{FEATURE}"] = list(names[positions])
        if "categorical" in self.schema_.blocks:
            columns = out[f"categorical_{FEATURE}"]
            out |= category_coords(columns, self.schema_.categories.values, "categorical_")
        return out

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.encoder_ = TableSchema.from_json(state["encoder"])

    def _check_same_features(self, other: Self) -> None:
        if self.schema_.names is None or other.schema_.names is None:
            super()._check_same_features(other)  # else the schemas compare names themselves


@contextmanager
def _no_parameter() -> Iterator[None]:
    """Says of a category that was never seen what PyMC cannot do with it."""
    try:
        yield
    except ValueError as error:
        what = str(error).rsplit("; ", 1)[0]
        raise ValueError(
            f"{what}; the PyMC model has no parameter for it: declare it (categories=) and fit "
            "again, make the cell missing, or leave the row out"
        ) from None
