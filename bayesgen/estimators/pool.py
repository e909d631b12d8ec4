"""A pool of classifiers with exponents learned from exact leave-one-out: LogLinearPool."""

import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags

from bayesgen.datatree import tree
from bayesgen.datatree.tree import POSTERIOR
from bayesgen.encoding import suspects
from bayesgen.encoding.labels import (
    Labelled,
    RowSample,
    group_codes,
    labelled,
    labels_of,
    rows_with_label,
    warn_of_one_class,
)
from bayesgen.encoding.labels import weights as weights_of_rows
from bayesgen.encoding.reader import Reader, Rows
from bayesgen.encoding.suspects import ColumnWarning, CopiedRowsWarning, copied_rows
from bayesgen.encoding.tables import kept, n_rows, refuse_elsewhere
from bayesgen.encoding.views import TableView
from bayesgen.errors import refuse_not_positive, refuse_unknown, warn
from bayesgen.estimators.arguments import Labels, PerRow, RowsLike, make_constructor
from bayesgen.estimators.classifier import GenerativeClassifier
from bayesgen.estimators.pool_members import choose_members
from bayesgen.estimators.saving import (
    groups_of_training,
    refuse_subclass,
    state_of,
    training_of,
)
from bayesgen.estimators.summary import Summary, summary_of_pool
from bayesgen.families.contract import Family
from bayesgen.families.errors import NoClosedFormError
from bayesgen.families.names import CHAIN, CLASS, DRAW, FEATURE, MEMBER, OBS
from bayesgen.inference.exponents import sample
from bayesgen.inference.fitting import Unlabelled
from bayesgen.io import storage
from bayesgen.numerics.rows import class_counts
from bayesgen.numerics.special import Array, integer_seed
from bayesgen.posterior.fitted import Fitted, Training
from bayesgen.posterior.model import ClassModel, declare_probability
from bayesgen.posterior.pooled import (
    INTERCEPT_SCALE,
    SHAPE,
    Evidence,
    Exponents,
    LogLinear,
    Member,
    MemberRows,
    PooledPosterior,
    Scored,
    evidence_of,
)
from bayesgen.predict.leave_one_out import (
    LabelledRows,
    rows_of_fit,
)
from bayesgen.predict.probabilities import log_joint

if TYPE_CHECKING:
    import pymc as pm


# ------------------------------------------------------------------------------------------------
# Rows of a pool, and members given by the user.


@dataclass(frozen=True, eq=False)
class PoolReader(Reader):
    """Rows of any kind, which each member reads as its own."""

    members: tuple[Member, ...] = ()

    def admit(self, X: RowsLike, *, first: bool = False) -> tuple[Self, Rows]:
        """Rows as they are, sparse formats as CSR: members check them."""
        if sparse.issparse(X):
            X = X.tocsr()
        elif not (hasattr(X, "shape") or isinstance(X, list | tuple)):
            refuse_elsewhere(X)
            X = np.asarray(X)
        refuse_elsewhere(X)
        reader = self
        if len(getattr(X, "shape", ())) == 2:
            reader = self.of_columns(X, first)
        elif first and _is_list_of_rows(X):
            reader = replace(self, n_features=len(X[0]))
        return reader, Rows(X, reader)

    def encode(self, rows: Rows) -> MemberRows:
        """Rows as the members read them."""
        return MemberRows(rows, log_joint)

    @property
    def columns(self) -> list[Any]:
        """Names of the columns; of documents the features of the first member."""
        if self.names is not None:
            return [str(name) for name in self.names]
        views = [member.view for member in self.members if isinstance(member.view, TableView)]
        first = self.members[0].fitted.feature_names
        return views[0].schema.labels if views else [str(name) for name in first]

    def coords(self, family: Family) -> dict[str, Any]:
        """{dim: labels} of the exponents."""
        return {MEMBER: [member.name for member in self.members], FEATURE: self.columns}


def _is_list_of_rows(X) -> bool:
    return isinstance(X, list) and bool(X) and isinstance(X[0], list | tuple)


