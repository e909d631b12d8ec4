"""Bayesian generative classifiers with the parameters integrated out.

Public names are loaded on first use: importing the package costs milliseconds, and pymc, arviz,
numba, dask and matplotlib are imported only by what needs them. ``__init__.pyi`` lists
them, for type checkers and editors too.
"""

import lazy_loader

from bayesgen.version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
