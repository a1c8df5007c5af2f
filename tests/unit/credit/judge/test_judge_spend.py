"""The caps hold for a study: over its jobs, side by side and one after another."""

import pytest
from judge_cases import settings, two_jobs

from hgrpo.credit.judge.accounting import Account
from hgrpo.credit.judge.cache import Database
from hgrpo.credit.judge.protocol import CallError

# A job that makes calls until a cap stops it: each is set aside at 3 cents and costs 2.
JOB = """
import sys
from pathlib import Path
from judge_cases import settings
from hgrpo.credit.judge.accounting import Account
from hgrpo.credit.judge.cache import Database
from hgrpo.credit.judge.protocol import CallError
path, calls, dollars = sys.argv[1:]
caps = settings(max_calls=int(calls), max_dollars=float(dollars))
sys.stdin.readline()
spend, made = Account(caps, Database(Path(path))), 0
while True:
    try:
        spend.set_aside(0.03)
    except CallError as cap:
        print(made, cap.reason)
        break
    made += 1
    spend.settle(0.03, 0.02)
"""


@pytest.fixture
def spend_of(tmp_path):
    def build(**changes):
        return Account(settings(**changes), Database(tmp_path / "judge.sqlite"))

    return build


@pytest.mark.parametrize(
    ("calls", "dollars", "reason", "made"),
    [(300, 1e9, "call_cap", 300), (9999, 4.0, "dollar_cap", 199)],
)
def test_two_processes_share_one_cap(project, tmp_path, spend_of, calls, dollars, reason, made):
    done = two_jobs(project, JOB, tmp_path / "judge.sqlite", calls, dollars)
    numbers, reasons = zip(*(out.split() for out in done), strict=True)
    assert set(reasons) == {reason}
    total = sum(map(int, numbers))
    # A job may meet the dollar cap while the other still has its estimate set aside.
    assert total == made if reason == "call_cap" else made - 1 <= total <= made
    assert spend_of().so_far() == (total, pytest.approx(0.02 * total))
    assert 0.02 * total <= dollars


def test_a_resumed_job_goes_on_where_the_caps_were(spend_of):
    spend_of(max_calls=2).set_aside(0.0)
    spend_of(max_calls=2).set_aside(0.0)
    with pytest.raises(CallError, match=r"exceed the limit of 2; .* 2 calls at a cost of 0.00 dol"):
        spend_of(max_calls=2).set_aside(0.0)
    spend_of(max_calls=3).set_aside(0.0)


def test_each_model_at_each_address_has_its_own_account(spend_of):
    url = "http://host/v1"
    spend_of(model="a", base_url=url, max_calls=1).set_aside(0.0)
    spend_of(model="b", base_url=url, max_calls=1).set_aside(0.0)
    spend_of(model="a", base_url="http://other/v1", max_calls=1).set_aside(0.0)
    # Another method, or another seed, is the same judge.
    with pytest.raises(CallError):
        spend_of(model="a", base_url=url, max_calls=1, variant="group").set_aside(0.0)
