"""Whether new rows are like the training rows, by all members of a pool that have a density."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesgen.datatree import tree
from bayesgen.datatree.tree import named_rows
from bayesgen.encoding.labelled import labelled
from bayesgen.encoding.labels import codes_of
from bayesgen.estimators.pool.members import Member, as_rows
from bayesgen.families.names import CLASS, OBS
from bayesgen.numerics.special import Array, log_sum_exp
from bayesgen.posterior.model import log_weights
from bayesgen.posterior.monte_carlo import MonteCarloWarning
from bayesgen.predict.member_ranks import MemberRanks

if TYPE_CHECKING:
    import xarray as xr


class PoolTypicality:
    """Tail probabilities of rows under a fitted pool."""

    classes_: Array
    _members_: list[Member]
    _ranks: MemberRanks | None

    @named_rows
    def typicality(self, X: Any, training: Any = None) -> "xr.Dataset":
        r"""How likely a row this improbable, or more so, is among rows like the training rows.

        A pool has no density of rows, but members have, and their tail probabilities
        (`GenerativeClassifier.typicality`) differ: a row may be unlike the others in single
        columns, in pairs of them, or in all together. Their harmonic mean is small where one of
        them is. The result is the rank of this mean among those of the training rows, each
        computed without the row itself, and so is a tail probability again.

        Parameters
        ----------
        X : rows
        training : (X, y) or (X, y, sample_weight), optional
            The training rows. Needed once of a pool with ``exponents="feature"``, and of one whose
            model file was written by an earlier version.

        Returns
        -------
        xarray.Dataset
            ``by_class`` (obs_id, class), from densities given the class among training rows of
            that class; ``overall`` (obs_id), from densities among all training rows.

        Raises
        ------
        NotImplementedError
            If no member has a density of rows.
        ValueError
            If the training rows are needed and not given, or are not those of the fit.

        Notes
        -----
        Small values have their nominal frequency, or a little less, in new rows drawn as the
        training rows were; where members count bins, large ones are too frequent
        (``tests/benchmarks/typicality.py --alike``). Rows with different missing cells, and
        documents of different lengths, have densities without a common scale. With more than
        `max_rows` rows the ranks are among those that exponents are learned from. After a fit by
        draws a density far from all rows rests on few of them; its rank is about the lowest in any
        case.

        References
        ----------
        Wilson (2019), The harmonic mean p-value for combining dependent tests.

        Examples
        --------
        >>> import bayesgen as bg
        >>> X, y = bg.datasets.load_penguins()
        >>> X = X[["bill_length_mm", "bill_depth_mm"]].dropna()
        >>> pool = bg.LogLinearPool().fit(X.to_numpy(), y[X.index])
        >>> pool.typicality([[39.0, 18.0], [39.0, 30.0]])["overall"].values.round(3)
        array([0.904, 0.003])
        """
        check_is_fitted(self, "exponents_")
        ranks, X = self._member_ranks(training), as_rows(X)
        of_class, overall = [], []
        with warnings.catch_warnings():  # a row whose density draws cannot tell ranks last or so
            warnings.simplefilter("ignore", MonteCarloWarning)
            for member in self._members_:
                if member.has_density:
                    joint = member.log_joint(X, "density")
                    of_class.append(
                        joint - log_weights(member.clf.fitted_.posterior.class_weights())
                    )
                    overall.append(log_sum_exp(joint))
        return tree.group(
            {
                "by_class": ((OBS, CLASS), ranks.typical_of_class(np.stack(of_class))),
                "overall": ((OBS,), ranks.typical_overall(np.stack(overall))),
            },
            {CLASS: self.classes_},
        )

    def _member_ranks(self, training: Any) -> MemberRanks:
        if not any(member.has_density for member in self._members_):
            raise NotImplementedError("typicality needs a member with a density of rows")
        if training is not None:
            if not isinstance(training, tuple | list) or len(training) not in (2, 3):
                raise ValueError("training must be (X, y) or (X, y, sample_weight)")
            own = labelled(as_rows(training[0]), *training[1:], *[None] * (3 - len(training)))
            X, weight = own.X, own.weight_of_each()
            joints = left_out_joints(self._members_, X, own.labels, weight, known=False)
            codes = codes_of(own.labels, self.classes_)
            self._ranks = member_ranks(self._members_, joints, codes, weight)
        if self._ranks is None:
            raise ValueError(
                'the densities of the training rows are not known here (exponents="feature", or a '
                "file of an earlier version): pass training=(X, y) or (X, y, sample_weight)"
            )
        return self._ranks


def left_out_joints(
    members: list[Member], X: Any, y: Array, weight: Array, *, known: bool
) -> list[Array]:
    """Of each member (N, C) log joint densities of training rows, or some, without themselves.

    `known`: as in `Member.scores`.
    """
    out = []
    for member in members:
        partial = len(y) != getattr(member.clf, "n_rows_seen_", len(y))
        out.append(member.scores(X, y, weight, partial=partial, known=known))
    return out


def member_ranks(
    members: list[Member], scores: list[Array], codes: Array, weight: Array
) -> MemberRanks | None:
    """From the members' log joint densities (N, C) of training rows without themselves."""
    seen = weight > 0
    found = [
        member.left_out_densities(own[seen], codes[seen], weight[seen])
        for member, own in zip(members, scores, strict=True)
        if member.has_density
    ]
    return MemberRanks(codes[seen], weight[seen], *np.stack(found, axis=1)) if found else None
