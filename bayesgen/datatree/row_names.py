"""The index of a data frame as the labels of the rows of a result."""

import functools
from collections.abc import Callable
from typing import Any, cast

from bayesgen.families.names import OBS


def named_rows[Function: Callable[..., Any]](function: Function) -> Function:
    """A function of (classifier, X, ...) whose result has X's index as ``obs_id``.

    Of a pandas frame or series: rows of others, and of a frame that was never indexed, are counted
    from 0. The result is a Dataset or a DataTree.
    """

    @functools.wraps(function)
    def wrapper(*args: Any, **options: Any) -> Any:
        found = function(*args, **options)
        index: Any = getattr(args[1] if len(args) > 1 else options["X"], "index", None)
        if getattr(index, "nlevels", 0) != 1:  # the method of a list, or labels of several levels
            return found
        labels = {OBS: index.to_numpy()}
        if hasattr(found, "subtree"):
            for node in found.subtree:
                if OBS in node.dims:
                    node.dataset = node.to_dataset(inherit=False).assign_coords(labels)
            return found
        return found.assign_coords(labels)

    return cast(Function, wrapper)
