import itertools
import json
import re
from base64 import b64decode
from html.parser import HTMLParser
from importlib import resources

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    confusion_matrix,
    log_loss,
    precision_score,
    roc_auc_score,
)

import bayesgen as bg
from bayesgen.numerics.special import count_probabilities, count_tails
from bayesgen.reporting import rows
from bayesgen.reporting.decisions import decisions
from bayesgen.reporting.held_out import HeldOut
from tests.estimators.cases import CASES, sample
from tests.selection import rest_is_slow


def held_out(clf, X, y, **options):
    """Rows with intervals of 90 %."""
    given = {"training": None, "prob": 0.9, "max_rows": None, "seed": 0} | options
    return HeldOut.of(clf, X, y, **given)


X, Y = bg.datasets.load_penguins()
TEST = np.arange(len(X)) % 3 == 2
FIRST = ["verdict", "predictives", "calibration", "doubts"]
HOSTILE = "</style><script>alert('x')</script> $\\frac{1$ & \"q\" | `b` *c* {{7*7}} <img src=x>"


@pytest.fixture(scope="module")
def clf():
    return bg.MixedNB().fit(X[~TEST], Y[~TEST])


@pytest.fixture(scope="module")
def found(clf):
    return bg.report(clf, X[TEST], Y[TEST], training=(X[~TEST], Y[~TEST]), prob=0.9)


@pytest.fixture(scope="module")
def data(found):
    return {k: s["data"] for k, s in json.loads(found.to_json())["sections"].items()}


def lines(section, i=0):
    """The lines of a table, by their first cell."""
    return {next(iter(line.values())): line for line in section.tables[i].lines}


class Page(HTMLParser):
    """Tags with their attributes, in order; and whether all are closed."""

    VOID = frozenset(("meta", "link", "br", "img", "path", "use"))

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.words = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert tag in self.VOID or self.open.pop() == tag

    def handle_data(self, text):
        self.words.append(text)

    def all(self, name):
        return [attrs for tag, attrs in self.tags if tag == name]


def check_page(text):
    """What holds of every page."""
    page = Page(text)
    assert len(text.encode()) < 2_000_000
    pictures = [attrs["src"].partition("base64,")[2] for attrs in page.all("img")]
    for picture in pictures:
        Page(b64decode(picture).decode().partition("?>")[2])  # which asks whether all is closed
        text = text.replace(picture, "")
    assert not re.search(r"https?:|//[a-z]|url\((?!#)|@import|javascript:", text)
    for name in ("script", "svg", "iframe", "object", "form"):
        assert not page.all(name)
    for name in ("h1", "main", "header", "footer", "title"):
        assert len(page.all(name)) == 1
    assert page.all("html")[0]["lang"] == "en"
    assert not [key for _, attrs in page.tags for key in attrs if key.startswith("on")]
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for _, attrs in page.tags:
        if "aria-labelledby" in attrs:
            assert attrs["aria-labelledby"] in ids
        target = attrs.get("href", "")
        assert target[1:] in ids if target.startswith("#") else target in ("", "data:,")
    assert all(len(image["alt"]) > 20 for image in page.all("img"))
    assert not re.search(r"<(th|td)[^>]*></", text)  # no cell of a table is silent
    assert all(th["scope"] in ("col", "row") for th in page.all("th"))
    assert all(table["aria-labelledby"] in ids for table in page.all("table"))
    return page


# ------------------------------------------------------------------------------------ the page


def test_page(found):
    text = found.to_html()
    page = check_page(text)
    keys = [section.key for section in found.sections]
    assert keys == [*FIRST, "confusions", "model", "typicality", "limits"]
    assert [note.partition(" left")[0] for note in found.notes] == ["Decisions", "Sampling"]
    assert [attrs["href"] for attrs in page.all("a")[1:]] == [f"#{key}" for key in keys]
    assert not any("Warning" in note for s in found.sections for note in s.notes)
    assert len(page.all("img")) == sum(len(s.figures) for s in found.sections) == 3
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text
    assert "details::details-content" in text  # what is folded is printed
    (frame,) = Page(found._repr_html_()).all("iframe")
    assert frame["srcdoc"] == text
    assert found.sections[0].text[0] in repr(found)


def luminance(colour):
    c = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(c <= 0.03928, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def test_colours_have_contrast():
    """WCAG 2.2: 4.5 of text, 3 of marks, against the paper of the same scheme."""
    css = resources.files("bayesgen.reporting").joinpath("templates/page.css").read_text()
    need = {"ink": 7, "muted": 4.5, "link": 4.5, "focus": 3}
    for block in re.findall(r":root \{(.*?)\}", css, re.DOTALL)[:2]:  # light and dark
        scheme = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block))
        for name, ground in itertools.product(need, ("paper", "panel")):
            a, b = sorted((luminance(scheme[name]), luminance(scheme[ground])))
            assert (b + 0.05) / (a + 0.05) >= need[name], (name, ground)


