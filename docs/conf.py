"""Sphinx: how the site is built. `make docs`; no network, and warnings are errors."""

import inspect
import re
import shutil
import sys
import tomllib
import warnings
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx import addnodes

import bayesgen as bg

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE)]  # for the pages that are written before the build

from family_pages import write_family_pages
from inventories import link, write_inventories
from method_tables import REFUSED, TABLES

REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Source"]
project = "bayesgen"
author = "The bayesgen developers"
copyright = author
release = version = bg.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "matplotlib.sphinxext.plot_directive",
]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb", ".ipynb": "myst-nb"}
exclude_patterns = [
    "_build",
    "_templates",
    "gallery",
    "families/table.rst",
    "pictures/**.ipynb",
    "pictures/**.py",
]
templates_path = ["_templates"]
default_role = "py:obj"
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # the tests execute them; what is committed is shown
nb_merge_streams = True

autosummary_generate = True
autosummary_imported_members = True  # the modules of pictures and data import their functions
autosummary_context = {"tables": TABLES, "refused": REFUSED}
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # types stand in the docstrings
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

intersphinx_mapping = write_inventories(HERE / "_build" / "inventories")
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("svg", 100)]
plot_pre_code = "import matplotlib.pyplot as plt\nimport numpy as np\nimport bayesgen as bg\n"
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "pictures",
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "capture_repr": ("_repr_html_",),  # tables; axes and collections of plots have nothing to read
    "download_all_examples": False,
    "show_memory": False,
    "thumbnail_size": (840, 560),
    "show_signature": False,
    "min_reported_time": 1000,
    "within_subsection_order": "FileNameSortKey",
    "write_computation_times": False,
    "plot_gallery": "True",
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

html_theme = "pydata_sphinx_theme"
html_title = "bayesgen"
html_favicon = "_static/icon.svg"
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sphinx = False
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "tutorial": [], "architecture": [], "pictures/index": []}
html_theme_options = {
    "show_prev_next": False,
    # other pages have wide tables and code, or one heading
    "secondary_sidebar_items": {
        page: ["page-toc"] for page in ("how_to/*", "stories/*", "tutorial", "architecture")
    },
    "icon_links": [
        {"name": "Repository", "url": REPOSITORY, "icon": "fa-brands fa-github"},
        {"name": "Issues", "url": f"{REPOSITORY}/issues", "icon": "fa-regular fa-circle-dot"},
    ],
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
    "collapse_navigation": True,
    "show_nav_level": 1,
}
html_math_renderer = "mathml"


# ------------------------------------------------------------------------------- formulas as MathML
# Every current browser draws it; nothing is fetched when a page is read, and no script runs.


def _mathml(tex: str, display: str) -> str:
    # a tilde between two things is a relation, with space around it
    return convert(tex, display=display).replace("<mi>&#x0007E;</mi>", "<mo>&#x0223C;</mo>")


def _inline(self, node: nodes.math) -> None:
    self.body.append(_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _displayed(self, node: nodes.math_block) -> None:
    for part in node.astext().strip().split("\n\n"):
        self.body.append(f'<div class="formula">{_mathml(part, "block")}</div>')
    raise nodes.SkipNode


# ------------------------------------------------------------ pages that are made, not committed


def _copy_notebooks(app) -> None:
    """The notebooks live in notebooks/, where the tests execute them."""
    folder = HERE / "stories"
    folder.mkdir(exist_ok=True)
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        copy = folder / path.name
        if not copy.exists() or copy.read_bytes() != path.read_bytes():
            shutil.copyfile(path, copy)


def _of_others(app, what, name, obj, skip, options) -> bool | None:
    """Leave out what scikit-learn brings: ``get_params``, ``set_fit_request`` and the like."""
    if not inspect.isroutine(obj):
        return None
    module = getattr(inspect.unwrap(obj), "__module__", None)
    return True if not str(module).startswith("bayesgen") or not inspect.getdoc(obj) else None


def _link_names(app, what, name, obj, options, lines) -> None:
    link(lines)


def _fold_methods(app, doctree) -> None:
    """Fold what stands below the first paragraph of a method: a page has 28 of them."""
    for content in doctree.findall(addnodes.desc_content):
        if content.parent["objtype"] == "method" and len(content) > 2:
            opened = "<details><summary>Details</summary>"
            content.insert(1, nodes.raw("", opened, format="html"))
            content += nodes.raw("", "</details>", format="html")


def _name_thumbnails(app, docname, source) -> None:
    """Give the pictures of the gallery's index an alternative text."""
    source[0] = re.sub(
        r"(sphx_glr_plot_\w+?_(\w+)_thumb\.png\n +:alt:)\n", r"\1 Thumbnail of \2\n", source[0]
    )


def _index_synonyms(app, docname, source) -> None:
    """Enter "Also called: ..." into the index: the search puts its main entries (!) first."""

    def entered(line: re.Match[str]) -> str:
        return f"```{{index}} {re.sub(r'(^|, )', r'\1! ', line[1])}\n```\n\n{line[0]}"

    source[0] = re.sub(r"^\*Also called: (.*)\.\*$", entered, source[0], flags=re.M)


def setup(app) -> None:
    app.add_html_math_renderer("mathml", (_inline, None), (_displayed, None))
    app.connect("builder-inited", _copy_notebooks, priority=100)
    app.connect("builder-inited", lambda app: write_family_pages(HERE / "families"), priority=100)
    app.connect("autodoc-skip-member", _of_others)
    app.connect("autodoc-process-docstring", _link_names, priority=100)  # before numpydoc
    app.connect("source-read", _index_synonyms)
    app.connect("source-read", _name_thumbnails)
    app.connect("doctree-read", _fold_methods)
