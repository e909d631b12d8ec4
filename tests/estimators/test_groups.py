"""Rows that belong together: groups given to fit, and exact copies."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax
from sklearn.metrics import log_loss

import bayesgen as bg
from bayesgen.encoding.suspects import CopiedRowsWarning, copied_rows

RNG = np.random.default_rng(1)


def rows(n, rng=RNG, share=0.5):
    y = (rng.random(n) < share).astype(int)
    X = rng.normal(size=(n, 4))
    X[:, 0] += y
    return X, y


def subjects(n=40, per=5, sd=0.1):
    X, y = rows(n)
    return np.repeat(X, per, 0) + sd * RNG.normal(size=(n * per, 4)), np.repeat(y, per)


SUBJECTS = np.repeat([f"s{k}" for k in range(40)], 5)


def test_a_fit_with_groups_leaves_out_whole_groups():
    """What is left of a fit without them: tests/laws/test_leave_one_out."""
    X, y = subjects()
    clf = bg.GaussianNB(prior="default").fit(X, y, groups=SUBJECTS)
    joint = clf.loo_log_joint(X, y)
    alone = bg.GaussianNB(prior="default").fit(X, y)
    np.testing.assert_allclose(joint, alone.loo_log_joint(X, y, groups=SUBJECTS), rtol=1e-12)
    assert np.abs(joint - alone.loo_log_joint(X, y)).max() > 0.1
    assert clf.loo(X, y).n_groups == 40
    assert f"{-log_softmax(joint, axis=1)[np.arange(200), y].mean():.3f} nats" in str(clf.summary())


@pytest.mark.parametrize(
    "make",
    [
        lambda: bg.GaussianNB(prior="loo"),
        lambda: bg.MetaTreeForest(20),
        lambda: bg.LogLinearPool([bg.LinearDiscriminant(), bg.MetaTreeForest(20)]),
    ],
    ids=["loo", "trees", "pool"],
)
def test_a_fit_with_groups_does_not_believe_its_near_copies(make):
    X, y = subjects()
    T, u = rows(2000, np.random.default_rng(2))
    alone, together = make().fit(X, y), make().fit(X, y, groups=SUBJECTS)
    losses = [log_loss(u, clf.predict_proba(T)) for clf in (alone, together)]
    assert losses[1] < losses[0]
    assert losses[1] < 0.75
    labels = pd.Series(SUBJECTS).astype("category")
    np.testing.assert_array_equal(
        make().fit(X, y, groups=labels).predict_proba(T[:9]), together.predict_proba(T[:9])
    )


def test_a_copied_minority_changes_a_pool_by_nothing_but_the_warning():
    X, y = rows(150, share=0.15)
    at = np.r_[np.arange(150), np.repeat(np.flatnonzero(y), 4)]
    pool = [bg.GaussianNB(), bg.LinearDiscriminant()]
    plain = bg.LogLinearPool(pool).fit(X, y)
    with pytest.warns(CopiedRowsWarning, match=r"% of the rows are exact copies") as caught:
        copied = bg.LogLinearPool(pool).fit(X[at], y[at])
    assert len(caught) == 1
    T, u = rows(1000, np.random.default_rng(2), 0.15)
    plain_loss, copied_loss = (log_loss(u, clf.predict_proba(T)) for clf in (plain, copied))
    assert copied_loss == pytest.approx(plain_loss, rel=0.05)
    told = [float(str(c.summary()).split("row: ")[1].split()[0]) for c in (plain, copied)]
    assert told[1] == pytest.approx(told[0], rel=0.1)


def test_only_tables_whose_rows_are_mostly_distinct_have_copies():
    X, y = rows(60)
    twice, labels = np.r_[X, X[:10]], np.r_[y, y[:10]]
    frame = pd.DataFrame(twice, index=np.arange(70) * 2)
    for table in (twice, frame, twice.astype(">f8"), frame.astype(">f8")):
        with pytest.warns(CopiedRowsWarning, match=r"^29% of the rows"):
            codes = copied_rows(table, labels, "")
        np.testing.assert_array_equal(codes[:10], codes[60:])
        assert len(np.unique(codes)) == 60
    assert copied_rows(twice, np.r_[y, 1 - y[:10]], "") is None  # another label is another row
    assert copied_rows(X, y, "") is None
    zeros = np.where(np.arange(60)[:, None] < 6, 0, X)  # columns that are 0 together
    assert copied_rows(zeros, np.where(np.arange(60) < 6, 1, y), "") is None
    assert copied_rows(np.round(X[:, :1]), y, "") is None
    halves = np.random.default_rng(0).integers(0, 6, (60, 2)) / 2
    assert copied_rows(halves, y, "") is None
    words = pd.DataFrame({"a": list("xyz") * 20, "b": list("uv") * 30})
    assert copied_rows(words, y, "") is None
