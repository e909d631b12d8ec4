"""What a type checker tells a user: the types of results, and mistakes seen before anything runs.

The script below is checked as a user's file would be, against the installed package. mypy and
pyright (by way of basedpyright, which brings what it runs on) must agree.
"""

import json
import os
import re
import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest

import bayesgen as bg

ROOT = Path(__file__).parents[1]

SET_UP = """
from typing import assert_type

import numpy as np
import xarray as xr

import bayesgen as bg
from bayesgen.datatree.result_table import ResultTable
from bayesgen.families import Family, NormalInverseGamma

X, y = np.zeros((4, 2)), ["a", "a", "b", "b"]
clf = bg.GaussianNB().fit(X, y)
"""

# expression: its type
TYPES = {
    "clf": "bg.GaussianNB",
    "clf.partial_fit(X, y)": "bg.GaussianNB",
    "clf.forget(X, y).merge(clf)": "bg.GaussianNB",
    "bg.MixedNB().fit(X, y)": "bg.MixedNB",
    "bg.StudentTNB(chains=2).fit(X, y)": "bg.StudentTNB",
    "bg.fit_stream(bg.PoissonNB(), [])": "bg.PoissonNB",
    "bg.fit_dask(bg.MarkovNB(), X, y)": "bg.MarkovNB",
    "bg.load('model.nc')": "bg.GenerativeClassifier",
    "clf.classes_": "np.ndarray",
    "clf.predict(X)": "np.ndarray",
    "clf.predict_proba(X, method='map')": "np.ndarray",
    "clf.predict_log_proba(X)": "np.ndarray",
    "clf.predict_joint_log_proba(X)": "np.ndarray",
    "clf.decision_function(X)": "np.ndarray",
    "clf.score_samples(X)": "np.ndarray",
    "clf.linear_form().w": "np.ndarray",
    "clf.simulate(3)[1]": "np.ndarray",
    "clf.log_evidence_": "float",
    "clf.posterior_": "xr.DataTree",
    "clf.draw_posterior(10)": "xr.DataTree",
    "clf.sample_posterior(10)": "xr.DataTree",
    "clf.posterior_groups(X, y)": "xr.DataTree",
    "clf.predict_posterior(X)": "xr.DataTree",
    "clf.predict_interval(X, prob=0.9, kind='hdi')": "ResultTable",
    "clf.predict_uncertainty(X, unit='bits')": "ResultTable",
    "clf.explain(X)": "xr.Dataset",
    "clf.save('model.nc')": "None",
    "bg.compare_models({'a': clf}, X, y).table": "xr.Dataset",
    "bg.compare_predictives(clf, X, y)": "ResultTable",
    "bg.label_errors(clf, X, y)": "ResultTable",
    "clf.typicality(X)": "xr.Dataset",
    "clf.predict_set(X)": "ResultTable",
    "bg.decide(clf, X, [[0, 1], [5, 0]])": "ResultTable",
    "bg.estimate_class_prior(clf, X)": "xr.DataTree",
    "bg.mutual_information(clf)": "xr.DataArray",
    "bg.validate(clf, X, y).passed": "bool",
    "bg.validate(clf, X, y).tree": "xr.DataTree",
    "bg.MutualInformationSelector().fit(X, y).scores_": "np.ndarray",
    "bg.datasets.POKEMON_STATS[0]": "str",
    "NormalInverseGamma(kappa=1.0)": "NormalInverseGamma",
    "bg.__version__": "str",
}

# fits without complaint
RIGHT = [
    f"from bayesgen import {', '.join(bg.__all__)}",
    "family: Family = NormalInverseGamma()",
    "general: bg.GenerativeClassifier = bg.GenerativeClassifier(family).fit(X, y)",
    "bg.plots.plot_regions(clf, X).set_title('regions')",
    "X_penguins, species = bg.datasets.load_penguins()",
]

# statement: what every complaint of it names
MISTAKES = {
    "bg.GausianNB()": "GausianNB",
    "bg.GaussianNB(kapa0=1)": "kapa0",
    "bg.GaussianNB(variance='clas')": "clas",
    "bg.StudentTNB(prior='empirical')": "prior",
    "bg.datasets.load_pengins()": "load_pengins",
    "bg.plots.plot_region(clf, X)": "plot_region",
    "clf.predict_prob(X)": "predict_prob",
    "clf.predict_proba(X, metho='map')": "metho",
    "clf.predict_proba(X, method='plugin')": "plugin",
    "clf.predict_interval(X, kind='hpd')": "hpd",
    "from bayesgen import GausianNB": "GausianNB",
    "from bayesgen.families import NormalInverseGama": "NormalInverseGama",
    "NormalInverseGamma(kapa=1.0)": "kapa",
}

# to mypy the classes of scikit-learn, which has no types, and theirs have every attribute, and a
# constructor that is made of fields has every argument
UNSEEN = {
    "mypy": ["bg.GaussianNB(kapa0=1)", "bg.StudentTNB(prior='empirical')", "clf.predict_prob(X)"],
    "pyright": [],
}

STATEMENTS = [
    *(f"assert_type({expression}, {type_})" for expression, type_ in TYPES.items()),
    *RIGHT,
    *MISTAKES,
]
SCRIPT = SET_UP + "\n".join(STATEMENTS) + "\n"


def mypy(script: Path) -> dict[int, str]:
    """{line: complaints}, by the settings of the package: what `make types` has cached serves."""
    command = [sys.executable, "-m", "mypy", str(script)]
    paths = {**os.environ, "MYPYPATH": str(ROOT)}
    answer = subprocess.run(command, env=paths, cwd=ROOT, capture_output=True, text=True)
    assert answer.returncode in (0, 1), answer.stdout + answer.stderr
    found: dict[int, str] = {}
    for line, words in re.findall(r"^[^:\n]+:(\d+): error: (.*)$", answer.stdout, re.MULTILINE):
        found[int(line)] = found.get(int(line), "") + words
    return found


def pyright(script: Path) -> dict[int, str]:
    """{line: complaints}."""
    settings = {"include": [str(script)], "extraPaths": [str(ROOT)], "typeCheckingMode": "standard"}
    project = script.with_name("pyrightconfig.json")
    project.write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--project", str(project)]
    command += ["--pythonpath", sys.executable]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.returncode in (0, 1), answer.stdout + answer.stderr
    found: dict[int, str] = {}
    for complaint in json.loads(answer.stdout)["generalDiagnostics"]:
        if complaint["severity"] == "error":
            line = complaint["range"]["start"]["line"] + 1
            found[line] = found.get(line, "") + complaint["message"]
    return found


def absent(module: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        util.find_spec(module) is None, reason=f"{module} is not installed: make env"
    )


@pytest.mark.parametrize(
    "checker",
    [pytest.param(pyright, marks=absent("basedpyright")), pytest.param(mypy, marks=absent("mypy"))],
)
@pytest.mark.slow  # ten seconds each; `make types` runs them
def test_a_users_script(checker, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    complaints = checker(script)
    lines = dict(enumerate(SCRIPT.splitlines(), start=1))
    unmeant = {lines[n]: words for n, words in complaints.items() if lines[n] not in MISTAKES}
    assert unmeant == {}
    said = {lines[n]: words for n, words in complaints.items()}
    unseen = [s for s, name in MISTAKES.items() if name not in said.get(s, "")]
    assert unseen == UNSEEN[checker.__name__]