def _seen(member: Member, X: MemberRows) -> Rows:
    """Training rows as a member's classifier has read them."""
    return X.learnt(member, member.clf.__bayesgen_learner__().reader)


def learnt(member: Member, X: MemberRows, y: Labelled) -> Member:
    """Return a member fitted to labelled rows; the pipeline first."""
    clf = member.clf
    groups = {} if y.groups is None or member.front is None else {"groups": y.groups}
    with warnings.catch_warnings():
        for told_by_the_pool in (ColumnWarning, CopiedRowsWarning):
            warnings.simplefilter("ignore", told_by_the_pool)
        if member.front is not None:
            rows = member.front.fit_transform(X.X, y.labels)
            clf = clf.fit(rows, y.labels, sample_weight=y.weight, **groups)
        elif type(clf).fit is GenerativeClassifier.fit and clf._family_type.conjugate:
            learner = clf.__bayesgen_learner__()
            rows = _seen(member, X)
            clf.fitted_ = learner.fit_read(rows.reader, y._replace(X=rows))
        else:
            clf = clf.fit(X.seen(member), y.labels, sample_weight=y.weight)
    # rows that nobody else keeps are not kept
    rows_kept = kept(X.X, y.labels, y.weight) if X.seen(member) is X.X else None
    clf.fitted_ = clf.fitted_.with_training(rows=rows_kept)
    return replace(member, clf=clf)


def named(members) -> list[tuple[str, Any]]:
    """Return (name, estimator) pairs of the user's members."""
    members_given = list(members.items()) if isinstance(members, dict) else list(members)
    if not members_given:
        raise ValueError("members: a pool needs at least one classifier")
    pairs = [g if isinstance(g, tuple) and len(g) == 2 else (None, g) for g in members_given]
    checked: list[tuple[str, Any]] = []
    taken = {name for name, _ in pairs if name is not None}
    for name, estimator in pairs:
        last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
        if isinstance(last, LogLinearPool) or not isinstance(last, GenerativeClassifier):
            raise TypeError(
                f"members: {type(last).__name__} has no exact leave-one-out; a member is a "
                "classifier of this package, or a scikit-learn Pipeline that ends in one"
            )
        if name is None:
            stem = name = type(last).__name__
            k = 1
            while name in taken:
                k += 1
                name = f"{stem}-{k}"
            taken.add(name)
        elif not isinstance(name, str):
            raise TypeError(f"members: a name must be a string, got {name!r}")
        checked.append((name, estimator))
    names = [name for name, _ in checked]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"members: the name {sorted(twice)[0]!r} is given twice")
    return checked


def _member(name: str, estimator) -> Member:
    if not isinstance(estimator, Pipeline):
        return Member(name, estimator)
    front = estimator[:-1] if len(estimator.steps) > 1 else None
    return Member(name, estimator.steps[-1][1], None, front)


_FIT = "fit"  # in a model file, of a member
_ROUTE = "hmc"  # how exponents are drawn


