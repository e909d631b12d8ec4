"""`make bench` on a few rows: what it counts, compares and writes. Nothing here is timed."""

import json
import re
import time
from pathlib import Path

import numpy as np
import pytest

from bayesgen.estimators import ESTIMATORS
from bayesgen.estimators.sampled import SampledClassifier
from tests.benchmarks import (
    measure,
    sampled,
    speed,
    tables,
    typicality,
    variants,
)


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
    assert all(row["ratio"] > 0 for row in record["workloads"])
    assert record["surroundings"]["versions"].keys() >= {"scikit-learn", "numpy", "numba"}
    assert "GaussianNB fit" in capsys.readouterr().out
    assert "| GaussianNB fit, 1e6 x 20, C 5 |" in tables.page(record)


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


def test_the_kept_figures_are_those_of_the_page():
    text = (tables.PAGES / "labels.md").read_text(encoding="utf-8")
    auroc = json.loads(typicality.KEPT.read_text(encoding="utf-8"))["auroc"]
    kinds = ("LogLinearPool", *reversed(typicality.KINDS))
    methods = [*(f"{kind}, overall" for kind in kinds), "IsolationForest"]
    means = (np.mean([np.mean(row[method]) for row in auroc.values()]) for method in methods)
    cells = " | ".join(f"{mean:.3f}".lstrip("0") for mean in means)
    assert f"| `typicality`, overall | {cells} |" in text
