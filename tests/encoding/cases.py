"""Small tables, and categories learned from them: oracles are plain Python lists and `==`."""

import numpy as np
import pandas as pd

from bayesgen.encoding.categories import Categories
from bayesgen.encoding.tables import read

NAN = np.nan


def column_of(*cells):
    """A table of one column of Python objects."""
    return np.array([[cell] for cell in cells], dtype=object)


def learn(X, declared=None):
    return Categories.learn(read(X), declared)


def encode(categories, X):
    return categories.encode(read(X))


def same(a, b):
    """Equal in value and in type."""
    return a == b and [list(map(type, v)) for v in a] == [list(map(type, v)) for v in b]


def birds(kind=pd.DataFrame):
    return kind(
        {
            "island": ["Dream", None, "Biscoe"],
            "bill": [39.1, 46.0, None],
            "eggs": [1, 2, 0],
            "male": [True, False, None],
        }
    )
