"""Single trajectories in a real browser: quick filters, safe texts, legible on a phone."""

import os

import numpy as np
import pytest
from browser import chromium, contrast, open_page

from hgrpo.report.viewer import ALL_ARMS, render

pytestmark = pytest.mark.slow

LABELS = {f"Arm{number}": f"arm {number}" for number in range(8)}
FILTERS = ("arm", "seed", "round", "type", "outcome", "truth", "text", "order", "colour")
HOSTILE = "</script><img src=x onerror=\"document.title='attacked'\"><b>bold</b> $x$ 中文 \u202eabc"
# Sets a control, lets the page answer, and returns the milliseconds until the list is laid out.
ANSWER = """
const [name, value] = arguments;
const control = document.getElementById('filters').elements[name];
control.value = value;
const began = performance.now();
control.dispatchEvent(new Event('input', {bubbles: true}));
document.body.getBoundingClientRect();
list.lastElementChild?.getBoundingClientRect();
return [performance.now() - began, matching.length,
  document.getElementById('count').textContent, detail.textContent.slice(0, 200)];
"""
SMALL_LETTERS = """
return [...document.querySelectorAll('body *')].filter(e => e.checkVisibility()
  && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())
  && parseFloat(getComputedStyle(e).fontSize) < 14)
.map(e => [e.tagName, e.textContent.slice(0, 40)])
"""
# Controls that are narrower than their longest choice, and so would cut its words.
CUT = """
return [...document.querySelectorAll('select')].filter(e => e.checkVisibility()).map(e => {
  const given = e.offsetWidth;
  e.style.width = 'max-content';
  e.style.maxWidth = 'none';
  const needed = e.offsetWidth;
  e.style.width = e.style.maxWidth = '';
  return [e.name, given, needed];
}).filter(([, given, needed]) => given < needed)
"""
TINTED = """
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const paper = getComputedStyle(document.body).backgroundColor;
return [...document.querySelectorAll('td.value, .key + span, .muted, .seen, .disputed')].map(e => {
  for (const colour of [paper, getComputedStyle(e).backgroundColor]) {
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
  }
  const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
  return [getComputedStyle(e).color, `rgb(${r}, ${g}, ${b})`, e.textContent.slice(0, 40)];
})
"""


def entries(number=500):
    """Trajectories as a study has them: 10 to 50 turns, of one arm or of all, some with truth."""
    rng = np.random.default_rng(0)
    return [_entry(index, rng) for index in range(number)]


def _entry(index, rng):
    length = int(rng.integers(10, 50))
    arms = list(LABELS) if index % 5 == 0 else [f"Arm{index % 8}"]

    def values():
        return [float(f"{value:.4g}") for value in rng.normal(size=length)]

    seen = (
        "On the sidetable 1, you see a mug 2, a pen 1 and a newspaper 3. You carry a cloth 1. " * 3
    )
    return {
        "seed": (11, 23, 31)[index % 3],
        "round": 1 + index % 5,
        "task": f"game_{index // 4:04d}",
        "type": ("pick", "clean", "heat", "look")[index % 4],
        "rollout": index % 4,
        "goal": f"put a clean mug {index} in the coffee machine",
        "return": float(index % 2),
        "outcome": ("failure", "success", "cut off")[index % 3],
        "final": "You win.",
        "truth": values() if index % 10 == 0 else None,
        "credit": {arm: values() for arm in arms},
        "advantage": {arm: values() for arm in arms},
        "logprob": {ALL_ARMS: [-abs(value) for value in values()]},
        "turns": [
            {
                "observation": seen,
                "action": f"go to sidetable {turn}",
                "admissible": turn % 7 > 0,
                "reward": float(turn == length - 1),
                "progress": turn / length,
            }
            for turn in range(length)
        ],
    }


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("viewer") / "index.html"
    path.write_text(render("bakeoff", entries(), LABELS), encoding="utf-8")
    return path


@pytest.fixture
def browser(tmp_path):
    with chromium(tmp_path) as chrome:
        yield chrome


