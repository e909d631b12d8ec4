"""Ctrl-C while a sampler of another package runs: never swallowed.

PyMC and nutpie catch KeyboardInterrupt and return the draws that there are, padded with NaN where
a chain has none; ``pymc.sample`` on one core even goes on with the next chain. Here an interrupt is
an exception that they do not know, so that nothing is returned, and a KeyboardInterrupt again for
the caller.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Interrupted(BaseException):
    """A KeyboardInterrupt under a name that no sampler catches."""


class Interrupts:
    """Whether an interrupt has come; call it where work that takes long begins or goes on.

    It raises again what was lost: an exception in a finalizer, or in a function that C calls (the
    compilers have such), is printed and forgotten.
    """

    def __init__(self) -> None:
        self.seen = False

    def __call__(self, *_: Any, **__: Any) -> None:
        """Raise if one has come; takes any arguments, as callbacks do."""
        if self.seen:
            raise _Interrupted


@contextmanager
def not_swallowed() -> Iterator[Interrupts]:
    """Within, an interrupt of the main thread is a KeyboardInterrupt for the caller, always.

    The program's own handler of SIGINT decides whether a signal is an interrupt: it is if that
    handler raises KeyboardInterrupt, as Python's does. Other threads never get signals.
    """
    before, interrupts = signal.getsignal(signal.SIGINT), Interrupts()
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield interrupts
        return
    process = os.getpid()

    def handle(number: int, frame: Any) -> None:
        try:
            before(number, frame)
        except KeyboardInterrupt:
            if os.getpid() != process:
                raise  # a forked worker ends quietly, as its own package has it
            interrupts.seen = True
            raise _Interrupted from None

    signal.signal(signal.SIGINT, handle)
    try:
        yield interrupts
    except BaseException:
        if interrupts.seen:  # an error on the way out, of a worker that was ended, says less
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupts.seen:
        raise KeyboardInterrupt
