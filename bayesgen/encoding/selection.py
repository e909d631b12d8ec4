"""Some columns of a data frame, as one member of a pool sees them."""

from dataclasses import asdict, dataclass
from typing import Any, Self

import narwhals.stable.v2 as nw

from bayesgen.encoding.literals import shown
from bayesgen.encoding.schema import refuse_other_columns


@dataclass(frozen=True)
class Selection:
    """A table of some columns, or the texts of one.

    Parameters
    ----------
    names : tuple of str
        All columns of the training rows; new rows have the same, in any order.
    chosen : tuple of str
    documents : bool
        The rows are the texts of the one column that is chosen; a missing one is empty, which says
        nothing of the class.
    """

    names: tuple[str, ...]
    chosen: tuple[str, ...]
    documents: bool = False

    def rows(self, X: Any) -> Any:
        """Data frame of the library of X, or a list of texts.

        Raises
        ------
        TypeError
            If X is no data frame, or a text is none.
        ValueError
            If X lacks a column or has one too many.
        """
        frame = nw.from_native(X, pass_through=True)
        if not isinstance(frame, nw.DataFrame):
            raise TypeError(
                f"X is a {type(X).__name__} without names of columns; the training rows were a "
                f"data frame of {', '.join(map(repr, self.names[:5]))}"
            )
        refuse_other_columns(frame.columns, self.names)
        if not self.documents:
            return frame.select(self.chosen).to_native()
        name = self.chosen[0]
        cells = ["" if _missing(cell) else cell for cell in frame[name].to_list()]
        for i, cell in enumerate(cells):
            if not isinstance(cell, str):
                raise TypeError(f"column {name!r} holds {shown(cell)} in row {i}; it held texts")
        return cells

    def to_json(self) -> dict[str, Any]:
        """What `from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Self:
        """Inverse of `to_json`; ValueError for what no pool writes."""
        names, chosen = tuple(record["names"]), tuple(record["chosen"])
        if not (chosen and set(chosen) <= set(names)) or (record["documents"] and len(chosen) > 1):
            raise ValueError(f"the columns {chosen} of a member are not among {names}")
        return cls(names, chosen, bool(record["documents"]))


def _missing(cell: Any) -> bool:
    return cell is None or cell != cell
