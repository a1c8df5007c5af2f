"""How much replies depend on their prompts: by hand, by invariants, and in a round."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from toy_round import run, small_round, turns_of, untimed

from hgrpo.games.base import Task
from hgrpo.learning.batch import SampledSequence, training_sequences
from hgrpo.learning.checkpoints import write_state
from hgrpo.learning.collapse import (
    chance,
    collapse_metrics,
    distinct,
    draw,
    draw_turn,
    information,
    marginal,
    measure,
    pair_of,
    retrieval,
)
from hgrpo.learning.round_outputs import write_round
from hgrpo.learning.settings import CollapseConfig
from hgrpo.learning.stops import RewardCollapse, StopConfig
from hgrpo.trajectories.log_row import in_summary
from hgrpo.trajectories.trajectory import Trajectory, Turn

LN2, LN3 = np.log(2), np.log(3)
finite = st.floats(-200, 0)


@st.composite
def matrices(draw):
    """A matrix [n, N] of log-probs and each row's own column."""
    rows, columns = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    logprobs = draw(arrays(np.float64, (rows, columns), elements=finite))
    column = draw(arrays(np.int64, rows, elements=st.integers(0, columns - 1)))
    return logprobs, column


def test_two_replies_by_hand():
    # Reply 0 has probability 1/2 under its own prompt and 1/4 under the other; reply 1 has 1/8
    # under its own, prompt 1, and 1/8 under the other.
    logprobs = np.log([[1 / 2, 1 / 4], [1 / 8, 1 / 8]])
    numbers = collapse_metrics(logprobs, np.array([0, 1]), np.array([2, 3]))
    # Means over the prompts: (1/2 + 1/4) / 2 = 3/8, and (1/8 + 1/8) / 2 = 1/8.
    assert marginal(logprobs) == pytest.approx(np.log([3 / 8, 1 / 8]))
    # Own: ln 1/2 = -ln 2 and ln 1/8 = -3 ln 2; their mean is -2 ln 2.
    assert numbers["matched"] == pytest.approx(-2 * LN2)
    assert numbers["conditional_entropy"] == pytest.approx(2 * LN2)
    # (ln 3 - 3 ln 2 - 3 ln 2) / 2
    assert numbers["marginal"] == pytest.approx(LN3 / 2 - 3 * LN2)
    assert numbers["entropy"] == pytest.approx(3 * LN2 - LN3 / 2)
    # (ln(1/2 / 3/8) + ln(1/8 / 1/8)) / 2 = ln(4/3) / 2
    assert numbers["mutual_information"] == pytest.approx((2 * LN2 - LN3) / 2)
    # Reply 0 finds its prompt; the two prompts of reply 1 tie, which is half a hit.
    assert (numbers["retrieval_at_1"], numbers["chance_at_1"]) == (0.75, 0.5)
    assert (numbers["retrieval_at_2"], numbers["chance_at_8"]) == (1.0, 1.0)
    assert (numbers["pairs"], numbers["prompts"], numbers["tokens"]) == (2, 2, 2.5)
    assert numbers["information_bound"] == pytest.approx(LN2)
    # Per token, reply 0 has 2 tokens and reply 1 has 3: means of -ln 2 / 2, -ln 2 under prompts 0
    # and 1, and of -ln 2 under both.
    assert numbers["matched_per_token"] == pytest.approx((-LN2 / 2 - LN2) / 2)
    # exp(-ln 2 / 2) = sqrt(1/2), exp(-ln 2) = 1/2
    by_hand = (np.log((np.sqrt(1 / 2) + 1 / 2) / 2) + np.log(1 / 2)) / 2
    assert numbers["marginal_per_token"] == pytest.approx(by_hand)
    assert numbers["mutual_information_per_token"] == pytest.approx(-0.75 * LN2 - by_hand)
    assert numbers["conditional_entropy_per_token"] == pytest.approx(0.75 * LN2)
    assert numbers["entropy_per_token"] == pytest.approx(-by_hand)


@given(matrices())
def test_information_is_at_most_the_log_of_the_number_of_prompts(given_matrix):
    logprobs, column = given_matrix
    numbers = collapse_metrics(logprobs, column, np.full(len(column), 7))
    for end in ("", "_per_token"):
        assert numbers[f"mutual_information{end}"] <= numbers["information_bound"] + 1e-9
        difference = numbers[f"entropy{end}"] - numbers[f"conditional_entropy{end}"]
        assert numbers[f"mutual_information{end}"] == pytest.approx(difference, abs=1e-9)
    hits = [numbers[f"retrieval_at_{best}"] for best in (1, 2, 4, 8)]
    assert hits == sorted(hits) and hits[0] >= 0 and hits[-1] == 1


