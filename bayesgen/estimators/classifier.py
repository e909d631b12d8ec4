"""`GenerativeClassifier`: what all classifiers can do, each method one call of a function of a fit.

An estimator says how its rows are read (`_reader`) and which family has which hyper-parameters
(`_family`). ``fit`` makes one object of these and the rows, ``fitted_``; every other method is a
function of it, in `predict`, `explain`, `checks` or `inference`. Nothing else is kept: an error
leaves the classifier as it was.
"""

import copy
import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from bayesgen.checks.compare import loo
from bayesgen.datatree.tree import named_rows
from bayesgen.encoding.labels import rows_with_label
from bayesgen.encoding.reader import Reader
from bayesgen.encoding.tables import find_column, refuse_other_order
from bayesgen.estimators.arguments import (
    ClassPrior,
    Labels,
    PerRow,
    PriorValue,
    RowsLike,
    Seed,
    TrainingRows,
    available,
    refuse_other_arguments,
    states_prior,
)
from bayesgen.estimators.saving import by_column, loaded, record, refuse_subclass, unsaved
from bayesgen.estimators.summary import Summary, summary, with_summary
from bayesgen.explain import contributions
from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
from bayesgen.families.contract import Family
from bayesgen.families.errors import NoPosteriorError
from bayesgen.families.names import Method
from bayesgen.inference import trees
from bayesgen.inference.fitting import Gathered, Learner, Unlabelled
from bayesgen.inference.nuts import Sampler
from bayesgen.io import storage
from bayesgen.numerics.special import Array, generator, log_sum_exp
from bayesgen.posterior.fitted import Fitted, is_pool, no_density
from bayesgen.posterior.model import ClassModel, ClassStats
from bayesgen.predict import plug_ins, tables
from bayesgen.predict.draws import IntervalRequest
from bayesgen.predict.leave_one_out import training_rows
from bayesgen.predict.left_out import LeftOut, check_coverage, prediction_sets
from bayesgen.predict.plug_ins import LinearForm
from bayesgen.predict.probabilities import log_class_probability, log_joint, log_proba
from bayesgen.predict.typicality import left_out_scores, typicality

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr
    from arviz_stats.utils import ELPDData

    from bayesgen.datatree.result_table import ResultTable
    from bayesgen.predict.draws import KindName


def _no_density(what: str, clf) -> None:
    """Raise where rows have no density: scikit-learn tells it by the attribute."""
    of_members = what == "typicality" and is_pool(clf)  # whose densities do
    if clf._family_type.discriminative and not of_members:
        raise NotImplementedError(no_density(what, type(clf).__name__))


def _adds_up(clf) -> None:
    """Raise where rows cannot be added: scikit-learn tells it by the attribute."""
    clf._learner().refuse_no_conjugate("partial_fit")


def _of_fit(name: str, what: str) -> property:
    """Make a property that scikit-learn's class has; AttributeError says why there is none."""
    return property(
        lambda clf: plug_ins.attribute(clf._fitted(), name), doc=f"{what}, as in scikit-learn."
    )


