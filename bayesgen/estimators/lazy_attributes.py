"""Attributes that are computed when they are asked for, and not when they are listed."""

import inspect
from collections.abc import Iterable


class LazyAttributes:
    """For classifiers whose properties cost something: ``posterior_`` draws.

    Scikit-learn lists only attributes that exist, and so asks for each; the HTML of notebooks
    shows the value of all that end in an underscore.
    """

    def __dir__(self) -> Iterable[str]:
        """Names; methods that do not apply are left out, properties are not looked at."""
        cls = type(self)
        return [
            name
            for name in object.__dir__(self)
            if isinstance(inspect.getattr_static(cls, name, None), property) or hasattr(self, name)
        ]

    def _get_fitted_attr_html(self, doc_link: str = "") -> str:
        """Nothing: the summary says what the fit is."""
        return ""
