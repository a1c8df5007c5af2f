"""Counts of calls, tokens and dollars, and caps."""

from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from judge_cases import account_of, failures, prompt_of, settings

from hgrpo.credit.judge.accounting import output_limit
from hgrpo.credit.judge.protocol import CallError, Usage

PROMPT = prompt_of(failures(1))
PRICED = {"dollars_per_million_input": 100.0, "dollars_per_million_output": 400.0}


@pytest.fixture(scope="module")
def new_account():
    """Accounts of studies that have spent nothing yet."""
    with TemporaryDirectory() as folder:
        numbers = count()
        yield lambda **changes: account_of(Path(folder, str(next(numbers))), **changes)


def test_tokens_and_dollars_are_those_of_the_answers(new_account):
    account = new_account(**PRICED)
    account.answered(account.begin(PROMPT, retry=False), Usage(1000, 50))
    account.answered(account.begin(PROMPT, retry=True), Usage(200, 10))
    account.settle(account.begin(PROMPT, retry=True), 0.0)
    report = account.report()
    assert (report["calls"], report["retries"]) == (3, 2)
    assert (report["input_tokens"], report["output_tokens"]) == (1200, 60)
    assert report["dollars"] == pytest.approx(0.12 + 0.024)
    assert report["dollars_unconfirmed"] == 0.0


def test_a_cap_of_zero_allows_nothing_and_null_everything(new_account):
    with pytest.raises(CallError):
        new_account(max_calls=0).begin(PROMPT, retry=False)
    with pytest.raises(CallError):
        new_account(max_dollars=0.0, **PRICED).begin(PROMPT, retry=False)
    new_account(max_dollars=0.0).begin(PROMPT, retry=False)  # at no price
    account = new_account(max_calls=None, max_dollars=None, **PRICED)
    for _ in range(6000):
        account.begin(PROMPT, retry=False)


def test_a_call_that_may_have_been_billed_stays_counted_against_the_cap(new_account):
    probe = new_account(**PRICED).begin(PROMPT, retry=False)
    account = new_account(max_dollars=1.5 * probe, **PRICED)
    account.answered(account.begin(PROMPT, retry=False), None)
    assert account.report()["dollars_unconfirmed"] == pytest.approx(probe)
    with pytest.raises(CallError) as caught:
        account.begin(PROMPT, retry=False)
    assert caught.value.reason == "dollar_cap"


def test_the_estimate_is_on_the_safe_side_of_the_rubric_s_own_count(new_account):
    size = sum(len(message["content"].encode()) for message in PROMPT.messages)
    usage = Usage(size // 4 + 1, output_limit(PROMPT, settings()))
    account = new_account(**PRICED)
    aside = account.begin(PROMPT, retry=False)
    account.answered(aside, usage)
    assert account.report()["dollars"] <= aside


@hypothesis_settings(max_examples=25)
@given(
    cap=st.floats(0, 3),
    ends=st.lists(st.sampled_from(["answered", "billed?", "refused", "pending"]), max_size=30),
)
def test_the_dollar_cap_is_never_passed(new_account, cap, ends):
    account = new_account(max_dollars=cap, **PRICED)
    pending = 0.0
    for end in ends:
        try:
            aside = account.begin(PROMPT, retry=False)
        except CallError:
            continue
        if end == "answered":
            account.answered(aside, Usage(500, 64))
        elif end == "billed?":
            account.answered(aside, None)
        elif end == "refused":
            account.settle(aside, 0.0)
        else:
            pending += aside
        report = account.report()
        assert report["dollars"] + report["dollars_unconfirmed"] + pending <= cap + 1e-9
