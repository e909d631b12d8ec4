"""Token sequences: MarkovNB, an n-gram language model for each class."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, Self, cast

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.utils import Tags

from bayesgen.encoding.reader import Reader, Rows
from bayesgen.encoding.tokens import Split, Tokenizer, Vocabulary, refuse_texts
from bayesgen.errors import warn
from bayesgen.estimators.arguments import PriorValue, make_constructor
from bayesgen.estimators.classifier import GenerativeClassifier
from bayesgen.families.capabilities import TokenDraws, require
from bayesgen.families.conjugate.dirichlet_markov import DirichletMarkov
from bayesgen.families.contract import Family
from bayesgen.families.names import CONTEXT, TOKEN
from bayesgen.inference import trees
from bayesgen.numerics.special import Array
from bayesgen.predict.leave_one_out import label_score

_START = "⊢"  # how a coordinate shows that a document begins here
_UNKNOWN = "␦"  # and a token outside the vocabulary
_ENOUGH, _WORSE = 100, 1.2  # documents, and ratio of log losses, from which on a fit warns


@dataclass(frozen=True, eq=False)
class Documents(Reader):
    """Texts or lists of tokens; `declared` tokens are known beside those that occur.

    `raw`: the training documents were strings.
    """

    tokens: Any = "char"
    fold: bool = False
    declared: Any = None
    raw: bool = False

    saved = (*Reader.saved, "raw")

    @property
    def tokenizer(self) -> Tokenizer:
        """Cuts texts."""
        return Tokenizer(self.tokens, self.fold)

    def admit(self, X: Any, *, first: bool = False) -> tuple[Self, Rows]:
        """Lists of tokens; see `Reader.admit`."""
        if isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind in "biufc":
            raise ValueError(
                "Expected strings, token lists or a 2D array, got a 1D array of numbers. Reshape "
                "your data: X[None, :] if it is one token sequence"
            )
        documents, raw = self.tokenizer.read(X, whole=True)
        reader = self
        if len(getattr(X, "shape", ())) == 2:
            reader = self.of_columns(X, first)
            if first and X.shape[1] == 1:
                refuse_texts(documents, "word", "X is a table of one column")
        if first:
            reader = replace(reader, raw=raw)
        elif self.raw and not raw and isinstance(self.tokens, str):
            refuse_texts(documents, cast(Any, self.tokens), "the classifier was fitted to texts")
        return reader, Rows(documents, reader)

    def of_table(self, X: Any) -> Any:
        """Return the one column of texts."""
        frame = nw.from_native(X)
        if frame.shape[1] != 1:
            raise ValueError(
                f"a language model reads one column of texts, and there are {frame.columns}: "
                "leave the others out"
            )
        return frame[frame.columns[0]].to_list()

    def learn_encoder(self, rows: Rows) -> Vocabulary:
        """Return the tokens of the documents and the declared ones."""
        declared = [] if self.declared is None else Tokenizer()([list(self.declared)])
        return Vocabulary.learn([*rows.X, *declared])

    def recoded(self, encoder, codes, stats):
        """Return counts of tokens in the order of a merged vocabulary."""
        return stats.recode_tokens(codes, len(encoder))

    def encode(self, rows: Rows) -> Array:
        """Codes of the tokens."""
        codes: Array = self.encoder.encode(rows.X)
        return codes

    def decode(self, X: Any) -> list[Any]:
        """Strings, or lists of tokens."""
        documents = [self.encoder.decode(codes) for codes in X]
        if not self.raw:
            return documents
        return [self.tokenizer.join(document) for document in documents]

    def words(self, X: Any) -> list[Any]:
        """Return the word of each token, document by document; for lists the tokens."""
        if not self.raw:
            return [token for document in self.tokenizer(X) for token in document]
        return [word for text in X for word in self.tokenizer.words(text)]

    @property
    def _between(self) -> str:
        return "" if self.tokens == "char" else " "

    def feature_names(self, family: Family) -> list[Any]:
        """Return the contexts: what stands before a token."""
        ngrams: Any = family
        tokens = list(map(str, self.encoder.tokens))
        return [
            self._between.join(_START if k < 0 else tokens[k] for k in c) for c in ngrams.contexts
        ]

    def term_names(self, encoded: Any, family: Family) -> list[Any]:
        """Return the n-grams of the documents; codes -2 and -1 are start and unknown token."""
        require(family, TokenDraws, "explain")
        ngrams: Any = family
        shown = [*map(str, self.encoder.tokens), _START, _UNKNOWN]
        grams = ngrams.grams_of(encoded).tolist()
        return [self._between.join(shown[k] for k in gram) for gram in grams]

    def coords(self, family: Family) -> dict[str, Any]:
        """{dim: labels} of the posterior."""
        return {CONTEXT: self.feature_names(family), TOKEN: list(map(str, self.encoder.tokens))}


@make_constructor
class MarkovNB(GenerativeClassifier):
    r"""Language-model classifier: each class is a Markov chain of tokens with Dirichlet priors.

    A token depends on the ``order - 1`` tokens before it; order 1 is the unigram model (a bag of
    words in sequence). The predictive integrates the transition tables out for the document as a
    whole: a token repeated in a document is less surprising the second time.

    X is a sequence of strings (list, array, Series), of token lists, or a 2-D array whose rows are
    token sequences with trailing NaN as padding.

    Parameters
    ----------
    order : int, default 2
        n of the n-grams.
    alpha : float or array broadcasting to (class, token), default 1.0
        Pseudo-counts of each token after each context, in tokens.
    tokens : {"char", "word", "distinct word", "word part"} or callable
        How a string is cut: into characters; into lower-case words, or each of them once; into
        every 3, 4 and 5 characters within lower-case words; or by a function that takes a string
        and returns its tokens.
    fold : bool, default False
        Whether strings lose capital letters and the accents of Latin, Greek and Cyrillic letters
        before they are cut.
    vocabulary : sequence of tokens, optional
        Tokens that exist even if no document shows them. None: those of the training documents.
    length : int, default 100
        Tokens of a simulated document; no part of the model, which takes lengths as given.
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    prior : {"loo", "default", "empirical"} or None
        Strength of the prior. ``"default"``: alpha as is stated. ``"loo"``: multiplied by the
        factors with the largest leave-one-out score of the labels. ``"empirical"``: by those with
        the largest evidence p(X, y). None: ``"loo"`` in `fit` if alpha is not given, else
        ``"default"`` (`GenerativeClassifier`).

    Attributes
    ----------
    vocabulary_ : Vocabulary
        Tokens and their codes.

    Notes
    -----
    Every context of ``order - 1`` tokens has a table of its own, with the same prior. The order
    must be chosen; a `LogLinearPool` of several orders mixes them.

    Contexts at the beginning of a document hold a start symbol, which is never predicted.

    A token outside the vocabulary is no evidence: it is left out, and the tokens after it have
    contexts that were never seen. It is never simulated.

    References
    ----------
    Jurafsky and Martin (2009), Speech and Language Processing, chapter 4.

    Examples
    --------
    >>> clf = MarkovNB(order=1, tokens="word")
    >>> clf = clf.fit(["the dog barks", "dog and cat", "a tulip", "rose and tulip"], list("aapp"))
    >>> clf.predict(["tulip tulip rose"])
    array(['p'], dtype='<U1')
    """

    _family_type = DirichletMarkov
    _unsaved = ("tokens",)  # where it is a function

    order: int = 2
    alpha: PriorValue = 1.0
    tokens: Split = "char"
    _: KW_ONLY
    fold: bool = False
    vocabulary: Any = None
    length: int = 100
    class_alpha: PriorValue = 1.0
    prior: str | None = None

    @property
    def vocabulary_(self) -> Vocabulary:
        """Tokens and their codes."""
        vocabulary: Vocabulary = self.encoder_
        return vocabulary

    @property
    def raw_documents_(self) -> bool:
        """Return whether documents are texts, and not sequences of tokens."""
        reader: Any = self._fitted().reader
        return bool(reader.raw)

    def to_pymc(
        self,
        X: Any = None,
        y: Any = None,
        *,
        likelihood: Literal["statistics", "rows"] = "statistics",
        observed: bool = True,
        X_new: Any = None,
    ) -> Any:
        """Return the model as a PyMC graph: tables over the contexts of the training documents.

        Parameters
        ----------
        X, y, likelihood, observed, X_new
            As in `GenerativeClassifier`. Rows are observed token by token: ``x`` has one entry
            for each token, and ``x_row`` is the document of each.
        """
        fitted = self._fitted_to(X, y)
        prior, seen = fitted.posterior.prior, fitted.family
        family: Any = prior.family  # with tables for the contexts of `posterior_`
        family = replace(family, grams=seen.grams, counts=0.0 * seen.counts)  # type: ignore[attr-defined]
        posterior: Any = fitted.posterior
        posterior = replace(posterior, prior=replace(prior, family=family))
        fitted = replace(fitted, posterior=posterior)
        return trees.to_pymc(fitted, X, y, likelihood, observed, X_new)

    def _advise(self) -> None:
        if len(self.classes_) < 2 or self._fitted().training.n_rows < _ENOUGH:
            return
        score = label_score(self._fitted())
        if score is not None and score.log_loss > _WORSE * score.of_frequencies:
            warn(
                f"{type(self).__name__} is too sure: the log loss of the labels, each without its "
                f"document, is {score.log_loss:.2f} nats, and {score.of_frequencies:.2f} of the "
                f"class frequencies alone. For probabilities take LogLinearPool(), or "
                f"LogLinearPool([{type(self).__name__}()]), which learns how much to believe it"
            )

    def _reader(self) -> Reader:
        earlier = self.__dict__.get("fitted_")  # a width that it has seen: lists have none
        return Documents(
            type(self).__name__,
            n_features=None if earlier is None else earlier.reader.n_features,
            tokens=self.tokens,
            fold=self.fold,
            declared=self.vocabulary,
        )

    def _family(self, reader: Reader, classes: Array) -> DirichletMarkov:
        encoder = reader.encoder
        n_tokens = 0 if encoder is None else len(encoder)
        return DirichletMarkov(
            order=self.order, n_tokens=n_tokens, alpha=self.alpha, length=self.length
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        # on the checks' blobs: a bag of two rounded numbers forgets which was which
        tags.classifier_tags.poor_score = self.order == 1
        return tags
