"""What a study has cost so far: seconds of its jobs, tokens of its logs, money by prices."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hgrpo.report.logs import play_by_round, read_logs
from hgrpo.stages.order import STAGES
from hgrpo.study.resources import Resources
from hgrpo.workflow.planning.forecast import needs
from hgrpo.workflow.planning.jobs import SHARED, seconds_of_jobs
from hgrpo.workflow.planning.profile import Prices, Profile
from hgrpo.workflow.reuse import was_taken


@dataclass(frozen=True)
class Spent:
    """What the jobs of an arm have cost, or of all arms together.

    Attributes:
        arm: the method; `SHARED` for jobs that serve all arms.
        jobs: timed jobs.
        seconds: their seconds, one after the other.
        core_hours, gpu_hours: what they held meanwhile.
        tokens: tokens of training play, with continuations; 0 for shared jobs.
        judge_dollars: what judges were paid, unconfirmed calls included.
        money: cores and GPUs by the profile's prices; None without prices.
    """

    arm: str
    jobs: int
    seconds: float
    core_hours: float
    gpu_hours: float
    tokens: float
    judge_dollars: float
    money: float | None


def spent(folder: Path, arms: Iterable[str], resources: Resources, profile: Profile) -> list[Spent]:
    """What each arm has cost, the shared jobs first, and all together last (arm "all").

    Jobs whose results are gone, or were taken from another study, cost nothing here. For a retried
    job only the last attempt counts.

    Args:
        folder: results/<study>.
        arms: names of the arms that come first, in display order; others in the folder follow.
        resources: what each stage asked of the machine.
        profile: the profile that the study ran under.
    """
    prices = profile.prices
    timed: dict[str, list] = {}
    for stage in STAGES:
        asked = needs(resources, stage, profile.cores)
        for arm, seconds in seconds_of_jobs(folder, stage, Path.is_dir).items():
            timed.setdefault(arm, []).extend((each, asked) for each in seconds)
    played = _played(folder)
    there = sorted({*timed, *played})
    rows = [
        _row(arm, timed.get(arm, []), played.get(arm, {}), prices)
        for arm in dict.fromkeys((SHARED, *arms, *there))
        if arm in there
    ]
    return [*rows, _sum(rows, prices)]


def _played(folder: Path) -> Mapping[str, Mapping[str, float]]:
    """Arm -> tokens and judge dollars of all its runs, from their training logs."""
    found = sorted(folder.glob("rl/*/seed_*/round_*/train_log.json"))
    logs = read_logs([path for path in found if not was_taken(path.parent)])
    if logs.empty:
        return {}
    ends = play_by_round(logs).groupby(["method", "seed"]).last()
    tokens = ends.groupby("method")["tokens"].sum()
    paid = logs[["judge_dollars", "judge_dollars_unconfirmed"]].sum(axis=1)
    dollars = paid.groupby(logs["method"]).sum()
    return {
        arm: {"tokens": float(tokens[arm]), "judge_dollars": float(dollars[arm])}
        for arm in tokens.index
    }


def _row(arm: str, timed: list, played: Mapping[str, float], prices: Prices | None) -> Spent:
    return Spent(
        arm=arm,
        jobs=len(timed),
        seconds=sum(seconds for seconds, _ in timed),
        core_hours=sum(seconds * asked.threads for seconds, asked in timed) / 3600,
        gpu_hours=sum(seconds * asked.gpu for seconds, asked in timed) / 3600,
        tokens=played.get("tokens", 0.0),
        judge_dollars=played.get("judge_dollars", 0.0),
        money=sum(prices.of_job(*each) for each in timed) if prices else None,
    )


def _sum(rows: list[Spent], prices: Prices | None) -> Spent:
    names = ("jobs", "seconds", "core_hours", "gpu_hours", "tokens", "judge_dollars")
    sums = {name: sum(getattr(row, name) for row in rows) for name in names}
    return Spent(arm="all", money=sum(row.money for row in rows) if prices else None, **sums)
