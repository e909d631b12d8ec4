"""`make bench` on a few rows: what it counts, compares and writes. Nothing here is timed."""

import importlib
import re
import time
from pathlib import Path

import pytest

from bayesgen.estimators import ESTIMATORS
from bayesgen.estimators.sampled import SampledClassifier
from bayesgen.inference.nuts import Diagnosis
from tests.benchmarks import measure, run, sampled, sets, speed, variants


@pytest.mark.slow
def test_a_run_on_few_rows_writes_a_record(tmp_path, capsys):
    path = tmp_path / "speed.jsonl"
    arguments = ["--scale", "0.0005", "--no-memory", "--record", str(path)]
    only = ["--only", "^(GaussianNB|CategoricalNB).(fit|predict).1e6"]
    assert speed.main(["large", *arguments, *only]) == 0
    record = run.Record(path)
    assert len(record.values) == 5
    assert all(row["ratio"] > 0 for name, row in record.values.items() if "|" in name)
    assert record.values[run.SURROUNDINGS]["versions"].keys() >= {"scikit-learn", "numpy", "numba"}
    assert "| GaussianNB fit, 1e6 x 20, C 5 |" in capsys.readouterr().out


def test_workloads_of_a_list_have_different_names():
    for works in (speed.LISTS[table]() for table in speed.LISTS):
        assert len({speed.name_of(work) for work in works}) == len(works)


def test_seconds_keep_the_result_until_the_clock_has_stopped():
    class Slow:
        def __del__(self):
            time.sleep(0.2)

    assert measure.clocks(Slow)[0] < 0.15


# ------------------------------------------------------------------------------ sampled classifiers


def test_every_sampled_classifier_is_measured_and_has_a_rival():
    every = {e.__name__ for e in ESTIMATORS if issubclass(e, SampledClassifier)}
    measured = [type(case.make()).__name__ for case in sampled.cases()]
    assert {*measured} == every
    assert len({(case.name, case.data) for case in sampled.cases()}) == len(measured)
    rivals = {
        type(case.variant()).__name__
        for case in variants.cases(run.parser("", "any").parse_args([]))
    }
    if sets.FOLDER.exists():
        assert rivals | {"BayesianLogisticRegression"} == every


def test_the_worst_of_the_fits_is_kept():
    fit = Diagnosis(0, 1.003, "mu", 800.0, "mu", 4)
    worse = fit._replace(divergences=2, ess=500.0, r_hat=1.008)
    worst = sampled.worst([2.0, 4.0], [fit, worse])
    assert worst == {"seconds": 3, "ess": 500, "rate": 262.5, "r_hat": 1.008, "divergences": 2}


# -------------------------------------------------------------------------------- records and pages

COMMANDS = Path(run.__file__).parent


def test_a_run_goes_on_where_it_was_killed_and_measures_what_is_asked_for(tmp_path):
    path, calls = tmp_path / "kept.jsonl", []

    def results(**options):
        record = run.Record(path, **options)
        for key in ("a|1", "a|2", "b|1"):
            record.measure(key, lambda key=key: calls.append(key) or [len(calls)])
        return record.frame("name number", "value")["value"].to_dict()

    assert results(only="a") == {("a", "1"): 1, ("a", "2"): 2}
    assert results()["b", "1"] == 3
    assert results(again="2$")["a", "2"] == 4
    assert calls == ["a|1", "a|2", "b|1", "a|2"]


def test_a_result_that_fails_is_reported_and_the_others_are_measured(tmp_path, capsys):
    record = run.Record(tmp_path / "kept.jsonl")
    record.measure("no", lambda: 1 / 0)
    record.measure("yes", lambda: 1)
    assert (record.failed, record.values["yes"]) == (1, 1)
    assert "no: ZeroDivisionError" in capsys.readouterr().err
    assert "no" not in run.Record(record.path).values


def test_each_table_between_markers_is_written_by_the_command_that_it_names(tmp_path):
    for page in run.PAGES.glob("*.md"):
        (tmp_path / page.name).write_bytes(page.read_bytes())
        text = page.read_text(encoding="utf-8")
        for marker, command in re.findall(
            r"<!-- ([\w-]+): written by (\w+)[ \w]* --update -->", text
        ):
            assert f'"{marker}": ' in (COMMANDS / f"{command}.py").read_text(encoding="utf-8")
            run.write_between(marker, f"table of {marker}", tmp_path)
            written = (tmp_path / page.name).read_text(encoding="utf-8")
            assert f"-->\ntable of {marker}\n<!-- /{marker} -->" in written


@pytest.mark.parametrize("path", sorted(COMMANDS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_the_page_has_the_figures_of_the_record(path):
    name, _, of_speed = path.stem.partition("speed_")
    tables = importlib.import_module(f"tests.benchmarks.{name or 'speed'}").TABLES
    pages = "".join(page.read_text(encoding="utf-8") for page in run.PAGES.glob("*.md"))
    for marker, table in (tables[of_speed] if of_speed else tables).items():
        if marker:
            assert table(run.Record(path)) in pages


def test_every_command_that_a_page_names_is_there():
    root = run.ROOT
    pages = [root / "README.md", root / "CONTRIBUTING.md", root / "CHANGELOG.md"]
    for folder in ("docs", "notebooks", "bayesgen"):
        pages += [p for p in (root / folder).rglob("*") if p.suffix in (".md", ".ipynb", ".py")]
    named = set()
    for page in pages:
        text = page.read_text(encoding="utf-8")
        named |= set(re.findall(r"tests[./]benchmarks[./](\w+)", text))
    assert {"unseen_sets", "sampled"} < named
    there = {path.stem for path in COMMANDS.iterdir()} | {"NAME"}
    assert named <= there
