"""Prior-likelihood pairs: one file each, in `conjugate` and `sampled`.

The folders are the registry. Each family is also a name of this package, and so is all that a
family is written with, loaded on first use; ``__init__.pyi`` lists them::

    from bayesgen.families import NormalInverseGamma
    from bayesgen.families import ConjugateFamily, Stats, array
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
