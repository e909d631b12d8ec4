"""`make bench` on a few rows: what it counts, compares and writes. Nothing here is timed."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bayesgen.estimators import ESTIMATORS
from bayesgen.estimators.sampled import SampledClassifier
from bayesgen.numerics import kernels
from tests.benchmarks import (
    growth,
    label_errors,
    learning_curves,
    measure,
    real_sets,
    sampled,
    speed,
    tables,
    typicality,
    variants,
)


@pytest.mark.slow
def test_calls_alternate_and_the_first_of_each_is_reported_apart():
    calls = []
    found = measure.in_turn(lambda: calls.append("peer"), lambda: calls.append("ours"), budget=1e-9)
    assert calls == ["peer", "ours"] * (len(calls) // 2)
    assert len(calls) == 2 * (found["runs"] + 1)
    assert found["peer_processor_s"] >= 0
    assert found["runs"] >= 5
    assert found["ratio"] == found["peer_s"] / found["ours_s"]


def test_exponent_and_its_error_are_those_of_ordinary_least_squares():
    from scipy.stats import linregress

    sizes = np.array([10, 20, 40, 80, 160])
    times = sizes**1.5 * np.array([1.1, 0.9, 1.05, 1.0, 0.97])
    line = linregress(np.log(sizes), np.log(times))
    b, se = growth.exponent(sizes, times)
    assert b == pytest.approx(line.slope, rel=1e-12)
    assert se == pytest.approx(line.stderr, rel=1e-10)


def test_growth_covers_every_size_of_every_classifier():
    cases = list(growth.cases())
    assert {(c[0], c[1]) for c in cases} >= {("QDA", "fit"), ("QDA", "predict"), ("LDA", "draws")}
    for _, _, varying, sizes in cases:
        assert len({size[varying] for size in sizes}) >= 5


def test_disagreement_compares_the_compiled_form_with_numpys():
    def check(X, y):
        return [X + 1e-6 * kernels.pays(1) * X]

    X = np.array([[1.0, 2.0], [3.0, 4.0]])
    before = kernels.COMPILE_FROM
    assert measure.disagreement(check, X, None) == pytest.approx(1e-6)
    assert before == kernels.COMPILE_FROM


@pytest.mark.skipif(not measure.STATUS.exists(), reason="the kernel's mark is Linux's")
@pytest.mark.slow
def test_peak_memory_is_what_a_call_needs_beside_its_result():
    code = (
        "import json, numpy as np; from tests.benchmarks.measure import _peak\n"
        "def call():\n"
        "    scratch = np.ones(48 << 17)\n"  # 48 MiB, beside a result of 16
        "    return np.full(16 << 17, scratch[0])\n"
        "print(json.dumps(_peak(call)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=measure.ROOT, capture_output=True, text=True, check=True,
        env=os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"},
    )  # fmt: skip
    found = json.loads(run.stdout)
    assert found["out"] == 16 << 20
    assert found["above"] / (1 << 20) == pytest.approx(48, abs=4)


def test_a_table_is_written_where_its_markers_are(tmp_path):
    for page in tables.PAGES.glob("*.md"):
        (tmp_path / page.name).write_bytes(page.read_bytes())
    scripts = Path(tables.__file__).parent.glob("*.py")
    scripts = "".join(path.read_text(encoding="utf-8") for path in scripts)
    markers = set(re.findall(r"write_between\(\"([\w-]+)\"", scripts))
    assert {"few-rows", "speed"} < markers
    for marker in markers:
        tables.write_between(marker, f"table of {marker}", tmp_path)
    written = "".join(page.read_text(encoding="utf-8") for page in tmp_path.iterdir())
    for marker in markers:
        assert f"-->\ntable of {marker}\n<!-- /{marker} -->" in written
    with pytest.raises(SystemExit, match="0 pages"):
        tables.write_between("elsewhere", "", tmp_path)


@pytest.mark.slow
def test_a_run_on_few_rows_writes_a_record(tmp_path, capsys):
    path = tmp_path / "speed.json"
    arguments = ["--scale", "0.0005", "--no-memory", "--record", str(path)]
    assert speed.main([*arguments, "--only", "^(GaussianNB|CategoricalNB) (fit|predict),"]) == 0
    record = json.loads(path.read_text())
    assert len(record["workloads"]) == 4
    assert all(
        row["ratio"] > 0 and row.get("disagreement", 0) <= 1e-12 for row in record["workloads"]
    )
    assert record["surroundings"]["versions"].keys() >= {"scikit-learn", "numpy", "numba"}
    assert "GaussianNB fit" in capsys.readouterr().out
    assert "| GaussianNB fit, 1e6 x 20, C 5 |" in tables.page(record)


def test_profile_names_the_functions(capsys):
    assert speed.main(["--profile", "GaussianNB predict", "--scale", "0.0005"]) == 0
    assert "log_predictive" in capsys.readouterr().out


def test_seconds_keep_the_result_until_the_clock_has_stopped():
    class Slow:
        def __del__(self):
            time.sleep(0.2)

    assert measure.seconds(Slow) < 0.15


# ------------------------------------------------------------------------------ sampled classifiers


def test_every_sampled_classifier_is_measured_and_has_a_rival():
    every = {e.__name__ for e in ESTIMATORS if issubclass(e, SampledClassifier)}
    measured = {type(case.make()).__name__ for case in sampled.cases()}
    assert measured == every
    labels = [case.label for case in sampled.cases()]
    assert len(set(labels)) == len(labels)
    rivals = {type(case.variant()).__name__ for case in variants.cases()}
    if variants.SHARED.exists():
        assert rivals | {"BayesianLogisticRegression"} == every


def test_the_worst_of_the_fits_is_shown_and_rows_measured_anew_replace_the_old():
    fit = {"seed": 0, "wall_s": 3.0, "processor_s": 2.0, "steps": 7.0, "draws": 4000, "ess": 800.0}
    fit |= {"ess_of": "mu", "r_hat": 1.003, "divergences": 0}
    worse = fit | {"processor_s": 4.0, "ess": 500.0, "r_hat": 1.008}
    row = {"classifier": "A", "data": "B", "rows": 9, "features": 2, "classes": 3}
    row |= {"compile_s": 11.0, "fits": [fit, worse]}
    cells = dict(zip(sampled.HEAD, sampled.cells(row), strict=True))
    assert (cells["sample s"], cells["ESS"], cells["R-hat"]) == ("3", "500", "1.008")
    assert cells["ESS/s"] == "262"  # the mean of 400 and 125
    assert sampled.sound(row)
    for change in ({"divergences": 1}, {"r_hat": 1.02}, {"ess": 399.0}):
        assert not sampled.sound(row | {"fits": [fit, worse | change]})
    other = row | {"classifier": "C"}
    assert sampled.merged([row, other], [row | {"rows": 10}]) == [other, row | {"rows": 10}]


def test_variants_are_held_to_rows_that_did_not_train_them():
    y = np.repeat([0, 1], 15)
    many, few = (variants.Case("", dict, dict, np.zeros((30, 1)), y, n) for n in (None, 4))
    held = np.array(list(many.splits()))
    assert held.shape == (3, 30)
    assert (held.sum(axis=0) == 1).all()
    for test in few.splits():
        assert (np.bincount(y[~test]) == 4).all()


def test_a_learning_curve_is_won_where_the_interval_leaves_out_zero():
    from scipy.stats import ttest_1samp

    gap = np.random.default_rng(0).normal(-0.02, 0.03, 12)
    mean, half = learning_curves.interval(gap)
    low, high = ttest_1samp(gap, 0).confidence_interval()
    assert (mean - half, mean + half) == pytest.approx((low, high))
    assert learning_curves.winner(-0.02, 0.01) == "generative"
    assert learning_curves.winner(0.02, 0.01) == "discriminative"
    assert learning_curves.winner(0.02, 0.03) == ""


def test_flipped_labels_are_others_and_precision_is_theirs():
    y = np.arange(200) % 3
    p = np.eye(3)[y] * 0.7 + 0.1
    rng = np.random.default_rng(0)
    for changed, chosen in (
        label_errors.flipped(y, 0.05, rng),
        label_errors.flipped_near(y, p, 0.05, rng),
    ):
        assert len(chosen) == 10
        np.testing.assert_array_equal(np.flatnonzero(changed != y), np.sort(chosen))
        wrong = changed != y
        assert label_errors.precision(wrong * 0.9, wrong) == 1
        assert label_errors.precision(np.where(wrong, 0.1, 0.9), wrong) == 0
        assert label_errors.log_loss(np.where(wrong, 0.9, 0.1), wrong) == pytest.approx(
            -np.log(0.9)
        )


def test_sets_are_counted_and_splits_are_of_every_class():
    included = np.array([[True, False], [True, True], [False, False], [False, True]])
    found = typicality.summary(included, np.array([0, 1, 0, 0]))
    assert found == {"coverage": 0.5, "size": 1.0, "empty": 0.25}
    _, y = real_sets.SETS["iris"]()
    train, test = real_sets.split(y, 0)
    assert np.bincount(y[train]).tolist() == [33, 33, 33]
    assert np.sort(np.concatenate([train, test])).tolist() == list(range(150))


def test_the_kept_figures_are_those_of_the_page():
    text = (tables.PAGES / "labels.md").read_text(encoding="utf-8")
    text = " ".join(text.split())
    auroc = json.loads(typicality.KEPT.read_text(encoding="utf-8"))["auroc"]

    def mean(method):
        return f"{np.mean([np.mean(row[method]) for row in auroc.values()]):.3f}".lstrip("0")

    kinds = (f"`{kind}` {mean(f'{kind}, overall')}" for kind in reversed(typicality.KINDS))
    assert ", of ".join(kinds) in text
    assert f"IsolationForest {mean('IsolationForest')}" in text
