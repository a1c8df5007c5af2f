"""The page in a real browser: no console errors, every figure drawn, no sideways scrolling."""

import os
import shutil

import pytest
from report_fixtures import build_report, write_study

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
METHODS = ("SFTOnly", "flatGRPO", "Progressive", "RandomCredit", "LLMJudge", "TurnRDV2")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    root = tmp_path_factory.mktemp("browser")
    return build_report(write_study(root, METHODS, seeds=(11, 23), rounds=3))


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


@pytest.mark.parametrize(("width", "scheme"), [(375, "light"), (1280, "light"), (1280, "dark")])
def test_the_page_stands_in_a_browser(browser, page, width, scheme, tmp_path):
    open_page(browser, page, width, scheme)
    assert browser.get_log("browser") == []
    content, room, window = browser.execute_script(
        "const root = document.documentElement;"
        "return [root.scrollWidth, root.clientWidth, innerWidth]"
    )
    assert content <= room <= window == width
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('svg.plot')].map(s => {"
        "const b = s.getBoundingClientRect(), g = s.querySelector('g').getBBox();"
        "return [b.width, b.height, g.width, g.height]})"
    )
    assert len(sizes) == 7 + 5 * 2
    assert all(min(size) > 100 for size in sizes)
    folder = os.environ.get("HGRPO_SCREENSHOTS")
    if folder:
        browser.save_screenshot(f"{folder}/report-{width}-{scheme}.png")


def test_text_of_a_figure_is_inside_it(browser, page):
    """On a phone, with another font than the one that laid the figure out."""
    open_page(browser, page, 375, "light")
    outside = browser.execute_script(
        "return [...document.querySelectorAll('svg.plot')].flatMap(s => {"
        "const b = s.getBoundingClientRect();"
        "return [...s.querySelectorAll('text')].filter(t => {"
        "const r = t.getBoundingClientRect();"
        "return r.left < b.left - 2 || r.right > b.right + 2}).map(t => t.textContent)})"
    )
    assert outside == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(browser, page, scheme):
    """WCAG 2.1 AA, 4.5 to 1, for words on the paper; arm names in figures count as large, 2.5."""
    open_page(browser, page, 1280, scheme)
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
