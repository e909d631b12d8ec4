"""Write an inventory for intersphinx of the names of other projects in elsewhere.toml.

Their own inventories are fetched from their sites, and a build has no network.
"""

import re
import tomllib
import zlib
from pathlib import Path

ELSEWHERE = tomllib.loads(Path(__file__).with_name("elsewhere.toml").read_text(encoding="utf-8"))
KNOWN = {
    name: project.get("pages", {}).get(name, project["page"].format(name))
    for project in ELSEWHERE.values()
    for name in (*project["names"].split(), *project.get("pages", ()))
}
_NAMES = re.compile(
    rf"(?<![\w.`~<])(?:{'|'.join(map(re.escape, sorted(KNOWN, key=len, reverse=True)))})(?![\w.(`])"
)


def write_inventories(folder: Path) -> dict[str, tuple[str, str]]:
    """``intersphinx_mapping``: {project: (address of its site, inventory in the folder)}."""
    folder.mkdir(parents=True, exist_ok=True)
    mapping = {}
    for project, entry in ELSEWHERE.items():
        names = [*entry["names"].split(), *entry.get("pages", ())]
        lines = (f"{name} py:{_role(name)} 1 {KNOWN[name]} -\n" for name in names)
        head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
        head += "# The remainder of this file is compressed using zlib.\n"
        path = folder / f"{project}.inv"
        path.write_bytes(head.encode() + zlib.compress("".join(lines).encode()))
        mapping[project] = (entry["url"], str(path))
    return mapping


def _role(name: str) -> str:
    return "class" if name.rpartition(".")[2][:1].isupper() else "function"


def link(lines: list[str]) -> None:
    """Turn the known names of a docstring into references, but for its examples."""
    for k, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[k] = _NAMES.sub(r":obj:`\g<0>`", line)
