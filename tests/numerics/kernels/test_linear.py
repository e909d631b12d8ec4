import numpy as np

import bayesgen as bg
from bayesgen.numerics import kernels


def test_a_plug_in_with_missing_cells_is_one_answer(monkeypatch):
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((200, 4)), rng.integers(0, 3, 200)
    clf = bg.LinearDiscriminant().fit(X, y)
    X[::7, 2] = np.nan
    expected = clf.predict_proba(X, method="posterior_mean")
    monkeypatch.setattr(kernels, "COMPILE_FROM", 0)
    np.testing.assert_allclose(clf.predict_proba(X, method="posterior_mean"), expected, rtol=1e-10)