@given(arrays(np.float64, st.integers(1, 8), elements=finite), st.integers(1, 8), st.data())
def test_replies_that_fit_all_prompts_equally_tell_nothing(each, columns, data):
    logprobs = np.repeat(each[:, None], columns, axis=1)
    column = data.draw(arrays(np.int64, len(each), elements=st.integers(0, columns - 1)))
    assert information(logprobs, column)["mutual_information"] == pytest.approx(0, abs=1e-9)
    for best in (1, 2, 4, 8):
        assert retrieval(logprobs, column, best) == pytest.approx(chance(columns, best))


@given(matrices(), st.data())
def test_the_order_of_prompts_and_replies_changes_nothing(given_matrix, data):
    logprobs, column = given_matrix
    rows = data.draw(st.permutations(range(len(column))))
    columns = data.draw(st.permutations(range(logprobs.shape[1])))
    moved = np.argsort(columns)[column[rows]]
    counts = np.arange(1, len(column) + 1)
    numbers = collapse_metrics(logprobs[rows][:, columns], moved, counts[rows])
    assert numbers == pytest.approx(collapse_metrics(logprobs, column, counts), abs=1e-9)


@given(st.lists(st.sampled_from("abcd"), min_size=1))
def test_identical_prompts_become_one(prompts):
    different, column = distinct(prompts)
    assert len(set(different)) == len(different) == len(set(prompts))
    assert [different[place] for place in column] == prompts
    # Each reply fits its own prompt alone, so all are retrieved, however often a prompt comes.
    logprobs = np.where(np.arange(len(different)) == column[:, None], -1.0, -60.0)
    assert retrieval(logprobs, column, 1) == 1.0
    assert information(logprobs, column)["mutual_information"] == pytest.approx(
        np.log(len(different))
    )


MEASURED = {"collapse": CollapseConfig(pairs=8)}


def test_a_round_trains_the_same_bytes_with_and_without_the_measurement(imitator, tmp_path):
    written, rows = {}, {}
    for name, given_settings in (("plain", {}), ("measured", MEASURED)):
        play = small_round(imitator, tmp_path / name, steps_per_round=3, **given_settings)
        rows[name] = untimed(run(play))
        play.learner.policy.save_adapter(tmp_path / name / "adapter")
        write_state(play.learner.state(), tmp_path / name / "trainer_state.pt")
        turns_of(play)
        files = [tmp_path / name / file for file in ("turns.parquet", "sequences.parquet")]
        files += [*(tmp_path / name / "adapter").iterdir(), tmp_path / name / "trainer_state.pt"]
        written[name] = {file.name: file.read_bytes() for file in files}
    assert any(name.endswith(".safetensors") for name in written["plain"])
    assert written["plain"] == written["measured"]
    # The first and the last step are measured, and nothing else of their rows differs.
    measured = ["collapse_any_turn_matched" in row for row in rows["measured"]]
    assert measured == [True, False, True]
    rest = [
        {name: value for name, value in row.items() if not name.startswith("collapse")}
        for row in rows["measured"]
    ]
    assert rest == rows["plain"]


def test_a_round_says_what_it_measured(imitator, tmp_path):
    play = small_round(imitator, tmp_path / "a", **MEASURED)
    rows = run(play)
    assert rows[-1]["collapse_s"] > 0
    (tmp_path / "out/adapter").mkdir(parents=True)
    write_round(play, {}, {"parents": {"base": ""}}, tmp_path / "out")
    numbers = json.loads((tmp_path / "out/summary.json").read_bytes())["collapse"]
    assert numbers.keys() == {"first_turn", "any_turn"}
    first = numbers["first_turn"]
    assert first == in_summary(rows)["collapse"]["first_turn"]
    assert (first["pairs"], first["left_out"], first["thoughts"]) == (8, 0, 0)
    # All halls open with the same words, so a first reply can tell nothing.
    assert (first["prompts"], first["information_bound"], first["retrieval_at_1"]) == (1, 0, 1)
    assert first["mutual_information"] == 0 < first["conditional_entropy"]
    # What was opened before is part of a later prompt.
    assert numbers["any_turn"]["prompts"] > 1
    assert numbers["any_turn"]["mutual_information"] <= numbers["any_turn"]["information_bound"]


def played(play):
    """The trajectories of one step, and the round, whose policy is still the one that played."""
    groups, *_ = play._play(0, lambda: None)
    return [trajectory for group in groups for trajectory in group.trajectories]


