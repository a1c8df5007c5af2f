"""The judge as a credit assigner: the cache first, then calls, then uniform credit."""

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import closing

import numpy as np

from hgrpo.credit.base import Context, CreditAssigner, Group
from hgrpo.credit.judge import rubric
from hgrpo.credit.judge.accounting import FALLBACKS, Account
from hgrpo.credit.judge.cache import Judgement, Question, ScoreCache
from hgrpo.credit.judge.client import CallError, JudgeClient
from hgrpo.credit.judge.database import Database
from hgrpo.credit.judge.prompts import PROMPT_VERSION, check_environment, prompt
from hgrpo.credit.judge.scores import credit
from hgrpo.credit.judge.server import serve_in_background
from hgrpo.credit.judge.settings import SERVICE, Settings
from hgrpo.credit.judge.spend import Spend
from hgrpo.errors import UserError

CACHE_NAME = "judge.sqlite"


class JudgeCredit(CreditAssigner):
    """Turn credit from a judge's scores.

    Trajectories without turns are not judged. One that gets no judgement gets uniform credit (see
    `scores.credit`), counted by reason.

    Args:
        settings: what is asked for, and how scores become credit.
        environment: family of the environment; the prompts have a primer of it.
        cache: asked first, and given every new judgement.
        client: asked for what is not in the cache.
        account: counts everything.
    """

    def __init__(
        self,
        settings: Settings,
        environment: str,
        cache: ScoreCache,
        client: JudgeClient,
        account: Account,
    ):
        self._settings = settings
        self._environment = environment
        self._cache = cache
        self._client = client
        self._account = account
        self._reported: dict[str, float] = {}
        self._version = PROMPT_VERSION
        if settings.model == rubric.MODEL:
            # Behind this name stand rules in code: changed rules are another judge.
            self._version += f"+rubric-{rubric.VERSION}"

    def assign(self, group: Group) -> list[np.ndarray]:
        """Credit of every turn: K float64 arrays of [T_k].

        Raises:
            UserError: too large a share of trajectories without a judgement, a refused key, an
                unknown model, or a cache that cannot be used.
        """
        return self.assign_many([group])[0]

    def assign_many(self, groups: Sequence[Group]) -> list[list[np.ndarray]]:
        """`assign` for several groups, with the calls of all of them under way together."""
        shown = [self._questions(group) for group in groups]
        answers = self._judge([question for rows in shown for question, _ in rows])
        results = []
        for group, rows in zip(groups, shown, strict=True):
            scores: list[list[float] | None] = [None] * len(group.trajectories)
            for question, positions in rows:
                answer = answers[question.key]
                if isinstance(answer, Judgement):
                    for k, values in zip(positions, answer.scores, strict=True):
                        scores[k] = values
            turns = [len(trajectory.turns) for trajectory in group.trajectories]
            returns = [trajectory.env_return for trajectory in group.trajectories]
            results.append(credit(scores, turns, returns, self._settings.normalisation))
        return results

    def report(self) -> dict[str, float]:
        """What was counted since the last report, for the log; names start with `judge_`."""
        now = self._account.report()
        row = {f"judge_{key}": now[key] - self._reported.get(key, 0) for key in now}
        row["judge_fallback_share"] = row["judge_fallbacks"] / max(1, row["judge_judged"])
        self._reported = now
        return row

    def _questions(self, group: Group) -> list[tuple[Question, list[int]]]:
        """Each question with the positions in the group of the trajectories it shows."""
        judged = [k for k, trajectory in enumerate(group.trajectories) if trajectory.turns]
        if self._settings.variant == "group":
            together = [judged] if judged else []
        else:
            together = [[k] for k in judged]
        return [
            (
                Question(
                    environment=self._environment,
                    variant=self._settings.variant,
                    version=self._version,
                    endpoint=self._settings.base_url,
                    model=self._settings.model,
                    temperature=self._settings.temperature,
                    trajectories=tuple(group.trajectories[k] for k in positions),
                ),
                positions,
            )
            for positions in together
        ]

    def _judge(self, questions: list[Question]) -> dict[str, Judgement | CallError]:
        """Key -> answer, each different question asked at most once; everything is counted."""
        answers: dict[str, Judgement | CallError] = {}
        unknown: dict[str, Question] = {}
        for question in {question.key: question for question in questions}.values():
            known = self._cache.get(question)
            if known is None:
                unknown[question.key] = question
            else:
                answers[question.key] = known
        prompts = {
            key: prompt(self._environment, question.trajectories, question.variant)
            for key, question in unknown.items()
        }
        with closing(self._client.ask_all(prompts)) as arriving:
            for key, answer in arriving:
                if isinstance(answer, Judgement):
                    # At once: what was paid for survives a crash of what comes later.
                    answer = self._cache.put(unknown[key], answer)
                answers[key] = answer
        self._check_limit(*self._count(questions, answers, set(unknown)))
        return answers

    def _count(
        self, questions: list[Question], answers: dict[str, Judgement | CallError], asked: set[str]
    ) -> tuple[int, Counter[str]]:
        """Count answers; how many trajectories were judged, and how many not, by reason."""
        account, failed, judged = self._account, Counter(), 0
        for question in questions:
            answer, size = answers[question.key], len(question.trajectories)
            judged += size
            if isinstance(answer, CallError):
                failed[answer.reason] += size
                continue
            if question.key in asked:
                asked.remove(question.key)
            else:
                account.cache_hits += size
        account.judged += judged
        account.fallbacks += failed
        return judged, failed

    def _check_limit(self, judged: int, failed: Counter[str]) -> None:
        """Refuse what was asked for at once, so that no step that is kept passes the limit."""
        limit = self._settings.fallback_limit
        if failed.total() <= limit * judged:
            return
        counts = [(reason, failed[reason]) for reason in FALLBACKS]
        reasons = ", ".join(f"{reason} {count}" for reason, count in counts if count)
        raise UserError(
            f"judge {self._settings.model} at {self._settings.base_url}: {failed.total()} of "
            f"{judged} trajectories got no judgement ({reasons}): more than credit.fallback_limit "
            f"{limit:g} allows"
        )


def make_judge(settings: Settings, context: Context) -> JudgeCredit:
    """The assigner with its cache, its caps and its client.

    Args:
        settings: the method's.
        context: its `cache_dir` and `environment` are used.

    Raises:
        UserError: the key, the environment's primer or the cache's folder is missing, or the cache
            cannot be opened.
    """
    check_environment(context.environment)
    if context.cache_dir is None:
        raise UserError("the judge needs a folder for its answers: --cache")
    base_url, key = _endpoint(settings)
    database = Database(context.cache_dir / CACHE_NAME)
    account = Account(settings, Spend(database, settings))
    client = JudgeClient(settings, base_url, key, account)
    return JudgeCredit(settings, context.environment, ScoreCache(database), client, account)


def _endpoint(settings: Settings) -> tuple[str, str]:
    """Address and key, "" where none is needed; our own server is never sent one.

    Raises:
        UserError: the environment holds no key.
    """
    if settings.base_url == SERVICE:
        return serve_in_background(), ""
    if settings.api_key_env is None:
        return settings.base_url, ""
    key = os.environ.get(settings.api_key_env, "").strip()
    if not key:
        raise UserError(
            f"the judge's key is missing: set the environment variable {settings.api_key_env} "
            "(or credit.api_key_env, null where no key is needed)"
        )
    return settings.base_url, key