class GenerativeClassifier(ClassifierMixin, BaseEstimator):
    """Classifier from any conjugate family, the user's own included.

    Parameters
    ----------
    family : ConjugateFamily, optional
        An unresolved prior, e.g. ``NormalInverseGamma(variance="tied")``. None: Normal features
        with a variance per class, as `GaussianNB`.
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows; in the order of ``classes_``.
    prior : {"default", "empirical", "loo"}
        ``"empirical"`` multiplies the family's hyper-parameters by factors between 1/100 and 100
        for the largest evidence p(X, y), ``"loo"`` by factors between 1/256 and 256 for the largest
        exact leave-one-out score of the labels (Notes).

    Attributes
    ----------
    classes_ : array (class,)
        Labels, sorted.
    prior_, model_ : ClassModel
        Prior and posterior: hyper-parameters as arrays.
    stats_ : ClassStats
        Sufficient statistics of all rows seen.
    log_evidence_ : float
        log p(X, y), everything integrated out.
    posterior_ : xarray.DataTree
        Posterior draws and hyper-parameters.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X had column names.
    class_count_, class_log_prior_ : array (class,)
        Weights of the rows; logs of the posterior means of the class weights. These and the
        attributes below have scikit-learn's names, and exist after a fit in closed form.
    coef_, intercept_ : array (1, feature) and (1,) of two classes, else (class, feature), (class,)
        The linear rule, if there is one: of the posterior predictive (bits), else of the
        posterior means. ``linear_form(method)`` returns those of other methods.
    theta_, var_, means_, covariance_, feature_log_prob_ : array
        Posterior means, or their logs for probabilities, if scikit-learn's class has the
        attribute. ``estimates(method)`` returns all estimates with names.

    Notes
    -----
    ``prior="empirical"`` maximises p(X, y), in which the features outweigh the labels. It is not a
    guide to classification. With few rows and many columns it may classify worse than the default
    (the quadratic rule up to 8 times its log loss); if the model is right, it may do better.

    ``prior=None``, the default of most classifiers, is ``"loo"`` where `fit` is given rows and no
    hyper-parameter was given, and ``"default"`` elsewhere. `partial_fit`, `merge`, `forget`,
    `bayesgen.fit_stream` and `bayesgen.fit_dask` work on statistics and use the stated prior: the
    result is that of one fit with ``prior="default"`` to all rows, also if the first rows came by
    `fit`. `summary` names the prior of a fit and its factors; evidence, leave-one-out, draws and
    the model of `to_pymc` are conditional on it.

    ``prior="loo"`` maximises the sum over rows of log p(y_i | x_i, the other rows), less (log f -
    log 2)^2 / (2 s^2) for each factor f, a prior on its logarithm with s^2 = log(2)^2 (1 + N / 100)
    for N rows. The prior favours factors above 1, because models leave out dependence: under the
    default their probabilities are too extreme even where the score cannot show it.
    Leave-one-out is exact (`loo`), at most 60 times, of at most 4000 rows. With a full covariance
    it also tries no correlations or those of the pooled scatter, and the standard deviations of
    each class (`QuadraticDiscriminant`); these are learned from the rows, so rows are scored in ten
    folds, from the scales and statistics of the other folds. A factor of nu0 leaves nu0 / psi0
    as it is. The score is never below the default's, whatever the order of the rows, and after
    choosing optimistic by a little; `loo` is exact given the prior that was chosen. The gain is
    largest if the model is wrong, for example naive Bayes with dependent columns. The stated prior
    is kept where the score is not finite. ``"loo"`` needs the rows: `partial_fit`, `merge`,
    `forget`, `bayesgen.fit_stream` and `bayesgen.fit_dask` refuse it.
    Results of both on open data: ``tests/benchmarks/priors_on_open_sets.py``.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
    >>> X, y = np.array([[1.0], [1.4], [4.0], [4.4]]), ["a", "a", "b", "b"]
    >>> clf = GenerativeClassifier(NormalInverseGamma(variance="tied")).fit(X, y)
    >>> clf.predict([[1.1], [4.2]])
    array(['a', 'b'], dtype='<U1')
    """

    _by_column: ClassVar[tuple[str, ...]] = ()  # arguments that may be {column: value}
    _unsaved: ClassVar[tuple[str, ...]] = (
        "family",
    )  # arguments that no file can hold, but as text
    _target_accept: ClassVar[float | None] = None  # of NUTS, where its own default is too bold

    __bayesgen_pool__: ClassVar[bool] = False  # whether it pools the classifiers in `members_`

    class_alpha: PriorValue
    prior: str | None = "default"
    fitted_: Fitted

    def __init__(
        self, family: Any = None, *, class_alpha: PriorValue = 1.0, prior: str = "default"
    ) -> None:
        self.family = family
        self.class_alpha = class_alpha
        self.prior = prior

    # -- what an estimator chooses -------------------------------------------------------------

    @property
    def _family_type(self) -> type[Family]:
        """Return the class of the family, known before any rows are."""
        if self.family is None:
            return NormalInverseGamma
        if not isinstance(self.family, Family):
            raise TypeError(f"family must be an instance of a Family, got {self.family!r}")
        return type(self.family)

    def _reader(self) -> Reader:
        """Return a new reader, which has not read any rows."""
        return Reader(type(self).__name__, self._family_type.sparse)

    def _family(self, reader: Reader, classes: Array) -> Family:
        """Return the unresolved prior for the columns and classes of a fit."""
        family: Family = NormalInverseGamma() if self.family is None else self.family
        return family

    def _prior_choice(self) -> str | None:
        """Return the choice of prior; None: by leave-one-out wherever the rows are known."""
        return "default" if self.prior is None and states_prior(self) else self.prior

    def _learner(self) -> Learner:
        """Return the learner, which makes fits of rows with these arguments."""
        options = {k: v for k in ("draws", "tune", "chains") if (v := getattr(self, k, None))}
        if hasattr(self, "random_state"):
            options["random_state"] = self.random_state
        if self._target_accept is not None:
            options["target_accept"] = self._target_accept
        return Learner(
            type(self).__name__,
            self._reader(),
            self._family_type,
            lambda reader, classes: _in_order(self, reader, classes)._family(reader, classes),
            self.class_alpha,
            self._prior_choice(),
            options,
            text=hasattr(self, "categories"),
            unsaved=unsaved(self),
        )

    def _fitted(self) -> Fitted:
        """Return the fit; raise NotFittedError if there is none."""
        if "fitted_" not in vars(self):  # scikit-learn's check takes 10 us
            check_is_fitted(self, "fitted_")
        return self.fitted_

    # -- scikit-learn, streams and files -------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Leave training rows that are not needed out of copies and pickles."""
        state: dict[str, Any] = super().__getstate__()
        if "fitted_" in state and not state["fitted_"].posterior.draws_need_rows:
            state = state | {"fitted_": state["fitted_"].with_training(rows=None)}
        return state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        family = self._family_type
        tags.input_tags.allow_nan = family.missing == "marginalised" and family.fits_missing
        tags.input_tags.sparse = self._reader().sparse
        return tags

    def __bayesgen_learner__(self) -> Learner:
        """Return the learner, for streams and workers that gather statistics before a fit."""
        return self._learner()

    def __bayesgen_record__(self, fitted: Fitted) -> Any:
        """Return the record of a fit that `storage.write` takes."""
        return record(self, fitted)

    def __bayesgen_load__(
        self, fit: Any, state: Mapping[str, Any], draws: Any, known: Mapping[str, Any] | None = None
    ) -> Fitted:
        """Return the fit in a model file; `known` are the classes that the file may name."""
        return loaded(self, fit, state, draws)

    _html_repr = with_summary

    def _get_fitted_attr_html(self, doc_link: str = "") -> str:
        """Return "": the summary describes the fit, and reading ``posterior_`` would draw."""
        return ""

    def __dir__(self) -> Iterable[str]:
        """List names without methods that do not apply; do not read properties, as some draw."""
        cls = type(self)
        return [
            name
            for name in object.__dir__(self)
            if isinstance(inspect.getattr_static(cls, name, None), property) or hasattr(self, name)
        ]

    # -- attributes of a fit -------------------------------------------------------------------

    @property
    def classes_(self) -> Array:
        """Labels, sorted."""
        return self._fitted().classes

    @property
    def prior_(self) -> ClassModel:
        """Prior: hyper-parameters as arrays."""
        return self._fitted().posterior.prior

    @property
    def model_(self) -> ClassModel:
        """Posterior in closed form: hyper-parameters as arrays."""
        return self._fitted().closed_form.model

    @property
    def stats_(self) -> ClassStats:
        """Sufficient statistics of all rows seen."""
        return self._fitted().closed_form.stats

    @property
    def encoder_(self) -> Any:
        """Encoder of the columns: categories, bins, a vocabulary."""
        return self._fitted().reader.encoder

    @property
    def inference_(self) -> str:
        """Method of inference: "closed form", "nuts", ..."""
        return self._fitted().training.inference

    @property
    def n_rows_seen_(self) -> int:
        """Number of rows with a positive weight."""
        return self._fitted().training.n_rows

    @property
    def n_unlabelled_(self) -> int:
        """Number of rows without a label."""
        return self._fitted().training.n_unlabelled

    @property
    def unlabelled_weight_(self) -> float | None:
        """Mean weight of a row without a label after ``unlabelled="weighted"``; else None."""
        return self._fitted().training.unlabelled_weight

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X."""
        n_features = self._fitted().reader.n_features
        if n_features is None:
            raise AttributeError(f"{type(self).__name__} reads documents, which have no columns")
        return n_features

    @property
    def feature_names_in_(self) -> Array:
        """Names of the columns of X, if these had names."""
        names = self._fitted().reader.names
        if names is None:
            raise AttributeError(f"{type(self).__name__} was fitted to X without column names")
        return names

    coef_ = _of_fit("coef_", "Weights of the linear rule")
    intercept_ = _of_fit("intercept_", "Intercepts of the linear rule")
    class_count_ = _of_fit("class_count_", "Weights of the rows of each class")
    class_log_prior_ = _of_fit(
        "class_log_prior_",
        "Logs of the posterior means of the class weights",
    )
    theta_ = _of_fit("theta_", "Posterior means of the class means")
    means_ = _of_fit("means_", "Posterior means of the class means")
    var_ = _of_fit("var_", "Posterior means of the variances")
    covariance_ = _of_fit("covariance_", "Posterior mean of the covariance")
    feature_log_prob_ = _of_fit(
        "feature_log_prob_",
        "Logs of the posterior means of the probabilities",
    )

    # -- learning ------------------------------------------------------------------------------

    def fit(
        self,
        X: RowsLike,
        y: Labels,
        sample_weight: PerRow = None,
        *,
        groups: PerRow = None,
        unlabelled: Unlabelled | None = None,
        **sample_options: Any,
    ) -> Self:
        """Fit the posterior of all parameters to rows.

        Parameters
        ----------
        X : (N, D)
            NaN is a missing cell. With a full covariance such rows are refused.
        y : (N,)
            Labels of any sortable type. With `unlabelled` labels may be missing: masked
            (`numpy.ma`), None, NaN or NA, or -1 among numbers, which is scikit-learn's
            convention. (-1 is refused where it may be a label: next to a single other label,
            another negative one, or None or NaN. In a masked array, and without `unlabelled`,
            -1 always is a label.)
        sample_weight : (N,), optional
            Non-negative weights that multiply the statistics: an integer weight is that many
            equal rows, a weight of 0 is no row. Quantile bins count a row once, and
            leave-one-out (``prior="loo"``, `loo`) takes away the whole row. For them repeat the
            rows of a table of counts: ``X.loc[X.index.repeat(count)]``.
        groups : (N,), optional
            Subject, site or source of each row, any labels that can be hashed. Whole groups are
            left out wherever leave-one-out scores choose (``prior="loo"``, halves of label trees)
            and in `loo`, `predict_set` and the report. None: each row is a group of its own, but
            for exact copies in a table of real numbers (`CopiedRowsWarning`).
        unlabelled : {"weighted", "ignore"}, optional
            Use of rows without a label. ``"weighted"``: in closed form, each row counts by its
            class probabilities times 0, .01, .1 or 1; predictions are averaged over these weights
            by the leave-one-out probability of the known labels (Notes). ``"ignore"``: the fit to
            the labelled rows. None: an error.
        **sample_options
            For a classifier without a closed form, options of NUTS: ``draws``, ``tune``,
            ``chains``, ``random_state``, ``nuts_sampler``, ``progressbar``, and those of the
            sampler (``target_accept``); see `sample_posterior`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the model cannot take the input; the message names the row and column.

        Warns
        -----
        SamplingWarning
            If NUTS reports divergences, or the chains disagree or are too short.
        UserWarning
            With ``prior="empirical"``, if the evidence is largest at the bound of a factor; with
            `unlabelled`, if rows are unlike all labelled ones.
        ColumnWarning
            If columns of a data frame look like row numbers, names, or numbers and dates as text,
            hold one value, or are two numbers that became Normal
            (`bayesgen.encoding.suspects.find`).

        Notes
        -----
        A classifier with a closed form is fitted by it, all others by NUTS. For a closed form
        checked by NUTS: ``clf.with_posterior(clf.sample_posterior())``. Default priors that depend
        on the data are set from all rows; `prior` says how their strength is chosen.
        Missing cells and labels are assumed missing at random: given the observed values,
        missingness does not depend on the missing ones.

        ``unlabelled="weighted"``: class probabilities of rows without a label are found by five
        passes from the labelled rows, and again without each of these (60 groups of them, if they
        are more; of many rows without a label 4000 over the number of classes choose the weight).
        The prior is that of the labelled rows; categories, bins and words are known from all. On
        open tables with 5 and 10 labels per class it seldom raises log loss, and weight 1 often
        does by much (``tests/benchmarks/unlabelled.py``). The labels are guesses, so intervals,
        `predict_posterior`, evidence, leave-one-out and methods that add rows are
        refused. ``unlabelled_weight_`` is the mean weight; estimates use the statistics at it.
        A discriminative classifier cannot learn from these rows.

        A reference to the rows, not a copy, is kept if they are at most 64 MiB, for `typicality`
        and `predict_set`. Copies, pickles and model files hold them only where intervals
        need them: of pools and of `MetaTreeForest`.
        """
        learner = self._learner()
        if unlabelled == "ignore":
            if groups is not None:
                raise ValueError("groups= goes with labels: leave rows without one out first")
            X, y, sample_weight = rows_with_label(X, y, sample_weight)
        self.fitted_ = learner.fit(X, y, sample_weight, sample_options, unlabelled, groups)
        self._advise()
        return self

    def _advise(self) -> None:
        """Warn of a fit that its user should know of."""

    @available(_adds_up)
    def partial_fit(
        self,
        X: RowsLike,
        y: Labels,
        classes: ArrayLike | None = None,
        sample_weight: PerRow = None,
    ) -> Self:
        """Add rows; the result is that of one fit with the stated prior to all rows so far.

        Parameters
        ----------
        X, y, sample_weight
            Rows, labels and weights in the form that `fit` takes.
        classes : array, optional
            All labels that may come. Without it, new labels are added as they appear; a class
            without rows keeps its prior.
        """
        learner, before = self._learner(), self.__dict__.get("fitted_")
        learner.refuse_draws("partial_fit", before)
        gathered = None if before is None else Gathered.of(before)
        self.fitted_ = learner.settle(learner.gather(gathered, X, y, sample_weight, classes))
        return self

    def merge(self, other: Self) -> Self:
        """Add another fitted classifier's rows, through its statistics alone; returns self.

        Workers and sites fit on their own rows and merge; the result is that of one fit with the
        stated prior to all rows. `other` must have the same constructor arguments.
        """
        if type(other) is not type(self):
            raise TypeError(
                f"cannot merge {type(other).__name__} into {type(self).__name__}: give a fitted "
                f"{type(self).__name__}"
            )
        mine, theirs = self._fitted(), other._fitted()
        learner = self._learner()
        for each in (mine, theirs):
            learner.refuse_draws("merge", each)
        refuse_other_arguments(self.get_params(deep=False), other.get_params(deep=False))
        gathered = learner.merge(Gathered.of(mine), Gathered.of(theirs))
        self.fitted_ = learner.settle(gathered)
        return self

    def forget(self, X: RowsLike, y: Labels, sample_weight: PerRow = None) -> Self:
        """Remove rows that were fitted; the result is that of one fit to the other rows.

        That fit has the stated prior, as after `partial_fit`.
        Only the statistics are kept, so a removal is refused only if the statistics show that it is
        impossible: whether the rows were really fitted cannot be checked. Classes, categories and
        tokens stay known when their last row goes, as if they had been declared.

        Parameters
        ----------
        X, y, sample_weight
            Rows, labels and weights in the form that `fit` takes.

        Raises
        ------
        ValueError
            If the rows hold a label, category or token that was never fitted; if all rows or more
            would be removed; or after `with_posterior`.

        Warns
        -----
        UserWarning
            If the rows hold almost all the variance of a Gaussian feature, so that only rounding
            error remains.

        Examples
        --------
        >>> import bayesgen as bg
        >>> X, y = [[1.0], [1.4], [4.0], [4.4], [9.0]], ["a", "a", "b", "b", "b"]
        >>> clf = bg.GaussianNB(prior="default").fit(X, y).forget([[9.0]], ["b"])
        >>> rest = bg.GaussianNB(prior="default").fit(X[:4], y[:4])
        >>> round(clf.log_evidence_ - rest.log_evidence_, 9)
        0.0
        """
        learner = self._learner()
        learner.refuse_draws("forget", self.__dict__.get("fitted_"))
        self.fitted_ = learner.settle(learner.forget(self._fitted(), X, y, sample_weight))
        return self

    def with_posterior(self, tree: Any, X: RowsLike = None, y: Labels = None) -> Self:
        """Return a classifier whose posterior is these draws; all methods work from there.

        The draws come from a PyMC model that has the parameters of this classifier: `to_pymc` with
        your own priors (`pymc.do`), or a model written by hand. This method does not fit or sample.

        Parameters
        ----------
        tree : xarray.DataTree, Dataset, or {name: array}
            The result of `pymc.sample`, or its group ``posterior``: the parameters and ``pi``, the
            class weights, with the names and dims of ``posterior_``. What `arviz.extract` has
            stacked is one chain. Arrays are (chain, draw, class, ...), or (draw, class, ...) of one
            chain. One point, such as that of `pymc.find_MAP`, is one draw. The attributes of the
            sampler stay in ``posterior_.attrs``.
        X, y : labelled rows, optional
            The rows behind the draws. They define classes, columns, encodings and ``prior_``.
            Default: the rows of the fit.

        Returns
        -------
        classifier
            A new classifier with the same arguments.

        Raises
        ------
        ValueError
            If a parameter is absent, has other dims or labels, or has draws that are not finite;
            or if the classifier is not fitted and there are no rows.

        Warns
        -----
        UserWarning
            If there is one draw, which has no spread.

        Notes
        -----
        Joint densities are averaged over draws, then normalised. `loo` is Pareto-smoothed
        importance sampling. Evidence, `partial_fit`, `merge` and `draw_posterior` need the closed
        form and are refused.

        Examples
        --------
        >>> import bayesgen as bg
        >>> X, y = [[1.0], [1.4], [4.0], [4.4]], ["a", "a", "b", "b"]
        >>> clf = bg.GaussianNB().fit(X, y)
        >>> clf.with_posterior(clf.draw_posterior()).predict([[1.1], [4.2]])
        array(['a', 'b'], dtype='<U1')
        """
        clf = copy.copy(self)
        clf.fitted_ = self._learner().given(self.__dict__.get("fitted_"), tree, X, y)
        return clf

    # -- new rows ------------------------------------------------------------------------------

    def predict_joint_log_proba(
        self, X: RowsLike, method: Method = "posterior_predictive", class_prior: ClassPrior = None
    ) -> Array:
        """Return log p(y = c, x) (N, C), each row on its own.

        Parameters
        ----------
        X : (N, D)
            Rows in memory. For a dask array, ``X.map_blocks(clf.predict_proba, dtype=float,
            chunks=(X.chunks[0], (n_classes,)))`` predicts block by block.
        method : {"posterior_predictive", "posterior_mean", "map", "mle"}
            Integrate the parameters out, or plug one estimate in.
        class_prior : array (class,) or {label: weight}, optional
            Class weights that replace the fitted ones; must sum to 1.

        Warns
        -----
        MonteCarloWarning
            If the posterior is draws (of NUTS, or of `with_posterior`), and they are too few for
            some rows.
        """
        self._fitted().refuse_if_discriminative("predict_joint_log_proba")
        return log_joint(self._fitted(), X, method, class_prior, "density")

    def predict_log_proba(
        self, X: RowsLike, method: Method = "posterior_predictive", class_prior: ClassPrior = None
    ) -> Array:
        """Return the log (N, C) of `predict_proba`."""
        return log_proba(self._fitted(), X, method, class_prior)

    def predict_proba(
        self, X: RowsLike, method: Method = "posterior_predictive", class_prior: ClassPrior = None
    ) -> Array:
        """Return p(y = c | x) (N, C), by default the exact posterior predictive.

        It is a ratio of expectations, E[pi_c p(x | theta_c)] / sum_d E[pi_d p(x | theta_d)], for
        each row on its own. It is neither a plug-in nor the mean over draws of p(y | x, theta).

        Parameters
        ----------
        X, method, class_prior
            Rows, estimate and class weights: see `predict_joint_log_proba`.

        Raises
        ------
        ValueError
            If the estimate that `method` plugs in does not exist (naming class and feature), or
            if a row has probability 0 under every class.

        Notes
        -----
        A mode depends on the coordinates in which the density is written. ``"map"`` is the mode in
        the parameters of ``posterior_``: mu and sigma2, mu and Sigma, probabilities, rates; without
        a closed form, in the free variables of the PyMC graph. `pymc.find_MAP` on `to_pymc` seeks
        the mode in the free variables of the graph. For `LinearDiscriminant` and
        `QuadraticDiscriminant` these are a triangular factor of the precision and a scaled mean,
        whose mode is another Sigma: the two estimates differ. The posterior predictive does not
        depend on coordinates.
        """
        log_p = log_proba(self._fitted(), X, method, class_prior)
        return np.exp(log_p, out=log_p)

    def predict(
        self, X: RowsLike, method: Method = "posterior_predictive", class_prior: ClassPrior = None
    ) -> Array:
        """Return the most probable labels (N,)."""
        fitted = self._fitted()
        return fitted.classes[np.argmax(log_proba(fitted, X, method, class_prior), axis=1)]

    def decision_function(
        self, X: RowsLike, method: Method = "posterior_predictive", class_prior: ClassPrior = None
    ) -> Array:
        """Return log-odds (N,) of ``classes_[1]`` for two classes, else log p(y = c | x) (N, C)."""
        fitted = self._fitted()
        joint = log_joint(fitted, X, method, class_prior)
        with np.errstate(invalid="ignore"):  # impossible rows are refused below
            log_odds = joint[:, 1] - joint[:, 0] if len(fitted.classes) == 2 else None
        log_p = log_class_probability(joint, method)  # refuses impossible rows
        return log_p if log_odds is None else log_odds

    @available(partial(_no_density, "score_samples"))
    def score_samples(
        self, X: RowsLike, method: Method = "posterior_predictive", class_prior: ClassPrior = None
    ) -> Array:
        """Return log p(x) (N,) of the mixture of classes with their weights; low for unusual rows.

        A discriminative classifier does not have this method, as it does not model x.
        """
        return log_sum_exp(log_joint(self._fitted(), X, method, class_prior, "density"))

    @available(partial(_no_density, "simulate"))
    def simulate(
        self,
        n: int,
        y: Labels = None,
        random_state: Seed = 0,
        source: Literal["predictive", "draw"] = "predictive",
    ) -> tuple[Any, Array]:
        """Simulate new labelled rows.

        Parameters
        ----------
        n : int
        y : label or array (n,) of labels, optional
            None draws them from the class weights.
        random_state : int or numpy.random.Generator
        source : {"predictive", "draw"}
            Fresh parameters for every row (the posterior predictive), or one posterior draw
            for all rows.

        Returns
        -------
        X, y
            Rows in the form that the classifier takes, and their labels.
        """
        return tables.simulated(self._fitted(), n, y, random_state, source)

    def linear_form(self, method: Method = "posterior_predictive") -> LinearForm:
        """Return the weights (w, w0) of the rule, if it is linear in the features.

        Returns
        -------
        LinearForm
            Two classes: w (D,), w0 a number. More: w (C, D), w0 (C,).

        Raises
        ------
        NotLinearError
            If the rule is not linear, with the reason: a full predictive is often curved although
            its plug-in is linear.
        """
        return plug_ins.linear_form(self._fitted(), method)

    def estimates(
        self, method: Method = "posterior_mean", *, training: TrainingRows = None
    ) -> "xr.Dataset":
        """Return the estimate of every parameter that ``predict_proba(X, method=...)`` plugs in.

        Without a closed form ``"map"`` and ``"mle"`` are the local optimum that is reached from the
        posterior mean: of the posterior density of the free variables of the PyMC graph, and of
        the likelihood. They are computed on first use.

        Parameters
        ----------
        method : {"posterior_mean", "map", "mle"}
        training : (X, y) or (X, y, sample_weight), optional
            The training rows, for a loaded model without a closed form, which keeps none. Later
            calls, also of `predict_proba`, use what was found.

        Returns
        -------
        xarray.Dataset
            The parameters by their names in ``posterior_``, with dims and labels. For `GaussianNB`:
            ``mu`` and ``sigma2`` (class, feature), and the class weights ``pi`` (class).

        Raises
        ------
        ValueError
            If the estimate does not exist (naming class and feature); if a coordinate of the graph
            ends 20 posterior standard deviations from the posterior mean; if the training rows are
            needed, and are not there.

        Examples
        --------
        >>> import bayesgen as bg
        >>> clf = bg.BernoulliNB().fit([[1, 0], [1, 1], [0, 1]], ["a", "a", "b"])
        >>> clf.estimates("mle")["theta"].sel({"class": "a"}).values
        array([1. , 0.5])
        """
        return plug_ins.estimates(self._fitted(), method, training)

    # -- how sure it is ------------------------------------------------------------------------

    @named_rows
    def predict_interval(
        self,
        X: RowsLike,
        prob: float | None = None,
        kind: "KindName | None" = None,
        draws: int | None = None,
        class_prior: ClassPrior = None,
        random_state: Seed = 0,
        training: TrainingRows = None,
    ) -> "ResultTable":
        """Return credible intervals of the class probabilities p(y = c | x, theta).

        The interval is the spread of the class probability over the posterior of theta. It is not
        centred on `predict_proba`, which is p(y | x, D) with theta integrated out. The result
        holds both.

        Parameters
        ----------
        X : (N, D)
        prob : float in (0, 1), optional
            Posterior probability of the interval; default ``az.rcParams["stats.ci_prob"]``.
        kind : {"eti", "hdi"}, optional
            Equal tails, or the shortest interval of the probability; default
            ``az.rcParams["stats.ci_kind"]``.
        draws : int, optional
            Draws of theta. None: 2000, of documents 500, of a posterior by MCMC all; of a pool and
            of label trees 100.
        class_prior : array (class,) or {label: weight}, optional
            Class weights that replace the fitted ones, and are not uncertain.
        random_state : int or numpy.random.Generator
            Seed of the draws. By default each call draws the same numbers.
        training : (X, y) or (X, y, sample_weight), optional
            The training rows, for pools and label trees that no longer have them (from a file).

        Returns
        -------
        xarray.Dataset, which prints as a table
            ``interval`` (obs_id, class, bound); ``log_odds``, its ends as log p/(1 - p);
            ``predictive`` (obs_id, class), p(y | x, D); (obs_id) ``error``, the standard error of
            the posterior probability below an end, sqrt(q (1 - q) / effective number of draws).
            ``attrs["joint"]``: whether a draw is one theta for all rows.

        Notes
        -----
        A row has the same interval alone and among others, and `predict_posterior` and
        `predict_uncertainty` use the same draws.

        Coverage is nominal for rows x that do not depend on theta, for example points of a grid. A
        row drawn from the same theta is evidence about it, which the interval does not use: with
        few training rows it covers less (two classes of Poisson counts in 100 columns with
        Gamma(1, 1) priors: .83 in place of .90 with 40 training rows, .65 with 10).

        ``predictive`` may lie outside the interval. This is not an error: it is a ratio of
        expectations, E p(y, x | theta) / E p(x | theta), in which those theta count most that make
        the row likely (6 % of the rows of simulated tables of 5 to 80 rows per class; more with few
        rows, and in rows unlike the training rows, see `typicality`).

        A draw of a pool, or of label trees, gives each training row a random weight, Gamma with
        mean 1 and variance 4/3, and fits again, with the same structures; a pool takes one draw of
        its members' parameters and of its exponents with them.

        Draws of theta are made once per fit and `random_state`, and kept while they take at most
        256 MiB. Where they take more (large vocabularies), and where a row alone costs less (more
        than 30 columns of `QuadraticDiscriminant`, 200 of `LinearDiscriminant`), the densities of
        each row are drawn without theta; rows then have no joint distribution.

        Examples
        --------
        >>> import bayesgen as bg
        >>> X = [[1, 1]] + 4 * [[1, 0]] + 4 * [[0, 1]] + 4 * [[0, 0]]
        >>> clf = bg.BernoulliNB().fit(X, [1] + 12 * [2])
        >>> table = clf.predict_interval([[1, 1]], prob=0.9)
        >>> table["interval"].sel({"class": 1}).values.round(1)
        array([[0.1, 0.7]])
        >>> float(table["predictive"].sel({"class": 1})[0].round(3))
        0.342
        """
        request = IntervalRequest.of(prob, kind)
        return tables.intervals(
            self._fitted(), X, request, draws, class_prior, random_state, training
        )

    @named_rows
    def predict_posterior(
        self,
        X: RowsLike,
        draws: int | None = None,
        class_prior: ClassPrior = None,
        random_state: Seed = 0,
        training: TrainingRows = None,
    ) -> "xr.DataTree":
        """Draw the class probabilities p(y = c | x, theta) of rows.

        Parameters
        ----------
        X : (N, D)
        draws, class_prior, random_state, training
            As in `predict_interval`.

        Returns
        -------
        xarray.DataTree
            ``predictions``: ``class_probability`` (chain, draw, obs_id, class). A draw is one
            possible rule, and rows can be compared within it, if ``attrs["joint"]``. The mean over
            draws is the ``mean`` of `predict_uncertainty`, and another number than
            `predict_proba`, which is a ratio of expectations (of a pool: of its predictives).

        Examples
        --------
        >>> import bayesgen as bg
        >>> clf = bg.GaussianNB().fit([[1.0], [1.4], [4.0], [4.4]], ["a", "a", "b", "b"])
        >>> clf.predict_posterior([[2.0], [3.0]])["predictions"]["class_probability"].dims
        ('chain', 'draw', 'obs_id', 'class')
        """
        return tables.posterior(self._fitted(), X, draws, class_prior, random_state, training)

    @named_rows
    def predict_uncertainty(
        self,
        X: RowsLike,
        unit: Literal["nats", "bits"] = "nats",
        draws: int | None = None,
        class_prior: ClassPrior = None,
        random_state: Seed = 0,
        training: TrainingRows = None,
    ) -> "ResultTable":
        """Return the entropy of each row's label, and the part that more rows could remove.

        total = aleatoric + epistemic: the entropy of the mean class probabilities, the mean
        entropy at known theta, and the information of the label about theta, all three under one
        distribution of theta. All three assume the model: none allows for a wrong one.

        Parameters
        ----------
        X : (N, D)
        unit : {"nats", "bits"}
        draws, class_prior, random_state, training
            As in `predict_interval`.

        Returns
        -------
        xarray.Dataset, which prints as a table
            (obs_id) ``total``, ``aleatoric``, ``epistemic``; (obs_id, class) ``mean``, ``sd`` of
            the draws of `predict_posterior` (this mean is not `predict_proba`), and ``top``, the
            probability that c is the most probable class; ``error``, in nats: the largest standard
            error of these (of ``sd``, of its square).

        Examples
        --------
        >>> import bayesgen as bg
        >>> X = [[1, 1]] + 4 * [[1, 0]] + 4 * [[0, 1]] + 4 * [[0, 0]]
        >>> clf = bg.BernoulliNB().fit(X, [1] + 12 * [2])
        >>> table = clf.predict_uncertainty([[1, 1]])
        >>> {k: round(float(table[k][0]), 2) for k in ("total", "aleatoric", "epistemic")}
        {'total': 0.64, 'aleatoric': 0.56, 'epistemic': 0.08}
        """
        return tables.uncertainty(
            self._fitted(), X, unit, draws, class_prior, random_state, training
        )

    @named_rows
    def explain(
        self,
        X: RowsLike,
        classes: ArrayLike | None = None,
        class_prior: ClassPrior = None,
        random_state: Seed = 0,
    ) -> "xr.Dataset":
        r"""Return each feature's contribution to the log-odds of two classes.

        Contributions and the intercept add up to the log-odds of `predict_proba`. The intercept is
        the log-odds of a row without known cells. A missing cell contributes 0.

        Parameters
        ----------
        X : (N, D)
        classes : (label, label) or label, optional
            The log-odds are those of the first label against the second. One label: against the
            most probable other class of each row. None: ``classes_[1]`` against ``classes_[0]``,
            like `decision_function`; with more classes the most probable of each row against its
            runner-up.
        class_prior : array (class,) or {label: weight}, optional
            Class weights that replace the fitted ones: they change the intercept.
        random_state : int or numpy.random.Generator
            Seed of orders. A row has the same contributions alone and among others.

        Returns
        -------
        xarray.Dataset
            In nats. (obs_id, feature) ``predictive``, the contributions, and ``error``, their Monte
            Carlo standard errors; (obs_id) ``predictive_intercept``, ``predictive_log_odds``, and
            the classes, ``label`` and ``against``. With words in a pool, and for
            `BayesianLogisticRegression`: ``rest`` (obs_id), what the contributions do not add up
            to. The features of `MarkovNB` are the n-grams that X shows; of texts in a pool, words.

        Raises
        ------
        ValueError
            If a label is not known, or the table would be too large.
        NotImplementedError
            If the model has no predictions for rows with missing cells.

        Notes
        -----
        *Chain rule.* For an order of the columns, a contribution is the log-odds with a cell less
        the log-odds without it, given the cells before it and with all later ones integrated out.
        It is averaged over random orders, each with its reverse: at least 4 such pairs, until
        the standard error is below 5 % of the row's largest contribution, at most 64. The mean
        over all orders is the Shapley value. If columns are independent given the class
        once theta is integrated out, all orders agree, and ``error`` is 0.

        *Documents.* A contribution of `MultinomialNB` and `MarkovNB` is the mean over all orders of
        the document's tokens, in closed form. In a pool the n-grams of a word are added up, times
        the mean exponents of the members, and a member that reads no tokens is one feature, with
        its name in parentheses.

        *Regression.* The contributions of `BayesianLogisticRegression` are posterior means of
        coefficients times standardised cells, for it has no predictions of incomplete rows.

        References
        ----------
        Castro, Gómez and Tejada (2009), Polynomial calculation of the Shapley value based on
        sampling.

        Examples
        --------
        >>> import bayesgen as bg
        >>> X = [[1, 1]] + 4 * [[1, 0]] + 4 * [[0, 1]] + 4 * [[0, 0]]
        >>> clf = bg.BernoulliNB().fit(X, [1] + 12 * [2])
        >>> table = clf.explain([[1, 1]], classes=(1, 2))
        >>> table["predictive"].values.round(3), table["predictive_intercept"].values.round(3)
        (array([[0.609, 0.609]]), array([-1.872]))
        """
        seed = int(generator(random_state).integers(2**63))
        return contributions.explain(self._fitted(), X, classes, class_prior, seed)

    # -- training rows, each without itself ----------------------------------------------------

    def loo_log_joint(
        self,
        X: RowsLike,
        y: Labels,
        sample_weight: PerRow = None,
        *,
        groups: PerRow = None,
        partial: bool = False,
    ) -> Array:
        r"""Return log p(y = c, x_i \| D without row i) (N, C) of the training rows.

        Parameters
        ----------
        X, y, sample_weight : the training rows
            The arguments that `fit` was given. They are checked against the statistics of the fit.
        groups : (N,) or int, optional
            Labels of groups (sites, subjects, folds): each row is scored without its whole group.
            An integer K makes K folds, row i in fold ``i % K``.
        partial : bool
            True if `X` and `y` are some of the training rows, for example a sample of a stream.
            Their statistics are checked to be part of those of the fit.

        Returns
        -------
        (N, C)
            Normalised over the classes it is p(y = c | x_i, D without row i). A row is left out
            with its whole weight; a row of weight 0, or without a label, never counted.

        Raises
        ------
        ValueError
            If these are not the training rows.

        Notes
        -----
        One pass over the rows, at the cost of a prediction. Forests that rows choose
        (``structure="tree"``, ``"map"``) are chosen again without each row. Other choices
        from all rows stay as they are: means and scales of default priors; strengths and root
        weights that are None, or of ``prior="loo"`` and ``"empirical"``; ends of bins, categories,
        vocabularies. So the score is a little too
        high; refits of all of it, or rows that were held out, tell how much. After a fit by draws,
        Pareto-smoothed importance sampling.

        Examples
        --------
        >>> import bayesgen as bg
        >>> X, y = [[0, 1], [1, 1], [1, 0], [0, 0]], ["a", "a", "b", "b"]
        >>> joint = bg.BernoulliNB().fit(X, y).loo_log_joint(X, y)
        >>> np.exp(joint[0]).round(4)  # 2/5 * 1/3 * 2/3 and 3/5 * 1/2 * 1/4
        array([0.0889, 0.075 ])
        """
        fitted = self._fitted()
        rows = training_rows(fitted, X, y, sample_weight, partial, groups)
        log_joint: Array = fitted.posterior.log_joint_without(*rows)[0]
        return log_joint

    def loo(
        self,
        X: RowsLike,
        y: Labels,
        target: Literal["label", "joint"] = "label",
        sample_weight: PerRow = None,
        *,
        groups: PerRow = None,
        partial: bool = False,
    ) -> "ELPDData":
        """Return the leave-one-out score of the fit as ArviZ's ELPDData.

        Parameters
        ----------
        X, y, sample_weight, groups, partial
            Training rows, their weights, groups and whether they are a sample: see
            `loo_log_joint`.
        target : {"label", "joint"}
            Sum over rows of log p(y_i | x_i, D without row i), by which to choose a classifier; or
            of log p(x_i, y_i | D without row i), in which the features outweigh the label.

        Returns
        -------
        arviz_stats ELPDData
            ``elpd``, ``se``, ``p`` (effective number of parameters: the score with the row less
            the score without), ``elpd_i`` (obs_id) of the rows that have a label and a weight.
            `arviz.compare` and `arviz.plot_compare` take it with others of the same rows and
            target. After a fit by draws also ``pareto_k``, and ``warning`` where it is too large.

        Notes
        -----
        The whole row is left out, features and label, with its whole weight. In the sums a row
        counts once, whatever its weight. For a generative model ``az.loo(tree, var_name="label")``
        leaves out the label alone: x_i is then still evidence about theta.

        Examples
        --------
        >>> import bayesgen as bg
        >>> X, y = bg.datasets.load_penguins()
        >>> X, y = X[["bill_length_mm"]].dropna(), y[X["bill_length_mm"].notna()]
        >>> round(bg.GaussianNB().fit(X, y).loo(X, y).elpd, 2)
        -171.96
        """
        return loo(self._fitted(), X, y, target, sample_weight, groups, partial)[0]

    @available(partial(_no_density, "typicality"))
    @named_rows
    def typicality(
        self, X: RowsLike, training: TrainingRows = None, *, partial: bool = False
    ) -> "xr.Dataset":
        """Return the tail probability of each row among rows like the training rows.

        It is the rank of the row's density among the exact leave-one-out densities of the training
        rows. A small number means that the row is like none of them. The densities of
        `score_samples` do not have a fixed scale.

        Parameters
        ----------
        X : (N, D)
        training : (X, y) or (X, y, sample_weight), optional
            The training rows. Needed once, and only if the classifier does not know their scores:
            after streams, merges, `partial_fit` and `forget`, with more than 64 MiB of rows, and
            after loading a model file or pickle that was made before the first call.
        partial : bool
            True if `training` is a sample of the training rows, for example of a stream.

        Returns
        -------
        xarray.Dataset
            ``by_class`` (obs_id, class), the tail probability of log p(x | y = c, D) among log
            p(x_i | y_i = c, D without row i) of the training rows of class c: (1 + number of them
            that are not larger) / (1 + number of all), a row of weight w counted w times;
            ``overall`` (obs_id), the same for log p(x | D) among all training rows.

        Raises
        ------
        AttributeError
            If the classifier is discriminative: it does not model x.
        ValueError
            If the training rows are neither known nor given, or are not those of the fit.

        Warns
        -----
        MonteCarloWarning
            After a fit by draws, if Pareto-smoothed importance sampling cannot leave some rows out.

        Notes
        -----
        For new rows drawn like the training rows, each number is nearly uniform on
        steps of 1 / (n + 1): the scores rest on one row less than the density of the new row. Tied
        densities, for example of discrete rows, make it larger. For a class without training rows
        every row is typical. Densities of rows with different missing cells, or of texts of
        different lengths, do not have a common scale: a row with few cells is typical. The scores
        are computed at the first call, in one pass, and kept. After a fit by draws the density of a
        row far from all others rests on few of them; its rank is about the lowest in any case.

        Examples
        --------
        >>> import bayesgen as bg
        >>> X, y = bg.datasets.load_penguins()
        >>> X = X[["bill_length_mm", "bill_depth_mm"]].dropna()
        >>> clf = bg.QuadraticDiscriminant().fit(X.to_numpy(), y[X.index])
        >>> found = clf.typicality([[39.0, 18.0], [39.0, 30.0]])
        >>> found["by_class"].sel({"class": "Adelie"}).values.round(3)
        array([0.974, 0.007])
        >>> found["overall"].values.round(3)
        array([0.98 , 0.003])
        """
        left_out = self._left_out(training, partial)
        if not len(left_out.of_class):
            raise NotImplementedError("typicality needs a member with a density of rows")
        return typicality(self.fitted_, X, left_out)

    @named_rows
    def predict_set(
        self,
        X: RowsLike,
        coverage: float = 0.9,
        by_class: bool = False,
        training: TrainingRows = None,
        *,
        partial: bool = False,
    ) -> "ResultTable":
        """Return a set of labels for each row; a share of about `coverage` contains the true one.

        This is conformal prediction from exact leave-one-out. A label is in the set if its
        probability is at least the limit that a share `coverage` of the training labels reached
        without their row. The share is counted, so it nearly holds even if the probabilities are
        wrong.

        Parameters
        ----------
        X : (N, D)
        coverage : float in (0, 1)
        by_class : bool
            False: one limit, so that `coverage` holds on average over classes. True: a limit per
            class (Mondrian), so that it holds within each, at the price of larger sets.
        training, partial
            The training rows, if the classifier does not hold their scores, and whether they are a
            sample: see `typicality`.

        Returns
        -------
        xarray.Dataset, which prints as a table
            ``included`` (obs_id, class) bool; ``size`` (obs_id), the number of labels, 0 if none is
            probable enough; ``limit`` (class), the smallest probability of a label in a set.

        Raises
        ------
        ValueError
            If the training rows are neither known nor given, or are not those of the fit.

        Warns
        -----
        MonteCarloWarning
            After a fit by draws, if Pareto-smoothed importance sampling cannot leave some rows out.

        Notes
        -----
        Coverage is an average: it is not guaranteed for a particular row, nor for new
        rows that are drawn differently from the training rows. For rows drawn alike, split
        conformal sets cover with at least the stated probability whatever the model; these compare
        a new row, under the posterior of all rows, with training rows under a posterior of one row
        less (the jackknife). They cover as stated, up to 1 / (n + 1), if one row more or less
        hardly changes the probabilities, for example under a posterior of many rows. In exchange,
        no row needs to be held out. For a guarantee without this condition, calibrate on held-out
        rows. With fewer than coverage / (1 - coverage) rows (of a class, with `by_class`) every
        label is in.

        Examples
        --------
        >>> import bayesgen as bg
        >>> X, y = bg.datasets.load_penguins()
        >>> X = X[["bill_length_mm"]].dropna()
        >>> clf = bg.GaussianNB().fit(X.to_numpy(), y[X.index])
        >>> found = clf.predict_set([[38.0], [43.0], [49.0]], coverage=0.95)
        >>> found["included"].to_pandas()
        class   Adelie  Chinstrap  Gentoo
        obs_id
        0         True      False   False
        1         True      False    True
        2        False       True    True
        """
        coverage = check_coverage(coverage)
        left_out = self._left_out(training, partial)
        joint = log_joint(self.fitted_, X)
        return prediction_sets(left_out, joint, self.classes_, coverage, by_class)

    def _left_out(self, training, partial: bool) -> LeftOut:
        """Leave-one-out scores of the training rows, kept."""
        scores = left_out_scores(self._fitted(), training, partial)
        self.fitted_ = self.fitted_.with_training(scores=scores)
        return scores

    # -- the posterior -------------------------------------------------------------------------

    @property
    def log_evidence_(self) -> float:
        """log p(X, y) of the training rows, in nats, with all parameters integrated out.

        It is conditional on the hyper-parameters (``prior_``) and on bins. It does not allow for
        defaults and a `prior` that were chosen from the same rows. If the same rows have chosen the
        forest (``structure="tree"``, ``"map"``), NoPosteriorError is raised.
        """
        posterior = self._fitted().closed_form
        if self.fitted_.training.unlabelled_weight:
            self.fitted_.refuse_estimated_weights("the evidence")
        if why := posterior.prior.family.no_evidence:
            raise NoPosteriorError(f"the evidence is refused: {why}")
        return float(posterior.prior.log_evidence(posterior.stats))

    @property
    def posterior_(self) -> "xr.DataTree":
        """Draws of the posterior: `draw_posterior` with its defaults, or the draws of the fit.

        The groups are ``posterior``, ``constant_data``, ``observed_data`` and ``fit``. With a
        closed form the draws are made on first use, with seed 0. Without one they are those of the
        fit.
        """
        draws: Any = self._drawn().training.draws
        return draws

    def _drawn(self) -> Fitted:
        """Return the fit with draws, which are made once."""
        fitted = self._fitted()
        if fitted.training.draws is None:
            fitted.closed_form  # noqa: B018 - raises where there is none
            self.fitted_ = fitted = fitted.with_training(draws=self.draw_posterior())
        return fitted

    def draw_posterior(
        self,
        draws: int = 500,
        chains: int = 4,
        random_state: Seed = 0,
        *,
        X: RowsLike = None,
        y: Labels = None,
        groups: Sequence[str] | None = None,
        replicate: Sequence[str] = ("label",),
    ) -> "xr.DataTree":
        """Draw all parameters independently from the closed-form posterior.

        Parameters
        ----------
        draws, chains : int
            Draws of each chain. Fewer, with a warning, if they would exceed 1 GiB.
        random_state : int or numpy.random.Generator
        X, y : labelled rows, optional
            Rows of ``observed_data``, ``log_likelihood`` and the predictive groups; usually the
            training rows.
        groups : sequence of str, optional
            Some of ``"prior"``, ``"prior_predictive"``, ``"posterior_predictive"``,
            ``"log_likelihood"``, ``"log_prior"``. Default: with rows ``log_likelihood`` and
            ``posterior_predictive``, else none.
        replicate : sequence of {"label", "indicators", "x"}
            Part of the rows that is observed, and drawn in the predictive groups; the other part is
            constant. ``"indicators"``: in addition to ``label``, a variable ``is_<class>`` of 0 and
            1 for each class, with its own log likelihood. Ask for them to score three or more
            classes.

        Returns
        -------
        xarray.DataTree
            Groups ``posterior`` (chain, draw, ...), ``constant_data`` (hyper-parameters of the
            prior), ``observed_data`` (the sufficient statistics, or the rows given), ``fit``, and
            those of `groups`:

            - ``prior``: draws from the prior, as many as from the posterior.
            - ``posterior_predictive``: ``label``, a class code, drawn from p(y | x, theta) given
              the row's x, and ``x`` drawn given the row's label. There is one ``x`` for each kind
              of columns, named like in `to_pymc`, and none for sparse or text X.
            - ``prior_predictive``: ``label`` drawn from the class weights pi, and ``x`` given
              that label.
            - ``log_likelihood``: ``joint``, log p(y, x | theta), and ``label``,
              log p(y | x, theta), which scores the observed ``label``. With indicators
              ``is_<class>``, log p(y = c | x, theta) in rows of the class c and log(1 - p) in
              the others, as large as ``label`` for each class.
            - ``log_prior``: log densities of ``pi`` and of the features' ``theta``.

            ``obs_id`` is the position of the row, like in `to_pymc`. In predictions it is the index
            of a data frame.

            Attributes of the tree say how and when it was made (``created_at``,
            ``inference_library``, ``route``, ``seed``, ...); attribute ``long_name`` of a
            variable says which distribution it was drawn from.

        Notes
        -----
        Two variables are called ``label``. Ours in ``posterior_predictive`` is the label *given
        the row's features*, which is what a classifier predicts and what ``log_likelihood`` of
        that name scores. ``pm.sample_posterior_predictive`` on the model of `to_pymc` draws
        ``label`` from pi, as its graph has it, whatever the features are.

        ArviZ uses the log likelihood with the name of the observed variable. Name it for functions
        that look at ``log_likelihood`` alone:
        ``az.loo(tree, var_name="label")``, and
        ``az.psense_summary(tree, likelihood_var_names="joint")``, which would add them up.

        Class codes of three or more classes have no order, and ArviZ reads them as numbers:
        ``az.loo_metrics``, ``az.loo_score``, ``az.loo_pit`` and their pictures depend on the
        alphabet. Score each class with ``replicate=["indicators"]``:
        ``az.loo_score(tree, var_name="is_<class>")`` is minus the class's Brier score,
        ``az.loo_metrics(tree, kind="acc", var_name="is_<class>")`` the accuracy of "is it of
        this class?", ``az.loo_pit(tree, var_names="is_<class>")`` its transform. With the codes,
        ``az.loo``, ``az.compare`` and ``az.plot_loo_pava(tree, var_names="label",
        data_type="categorical")`` are right.

        Examples
        --------
        >>> import bayesgen as bg
        >>> X, y = [[1.0], [1.4], [4.0], [4.4]], ["a", "a", "b", "b"]
        >>> tree = bg.GaussianNB().fit(X, y).draw_posterior(100, X=X, y=y)
        >>> sorted(tree["log_likelihood"].data_vars)
        ['joint', 'label']
        """
        fitted = self._fitted()
        fitted.closed_form  # noqa: B018 - raises where there is none
        asked = trees.asked_of(fitted, X, y, groups, replicate)
        return trees.draw_posterior(fitted, draws, chains, random_state, asked)

    def sample_posterior(
        self,
        draws: int = 1000,
        tune: int = 1000,
        chains: int = 4,
        random_state: int | None = None,
        nuts_sampler: Sampler = "nutpie",
        *,
        X: RowsLike = None,
        y: Labels = None,
        groups: Sequence[str] | None = None,
        replicate: Sequence[str] = ("label",),
        progressbar: bool = True,
        **options: Any,
    ) -> "xr.DataTree":
        """Draw all parameters by NUTS, with the names, dims and coords of ``posterior_``.

        The closed form is exact and takes milliseconds; NUTS checks it. Compiling the
        model takes 5 to 60 s the first time; a model of the same shape (as many classes and
        features, the same kind of prior) is compiled once per process.

        Parameters
        ----------
        draws, tune, chains : int
            Draws of each chain, after `tune` steps that are discarded.
        random_state : int, optional
        nuts_sampler : {"nutpie", "pymc", "numpyro", "blackjax"}
            The last two must be installed.
        X, y, groups, replicate
            Rows, groups of the tree and part of the rows to replicate: see `draw_posterior`.
        progressbar : bool
        **options
            To the sampler, e.g. ``target_accept=0.95``.

        Returns
        -------
        xarray.DataTree
            The groups of `draw_posterior`, and ``sample_stats``. The attributes ``divergences``,
            ``r_hat`` (the largest), ``ess`` (the smallest) and ``verdict`` say whether to trust the
            draws.

        Raises
        ------
        NotImplementedError, ValueError
            If the model averages over structures; `draw_posterior` draws from it exactly.
        ImportError
            If the sampler is not installed.

        Warns
        -----
        SamplingWarning
            If NUTS reports divergences, or the chains disagree or are too short.
        """
        from bayesgen.inference import nuts

        fitted = self._fitted()
        fitted.closed_form  # noqa: B018 - raises where there is none
        nuts.check(draws, tune, chains, nuts_sampler)
        options |= {"draws": draws, "tune": tune, "chains": chains, "random_state": random_state}
        return trees.sample_posterior(
            fitted,
            self.to_pymc(),
            trees.asked_of(fitted, X, y, groups, replicate),
            **options,
            nuts_sampler=nuts_sampler,
            progressbar=progressbar,
        )

    def posterior_groups(
        self,
        X: RowsLike,
        y: Labels,
        groups: Sequence[str] | None = None,
        *,
        replicate: Sequence[str] = ("label",),
        random_state: Seed = 0,
    ) -> "xr.DataTree":
        """Return ``posterior_`` with groups of labelled rows, for ArviZ.

        The posterior may come from any route, so conjugate, sampled and discriminative models can
        be compared on one target.

        Parameters
        ----------
        X, y : labelled rows
            For leave-one-out the rows of the fit.
        groups, replicate
            Groups of the tree and part of the rows to replicate: see `draw_posterior`. Default:
            ``log_likelihood`` and ``posterior_predictive``.
        random_state : int or numpy.random.Generator
            Seed of replicated labels and rows.

        Returns
        -------
        xarray.DataTree
            The groups of `draw_posterior`. ``log_likelihood`` has ``joint``, log p(y, x | theta),
            and ``label``, log p(y | x, theta); a discriminative model has the latter alone.
            Provenance is that of the posterior draws.

        Examples
        --------
        >>> import arviz as az
        >>> import bayesgen as bg
        >>> X, y = bg.datasets.load_penguins()
        >>> X, y = X[["bill_length_mm"]].dropna(), y[X["bill_length_mm"].notna()]
        >>> models = {"class": bg.GaussianNB(), "tied": bg.GaussianNB(variance="tied")}
        >>> trees = {k: m.fit(X, y).posterior_groups(X, y) for k, m in models.items()}
        >>> table = az.compare(trees, var_name="label")
        >>> sorted(table.index)
        ['class', 'tied']
        """
        return trees.posterior_groups(self._drawn(), X, y, groups, replicate, random_state)

    def to_pymc(
        self,
        X: RowsLike = None,
        y: Labels = None,
        *,
        likelihood: Literal["statistics", "rows"] = "statistics",
        observed: bool = True,
        X_new: RowsLike = None,
    ) -> "pm.Model":
        """Return the model as a PyMC graph: the same priors on the same data.

        Parameters
        ----------
        X, y : rows and labels, optional
            Rows that replace the statistics of the fit: of weight 1, with the encoding and the
            resolved prior of the fit. A fitted classifier keeps statistics, not rows: they are
            needed for ``likelihood="rows"``, and for either `likelihood` of a family that has no
            sufficient statistics. A classifier that is not fitted needs them: the graph is that of
            its prior and of these rows, and ``with_posterior(trace, X, y)`` takes the draws.
        likelihood : {"statistics", "rows"}
            Potentials of the sufficient statistics, so that a gradient costs the same for 10^3
            rows as for 10^8 (a family without them sums over rows);
            or the rows as given, ``label`` and ``x`` observed, row by row or cell by cell, so
            that ``pm.compute_log_likelihood`` scores them. The log posteriors differ by a constant.
        observed : bool
            False: the prior alone, without rows.
        X_new : rows, optional
            Rows to predict: the model has ``class_probability`` (new_obs_id, class),
            p(y | x, theta) of each, draw by draw that of `predict_posterior`. Its mean over draws
            is not `predict_proba`, which weighs theta by how well it explains x.

        Returns
        -------
        pymc.Model
            Variable names, dims and coords are those of ``posterior_``. Rows are the data
            containers ``y``, ``cells`` and, where cells may be missing, ``seen``: ``pm.set_data``
            gives the model others. `BayesianLogisticRegression` has ``terms``, the standardised
            columns, in place of ``cells``. Rows of `X_new` are all the containers ``new_*``, and
            change together. Hyper-parameters are ``prior_*``.

        Examples
        --------
        >>> import bayesgen as bg
        >>> clf = bg.PoissonNB().fit([[1], [3], [0], [7]], ["a", "b", "a", "b"])
        >>> clf.to_pymc()["stats_class"].get_value()
        array([2., 2.])
        >>> clf.to_pymc([[2], [2], [5]], ["a", "a", "b"])["stats_class"].get_value()
        array([2., 1.])
        """
        return trees.to_pymc(self._fitted_to(X, y), X, y, likelihood, observed, X_new)

    def _fitted_to(self, X, y) -> Fitted:
        """Return the fit; before a fit, what these rows alone settle."""
        if "fitted_" in self.__dict__ or X is None or y is None:
            return self._fitted()
        return self._learner().without_draws(X, y)

    def summary(self) -> Summary:
        """Describe the fit: columns, class counts, missing cells, priors, evidence, warnings.

        Returns
        -------
        Summary
            Print it; ``table`` and ``to_dataframe()`` hold the same for programs.

        Examples
        --------
        >>> import bayesgen as bg
        >>> X, y = bg.datasets.load_penguins()
        >>> bg.MixedNB().fit(X[["island", "bill_depth_mm"]], y).summary()
        MixedNB, closed form: 344 rows
                         kind         missing  prior                                             prior range
          island         categorical           0.354 pseudo-counts of each
          bill_depth_mm  gaussian     2        mean 17.2, worth 0.2 rows; sd 1.59, worth 6 rows  9.58 to 24.7
        Rows: Adelie (152), Chinstrap (68), Gentoo (124).
        Class weights: 1 pseudo-count of each class.
        Prior: variance='class'.
        Prior chosen by leave-one-out (prior='loo'): categorical_alpha x 0.354, gaussian_kappa x 2,
        gaussian_nu x 2, gaussian_sigma2 x 2. The evidence is conditional on it.
        Log evidence: -1083.44 nats.
        Log loss of the labels, each without its row: 0.321 nats (344 rows); of the class
        frequencies alone: 1.055.
        """  # noqa: E501 - a table
        return summary(self._fitted())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a netCDF file; `bayesgen.load` reads it. No pickle.

        The file of a pool or of label trees holds the training rows, up to 64 MiB: their intervals
        need them. All others hold sums over rows, or draws.
        """
        fitted = self._fitted()
        refuse_subclass(self)
        storage.write(path, *self.__bayesgen_record__(fitted))


