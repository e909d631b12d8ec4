"""How far a stream has been learned, in a file: the model of the rows so far, and where they end.

A checkpoint is a model file (`bayesgen.load` reads it) whose state has the entry ``stream``: the
arguments of the stream and the position in its source. It is written whole or not at all.
"""

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from bayesgen.families.records import Record
from bayesgen.io import json_values, storage
from bayesgen.io.additive import Additive
from bayesgen.io.sources import Position

_SHARE = 20  # at most one part in so many of the time goes into writing, unless the user says when


class Checkpoint:
    """The file of one stream.

    Parameters
    ----------
    path : str or path
    clf : Additive
        Whose arguments must be those of the checkpoint.
    arguments : {name: JSON value}
        Those of the stream that decide what is learned.
    every : int or None
        Chunks between two checkpoints; None: as often as costs a twentieth of the time.
    """

    def __init__(
        self,
        path: Any,
        clf: Additive,
        arguments: Mapping[str, Any],
        every: int | None,
    ) -> None:
        if every is not None and (not isinstance(every, int | np.integer) or every < 1):
            raise ValueError(f"every must be a number of chunks >= 1, got {every!r}")
        self.path = Path(path)
        self._arguments = {
            **arguments,
            **{name: _mark(getattr(clf, name)) for name in clf.__bayesgen_learner__().unsaved},
        }
        self._every, self._chunks = every, 0
        self._written, self._cost = -np.inf, 0.0

    def resume(self, clf: Additive) -> tuple[Position | None, Any]:
        """The position after what the file holds, and its statistics; None if there is no file.

        Raises
        ------
        ValueError
            If the file is damaged, no checkpoint, or one of another classifier or stream.
        """
        if not self.path.is_file():  # a folder is refused by `write`
            return None, None
        fit, state, draws = storage.read(self.path)
        if "stream" not in state:
            raise ValueError(f"{self.path} is a model, not the checkpoint of a stream: it is kept")
        then, now = _told(state, state["stream"]["arguments"]), _told(_own(clf), self._arguments)
        for name in {**then, **now}:
            if then.get(name) != now.get(name):
                raise self.other(f"{name} was {then.get(name)!r} and is {now.get(name)!r}")
        with storage.complete(self.path, type(clf).__name__):
            found = clone(clf).__bayesgen_load__(fit, state, draws)
            gathered = clf.__bayesgen_learner__().gathered(found)
        return state["stream"]["position"], gathered

    def other(self, why: Any) -> ValueError:
        """The error that this is the checkpoint of something else."""
        return ValueError(
            f"{self.path} is the checkpoint of another stream: {why}. Delete it to start anew, "
            "or name another file"
        )

    def due(self) -> bool:
        """Whether to write one, asked after each chunk."""
        self._chunks += 1
        if self._every is not None:
            return self._chunks % self._every == 0
        return time.monotonic() - self._written >= _SHARE * self._cost

    def write(self, clf: Additive, fitted: Any, position: Position) -> None:
        """Replace the file by the fit to the rows up to a position."""
        start = time.monotonic()
        fit, state, draws = clf.__bayesgen_record__(fitted)
        stream = {"arguments": self._arguments, "position": dict(position)}
        storage.write(self.path, fit, {**state, "stream": stream}, draws)
        self._written = time.monotonic()
        self._cost = self._written - start


def _own(clf: Additive) -> dict[str, Any]:
    """The part of a model file's state that is known before the fit."""
    parameters = clf.get_params(deep=False)
    unsaved = clf.__bayesgen_learner__().unsaved
    return {
        "estimator": type(clf).__name__,
        "parameters": {
            k: json_values.to_json(v, k) for k, v in parameters.items() if k not in unsaved
        },
    }


def _told(state: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """{what an error calls it: value} of all that must agree."""
    return {"the classifier": state["estimator"], **state["parameters"], **arguments}


def _mark(value: Any) -> str:
    """What tells an argument from another that a file cannot hold; functions by their names."""
    if isinstance(value, Record):
        arrays = {name: (v.shape, v.tolist()) for name, (_, v) in value.arrays().items()}
        digest = hashlib.sha256(repr((value.settings(), arrays)).encode()).hexdigest()
        return f"{type(value).__qualname__} {digest[:16]}"
    return str(getattr(value, "__qualname__", None) or repr(value))
