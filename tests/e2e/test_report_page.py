"""The report in a real Chromium: by keyboard, in the dark, on a phone, on paper, scriptless."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from kit.main import main
from records.errors import UnknownRunError
from tests.analysis.test_report import HOSTILE, hostile, hostile_plan
from tests.sealed_run import Shape, make_run, small_plan

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
MOST_BYTES_AN_ARM = 400_000  # of a run: what is drawn and told grows with the arms
PATIENCE_MS = 30_000  # of a page of many runs, beside other tests
LIGHT, DARK = "rgb(253, 252, 250)", "rgb(21, 23, 26)"


@dataclass
class Watched:
    """A page, with all that it said and asked for."""

    page: Page
    heard: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium as the system has it."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert found, "no Chromium: apt-get install chromium-headless-shell"
    with sync_playwright() as playwright:
        # Chromium's own sandbox does not start as root, nor in most containers.
        launched = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the committed runs."""
    file = tmp_path_factory.mktemp("report") / "report.html"
    assert main(["report", "--out", str(file)]) == 0
    return file


def opened(browser: Browser, file: Path, **options: object) -> Watched:
    """The file in a window of its own."""
    page = browser.new_context(**options).new_page()  # type: ignore[arg-type]
    page.set_default_timeout(PATIENCE_MS)
    watched = Watched(page)
    page.on("console", lambda message: watched.heard.append(message.text))
    page.on("pageerror", lambda error: watched.heard.append(str(error)))
    page.on("dialog", lambda dialog: (watched.heard.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: watched.asked.append(request.url))
    page.goto(file.as_uri())
    return watched


@pytest.fixture
def page(browser: Browser, shipped: Path) -> Iterator[Page]:
    """The shipped report; whatever a test does, it stays silent and asks nothing of a network."""
    watched = opened(browser, shipped, reduced_motion="reduce")
    yield watched.page
    watched.page.context.close()
    assert watched.heard == []
    assert {url for url in watched.asked if not url.startswith("data:")} == {shipped.as_uri()}


def test_it_is_whole_and_small(page: Page, shipped: Path) -> None:
    assert page.locator("#runs .run-name").count() >= 1
    arms = page.locator("[id^=table-][id$=-boots] tbody tr").count()
    assert shipped.stat().st_size < MOST_BYTES_AN_ARM * arms
    sections = page.locator("main > section > h2").all_inner_texts()
    assert sections[:4] == ["Verdicts", "Findings", "Figures", "Tables"]
    links = page.evaluate("[...document.querySelectorAll('nav.contents a')].map(a => a.hash)")
    ids = page.evaluate("[...document.querySelectorAll('main > section')].map(s => '#' + s.id)")
    assert links == ids
    assert page.locator(".verdict, .held").count() >= 8
    drawn = page.evaluate("[...document.querySelectorAll('.figure img')].map(i => i.naturalWidth)")
    assert drawn
    assert all(drawn)
    levels = page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4,h5')].filter(h => !h.closest('dialog'))"
        ".map(h => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_sorting_by_keyboard(page: Page) -> None:
    table = page.locator("#table-1-by-boot table")
    head = table.locator("thead th").filter(has_text="output")
    rows = table.locator("tbody tr")
    column = head.evaluate("head => head.cellIndex")
    shown = f"rows => rows.map(row => row.cells[{column}].textContent)"
    as_recorded = rows.evaluate_all(shown)
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert rows.evaluate_all(shown) == sorted(as_recorded, key=float)
    page.keyboard.press("Space")
    assert head.get_attribute("aria-sort") == "descending"
    assert rows.evaluate_all(shown) == sorted(as_recorded, key=float, reverse=True)
    assert "descending" in page.locator("#announce").inner_text()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "none"
    assert rows.evaluate_all(shown) == as_recorded


def test_what_is_missing_is_last_either_way(page: Page) -> None:
    table = page.locator("#table-1-by-boot table")
    head = table.locator("thead th").filter(has_text="acceptance, server")
    column = head.evaluate("head => head.cellIndex")
    for _ in range(2):
        head.locator("button").click()
        cells = table.locator("tbody tr").evaluate_all(
            f"rows => rows.map(row => row.cells[{column}].textContent)"
        )
        assert cells[-4:] == ["-"] * 4
        assert "-" not in cells[:-4]


def test_a_trace_by_keyboard(page: Page) -> None:
    body = page.locator("#table-1-dispersion tbody")
    assert body.locator("a.n[tabindex='0']").count() == 1  # one stop of the Tab key
    body.locator("a.n").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    link = page.locator(":focus")
    value = link.inner_text()
    page.keyboard.press("Enter")
    dialog = page.locator("dialog#trace")
    assert dialog.is_visible()
    text = dialog.inner_text()
    for wanted in (value, "smoke-cpu.draft.c8.throughput.mean", "mean(throughput, 'draft', 'c8')",
                   "events.jsonl", "seal", "harness", "driver", "sha256:"):  # fmt: skip
        assert wanted in text
    assert page.evaluate("document.activeElement.textContent") == "Close"
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert link.evaluate("link => link === document.activeElement")
    # A number that no claim prints says what made it.
    page.locator("#table-1-by-boot tbody a.n").first.press("Enter")
    assert "boot_metrics_table" in dialog.inner_text()


def test_the_skip_link_and_the_focus_are_seen(page: Page) -> None:
    page.keyboard.press("Tab")
    skip = page.locator(":focus")
    assert skip.inner_text() == "Skip to the content"
    box = skip.bounding_box()
    assert box
    assert box["y"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    page.keyboard.press("Tab")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


@pytest.mark.parametrize(("scheme", "paper"), [("light", LIGHT), ("dark", DARK)])
def test_light_and_dark_and_the_switch(page: Page, scheme: str, paper: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == paper
    other = "light" if scheme == "dark" else "dark"
    page.locator("fieldset").get_by_label(other, exact=True).check()
    assert page.evaluate(background) == (LIGHT if other == "light" else DARK)
    page.reload()
    assert page.locator("fieldset").get_by_label(other, exact=True).is_checked()
    filtered = page.locator(".figure img").first.evaluate("img => getComputedStyle(img).filter")
    assert (filtered != "none") == (other == "dark")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_fault_of_accessibility(page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    # Some of each kind: the rules take half a minute over all rows and traces.
    page.evaluate(
        "for (const s of ['tbody tr:nth-child(n+4)', '.claim:nth-of-type(n+4)'])"
        " for (const one of document.querySelectorAll(s)) one.remove()"
    )
    found = Axe().run(page)
    told = [(one["id"], one["nodes"][0]["html"]) for one in found.response["violations"]]
    assert told == []
    page.locator("#table-1-dispersion tbody a.n").first.click()
    assert page.locator("dialog").is_visible()
    found = Axe().run(page, context="dialog")
    assert [one["id"] for one in found.response["violations"]] == []


@pytest.mark.parametrize("width", [320, 390, 768])
def test_no_page_is_wider_than_its_screen(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # Seven points of a page 6.3 inches wide are ten pixels at this width.
    shown = page.evaluate("[...document.querySelectorAll('.figure img')].map(i => i.width)")
    assert min(shown) >= 640
    page.locator("#table-1-dispersion tbody a.n").first.click()
    box = page.locator("dialog").bounding_box()
    assert box
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width


def test_on_paper(page: Page) -> None:
    made = page.pdf(prefer_css_page_size=True)
    runs = page.locator("#runs .run-name").count()
    assert 5 <= len(re.findall(rb"/Type\s*/Page\b", made)) <= 20 * runs
    page.set_viewport_size({"width": 680, "height": 960})  # A4 less its margins, at 96 dpi
    page.emulate_media(media="print")
    for hidden in ("nav", ".theme", ".data-of-figure", ".source"):
        assert not page.locator(hidden).first.is_visible()
    notes = page.locator(".finding .endnote").all_inner_texts()
    assert notes
    shown = page.locator(".claim.noted .endnote").all_inner_texts()
    assert set(notes) <= set(shown)
    assert shown == [str(number) for number in range(1, len(shown) + 1)]
    assert not page.locator(".claim:not(.noted)").first.is_visible()
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 700  # wider than the paper, all of it would be scaled down


def test_without_scripts(browser: Browser, shipped: Path) -> None:
    watched = opened(browser, shipped, java_script_enabled=False, color_scheme="light")
    page = watched.page
    page.locator("fieldset").get_by_label("dark", exact=True).check()
    page.locator("#table-1-dispersion tbody a.n").nth(1).click()
    assert "#claim-" in page.url
    assert page.locator(".trace:target").is_visible()
    assert page.locator("th button").count() == 0
    page.context.close()


@pytest.mark.parametrize("scripts", [True, False])
def test_findings_are_titles_until_one_is_opened_or_linked_to(
    browser: Browser, shipped: Path, scripts: bool
) -> None:
    watched = opened(browser, shipped, java_script_enabled=scripts, reduced_motion="reduce")
    page = watched.page
    titles, bodies = page.locator(".finding .title"), page.locator(".finding .prose")
    assert titles.count() > 1
    assert all(one.is_visible() for one in titles.all())
    assert not any(one.is_visible() for one in bodies.all())
    first, second = (page.locator(".finding").nth(place) for place in (0, 1))
    first.locator("summary").click()
    assert first.locator(".prose").first.is_visible()
    id_ = second.locator("[id]").first.get_attribute("id")
    page.goto(f"{shipped.as_uri()}#{id_}")
    assert second.locator(".prose").first.is_visible()
    title = second.locator(".title").bounding_box()
    assert title
    assert title["y"] >= 0
    page.emulate_media(media="print")
    assert all(one.is_visible() for one in (*titles.all(), *bodies.all()))
    page.context.close()


def test_hostile_records_do_nothing(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = Shape(fail_last=True, void_first_window=True, edit=hostile)
    make_run(tmp_path / "data" / "run-1", hostile_plan(), shape)
    monkeypatch.setenv("KIT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("KIT_OUT", str(tmp_path / "build"))
    assert main(["report"]) == 0
    watched = opened(browser, tmp_path / "build" / "report.html")
    page = watched.page
    assert page.locator("img[src=x]").count() == 0
    cell = page.locator("td.why").filter(has_text="onerror").first
    assert HOSTILE in cell.inner_text()
    page.locator("#unused summary").first.click()
    page.locator("#unused a.n").first.click()
    assert page.locator("dialog").is_visible()
    page.context.close()
    assert watched.heard == []
    assert len([url for url in watched.asked if not url.startswith("data:")]) == 1


def test_a_synthetic_run_is_told_on_every_screen(
    browser: Browser,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    demo = tmp_path / "build" / "demo" / "records"
    run = make_run(demo / "run-1", small_plan(), Shape(synthetic=True))
    monkeypatch.setenv("KIT_OUT", str(tmp_path / "build"))
    assert main(["report", "run-1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    file = Path(told["file"])
    assert file == tmp_path / "build" / "demo" / "report.html"
    assert told["bytes"] == file.stat().st_size
    first = file.read_bytes()
    assert main(["report", str(run.path)]) == 0
    assert file.read_bytes() == first
    watched = opened(browser, file)
    page = watched.page
    assert page.title().startswith("SYNTHETIC")
    mark = "getComputedStyle(document.body, '::before')"
    assert page.evaluate(f"{mark}.content") == '"SYNTHETIC"'
    assert page.evaluate(f"{mark}.position") == "fixed"  # on every screen, and every sheet
    assert all("SYNTHETIC" in text for text in page.locator(".figure h3").all_inner_texts())
    page.context.close()
    assert watched.heard == []


def test_a_run_that_has_not_ended_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "data" / "run-1", small_plan(), Shape(seal=False))
    monkeypatch.setenv("KIT_DATA", str(tmp_path / "data"))
    assert main(["report", str(run.path)]) == UnknownRunError.exit_code
    assert main(["report"]) == UnknownRunError.exit_code
