"""The posterior as others read it: evidence, draws by either route, the PyMC model."""

import copy
import warnings
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from bayesgen.checks import criticism
from bayesgen.datatree import tree
from bayesgen.estimators.estimator import package_version
from bayesgen.estimators.learning import Learning
from bayesgen.families.contract import ConjugateFamily
from bayesgen.families.names import (
    CONSTANT_DATA,
    FIT,
    LOG_PRIOR,
    OBSERVED_DATA,
    POSTERIOR,
    PRIOR,
    REQUESTS,
    SAMPLE_STATS,
)
from bayesgen.inference import sampled
from bayesgen.inference.closed_form import NoClosedFormError
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import xarray as xr

_DRAW_BYTES = 1 << 30  # posterior_ draws fewer parameters than asked rather than exceed this
_GROUPS_OF_ROWS = ("posterior_predictive", "log_likelihood")


class Posterior(Learning):
    """Evidence, draws and PyMC."""

    @property
    def log_evidence_(self) -> float:
        """log p(X, y) of the training rows, everything integrated out."""
        check_is_fitted(self, "model_")
        return float(self.prior_.log_evidence(self.stats_))

    @property
    def posterior_(self) -> "xr.DataTree":
        """DataTree of 4 chains of 500 exact draws: `draw_posterior` with its defaults.

        Made on first use, with seed 0. After ``fit(inference="nuts")``: the draws of that fit.
        """
        if "_draws" not in self.__dict__:
            check_is_fitted(self, "model_")
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
            ``"log_likelihood"``, ``"log_prior"``. Default: ``prior`` and ``log_prior``, and with
            rows ``log_likelihood`` and ``posterior_predictive``.
        replicate : sequence of {"label", "x"}
            What of the rows is observed and drawn in the predictive groups; the other is constant.

        Returns
        -------
        xarray.DataTree
            Groups ``posterior`` (chain, draw, ...), ``constant_data`` (hyper-parameters of the
            prior), ``observed_data`` (the sufficient statistics, or the rows given), ``fit``, and
            those of `groups`:

            - ``prior``: draws from the prior.
            - ``prior_predictive``, ``posterior_predictive``: ``label``, a class code, of each
              row. In the posterior predictive it is drawn given the row's x, and ``x`` given its
              label; in the prior predictive they are drawn together. As in `to_pymc` there is one
              ``x`` for each kind of columns, and none of sparse or text X.
            - ``log_likelihood``: ``joint``, log p(y, x | theta), and ``label_given_x``.
            - ``log_prior``: log densities of ``pi`` and of the features' ``theta``.

        Notes
        -----
        ArviZ must be told which of the two likelihoods is meant, as in ``az.loo(tree,
        var_name="label_given_x")`` and ``az.psense_summary(tree, likelihood_var_names="joint")``,
        which would add them up.

        Examples
        --------
        >>> import bayesgen as bg
        >>> X, y = [[1.0], [1.4], [4.0], [4.4]], ["a", "a", "b", "b"]
        >>> tree = bg.GaussianNB().fit(X, y).draw_posterior(100, X=X, y=y)
        >>> sorted(tree["log_likelihood"].data_vars)
        ['joint', 'label_given_x']
        """
        check_is_fitted(self, "model_")
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
        drawn = tree.split_chains(self.model_.draw(rng, draws * chains), chains)
        posterior = tree.draws_dataset(drawn, self.model_.params, self._coords())
        free = self.prior_.family.pymc_coordinates(drawn, self.stats_.features)
        coordinates = tree.with_draws(free)
        out = self._tree({POSTERIOR: posterior.merge(tree.group(coordinates, self._coords()))})
        self._add_groups(out, drawn, rng, rows, names, replicate)
        out.attrs["route"] = "closed form"
        if isinstance(random_state, int):
            out.attrs["seed"] = random_state
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
        features, the same kind of prior) is compiled once a process.

        Parameters
        ----------
        draws, tune, chains : int
            Draws of each chain, after `tune` steps that are thrown away.
        random_seed : int, optional
        sampler : {"nutpie", "pymc"}
        X, y, groups, replicate
            As in `draw_posterior`. Rows are needed for ``likelihood="rows"``.
        likelihood : {"statistics", "rows"}
            As in `to_pymc`.
        progressbar : bool
        **options
            To the sampler, e.g. ``target_accept=0.95``.

        Returns
        -------
        xarray.DataTree
            As `draw_posterior`, and ``sample_stats``.
        """
        from bayesgen.inference import nuts as mcmc

        check_is_fitted(self, "model_")
        rows, names = self._requests(X, y, groups, replicate)
        mcmc.check(draws, tune, chains, sampler)
        model = self.to_pymc(X, y, likelihood=likelihood)
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
        out = self._tree({POSTERIOR: posterior, SAMPLE_STATS: sample_stats})
        drawn = tree.read_draws(posterior, self.model_.params, self._coords())
        self._add_groups(out, drawn, np.random.default_rng(random_seed), rows, names, replicate)
        out.attrs["route"] = "nuts"
        out.attrs |= {"sampler": sampler, "tune": tune}
        if random_seed is not None:
            out.attrs["seed"] = random_seed
        return out

    def _tree(self, groups: dict[str, "xr.Dataset"]) -> "xr.DataTree":
        """A DataTree with what every route has: data, ``fit``, provenance."""
        import xarray as xr

        stats, coords = self._fitted().stats, self._coords()
        groups = groups | {CONSTANT_DATA: tree.prior_dataset(self.prior_, stats, coords)}
        if "model_" in self.__dict__:
            fit = tree.fit_dataset(self.prior_, self.model_, stats, coords)
            observed = [name for name in fit.data_vars if str(name).startswith("stats_")]
            groups |= {OBSERVED_DATA: fit[observed].drop_attrs(deep=False), FIT: fit}
        out = xr.DataTree.from_dict({f"/{name}": group for name, group in groups.items()})
        out.attrs |= {"estimator": type(self).__name__, "family": type(self.prior_.family).__name__}
        out.attrs["bayesgen_version"] = package_version()
        return out

    def _requests(
        self, X: Any, y: Any, groups: Sequence[str] | None, replicate: Sequence[str]
    ) -> tuple["criticism.Rows | None", list[str]]:
        """The rows, encoded, and the names of the groups to make; checked before any work."""
        if (X is None) != (y is None):
            raise ValueError("X and y must be given together")
        rows = None
        if X is not None:
            codes = self._codes_of(column_or_1d(y))
            rows = criticism.Rows(self._encode(self._read(X, reset=False)), codes)
            check_consistent_length(codes, rows.X)
        if groups is None:
            names = [] if rows is None else list(_GROUPS_OF_ROWS)
            if self._conjugate():
                names = [PRIOR, *names]
                if type(self.prior_.family).log_density is not ConjugateFamily.log_density:
                    names.append(LOG_PRIOR)  # which a user's own family may not tell
        else:
            names = [groups] if isinstance(groups, str) else list(groups)
        unknown = sorted(set(names) - set(REQUESTS))
        if unknown:
            raise ValueError(f"groups must be of {', '.join(REQUESTS)}; got {unknown}")
        strange = sorted(set(replicate) - {"label", "x"})
        if strange or isinstance(replicate, str):
            raise ValueError(f"replicate must be a sequence of 'label' and 'x', got {replicate!r}")
        criticism.refuse_rowless(names, rows)
        return rows, names

    def _add_groups(
        self,
        out: "xr.DataTree",
        theta: dict[str, Array],
        rng: np.random.Generator,
        rows: "criticism.Rows | None",
        names: list[str],
        replicate: Sequence[str],
    ) -> None:
        """The groups asked for; of the rows, what is replicated is observed, the rest constant."""
        coords, stats = self._coords(), self._fitted().stats.features
        draw_prior = None if self._conjugate() else partial(self._draw_prior, rng)
        made = criticism.groups(names, rng, self.prior_, theta, rows, stats, replicate, draw_prior)
        if rows is not None:
            label, features = criticism.data(self.prior_.family, theta, rows)
            observed = (label if "label" in replicate else {}) | (
                features if "x" in replicate else {}
            )
            made = {OBSERVED_DATA: observed, **made}
            rest = {k: v for k, v in (label | features).items() if k not in observed}
            constants = out[CONSTANT_DATA].to_dataset()
            out[CONSTANT_DATA] = constants.merge(tree.group(rest, coords))
        for name, variables in made.items():
            out[name] = tree.group(variables, coords)

    def _draw_prior(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """{name: (n, *dims)} from the prior of a family that only PyMC can draw."""
        from bayesgen.inference import nuts as mcmc

        model = self.prior_.to_pymc(self._coords())
        return mcmc.draw_prior(model, self.prior_.params, n, int(rng.integers(1 << 31)))

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
            ``log_likelihood`` has ``joint``, log p(y, x | theta), and ``label_given_x``; a
            discriminative model has the latter alone.

        Examples
        --------
        >>> import arviz as az
        >>> import bayesgen as bg
        >>> X, y = bg.datasets.load_penguins()
        >>> X, y = X[["bill_length_mm"]].dropna(), y[X["bill_length_mm"].notna()]
        >>> models = {"class": bg.GaussianNB(), "tied": bg.GaussianNB(variance="tied")}
        >>> trees = {k: m.fit(X, y).posterior_groups(X, y) for k, m in models.items()}
        >>> table = az.compare(trees, var_name="label_given_x")
        >>> sorted(table.index)
        ['class', 'tied']
        """
        check_is_fitted(self, "prior_")
        if X is None or y is None:
            raise ValueError("posterior_groups is about labelled rows: give X and y")
        names = list(_GROUPS_OF_ROWS) if groups is None else groups
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
    ) -> Any:
        """The model as a PyMC graph: the same priors on the same data.

        Parameters
        ----------
        X, y : rows and labels, optional
            A fitted classifier keeps statistics, not rows. They are needed for
            ``likelihood="rows"``, and after a fit by NUTS to rows without a label or with missing
            cells that have no closed form: then for either `likelihood`, and of weight 1.
        likelihood : {"statistics", "rows"}
            Potentials of the sufficient statistics, so that a gradient costs the same for 10^3
            rows as for 10^8; or the rows as given, ``label`` and ``x`` observed. The log
            posteriors differ by a constant.
        observed : bool
            False: the prior alone.

        Returns
        -------
        pymc.Model
            Variable names, dims and coords are those of ``posterior_``.
        """
        check_is_fitted(self, "prior_")
        coords = self._coords()
        if not observed:
            return self.prior_.to_pymc(coords)
        if "model_" not in self.__dict__:
            return self._pymc_of_rows(X, y)
        if likelihood == "statistics":
            return self.prior_.to_pymc(coords, stats=self.stats_)
        if likelihood != "rows":
            raise ValueError(f"likelihood must be 'statistics' or 'rows', got {likelihood!r}")
        if X is None or y is None:
            raise ValueError(
                "likelihood='rows' needs the rows: call to_pymc(X, y, likelihood='rows')"
            )
        encoded = self._encode(self._read(X, reset=False))
        codes = self._codes_of(column_or_1d(y))
        return self.prior_.to_pymc(coords, X=encoded, y=codes, stats=self.stats_)

    def _pymc_of_rows(self, X: Any, y: Any) -> Any:
        """`to_pymc` where sufficient statistics do not hold the rows."""
        if X is None or y is None:
            raise NoClosedFormError(
                "the rows of this fit have no sufficient statistics (labels or cells are "
                "missing), and a classifier keeps no rows: call to_pymc(X, y)"
            )
        rows = self._labelled(X, y, None, reset=False, unlabelled=True)
        codes = np.where(rows.codes < 0, -1, self._codes_of(rows.labels)[rows.codes])
        data = sampled.Data(self._encode(rows.X), codes, len(self.classes_))
        goal = sampled.target(self._unresolved(), self.prior, data)
        other = copy.copy(self)
        other._aim_at(goal)
        return goal.to_pymc(other._coords())
