"""README and documentation do what they say: examples print what is shown, links lead somewhere."""

import ast
import doctest
import importlib
import inspect
import os
import pkgutil
import posixpath
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import bayesgen as bg
from bayesgen.estimators.sampled import SampledClassifier
from tests.selection import rest_is_slow

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
MADE = {"pictures", "stories", "generated", "_build"}  # by `make docs`
PAGES = [README, *(p for p in sorted(DOCS.rglob("*.md")) if not MADE & {*p.parts})]
PYMC, FAMILY = DOCS / "how_to" / "pymc_arviz.md", DOCS / "how_to" / "own_family.md"
SLOW = re.compile(r"<!-- slow.*?-->\n```python\n(.*?)```\n<!-- /slow -->", re.S)


@pytest.fixture(autouse=True, scope="module")
def stated_priors():
    """Fits choose their prior, as they do for users."""


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


FAMILIES = tomllib.loads(read(DOCS / "families.toml"))


def blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", text, re.S | re.M)


def examples(text: str, names: dict | None = None) -> doctest.DocTest:
    return doctest.DocTestParser().get_doctest(text, names or {}, "page", None, 0)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_lines_of_code_fit_the_page(page):
    lines = [line for block in blocks(read(page)) for line in block.splitlines()]
    assert [line for line in lines if line.startswith((">>>", "...")) and len(line) > 110] == []


LONG = {"new_population", "calibration", "report", "other_models"}  # simulations, reports, NUTS


@pytest.mark.parametrize(
    "page",
    rest_is_slow(PAGES, [page for page in PAGES if page.stem not in LONG]),
    ids=lambda page: page.stem,
)
def test_examples_print_what_is_shown(page):
    code = "\n".join(b for b in blocks(SLOW.sub("", read(page))) if ">>>" in b)
    outcome = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples(code))
    assert outcome.failed == 0


def names_after(lines: list[doctest.Example]) -> dict:
    names: dict = {}
    for line in lines:
        exec(line.source, names)
    return names


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_sampled_examples_show_numbers_within_monte_carlo_error():
    """Chains differ between machines: what is shown is one such run, to its error."""
    block, *_ = SLOW.findall(read(PYMC))
    *before, table, verdict = examples(block).examples
    names = names_after([*examples(blocks(read(PYMC))[0]).examples, *before])
    again = eval(table.source, names)
    shown = np.array([re.findall(r"-?\d+\.\d+", line) for line in table.want.splitlines()[2:]])
    assert shown.shape == again.shape == (9, 4)
    spread = again.to_numpy()[:, [1, 1, 3, 3]]
    gap = np.abs(shown.astype(float) - again.to_numpy())
    assert np.all(gap <= 0.15 * spread + 0.011)
    assert repr(eval(verdict.source, names)) == verdict.want.strip() == "'agree'"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto")  # of the Normal: no fit
@pytest.mark.parametrize("page", [PYMC, FAMILY], ids=lambda page: page.stem)
def test_priors_and_families_of_ones_own_print_what_is_shown(page):
    code = "\n".join(b for b in blocks(read(page)) if ">>>" in b)
    names: dict = {}
    if page is PYMC:
        _, code = SLOW.findall(read(page))
        before = blocks(SLOW.sub("", read(page).partition("### My own prior")[0]))
        names = names_after(examples("\n".join(before)).examples)
    assert doctest.DocTestRunner().run(examples(code, names)).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", read(page), flags=re.S)):
        path, _, heading = target.partition("#")
        assert "://" not in path, f"{target}: relative, so that it works in a clone"
        path = (page.parent / path).resolve()
        assert is_page(path), target
        if heading:
            titles = re.findall(r"^#+ (.*)", read(path.with_suffix(".md")), re.M)
            assert heading in {title.lower().replace(" ", "-") for title in titles}, target


def is_page(path: Path) -> bool:
    """A file, a page without its suffix, or one that `make docs` makes."""
    if path.exists():
        return True
    inside = path.relative_to(DOCS).parts if path.is_relative_to(DOCS) else ()
    if inside[:1] == ("pictures",):
        of = {p.relative_to(DOCS / "gallery").with_suffix("").parts for p in GALLERY}
        return inside[1:] in {("index",), ("arviz", "index"), *of}
    if inside[:1] == ("families",) and inside[1:] != ("index",):
        return path.stem in FAMILIES
    if inside[:1] == ("stories",) and inside[1:] != ("index",):
        return (ROOT / "notebooks" / f"{path.stem}.ipynb").exists()
    return any(path.with_name(path.name + suffix).exists() for suffix in (".md", ".rst"))


