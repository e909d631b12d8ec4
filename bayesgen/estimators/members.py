"""Methods that not every classifier has: False for `hasattr`, with the reason in the error."""

import functools
from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:

    def available[Of](refuse: Callable[[Any], None]) -> Callable[[Of], Of]:
        """Mark a method that is absent where `refuse(classifier)` raises: for what it says."""

else:

    class available:  # noqa: N801 - a decorator
        """Mark a method that is absent where `refuse(classifier)` raises: for what it says."""

        def __init__(self, refuse):
            self.refuse = refuse

        def __call__(self, method):
            """Take the method."""
            functools.update_wrapper(self, method)
            self.method = method
            return self

        def __get__(self, clf, cls=None):
            """Return the function for a class, which documentation shows; else the bound method."""
            if clf is None:
                return self.method
            try:
                self.refuse(clf)
            except (NotImplementedError, ValueError) as error:
                name = self.method.__name__
                raise AttributeError(
                    f"{type(clf).__name__!r} object has no attribute {name!r}: {error}",
                    name=name,
                    obj=clf,
                ) from error
            return MethodType(self.method, clf)
