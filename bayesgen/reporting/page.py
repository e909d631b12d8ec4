"""A report as a page of HTML, as Markdown and as JSON."""

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from bayesgen.encoding.literals import without_controls
from bayesgen.reporting.parts import Section, Table, plain

if TYPE_CHECKING:
    from bayesgen.reporting.report import Report


def html(report: "Report") -> str:
    """One self-contained page: no script, nothing is fetched."""
    text: str = _template().render(report=report)
    text = without_controls(text)  # of labels, names and cells, in pictures too
    return "\n".join(line for line in text.splitlines() if line.strip()) + "\n"


@cache
def _template() -> Any:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError:
        raise ImportError('a report needs jinja2: pip install "bayesgen[report]"') from None
    environment = Environment(
        loader=PackageLoader("bayesgen.reporting"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters["svg"] = Markup  # our own drawing: matplotlib has escaped what it shows
    return environment.get_template("page.html.j2")


def markdown(report: "Report") -> str:
    """Sentences and tables; of figures their descriptions."""
    out = [f"# {_inline(report.title)}", _inline(report.subtitle)]
    for section in report.sections:
        out.append(f"## {_inline(section.title)}")
        out += [_inline(sentence) for sentence in section.text]
        out += [_pipes(table) for table in section.tables]
        out += [f"*Figure: {_inline(figure.alt)}*" for figure in section.figures]
        out += [f"> {_inline(note)}" for note in section.notes]
    return without_controls("\n\n".join(out)) + "\n"


def _inline(text: str) -> str:
    """Text in which nothing is markup."""
    for sign in "\\`*_[]<>|#":
        text = text.replace(sign, f"\\{sign}" if sign not in "<>" else f"&{_ENTITY[sign]};")
    return text


_ENTITY = {"<": "lt", ">": "gt"}


def _pipes(table: Table) -> str:
    rule = ["---"] * table.text + ["---:"] * (len(table.head) - table.text)
    lines = [[_inline(name) for name in table.head], rule]
    lines += [[_inline(cell) for cell in row] for row in table.rows]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{_inline(table.caption)}\n\n{body}"


def as_json(report: "Report") -> str:
    """All numbers and sentences; NaN and infinities are null."""

    def of(section: Section) -> dict[str, Any]:
        return {
            "title": section.title,
            "text": section.text,
            "tables": [
                {"caption": t.caption, "columns": list(t.head), "rows": [list(r) for r in t.rows]}
                for t in section.tables
            ],
            "notes": section.notes,
            "data": section.data,
        }

    found = {
        "title": report.title,
        "subtitle": report.subtitle,
        "sections": {section.key: of(section) for section in report.sections},
    }
    return json.dumps(plain(found), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
