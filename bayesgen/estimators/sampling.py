"""Fitting by draws: families without closed forms, labels or cells that are not known."""

import copy
import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_sample_weight, check_consistent_length

from bayesgen.checks import criticism
from bayesgen.datatree import tree
from bayesgen.datatree.names import POSTERIOR, POSTERIOR_PREDICTIVE, SAMPLE_STATS
from bayesgen.encoding.labels import code_labels, is_labelled, labels_and_mask
from bayesgen.estimators.face import NoClosedFormError
from bayesgen.estimators.posterior import Posterior
from bayesgen.families.contract import ConjugateFamily, Family, Stats, broadcast_prior
from bayesgen.families.names import CHAIN, CLASS_WEIGHTS, DRAW
from bayesgen.families.shared.cells import by_cell
from bayesgen.inference import approximation, diagnostics, gibbs
from bayesgen.inference import nuts as mcmc
from bayesgen.inference.closed_form import posterior as closed_form_posterior
from bayesgen.inference.incomplete import is_complete, partial_data, resolved_prior
from bayesgen.numerics.rows import class_counts, has_nan
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import ClassModel, ClassStats, PartialRows, draw_shape

_BYTES = 1 << 30  # imputations that would be larger are left out
UNLABELLED, CELL = "unlabelled_row", "cell"


