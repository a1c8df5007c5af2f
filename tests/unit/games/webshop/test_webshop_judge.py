"""The offline rubric for WebShop, line by line."""

import hashlib
import itertools
import json
from collections import Counter

import pytest

from hgrpo.games.webshop import assets
from hgrpo.games.webshop.env import WebshopEnv
from hgrpo.games.webshop.judge import JUDGE_TEXT
from hgrpo.games.webshop.settings import CatalogueSettings, WebshopSettings
from hgrpo.games.webshop.shopper import oracle

GOAL = "Find me leak proof travel mugs with color: red, and price lower than 30.00 dollars"
# Wanted: leak proof travel mugs red. "with" and "color" belong to any instruction.
START = f"WebShop [SEP] Instruction: [SEP] {GOAL} [SEP] Search"
RESULTS = (
    "Back to Search [SEP] Page 1 (Total results: 2) [SEP] Next > [SEP] B0A [SEP] Leak Proof Travel "
    "Box [SEP] $5.0 [SEP] B0B [SEP] Clay Pot [SEP] $50.0"
)


def item(price="$5.0", title="Leak Proof Travel Box"):
    return (
        f"Back to Search [SEP] < Prev [SEP] color [SEP] red [SEP] blue [SEP] {title} [SEP] "
        f"Price: {price} [SEP] Rating: N.A. [SEP] Description [SEP] Buy Now"
    )


# In `text_rich` a choice shows; in `text` the page stays as it was.
CHOSEN = "You have clicked red. [SEP] " + item()
BLUE = "You have clicked blue. [SEP] " + item()


def judged(goal, turns, completed=False):
    return JUDGE_TEXT.score(goal, turns, completed)


def score(page, action, result, completed=False):
    """Score of the first of two turns."""
    return judged(GOAL, [(page, action), (result, "end")], completed)[0]


@pytest.mark.parametrize(
    ("page", "action", "result", "expected"),
    [
        (START, "nonsense", START, 0),
        (START, "search[box]", START, 0),
        (START, "think[of mugs]", RESULTS, 0),
        # The best title holds 3 of 5 wanted words.
        (START, "search[box]", RESULTS, 2 + 6 * 3 / 5),
        # Words of the instruction that the page repeats do not count as a match.
        (START, "search[box]", f"Instruction: [SEP] {GOAL} [SEP] B0 [SEP] Pot", 2),
        # A product's page: leak, proof, travel, and red among its options.
        (RESULTS, "click[B0A]", item(), 2 + 6 * 4 / 5 + 1),
        (RESULTS, "click[b0b]", item("$50.0", "Clay Pot"), 2 + 6 * 1 / 5 - 1),
        (RESULTS, "click[b0b]", item("$25.0 to $50.0", "Clay Pot"), 2 + 6 * 1 / 5 + 1),
        # A price without digits does not exceed the limit.
        (RESULTS, "click[b0b]", item("$..", "Clay Pot"), 2 + 6 * 1 / 5 + 1),
        (item(), "click[red]", CHOSEN, 9),
        (item(), "click[blue]", BLUE, 2),
        (item(), "click[red]", item(), 9),
        (item(), "click[blue]", item(), 2),
        # Clicks on the option's name, which the instruction contains too, and on no option.
        (item(), "click[color]", item(), 2),
        (item(), "click[leak proof travel box]", item(), 0),
        (item(), "click[green]", item(), 0),
        (RESULTS, "click[red]", RESULTS, 0),
        (RESULTS, "click[next >]", RESULTS.replace("Page 1", "Page 2"), 3),
        (item(), "click[description]", "Back to Search [SEP] < Prev [SEP] A box.", 3),
        (item(), "click[< prev]", RESULTS, 2),
        (RESULTS, "click[Back to Search]", START, 2),
    ],
)
def test_effects(page, action, result, expected):
    assert score(page, action, result) == pytest.approx(expected)


def test_the_last_turn():
    def last(action, completed=False, page=None):
        return judged(GOAL, [(page or item(), action)], completed)[-1]

    assert last("click[buy now]", completed=True) == 10
    assert last("click[buy now]") == pytest.approx(3 + 5 * 4 / 5)
    assert last("click[< prev]") == 2
    assert last("nothing") == 0


def test_a_repetition_scores_1():
    turns = [(START, "search[box]"), (RESULTS, "click[back to search]"), (START, "search[box]")]
    scores = judged(GOAL, [*turns, (RESULTS, "end")])
    assert scores[:3] == [pytest.approx(5.6), 2, 1]


def test_an_option_chosen_twice_scores_1_and_at_the_end_9():
    turns = [(item(), "click[red]"), (item(), "click[red]"), (item(), "click[red]")]
    assert judged(GOAL, turns) == [9, 1, 1]
    assert judged(GOAL, turns[:1]) == [9]


@pytest.mark.parametrize("observation", ["text", "text_rich"])
def test_every_option_that_the_oracle_chooses_is_seen(tmp_path, observation):
    """On pages of the real engine, in both renderings."""
    catalogue = CatalogueSettings(products=60, option_names=(1, 2))
    config = WebshopSettings(
        name="webshop",
        observation=observation,
        products={"generate": catalogue},
        panels={"test": 20, "validation": 2},
    )
    tasks = [task for split, task in assets.make(config, 3, tmp_path, Counter()) if split == "test"]
    env = WebshopEnv(tmp_path, config)
    chosen = 0
    for task in tasks:
        seen = env.reset(task)
        turns, step = [], None
        while step is None or not step.done:
            page, action = (step.observation if step else seen).text, oracle(env.session)
            step = env.step(action)
            turns.append((page, action))
        scores = judged(seen.goal, turns, completed=True)
        for (_, action), score in zip(turns[2:-1], scores[2:-1], strict=True):
            assert score == 9, (seen.goal, action)
            chosen += 1
    assert chosen > 10


def test_a_goal_without_words_of_its_own():
    assert score(START, "search[x]", RESULTS) > 0
    assert judged("find me some", [(START, "search[x]"), (RESULTS, "e")])[0] == 2


def test_other_scores_are_another_version():
    """All visits of three of these turns, lost and won, score as the version's note says."""
    pages = [START, RESULTS, item(), CHOSEN]
    actions = ["nonsense", "search[box]", "click[b0a]", "click[red]", "click[color]"]
    actions += ["click[next >]", "click[description]", "click[buy now]"]
    turns = list(itertools.product(pages, actions))
    table = [
        judged(GOAL, [first, second, (page, "click[buy now]")], completed)
        for first, second in itertools.product(turns, repeat=2)
        for page in (START, item())
        for completed in (False, True)
    ]
    digest = hashlib.sha256(json.dumps(table).encode()).hexdigest()[:16]
    known = {"4e1d479b306dc7a1": "3ab47aafefbd5d1e"}
    assert known.get(JUDGE_TEXT.rubric_version) == digest, (
        "cached scores would be wrong: change rubric_version, and note its digest here"
    )