def test_own_prompts_give_the_log_probs_with_which_replies_were_sampled(imitator, tmp_path):
    play = small_round(imitator, tmp_path / "a")
    learner, trajectories = play.learner, played(play)
    conversation = learner.policy.conversation
    pairs = [pair_of(t, turn, conversation) for t in trajectories for turn in t.turns]
    sums = [sum(turn.logprobs) for t in trajectories for turn in t.turns]
    numbers = measure(pairs, 10**6, learner.score)
    assert numbers["matched"] == pytest.approx(np.mean(sums), abs=1e-4)
    assert numbers["tokens"] * len(pairs) == sum(t.action_tokens for t in trajectories)
    # The matrix by hand, one sequence at a time, in place of distinct replies in micro-batches.
    prompts = list(dict.fromkeys(pair.prompt for pair in pairs))
    example = training_sequences(trajectories[:1])[0]
    assert learner.score([example])[0].shape == example.behaviour.shape

    def alone(prompt, z):
        ids = torch.tensor([[*prompt, *z]])
        with torch.no_grad():
            logits = learner.policy.causal_lm(ids).logits[0, len(prompt) - 1 : -1]
        return float(logits.double().log_softmax(1).gather(1, ids[0, len(prompt) :, None]).sum())

    by_hand = np.array([[alone(prompt, pair.z) for prompt in prompts] for pair in pairs])
    column = [prompts.index(pair.prompt) for pair in pairs]
    expected = information(by_hand, column)["mutual_information"]
    assert numbers["mutual_information"] == pytest.approx(expected, abs=1e-4)


def test_a_thought_is_scored_without_its_tags(imitator, tmp_path):
    play = small_round(imitator, tmp_path / "a")
    talk = play.learner.policy.conversation
    opening = talk.opening("a hall")
    parts = [talk.reply(text)[:-1] for text in ("<think>", "open door 1", "</think>open door 2")]
    task = Task("a", "", "", "")
    for reply, z, lead in (
        ([*parts[0], *parts[1], *parts[2], talk.end_id], parts[1], parts[0]),
        ([*parts[1], talk.end_id], [*parts[1], talk.end_id], []),
        (parts[1], parts[1], []),
    ):
        span = (len(opening), len(opening) + len(reply))
        turn = Turn("", "", span, 0.0, 0.0, True, False, reply)
        one = Trajectory(task, 0, token_ids=[*opening, *reply, 5], turns=[turn])
        pair = pair_of(one, turn, talk)
        assert (pair.prompt, pair.lead, pair.z) == (tuple(opening), tuple(lead), tuple(z))
        assert pair.thought == bool(lead)
        numbers = measure([pair], 10**6, play.learner.score)
        assert (numbers["thoughts"], numbers["tokens"]) == (int(bool(lead)), len(z))
        # The lead is a part of what is given.
        given_tokens = SampledSequence(
            [*opening, *lead, *z], [(len(opening) + len(lead), len(opening) + len(lead) + len(z))]
        )
        (by_hand,) = play.learner.score([given_tokens])
        assert numbers["matched"] == pytest.approx(float(by_hand.sum()), abs=1e-5)


def test_pairs_that_do_not_fit_the_context_are_left_out_and_counted(imitator, tmp_path):
    play = small_round(imitator, tmp_path / "a")
    pairs = [
        pair_of(t, turn, play.learner.policy.conversation) for t in played(play) for turn in t.turns
    ]
    most = max(len(pair.z) for pair in pairs)
    shortest = min(len(pair.prompt) for pair in pairs)
    short = sum(len(pair.prompt) == shortest for pair in pairs)
    assert 0 < short < len(pairs)
    numbers = measure(pairs, shortest + most, play.learner.score)
    assert (numbers["pairs"], numbers["left_out"]) == (short, len(pairs) - short)
    nothing = measure(pairs, most, play.learner.score)
    assert nothing == {"pairs": 0, "left_out": len(pairs), "thoughts": 0}


def test_the_draw_does_not_depend_on_the_order_of_play(imitator, tmp_path):
    trajectories = played(small_round(imitator, tmp_path / "a"))
    few = draw(trajectories, 5, (1, 1, 0))
    assert len(few) == 5 and few == draw(trajectories[::-1], 5, (1, 1, 0))
    assert few == draw(trajectories, 7, (1, 1, 0))[:5]
    assert len(draw(trajectories, 99, (1, 1, 0))) == len(trajectories)
    assert few != draw(trajectories, 5, (2, 1, 0))
    assert len({(t.task.task_id, t.rollout) for t in draw(trajectories, 16, (1, 1, 0))}) == 16
    long = next(t for t in trajectories if len(t.turns) == 2)
    drawn = [long.turns.index(draw_turn(long, (seed, 1, 0))) for seed in range(200)]
    # 200 draws of two turns: the share is within 0.15, over four deviations, of a half.
    assert abs(np.mean(drawn) - 0.5) < 0.15


def test_the_step_at_which_a_run_stops_is_measured(imitator, tmp_path):
    stops = StopConfig(reward_collapse=RewardCollapse(window=2, floor=9.0))
    play = small_round(imitator, tmp_path / "a", steps_per_round=6, stops=stops, **MEASURED)
    rows = run(play)
    assert play.learner.stop.over
    assert ["collapse_any_turn_matched" in row for row in rows] == [True, False, False, True]
