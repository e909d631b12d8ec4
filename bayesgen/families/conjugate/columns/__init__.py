"""Columns of several kinds: a product of families over blocks of columns."""

from bayesgen.families.conjugate.columns.family import Columns, ColumnsStats

__all__ = ["Columns", "ColumnsStats"]
