"""The posterior as others read it: evidence, draws by either route, the PyMC model."""

import warnings
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from bayesgen.datatree import tree
from bayesgen.datatree.fit import assembled
from bayesgen.datatree.groups import (
    OF_ROWS,
    Rows,
    add_groups,
    asked_for,
    requested_groups,
)
from bayesgen.datatree.names import LOG_PRIOR, POSTERIOR, SAMPLE_STATS
from bayesgen.estimators.learning import Learning
from bayesgen.families.capabilities import SamplerCoordinates
from bayesgen.families.errors import NoPosteriorError
from bayesgen.inference import diagnostics, sampled
from bayesgen.inference.closed_form import NoClosedFormError
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import split_chains

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

_DRAW_BYTES = 1 << 30  # posterior_ draws fewer parameters than asked rather than exceed this


class Posterior(Learning):
    """Evidence, draws and PyMC."""

    @property
    def log_evidence_(self) -> float:
        """log p(X, y) of the training rows, in nats, with all parameters integrated out.

        Given the hyper-parameters (``prior_``), and bins where there are any: what defaults and
        `prior` have taken from the same rows is not discounted. Forests that the same rows have
        chosen (``structure="tree"``, ``"map"``) are too much to leave out: NoPosteriorError.
        """
        self._refuse_no_closed_form()
        if why := self.prior_.family.no_evidence:
            raise NoPosteriorError(f"the evidence is refused: {why}")
        return float(self.prior_.log_evidence(self.stats_))

    @property
    def posterior_(self) -> "xr.DataTree":
        """DataTree of 4 chains of 500 exact draws: `draw_posterior` with its defaults.

        Groups ``posterior``, ``constant_data``, ``observed_data`` and ``fit``. Made on first use,
        with seed 0. After ``fit(inference="nuts")``: the draws of that fit.
        """
        if "_draws" not in self.__dict__:
            self._refuse_no_closed_form()
            self._draws = self.draw_posterior()
        return self._draws

    def draw_posterior(
        self,
        draws: int = 500,
        chains: int = 4,
        random_state: Any = 0,
        *,
        X: Any = None,
        y: Any = None,
        groups: Sequence[str] | None = None,
        replicate: Sequence[str] = ("label",),
    ) -> "xr.DataTree":
        """Independent draws of all parameters from the closed-form posterior.

        Parameters
        ----------
        draws, chains : int
            Draws of each chain. Fewer, with a warning, if they would exceed 1 GiB.
        random_state : int or numpy.random.Generator
        X, y : labelled rows, optional
            What ``observed_data``, ``log_likelihood`` and the predictive groups are about:
            usually the training rows.
        groups : sequence of str, optional
            Of ``"prior"``, ``"prior_predictive"``, ``"posterior_predictive"``,
            ``"log_likelihood"``, ``"log_prior"``. Default: with rows ``log_likelihood`` and
            ``posterior_predictive``, else none.
        replicate : sequence of {"label", "indicators", "x"}
            What of the rows is observed and drawn in the predictive groups; the other is constant.
            ``"indicators"``: beside ``label`` a variable ``is_<class>`` of 0 and 1 for each class,
            with its own log likelihood. Ask for them to score three or more classes.

        Returns
        -------
        xarray.DataTree
            Groups ``posterior`` (chain, draw, ...), ``constant_data`` (hyper-parameters of the
            prior), ``observed_data`` (the sufficient statistics, or the rows given), ``fit``, and
            those of `groups`:

            - ``prior``: draws from the prior, as many as from the posterior.
            - ``posterior_predictive``: ``label``, a class code, drawn from p(y | x, theta) given
              the row's x, and ``x`` drawn given the row's label. As in `to_pymc` there is one
              ``x`` for each kind of columns, and none of sparse or text X.
            - ``prior_predictive``: ``label`` drawn from the class weights pi, and ``x`` given
              that label.
            - ``log_likelihood``: ``joint``, log p(y, x | theta), and ``label``,
              log p(y | x, theta), which scores the observed ``label``. With indicators
              ``is_<class>``, log p(y = c | x, theta) in rows of the class c and log(1 - p) in
              the others, as large as ``label`` for each class.
            - ``log_prior``: log densities of ``pi`` and of the features' ``theta``.

            ``obs_id`` is the position of the row, as in `to_pymc`; predictions have the index of a
            frame there.

            Attributes of the tree say how and when it was made (``created_at``,
            ``inference_library``, ``route``, ``seed``, ...); attribute ``long_name`` of a
            variable says which distribution it was drawn from.

        Notes
        -----
        Two variables are called ``label``. Ours in ``posterior_predictive`` is the label *given
        the row's features*, which is what a classifier predicts and what ``log_likelihood`` of
        that name scores. ``pm.sample_posterior_predictive`` on the model of `to_pymc` draws
        ``label`` from pi, as its graph has it, whatever the features are.

        ArviZ takes the log likelihood of the name of the observed variable. Functions that look
        at ``log_likelihood`` alone must be told which one is meant:
        ``az.loo(tree, var_name="label")``, and
        ``az.psense_summary(tree, likelihood_var_names="joint")``, which would add them up.

        Class codes of three or more classes have no order, and ArviZ takes them for numbers:
        ``az.loo_metrics``, ``az.loo_score``, ``az.loo_pit`` and their pictures depend on the
        alphabet. Score each class with ``replicate=["indicators"]``:
        ``az.loo_score(tree, var_name="is_<class>")`` is minus the class's Brier score,
        ``az.loo_metrics(tree, kind="acc", var_name="is_<class>")`` the accuracy of "is it of
        this class?", ``az.loo_pit(tree, var_names="is_<class>")`` its transform. Of the codes
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
        self._refuse_no_closed_form()
        rows, names = self._requests(X, y, groups, replicate)
        family = self.model_.family
        fit = max(1, int(_DRAW_BYTES / (8 * chains * family.n_parameters())))
        if fit < draws:
            warnings.warn(
                f"{draws} draws of {family.n_parameters()} parameters would take more than "
                f"1 GiB: drawing {fit} a chain",
                UserWarning,
                stacklevel=2,
            )
            draws = fit
        rng = np.random.default_rng(random_state)
        drawn = split_chains(self.model_.draw(rng, draws * chains), chains)
        posterior = tree.draws_dataset(drawn, self.model_.params, self._coords())
        own = self.prior_.family.capability(SamplerCoordinates)
        free = {} if own is None else own.pymc_coordinates(drawn, self.stats_.features)
        coordinates = tree.with_draws({k: v for k, v in free.items() if k not in drawn})
        posterior = posterior.merge(tree.group(coordinates, self._coords()))
        out = self._tree({POSTERIOR: posterior}, "closed form", random_state)
        self._add_groups(out, drawn, rng, rows, names, replicate)
        return out

    def sample_posterior(
        self,
        draws: int = 1000,
        tune: int = 1000,
        chains: int = 4,
        random_seed: int | None = None,
        sampler: Literal["nutpie", "pymc"] = "nutpie",
        *,
        X: Any = None,
        y: Any = None,
        groups: Sequence[str] | None = None,
        replicate: Sequence[str] = ("label",),
        likelihood: Literal["statistics", "rows"] = "statistics",
        progressbar: bool = True,
        **options: Any,
    ) -> "xr.DataTree":
        """Draws of all parameters by NUTS, in the vocabulary of ``posterior_``.

        The closed form is exact and takes milliseconds; NUTS is there to check it. Compiling the
        model takes 5 to 60 s the first time; a model of the same shape (as many classes and
        features, the same kind of prior) is compiled once per process.

        Parameters
        ----------
        draws, tune, chains : int
            Draws of each chain, after `tune` steps that are thrown away.
        random_seed : int, optional
        sampler : {"nutpie", "pymc"}
        X, y, groups, replicate
            As in `draw_posterior`: what the groups of rows are about.
        likelihood : {"statistics", "rows"}
            What the posterior is conditioned on: the statistics of the fit, whatever X and y are,
            or the rows X and y, which are needed for that and should be those of the fit.
        progressbar : bool
        **options
            To the sampler, e.g. ``target_accept=0.95``.

        Returns
        -------
        xarray.DataTree
            As `draw_posterior`, and ``sample_stats``. The attributes ``divergences``, ``r_hat``
            (the largest), ``ess`` (the smallest) and ``verdict`` say whether to trust the draws.

        Raises
        ------
        NotImplementedError, ValueError
            For an average over structures: `draw_posterior` has exact draws of it.

        Warns
        -----
        SamplingWarning
            As in `fit`.
        """
        from bayesgen.inference import nuts as mcmc

        self._refuse_no_closed_form()
        rows, names = self._requests(X, y, groups, replicate)
        mcmc.check(draws, tune, chains, sampler)
        of_rows = {} if likelihood == "statistics" else {"X": X, "y": y}
        model = self.to_pymc(**of_rows, likelihood=likelihood)
        other = [name for name in self.model_.params if name not in model.named_vars]
        if other:  # of an average over structures
            raise NotImplementedError(
                f"the PyMC model of {type(self).__name__} has no variable {other[0]!r}: its tables "
                "are not the parameters of posterior_, and its draws no draws of them. "
                "draw_posterior() has exact draws; pm.sample(model=clf.to_pymc()) samples the "
                "model as it is"
            )
        posterior, sample_stats = mcmc.sample(
            model,
            draws=draws,
            tune=tune,
            chains=chains,
            random_seed=random_seed,
            sampler=sampler,
            progressbar=progressbar,
            **options,
        )
        out = self._tree(
            {POSTERIOR: posterior, SAMPLE_STATS: sample_stats}, "nuts", random_seed, sampler
        )
        drawn = tree.read_draws(posterior, self.model_.params, self._coords())
        self._add_groups(out, drawn, np.random.default_rng(random_seed), rows, names, replicate)
        found = diagnostics.warn_unless_sound(posterior, sample_stats)
        out.attrs |= {"sampler": sampler, "tune": tune} | found.attributes()
        return out

    def _tree(
        self,
        groups: dict[str, "xr.Dataset"],
        route: str,
        random_state: Any = None,
        library: str = "bayesgen",
    ) -> "xr.DataTree":
        """A DataTree with what every route has: data, ``fit``, provenance."""
        model = self.__dict__.get("model_")
        stats, coords = self._fitted().stats, self._coords()
        out = assembled(groups, self.prior_, model, stats, coords)
        family = type(self.prior_.family).__name__
        out.attrs |= {"estimator": type(self).__name__}
        out.attrs |= tree.provenance(family, route, random_state, library)
        return out

    def _provenance_of(self, posterior: Any, random_state: Any) -> dict[Any, Any]:
        """Attributes of a tree made from draws: those of `posterior`, None for the model's own."""
        family = type(self.prior_.family).__name__
        if posterior is None and self.inference_ == "closed form":
            return tree.provenance(family, "closed form", random_state)
        drawn = (self.posterior_ if posterior is None else posterior).attrs
        of_draws = ("route", "seed", "inference_library", "inference_library_version")
        own = tree.provenance(family, "posterior draws given")  # of a Dataset, or by other hands
        return own | {k: drawn[k] for k in of_draws if k in drawn}

    def _requests(
        self, X: Any, y: Any, groups: Sequence[str] | None, replicate: Sequence[str]
    ) -> tuple[Rows | None, list[str]]:
        """The rows, encoded, and the names of the groups to make; checked before any work."""
        if (X is None) != (y is None):
            raise ValueError("X and y must be given together")
        rows = None if X is None else self._rows(X, y)
        return rows, asked_for(groups, replicate, rows, self.classes_)

    def _add_groups(
        self,
        out: "xr.DataTree",
        theta: dict[str, Array],
        rng: np.random.Generator,
        rows: Rows | None,
        names: list[str],
        replicate: Sequence[str],
    ) -> None:
        """The groups asked for; of the rows, what is replicated is observed, the rest constant."""
        draw_prior = None if self._conjugate() else partial(self._draw_prior, rng)
        own = self._fitted()
        stats, family = own.stats.features, own.model.family
        made = requested_groups(
            names,
            rng,
            self.prior_,
            family,
            theta,
            rows,
            stats,
            self.classes_,
            replicate,
            draw_prior,
        )
        add_groups(out, made, family, theta, rows, replicate, self._coords(), self.classes_)

    def _draw_prior(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """{name: (n, *dims)} from the prior of a family that only PyMC can draw."""
        from bayesgen.inference import nuts as mcmc

        coords, params = self._coords(), self.prior_.params
        drawn = mcmc.draw_prior(self.prior_.to_pymc(coords), params, n, int(rng.integers(1 << 31)))
        return tree.as_in_numpy(drawn, params, coords)

    def posterior_groups(
        self,
        X: Any,
        y: Any,
        groups: Sequence[str] | None = None,
        *,
        replicate: Sequence[str] = ("label",),
        random_state: Any = 0,
    ) -> "xr.DataTree":
        """``posterior_`` with what its draws say of labelled rows, for ArviZ.

        By whatever route the posterior was found, so that conjugate, sampled and discriminative
        models can be compared on one target.

        Parameters
        ----------
        X, y : labelled rows
            For leave-one-out those of the fit.
        groups, replicate
            As in `draw_posterior`. Default: ``log_likelihood`` and ``posterior_predictive``.
        random_state : int or numpy.random.Generator
            Of what is replicated.

        Returns
        -------
        xarray.DataTree
            As `draw_posterior`. ``log_likelihood`` has ``joint``, log p(y, x | theta), and
            ``label``, log p(y | x, theta); a discriminative model has the latter alone.
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
        check_is_fitted(self, "prior_")
        if X is None or y is None:
            raise ValueError("posterior_groups is about labelled rows: give X and y")
        names = list(OF_ROWS) if groups is None else groups
        rows, names = self._requests(X, y, names, replicate)
        if LOG_PRIOR in names and not self._conjugate():
            raise NoClosedFormError(
                f"log_prior of {type(self.prior_.family).__name__} is known to PyMC alone: "
                "pm.compute_log_prior(tree, model=clf.to_pymc(X, y))"
            )
        out = self.posterior_.copy(deep=False)
        theta = tree.read_draws(out, self.prior_.params, self._coords())
        self._add_groups(out, theta, np.random.default_rng(random_state), rows, names, replicate)
        return out

    def to_pymc(
        self,
        X: Any = None,
        y: Any = None,
        *,
        likelihood: Literal["statistics", "rows"] = "statistics",
        observed: bool = True,
    ) -> "pm.Model":
        """The model as a PyMC graph: the same priors on the same data.

        Parameters
        ----------
        X, y : rows and labels, optional
            What the model is conditioned on, in place of the statistics of the fit: these rows,
            of weight 1, encoded as in the fit, under the prior as it was resolved there. A fitted
            classifier keeps statistics, not rows: they are needed for ``likelihood="rows"``, and
            for either `likelihood` after a fit by NUTS to rows that have no sufficient statistics
            (no conjugate prior, no label, or missing cells under a full covariance).
        likelihood : {"statistics", "rows"}
            Potentials of the sufficient statistics, so that a gradient costs the same for 10^3
            rows as for 10^8 (of a family without them: rows summed by as few terms as it knows);
            or the rows as given, ``label`` and ``x`` observed, row by row or cell by cell, so
            that ``pm.compute_log_likelihood`` scores them. The log posteriors differ by a constant.
            Rows without a label, or with missing cells under a conjugate prior of covariances,
            are refused there.
        observed : bool
            False: the prior alone, without rows.

        Returns
        -------
        pymc.Model
            Variable names, dims and coords are those of ``posterior_``. Rows are the data
            containers ``y``, ``cells`` and, where cells may be missing, ``seen``: ``pm.set_data``
            gives the model others. Hyper-parameters are ``prior_*``.

        Examples
        --------
        >>> import bayesgen as bg
        >>> clf = bg.PoissonNB().fit([[1], [3], [0], [7]], ["a", "b", "a", "b"])
        >>> clf.to_pymc()["stats_class"].get_value()
        array([2., 2.])
        >>> clf.to_pymc([[2], [2], [5]], ["a", "a", "b"])["stats_class"].get_value()
        array([2., 1.])
        """
        check_is_fitted(self, "prior_")
        if likelihood not in ("statistics", "rows"):
            raise ValueError(f"likelihood must be 'statistics' or 'rows', got {likelihood!r}")
        if (X is None) != (y is None):
            raise ValueError("X and y must be given together")
        coords = self._coords()
        if not observed:
            if X is not None:
                raise ValueError("observed=False is the prior alone: leave X and y out")
            return self.prior_.to_pymc(coords)
        if X is not None:
            self._refuse_unseen(self._read(X, reset=False))
        if "model_" not in self.__dict__:
            return self._pymc_of_rows(X, y, likelihood)
        if X is None:
            if likelihood == "rows":
                raise ValueError(
                    "likelihood='rows' needs the rows: call to_pymc(X, y, likelihood='rows')"
                )
            return self.prior_.to_pymc(coords, stats=self.stats_)
        rows = self._rows(X, y)
        if likelihood == "rows":
            return self.prior_.to_pymc(coords, X=rows.X, y=rows.y, stats=self.stats_)
        stats = self.prior_.stats(rows.X, rows.y, len(self.classes_))
        return self.prior_.to_pymc(coords, stats=stats)

    def _rows(self, X: Any, y: Any) -> Rows:
        """Labelled rows as the fit encoded its own."""
        codes = self._codes_of(column_or_1d(y))
        rows = Rows(self._encode(self._read(X, reset=False)), codes)
        check_consistent_length(codes, rows.X)
        return rows

    def _pymc_of_rows(self, X: Any, y: Any, likelihood: str) -> Any:
        """`to_pymc` where sufficient statistics do not hold the rows."""
        conjugate = self._conjugate()
        if X is None or y is None:
            why = (
                "the rows of this fit have no sufficient statistics (labels or cells are missing)"
                if conjugate
                else f"{type(self.prior_.family).__name__} has no sufficient statistics of rows"
            )
            raise NoClosedFormError(f"{why}, and a classifier keeps no rows: call to_pymc(X, y)")
        rows = self._labelled(X, y, None, reset=False, unlabelled=True)
        labels, codes = rows.coded()
        codes = np.where(codes < 0, -1, self._codes_of(labels)[codes])
        data = sampled.Data(self._encode(rows.X), codes, len(self.classes_))
        if likelihood == "rows":
            stats = self._fitted().stats if self._conjugate() else None
            return sampled.observing(self.prior_, data, self._coords(), stats)
        return sampled.target_under(self.prior_, data).to_pymc(self._coords())
