"""How sure a fitted classifier is: the distribution of p(y = c | x, theta), row by row."""

from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from bayesgen.datatree import tree
from bayesgen.datatree.names import PREDICTIONS
from bayesgen.datatree.tree import named_rows
from bayesgen.estimators.estimator import Estimator
from bayesgen.families.names import BOUND, CHAIN, CLASS, DRAW, OBS
from bayesgen.numerics.special import log_softmax
from bayesgen.predict import distribution
from bayesgen.predict.from_draws import WeightedIntervals
from bayesgen.predict.interval.request import IntervalRequest

if TYPE_CHECKING:
    import xarray as xr

    from bayesgen.predict.interval.request import Given, KindName


class Uncertainty(Estimator):
    """Intervals, draws and entropies of the class probabilities."""

    @named_rows
    def predict_interval(
        self,
        X: Any,
        prob: float | None = None,
        kind: "KindName | None" = None,
        method: Literal["auto", "exact", "approx", "draws"] = "auto",
        class_prior: Any = None,
        random_state: Any = 0,
        posterior: Any = None,
        given: "Given" = "training",
    ) -> "xr.Dataset":
        """Credible interval of p(y = c | x, theta): what the training rows leave open.

        The spread of the class probability over the posterior of theta. It is not centred on
        `predict_proba`, which is p(y | x, D) with theta integrated out: another number, given
        beside it.

        Parameters
        ----------
        X : (N, D)
        prob : float in (0, 1), optional
            Posterior probability of the interval; default ``az.rcParams["stats.ci_prob"]``.
        kind : {"eti", "hdi"}, optional
            Equal tails, or the shortest interval of the probability; default
            ``az.rcParams["stats.ci_kind"]``.
        method : {"auto", "exact", "approx", "draws"}
            ``"exact"`` inverts the characteristic function of the log-odds, without draws for two
            classes; ``"auto"`` uses a Cornish-Fisher expansion where that is as good (for three
            classes and more: to .003 in percentile, nearly always; ``error`` says more);
            ``"approx"`` uses it everywhere.
        class_prior : array (class,) or {label: weight}, optional
            Class weights that replace the fitted ones, and are not uncertain.
        random_state : int or numpy.random.Generator
            Of routes that draw; the same numbers at every call by default.
        posterior : xarray.DataTree, optional
            Draws of this model's parameters that replace the closed form.
        given : {"training", "training and row"}
            Whose posterior of theta: p(theta | D), or p(theta | D, x), to which the row itself has
            been added without its label. See Notes.

        Returns
        -------
        xarray.Dataset
            ``interval`` (obs_id, class, bound); ``log_odds``, its ends as log p/(1 - p);
            ``predictive`` (obs_id, class), p(y | x, D); (obs_id) ``route``, how it was computed,
            and ``error`` of the posterior probability beyond an end. Of draws weighted by the row
            also ``weight_ess``, the number of draws that the weights leave.

        Warns
        -----
        MonteCarloWarning
            Where a posterior known by draws is weighted by p(x | theta) and too few draws carry the
            weight; it names the rows.

        Notes
        -----
        Coverage, where theta is drawn from the prior and rows from theta: both intervals hold
        p(y = c | x, theta) as often as they say, of different rows. ``"training"``: of rows x that
        have nothing to do with theta, such as points of a grid. A row drawn from the same theta
        tells of it, which that interval does not use: with few training rows it covers less
        (two classes of Poisson counts in 100 columns with Gamma(1, 1) priors: .83 in place of .90
        with 40 training rows, .65 with 10). ``"training and row"``: of new rows from the same
        source as the training rows (.90 in both cases), and of no others: of rows from elsewhere it
        held the truth .26 and .13 of the time. Its mean is `predict_proba`.

        ``predictive`` may lie outside the interval of ``"training"``, and that is no error: it is a
        ratio of expectations, E p(y, x | theta) / E p(x | theta), in which those theta count most
        under which the row is likely (6 % of the rows of simulated tables of 5 to 80 rows per
        class; more with few rows, and in rows unlike the training rows, see `typicality`).

        A posterior in closed form given the row is a mixture of ordinary posteriors, one for each
        label that the row may have. One that is known by draws is weighted by p(x | theta). Of a
        discriminative model (`BayesianLogisticRegression`) a row without its label says nothing:
        both intervals are one.

        Examples
        --------
        >>> import bayesgen as bg
        >>> X = [[1, 1]] + 4 * [[1, 0]] + 4 * [[0, 1]] + 4 * [[0, 0]]
        >>> clf = bg.BernoulliNB().fit(X, [1] + 12 * [2])
        >>> table = clf.predict_interval([[1, 1]], prob=0.9, method="exact")
        >>> table["interval"].sel({"class": 1}).values.round(3)
        array([[0.045, 0.723]])
        >>> float(table["predictive"].sel({"class": 1})[0].round(3))
        0.349
        """
        request = IntervalRequest.of(prob, kind, method=method, given=given)
        own = self._posterior_of(posterior)
        weights = self._given_weights(class_prior)
        encoded = self._encoded_checked(X)
        joint = own.log_joint(encoded, "posterior_predictive", weights, "probability")
        found = distribution.credible_intervals(own, encoded, joint, request, weights, random_state)
        by_class = (OBS, CLASS)
        with np.errstate(invalid="ignore"):
            predictive = np.exp(log_softmax(joint))
        out = tree.group(
            {
                "interval": ((*by_class, BOUND), np.stack([found.lower, found.upper], axis=-1)),
                "log_odds": (
                    (*by_class, BOUND),
                    np.stack([found.log_odds_lower, found.log_odds_upper], axis=-1),
                ),
                "predictive": (by_class, predictive),
                "route": ((OBS,), found.method),
                "error": ((OBS,), found.error),
            },
            {CLASS: self.classes_, BOUND: ["lower", "upper"]},
        )
        if isinstance(found, WeightedIntervals):
            out["weight_ess"] = (OBS,), found.weight_ess
        if given != "training":
            out.attrs["given"] = given
        return out.assign_attrs(prob=request.prob, kind=request.kind)

    @named_rows
    def predict_posterior(
        self,
        X: Any,
        draws: int = 1000,
        chains: int = 1,
        random_state: Any = 0,
        class_prior: Any = None,
        posterior: Any = None,
        per_row: bool = False,
        max_memory: float = 4.0,
    ) -> "xr.DataTree":
        """Draws of the class probabilities p(y = c | x, theta) of rows.

        Parameters
        ----------
        X : (N, D)
        draws, chains : int
        random_state : int or numpy.random.Generator
        class_prior : array (class,) or {label: weight}, optional
        posterior : xarray.DataTree, optional
            As in `predict_interval`; all its draws are used, and `draws` and `chains` are not.
        per_row : bool
            False: one theta per draw for all rows, so that a draw is a possible rule and rows can
            be compared within it. True: what each row's probabilities depend on is drawn instead of
            theta, which is faster for Gaussian families with many features, and a hundred times
            for sparse rows of 2^18 columns; every row has its exact distribution, but nothing can
            be said of two rows together.
        max_memory : float
            GiB for the result and what is held on the way: theta is drawn, and rows are passed
            through, in blocks that fit. A result that alone is larger is refused.

        Returns
        -------
        xarray.DataTree
            ``predictions``: ``class_probability`` (chain, draw, obs_id, class).

        Examples
        --------
        >>> import bayesgen as bg
        >>> clf = bg.GaussianNB().fit([[1.0], [1.4], [4.0], [4.4]], ["a", "a", "b", "b"])
        >>> clf.predict_posterior([[2.0], [3.0]])["predictions"]["class_probability"].dims
        ('chain', 'draw', 'obs_id', 'class')
        """
        import xarray as xr

        own = self._posterior_of(posterior)
        weights = self._given_weights(class_prior)
        encoded = self._encoded_checked(X)
        for name, value in (("draws", draws), ("chains", chains)):
            if not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name} must be an integer >= 1, got {value!r}")
        if not max_memory > 0:
            raise ValueError(f"max_memory must be > 0 GiB, got {max_memory!r}")
        rng = np.random.default_rng(random_state)
        request = distribution.DrawRequest(draws, chains, per_row, max_memory)
        rho, drawn = distribution.probability_draws(own, encoded, request, weights, rng)
        dims = (CHAIN, DRAW, OBS, CLASS)
        group = tree.group({"class_probability": (dims, rho)}, {CLASS: self.classes_})
        out = xr.DataTree.from_dict({f"/{PREDICTIONS}": group})
        out.attrs |= cast(Any, self)._provenance_of(posterior, random_state)
        out.attrs["draws"] = drawn
        return out

    @named_rows
    def predict_uncertainty(
        self,
        X: Any,
        unit: Literal["nats", "bits"] = "nats",
        given: Literal["training", "training and row"] = "training",
        class_prior: Any = None,
        random_state: Any = 0,
        posterior: Any = None,
    ) -> "xr.Dataset":
        """Entropy of the label of a row, and how much of it more training rows could remove.

        total = aleatoric + epistemic: the entropy of the mean class probabilities, the mean
        entropy at known theta, and the information of the label about theta, all three under one
        distribution of theta. They presuppose the model: that it may be wrong is in none of them.

        Parameters
        ----------
        X : (N, D)
        unit : {"nats", "bits"}
        given : {"training", "training and row"}
            Whose posterior of theta: p(theta | D), or p(theta | D, x), to which the unlabelled row
            itself has been added. Only the second has `predict_proba` as its mean and the entropy
            of `predict_proba` as its total.
        class_prior : array (class,) or {label: weight}, optional
        random_state : int or numpy.random.Generator
        posterior : xarray.DataTree, optional
            As in `predict_interval`; only for ``given="training"``.

        Returns
        -------
        xarray.Dataset
            (obs_id) ``total``, ``aleatoric``, ``epistemic``; (obs_id, class) ``mean``, ``sd`` of
            p(y = c | x, theta), and ``top``, the probability that c is the most probable class;
            ``route`` and ``error``, in nats: a bound on the error of any of these (of ``sd``, its
            square) for two classes by inversion; else twice the error holds 95 % of them.

        Examples
        --------
        >>> import bayesgen as bg
        >>> X = [[1, 1]] + 4 * [[1, 0]] + 4 * [[0, 1]] + 4 * [[0, 0]]
        >>> clf = bg.BernoulliNB().fit(X, [1] + 12 * [2])
        >>> table = clf.predict_uncertainty([[1, 1]])
        >>> {k: round(float(table[k][0]), 3) for k in ("total", "aleatoric", "epistemic")}
        {'total': 0.637, 'aleatoric': 0.529, 'epistemic': 0.108}
        """
        own = self._posterior_of(posterior)
        if given not in ("training", "training and row"):
            raise ValueError(f"given must be 'training' or 'training and row', got {given!r}")
        if unit not in ("nats", "bits"):
            raise ValueError(f"unit must be 'nats' or 'bits', got {unit!r}")
        weights = self._given_weights(class_prior)
        encoded = self._encoded_checked(X)
        found = distribution.summary(own, encoded, given, unit, weights, random_state)
        by_row, by_class = (OBS,), (OBS, CLASS)
        out = tree.group(
            {
                "total": (by_row, found.total),
                "aleatoric": (by_row, found.aleatoric),
                "epistemic": (by_row, found.total - found.aleatoric),
                "mean": (by_class, found.mean),
                "sd": (by_class, found.sd),
                "top": (by_class, found.top),
                "route": (by_row, found.route),
                "error": (by_row, found.error),
            },
            {CLASS: self.classes_},
        )
        return out.assign_attrs(unit=unit, given=given)
