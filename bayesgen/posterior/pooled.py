r"""The posterior of a log-linear pool: members' posteriors, draws of exponents and intercepts.

.. math:: p(y = c \mid x) = E_{\eta, b} \, \frac{\pi_c \exp(\sum_m \eta_m E_{mc}(x) + k(x) b_c)}
          {\sum_d \pi_d \exp(\sum_m \eta_m E_{md}(x) + k(x) b_d)}, \qquad
          E_{mc}(x) = \log p_m(y = c, x \mid D) - \log p_m(y = c \mid D)

Evidence E is a member's log density of the row given the class; of a discriminative member, log
p(y = c | x) less log pi_c. That of a document is divided by the square root of its length, in units
of the training documents (at most 1.5 times): its tokens repeat one another. Class weights pi are
those of the training rows: no exponent tempers them. Intercepts b count by the share k of the row's
cells that are known, so that a row of which nothing is known has the class weights.

A pool says nothing of x: among models it is a discriminative one, whose features are the members'
evidence. How its draws are made is in `bayesgen.inference.exponents`. Source: Genest,
Weerahandi and Zidek (1984), Aggregating opinions through logarithmic pooling.

M members, N rows, C classes, S draws.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from sklearn.utils import _safe_indexing

from bayesgen.encoding.reader import Reader, Rows
from bayesgen.encoding.views import SomeColumns, TableView, TextLength, select_columns
from bayesgen.families.contract import Family, Theta
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import CLASS, MEMBER, Method
from bayesgen.families.shared.ngrams import without_lone_tokens
from bayesgen.numerics.rows import Matrix, row_blocks
from bayesgen.numerics.special import Array, log_softmax, log_sum_exp
from bayesgen.posterior.drawn import largest_good_k, smoothed_weights
from bayesgen.posterior.interface import (
    BLOCK,
    DrawRequest,
    JointDraws,
    Posterior,
    weights_of_draws,
)
from bayesgen.posterior.model import ClassModel, Quantity, log_weights, log_weights_without

FURTHEST = 300.0  # nats below the row's best class: further away is no evidence of more
_LEAST = 1e-280  # probability below which it is averaged in logs
_HEAVY_ROW = 100.0  # weight of a document that is left out by subtraction, and keeps its digits
_MOST_TEMPER = 1.5  # of short documents: exponents were learned from those of training
SHAPE = 0.5  # of the Gamma prior of an exponent
INTERCEPT_SCALE = 2.0  # standard deviation of the prior of an intercept, in nats
_HEAVY = 0.1  # share of the weight from which a row is left out by new draws
_REFITS = 10  # rows at the most for which new draws are made
_DRAWS = 100  # of class probabilities
_TAME = 5.0  # largest importance ratio, in means: below there is no tail to smooth

Joint = Callable[[Any, Rows], Array]  # (Fitted, rows) to (N, C) by the predictive

# ------------------------------------------------------------------------------------------------
# Exponents and intercepts.


@dataclass(frozen=True, eq=False)
class LogLinear(Family):
    """Labels given log joint densities of members; prior of exponents and intercepts.

    Parameters
    ----------
    mean : float, > 0
        Of the Gamma(1/2) prior of each exponent; 1 / M for M members of the same columns.
    intercepts : bool
        Whether there are intercepts, Normal(0, 2) each.
    """

    discriminative: ClassVar[bool] = True

    mean: float
    intercepts: bool = True

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``exponent`` and, if there are any, ``intercept``."""
        exponent: dict[str, tuple[str, ...]] = {"exponent": (MEMBER,)}
        return exponent if not self.intercepts else exponent | {"intercept": (CLASS,)}

    def log_likelihood(self, X: "Evidence", theta: Theta) -> Array:
        """Return (..., N, C) log p(y = c | x_i, theta)."""
        joint = np.einsum("...m,mnc->...nc", theta["exponent"], X.scores, optimize=True)
        joint += X.log_weights
        if self.intercepts:
            joint += theta["intercept"][..., None, :] * X.known_share[:, None]
        return log_softmax(joint)

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array):
        """Refused: there is no density of x."""
        raise NotImplementedError("a pool of predictives has no rows to draw: ask a member")


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the members say of rows, and what the class weights say.

    Parameters
    ----------
    scores : (M, N, C)
        `comparable` log densities of the rows given their class.
    log_weights : (N, C)
        Log class weights.
    known_share : (N,)
        Shares of the cells that are known; intercepts count so much.
    """

    scores: Array
    log_weights: Array
    known_share: Array

    @property
    def shape(self) -> tuple[int]:
        """Number of rows."""
        return (len(self.known_share),)

    def __getitem__(self, rows) -> "Evidence":
        return Evidence(self.scores[:, rows], self.log_weights[rows], self.known_share[rows])


class Exponents(NamedTuple):
    """Draws of exponents and intercepts."""

    exponents: Array  # (chain, draw, M)
    intercepts: Array  # (chain, draw, C) zeros where there are none

    @property
    def n_draws(self) -> int:
        """Return the number of draws of all chains."""
        return int(np.prod(self.exponents.shape[:2]))

    @property
    def flat(self) -> tuple[Array, Array]:
        """Return draws (S, M) and (S, C), chains in turn."""
        eta, b = (draws.reshape(-1, draws.shape[-1]) for draws in self)
        return eta, b

    @property
    def mean(self) -> tuple[Array, Array]:
        """Return the means (M,) and (C,)."""
        return self.exponents.mean(axis=(0, 1)), self.intercepts.mean(axis=(0, 1))

    def log_proba(self, evidence: Evidence) -> Array:
        """Return (N, C) log of the mean over draws of the class probabilities."""
        p = np.empty(evidence.scores.shape[1:])
        for rows, odds in self._by_rows(evidence):
            with np.errstate(over="ignore", invalid="ignore"):  # NaN: averaged in logs
                np.exp(odds, out=odds)
                of_first = 1 / (1 + odds.sum(axis=0))
                p[rows, 0] = of_first.mean(axis=1)
                p[rows, 1:] = np.einsum("cns,ns->nc", odds, of_first) / len(of_first.T)
        in_logs = np.flatnonzero(~(p >= _LEAST).all(axis=1))
        p[in_logs] = 1.0
        log_p = np.log(p, out=p)
        for rows, odds in self._by_rows(evidence[in_logs]):
            log_sum = log_sum_exp(_log_probabilities(odds))
            log_p[in_logs[rows]] = (log_sum - np.log(odds.shape[-1])).T
        return log_p

    def _by_rows(self, evidence: Evidence) -> Iterator[tuple[slice, Array]]:
        """Yield rows and their (C - 1, n, S) log odds against the first class."""
        eta, b = self.flat
        n_classes, every = b.shape[1], np.broadcast_to(eta.T, (b.shape[1], *eta.T.shape))
        factors = np.concatenate([every, b.T[:, None], np.ones((n_classes, 1, len(b)))], axis=1)
        factors[:, -2] -= b[:, 0]
        for rows in row_blocks(len(evidence.known_share), b.size):
            some = evidence[rows]
            share = np.broadcast_to(some.known_share[:, None], some.log_weights.shape)
            terms = np.stack([*some.scores, share, some.log_weights])  # (M + 2, n, C)
            terms[:-2] -= terms[:-2, :, :1]
            terms[-1] -= terms[-1, :, :1]
            yield rows, terms.T[1:] @ factors[1:]

    def without_each_row(
        self,
        evidence: Evidence,
        codes: Array,
        weight: Array,
        sample: "Sample",
    ) -> tuple[Array, Array]:
        """Return (N, C) log probabilities by the draws that other rows lead to; Pareto k (N,).

        Draws from all rows with importance ratios that take the row out, Pareto-smoothed where they
        have a tail. New draws, by `sample` of the other rows, where it has a tenth of the weight or
        more, and where k says that the weights will not do; k is 0 there, and where there is no
        tail. Source: Vehtari, Gelman and Gabry (2017), Practical
        Bayesian model evaluation using leave-one-out cross-validation and WAIC.
        """
        log_p_without, k = np.empty(evidence.scores.shape[1:]), np.zeros(len(codes))
        for rows, odds in self._by_rows(evidence):
            log_p = _log_probabilities(odds)
            ratio = -weight[rows, None] * log_p[codes[rows], np.arange(odds.shape[1])]
            log_w = log_softmax(ratio)
            tail = np.flatnonzero(log_w.max(axis=1) > np.log(_TAME / ratio.shape[1]))
            if len(tail):
                log_w[tail], k[rows.start + tail] = smoothed_weights(ratio[tail])
            log_p_without[rows] = log_softmax(log_sum_exp(log_p + log_w).T)
        again = np.where(weight >= _HEAVY * weight.sum(), np.inf, k)
        for i in np.argsort(-again, kind="stable")[:_REFITS] if len(codes) > 1 else ():
            if again[i] > largest_good_k(self.n_draws):
                others = np.arange(len(codes)) != i
                refit = sample(evidence[others], codes[others], weight[others])
                log_p_without[[i]] = refit.log_proba(evidence[[i]])
                k[i] = 0.0
        return log_p_without, k


Sample = Callable[[Evidence, Array, Array], Exponents]  # of evidence, codes and weights


def comparable(scores: Array) -> Array:
    """Log densities (..., C) relative to the row's best class, none below -`FURTHEST`.

    A row that no class can produce says nothing.
    """
    top = scores.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    scores_of_rows: Array = np.maximum(scores - top, -FURTHEST)
    scores_of_rows[~np.isfinite(scores).any(axis=-1)] = 0.0
    return scores_of_rows


def leaving_weight(codes: Array, weight: Array, groups: Array | None) -> Array:
    """Return (N,) weight of the rows of the same class that leave with each row."""
    if groups is None:
        return weight
    _, group = np.unique(np.stack([groups, codes]), axis=1, return_inverse=True)
    total: Array = np.bincount(group.ravel(), weight)[group.ravel()]
    return total


def _log_probabilities(odds: Array) -> Array:
    """Return (C, n, S) log probabilities from (C - 1, n, S) log odds against the first class."""
    z = np.concatenate([np.zeros((1, *odds.shape[1:])), odds])
    z -= z.max(axis=0)
    z -= np.log(np.exp(z).sum(axis=0))
    return z


# ------------------------------------------------------------------------------------------------
# Members, and rows as they see and read them.


@dataclass(frozen=True, eq=False)
class Member:
    """One classifier of a pool.

    Parameters
    ----------
    name : str
    clf : classifier of this package
        What it has learnt is its ``fitted_``.
    view : TableView, optional
        What the classifier sees of a table; None: the rows as they come.
    front : Pipeline, optional
        Fitted steps of a user's pipeline before the classifier.
    selection : tuple of str, or str, optional
        The columns of a data frame that it sees, before its view; None: all.
    mean_root : float
        Mean square root of the lengths of training documents; 1 of other rows.
    most_known : float
        Share of the cells that are known in the most complete training row.
    """

    name: str
    clf: Any
    view: TableView | TextLength | None = None
    front: Any = None
    selection: SomeColumns | None = None
    mean_root: float = 1.0
    most_known: float = 1.0

    @property
    def fitted(self):
        """Return what it has learnt, a `Fitted`."""
        return self.clf.fitted_

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the column whose texts it sees."""
        return (self.selection,) if isinstance(self.selection, str) else ()


