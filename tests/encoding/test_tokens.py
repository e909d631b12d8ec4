"""From texts to codes: what is a document, what is a token, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from bayesgen.encoding.tokens import Tokenizer, Vocabulary, folded

WORDS = [["a", "b", "a"], [], ["b"]]


# ----------------------------------------------------------------------------------- tokenizing


@pytest.mark.parametrize("tokens", ["char", "word", "distinct word", "word part"])
def test_each_token_stands_in_a_word(tokens):
    text = " Don't STOP, \xe9t\xe9!! x"
    words = Tokenizer(tokens).words(text)
    (cut,) = Tokenizer(tokens)([text])
    assert len(words) == len(cut)
    assert {*words} - {",", "!!"} == {"don't", "stop", "ete", "x"}
    for token, word in zip(cut, words, strict=True):
        assert not token.strip().isalpha() or folded(token.strip()) in word


@pytest.mark.parametrize(
    ("tokenizer", "texts", "documents"),
    [
        (Tokenizer("char"), ["A b", ""], [["A", " ", "b"], []]),
        (
            Tokenizer("word"),
            ["Don’t  STOP--can't; 3 x_y!", "Ça va, Łódź?", "..."],
            [["don’t", "stop", "can't", "3", "x_y"], ["ça", "va", "łódź"], []],
        ),
        (
            Tokenizer("word"),
            ["İnsan", "हिन्दी", "x\u0302y"],
            [["İnsan".lower()], ["हिन्दी"], ["x\u0302y"]],
        ),
        (Tokenizer("word", fold=True), ["Été ÀÀ Ёж"], [["ete", "aa", "еж"]]),
        (Tokenizer("distinct word"), ["b A b", ""], [["b", "a"], []]),
        (Tokenizer(lambda text: (len(w) for w in text.split())), ["aa b"], [[2, 1]]),
    ],
)
def test_how_texts_are_cut(tokenizer, texts, documents):
    assert tokenizer(texts) == documents
    joined = Tokenizer(tokenizer.tokens).join(documents[0])
    assert joined == documents[0] or tokenizer([joined])[0] == documents[0]


def test_a_letter_with_an_accent_is_one_character_however_it_was_typed():
    typed = ["e\u0301te\u0301", "\xe9t\xe9"]
    for tokens in ("char", "word", str.split):
        first, second = Tokenizer(tokens)(typed)
        assert first == second
    assert Tokenizer()([typed[:1], typed[1:]]) == [["\xe9t\xe9"]] * 2


def test_parts_of_words_are_those_of_scikit_learn():
    texts = ["Don't STOP!", "a to", " x\n", ""]
    analyze = CountVectorizer(analyzer="char_wb", ngram_range=(3, 5)).build_analyzer()
    assert [sorted(parts) for parts in Tokenizer("word part")(texts)] == [
        sorted(analyze(text)) for text in texts
    ]


@pytest.mark.parametrize(
    "texts",
    [
        ["ab", "c"],
        ("ab", "c"),
        np.array(["ab", "c"]),
        np.array(["ab", "c"], dtype=object),
        pd.Series(["ab", "c"], index=[5, 5]),
        pd.Series(["ab", "c"], dtype="category"),
        pl.Series(["ab", "c"]),
        (text for text in ("ab", "c")),
        {"x": "ab", "y": "c"}.values(),
    ],
    ids=lambda texts: type(texts).__name__,
)
def test_sequences_of_strings(texts):
    documents, raw = Tokenizer("char").read(texts)
    assert raw
    assert documents == [["a", "b"], ["c"]]


def objects(*documents):
    X = np.empty(len(documents), dtype=object)
    for i, document in enumerate(documents):
        X[i] = document
    return X


@pytest.mark.parametrize(
    "documents",
    [
        WORDS,
        [tuple(d) for d in WORDS],
        [np.array(d, dtype=str) for d in WORDS],
        objects(*WORDS),
        pd.Series(WORDS),
        pl.Series(WORDS, dtype=pl.List(pl.String)),
        [pd.Series(d, dtype=object) for d in WORDS],
        [pl.Series(d, dtype=pl.String) for d in WORDS],
        np.array([["a", "b", "a"], [None] * 3, ["b", None, np.nan]], dtype=object),
        pd.DataFrame([["a", "b", "a"], [None] * 3, ["b", None, None]]),
        pl.DataFrame({"x": ["a", None, "b"], "y": ["b", None, None], "z": ["a", None, None]}),
    ],
    ids=lambda documents: type(documents).__name__,
)
def test_token_sequences_are_left_as_they_are(documents):
    for setting in ("char", "word", str.split):
        got, raw = Tokenizer(setting).read(documents)
        assert not raw
        assert got == WORDS


def test_tables_of_numbers_pad_with_nan():
    X = np.array([[1.0, 2, 3], [4, np.nan, np.nan], [np.nan] * 3])
    assert Tokenizer()(X) == [[1, 2, 3], [4], []]
    assert Tokenizer()(np.array([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]
    assert Tokenizer()(np.array([["ab", "c"]])) == [["ab", "c"]]
    got = Tokenizer()([np.array([1, 2], dtype=np.int8), [np.int64(3)]])
    assert [[type(v) for v in d] for d in got] == [[int, int], [int]]


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ("one text", TypeError, r"one string.*\[X\]"),
        ([], ValueError, "no documents"),
        (np.empty((0, 3)), ValueError, "no documents"),
        (np.empty((3, 0)), ValueError, "0 feature"),
        (["a", None], ValueError, r"document 1 is missing \(None\)"),
        (pd.Series(["a", pd.NA], dtype="string"), ValueError, "document 1 is missing"),
        (pl.Series(["a", None]), ValueError, "document 1 is missing"),
        (["a", 3], TypeError, "document 1 must be a string like document 0, got int"),
        ([["b"], "a"], TypeError, "document 1 is a string but document 0 is not"),
        ([b"a"], TypeError, "document 0 must be.*got bytes; decode"),
        ([{"a"}], TypeError, "document 0 must be .* got set"),
        ([3, 4], TypeError, "document 0 must be a string or a sequence of tokens, got int"),
        (np.array([1.0, 2.0]), TypeError, "document 0 must be a string or a sequence"),
        (np.zeros((2, 2, 2)), ValueError, "3 dimensions"),
        (np.array([[1 + 2j]]), ValueError, "Complex data not supported"),
        ({"a": "b"}, TypeError, "sequence of documents, got dict"),
        (3, TypeError, "sequence of documents, got int"),
        (sparse.csr_matrix([[1, 0]]), TypeError, "sparse matrix.*MultinomialNB"),
        (pl.LazyFrame({"x": ["a"]}), TypeError, "lazy"),
        (
            np.array([[1, np.nan, 2]]),
            ValueError,
            "document 0 has a missing.* 1; only the end",
        ),
        (np.array([["a", "b"], [None, "b"]], object), ValueError, "document 1 has a missing.* 0;"),
        (np.array([[1, np.inf]]), ValueError, r"document 0 has an infinity \(inf\) at position 1"),
        ([["a"], ["a", None]], ValueError, "document 1 has a missing token.*position 1"),
        ([["a", ["b"]]], TypeError, "document 0, position 1: tokens must be hashable.*list"),
    ],
)
def test_errors_say_what_and_where(X, error, message):
    with pytest.raises(error, match=message):
        Tokenizer()(X)


@pytest.mark.parametrize(
    ("tokens", "error", "message"),
    [
        ("x", ValueError, "tokens must be one of 'char', 'word'"),
        (str.upper, TypeError, "document 0: the callable tokens= must return a list"),
        (len, TypeError, "document 0: the callable tokens= must return a list"),
        (lambda text: [[text]], TypeError, "document 0, position 0: tokens must be hashable"),
    ],
)
def test_tokens_argument(tokens, error, message):
    with pytest.raises(error, match=message):
        Tokenizer(tokens)(["a b"])


# ----------------------------------------------------------------------------------- vocabulary


def test_learn_encode_decode():
    vocabulary = Vocabulary.learn(WORDS)
    assert vocabulary.tokens == ("a", "b")
    codes = vocabulary.encode([*WORDS, ["c", "a"]])
    assert {c.dtype for c in codes} == {np.dtype(np.int64)}
    assert [c.tolist() for c in codes] == [[0, 1, 0], [], [1], [-1, 0]]
    assert vocabulary.decode(codes[0]) == ["a", "b", "a"]
    assert vocabulary.decode([-2, 1, -1], other="?") == ["?", "b", "?"]
    assert vocabulary.encode([["a"], ["b"]]).dtype == object  # of equal lengths too


def test_the_order_of_documents_does_not_matter():
    mixed = [["b", 2, ("x", 1)], [1.5, "a"], [True, 10, ("x", 0), b"z"]]
    first, second = Vocabulary.learn(mixed), Vocabulary.learn(mixed[::-1])
    assert first == second
    assert first.tokens == (True, 1.5, 2, 10, "a", "b", b"z", ("x", 0), ("x", 1))


def test_merge_gives_the_new_codes_of_both():
    a, b = Vocabulary.learn([["b", "d"]]), Vocabulary.learn([["a", "b", "c"]])
    union, mine, theirs = a.merge(b)
    assert union.tokens == ("a", "b", "c", "d")
    assert (mine.tolist(), theirs.tolist()) == ([1, 3], [0, 1, 2])
    union, mine, theirs = a.merge(Vocabulary(()))
    assert (union, mine.tolist(), theirs.tolist()) == (a, [0, 1], [])