@make_constructor
class LogLinearPool(GenerativeClassifier):
    r"""Log-linear pool of generative classifiers, calibrated by exact leave-one-out.

    .. math:: p(y = c \mid x) \propto \pi_c \exp\Big(\sum_m \eta_m E_{mc}(x) + k(x) b_c\Big)

    :math:`E_{mc}(x) = \log p_m(x \mid y = c, D)` is the evidence of member m, its parameters
    integrated out. For a discriminative member it is
    :math:`\log p_m(y = c \mid x, D) - \log \pi_c`. Class weights :math:`\pi` are the frequencies
    in the training rows, with a pseudo-count of 1. Exponents :math:`\eta_m > 0` and intercepts b
    are learned from leave-one-out evidence: no row scores itself. k(x) is the share of the row's
    cells that are known, so a row without known cells or tokens gets the class weights. A pool of
    one member calibrates it. An exponent below 1 means that the member counts evidence more than
    once, like naive Bayes with dependent columns.

    The pool adds a discriminative layer of M + C numbers to the predictives. It is not Bayesian
    model averaging, which weights members by their evidence and in the limit uses one of them
    (`bayesgen.compare_models` shows both). Exponents and intercepts are integrated out: predictions
    are means over 2000 draws of their posterior.

    Parameters
    ----------
    members : "auto", list, or {name: estimator}
        Classifiers of this package, conjugate or sampled, or scikit-learn pipelines that end in
        one; also as (name, estimator) pairs. They are cloned and fitted once. ``"auto"`` chooses
        by the columns. For a table it uses independent columns (`MixedNB`), linear discriminants on
        numbers and on normal scores, a quadratic one on normal scores (categories as indicators)
        and label trees (`MetaTreeForest`), without those that would take many seconds. For a sparse
        matrix it uses bits and counts. For documents it uses language models, also for each named
        column of a data frame that holds texts (of four words or more, most of them different); a
        missing cell is an empty text.
    intercepts : bool
        Learn b, which corrects evidence that favours a class.
    max_rows : int, default 5000
        Largest number of rows from which exponents are learned; more rows are sampled.
    random_state : int, optional
        Seed of that sample, of label trees and of the draws of exponents. None is a fixed seed.

    Attributes
    ----------
    classes_ : array (class,)
    members_ : {name: fitted classifier}
    exponents_ : array (member,)
        Posterior means, for reading; predictions use the draws.
    intercepts_ : array (class,)
        Posterior means of the intercepts.
    text_columns_ : tuple of str
        Columns of a data frame that language models read under ``"auto"``.
    posterior_ : xarray.DataTree
        Draws of exponents and intercepts, 8 chains of 250; R-hat and effective sample size in its
        attributes.
    left_out_ : {name: reason}
        Members that ``"auto"`` does not use, and columns that some of its members do not see.

    Notes
    -----
    The prior of an exponent is Gamma(1/2, M / 2), with mean 1 / M. If the members read G parts of
    the columns (texts and others), the mean is G / M. The prior of an intercept is Normal(0, 2), in
    nats. Hamiltonian Monte Carlo draws until R-hat is at most 1.01. Scores are relative to the best
    class of each row and are cut at -300 nats. If the members separate few rows without error,
    exponents stay near their prior mean 1 / M, and the pool is less confident than its best member.
    Views of ``"auto"`` (normal scores, means in place of missing cells for full covariances) are
    learned from all rows without labels and stay the same when a row is left out.

    *Methods* are those of a classifier. A pool does not model x, so ``score_samples``,
    ``simulate``, ``target="joint"``, methods that add rows, and plug-ins are absent or refused.
    ``class_prior=`` multiplies the odds by its ratio to the class weights of training.

    *Intervals, uncertainty, draws*: each of 100 draws gives every training row an independent
    weight, Gamma with mean 1 and variance 4/3, fits the members again with these weights
    (structures of trees, views and members by MCMC stay), draws their parameters once, and pools
    the densities by one draw of exponents and intercepts. It pools the predictives of label trees,
    and the densities at the posterior mean of language models with very many contexts. The mean of
    these draws (``mean`` of `predict_uncertainty`) is not the prediction (`predict_proba`): with
    few rows the two may differ by .1. The prediction is an average over parameters and is often
    less extreme than every value in its interval. A pool keeps its training rows for the draws, in
    files and pickles too, up to 64 MiB. Pass larger tables as ``training=(X, y)``.

    *Explanations* compare the pool's own predictions with and without cells of the row. For sparse
    counts, all counts of a column are left out together. For texts, a contribution is the mean
    exponent times the member's contribution, summed by word; ``rest`` (obs_id) is the part of the
    log-odds that these do not explain, and there are no intervals.

    *Leave-one-out* leaves the row out of the members exactly, or by importance sampling if they
    were fitted by draws. Pareto-smoothed importance weights leave it out of the draws of exponents
    and intercepts; a row with a tenth of the weight or more gets new draws. The scores of the
    members for the other rows do not change.

    *Typicality* combines the tail probabilities of all members that have a density, because a row
    may be unlike the others in single columns, in pairs, or in all together. Their harmonic mean is
    small if one of them is small. The result is its rank among those of the training rows, each
    without itself. Small values have their nominal frequency, or a little less. If members count
    bins, large values are too frequent (``tests/benchmarks/typicality.py``). With more than
    `max_rows` rows the ranks are among the rows from which exponents are learned.

    References
    ----------
    Genest, Weerahandi and Zidek (1984), Aggregating opinions through logarithmic pooling. Raina,
    Shen, Ng and McCallum (2003), Classification with hybrid generative/discriminative models.
    Wilson (2019), The harmonic mean p-value for combining dependent tests.

    Examples
    --------
    >>> import bayesgen as bg
    >>> X, y = bg.datasets.load_penguins()
    >>> pool = bg.LogLinearPool([bg.MixedNB(), bg.MixedNB(variance="tied")]).fit(X, y)
    >>> pool.predict(X[:2])
    array(['Adelie', 'Adelie'], dtype=object)
    >>> pool.exponents_.round(1)
    array([0.4, 0.6])
    >>> table = pool.typicality(X[:1].assign(bill_length_mm=90.0))
    >>> table["overall"].values.round(3)
    array([0.003])
    """

    _short_name = "auto"  # on the command line
    __bayesgen_pool__ = True
    _family_type: ClassVar[type[Family]] = LogLinear
    class_alpha = 1.0  # members have their own

    members: Any = "auto"
    _: KW_ONLY
    intercepts: bool = True
    max_rows: int = 5000
    random_state: int | None = None

    # -- what it chooses -----------------------------------------------------------------------

    def _reader(self) -> PoolReader:
        return PoolReader(type(self).__name__)

    def _pooled(self) -> PooledPosterior:
        return cast(PooledPosterior, self._fitted().posterior)

    def _check_arguments(self) -> None:
        refuse_not_positive(max_rows=self.max_rows)
        if isinstance(self.members, str) and self.members != "auto":
            raise ValueError(
                f"members must be 'auto' or a list of classifiers, got {self.members!r}"
            )

    def _members(self, X: MemberRows, y: Labelled) -> tuple[list[Member], dict[str, str]]:
        """Fitted members, and why others were left out."""
        left_out: dict[str, str] = {}
        if isinstance(self.members, str):
            seed = integer_seed(self.random_state)
            members, left_out = choose_members(X, len(y.coded()[0]), seed)
        else:
            members = [_member(name, clone(estimator)) for name, estimator in named(self.members)]
        large = X.shape[0] > self.max_rows  # exponents read a sample of the rows anew
        for k, member in enumerate(members):
            members[k] = learnt(member, X, y)
            if large:
                X.forget(members[k + 1 :])
        return members, left_out

    def _sample_of(self, codes: Array) -> Array:
        """Rows that exponents are learned from: all, or `max_rows` of them."""
        rows = np.arange(len(codes))
        if len(rows) > self.max_rows:
            rng = np.random.default_rng(integer_seed(self.random_state))
            rows = np.sort(rng.choice(rows, size=self.max_rows, replace=False))
        return rows

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
        """Fit the members; draw exponents and intercepts given their leave-one-out joints.

        Parameters
        ----------
        X : (N, D) table, sparse counts, or documents, as the members take them
        y : (N,)
            Labels.
        sample_weight : (N,), optional
            A row is left out whole, whatever its weight. Repeat the rows of a table of counts,
            ``X.loc[X.index.repeat(count)]``; otherwise exponents are learned without any equal row.
        groups : (N,), optional
            Subject, site or source of each row, any labels that can be hashed: exponents and
            intercepts are learned from members without the whole group of a row. None: each row
            is a group of its own, but for exact copies in a table of real numbers
            (`CopiedRowsWarning`): they also count as one row, so that a class which was copied
            more often than the others keeps its share. `class_prior` replaces that share.
        unlabelled : {"ignore"}, optional
            Rows without a label (None, NaN or NA, masked, or -1 among numbers) are left out. None:
            they are refused. Not ``"weighted"``, which is for one model.
        **sample_options
            None are taken: give them to the constructors of the members.

        Raises
        ------
        ValueError
            If a member cannot take the rows.

        Warns
        -----
        SamplingWarning
            If chains of the exponents' draws disagree.
        """
        for name in sample_options:
            raise TypeError(f"{type(self).__name__}.fit() takes no {name}=: give it to the members")
        self._check_arguments()
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        if unlabelled is not None:
            refuse_unknown("unlabelled", unlabelled, ("ignore",))
            if groups is not None:
                raise ValueError("groups= goes with labels: leave rows without one out first")
            X, y, sample_weight = rows_with_label(X, y, sample_weight)
        copies = None
        if isinstance(groups, int | np.integer):
            raise TypeError("fit takes groups= as one name for each row, not a number of folds")
        if groups is not None:
            groups = group_codes(groups, n_rows(X))
        else:
            y = labels_of(y)
            copies = copied_rows(X, y, "copies together count as one row")
            if copies is not None:
                each = 1.0 if sample_weight is None else weights_of_rows(sample_weight, len(copies))
                sample_weight = each / np.bincount(copies)[copies]
        together = copies if groups is None else groups
        reader, rows = self._read(X, y, sample_weight, together)
        seen = MemberRows(rows.X, log_joint, of_training=True)
        members, left_out = self._members(seen, rows)
        if together is not None and not all(m.fitted.posterior.exact for m in members):
            if groups is not None:
                raise NoClosedFormError(
                    "groups= leaves many rows out at once, which members known by draws cannot: "
                    "leave them out of the pool"
                )
            together, rows = None, rows._replace(groups=None)
        fitted = self._with_exponents(reader, members, left_out, seen, rows)
        own_weight = None if copies is None else sample_weight
        self.fitted_ = fitted.with_training(groups=together, weight=own_weight)
        return self

    def _read(
        self, X, y, sample_weight, groups: Array | None = None
    ) -> tuple[PoolReader, Labelled]:
        """Rows for training, and the reader that knows their columns."""
        reader, read = self._reader().admit(X, first=True)
        rows = labelled(read, y, sample_weight, groups=groups)
        return reader, rows._replace(codes=rows.coded())

    def _with_exponents(
        self,
        reader: PoolReader,
        members: list[Member],
        left_out: dict[str, str],
        seen: MemberRows,
        rows: Labelled,
    ) -> Fitted:
        """Return the fit of members whose exponents are drawn from rows left out in turn."""
        classes, codes = rows.coded()
        places, weight = self._sample_of(codes), rows.weight_of_each()
        groups = None if rows.groups is None else rows.groups[places]
        some = LabelledRows(seen[places], codes[places], weight[places], groups)
        members = [
            replace(
                m,
                mean_root=float(some.X.roots(m).mean()),
                most_known=float(some.X.known_share(m).max()) or 1.0,
            )
            for m in members
        ]
        count = class_counts(codes, len(classes), weight)
        evidence, joints = evidence_of(members, count, *some)
        scored = Scored(evidence, some.codes, some.weight, joints)
        n_parts = len({member.selection for member in members})  # of the columns
        prior = LogLinear(n_parts / len(members), self.intercepts)
        draw = partial(sample, prior=prior, seed=integer_seed(self.random_state))
        exponents = draw(*scored[:3])
        odd_columns = suspects.find(seen.X, _columns_without_texts(reader, members))
        suspects.warn_of(odd_columns)
        warn_of_one_class(classes)
        posterior = PooledPosterior(
            tuple(members),
            ClassModel(np.ones(len(classes)), prior),
            exponents,
            count,
            len(places),
            draw,
            scored,
        )
        pool_training = Training(
            len(codes),
            inference=_ROUTE,
            rows=kept(seen.X, rows.labels, rows.weight),
            suspects=odd_columns,
            left_out=left_out,
        )
        reader = replace(reader, members=posterior.members)
        return Fitted(type(self).__name__, classes, reader, posterior, pool_training)

    def __bayesgen_learner__(self) -> Any:
        """For streams and workers."""
        return PoolLearner(self)

    def with_posterior(self, tree: Any, X: RowsLike = None, y: Labels = None) -> Self:
        """Return a pool with these draws of exponents and intercepts; its members stay the same.

        Parameters
        ----------
        tree : xarray.DataTree or Dataset
            Draws with the names and dims of ``posterior_``, for example of the model of `to_pymc`.
        X, y : None
            Not accepted: the members are already fitted.
        """
        self._fitted()
        if X is not None or y is not None:
            raise TypeError("with_posterior of a pool takes no rows: fit() learns its members")
        return super().with_posterior(tree)

    # -- attributes of a fit -------------------------------------------------------------------

    @property
    def members_(self) -> dict[str, GenerativeClassifier]:
        """Fitted members by name."""
        return {member.name: member.clf for member in self._pooled().members}

    @property
    def exponents_(self) -> Array:
        """Posterior means of the exponents. Predictions use the draws, not these."""
        return self._pooled().exponents.mean[0]

    @property
    def intercepts_(self) -> Array:
        """Posterior means of the intercepts."""
        return self._pooled().exponents.mean[1]

    @property
    def n_rows_(self) -> int:
        """Number of rows from which exponents were learned."""
        return self._pooled().n_rows

    @property
    def left_out_(self) -> dict[str, str]:
        """Members that ``"auto"`` does not use, or not for every column, with the reason."""
        return self._fitted().training.left_out

    @property
    def text_columns_(self) -> tuple[str, ...]:
        """Columns of a data frame that language models read under ``members="auto"``."""
        return tuple(dict.fromkeys(name for m in self._pooled().members for name in m.texts))

    # -- what it is ----------------------------------------------------------------------------

    def to_pymc(
        self,
        X: RowsLike = None,
        y: Labels = None,
        *,
        likelihood: Literal["statistics", "rows"] = "statistics",
        observed: bool = True,
        X_new: RowsLike = None,
    ) -> "pm.Model":
        """Return the PyMC model of exponents and intercepts, given the members' scores.

        Priors are Gamma and Normal. The members' scores are data: leave-one-out log joint densities
        (member, obs_id, class). NUTS on this model agrees with `posterior_`.

        Parameters
        ----------
        X, y : training rows, optional
            Needed where the pool does not keep them: more than 64 MiB, or fitted in parts.
        likelihood : {"statistics", "rows"}
            Both give the same model: scores have no sufficient statistics, and labels are observed.
        observed : bool
            False: the prior alone.
        X_new : (N, D) rows, optional
            The model then has the Deterministic ``class_probability`` (new_obs_id, class) of these
            rows: p(y | x, theta), where theta are the exponents and intercepts. The members'
            parameters are integrated out.
        """
        import pymc as pm
        import pytensor.tensor as pt

        fitted, pooled = self._fitted(), self._pooled()
        scored = pooled.scored
        if X is not None or scored is None:
            rows = rows_of_fit(fitted, None if X is None else (X, y)).only_scored()
            scored = pooled.scores_without(*rows)
        evidence, codes, weight, _ = scored
        prior = cast(LogLinear, pooled.model.family)
        coords = fitted.coords | {OBS: np.arange(len(codes))}
        with pm.Model(coords={dim: coords[dim] for dim in (MEMBER, CLASS, OBS)}) as model:
            eta = pm.Gamma("exponent", SHAPE, SHAPE / prior.mean, dims=MEMBER)
            intercept: Any = 0.0
            if prior.intercepts:
                intercept = pm.Normal("intercept", 0.0, INTERCEPT_SCALE, dims=CLASS)

            def logits(rows: Evidence, name: str, dims: tuple[str, ...] | None = None):
                row_dims = None if dims is None else dims[1:]
                scores = pm.Data(f"{name}score", rows.scores, dims=dims)
                weights = pm.Data(f"{name}log_class_weight", rows.log_weights, dims=row_dims)
                share = pm.Data(f"{name}known", rows.known_share, dims=row_dims and row_dims[:1])
                return pt.tensordot(eta, scores, axes=1) + weights + share[:, None] * intercept

            logit = logits(evidence, "", (MEMBER, OBS, CLASS))
            if X_new is not None:
                declare_probability(logits(pooled.evidence(fitted.encoded(X_new)), "new_"))
            if observed and (weight == 1).all():
                pm.Categorical("label", logit_p=logit, observed=codes, dims=OBS)
            elif observed:
                log_p = pt.special.log_softmax(logit, axis=1)
                pm.Potential("label", (weight * log_p[pt.arange(len(codes)), codes]).sum())
        return model

    def _drawn(self) -> Fitted:
        """Return the fit with draws as a tree, R-hat and ESS in its attributes."""
        fitted, pooled = self._fitted(), self._pooled()
        if fitted.training.draws is None:
            import xarray as xr

            from bayesgen.inference.nuts import diagnose

            variables = {"exponent": ((CHAIN, DRAW, MEMBER), pooled.exponents.exponents)}
            if "intercept" in pooled.params:
                variables["intercept"] = ((CHAIN, DRAW, CLASS), pooled.exponents.intercepts)
            posterior = tree.group(variables, fitted.coords)
            drawn = xr.DataTree.from_dict({f"/{POSTERIOR}": posterior})
            drawn.attrs |= tree.provenance(fitted.name, _ROUTE, self.random_state)
            drawn.attrs |= diagnose(posterior, xr.Dataset()).attributes()
            self.fitted_ = fitted = fitted.with_training(draws=drawn)
        return fitted

    def summary(self, prob: float | None = None) -> Summary:
        """Return exponents and intercepts with intervals, and their meaning in words.

        Parameters
        ----------
        prob : float in (0, 1), optional
            Probability of the intervals; default ``az.rcParams["stats.ci_prob"]``.
        """
        return summary_of_pool(self._fitted(), prob)

    # -- files ---------------------------------------------------------------------------------

    def __bayesgen_record__(self, fitted: Fitted) -> Any:
        """Return what `storage.write` takes: its own numbers, and a record of each member."""
        import xarray as xr

        pooled = self._pooled()
        fitted = fitted.with_training(scores=self._left_out(None, False))
        entries, groups = [], groups_of_training(fitted)
        for k, member in enumerate(pooled.members):
            if member.front is not None:
                raise TypeError(
                    f"cannot save the pool: member {member.name!r} is a pipeline, and its steps "
                    "before the classifier have no place in a model file; transform X before the "
                    "pool"
                )
            refuse_subclass(member.clf)
            without_rows = member.fitted.with_training(rows=None)
            fit, state, draws = member.clf.__bayesgen_record__(without_rows)
            for name, group in {_FIT: fit, **draws}.items():
                groups[f"member_{k}_{name}"] = group
            entries.append(
                {
                    "name": member.name,
                    "state": state,
                    "draws": list(draws),
                    "view": storage.to_json(member.view, "view"),
                    "selection": member.selection,
                    "mean_root": member.mean_root,
                    "most_known": member.most_known,
                }
            )
        numbers = xr.Dataset(
            {
                "exponents": ((CHAIN, DRAW, MEMBER), pooled.exponents.exponents),
                "intercepts": ((CHAIN, DRAW, CLASS), pooled.exponents.intercepts),
            }
        )
        state = state_of(self, fitted, ("members",)) | {
            "unsaved": [],
            "auto": isinstance(self.members, str),
            "n_rows": pooled.n_rows,
            "class_weight": pooled.count.tolist(),
            "prior_mean": pooled.model.family.mean,
            "members": entries,
        }
        return numbers, state, groups

    def __bayesgen_load__(
        self, fit: Any, state: Mapping[str, Any], draws: Any, known: Mapping[str, Any] | None = None
    ) -> Fitted:
        """Return the fit that a model file holds; `known` are the classes of members."""
        classes, members = storage.from_json(state["classes"]), []
        for k, entry in enumerate(state["members"]):
            record = entry["state"]
            if record["unsaved"]:
                raise ValueError(
                    f"member {entry['name']!r} was saved with {record['unsaved'][0]}=..., which a "
                    "file cannot hold: pickle the pool"
                )
            clf = (known or {})[record["estimator"]](
                **storage.arguments_from_json(record["parameters"])
            )
            drawn = {name: draws[f"member_{k}_{name}"] for name in entry["draws"]}
            clf.fitted_ = clf.__bayesgen_load__(draws[f"member_{k}_{_FIT}"], record, drawn)
            view = storage.from_json(entry["view"])
            columns = entry["selection"]
            selection = tuple(columns) if isinstance(columns, list) else columns
            sizes = entry["mean_root"], entry["most_known"]
            members.append(Member(entry["name"], clf, view, None, selection, *sizes))
        self.members = "auto" if state["auto"] else [(m.name, m.clf) for m in members]
        eta, b = (np.asarray(fit[k].values) for k in ("exponents", "intercepts"))
        prior = LogLinear(state["prior_mean"], self.intercepts)
        draw = partial(sample, prior=prior, seed=integer_seed(self.random_state))
        model, n_rows = ClassModel(np.ones(len(classes)), prior), state["n_rows"]
        count = np.array(state["class_weight"])
        posterior = PooledPosterior(tuple(members), model, Exponents(eta, b), count, n_rows, draw)
        seen = storage.arguments_from_json(state["reader"])
        reader = replace(self._reader(), **seen, members=posterior.members)
        training = training_of(state, dict(draws), classes)
        return Fitted(type(self).__name__, classes, reader, posterior, training)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        input_tags = tags.input_tags
        if isinstance(self.members, str):
            input_tags.allow_nan = input_tags.sparse = input_tags.string = (
                input_tags.categorical
            ) = True
            return tags
        inner = [get_tags(estimator).input_tags for _, estimator in named(self.members)]
        for name in ("allow_nan", "sparse", "string", "categorical", "positive_only"):
            some = any if name == "positive_only" else all
            setattr(input_tags, name, some(getattr(of, name) for of in inner))
        return tags