class MemberRows:
    """Rows as the members of a pool see and read them, each view and encoding made once.

    Parameters
    ----------
    rows : as the pool has read them
    joint : (Fitted, rows) to (N, C) log joint densities of new rows
    of_training : bool
        Whether views put means in the place of missing cells, as full covariances are learned;
        those of new rows are integrated out.
    """

    def __init__(self, rows: Rows, joint: Joint, of_training: bool = False) -> None:
        self.rows, self._joint, self.of_training = rows, joint, of_training
        self._made: list[tuple[tuple[Any, ...], Any]] = []  # views cannot be hashed
        self._read: list[tuple[Any, Reader | None, Rows]] = []  # None, or a reader before it learnt

    @property
    def X(self):
        """Rows as the user has them."""
        return self.rows.X

    @property
    def shape(self) -> tuple[int]:
        """Number of rows."""
        return (len(self.rows),)

    def __getitem__(self, at) -> "MemberRows":
        places = np.arange(len(self.rows))[at]
        if len(places) == len(self.rows) and (np.diff(places) == 1).all():
            return self
        rows = Rows(_safe_indexing(self.X, places), self.rows.reader)
        rows.warned = self.rows.warned
        return MemberRows(rows, self._joint, self.of_training)

    @cached_property
    def as_training(self) -> "MemberRows":
        """Return the same rows as members learn from them."""
        return self if self.of_training else MemberRows(self.rows, self._joint, True)

    def _once[T](self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        for earlier, value in self._made:
            if earlier == key:
                return cast(T, value)
        made = make()
        self._made.append((key, made))
        return made

    def selected(self, selection: SomeColumns | None) -> Rows:
        """All columns or some, read once for all who see them."""
        if selection is None:
            return self.rows

        def select() -> Rows:
            rows = Rows(select_columns(self.X, selection), self.rows.reader)
            rows.warned = self.rows.warned
            return rows

        return self._once(("selected", selection), select)

    def seen(self, member: Member):
        """Rows as the member's classifier takes them, before it reads them."""
        front, view, selection = member.front, member.view, member.selection
        if front is not None:
            return self._once(("seen", id(front)), lambda: front.transform(self.X))
        if view is None:
            return self.selected(selection).X
        rows = self.selected(selection)
        return self._once(("seen", selection, view), lambda: view.see(rows, self.of_training))

    def given(self, member: Member, reader: Reader):
        """Return the same; to a reader of tables with the table that others see too."""
        table, X = self.selected(member.selection), self.seen(member)
        return table if reader.shares and X is table.X else X

    def read(self, member: Member) -> Rows:
        """Rows as the member's fitted classifier has read them, or one that reads alike."""
        X = self.given(member, reader := member.fitted.reader)
        for table, _, rows in self._read:
            if table is X and rows.reader.reads_as(reader):
                return rows
        self._read.append((X, None, reader.read(X)))
        return self._read[-1][2]

    def learnt(self, member: Member, reader: Reader) -> Rows:
        """Training rows by a reader that has read nothing, once for all that learn alike."""
        X = self.given(member, reader)
        for table, before, rows in self._read:
            if table is X and before is not None and before.reads_as(reader):
                return rows
        after, rows = reader.admit(X, first=True)
        self._read.append((X, reader, after.learnt(rows, True)[1]))
        return self._read[-1][2]

    def forget(self, later: Sequence[Member]) -> None:
        """Drop the views, and what was read of them, that none of the members sees."""
        needed = [("seen", m.selection, m.view) for m in later]
        self._made = [made for made in self._made if len(made[0]) < 3 or made[0] in needed]
        seen = [id(self.rows), *(id(value) for _, value in self._made)]
        self._read = [read for read in self._read if id(read[0]) in seen]

    def log_joint(self, member: Member, fitted=None) -> Array:
        """Return (N, C) log joint densities of new rows, up to a term that classes share.

        `fitted`: what the member has learnt, if it is not what it has.
        """
        return self._joint(fitted or member.fitted, self.read(member))

    def scores(self, member: Member) -> Array:
        """Return (N, C) evidence of new rows by one generative member."""
        weights = member.fitted.posterior.log_class_weights()
        return comparable(self.log_joint(member) - weights)

    def known_share(self, member: Member) -> Array:
        """Return (N,) shares of the cells that are known, as a member has read them."""
        return _known_share(self.read(member).encoded)

    def known(self, members: Sequence[Member]) -> Array:
        """Average (N,) shares of known cells over members, 1 of the most complete training row.

        A column that is empty in training is no column of the member.
        """
        shares = [self.known_share(member) / member.most_known for member in members]
        average: Array = np.minimum(shares, 1.0).mean(axis=0)
        return average

    def roots(self, member: Member) -> Array:
        """Return (N,) square roots of the numbers of known tokens of documents; 1 of other rows."""
        encoded = self.read(member).encoded
        if not _are_documents(encoded):
            return np.ones(len(self.rows))
        return np.sqrt([max(1, int((codes >= 0).sum())) for codes in encoded])

    def tempers(self, members: Sequence[Member]) -> Array:
        """Return (M, N) factors of the members' scores: long documents repeat themselves."""
        factors = np.stack([member.mean_root / self.roots(member) for member in members])
        return np.minimum(factors, _MOST_TEMPER)

    def log_joint_without(
        self, member: Member, codes: Array, weight: Array, groups: Array | None = None
    ) -> Array:
        """Return (N, C) of training rows, each without itself or its group.

        A token that only one document has is outside the vocabulary of the others. (Not where
        groups or heavy rows are left out, which is done by adding up the tokens of all others.)
        """
        encoded, posterior = self.as_training.read(member).encoded, member.fitted.posterior
        of_groups = () if groups is None else (groups,)
        if _are_documents(encoded) and groups is None and weight.max(initial=0) < _HEAVY_ROW:
            encoded = without_lone_tokens(encoded)
        joint: Array = posterior.log_joint_without(encoded, codes, weight, *of_groups)[0]
        return joint


# ------------------------------------------------------------------------------------------------


def _known_share(encoded) -> Array:
    """Return (N,) shares of known cells of encoded rows: of a document, any token or none."""
    kind = encoded.dtype.kind if isinstance(encoded, np.ndarray) else ""
    if _are_documents(encoded):
        return np.array([float((codes >= 0).any()) for codes in encoded])
    if kind == "f" and encoded.shape[1]:
        share: Array = 1 - np.isnan(encoded).mean(axis=1)
        return share
    return np.ones(encoded.shape[0])


def _are_documents(encoded) -> bool:
    return isinstance(encoded, np.ndarray) and encoded.dtype.kind == "O"


def evidence_of(
    members: Sequence[Member],
    count: Array,
    X: MemberRows,
    codes: Array | None = None,
    weight: Array | None = None,
    groups: Array | None = None,
) -> tuple[Evidence, list[Array]]:
    """Return what members say of rows, and their log joint densities (N, C).

    Parameters
    ----------
    count : (C,) weight of the training rows of each class
    X : rows
    codes, weight, groups : (N,), optional
        Of training rows: each is scored without itself or its group.
    """
    if codes is None or weight is None:
        leaving = None
        log_pi = np.tile(log_weights((count + 1) / (count + 1).sum()), (*X.shape, 1))
        joints = [X.log_joint(member) for member in members]
    else:
        leaving = leaving_weight(codes, weight, groups)
        log_pi = log_weights_without(np.ones(len(count)), count, codes, leaving)
        joints = [X.log_joint_without(member, codes, weight, groups) for member in members]
    scores = np.empty((len(members), *log_pi.shape))
    tempers = X.tempers(members)
    for k, member in enumerate(members):
        posterior, inside = member.fitted.posterior, log_pi
        if posterior.model.generative:
            inside = posterior.log_class_weights(codes, leaving)
        scores[k] = comparable(joints[k] - inside) * tempers[k][:, None]
    share_known = X.known(members)
    scores[:, share_known == 0] = 0.0  # a row without a known cell is no evidence
    return Evidence(scores, log_pi, share_known), joints


class Scored(NamedTuple):
    """Training rows that exponents are learned from, each without itself."""

    evidence: Evidence
    codes: Array  # (N,)
    weight: Array  # (N,)
    joints: list[Array]  # (N, C) log joint densities by each member


@dataclass(frozen=True, eq=False)
class PooledPosterior(Posterior):
    """Members and draws of their exponents.

    Rows are `MemberRows`.

    Parameters
    ----------
    members : tuple of Member
    model : ClassModel
        Of `LogLinear`, the prior of the exponents.
    exponents : Exponents
    count : (C,)
        Weight of the training rows of each class.
    n_rows : int
        That exponents were learned from.
    sample : callable
        Draws of exponents from evidence, codes and weights.
    scored : Scored, optional
        The rows that exponents were learned from; None of a pool from a file.
    """

    members: tuple[Member, ...]
    model: ClassModel
    exponents: Exponents
    count: Array
    n_rows: int
    sample: Sample
    scored: Scored | None = None

    stats = cast(Any, None)
    has_weights = True  # of classes, which others may replace
    exact_weights = False

    @property
    def prior(self) -> ClassModel:  # type: ignore[override]  # no field: it is the model
        """Return the model: draws do not change the hyper-parameters of its family."""
        return self.model

    @property
    def n_draws(self) -> int:
        """Return the number of draws of exponents."""
        return self.exponents.n_draws

    def with_draws(self, theta: Theta, exact_weights: bool) -> Self:
        """Return the same with other draws of exponents and intercepts."""
        eta = theta["exponent"]
        none = np.zeros((*eta.shape[:2], len(self.model.alpha)))
        return replace(self, exponents=Exponents(eta, theta.get("intercept", none)))

    def draw(self, rng: np.random.Generator, draws: int, chains: int) -> Theta:
        """Return the draws that there are, whatever is asked for."""
        return dict(zip(self.params, self.exponents, strict=False))

    def simulate(
        self, rng: np.random.Generator, n: int, codes: Array | None, one_theta: bool
    ) -> tuple[Matrix, Array]:
        """Refused: there is no density of x."""
        return self.model.family.simulate(rng, {}, np.zeros(n)), np.zeros(n)

    def class_weights(self, method: Method = "posterior_predictive") -> Array:
        """Return (C,) frequencies in the training rows, with a pseudo-count of 1."""
        weights: Array = (self.count + 1) / (self.count + 1).sum()
        return weights

    def evidence(self, X: MemberRows) -> Evidence:
        """Return what the members say of new rows."""
        return evidence_of(self.members, self.count, X)[0]

    def estimate(self, method: Method) -> Theta:
        """Refused: what is pooled are predictives."""
        raise UndefinedEstimateError(
            method, "a pool is of predictives, and plugs no estimate of its members in"
        )

    def _predictive(self, X: MemberRows, class_prior: Array | None, quantity: Quantity) -> Array:
        """Return (N, C) log p(y = c | x_i), up to a term of the row."""
        return self.exponents.log_proba(self.evidence(X)) + self._shift(class_prior)

    def _shift(self, class_prior: Array | None) -> Array:
        """Return (C,) log odds that other class weights add."""
        if class_prior is None:
            return np.zeros(len(self.count))
        return log_weights(class_prior) - log_weights(self.class_weights())

    def log_joint_draws(self, X: MemberRows, request: DrawRequest) -> JointDraws:
        """Draws of the pooled scores (`JointDraws`).

        A draw gives every training row a random weight, fits the members again with these weights
        (structures, and members known by draws, stay), takes one draw of their parameters, and
        pools the densities by one draw of exponents and intercepts.
        """
        n_draws, seed, class_prior = request.n_draws or _DRAWS, request.seed, request.class_prior
        if request.training is None:
            raise ValueError("draws of a pool need its training rows")
        which = np.random.default_rng(seed).permutation(np.arange(n_draws) % self.n_draws)
        eta, b = (values[which] for values in self.exponents.flat)
        of_fit = request.training()
        _, codes, weight, *_ = of_fit
        factors = weights_of_draws(n_draws, seed, len(codes))
        count = 1 + factors * weight @ np.eye(len(self.count))[codes]
        log_pi = log_weights(count / count.sum(axis=1, keepdims=True))
        shift = log_pi if class_prior is None else log_weights(class_prior)[None]

        def blocks() -> Iterator[tuple[slice, Array]]:
            for rows in row_blocks(X.shape[0], b.size, BLOCK):
                some = X[rows]
                shares = some.known(self.members)[:, None]
                tempers = some.tempers(self.members)[..., None]
                joint = b[:, None] * shares + shift[:, None]
                for k in range(len(self.members)):
                    for s, log_x in enumerate(self._densities(k, some, seed, log_pi, of_fit)):
                        score = np.where(shares, comparable(log_x), 0.0)
                        joint[s] += eta[s, k] * tempers[k] * score
                yield rows, joint[None]

        return JointDraws(blocks(), (1, n_draws, X.shape[0], b.shape[1]))

    def _densities(
        self, k: int, X: MemberRows, seed: int, log_pi: Array, of_fit: Any
    ) -> Iterator[Array]:
        """Yield (N, C) log densities of rows given their class by member k, for each draw."""
        member, n_draws = self.members[k], len(log_pi)
        fitted = member.fitted
        posterior, generative = fitted.posterior, fitted.posterior.model.generative
        if not posterior.exact:
            inside = posterior.log_class_weights() if generative else log_pi
            yield from X.log_joint(member) - np.broadcast_to(inside, log_pi.shape)[:, None]
            return

        def own_rows():
            rows, *others = of_fit
            return rows.as_training.read(member).encoded, *others

        has_theta = generative and not fitted.reader.sums_missing
        for s, fit in enumerate(posterior.random_fits(n_draws, seed, own_rows)):
            if has_theta and not posterior.too_large(n_draws):
                one = (seed * len(self.members) + k) * n_draws + s
                yield fit.draw_log_density(one, X.read(member).encoded, 1)[0]
            elif has_theta:
                yield fit.model.family.log_density_at_mean(X.read(member).encoded)
            else:  # no theta is drawn of label trees, nor where cells are summed over
                inside = fit.log_class_weights() if generative else log_pi[s]
                yield X.log_joint(member, fitted=replace(fitted, posterior=fit)) - inside

    def without_each(
        self, X: MemberRows, codes: Array, weight: Array, groups: Array | None = None
    ) -> tuple[Array, Array]:
        """Return (N, C) log p(y = c | x_i) of rows without themselves, and Pareto k (N,).

        Members are without the row, or its whole group, exactly (by importance sampling where they
        are known by draws), exponents and intercepts as in `Exponents.without_each_row`; the
        members' scores of the other rows stay as they are.
        """
        return self.log_proba_without(self.scores_without(X, codes, weight, groups))

    def scores_without(
        self, X: MemberRows, codes: Array, weight: Array, groups: Array | None = None
    ) -> Scored:
        """Return what the members say of training rows without themselves or their groups."""
        evidence, joints = evidence_of(self.members, self.count, X, codes, weight, groups)
        return Scored(evidence, codes, weight, joints)

    def log_proba_without(self, rows: Scored) -> tuple[Array, Array]:
        """Return the same from the members' scores."""
        return self.exponents.without_each_row(*rows[:3], self.sample)
