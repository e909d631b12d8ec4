r"""The label given real features: softmax regression, which says nothing of the features.

.. math:: p(y = c \mid x) \propto \exp(b_c + w_c \cdot z + z^T Q_c z), \quad
          z_j = (x_j - m_j)/s_j

.. math:: b_c \sim \text{Normal}(0, \sigma_b^2), \quad w_{cj} \sim \text{Normal}(0, \sigma^2),
          \quad \textstyle\sum_c b_c = \sum_c w_{cj} = 0

m and s are mean and standard deviation of the columns, so that sigma is in log-odds per standard
deviation. Q = 0 for the linear features; with the quadratic ones the coefficients of the products
z_j z_k, j <= k, have the prior of w with half its standard deviation.

Linear features are those of Normal classes with one covariance, quadratic ones those of a
covariance for each class: `LinearDiscriminant` and `QuadraticDiscriminant` have class
probabilities of this very form. They also say how x is distributed. Where that is true they need
fewer rows; where it is false they are misled, and this family is not. Prefer it with many rows,
and with features that are no draws from anything simple; not with missing cells, missing labels
or few rows.

The sum over the classes is not identified: it is 0, which is what independent Normal priors imply
for all that is, and treats the classes alike (there is no reference class).

Source: Bishop (2006), Pattern Recognition and Machine Learning, sections 4.2 and 4.3; Ng and
Jordan (2001), On discriminative vs. generative classifiers; Gelman et al. (2008), A weakly
informative default prior distribution for logistic and other regression models (scales).
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from bayesgen.errors import InputError, refuse_not_positive, refuse_unknown
from bayesgen.families.contract import Family, Tensors, Theta
from bayesgen.families.names import CLASS, FEATURE, FEATURE_BIS, OBS, Tensor
from bayesgen.families.records import Hyperparameter, PriorObject, array, prior_object
from bayesgen.families.shared.pymc_parts import parameter, prefixed
from bayesgen.numerics.rows import Matrix, dense_block, dot, row_blocks
from bayesgen.numerics.special import Array, log_softmax

Features = Literal["linear", "quadratic"]


@dataclass(frozen=True, eq=False)
class LogisticRegression(Family):
    """p(y | x) as the softmax of functions linear in the features, or in their products as well.

    Parameters
    ----------
    coef, intercept : prior objects, optional
        Of w (class, feature), in log-odds per standard deviation of the feature, and of b
        (class,), without the constraint on their sums. None: the defaults above.
    features : {"linear", "quadratic"}
    coef_scale, intercept_scale : float > 0
        Prior standard deviations of the difference of two classes, sigma and sigma_b times
        sqrt(2).
    location, scale : array (feature,), optional
        m and s, in the unit of the feature. None: from the rows.
    """

    holds: ClassVar[str] = "real"
    kind: ClassVar[str] = "logistic regression"
    discriminative: ClassVar[bool] = True
    missing: ClassVar[str] = (
        "p(y | x) says nothing of x, so that nothing is known of a cell that is missing: leave "
        "such rows out, fill the cells in, or use a generative classifier, which integrates them "
        "out"
    )

    coef: PriorObject = prior_object()
    intercept: PriorObject = prior_object()
    features: Features = "linear"
    coef_scale: float = 2.5
    intercept_scale: float = 5.0
    location: Hyperparameter = array(FEATURE, default=None)
    scale: Hyperparameter = array(FEATURE, default=None)

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``intercept``, ``coef``: b and w; ``quadratic``: Q, symmetric."""
        dims_of: dict[str, tuple[str, ...]] = {"intercept": (CLASS,), "coef": (CLASS, FEATURE)}
        if self.features == "quadratic":
            dims_of["quadratic"] = (CLASS, FEATURE, FEATURE_BIS)
        return dims_of

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Linear and quadratic, of columns with different units."""
        unit = np.exp2(np.arange(n_features))
        one = cls(location=unit - 2, scale=unit)
        return [one, replace(one, features="quadratic", coef_scale=1.0)]

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """Return (..., N, C) log p(y = c | x_i, theta)."""
        b, w = (np.asarray(theta[name], dtype=np.float64) for name in ("intercept", "coef"))
        tables = [w]
        if self.features == "quadratic":
            j, k = np.triu_indices(w.shape[-1])
            Q = np.asarray(theta["quadratic"], dtype=np.float64)
            tables.append(Q[..., j, k] * np.where(j == k, 1.0, 2.0))
        table = np.concatenate(tables, axis=-1)
        log_p = np.empty((*w.shape[:-2], X.shape[0], w.shape[-2]))
        for rows in row_blocks(X.shape[0], table.shape[-1]):
            terms = self._terms(self._standardised(dense_block(X, rows), rows.start))
            log_p[..., rows, :] = log_softmax(dot(terms, table) + b[..., None, :])
        return log_p

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array):
        """Refused: there is no density of x."""
        raise NotImplementedError(
            "a discriminative model says nothing of x: it has no rows to draw and no density of "
            "them; use a generative classifier for that"
        )

    def with_defaults(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> Self:
        """Mean and standard deviation of the columns; 1 for a column that does not vary."""
        refuse_unknown("features", self.features, ("linear", "quadratic"))
        refuse_not_positive(coef_scale=self.coef_scale, intercept_scale=self.intercept_scale)
        X = np.asarray(X, dtype=np.float64)
        self._refuse_missing(X)
        mean = np.average(X, axis=0, weights=weight)
        sd = np.sqrt(np.average(np.square(X - mean), axis=0, weights=weight))
        rounding = 16 * np.finfo(float).eps * np.abs(X).max(axis=0, initial=0.0)
        sd = np.where(sd <= rounding, 1.0, sd)
        return self.filled(location=mean, scale=sd)

    def to_pymc(self, *, prefix: str = "", X: Matrix | None = None, y=None, stats=None) -> Tensors:
        """Normal coefficients that sum to 0 over the classes; ``label`` observed, given x."""
        import pymc as pm

        model: Any = pm.modelcontext(None)
        if len(model.coords[CLASS]) < 2:
            raise ValueError(
                "the rows are all of one class, so that a regression of the class has no "
                "coefficient to learn: give rows of another class too"
            )
        n_features = len(self.location)
        # what independent Normals of standard deviation sigma say of all contrasts of the classes
        coef_sd, intercept_sd = self.coef_scale / np.sqrt(2), self.intercept_scale / np.sqrt(2)

        def summing_to_zero(name: str, sd: float, *dims: str):
            return pm.ZeroSumNormal(f"{prefix}{name}_raw", sd, dims=(*dims, CLASS)).T

        def declared(name: str, sd: float):
            return parameter(
                self,
                prefix,
                name,
                lambda full, dims: pm.Deterministic(
                    full, summing_to_zero(name, sd, *dims[1:]), dims=dims
                ),
            )

        theta = {
            "intercept": declared("intercept", intercept_sd),
            "coef": declared("coef", coef_sd),
        }
        if self.features == "quadratic":
            j, k = np.triu_indices(n_features)
            model.add_coords({f"{prefix}product": np.arange(len(j))})
            products = summing_to_zero("quadratic", coef_sd / 2, f"{prefix}product")
            place = np.zeros((n_features, n_features), dtype=np.int64)
            place[j, k] = place[k, j] = np.arange(len(j))
            Q = products[:, place] * np.where(np.eye(n_features, dtype=bool), 1.0, 0.5)
            theta["quadratic"] = pm.Deterministic(
                f"{prefix}quadratic", Q, dims=prefixed(prefix, self.params["quadratic"])
            )
        if X is not None:
            z = self._standardised(np.asarray(X, dtype=np.float64), 0)
            terms = pm.Data(f"{prefix}terms", self._terms(z), dims=(OBS, f"{prefix}term"))
            logits = self._logits(terms, theta)
            pm.Categorical(f"{prefix}label", logit_p=logits, observed=y, dims=OBS)
        return theta

    def pymc_log_likelihood(self, X: Matrix, theta, *, prefix: str = ""):
        """log p(y = c | x_i), (N, C)."""
        import pymc as pm
        import pytensor.tensor as pt

        self._refuse_missing(np.asarray(X, dtype=np.float64))
        z = (pm.Data(f"{prefix}rows", np.asarray(X, dtype=np.float64)) - self.location) / self.scale
        if self.features == "quadratic":
            j, k = np.triu_indices(X.shape[1])
            z = pt.concatenate([z, z[:, j] * z[:, k]], axis=1)
        logits = self._logits(z, theta)
        return logits - pt.logsumexp(logits, axis=1, keepdims=True)

    def log_odds_terms(self, X: Matrix, a: int, b: int, theta: Theta) -> tuple[Array, Array]:
        """Terms (w_a - w_b)_j z_j, products shared equally by their two features."""
        z = self._standardised(np.asarray(X, dtype=np.float64), 0)
        w = theta["coef"][..., a, :] - theta["coef"][..., b, :]
        slope = np.broadcast_to(w[..., None, :], (*w.shape[:-1], *z.shape))
        if self.features == "quadratic":
            Q = theta["quadratic"][..., a, :, :] - theta["quadratic"][..., b, :, :]
            slope = slope + z @ Q
        intercept = theta["intercept"][..., a] - theta["intercept"][..., b]
        return slope * z, np.repeat(intercept[..., None], len(z), axis=-1)

    def _logits(self, terms: Tensor, theta):
        """Return (N, C) tensor of what `_terms` returns."""
        n_features = len(self.location)
        logits = theta["intercept"] + terms[:, :n_features].dot(theta["coef"].T)
        if self.features == "quadratic":
            j, k = np.triu_indices(n_features)
            products = theta["quadratic"][:, j, k] * np.where(j == k, 1.0, 2.0)
            logits = logits + terms[:, n_features:].dot(products.T)
        return logits

    def _standardised(self, x: Array, first: int) -> Array:
        self._refuse_missing(x, first)
        return np.asarray((x - self.location) / self.scale)

    def _terms(self, z: Array) -> Array:
        """Return (N, D), or (N, D + D(D + 1)/2) with the products z_j z_k, j <= k."""
        if self.features == "linear":
            return z
        j, k = np.triu_indices(z.shape[1])
        return np.concatenate([z, z[:, j] * z[:, k]], axis=1)

    def _refuse_missing(self, x: Array, first: int = 0) -> None:
        missing = np.isnan(x)
        if missing.any():
            i, j = np.argwhere(missing)[0]
            why = f", feature {j}; {self.missing}"
            what = "X contains NaN:"
            raise InputError(what, why, row=first + i, column=int(j), place=" row {}")
