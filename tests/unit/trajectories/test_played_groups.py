"""A round read back from its files is the round that was played."""

import dataclasses

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hall import hall_collector
from tiny_policy import hall_tasks, make_policy

from hgrpo.errors import UserError
from hgrpo.trajectories.played_groups import read_groups
from hgrpo.trajectories.store import concatenate, sequence_table, turn_table, write_table
from hgrpo.trajectories.trajectory import FinalState

TASKS = hall_tasks(6)
INFINITE = np.full(32, np.inf, dtype=np.float16).tobytes()


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    """Two steps of three groups of four, with every stored field filled in."""
    policy = make_policy(tmp_path_factory.mktemp("base"))
    collector = hall_collector(policy, capacity=8, embeddings=True)
    rng = np.random.default_rng(0)
    played = []
    for step in range(2):
        # Backwards in the second step, and one task again: the order of play is not the panel's.
        tasks = TASKS[:3] if step == 0 else TASKS[4:1:-1]
        groups = collector.collect(tasks, 4, ("cached", step))
        for trajectory in (trajectory for group in groups for trajectory in group):
            trajectory.goal_embedding = rng.normal(size=32).astype(np.float32)
            trajectory.success = bool(rng.integers(2))
            trajectory.final = FinalState("Nothing happens.", f"state {rng.integers(9)}", "")
            for turn in trajectory.turns:
                turn.env_reward, turn.progress = float(rng.normal()), float(rng.normal())
                turn.state, turn.commands = f"state {rng.integers(9)}", f"c{rng.integers(9)}"
                turn.credit, turn.advantage = float(rng.normal()), float(rng.normal())
                turn.target = float(rng.normal()) if rng.integers(2) else None
        played.append(groups)
    # One trajectory without a turn, one without embeddings.
    empty, bare = played[0][1][2], played[1][0][0]
    empty.turns = []
    bare.goal_embedding = bare.final = None
    for turn in bare.turns:
        turn.embedding = None
    return played


@pytest.fixture
def folder(steps, tmp_path):
    """The round as `rl_round` writes it."""
    for name, table in (("turns", turn_table), ("sequences", sequence_table)):
        parts = []
        for step, groups in enumerate(steps):
            flat = [trajectory for group in groups for trajectory in group]
            parts.append(tmp_path / f"{name}_{step}.parquet")
            write_table(table(flat, 3, step), parts[-1])
        concatenate(parts, tmp_path / f"{name}.parquet")
    return tmp_path


def stored(trajectory):
    """A trajectory as far as a file holds it, in plain types."""

    def half(vector):
        return None if vector is None else np.asarray(vector).astype(np.float16).tolist()

    turns = [
        vars(turn)
        | {"overlong": None, "embedding": half(turn.embedding), "span": list(turn.span)}
        | {"logprobs": np.float32(turn.logprobs).tolist()}
        for turn in trajectory.turns
    ]
    return vars(trajectory) | {
        "turns": turns,
        "goal_embedding": half(trajectory.goal_embedding),
        "context_overflow": None,
        "unread": None,
    }


def edit(folder, name, change):
    """Rewrite one of the two files with `change` applied to its rows."""
    path = folder / f"{name}.parquet"
    table = pq.read_table(path)
    write_table(pa.Table.from_pylist(change(table.to_pylist()), schema=table.schema), path)


def first(rows, **values):
    return [rows[0] | values, *rows[1:]]


def test_everything_comes_back_group_by_group(steps, folder):
    restored = read_groups(folder, TASKS)
    assert [(group.round, group.step) for group in restored] == [(3, 0)] * 3 + [(3, 1)] * 3
    expected = [group for groups in steps for group in groups]
    for group, played in zip(restored, expected, strict=True):
        assert [stored(t) for t in group.trajectories] == [stored(t) for t in played]
    assert {field.name for field in dataclasses.fields(restored[0].trajectories[0])} == set(
        stored(expected[0][0])
    )


def test_the_order_of_rows_does_not_matter_inside_a_group(steps, folder):
    for name in ("turns", "sequences"):
        edit(folder, name, lambda rows: rows[::-1])
    restored = read_groups(folder, TASKS)
    assert {(g.step, g.trajectories[0].task.task_id) for g in restored} == {
        (step, group[0].task.task_id) for step, groups in enumerate(steps) for group in groups
    }
    for group in restored:
        assert [t.rollout for t in group.trajectories] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("turns", lambda rows: rows[1:], "turns.parquet and sequences.parquet are complete"),
        (
            "turns",
            lambda rows: [*rows, rows[0]],
            "turns.parquet and sequences.parquet are complete",
        ),
        (
            "sequences",
            lambda rows: [*rows, rows[0]],
            "turns.parquet and sequences.parquet are complete",
        ),
        ("sequences", lambda rows: first(rows, behaviour_logprobs=[0.0]), "1 log-probs and turns"),
        ("sequences", lambda rows: first(rows, embeddings=b"123"), "3 bytes of embeddings"),
        ("sequences", lambda rows: first(rows, goal_embedding=INFINITE), "are not finite"),
        ("sequences", lambda rows: first(rows, env_return=float("nan")), "env_return is nan"),
        ("turns", lambda rows: first(rows, progress=float("inf")), "progress is inf"),
        ("turns", lambda rows: first(rows, credit=float("nan")), "a finite number or null was"),
    ],
)
def test_files_that_disagree_or_hold_no_numbers_are_named(folder, name, change, expected):
    edit(folder, name, change)
    with pytest.raises(UserError, match=expected) as caught:
        read_groups(folder, TASKS)
    assert str(folder) in str(caught.value)


def test_an_empty_round_is_an_error(folder):
    for name in ("turns", "sequences"):
        edit(folder, name, lambda rows: [])
    with pytest.raises(UserError, match="contains no trajectories"):
        read_groups(folder, TASKS)


def test_a_task_outside_the_panel_is_named(folder):
    with pytest.raises(UserError, match="hall-0-1 rollout 0: the panel does not contain this task"):
        read_groups(folder, TASKS[1:])


def test_a_task_with_another_content_is_named(folder):
    changed = dataclasses.replace(TASKS[0], content_hash="new")
    with pytest.raises(UserError, match="expected content hash hash-0, got new in the panel"):
        read_groups(folder, [changed, *TASKS[1:]])
