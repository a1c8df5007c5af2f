"""The sandbox's page in a browser: one file, no console error, readable on a phone."""

import json
import os
import re
from pathlib import Path

import pytest
from browser import chromium, contrast, open_page

from hgrpo.cli.sandbox_study import main
from hgrpo.workflow.sandbox_rules import SandboxRules

pytestmark = pytest.mark.slow

# One study with a margin, one with times and one that tests an inference.
STUDIES = ("influence", "dense_correction", "operating_points")
# Text that ends outside the window and that no scrolling element holds.
CUT = """
return [...document.querySelectorAll('p, li, h1, h2, h3, td, th, summary')].filter(e =>
  e.checkVisibility() && !e.closest('.scroll')
  && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.textContent.slice(0, 60))
"""
SMALL_LETTERS = """
return [...document.querySelectorAll('body *')].filter(e =>
  e.checkVisibility() && !e.closest('svg')
  && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())
  && parseFloat(getComputedStyle(e).fontSize) < 12)
.map(e => [e.tagName, e.textContent.slice(0, 40)])
"""
COLOURS = """
const paper = getComputedStyle(document.body).backgroundColor;
return [...document.querySelectorAll('p, li, th, td, a, small, figcaption')].filter(e =>
  e.textContent.trim()).map(e => [getComputedStyle(e).color, paper, e.textContent.slice(0, 40)])
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of a tiny pass over a few of the studies."""
    root = tmp_path_factory.mktemp("sandbox")
    rules = SandboxRules(Path(__file__).parents[2] / "configs/sandbox", str(root), tiny=True)
    for name in STUDIES:
        main(
            ["tiny", "--config", rules.job("tiny", name), "--output", str(root / "studies" / name)]
        )
    whole = rules.settings("page")
    some = whole | {"studies": {name: whole["studies"][name] for name in STUDIES}}
    main(["page", "--config", json.dumps(some), "--output", str(root / "sandbox.html")])
    return root / "sandbox.html"


@pytest.fixture
def browser(tmp_path):
    with chromium(tmp_path) as chrome:
        yield chrome


def open_sandbox(browser, page, width, scheme):
    open_page(browser, page, width, scheme)
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")


def test_the_page_is_one_file(page):
    text = page.read_text(encoding="utf-8")
    named = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert len(named) > len(STUDIES)
    assert [each for each in named if not each.startswith(("#", "https://", "data:"))] == []
    assert not re.search(r"<(script|link|img|iframe)[^>]*(src|href)=.http", text)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_stands_in_a_browser(browser, page, width, scheme):
    open_sandbox(browser, page, width, scheme)
    folder = os.environ.get("HGRPO_SCREENSHOTS")
    if folder:
        browser.save_screenshot(f"{folder}/sandbox-{width}-{scheme}.png")
    assert browser.get_log("browser") == []
    content, room = browser.execute_script(
        "const root = document.documentElement; return [root.scrollWidth, root.clientWidth]"
    )
    assert content <= room <= width
    assert browser.execute_script(CUT) == []
    assert browser.execute_script(SMALL_LETTERS) == []
    figures = browser.execute_script(
        "return [...document.querySelectorAll('svg.plot')].map(s => {"
        "const b = s.getBoundingClientRect(); return [b.width, b.height]})"
    )
    assert len(figures) >= 2 * len(STUDIES) - 2
    assert all(min(size) > 100 for size in figures)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(browser, page, scheme):
    """WCAG 2.1 AA: 4.5 to 1."""
    open_sandbox(browser, page, 1280, scheme)
    pairs = browser.execute_script(COLOURS)
    assert len(pairs) > 50
    assert [text for colour, paper, text in pairs if contrast(colour, paper) < 4.5] == []