class Sampling(Posterior):
    """The posterior as draws."""

    def _sample(
        self, X: Any, y: Any, sample_weight: Any, inference: Any, options: dict[str, Any]
    ) -> Self:
        """`fit` with an `inference` that draws."""
        options = self._options_for(inference, options)
        self.inference_ = inference
        X = self._read(X, reset=True)
        values, masked = labels_and_mask(y)
        check_consistent_length(X, values)
        at = np.arange(len(values))
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
            at = np.flatnonzero(weight > 0)
            if not len(at):
                raise ValueError("sample_weight is 0 for every row: there is nothing to fit")
            if len(at) < len(values):
                X, values, masked = _safe_indexing(X, at), values[at], masked[at]
                weight = weight[at]
        known = is_labelled(values, masked)
        labels, own = code_labels(_plain(values[known]))
        codes = np.full(len(values), -1)
        codes[known] = own
        self.classes_, self.encoder_ = labels, self._learn(X)
        self.n_rows_seen_, self.n_unlabelled_ = len(values), int((~known).sum())
        rows = self._encode(X)
        if inference == "gibbs":
            posterior, sample_stats = self._sweep(rows, codes, weight, options)
        else:
            model, start = self._model_to_sample(rows, codes, weight)
            if inference == "nuts":
                posterior, sample_stats = mcmc.sample(model, start=start, **options)
            else:
                posterior, sample_stats = approximation.sample(
                    model, inference, start=start, **options
                )
        draws = {str(k): np.asarray(v.values) for k, v in posterior.data_vars.items()}
        changed = self._scorer().family.relabelled(draws, rows, codes)
        posterior = posterior.assign({k: (posterior[k].dims, v) for k, v in changed.items()})
        library = {"advi": "pymc", "pathfinder": "pymc-extras"}.get(inference, "bayesgen")
        if inference == "nuts":
            library = options.get("sampler", "nutpie")
        groups = {POSTERIOR: posterior, SAMPLE_STATS: sample_stats}
        out = self._tree(groups, inference, options.get("random_seed"), library)
        if inference == "nuts":
            out.attrs["sampler"] = options.get("sampler", "nutpie")
        if inference in approximation.APPROXIMATIONS:
            out.attrs |= {"approximation": "a Normal in unconstrained coordinates"}
        rng = np.random.default_rng(options.get("random_seed"))
        self._draws = out
        self._impute(out, rng, rows, codes, at)
        if inference in approximation.APPROXIMATIONS:
            approximation.warn_unless_close(inference, sample_stats)
        else:
            name = {"nuts": "NUTS", "gibbs": "Gibbs"}[inference]
            why = self._chains_disagree(posterior)
            diagnostics.warn_unless_sound(posterior, sample_stats, name, why)
        return self

    def _chains_disagree(self, posterior: Any) -> str:
        """What to say where they do, if this model knows more than that they do."""
        return ""

    def _sample_options(self) -> dict[str, Any]:
        """Of the sampler, where `fit` is not told otherwise."""
        return {}

    def _options_for(self, inference: str, options: dict[str, Any]) -> dict[str, Any]:
        """Options of the sampler, checked before any work."""
        own = self._sample_options()
        if inference in approximation.APPROXIMATIONS:
            # of a sampler; an approximation has none
            for name in ("tune", "chains", "target_accept"):
                own.pop(name, None)
                if name in options:
                    raise TypeError(f"fit() got {name}, which inference={inference!r} has not")
            approximation.check((own | options).get("draws", 1))
            return own | options
        defaults = {"draws": 1, "tune": 1, "chains": 1, "sampler": "nutpie"}
        asked: dict[str, Any] = defaults | own | options
        mcmc.check(*(asked[k] for k in defaults))
        return own | options

    def _sweep(
        self, X: Any, codes: Array, weight: Array | None, options: dict[str, Any]
    ) -> tuple[Any, Any]:
        """Posterior and sample statistics by data augmentation."""
        import xarray as xr

        family: Any = self._make_family()
        if not isinstance(family, ConjugateFamily):
            raise NoClosedFormError(
                f"inference='gibbs' draws theta from a conjugate posterior, and "
                f"{type(family).__name__} has none: use 'nuts'"
            )
        if _has_gaps(family, X) and has_nan(X):
            raise NoClosedFormError(
                "inference='gibbs' draws labels, not missing cells, which have no closed form "
                "under a full covariance: use 'nuts', or leave those rows out"
            )
        self.prior_ = resolved_prior(family, self.class_alpha, X, codes, len(self.classes_), weight)
        data = partial_data(self.prior_, X, codes, weight)
        self._rough, self._rough_stats = data.rough, data.rough_stats
        draws = gibbs.sample(self.prior_, X, codes, weight, **options)
        return tree.draws_dataset(draws, self.prior_.params, self._coords()), xr.Dataset()

    def _model_to_sample(self, X: Any, codes: Array, weight: Array | None) -> Any:
        """The PyMC model of training rows, codes -1 where there is no label; where to start."""
        family, n_classes = self._make_family(), len(self.classes_)
        if not isinstance(family, ConjugateFamily):
            return self._model_of_rows(family, X, codes, weight), self._start_of_rows()
        if is_complete(family, X, codes):
            stats = ClassModel(self.class_alpha, family).stats(X, codes, n_classes, weight)
            self.stats_ = stats
            self.prior_, self.model_ = closed_form_posterior(
                family, self.class_alpha, self.prior, stats
            )
            return _prepared(self.prior_, stats).to_pymc(self._coords(), stats=stats), None
        if self.prior == "empirical":
            raise ValueError(
                "prior='empirical' maximises the evidence, which has no closed form where labels "
                "or cells are missing: fit the complete rows first and give the hyper-parameters "
                "of its prior_"
            )
        self.prior_ = resolved_prior(family, self.class_alpha, X, codes, n_classes, weight)
        return self._partial_model(X, codes, weight)

    def _model_of_rows(self, family: Family, X: Any, codes: Array, weight: Array | None) -> Any:
        """The PyMC model of a family that has no sufficient statistics."""
        if self.prior != "default":
            raise ValueError(
                f"prior={self.prior!r} maximises the evidence, which has no closed form for "
                f"{type(family).__name__}: leave prior at 'default'"
            )
        n_classes, known = len(self.classes_), codes >= 0
        alpha = broadcast_prior("class_alpha", self.class_alpha, (n_classes,))
        family = family.with_defaults(X, codes, n_classes, weight)
        own = None if weight is None else weight[known]
        count = class_counts(codes[known], n_classes, own)
        self.prior_ = ClassModel(alpha, family)
        self._rough = ClassModel(alpha + count, family)
        self._rough_stats = ClassStats(count, Stats())
        whole = known if weight is None else np.zeros_like(known)  # one by one, without weights
        some = None
        if family.discriminative and not whole.all():  # without a label it says nothing
            X, codes, whole = X[known], codes[known], whole[known]
            weight = own
        if not whole.all():
            loose = np.flatnonzero(~whole)
            possible = codes[loose, None] == np.arange(n_classes)
            possible |= codes[loose, None] < 0
            ones = np.ones(len(loose))
            some = PartialRows(X[loose], possible, ones if weight is None else weight[loose])
        if not whole.any():
            return self.prior_.to_pymc(self._coords(), partial=some)
        return self.prior_.to_pymc(self._coords(), X=X[whole], y=codes[whole], partial=some)

    def _start_of_rows(self) -> Any:
        """Where the chains of `_model_of_rows` start: the family's choice, if it has one."""
        family, alpha = self.prior_.family, self._rough.alpha
        if family.start(np.random.default_rng(0)) is None:
            return None

        def start(rng: np.random.Generator) -> dict[str, Array]:
            return {CLASS_WEIGHTS: rng.dirichlet(alpha), **family.start(rng)}

        return start

    def _partial_model(self, X: Any, codes: Array, weight: Array | None) -> Any:
        """The PyMC model of rows that are not all complete; where its chains start.

        They start at draws of the posterior given the labelled rows alone: wider than what is
        sampled, and on the side of the labels. Classes without rows in the right place would
        often trade their meanings.
        """
        data = partial_data(self.prior_, X, codes, weight)
        self._rough, self._rough_stats = data.rough, data.rough_stats
        features, coords = data.rough_stats.features, self._coords()
        prior, labelled = (_prepared(m, data.rough_stats) for m in (self.prior_, data.labelled))

        def start(rng: np.random.Generator) -> dict[str, Array]:
            theta = labelled.draw(rng, 1)
            free = prior.family.pymc_coordinates(theta, features)
            listed = {k: by_cell(prior.params[k], v, coords)[1] for k, v in theta.items()}
            return {k: v[0] for k, v in (listed | {k: v for k, (_, v) in free.items()}).items()}

        return prior.to_pymc(coords, stats=data.stats, partial=data.rows), start

    def _partial_pymc(self, X: Any, y: Any) -> Any:
        """`to_pymc` where sufficient statistics do not hold the rows."""
        if X is None or y is None:
            raise NoClosedFormError(
                "the rows of this fit have no sufficient statistics (labels or cells are "
                "missing), and a classifier keeps no rows: call to_pymc(X, y)"
            )
        rows = self._encode(self._read(X, reset=False))
        values, masked = labels_and_mask(y)
        known = is_labelled(values, masked)
        codes = np.full(len(values), -1)
        codes[known] = self._codes_of(_plain(values[known]))
        family, n_classes = self.prior_.family, len(self.classes_)
        pilot = copy.copy(self)  # a pilot fit of these rows is not that of this classifier
        if not isinstance(family, ConjugateFamily):
            guided = family.guided_by(rows, codes, n_classes)
            return pilot._model_of_rows(guided, rows, codes, None)
        if is_complete(family, rows, codes):
            stats = self.prior_.stats(rows, codes, n_classes)
            return _prepared(self.prior_, stats).to_pymc(self._coords(), stats=stats)
        return pilot._partial_model(rows, codes, None)[0]

    def _impute(self, out: Any, rng: np.random.Generator, X: Any, codes: Array, at: Array) -> None:
        """Add draws of what the training rows do not tell, given theta and what they do.

        Parameters
        ----------
        at : (N,)
            Position of each row in the X that was given to `fit`.
        """
        family = self._scorer().family
        unlabelled = np.flatnonzero(codes < 0)
        gaps = np.array([], dtype=int)
        if "model_" not in self.__dict__ and _has_gaps(family, X):
            gaps = np.flatnonzero(np.isnan(X).any(axis=1))
        if not (len(unlabelled) or len(gaps)) or family.discriminative:
            return
        theta = tree.read_draws(out, self._scorer().params, self._coords())
        lead = draw_shape(family, theta)
        size = len(unlabelled) + (int(np.isnan(X[gaps]).sum()) if len(gaps) else 0)
        if 8 * size * int(np.prod(lead)) > _BYTES:
            warnings.warn(
                f"draws of {size} missing labels and cells would take more than 1 GiB: "
                "posterior_ has no group posterior_predictive; the rest is not affected",
                UserWarning,
                stacklevel=5,
            )
            return
        variables: criticism.Variables = {}
        coords: dict[str, Any] = {}
        drawn = np.broadcast_to(codes, (*lead, len(codes))).copy()
        if len(unlabelled):
            found = criticism.labels_given_x(rng, family, theta, X[unlabelled])
            drawn[..., unlabelled] = found
            variables["imputed_label"] = ((CHAIN, DRAW, UNLABELLED), found)
            coords[UNLABELLED] = at[unlabelled]
        if len(gaps):
            flat = {k: v.reshape(-1, *v.shape[2:]) for k, v in theta.items()}
            own = drawn[..., gaps].reshape(-1, len(gaps))
            values, row, column = family.draw_missing(rng, X[gaps], own, flat)
            variables["imputed"] = ((CHAIN, DRAW, CELL), values.reshape(*lead, -1))
            names = np.array([str(n) for n in self._feature_names()])
            coords |= {"row": (CELL, at[gaps[row]]), "column": (CELL, names[column])}
        group = tree.group(variables, {})
        out[POSTERIOR_PREDICTIVE] = group.assign_coords(coords)


def _has_gaps(family: Family, X: Any) -> bool:
    """Whether the family draws missing cells."""
    return isinstance(family, ConjugateFamily) and family.condensed(X[:1], np.ones(1)) is not None


def _prepared(prior: ClassModel, stats: ClassStats) -> ClassModel:
    return replace(prior, family=prior.family.prepared(stats.features))


def _plain(labels: Array) -> Array:
    """Labels of an object array as what they are, if they are not text."""
    if labels.dtype.kind != "O" or any(isinstance(v, str) for v in labels):
        return labels
    return np.array(labels.tolist())
