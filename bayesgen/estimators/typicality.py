"""Whether new rows are like the training rows, and sets of labels that hold the true one."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.datatree import tree
from bayesgen.datatree.tree import named_rows
from bayesgen.estimators.leave_one_out import LeaveOneOut
from bayesgen.estimators.predicting import Predicting
from bayesgen.estimators.training import Training
from bayesgen.families.names import CLASS, OBS
from bayesgen.numerics.special import Array, log_sum_exp
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.model import is_generative, log_weights, log_weights_without
from bayesgen.posterior.monte_carlo import MonteCarloWarning
from bayesgen.predict.left_out import LeftOut, check_coverage, log_odds, prediction_sets

if TYPE_CHECKING:
    import xarray as xr


class Typicality(LeaveOneOut, Predicting):
    """What follows from the leave-one-out scores of the training rows for new rows."""

    @named_rows
    def typicality(self, X: Any, training: Any = None, *, partial: bool = False) -> "xr.Dataset":
        """How likely a row this improbable, or more so, is among rows like the training rows.

        The rank of a row's density among the exact leave-one-out densities of the training rows:
        a small number says that the row is like none of them. What `score_samples` gives has no
        scale of its own.

        Parameters
        ----------
        X : (N, D)
        training : (X, y) or (X, y, sample_weight), optional
            The training rows. Needed once, and only if the classifier does not know their scores:
            after streams, merges, `partial_fit` and `forget`, of more than 64 MiB of rows, and of
            a model file or pickle that was made before the first call.
        partial : bool
            `training` is a sample of the training rows, as of a stream.

        Returns
        -------
        xarray.Dataset
            ``by_class`` (obs_id, class), the tail probability of log p(x | y = c, D) among
            log p(x_i | y_i = c, D without row i) of the training rows of class c:
            (1 + number of them that are not larger) / (1 + number of all), a row of weight w
            counted w times; ``overall`` (obs_id), the same of log p(x | D) among all training rows.

        Raises
        ------
        NotImplementedError
            For a discriminative classifier, which has no density of x.
        ValueError
            If the training rows are neither known nor given, or are not those of the fit.

        Warns
        -----
        MonteCarloWarning
            After a fit by draws, if Pareto-smoothed importance sampling cannot leave some rows out.

        Notes
        -----
        Of new rows drawn as the training rows were, each number is uniform on its steps of
        1 / (n + 1), nearly: the scores rest on one row less than the density of the new row. Where
        densities are tied, as those of discrete rows, it is larger. A class without training
        rows finds everything typical. Densities of rows with different missing cells, or of texts
        of different lengths, have no common scale: a row with few cells is typical. The scores
        are computed at the first call, in one pass, and kept. After a fit by draws the density of
        a row far from all others rests on few of them; its rank is about the lowest in any case.

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
        array([0.971, 0.003])
        """
        self._refuse_if_discriminative("typicality")
        left_out = self._left_out(training, partial)
        own = self._fitted()
        with warnings.catch_warnings():  # a row whose density draws cannot tell ranks last or so
            warnings.simplefilter("ignore", MonteCarloWarning)
            joint = self._log_joint(X, "posterior_predictive", None, None, "density")
        return tree.group(
            {
                "by_class": (
                    (OBS, CLASS),
                    left_out.typical_of_class(joint - log_weights(own.class_weights())),
                ),
                "overall": ((OBS,), left_out.typical_overall(log_sum_exp(joint))),
            },
            {CLASS: self.classes_},
        )

    @named_rows
    def predict_set(
        self,
        X: Any,
        coverage: float = 0.9,
        by_class: bool = False,
        training: Any = None,
        *,
        partial: bool = False,
    ) -> "xr.Dataset":
        """A set of labels for each row; about a share `coverage` of the sets hold the true one.

        Conformal prediction from exact leave-one-out: a label is in the set if its probability is
        at least that which a share `coverage` of the training labels reached without their row.
        The share is counted, so that it holds, nearly, even if the probabilities are wrong.

        Parameters
        ----------
        X : (N, D)
        coverage : float in (0, 1)
        by_class : bool
            False: one limit, so that `coverage` holds on average over classes. True: a limit per
            class (Mondrian), so that it holds within each, at the price of larger sets.
        training, partial
            As in `typicality`.

        Returns
        -------
        xarray.Dataset
            ``included`` (obs_id, class) bool; ``size`` (obs_id), the number of labels: 0 where
            none is probable enough; ``limit`` (class), the probability from which on a label is in.

        Raises
        ------
        ValueError
            If the training rows are neither known nor given, or are not those of the fit.

        Warns
        -----
        MonteCarloWarning
            As in `typicality`.

        Notes
        -----
        Guaranteed: nothing for a particular row, and nothing where new rows are drawn otherwise
        than the training rows were. For rows drawn alike, split conformal sets cover with at least
        the stated probability whatever the model; these compare a new row, under the posterior of
        all rows, with training rows under a posterior of one row less (the jackknife). They cover
        as stated, up to 1 / (n + 1), where one row more or less hardly changes the probabilities,
        as under a posterior of many rows. For a guarantee without that condition calibrate on
        held-out rows. In exchange no row is held out. With fewer than
        coverage / (1 - coverage) rows (of a class, with `by_class`) every label is in.

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
        joint = self._log_joint(X, "posterior_predictive", None, None, "probability")
        return prediction_sets(left_out, joint, self.classes_, coverage, by_class)

    def _left_out(self, training: Any, partial: bool) -> LeftOut:
        """Leave-one-out scores of the training rows: kept ones, or of the rows kept or given."""
        own = self._fitted()
        if training is None:
            scores: LeftOut | None = self.__dict__.get("_loo_scores")
            if scores is not None:
                return scores
            given: Training | None = self.__dict__.get("_training")
            if given is None:
                raise ValueError(
                    "the scores of the training rows are not known here (after a stream, a merge, "
                    "partial_fit, forget, a large fit, or loading a model saved before they were "
                    "first asked for): pass training=(X, y) or training=(X, y, sample_weight)"
                )
            try:
                rows = self._training_rows(given.X, given.y, given.sample_weight, False)
            except ValueError as error:
                raise ValueError(
                    "the rows that fit was given were changed since then: pass them as they were "
                    f"by training=(X, y) or training=(X, y, sample_weight) ({error})"
                ) from error
        else:
            if not isinstance(training, tuple | list) or len(training) not in (2, 3):
                raise ValueError("training must be (X, y) or (X, y, sample_weight)")
            given = Training(*training)
            rows = self._training_rows(given.X, given.y, given.sample_weight, partial)
        at = rows.scored
        if not len(at):
            raise ValueError("no training row has a label and a weight above 0")
        codes, weight = rows.codes[at], rows.weight[at]
        joint, _ = own.log_joint_without(rows.X[at], codes, weight)
        own_class = np.arange(len(at)), codes
        unknown = np.full(len(at), np.nan)
        generative = is_generative(self._family_type)
        scores = LeftOut(
            codes,
            weight,
            (joint - self._log_weights_without(codes, weight))[own_class]
            if generative
            else unknown,
            log_sum_exp(joint) if generative else unknown,
            log_odds(joint)[own_class],
        ).sorted()
        self._loo_scores = scores
        return scores

    def _log_weights_without(self, codes: Array, weight: Array) -> Array:
        """(n, C) log of the class weights that are in the leave-one-out joint densities."""
        own = self._fitted()
        if isinstance(own, ExactPosterior) or own.exact_weights:
            return log_weights_without(own.prior.alpha, own.stats.count, codes, weight)
        # of rows without a label too: one row more or less is nothing to the mean of the draws
        return log_weights(own.class_weights())[None]