def _columns_without_texts(reader: PoolReader, members: list[Member]) -> set[str] | None:
    """Columns that no language model reads; None where columns have no names."""
    if reader.names is None:
        return None
    return {*reader.names} - {name for member in members for name in member.texts}


# ------------------------------------------------------------------------------------------------
# Rows in parts: the pool is fitted to a uniform sample of them.

_SAMPLE = 200_000  # rows


@dataclass(frozen=True, eq=False)
class PoolLearner:
    """Learner of a pool from rows in parts, for `fit_stream`, `fit_dask` and the command line."""

    pool: LogLinearPool

    family_type: ClassVar[type[Family]] = LogLinear
    keeps_rows: ClassVar[bool] = True
    unsaved: ClassVar[tuple[str, ...]] = ()

    @property
    def reader(self) -> PoolReader:
        """Reader that has read nothing."""
        return self.pool._reader()

    def refuse_no_statistics(self, what: str) -> None:
        """Raise where members cannot be fitted to a sample."""
        self.pool._check_arguments()

    def gather(
        self,
        before: RowSample | None,
        X: RowsLike,
        y: Labels,
        sample_weight: PerRow = None,
        classes: ArrayLike | None = None,
    ) -> RowSample:
        """Return a sample of some rows and of those `before`."""
        if classes is not None:
            raise ValueError("classes= is not for a pool, which learns of a class by its rows")
        _, rows = self.pool._read(X, y, sample_weight)
        first = 0 if before is None else before.n_rows
        sample = RowSample.of_rows(rows, integer_seed(self.pool.random_state), first)
        return RowSample.of_parts([sample] if before is None else [before, sample], _SAMPLE)

    def merge(self, mine: RowSample, theirs: RowSample) -> RowSample:
        """Return a sample of the rows of both."""
        return RowSample.of_parts([mine, theirs], _SAMPLE)

    def settle(self, sample: RowSample) -> Fitted:
        """Return the fit to the sample."""
        n_rows = len(sample.labels)
        if n_rows < sample.n_rows:
            warn(f"the pool is fitted to a uniform sample of {n_rows} of {sample.n_rows} rows")
        weight = None if (sample.weight == 1).all() else sample.weight
        return clone(self.pool).fit(sample.X, sample.labels, weight).fitted_
