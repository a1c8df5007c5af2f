"""The page in a real browser: no console errors, every figure drawn, nothing cut without a word."""

import os

import pytest
from browser import chromium, contrast, open_page
from report_fixtures import build_report, shipped, write_study

pytestmark = pytest.mark.slow

# Seeds, and arms: those of the laptop study and the 17 of the plus study.
SHAPES = {
    "1 seed, 7 arms": ((11,), "bakeoff"),
    "3 seeds, 7 arms": ((11, 23, 31), "bakeoff"),
    "1 seed, 17 arms": ((11,), "bakeoff_plateau_plus"),
    "3 seeds, 17 arms": ((11, 23, 31), "bakeoff_plateau_plus"),
}
# Elements that are wider than their place, but for those that screen readers alone meet.
WIDER = """
return [...document.querySelectorAll('body *')].filter(e =>
  !e.closest('svg') && e.clientWidth > 1 && e.scrollWidth > e.clientWidth + 1
  && (e.closest('thead')?.clientWidth ?? 2) > 1)
.map(e => [e.matches('.scroll') && e.tabIndex === 0 && e.getAttribute('role') === 'region'
  && e.ariaLabel && parseFloat(getComputedStyle(e, '::before').height) > 10
  && getComputedStyle(e, '::before').content.includes('sideways'), e.tagName, e.className,
  e.textContent.trim().slice(0, 60)])
"""
COLUMNS = """
return [...document.querySelectorAll('.plots:not(.single)')].map(plots => {
  const ends = {}, boxes = [...plots.children].map(c => c.getBoundingClientRect());
  for (const box of boxes) ends[Math.round(box.left)] = box.bottom;
  return [...Object.values(ends), Math.max(...boxes.map(box => box.height))]})
"""
TEXT_OUTSIDE = """
return [...document.querySelectorAll('svg.plot')].flatMap(s => {
  const b = s.getBoundingClientRect();
  return [...s.querySelectorAll('text')].filter(t => {
    const r = t.getBoundingClientRect();
    return r.left < b.left - 2 || r.right > b.right + 2}).map(t => t.textContent)})
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Name of a shape -> its page, built once."""
    built = {}

    def of(shape):
        if shape not in built:
            seeds, arms = SHAPES[shape]
            options = {"rounds": 3, "steps": 4, "settings": shipped(arms)}
            study = write_study(tmp_path_factory.mktemp("browser"), seeds=seeds, **options)
            built[shape] = build_report(study)
        return built[shape]

    return of


@pytest.fixture
def browser(tmp_path):
    with chromium(tmp_path) as chrome:
        yield chrome


def open_report(browser, page, width, scheme):
    open_page(browser, page, width, scheme)
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_page_stands_in_a_browser(browser, pages, shape, width, scheme):
    open_report(browser, pages(shape), width, scheme)
    folder = os.environ.get("HGRPO_SCREENSHOTS")
    if folder:
        browser.save_screenshot(f"{folder}/{shape.replace(' ', '_')}-{width}-{scheme}.png")
    assert browser.get_log("browser") == []
    content, room, window = browser.execute_script(
        "const root = document.documentElement;"
        "return [root.scrollWidth, root.clientWidth, innerWidth]"
    )
    assert content <= room <= window == width
    wider = browser.execute_script(WIDER)
    assert [clipped for clipped in wider if not clipped[0]] == []
    assert (width == 390) <= bool(wider)  # the wide tables are there, and say that they scroll
    assert browser.execute_script(TEXT_OUTSIDE) == []
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('svg.plot')].map(s => {"
        "const b = s.getBoundingClientRect(), g = s.querySelector('g').getBBox();"
        "return [b.width, b.height, g.width, g.height]})"
    )
    seeds, arms = SHAPES[shape]
    assert len(sizes) == 10 + len(seeds) * (len(shipped(arms)) - 1)
    assert all(min(size) > 100 for size in sizes)


@pytest.mark.parametrize("shape", SHAPES)
def test_columns_of_figures_differ_by_less_than_a_figure(browser, pages, shape):
    open_report(browser, pages(shape), 1280, "light")
    columns = browser.execute_script(COLUMNS)
    assert len(columns) == 3
    for left, right, tallest in columns:
        assert abs(left - right) < tallest


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(browser, pages, scheme):
    """WCAG 2.1 AA, 4.5 to 1, for words on the paper; arm names in figures count as large, 2.5."""
    open_report(browser, pages("3 seeds, 7 arms"), 1280, scheme)
    pairs = browser.execute_script(
        "const paper = getComputedStyle(document.body).backgroundColor;"
        "const words = [...document.querySelectorAll('p, th, small, figcaption, .chip, a')];"
        "return words.map(e => [getComputedStyle(e).color, paper, e.textContent.trim()])"
    )
    assert len(pairs) > 100
    for colour, paper, text in pairs:
        assert contrast(colour, paper) >= 4.5, (text, colour, paper)