def keep_screenshot(browser, name):
    if folder := os.environ.get("HGRPO_SCREENSHOTS"):
        browser.save_screenshot(f"{folder}/viewer-{name}.png")


def unfold(browser, is_open):
    """Show or hide the filters. The page's own `fold` is a function, not the element."""
    browser.execute_script("document.getElementById('fold').open = arguments[0]", is_open)


def test_every_filter_answers_at_once(browser, page):
    open_page(browser, page, 1280)
    options = browser.execute_script(
        "return Object.fromEntries([...document.getElementById('filters').elements]"
        ".filter(e => e.options).map(e => [e.name, [...e.options].map(o => o.value)]))"
    )
    options["text"] = ["mug 17", "sidetable", "no such words", ""]
    assert set(options) == set(FILTERS)
    slowest = {}
    for name in FILTERS:
        answers = [browser.execute_script(ANSWER, name, value) for value in options[name]]
        slowest[name] = max(spent for spent, *_ in answers)
        for value, (_, length, count, _) in zip(options[name], answers, strict=True):
            assert count == f"{length} of 500 trajectories"
            everything = not value or name in ("order", "colour")
            assert (length == 500) == (everything or (name, value) == ("text", "sidetable"))
        browser.execute_script(ANSWER, name, options[name][0] if name != "text" else "")
    seconds = ", ".join(f"{name} {spent:.0f}" for name, spent in slowest.items())
    print(f"{page.stat().st_size / 1e6:.1f} MB; slowest answers in ms: {seconds}")
    assert max(slowest.values()) < 2000
    assert browser.get_log("browser") == []


def test_an_empty_filter_says_so_and_is_undone(browser, page):
    open_page(browser, page, 1280)
    _, length, count, detail = browser.execute_script(ANSWER, "text", "no such words")
    assert (length, count) == (0, "0 of 500 trajectories")
    assert detail == "No trajectory matches these filters."
    assert browser.execute_script("return list.children.length") == 0
    browser.find_element("css selector", "button[type=reset]").click()
    _, length, _, detail = browser.execute_script(ANSWER, "text", "")
    assert length == 500 and "put a clean mug 0" in detail


def test_the_keyboard_and_a_link_lead_to_a_trajectory(browser, page):
    open_page(browser, page, 1280)
    browser.find_element("css selector", "body").send_keys("jj")
    assert browser.current_url.endswith("#2")
    browser.execute_script(ANSWER, "arm", "Arm3")
    browser.refresh()
    assert (
        browser.find_element("css selector", "h2").text == "put a clean mug 2 in the coffee machine"
    )
    assert browser.get_log("browser") == []


# What a reader of the first trajectory is told about the turn that arms disagree about.
DISPUTED = """
const row = document.getElementById('disputed');
const box = row?.getBoundingClientRect();
return [
  [...document.querySelectorAll('#detail tbody tr')].indexOf(row),
  row?.querySelector('th .disputed').textContent,
  [...document.querySelectorAll('#detail .steps button')].map(e => e.textContent).at(-1),
  row === document.activeElement && box.top >= 0 && box.bottom <= innerHeight,
  document.querySelectorAll('.disputed').length,
]
"""