HOW_TO = sorted({*(DOCS / "how_to").glob("*.md")} - {DOCS / "how_to" / "index.md"})


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_terms_that_readers_search_stand_under_the_title_of_a_page(page):
    title, _, synonyms, *_ = read(page).split("\n")
    assert title.startswith("# ")
    assert len(re.fullmatch(r"\*Also called: (.*)\.\*", synonyms)[1].split(", ")) >= 3


def test_how_to_pages_are_at_most_sixteen():
    listed = re.findall(r"^(\w+)$", read(DOCS / "how_to" / "index.md"), re.M)
    assert sorted(listed) == [page.stem for page in HOW_TO]
    assert len(listed) <= 16


CALLS = re.findall(r"`((?:bg|clf)\.\w.*?)`", read(DOCS / "how_to" / "coming_from.md"))


@pytest.mark.parametrize("call", sorted({*CALLS}))
def test_a_call_for_whoever_comes_from_another_package_exists(call):
    """Names and arguments are those of the package; what a name stands for is not run."""
    for node in ast.walk(ast.parse(call.replace("...", ""))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = {"bg": bg, "clf": bg.GenerativeClassifier}[node.value.id]
            assert hasattr(owner, node.attr)
        if isinstance(node, ast.Call):
            function = eval(ast.unparse(node.func), {"bg": bg, "clf": bg.GenerativeClassifier})
            values = [None] * (ast.unparse(node.func).startswith("clf.") + len(node.args))
            inspect.signature(function).bind(*values, **{k.arg: None for k in node.keywords})


GALLERY = sorted((DOCS / "gallery").rglob("plot_*.py"))


def test_pages_stay_short():
    """The README, the benchmarks, and the ten files of the package to read first."""
    prose = re.sub(r"```.*?```|<!--.*?-->|\]\(.*?\)|^\|.*?$", "", read(README), flags=re.S | re.M)
    assert len(re.findall(r"\S*\w\S*", prose)) <= 400
    pages = "".join(read(page) for page in (DOCS / "benchmarks").glob("*.md"))
    assert len(re.findall(r"\S*[A-Za-z]\S*", pages)) <= 5000
    names = re.findall(r"^\| \d+ \| `(.*?)`", read(DOCS / "architecture.md"), re.M)
    assert len(names) == 10
    assert sum(len(read(ROOT / "bayesgen" / name).splitlines()) for name in names) <= 3000


def test_every_public_name_has_a_page_of_the_reference():
    listed = re.findall(r"^   (\w+)$", read(DOCS / "api" / "index.rst"), re.M)
    assert sorted(listed) == sorted(bg.__all__)


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("method_tables")


@pytest.fixture
def family_pages(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("family_pages")


PUBLIC = sorted(n for n in bg.__all__ if not inspect.ismodule(getattr(bg, n)))
CLASSIFIERS = [n for n in PUBLIC if hasattr(getattr(bg, n), "predict_proba")]


@pytest.mark.parametrize("name", PUBLIC)
def test_the_reference_of_a_public_name_has_real_signatures(tables, name):
    """Of the name and its methods: arguments by name, with what is passed on documented."""
    owner = getattr(bg, name)
    entries = {name: owner}
    if inspect.isclass(owner):
        entries |= {m: getattr(owner, m) for m in tables.public_methods(owner)}
    for entry, function in entries.items():
        assert inspect.getdoc(function), entry
        for parameter in inspect.signature(function).parameters.values():
            assert parameter.kind != parameter.VAR_POSITIONAL, entry
            if parameter.kind == parameter.VAR_KEYWORD:
                assert f"**{parameter.name}" in inspect.getdoc(function), entry
            assert " at 0x" not in repr(parameter.default), entry


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_method_that_a_classifier_has_answers_a_question(tables, name):
    cls = getattr(bg, name)
    names = " ".join(tables.QUESTIONS.values()).split()
    assert len(names) == len({*names})
    assert tables.public_methods(cls) <= {*names}
    listed = set(re.findall(r"\.(\w+)`", tables.TABLES[name]))
    assert tables.public_methods(cls) & listed == {
        m for m in tables.public_methods(cls) if hasattr(cls(), m)
    }


def test_every_classifier_has_a_page_and_a_picture():
    assert FAMILIES.keys() == {*CLASSIFIERS} - {"GenerativeClassifier"}
    assert f"[{len(FAMILIES)} classifiers]" in read(README)
    pictures = set(re.findall(r"^def _(\w+)\(\):", read(DOCS / "family_pictures.py"), re.M))
    assert FAMILIES.keys() <= pictures
    for entry in FAMILIES.values():
        assert entry.keys() >= {"for", "when", "not_when", "data", "model", "prior", "text"}
        assert entry.keys() >= {"caption", "references"}


@pytest.fixture
def page(family_pages):
    return lambda name: family_pages.page(name, family_pages.entries()[name])


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_the_example_of_a_family_page_runs(family_pages, name):
    """Sampled ones up to their fit, which takes half a minute each."""
    *before, fit, predict = family_pages.code(name, family_pages.entries()[name]).splitlines()
    names: dict = {}
    exec("\n".join(before), names)
    assert names["X"].shape[0] == len(names["y"])
    if not issubclass(getattr(bg, name), SampledClassifier):
        exec(fit, names)
        np.testing.assert_allclose(eval(predict, names).sum(axis=1), 1)


@pytest.mark.slow  # imports all of these projects
def test_names_of_other_projects_exist_and_are_linked(tables, tmp_path):
    from inventories import KNOWN, link, write_inventories
    from sphinx.util.inventory import InventoryFile

    found = set()
    for url, path in write_inventories(tmp_path).values():
        with open(path, "rb") as file:
            found |= {
                n for names in InventoryFile.load(file, url, posixpath.join).values() for n in names
            }
    assert found == set(KNOWN)
    for name in KNOWN:
        pkgutil.resolve_name(name)
    lines = ["X : xarray.Dataset, optional", ">>> pymc.Model", "`pymc.sample`, xarray.Datasets"]
    others = lines[1:]
    link(lines)
    assert lines == ["X : :obj:`xarray.Dataset`, optional", *others]


def test_a_family_page_has_its_pymc_graph_in_words(page):
    words = page("GaussianNB").partition("PyMC graph")[2]
    for sentence in (
        "pi is Dirichlet, over class.",
        "label is Categorical given pi, over obs_id, observed.",
        "mu is Normal given sigma2, over class × feature.",
        "x is Normal given label, mu, sigma2, over obs_id × feature, observed.",
    ):
        assert sentence in words


def test_a_family_page_promises_no_route_that_the_classifier_refuses(page):
    averages = "TreeAugmentedNB", "MetaTreeForest"  # they refuse sample_posterior
    assert not any("sample_posterior" in page(name) for name in averages)
    assert r"p(x \mid \theta" not in page("BayesianLogisticRegression")  # it has no density of x


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_every_family_page_has_a_graph_that_can_be_drawn(page, name):
    import matplotlib.pyplot as plt
    from family_graphs import draw

    words = page(name).partition("PyMC graph")[2]
    draw(name)
    drawn = {text.get_text() for text in plt.gca().texts}
    plt.close("all")
    assert "label" in drawn
    assert set(re.findall(r"(?:: |\. )(\w+) is ", words)) <= drawn


def test_every_plot_is_in_the_gallery():
    scripts = "".join(read(path) for path in GALLERY)
    assert set(re.findall(r"plots\.(plot_\w+)", scripts)) == set(bg.plots.__all__)


def test_the_table_of_the_seeds_has_no_dead_names():
    rows = [line.split("|")[1:-1] for line in read(DOCS / "seeds.md").splitlines() if "::" in line]
    assert len({d.strip() for row in rows for d in row[0].split(",")} - {"all"}) == 5
    for _, _, package, _, tests in rows:
        for name in re.findall(r"`([\w.]+)`", package):
            pkgutil.resolve_name(name)
        for path, test in re.findall(r"`([\w/.]+)::(\w+)`", tests):
            assert f"def {test}(" in read(ROOT / path), test


def test_the_family_of_the_page_is_a_classifier(tmp_path):
    """Its evidence is the product of predictives; a file holds it."""
    source = str(FAMILY.with_name("gamma_exponential.py"))
    family = runpy.run_path(source, run_name="family_of_the_page")["GammaExponential"]
    y = np.repeat([0, 1], 30)
    X = np.random.default_rng(2).exponential(np.where(y == 0, 5.0, 0.5)[:, None], (60, 2))
    X[0, 1] = np.nan
    clf = bg.GenerativeClassifier(family(), prior="empirical").fit(X, y)
    assert clf.score(X, y) > 0.8
    clf.save(tmp_path / "waits.nc")
    again = bg.load(tmp_path / "waits.nc", family=family())
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert clf.posterior_["posterior"].dataset.lam.dims == ("chain", "draw", "class", "feature")
    prior = current = clf.prior_.family
    chain = 0.0
    for i in range(len(y)):
        chain += current.log_predictive(X[[i]])[0, y[i]]
        current = current.update(prior.stats(X[[i]], y[[i]], 2))
    assert chain == pytest.approx(prior.log_evidence(prior.stats(X, y, 2)), rel=1e-12)


@pytest.mark.slow
def test_the_demo_prints_what_is_shown():
    (shown,) = re.findall(r"<!-- demo.*?```text\n(.*?)```", read(README), re.S)
    run = subprocess.run(
        [sys.executable, "-m", "bayesgen", "demo"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "80", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"},
    )
    printed = "\n".join(line.rstrip() for line in run.stdout.strip("\n").splitlines())
    assert printed.strip().startswith(shown.strip())
