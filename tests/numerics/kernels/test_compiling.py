"""Where machine code is kept, and what is said where it cannot be."""

import numba
import pytest

from bayesgen.numerics.kernels import compiling


def test_a_process_without_a_cache_says_so_once(monkeypatch):
    njit = numba.njit

    def without_cache(cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

    monkeypatch.setattr(numba, "njit", without_cache)
    compiling._say_that_nothing_is_kept.cache_clear()
    with pytest.warns(UserWarning, match="compiles it anew.*NUMBA_CACHE_DIR") as said:
        [compiling.compiled(lambda x: x) for _ in range(2)]
    assert len(said) == 1