def test_hostile_names_labels_and_title():
    names = {"island": f"{HOSTILE} 1", "bill_depth_mm": f"{HOSTILE} {'long ' * 40}"}
    frame = X.rename(columns=names)
    frame[names["island"]] += HOSTILE
    labels = Y.map(lambda label: f"{label} {HOSTILE}")
    clf = bg.MixedNB().fit(frame[~TEST], labels[~TEST])
    found = bg.report(clf, frame[TEST], labels[TEST], title=HOSTILE)
    text = found.to_html()
    page = check_page(text)
    assert any(HOSTILE in words for words in page.words)
    assert "<" not in found.to_markdown()
    json.loads(found.to_json())


# --------------------------------------------------------------------------------- the numbers


def test_scores(clf, found, data):
    p, y = clf.predict_proba(X[TEST]), Y[TEST]
    sections, one = {s.key: s for s in found.sections}, data["verdict"]
    assert one["rows"] == one["rows_given"] == TEST.sum()
    assert one["accuracy"] == accuracy_score(y, clf.predict(X[TEST]))
    assert one["log_loss"] == pytest.approx(log_loss(y, p, labels=clf.classes_), rel=1e-9)
    assert one["brier"] == pytest.approx(
        brier_score_loss(y, p, labels=clf.classes_, scale_by_half=False), rel=1e-9
    )
    k, n = round(one["accuracy"] * one["rows"]), one["rows"]
    expected = stats.beta(k + 0.5, n - k + 0.5).interval(0.9)
    np.testing.assert_allclose(one["accuracy_interval"], expected, rtol=1e-9)
    assert data["confusions"]["counts"] == confusion_matrix(y, clf.predict(X[TEST])).tolist()
    plug_in = log_loss(y, clf.predict_proba(X[TEST], method="map"), labels=clf.classes_)
    gap = lines(sections["predictives"])["posterior mode (MAP)"]["above the full"]
    assert gap == pytest.approx(plug_in - one["log_loss"], rel=1e-9)
    weights = (np.bincount(clf.classes_.searchsorted(Y[~TEST])) + 1) / (np.sum(~TEST) + 3)
    codes = clf.classes_.searchsorted(y)
    gain = np.log(p[np.arange(len(y)), codes]) - np.log(weights[codes])
    assert one["log_loss_gain"] == pytest.approx(gain.mean(), rel=1e-9)
    assert one["log_loss_gain_se"] == pytest.approx(stats.sem(gain), rel=1e-9)
    for c, label in enumerate(clf.classes_):
        line = lines(sections["calibration"])[label]
        assert line["expected"] == pytest.approx(p[:, c].sum())
        assert line["observed"] == (y == label).sum()
        assert (
            lines(sections["confusions"])[label]["Gentoo"]
            == ((y == label) & (clf.predict(X[TEST]) == "Gentoo")).sum()
        )
    assert sum(data["calibration"]["bins"]["size"]) == TEST.sum()
    n_unlike = (clf.typicality(X[TEST])["overall"].values < 0.01).sum()
    assert data["typicality"]["below_0.01"] == n_unlike
    assert f"here {n_unlike} of {TEST.sum()}" in sections["limits"].text[0]
    missing = X[~TEST]["body_mass_g"].isna().sum()
    assert lines(sections["model"])["body_mass_g"]["missing"] == missing


