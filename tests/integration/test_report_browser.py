"""The page in a real browser: no console errors, every figure drawn, nothing cut without a word."""

import os
import shutil

import pytest
from report_fixtures import build_report, shipped, write_study

pytestmark = pytest.mark.slow

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
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
return [...document.querySelectorAll('.plots:not(.single)')].map(plots =>
  [...plots.children].map(c => c.lastElementChild.getBoundingClientRect().bottom
    - plots.getBoundingClientRect().top))
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
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs the browser extra")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("needs chromium and chromedriver on the machine")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=driver)
    with webdriver.Chrome(options=options, service=service) as chrome:
        yield chrome


def open_page(browser, page, width, scheme):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )
    browser.get(page.as_uri())
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_page_stands_in_a_browser(browser, pages, shape, width, scheme):
    open_page(browser, pages(shape), width, scheme)
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
    assert [found for found in wider if not found[0]] == []
    assert (width == 390) <= bool(wider)  # the wide tables are there, and say that they scroll
    assert browser.execute_script(TEXT_OUTSIDE) == []
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('svg.plot')].map(s => {"
        "const b = s.getBoundingClientRect(), g = s.querySelector('g').getBBox();"
        "return [b.width, b.height, g.width, g.height]})"
    )
    seeds, arms = SHAPES[shape]
    assert len(sizes) == 9 + len(seeds) * (len(shipped(arms)) - 1)
    assert all(min(size) > 100 for size in sizes)


@pytest.mark.parametrize("shape", SHAPES)
def test_columns_of_figures_end_level(browser, pages, shape):
    open_page(browser, pages(shape), 1280, "light")
    columns = browser.execute_script(COLUMNS)
    assert len(columns) == 3
    for left, right in columns:
        assert abs(left - right) < 0.12 * max(left, right)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(browser, pages, scheme):
    """WCAG 2.1 AA, 4.5 to 1, for words on the paper; arm names in figures count as large, 2.5."""
    open_page(browser, pages("3 seeds, 7 arms"), 1280, scheme)
    pairs = browser.execute_script(
        "const paper = getComputedStyle(document.body).backgroundColor;"
        "const words = [...document.querySelectorAll('p, th, small, figcaption, .chip, a')];"
        "return words.map(e => [getComputedStyle(e).color, paper, e.textContent.trim()])"
    )
    assert len(pairs) > 100
    for colour, paper, text in pairs:
        assert contrast(colour, paper) >= 4.5, (text, colour, paper)


def contrast(one, other):
    """Contrast ratio of two CSS colours, rgb(r, g, b)."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    channels = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
