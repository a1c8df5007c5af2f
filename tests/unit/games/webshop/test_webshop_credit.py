"""Credit on shopping trips: what was written for one environment must hold in the other."""

from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer
from webshop_fixtures import write_shop

from hgrpo.agent.conversation import Conversation
from hgrpo.agent.tokenizer import train_tokenizer
from hgrpo.config.read import read_yaml
from hgrpo.credit.base import Context, Group, assign_all, make_assigner
from hgrpo.credit.kinds import CreditConfig
from hgrpo.games import streams
from hgrpo.games.kinds import load
from hgrpo.games.webshop.env import WebshopEnv
from hgrpo.rollout.collector import Collector
from hgrpo.rollout.engine import Completion, Request, Sampling

# What reads a policy is left out, because a walker has none. The oracle and exact credit are left
# out, because the shop does not know what a choice is worth.
CREDIT = {
    path.stem: credit
    for path in sorted(Path("configs/methods").glob("*.yaml"))
    if (credit := read_yaml(path).get("credit", {"kind": "flat"}))["kind"]
    not in {"turnrd", "oracle", "exact", "amortised", "entropy"}
    and path.stem not in {"BiPACE", "CounterfactualGated", "Vine", "VineShuffled"}
}
GRAPHS = [name for name, credit in CREDIT.items() if credit["kind"] == "state_graph"]
# Text on a page -> actions to draw from there; the first text that the page contains counts.
HABITS = {
    "buy now": ["click[blue]", "click[red]", "click[buy now]", "click[reviews]", "click[< prev]"],
    "total results": ["click[b0mug]", "click[b0pot]", "search[pot]"],
    "": ["search[mug]", "search[pot]", "search[mug pot]", "click[< prev]"],
}
TURN_CAP = 8
STREAM = ("train", 1, 1, 0)


class Walker:
    """An engine that draws from its `HABITS`."""

    capacity, max_length, sampling = 64, 1 << 20, Sampling(1.0, 64)

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._conversation = Conversation(tokenizer)
        self._requests: list[Request] = []

    def submit(self, request: Request) -> None:
        self._requests.append(request)

    def step(self) -> list[Completion]:
        requests, self._requests = self._requests, []
        return [self._reply(request) for request in requests]

    def release(self, conversation: int) -> None:
        pass

    def sleep(self) -> None:
        pass

    def _reply(self, request: Request) -> Completion:
        end = self._conversation.end_id
        start = (
            len(request.prefix) - 1 - request.prefix[::-1].index(end)
            if end in request.prefix
            else 0
        )
        page = self._tokenizer.decode(request.prefix[start:])
        habits = next(actions for text, actions in HABITS.items() if text in page)
        rng = streams.generator("walk", request.stream, len(request.prefix))
        tokens = self._conversation.reply(habits[rng.integers(len(habits))])
        return Completion(request.conversation, tokens, [0.0] * len(tokens), overlong=False)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop") / "assets"
    return folder, write_shop(folder)


@pytest.fixture(scope="module")
def collector(shop):
    folder, _ = shop
    tokenizer = train_tokenizer(list(HABITS), 400, load("webshop").cut)
    return Collector(
        Walker(tokenizer),
        Conversation(tokenizer),
        lambda: WebshopEnv(folder),
        TURN_CAP,
        max_reply_tokens=64,
    )


@pytest.fixture(scope="module")
def groups(shop, collector):
    _, tasks = shop
    played = collector.collect(tasks[1:], 48, STREAM)
    return [Group(group, (*STREAM, group[0].task.task_id)) for group in played]


@pytest.fixture
def build(collector, tmp_path):
    def make(name):
        context = Context("webshop", collector=collector, cache_dir=tmp_path)
        return make_assigner(CreditConfig(**CREDIT[name]), context)

    return make


def test_the_walks_are_worth_testing_with(groups):
    for group in groups:
        paid = [trajectory.env_return for trajectory in group.trajectories]
        assert paid.count(1.0) > 3
        assert 0.0 in paid
        assert any(trajectory.truncated for trajectory in group.trajectories)
        assert any(trajectory.inadmissible for trajectory in group.trajectories)
    assert any(0 < trajectory.env_return < 1 for trajectory in groups[1].trajectories)


@pytest.mark.parametrize("name", CREDIT)
def test_every_method_gives_every_turn_a_finite_credit(build, groups, name):
    credits = assign_all(build(name), groups)
    for group, credit in zip(groups, credits, strict=True):
        assert [len(row) for row in credit] == [len(t.turns) for t in group.trajectories]
    if CREDIT[name]["kind"] not in ("flat", "zero") and name != "RLOO":
        assert any(np.ptp(row) > 0 for credit in credits for row in credit)


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_favour_the_purchase_that_is_a_success(build, groups, name):
    """Over the group; one purchase alone may be worth less than the walk that led there."""
    for group in groups:
        bought: dict[bool, list[float]] = {True: [], False: []}
        for row, trajectory in zip(build(name).assign(group), group.trajectories, strict=True):
            if not trajectory.truncated:
                bought[trajectory.success].append(row[-1])
        assert np.mean(bought[True]) > np.mean(bought[False])


def test_counterfactual_credit_plays_the_shop_on(build, groups):
    """A purchase that pays 1 earns what a walker in its place would not have got."""
    assigner = build("Counterfactual")
    earned = [
        row[-1]
        for group in groups
        for row, trajectory in zip(assigner.verdicts(group), group.trajectories, strict=True)
        if trajectory.success and not np.isnan(row[-1])
    ]
    assert len(earned) > 3
    assert np.mean(earned) > 0.2
    assert assigner.report()["cf_branches"] > 0


def test_equal_tabs_of_two_products_are_two_situations(shop):
    """Both tabs of reviews are empty; what is bought from them is not the same."""
    folder, tasks = shop
    env, seen = WebshopEnv(folder), []
    for query, asin in (("mug", "b0mug"), ("pot", "b0pot")):
        env.reset(tasks[0])
        for action in (f"search[{query}]", f"click[{asin}]", "click[reviews]"):
            step = env.step(action)
        seen.append((step.observation.text, *env.situation()))
    (text, state, clicks), (other_text, other_state, other_clicks) = seen
    assert (text, clicks) == (other_text, other_clicks)
    assert state != other_state
