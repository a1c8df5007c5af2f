"""Where the thought is in a reply."""

import pytest

from hgrpo.agent.thought import find_thought


def find(*tokens):
    """The thought in a reply of these tokens, as the list of its tokens; None without one."""
    span = find_thought(range(len(tokens)), lambda ids: "".join(tokens[i] for i in ids))
    return span and list(tokens[slice(*span)])


@pytest.mark.parametrize(
    ("reply", "thought"),
    [
        (["open", " door"], None),
        ([], None),
        (["<think>", "why", "?", "</think>", "go"], ["why", "?"]),
        (["<th", "ink>", "why", "</", "think>", "go"], ["why"]),
        # The opening tag stands in the prompt.
        (["why", " not", "</think>", "<answer>", "Up", "</answer>"], ["why", " not"]),
        # The reply was cut while it thought, or before it answered.
        (["<think>", "why", " not"], ["why", " not"]),
        (["<think>", "why", "<answer>", "Up", "</answer>"], ["why"]),
        (["<think>", "say <answer>", " so", "</think>", "go"], ["say <answer>", " so"]),
        # Without tags of a thought, what stands before the answer.
        (["it is", " left", "<answer>", "Left", "</answer>"], ["it is", " left"]),
        (["<answer>", "Left", "</answer>"], None),
        (["<think>", "\n\n", "</think>", "go"], None),
        (["<think>", "</think>", "go"], None),
        # A token that holds a part of a tag is none of the thought's.
        (["<think", ">\n", "why", " not", "?</", "think>"], ["why", " not"]),
        (["<think>why</think>"], None),
    ],
)
def test_a_thought_is_what_stands_in_its_tags(reply, thought):
    assert find(*reply) == thought
