"""Rows to a fitted posterior: in one fit, in parts, merged, forgotten; in closed form or by draws.

A `Learner` is what an estimator chooses: how rows are read, and the family with its
hyper-parameters. It changes nothing: it makes `Gathered` statistics of rows and `Fitted` of these.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from bayesgen.datatree.fit import drawn_posterior
from bayesgen.datatree.tree import (
    POSTERIOR,
    SAMPLE_STATS,
    draws_dataset,
)
from bayesgen.encoding import suspects
from bayesgen.encoding.cells import refuse_large_cells, refuse_small_spread
from bayesgen.encoding.labels import (
    Labelled,
    among,
    group_codes,
    labelled,
    labels_of,
    refuse_two_types,
    warn_of_one_class,
)
from bayesgen.encoding.reader import Align, Reader
from bayesgen.encoding.suspects import copied_rows
from bayesgen.encoding.tables import is_table, kept, n_rows
from bayesgen.errors import refuse_unknown, warn
from bayesgen.families.contract import Family, Stats
from bayesgen.families.errors import NoClosedFormError
from bayesgen.families.shared.hyperparameters import broadcast_prior
from bayesgen.inference import nuts, trees
from bayesgen.inference.chosen_priors import NEEDS_ROWS, posterior
from bayesgen.inference.unlabelled import (
    WEIGHTS,
    better_alone,
    labelled_alone,
    unlike_labelled,
    weighed,
)
from bayesgen.numerics.rows import class_counts
from bayesgen.numerics.special import Array
from bayesgen.posterior.drawn import DrawnPosterior
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.fitted import GIVEN, Fitted, LabelledRows, Training
from bayesgen.posterior.model import ClassModel, ClassStats

if TYPE_CHECKING:
    pass

Unlabelled = Literal["weighted", "ignore"]
_FORGET = "forget takes away rows that were learned before"


@dataclass(frozen=True, eq=False)
class Gathered:
    """Statistics of rows, before they are made a posterior."""

    classes: Array
    reader: Reader
    stats: ClassStats
    n_rows: int

    @classmethod
    def of(cls, fitted: Fitted) -> "Gathered":
        """Return those behind a posterior in closed form."""
        posterior = fitted.closed_form
        return cls(fitted.classes, fitted.reader, posterior.stats, fitted.training.n_rows)

    def covering(self, labels: Array) -> tuple["Gathered", Array]:
        """Return the same for more classes, and the codes of `labels` among them."""
        refuse_two_types(labels, self.classes)
        union = np.union1d(self.classes, labels)
        covering = self
        if len(union) > len(self.classes):
            moved = np.searchsorted(union, self.classes)
            covering = replace(
                self, classes=union, stats=self.stats.reindex_classes(moved, len(union))
            )
        return covering, np.searchsorted(covering.classes, labels)

    def by(self, reader: Reader, align: Align) -> "Gathered":
        """Return the same under a reader that covers more."""
        stats = replace(self.stats, features=align(self.stats.features))
        return replace(self, reader=reader, stats=stats)


@dataclass(frozen=True, eq=False)
class Learner:
    """The choices of one estimator.

    Parameters
    ----------
    name : str
        The classifier, as errors call it.
    reader : Reader
        That has read nothing.
    family_type : type of Family
        What `make_family` makes.
    make_family : callable
        (reader, classes) to the unresolved prior.
    class_alpha : float or (C,)
    prior : {"default", "empirical", "loo"} or None
        None: by leave-one-out in a fit to rows, the stated prior from statistics alone.
    options : dict
        Of the sampler, where the fit is not told otherwise.
    text : bool
        Whether columns of text are taken.
    unsaved : names of constructor arguments that a file cannot hold
    """

    name: str
    reader: Reader
    family_type: type[Family]
    make_family: Callable[[Reader, Array], Family]
    class_alpha: Any = 1.0
    prior: str | None = "default"
    options: dict[str, Any] = field(default_factory=dict)
    text: bool = False
    unsaved: tuple[str, ...] = ()
    _made: dict[tuple[int, int], ClassModel] = field(default_factory=dict)

    def unresolved(self, reader: Reader, classes: Array) -> ClassModel:
        """Hyper-parameters as the user gave them, made once."""
        key = id(reader), id(classes)
        if key not in self._made:
            self._made.clear()
            family = self.make_family(reader, classes)
            self._made[key] = ClassModel(self.class_alpha, family)
        return self._made[key]

    # -- what may be asked --------------------------------------------------------------------

    def refuse_no_statistics(self, what: str) -> None:
        """Raise NoClosedFormError where rows cannot be added up."""
        self.refuse_no_conjugate(what)
        if self.prior == "loo":
            raise NoClosedFormError(
                f"{what} works on sufficient statistics, and {NEEDS_ROWS}: fit all rows together, "
                "or set prior='default' and give the hyper-parameters of the prior_ of a fit "
                "to some of them"
            )

    def refuse_no_conjugate(self, what: str) -> None:
        """Raise NoClosedFormError where there are no sufficient statistics."""
        if not self.family_type.conjugate:
            raise NoClosedFormError(
                f"{what} works on sufficient statistics, and {self.family_type.__name__} "
                "has none: fit all rows together"
            )
        self.reader.refuse_parts(what)

    def refuse_draws(self, what: str, fitted: Fitted | None) -> None:
        """Raise NoClosedFormError where a fit by draws is to be added to."""
        self.refuse_no_statistics(what)
        if fitted is not None and not fitted.posterior.exact:
            raise NoClosedFormError(
                f"{what} works on sufficient statistics, and this classifier was given draws, "
                "which do not add up: fit all rows together"
            )
        if fitted is not None and fitted.training.estimated:
            raise NoClosedFormError(
                f"{what} works on sufficient statistics, and {fitted.training.estimated} has "
                "weighed rows by probabilities of their labels given all rows: fit all rows "
                "together"
            )

    # -- fits ---------------------------------------------------------------------------------

    def fit(
        self,
        X,
        y,
        sample_weight=None,
        options: dict[str, Any] | None = None,
        unlabelled: Unlabelled | None = None,
        groups=None,
    ) -> Fitted:
        """Return the posterior of all parameters given rows, in closed form or by NUTS."""
        if groups is not None:
            groups = self._groups(groups, X, unlabelled)
        if unlabelled is not None:
            refuse_unknown("unlabelled", unlabelled, get_args(Unlabelled))
        if not self.family_type.conjugate:
            if unlabelled == "weighted":
                raise NoClosedFormError(
                    f"unlabelled='weighted' is a fit in closed form, and {self.name} is sampled by "
                    "NUTS: unlabelled='ignore' leaves rows without a label out"
                )
            fitted = self._sampled(X, y, sample_weight, options or {})
            return self._keep(fitted, X, y, sample_weight)
        if options:
            raise TypeError(
                f"fit() got {', '.join(options)}: options of NUTS are for classifiers that have "
                "no closed form; sample_posterior takes them"
            )
        if unlabelled == "weighted":
            return self._keep(self._weighed(X, y, sample_weight), X, y, sample_weight)
        if groups is None and y is not None and self._chooses_by_leaving_out():
            y = labels_of(y)
            groups = copied_rows(X, y, "each counts as a row")
        reader, rows = self._labelled(self.reader, X, y, sample_weight, groups=groups)
        reader, read = reader.learnt(rows.X, True)
        reader.warn_of_doubts(read)
        fitted = self.fit_read(reader, rows._replace(X=read))
        return self._keep(fitted, X, y, sample_weight).with_training(groups=groups)

    def fit_read(self, reader: Reader, rows: Labelled) -> Fitted:
        """Return the posterior in closed form of labelled rows that a reader has learnt."""
        classes, codes = rows.coded()
        gathered = self._summed(replace(reader, owner=self.name), rows, classes, codes)
        scored = None
        if self.prior in (None, "loo"):
            scored = LabelledRows(rows.X.encoded, codes, rows.weight_of_each(), rows.groups)
        return self.settle(gathered, scored)

    def _chooses_by_leaving_out(self) -> bool:
        return self.prior in (None, "loo") or self.family_type.discriminative

    def _groups(self, groups, X, unlabelled: Unlabelled | None) -> Array:
        """Return the codes (N,) of the groups of rows; raise where `fit` leaves no row out."""
        if not self.family_type.conjugate:
            raise NoClosedFormError(
                f"groups= is refused: {self.name} is sampled by NUTS, and its fit leaves no row "
                "out. For an honest score fit again without each group"
            )
        if unlabelled == "weighted":
            raise NoClosedFormError("groups= cannot be combined with unlabelled='weighted'")
        if isinstance(groups, int | np.integer):
            raise TypeError("fit takes groups= as one name for each row, not a number of folds")
        return group_codes(groups, n_rows(X))

    def _keep(self, fitted: Fitted, X, y, sample_weight) -> Fitted:
        """Keep a reference to the rows of a fit, and what is odd about their columns."""
        odd: dict[str, str] = {}
        if len(fitted.classes) == 1:
            warn_of_one_class(fitted.classes)
        if is_table(X):
            odd = suspects.find(
                X,
                set(fitted.feature_names),
                chosen=fitted.reader.chosen,
                text=self.text,
                normal=fitted.reader.normal_by_type,
            )
            suspects.warn_of(odd)
        return fitted.with_training(rows=kept(X, y, sample_weight), suspects=odd)

    # -- in closed form

    def gather(
        self,
        before: Gathered | None,
        X,
        y,
        sample_weight=None,
        classes=None,
    ) -> Gathered:
        """Statistics of rows, added to those `before`."""
        if before is None:
            reader, rows = self._labelled(self.reader, X, y, sample_weight)
            reader, read = reader.learnt(rows.X, True)
            labels, codes = _among(rows, classes)
            return self._summed(reader, rows._replace(X=read), labels, codes)
        earlier, gathered = self._further(before, X, y, sample_weight, classes)
        stats = earlier.stats.merge(gathered.stats)
        return replace(earlier, stats=stats, n_rows=earlier.n_rows + gathered.n_rows)

    def _further(self, before: Gathered, X, y, sample_weight, classes) -> tuple[Gathered, Gathered]:
        """Return those `before`, made to cover further rows, and those of the rows."""
        reader, rows = self._labelled(before.reader, X, y, sample_weight, first=False)
        before.reader.refuse_single(rows.X, before.n_rows)
        labels, codes = _among(rows, classes)
        earlier, places = before.covering(labels)
        reader, align, _ = reader.further(rows.X)
        earlier, rows = earlier.by(reader, align), rows._replace(X=rows.X.by(reader))
        return earlier, self._summed(reader, rows, earlier.classes, places[codes], earlier.stats)

    def _summed(
        self,
        reader: Reader,
        rows: Labelled,
        classes: Array,
        codes: Array,
        earlier: ClassStats | None = None,
    ) -> Gathered:
        """Statistics of encoded rows, which may be merged with the `earlier`."""
        model, read = self.unresolved(reader, classes), rows.X
        if earlier is not None:
            model = replace(model, family=model.family.further(earlier.features))
        with np.errstate(over="ignore", invalid="ignore"):  # infinite sums are refused below
            stats = model.stats(read.encoded, codes, len(classes), rows.weight, rows.groups)
        names = _names(reader, model.family)
        refuse_large_cells(model.family, read.encoded, names, stats.features, rows.positions)
        return Gathered(classes, reader, stats, len(codes))

    def _labelled(
        self,
        reader: Reader,
        X,
        y,
        sample_weight,
        first: bool = True,
        unlabelled: bool = False,
        groups: Array | None = None,
    ) -> tuple[Reader, Labelled]:
        """Rows of any fit, read but not encoded."""
        if y is None:
            raise ValueError(f"{self.name} requires y to be passed, but the target y is None")
        reader, rows = reader.admit(X, first=first)
        return reader, labelled(rows, y, sample_weight, unlabelled=unlabelled, groups=groups)

    keeps_rows: ClassVar[bool] = False  # of rows that come in parts: only their statistics

    def gathered(self, fitted: Fitted) -> Gathered:
        """Statistics behind a fit."""
        return Gathered.of(fitted)

    def settle(self, gathered: Gathered, rows: LabelledRows | None = None) -> Fitted:
        """Prior and posterior from statistics, and from the `rows` behind them if need be."""
        unresolved = self.unresolved(gathered.reader, gathered.classes)
        stats, names = gathered.stats, _names(gathered.reader, unresolved.family)
        refuse_small_spread(unresolved.family, stats.features, names)
        prior, model, choice = posterior(unresolved, self.prior, stats, rows)
        return Fitted(
            self.name,
            gathered.classes,
            gathered.reader,
            ExactPosterior(prior, model, stats),
            Training(gathered.n_rows, prior=choice),
        )

    def merge(self, mine: Gathered, theirs: Gathered) -> Gathered:
        """Statistics of the rows of both."""
        mine.reader.refuse_other_columns(theirs.reader)
        mine, codes = mine.covering(theirs.classes)
        reader, align, align_theirs = mine.reader.merged(theirs.reader)
        stats = replace(theirs.stats, features=align_theirs(theirs.stats.features))
        stats = stats.reindex_classes(codes, len(mine.classes))
        mine = mine.by(reader, align)
        return replace(mine, stats=mine.stats.merge(stats), n_rows=mine.n_rows + theirs.n_rows)

    def forget(self, fitted: Fitted, X, y, sample_weight) -> Gathered:
        """Statistics without those of rows that were learned before."""
        before = Gathered.of(fitted)
        earlier, rows = self._further(before, X, y, sample_weight, fitted.classes)
        if _form(earlier.stats.features) != _form(before.stats.features):
            raise ValueError(f"{_FORGET}: X holds categories or tokens that were never learned")
        count = before.stats.count
        if not np.any(count > rows.stats.count):
            raise ValueError(
                f"{_FORGET}: there are {count.sum():g} (by weight), and this would leave none"
            )
        try:
            stats = before.stats.remove(rows.stats)
        except ValueError as error:
            raise ValueError(f"{_FORGET}: {error}") from None
        return replace(before, stats=stats, n_rows=max(0, before.n_rows - rows.n_rows))

    # -- rows without a label, weighed

    def _weighed(self, X, y, sample_weight, weights: tuple[float, ...] = WEIGHTS) -> Fitted:
        """`fit` in closed form that weighs rows without a label by leave-one-out."""
        reader, rows = self._labelled(self.reader, X, y, sample_weight, unlabelled=True)
        classes, codes = rows.coded()
        reader, read = reader.learnt(rows.X, True)
        data = LabelledRows(read.encoded, codes, rows.weight_of_each())
        family = self.unresolved(reader, classes).family
        refuse_large_cells(family, data.X, _names(reader, family), rows=rows.positions)
        with_label = np.flatnonzero(codes >= 0)
        of_known = data.at(with_label)
        fitted = self._settled(reader, classes, of_known, len(codes))
        if len(with_label) == len(codes):
            return fitted
        weighed_rows, summed_posterior = weighed(fitted.closed_form, data, weights)
        narrow, few = reader.learnt(read.take(with_label), True)
        if weights == WEIGHTS and not narrow.reads_as(reader):
            of_known = of_known._replace(X=few.encoded)
            alone = self._settled(narrow, classes, of_known, len(codes))
            scored = labelled_alone(alone.closed_form, of_known)
            if better_alone(scored, weighed_rows):
                fitted, summed_posterior = alone, alone.closed_form
                weighed_rows = scored._replace(unlike=weighed_rows.unlike)
        if len(weighed_rows.unlike):
            places = (
                weighed_rows.unlike
                if rows.positions is None
                else rows.positions[weighed_rows.unlike]
            )
            weighed_rows = weighed_rows._replace(unlike=places)
            warn(unlike_labelled(places), UserWarning)
        return replace(fitted, posterior=summed_posterior).with_training(
            n_unlabelled=len(codes) - len(with_label),
            unlabelled_weight=weighed_rows.weight,
            weighed=weighed_rows,
        )

    def _settled(self, reader: Reader, classes: Array, rows: LabelledRows, n_rows: int) -> Fitted:
        """`settle` of labelled rows as a reader encodes them."""
        stats = self.unresolved(reader, classes).stats(*rows[:2], len(classes), rows.weight)
        return self.settle(Gathered(classes, reader, stats, n_rows), rows)

    # -- by draws

    def _sampled(self, X, y, sample_weight, options) -> Fitted:
        """Return a fit by NUTS."""
        options = nuts.check_options(self.options, options)
        return trees.sampled(*self._undrawn(X, y, sample_weight), options)

    def _undrawn(self, X, y, sample_weight, inference: str = "nuts") -> tuple[Fitted, LabelledRows]:
        """Return a fit that has no draws yet, and the rows that they are drawn given."""
        if self.prior not in (None, "default"):
            raise ValueError(
                f"prior={self.prior!r} maximises a score that has no closed form for "
                f"{self.family_type.__name__}: leave prior at 'default'"
            )
        reader, labelled_rows = self._labelled(self.reader, X, y, sample_weight)
        classes, codes = labelled_rows.coded()
        reader, read = reader.learnt(labelled_rows.X, False)
        unresolved = self.unresolved(reader, classes)
        rows = LabelledRows(read.encoded, codes, labelled_rows.weight_of_each())
        names = _names(reader, unresolved.family)
        refuse_large_cells(unresolved.family, rows.X, names, rows=labelled_rows.positions)
        alpha = broadcast_prior("class_alpha", unresolved.alpha, classes.shape)
        family = unresolved.family.with_defaults(rows.X, codes, len(classes), rows.weight)
        count = class_counts(codes, len(classes), rows.weight)
        prior, model = ClassModel(alpha, family), ClassModel(alpha + count, family)
        posterior = DrawnPosterior(prior, model, ClassStats(count, Stats()), {})
        training = Training(len(codes), 0, inference)
        return Fitted(self.name, classes, reader, posterior, training), rows

    # -- by draws of others

    def without_draws(self, X, y) -> Fitted:
        """Return what rows alone settle: classes, columns, encodings, the prior."""
        if self.family_type.conjugate:
            return self.fit(X, y)
        return self._keep(self._undrawn(X, y, None, GIVEN)[0], X, y, None)

    def given(self, fitted: Fitted | None, draws, X, y) -> Fitted:
        """Return a fit whose posterior is draws of the user's, given rows or those of `fitted`."""
        if X is not None or y is not None:
            fitted = self.without_draws(X, y)
        elif fitted is None:
            raise ValueError(
                f"draws do not say how {self.name} reads its columns, and it is not fitted: "
                "with_posterior needs X and y"
            )
        posterior = drawn_posterior(fitted, draws, given=True)
        training = replace(
            fitted.training,
            draws=None,
            scores=None,
            unlabelled_weight=None,
            weighed=None,
            prior=None,  # that of the draws is the user's
        )
        if posterior.members:
            return replace(fitted, posterior=posterior, training=training)
        posterior.refuse_invalid()
        if posterior.n_draws == 1:
            warn(
                "the posterior is one draw, which has no spread: predictions are those of a "
                "plug-in, and there are no intervals",
                UserWarning,
            )
        fitted = replace(fitted, posterior=posterior, training=replace(training, inference=GIVEN))
        theirs = getattr(draws, "children", {})
        groups = {POSTERIOR: draws_dataset(posterior.theta, posterior.params, fitted.coords)}
        if SAMPLE_STATS in theirs:
            groups[SAMPLE_STATS] = draws[SAMPLE_STATS].to_dataset()
        tree = trees.tree_of(fitted, groups, GIVEN)
        if POSTERIOR in theirs:  # where samplers write theirs
            tree.attrs |= draws[POSTERIOR].attrs
        tree.attrs |= getattr(draws, "attrs", {})
        return fitted.with_training(draws=tree)


def _names(reader: Reader, family: Family):
    return lambda: reader.feature_names(family)


def _form(stats: Stats):
    """Shapes and settings of statistics: they grow with the categories and tokens known."""
    return {name: value.shape for name, (_, value) in stats.arrays().items()}, stats.settings()


def _among(rows: Labelled, classes) -> tuple[Array, Array]:
    """Return the distinct labels of rows, or the declared classes, and the code of each row."""
    labels, codes = rows.coded()
    return (labels, codes) if classes is None else among(classes, labels, codes)