def test_rates_and_costs_of_two_classes():
    """Against scikit-learn, `decide`, Beta quantiles, and DeLong's sums over all pairs."""
    rng = np.random.default_rng(1)
    y = rng.random(600) < 0.1
    X, label = rng.normal(size=(600, 2)) + 1.2 * y[:, None], np.where(y, "ill", "fine")
    clf = bg.GaussianNB().fit(X[:300], label[:300])
    cost = {"fine": {"ill": 1.0}, "ill": {"fine": 9.0}}
    section = decisions(held_out(clf, X[300:], label[300:], cost=cost))
    data, y, p = section.data, y[300:], clf.predict_proba(X[300:])[:, 1]
    pairs = (p[y][:, None] > p[~y]) + 0.5 * (p[y][:, None] == p[~y])
    assert data["auc"] == pytest.approx(roc_auc_score(y, p), rel=1e-12)
    se = np.sqrt(sum(pairs.mean(axis=k).var(ddof=1) / pairs.shape[1 - k] for k in (0, 1)))
    odds = np.log(data["auc"] / (1 - data["auc"]))
    reach = stats.norm.isf(0.05) * se / (data["auc"] * (1 - data["auc"]))
    np.testing.assert_allclose(
        data["auc_interval"], 1 / (1 + np.exp([reach - odds, -reach - odds])), rtol=1e-9
    )
    assert data["threshold"] == pytest.approx(0.1)
    for name, line in lines(section, 1).items():
        t = float(name.removesuffix(" (chosen)"))
        (tn, fp), (fn, tp) = confusion_matrix(y, p > t)
        ppv = precision_score(y, p > t, zero_division=np.nan)
        rates = [tp / (tp + fn), tn / (tn + fp), ppv, tn / (tn + fn), (fp + 9 * fn) / 300]
        assert [*line.values()][2:] == pytest.approx(rates, rel=1e-12, nan_ok=True)
    named = bg.decide(clf, X[300:], cost)["decision"].values == "ill"
    tp, n1 = (named & y).sum(), y.sum()
    expected = stats.beta(tp + 0.5, n1 - tp + 0.5).interval(0.9)
    assert lines(section)["sensitivity"]["90\u00a0% interval"] == pytest.approx(expected, rel=1e-9)
    by_decision = {name: line["rows"] for name, line in lines(section, 2).items()}
    assert by_decision == {"fine": (~named).sum(), "ill": named.sum()}
    assert data["costs"][1] == pytest.approx(np.where(y, 9 * ~named, named).mean())


def test_least_certain_rows(clf, found, data):
    p = clf.predict_proba(X[TEST])
    least = np.argsort(p.max(axis=1))[:8]
    told = lines(found.sections[3])
    assert list(told) == X[TEST].index[least].astype(str).tolist()
    ends = clf.predict_interval(X[TEST].iloc[least], prob=0.9)["interval"].values
    np.testing.assert_allclose(data["doubts"]["interval"], ends, rtol=1e-9)
    np.testing.assert_allclose(data["doubts"]["probability"], p[least], rtol=1e-9)
    for line, (low, high), c in zip(
        told.values(), ends[np.arange(8), p[least].argmax(1)], p[least].argmax(1), strict=True
    ):
        assert line["most probable"].startswith(clf.classes_[c])
        assert line["most probable"].endswith(f"({low:.2f} to {high:.2f})")
        assert line["reasons"].count(" for ") == 3
        assert set(re.findall(r" for (\w+)", line["reasons"])) <= set(clf.classes_)


