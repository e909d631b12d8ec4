"""Arguments and options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model that fit has written.")]
Target = Annotated[
    str, typer.Option("--target", "-t", metavar="COLUMN", help="Column with the labels.")
]
Texts = Annotated[
    str | None,
    typer.Option("--text", metavar="COLUMN", help="Column with the texts (language models)."),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="One JSON object on stdout in place of tables.")
]
