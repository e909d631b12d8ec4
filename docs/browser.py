"""Open the built site and two reports in Chromium: `make browser`.

Checks at two widths, in light and dark: axe's rules of accessibility, no scrolling sideways, no
errors in the console, pictures that load and differ, navigation in one row, searches.
"""

import argparse
import functools
import http.server
import shutil
import sys
import threading
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright

import bayesgen as bg

SITE = Path(__file__).resolve().parent / "_build" / "html"
PAGES = {
    "index": "index.html",
    "how_to": "how_to/new_population.html",
    "family": "families/GaussianNB.html",
    "classifier": "api/generated/bayesgen.GaussianNB.html",
    "pool": "api/generated/bayesgen.LogLinearPool.html",
    "plot": "api/generated/bayesgen.plots.plot_effects.html",
    "gallery": "pictures/index.html",
    "picture": "pictures/arviz/plot_3_psense.html",
    "benchmarks": "benchmarks/pools.html",
    "report": "reports/penguins.html",
    "report_messy": "reports/messy.html",
}
SIZES = ({"width": 1280, "height": 900}, {"width": 390, "height": 844})
SEARCHES = {  # words, and a page that is among the first three results
    "excel": "how_to/tables",
    "AUC": "how_to/report",
    "threshold": "how_to/report",
    "cross validation": "how_to/model_choice",
    "missing values": "how_to/tables",
    "outlier": "how_to/tables",
    "string columns": "how_to/tables",
    "one-hot": "how_to/tables",
    "class weight": "how_to/reject",
    "imbalanced": "how_to/new_population",
    "abstain": "how_to/reject",
    "SHAP": "how_to/how_sure",
    "grid search": "how_to/model_choice",
}
CHROMIUM = """--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync
--disable-background-networking --disable-component-update"""


def write_reports(folder: Path) -> None:
    """Write one report of penguins and one of a table with everything that is awkward."""
    folder.mkdir(exist_ok=True)
    X, y = bg.datasets.load_penguins()
    test = X.index % 3 == 2
    clf = bg.MixedNB().fit(X[~test], y[~test])
    bg.report(clf, X[test], y[test], folder / "penguins.html")
    rng = np.random.default_rng(0)
    code = rng.integers(0, 12, 300)
    labels = np.array([f"class number {i} that has a rather long name" for i in code])
    gaps = np.where(rng.random(300) < 0.6, np.nan, code * rng.normal(1, 0.1, 300))
    table = pd.DataFrame({"town": rng.choice(["here", "there"], 300), "gaps": gaps})
    table["a measurement with a very long name, in millimetres"] = code + rng.normal(size=300)
    clf = bg.MixedNB().fit(table[:200], labels[:200])
    table.loc[200:210, "town"] = "elsewhere"
    table.loc[205:, "gaps"] = np.nan
    bg.report(clf, table[200:], labels[200:], folder / "messy.html")


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serve files, and say nothing."""

    def log_message(self, *_: object) -> None:
        pass


def complaints(page: Page, width: int) -> Iterator[str]:
    """Give one sentence for each fault of an open page."""
    for violation in Axe().run(page).response["violations"]:
        nodes = violation["nodes"]
        yield f"axe {violation['id']} ({len(nodes)}): {violation['help']}; {nodes[0]['html'][:160]}"
    wide = page.evaluate("document.documentElement.scrollWidth")
    if wide > width:
        yield f"the page is {wide} px wide and scrolls sideways"
    images = page.eval_on_selector_all("main img", "es => es.map(e => [e.src, e.naturalWidth])")
    yield from (f"{source} does not load" for source, size in images if not size)
    if len({source for source, _ in images}) < len(images):
        yield "two pictures are the same file"
    items = page.locator("header.bd-header .navbar-header-items__center li.nav-item:visible")
    tops = [box["y"] for item in items.all() if (box := item.bounding_box())]
    if width > 1000 and "/reports/" not in page.url and not (tops and np.ptp(tops) < 20):
        yield f"the navigation is not one row: {tops}"


def search(page: Page, address: str, words: str) -> list[str]:
    """Return the pages that the search finds, the first first."""
    page.goto(f"{address}/search.html?q={words}")
    page.wait_for_selector("#search-results p.search-summary:not(:empty)", timeout=20_000)
    page.wait_for_timeout(300)
    links = page.locator("#search-results ul.search li > a").all()
    return [str(link.get_attribute("href")).split(".html")[0] for link in links]


def main() -> int:
    """Check every page in every look; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--screenshots", type=Path, help="a folder for pictures of all pages")
    folder = parser.parse_args().screenshots
    if not SITE.is_dir():
        sys.exit(f"no site in {SITE}: make docs")
    write_reports(SITE / "reports")
    faults: list[str] = []
    handler = functools.partial(Quiet, directory=str(SITE))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    with sync_playwright() as playwright:
        program = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=program, args=CHROMIUM.split())
        for (name, path), scheme, size in product(PAGES.items(), ("light", "dark"), SIZES):
            page = browser.new_page(viewport=size, color_scheme=scheme)
            said: list[str] = []
            page.on("pageerror", lambda e, said=said: said.append(str(e)))
            page.on("console", lambda m, said=said: m.type == "error" and said.append(m.text))
            page.goto(f"{address}/{path}")
            page.wait_for_timeout(300)  # scripts that run after loading
            if folder:
                file = folder / f"{name}_{size['width']}_{scheme}.png"
                page.screenshot(path=file, full_page=True)
            said = [*said, *complaints(page, size["width"])]  # axe's own requests may fail
            faults += [f"{name}, {size['width']} px, {scheme}: {fault}" for fault in said]
            page.close()
        page = browser.new_page()
        for words, expected in SEARCHES.items():
            if expected not in (results := search(page, address, words))[:3]:
                faults.append(f"the search for {words!r} finds {results[:5]}, not {expected}")
        browser.close()
    print("\n".join(faults) or f"{len(PAGES)} pages in four looks, {len(SEARCHES)} searches: ok")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