def test_a_prediction_outside_its_interval_is_explained_at_its_row():
    """Few rows, and rows unlike them."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 6)
    X = pd.DataFrame({"x": np.r_[rng.normal(size=6), 3 * rng.normal(size=6)]})
    new = pd.DataFrame({"x": [6.5, 0.0, 6.7]})
    clf = bg.GaussianNB().fit(X, y)
    found = rows.least_certain(held_out(clf, new, np.array(["b", "a", "b"]), prob=0.5))
    p, (low, high) = found.data["probability"], np.moveaxis(found.data["interval"], -1, 0)
    outside = ((p < low - 0.005) | (p > high + 0.005)).any(axis=1)
    (note,) = found.notes
    assert "ratio of expectations" in note
    names = [line["row"] for line in found.tables[0].lines]
    told = note.partition("probability of row ")[2].partition(".")[0].split(", ")
    assert told == [name for name, out in zip(names, outside, strict=True) if out] != []


def test_counts_of_different_events_by_enumeration():
    p = np.array([0.1, 0.5, 0.9, 0.97])
    expected = np.zeros(5)
    for events in itertools.product([0, 1], repeat=4):
        expected[sum(events)] += np.prod(np.where(events, p, 1 - p))
    np.testing.assert_allclose(count_probabilities(p), expected, rtol=1e-13)
    tails = expected[:3].sum(), expected[2:].sum()
    assert count_tails(p, 2) == pytest.approx(tails, rel=1e-13)


@pytest.mark.parametrize(
    ("n_right", "words"),
    [(260, "too sure"), (320, "Nothing speaks against"), (380, "not sure enough")],
)
def test_verdict_on_calibration(n_right, words):
    tails = stats.binom.cdf(n_right, 400, 0.8), stats.binom.sf(n_right - 1, 400, 0.8)
    assert words in rows._calibration_words(tails, 0.8, n_right / 400, False, "")


@pytest.mark.parametrize("n", [1, 2, 10, 50])
@pytest.mark.parametrize("p", [0.8, 0.95, 0.99])
def test_few_rows_raise_no_false_alarm(n, p):
    """With true probabilities: every count of right rows, weighed by its probability."""
    words = [
        rows._calibration_words(count_tails(np.full(n, p), k), p, k / n, False, "")
        for k in range(n + 1)
    ]
    alarms = ["too sure" in text for text in words]
    assert stats.binom.pmf(range(n + 1), n, p) @ alarms <= 0.025


class Stated(HeldOut):
    """Rows of which only the probabilities and the labels are known."""

    @classmethod
    def of_two(cls, p, codes):
        held = cls(None, None, codes, np.arange(len(p)), len(p), 0.89, 0)
        held.__dict__ |= {"p": np.stack([1 - p, p], axis=1), "codes": codes, "labels": ["a", "b"]}
        return held


def test_the_verdict_sees_the_diagram():
    """Half the rows are too low and half too high, so that all sums are as expected."""
    p = np.repeat([0.3, 0.7], 200)
    codes = np.r_[np.arange(200) % 2, np.arange(200) % 2]
    assert "intervals miss the diagonal" in rows._shown_against(Stated.of_two(p, codes))


def test_diagrams_of_true_probabilities_raise_no_alarm():
    rng = np.random.default_rng(0)
    seen = []
    for _ in range(60):
        p = rng.beta(0.5, 0.5, 200)
        seen.append(rows._shown_against(Stated.of_two(p, (rng.random(200) < p).astype(int))))
    assert np.mean([bool(words) for words in seen]) < 0.15  # at most .05, and 3 standard errors


def test_the_verdict_sees_classes_of_other_frequencies():
    """Either class is recognised as often as expected, so that the accuracy is."""
    y, noise = np.arange(400) % 2, np.random.default_rng(0).normal(size=(400, 1))
    clf = bg.GaussianNB().fit(noise + 2 * y[:, None], y)
    found, _ = rows.verdict(held_out(clf, noise[::-1] + 2.001, np.ones(400, int)))
    assert min(found.data["calibration_tails"]) > 0.025
    assert "the classes have other frequencies" in found.text[1]


# -------------------------------------------------------------------------------- every estimator


@pytest.mark.parametrize(
    "name",
    rest_is_slow(CASES, ["MultinomialNB"]),
)
def test_every_estimator(name):
    case = CASES[name]
    rows, _, y = sample(case)
    clf = case.make().fit(rows, y)
    new, _, labels = sample(case, n=90, seed=8)
    found = bg.report(clf, new, labels)
    check_page(found.to_html())
    keys = [s.key for s in found.sections]
    first = [key for key in FIRST if key in keys]
    assert keys[: len(first)] == first
    assert {*FIRST} - {*first} <= {"predictives"}  # without a plug-in estimate
    assert {"model", "typicality"} < {s.key for s in found.sections}
    assert not [note for note in found.notes if note.startswith("Warning")]
    json.loads(found.to_json())


def test_a_pool():
    pool = bg.LogLinearPool([bg.MixedNB(), bg.MixedNB(variance="tied")]).fit(X[~TEST], Y[~TEST])
    found = bg.report(pool, X[TEST], Y[TEST], training=(X[~TEST], Y[~TEST]))
    model = lines({s.key: s for s in found.sections}["model"])
    exponents = dict(zip(pool.members_, pool.exponents_.tolist(), strict=True))
    assert {name: line["exponent"] for name, line in model.items()} == pytest.approx(exponents)
    check_page(found.to_html())


@pytest.mark.slow
def test_many_classes_and_many_rows_make_a_page_no_larger():
    rng = np.random.default_rng(0)
    c = rng.integers(0, 26, 300_000)
    rows = rng.normal(0, 1.2, (26, 8))[c] + rng.normal(size=(len(c), 8))
    y = np.array([chr(ord("a") + k) for k in range(26)])[c]
    clf = bg.GaussianNB().fit(rows[:5000], y[:5000])
    found = bg.report(clf, rows, y)
    check_page(found.to_html())
    assert found.sections[0].data["rows"] == 20_000
    assert "20\u202f000 rows drawn at random from the 300\u202f000" in found.sections[0].notes[0]
    few = bg.report(clf, rows, y, max_rows=1000)
    assert abs(len(found.to_html()) / len(few.to_html()) - 1) < 0.2


# ------------------------------------------------------------------------------- files and errors


@pytest.mark.parametrize(("name", "begin"), [("r.html", "<!D"), ("r.md", "# "), ("r.json", "{")])
def test_formats(found, name, begin, tmp_path):
    path = found.save(tmp_path / name)
    text = path.read_text(encoding="utf-8")
    assert text.startswith(begin)
    assert list(tmp_path.iterdir()) == [path]
    assert all(section.title in text for section in found.sections)


def test_what_is_refused(clf, found, tmp_path):
    new, labels = X[TEST], Y[TEST]
    for arguments, error, match in (
        ((LogisticRegression(), new, labels), TypeError, "LogisticRegression is not a classifier"),
        ((clf, new, Y), ValueError, "X has 114 rows, but y has shape"),
        ((clf, new, labels.replace("Gentoo", "Emperor")), ValueError, "Emperor"),
        ((clf, new, None), TypeError, "y is None; give the labels"),
        ((clf, X[:0], Y[:0]), ValueError, "no rows"),
        ((clf, new, labels, tmp_path / "r.pdf"), ValueError, "'r.pdf' does not end in .html, .md"),
    ):
        with pytest.raises(error, match=match):
            bg.report(*arguments)
    with pytest.raises(FileNotFoundError):
        found.save(tmp_path / "no" / "r.html")


def test_few_rows_and_absent_classes_are_told(clf):
    verdict, _ = rows.verdict(held_out(clf, X[TEST][:9], Y[TEST][:9]))
    assert "9 rows are few" in verdict.notes[0]
    assert "No row of Chinstrap, Gentoo" in verdict.notes[1]


@pytest.mark.parametrize("make", [bg.MixedNB, lambda: bg.LogLinearPool([bg.MixedNB()])])
def test_rows_of_the_fit_are_noticed(make):
    clf = make().fit(X[~TEST], Y[~TEST])
    for chosen, is_of_fit in ((~TEST, True), (TEST, False), (~TEST & (X.index > 0), False)):
        verdict, _ = rows.verdict(held_out(clf, X[chosen], Y[chosen]))
        assert verdict.data["rows_of_the_fit"] is is_of_fit
        says_so = verdict.text[0].startswith("These are the rows that the model was fitted")
        assert says_so is is_of_fit
        if is_of_fit:  # every score is by leave-one-out
            elpd = clf.loo(X[chosen], Y[chosen]).elpd
            assert verdict.data["log_loss"] == pytest.approx(-elpd / chosen.sum(), rel=1e-9)
    part = held_out(clf, X[~TEST], Y[~TEST], max_rows=40)  # as of a table larger than is scored
    assert part.is_training


def test_sparse_forms_without_rows():
    X, y = np.random.default_rng(0).poisson(1.0, (20, 3)).astype(float), np.arange(20) % 2
    clf = bg.PoissonNB().fit(X, y)
    dense, blocks = (held_out(clf, rows, y, max_rows=10) for rows in (X, sparse.bsr_array(X)))
    np.testing.assert_array_equal(blocks.X.toarray(), dense.X)


def test_rows_that_the_model_has_seen_are_counted(clf):
    """A report of a whole file may hold the training rows, too."""
    some = held_out(clf, X, Y)
    assert some.n_seen == (~TEST).sum()
    assert "equal training rows" in bg.report(clf, X, Y).to_json()
    assert held_out(clf, X[TEST], Y[TEST]).n_seen == 0
    assert held_out(clf, X[~TEST], Y[~TEST]).n_seen == 0  # scored without themselves


def test_categories_that_repeat_by_chance_are_not_rows_seen():
    """Many patterns occur once, and most new rows equal an old one nevertheless."""
    rng = np.random.default_rng(0)
    table, y = np.minimum(rng.geometric(0.4, size=(600, 4)), 5).astype(str), np.arange(600) % 2
    clf = bg.CategoricalNB().fit(table[:300], y[:300])
    new = held_out(clf, table[300:], y[300:])
    times = np.unique(table[:300], axis=0, return_counts=True)[1]
    trained = {tuple(row) for row in table[:300].tolist()}
    equal = np.mean([tuple(row) in trained for row in table[300:].tolist()])
    assert (times == 1).mean() > 0.4
    assert equal > 1 - len(times) / 300  # above the share of rows that repeat an earlier one
    assert new.n_seen == 0
    assert held_out(clf, table, y).n_seen > 300  # all training rows are among these


@pytest.mark.parametrize("index", [None, [f"id{i}" for i in range(40)]])
def test_unknown_categories_are_named_by_their_row(clf, index):
    some = X[:40].reset_index(drop=True)
    some.loc[17:, "island"] = "Elsewhere"
    some.index = some.index if index is None else index
    page = bg.report(clf, some, Y[:40].to_numpy(), max_rows=30).to_json()
    named = int(re.search(r"the first 'Elsewhere' in row (?:id)?(\d+)", page)[1])
    assert 17 <= named < 40
    assert (index is None) == ("in row id" not in page)