def _in_order(clf, reader: Reader, classes: Array):
    """Return the same classifier with arguments {column: value} as arrays over the columns."""
    labels = list(classes.tolist())
    refuse_other_order("class_alpha", clf.class_alpha, labels)
    every = {k: getattr(clf, k, None) for k in clf._by_column}
    arguments = {
        k: by_column(clf, k, v, reader)
        for k, v in every.items()
        if not (v is None or np.isscalar(v))
    }
    columns = [] if reader.names is None else list(reader.names)
    for argument, value in arguments.items():
        refuse_other_order(argument, value, labels, columns)
    by_name = {k: v for k, v in arguments.items() if isinstance(v, Mapping)}
    if not by_name:
        return clf
    ordered, names = copy.copy(clf), reader.columns
    positions = {name: j for j, name in enumerate(names)}
    for argument, values in by_name.items():
        by_position = {
            find_column(k, positions, len(positions), argument): v for k, v in values.items()
        }
        if absent := [name for j, name in enumerate(names) if j not in by_position]:
            raise ValueError(f"{argument} has no value for column {absent[0]!r}")
        cells = [np.asarray(by_position[j], dtype=np.float64) for j in range(len(names))]
        setattr(ordered, argument, np.stack(np.broadcast_arrays(*cells), axis=-1))
    return ordered
