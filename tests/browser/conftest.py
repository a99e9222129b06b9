"""Pages opened in headless Chromium; whatever they log, ask for or throw fails the test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from initrate.report import build_report, open_demo
from initrate.report._build import write_report
from tests.report.synthetic import PHASE, synthetic

HOSTILE = "</script><script>document.title='taken'</script>\"'><img src=x onerror=alert(1)>"
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    "--no-first-run",
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium: the one that CHROMIUM names, or the system's."""
    path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports to open: of made-up studies, and of the demo as it ships."""
    made = {
        "phase": synthetic(),
        "mirrored": synthetic(mirrored=True),
        "best-lr": synthetic(lrs=(1e-4, 2e-4, 3e-4), n_seeds=2),
        "unfinished": synthetic(share_done=0.2),
        "nothing yet": synthetic(share_done=0),
        "crossed": synthetic(axes=PHASE[:1], crossed={"init": (1, 2), "order": (1, 2)}),
        "one setting": synthetic(axes=(), crossed={"init": (1, 2), "order": (1, 2)}),
        "long seeds": synthetic(
            axes=PHASE[:1],
            mirrored=True,
            crossed={"init": (3, 2**62), "pool": (1, 10**9), "evaluation": (10**12,)},
        ),
        "six seeds": synthetic(axes=PHASE[:1], n_seeds=6),
        "twenty seeds": synthetic(axes=PHASE[:1], n_seeds=20),
        "hostile": synthetic(name=HOSTILE, description=HOSTILE),
    }
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        # The demo alone is drawn: figures take most of the time and have tests of their own.
        found = {"demo": build_report(open_demo(), folder / "demo")}
        patch.setattr("initrate.report._build.draw_figures", lambda *_: ())
        for name, source in made.items():
            found[name] = write_report(source, folder / name.replace(" ", "-"))
    return found


@pytest.fixture
def open_page(browser: Browser, pages: dict[str, Path]) -> Iterator[Callable[..., Page]]:
    """Open a report by name; at the end of the test nothing may have been complained of."""
    wrong: list[str] = []
    contexts: list[BrowserContext] = []

    def opened(name: str, *, width: int = 1280, height: int = 860, **options) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        address = pages[name].as_uri()
        page.on("console", lambda message: wrong.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
        page.on(
            "request",
            lambda request: (
                None
                if request.url.partition("#")[0] == address or request.url[:5] in ("data:", "blob:")
                else wrong.append(f"request: {request.url}")
            ),
        )
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []
