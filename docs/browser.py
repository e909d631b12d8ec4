"""Open the built site and two reports in Chromium: `make browser`.

Checks at two widths, in light and dark: axe's rules of accessibility, no scrolling sideways, no
errors in the console, navigation in one row, and what the search finds.
"""

import argparse
import contextlib
import functools
import http.server
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright

import bayesgen as bg

HERE = Path(__file__).resolve().parent
SITE = HERE / "_build" / "html"
PAGES = {
    "index": "index.html",
    "how_to": "how_to/new_population.html",
    "classifier": "api/generated/bayesgen.GaussianNB.html",
    "pool": "api/generated/bayesgen.LogLinearPool.html",
    "gallery": "pictures/index.html",
    "benchmarks": "benchmarks/pools.html",
    "report": "reports/penguins.html",
    "report_messy": "reports/messy.html",
}
DESKTOP, PHONE = (1280, 900), (390, 844)
SEARCHES = [
    "excel",
    "AUC",
    "threshold",
    "cross validation",
    "missing values",
    "outlier",
    "string columns",
    "one-hot",
    "class weight",
    "imbalanced",
    "abstain",
    "SHAP",
    "grid search",
]
CHROMIUM = [
    "--no-sandbox",  # CI is root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def write_reports(folder: Path) -> None:
    """Write one report of penguins and one of a table with everything that is awkward."""
    folder.mkdir(exist_ok=True)
    X, y = bg.datasets.load_penguins()
    train, test = np.arange(len(X)) % 2 == 0, np.arange(len(X)) % 2 == 1
    clf = bg.MixedNB().fit(X[train], y[train])
    bg.report(clf, X[test], y[test], folder / "penguins.html")
    rng = np.random.default_rng(0)
    names = np.array([f"class number {i} that has a rather long name" for i in range(12)])
    labels = names[rng.integers(0, 12, 300)]
    code = pd.Series(labels).str.extract(r"(\d+)")[0].astype(float).to_numpy()
    table = pd.DataFrame(
        {
            "a measurement with a very long name, in millimetres": code + rng.normal(size=300),
            "town": np.where(rng.random(300) < 0.5, "here", "there"),
            "gaps": np.where(rng.random(300) < 0.6, np.nan, code * rng.normal(1, 0.1, 300)),
        }
    )
    clf = bg.MixedNB().fit(table[:200], labels[:200])
    table.loc[200:210, "town"] = "elsewhere"
    table.loc[205:, "gaps"] = np.nan
    bg.report(clf, table[200:], labels[200:], folder / "messy.html")


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a folder on localhost; give its address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def complaints(page: Page, name: str, width: int) -> Iterator[str]:
    """Give one sentence for each fault of an open page."""
    for violation in Axe().run(page).response["violations"]:
        nodes = violation["nodes"]
        yield f"axe {violation['id']} ({len(nodes)}): {violation['help']}; {nodes[0]['html'][:160]}"
    wide = page.evaluate("document.documentElement.scrollWidth")
    if wide > width:
        yield f"the page is {wide} px wide and scrolls sideways"
    bar = page.locator("header.bd-header .navbar-header-items__center li.nav-item:visible")
    tops = [box["y"] for item in bar.all() if (box := item.bounding_box())]
    if tops and max(tops) - min(tops) > 20:
        yield "the navigation has more than one row"


def main() -> int:
    """Check every page in every look; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--screenshots", type=Path, help="a folder for pictures of all pages")
    parser.add_argument("--only", choices=PAGES, help="one page")
    arguments = parser.parse_args()
    if not (chromium := shutil.which("chromium")):
        sys.exit("no chromium on this machine: apt-get install chromium")
    if not SITE.is_dir():
        subprocess.run(["make", "docs"], cwd=HERE.parent, check=True)
    write_reports(SITE / "reports")
    pages = {arguments.only: PAGES[arguments.only]} if arguments.only else PAGES
    faults = []
    with serving(SITE) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
        for scheme in ("light", "dark"):
            for width, height in (DESKTOP, PHONE):
                context = browser.new_context(
                    viewport={"width": width, "height": height}, color_scheme=scheme
                )
                page = context.new_page()
                errors: list[str] = []
                page.on("pageerror", lambda e, errors=errors: errors.append(str(e)))
                for name, path in pages.items():
                    errors.clear()
                    page.goto(f"{address}/{path}", wait_until="load")
                    page.wait_for_timeout(300)  # scripts that run after loading
                    if arguments.screenshots:
                        arguments.screenshots.mkdir(exist_ok=True)
                        picture = arguments.screenshots / f"{name}_{width}_{scheme}.png"
                        page.screenshot(path=picture, full_page=True)
                    said = [*complaints(page, name, width), *errors]
                    faults += [f"{name}, {width} px, {scheme}: {fault}" for fault in said]
                context.close()
        page = browser.new_page()
        for words in () if arguments.only else SEARCHES:
            page.goto(f"{address}/search.html?q={words}")
            page.wait_for_selector("#search-results p.search-summary:not(:empty)", timeout=20_000)
            page.wait_for_timeout(500)
            if not page.locator("#search-results ul.search li").count():
                faults.append(f"the search for {words!r} finds nothing")
        browser.close()
    print("\n".join(faults) or f"{len(pages)} pages in four looks and {len(SEARCHES)} searches: ok")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
