"""Write a page for every classifier from its table in families.toml, and the table of all."""

import re
import tomllib
from pathlib import Path

TABLE = Path(__file__).with_name("families.toml")
DOI = re.compile(r"doi:(\S+)")
CLOSED = """Posterior and predictive have a closed form; ``sample_posterior`` runs NUTS on the same
model as a check."""
STRUCTURES = """Posterior and predictive have a closed form; ``draw_posterior`` draws structure and
parameters. ``to_pymc`` is the model of one structure."""
SAMPLED = """There is no closed form: ``fit`` samples the posterior by NUTS, and every number
carries its Monte Carlo error."""


def entries() -> dict[str, dict]:
    """The table of each classifier, by its name."""
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def write_family_pages(folder: Path) -> None:
    """One page per classifier, ``<name>.rst``; a file is written only if its text changes."""
    for name, entry in entries().items():
        _write(folder / f"{name}.rst", page(name, entry))
    _write(folder / "table.rst", overview(entries()))


def page(name: str, entry: dict) -> str:
    """The page of one classifier, in reStructuredText."""
    parts = [
        ".. currentmodule:: bayesgen",
        _title(name, "="),
        entry["for"],
        f"| **Use it when** {entry['when']}.\n| **Not when** {entry['not_when']}.",
        f"Parameters and methods: :class:`bayesgen.{name}`.",
        ".. code-block:: python\n\n" + _indented(code(name, entry)),
    ]
    for part, title in {
        "model": "Model",
        "prior": "Prior",
        "posterior": "Posterior",
        "predictive": "Posterior predictive",
    }.items():
        if part in entry:
            parts += [_title(title, "-"), _formula(entry[part])]
    closed = "predictive" in entry
    if not closed:
        parts += [
            _title("Posterior and predictive", "-"),
            SAMPLED,
            _formula(entry.get("average", PREDICTIVE)),
        ]
    elif name != "LogLinearPool":
        parts += [STRUCTURES if entry.get("structures") else entry.get("closed", CLOSED)]
    parts += [entry["text"], _title("Picture", "-"), _picture(name, entry["caption"])]
    parts += [_title("PyMC graph", "-"), _graph(name)]
    references = [DOI.sub(r"`doi:\1 <https://doi.org/\1>`__", r) for r in entry["references"]]
    parts += [_title("References", "-"), "\n".join(f"- {r}" for r in references)]
    return "\n\n".join(parts) + "\n"


def code(name: str, entry: dict) -> str:
    """The example of a page: data, fit, probabilities."""
    lines = ["import bayesgen as bg", *entry["data"].split("\n")]
    lines += [f"clf = bg.{name}().fit(X, y)", "clf.predict_proba(X[:3])"]
    return "\n".join(sorted(lines, key=lambda line: not line.startswith(("from", "import"))))


PREDICTIVE = r"""p(y=c \mid x, D) = \frac{\sum_s \pi_c^{(s)} p(x \mid \theta_c^{(s)})}
{\sum_d \sum_s \pi_d^{(s)} p(x \mid \theta_d^{(s)})},
\qquad \theta^{(s)} \text{ draws from the posterior}"""


def overview(table: dict[str, dict]) -> str:
    """All classifiers in one table, those in closed form first."""
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 30 70", ""]
    lines += ["   * - classifier", "     - for"]
    for name, entry in table.items():
        lines += [f"   * - :doc:`{name}`", f"     - {entry['for']}"]
    return "\n".join(lines) + "\n"


def _title(text: str, mark: str) -> str:
    return f"{text}\n{mark * len(text)}"


def _formula(tex: str) -> str:
    return ".. math::\n\n" + _indented(tex)


def _indented(text: str) -> str:
    return "\n".join(f"   {line}" for line in text.strip().splitlines())


def _picture(name: str, caption: str) -> str:
    return (
        f".. plot::\n   :include-source: False\n   :alt: {caption}\n   :caption: {caption}\n\n"
        f'   from family_pictures import draw\n\n   draw("{name}")'
    )


def _graph(name: str) -> str:
    """The graph of ``to_pymc``, and the same in words for whoever does not see it."""
    from family_graphs import model_of, sentences

    words = " ".join(sentences(model_of(name)))
    caption = "``to_pymc`` on a few rows. Shaded: observed; boxes follow from what points at them."
    return (
        f".. plot::\n   :include-source: False\n   :alt: {words}\n   :caption: {caption}\n\n"
        f'   from family_graphs import draw\n\n   draw("{name}")'
    )


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