@pytest.mark.parametrize("width", [390, 1280])
def test_the_turn_about_which_arms_disagree_is_marked_in_words(browser, tmp_path, width):
    """Less its mean and scaled, credit of turn 18 is 1 by one arm and -1 by the other."""
    one, alone, agreed = entries(3)
    length = len(one["turns"])
    assert length > 20
    flat = [0.0] * length
    up, down = (flat[:17] + [sign] + flat[18:] for sign in (1.0, -0.5))
    one["credit"] = {"Arm0": up, "Arm1": down}
    alone["credit"] = {"Arm0": [float(n) for n in range(len(alone["turns"]))]}
    agreed["credit"] = {arm: [0.25] * len(agreed["turns"]) for arm in ("Arm0", "Arm1")}
    path = tmp_path / "index.html"
    path.write_text(render("bakeoff", [alone, agreed, one], LABELS), encoding="utf-8")
    open_page(browser, path, width)
    # One arm, or arms that agree: nothing is marked.
    for _ in (alone, agreed):
        place, words, *_, marked = browser.execute_script(DISPUTED)
        assert (place, words, marked) == (-1, None, 0)
        browser.find_element("css selector", "body").send_keys("j")
    # Sorted by disagreement, the third comes first.
    browser.execute_script(ANSWER, "order", "disagree")
    assert browser.find_element("css selector", "h2").text == one["goal"]
    notes = [17, "arms disagree most here", "Arms disagree most about turn 18"]
    assert browser.execute_script(DISPUTED) == [*notes, False, 1]
    browser.execute_script(
        "document.querySelector('#detail .steps:not(:first-child) button').click()"
    )
    assert browser.execute_script(DISPUTED) == [*notes, True, 1]
    keep_screenshot(browser, f"disputed-{width}")
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("width", [390, 1280])
def test_no_control_cuts_the_words_of_its_choices(browser, tmp_path, width):
    labels = LABELS | {"Arm3": "TurnRD v2 + CF, spread over rounds"}
    played = [one | {"type": f"{one['type']}_then_place_in_recep"} for one in entries(40)]
    path = tmp_path / "index.html"
    path.write_text(render("bakeoff", played, labels), encoding="utf-8")
    open_page(browser, path, width)
    unfold(browser, True)
    keep_screenshot(browser, f"controls-{width}")
    assert browser.execute_script("return filters.elements.order.checkVisibility()")
    assert browser.execute_script(CUT) == []
    content = browser.execute_script("return document.documentElement.scrollWidth")
    assert content <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_is_legible(browser, page, width, scheme):
    open_page(browser, page, width, scheme)
    for colour in ("logprob", "credit"):
        browser.execute_script(ANSWER, "colour", colour)
        # On a phone the filters are folded at first.
        unfold(browser, width > 500 or colour == "credit")
        keep_screenshot(browser, f"{colour}-{width}-{scheme}")
        content, room = browser.execute_script(
            "const root = document.documentElement; return [root.scrollWidth, root.clientWidth]"
        )
        assert content <= room == width
        assert browser.execute_script(SMALL_LETTERS) == []
        cells = browser.execute_script(TINTED)
        assert len(cells) > 10
        for ink, paper, text in cells:
            assert contrast(ink, paper) >= 4.5, (text, ink, paper)
    assert browser.get_log("browser") == []


def test_every_text_stays_text(browser, tmp_path):
    (one,) = entries(1)
    one |= {"goal": HOSTILE, "task": HOSTILE, "type": HOSTILE, "final": HOSTILE}
    one["turns"][0] |= {"observation": HOSTILE, "action": HOSTILE}
    labels = dict.fromkeys(LABELS, HOSTILE)
    path = tmp_path / "index.html"
    path.write_text(render(HOSTILE, [one], labels), encoding="utf-8")
    open_page(browser, path, 1280)
    assert browser.title.startswith("</script><img") and "attacked" in browser.title
    assert browser.execute_script("return document.querySelectorAll('img, b').length") == 0
    assert browser.execute_script("return detail.textContent").count(HOSTILE) >= 4
    assert browser.get_log("browser") == []


def test_a_page_with_little_on_it_stands(browser, tmp_path):
    """One round of one arm without credit."""
    (one,) = entries(1)
    length = len(one["turns"])
    one |= {name: {"Arm0": [None] * length} for name in ("credit", "advantage")} | {"truth": None}
    path = tmp_path / "index.html"
    path.write_text(render("small", [one], {"Arm0": "arm"}), encoding="utf-8")
    open_page(browser, path, 390)
    keep_screenshot(browser, "small")
    assert "There is no credit for this trajectory." in browser.execute_script(
        "return detail.textContent"
    )
    # Words, order and colour; the other filters have one value.
    visible = "return [...document.querySelectorAll('label')].filter(e => !e.hidden).length"
    assert browser.execute_script(visible) == 3
    assert browser.get_log("browser") == []
