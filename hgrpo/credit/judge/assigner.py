"""The judge as a credit assigner."""

from collections import Counter
from collections.abc import Sequence
from contextlib import closing

import numpy as np

from hgrpo.credit.base import CreditAssigner, Group
from hgrpo.credit.judge.accounting import Account
from hgrpo.credit.judge.cache import Question, ScoreCache
from hgrpo.credit.judge.prompts import PROMPT_VERSION, prompt
from hgrpo.credit.judge.protocol import FALLBACKS, CallError, Judge, Judgement
from hgrpo.credit.judge.scores import credit
from hgrpo.credit.judge.settings import RUBRIC, Settings
from hgrpo.envs.judge_text import JudgeText
from hgrpo.errors import UserError


class JudgeCredit(CreditAssigner):
    """Turn credit from a judge's scores.

    Trajectories without turns are not judged. The judge is asked only for what the cache does not
    hold, and the cache keeps every new judgement. Trajectories that get uniform credit, for want of
    a judgement, are counted by reason.
    """

    def __init__(
        self,
        settings: Settings,
        environment: str,
        text: JudgeText,
        cache: ScoreCache,
        judge: Judge,
        account: Account,
    ):
        self._settings = settings
        self._environment = environment
        self._text = text
        self._cache = cache
        self._judge = judge
        self._account = account
        self._reported: dict[str, float] = {}
        self._version = PROMPT_VERSION + text.primer_version
        if settings.model == RUBRIC:
            # This model consists of rules in code. If the rules change, it is another judge.
            self._version += f"+rubric-{text.rubric_version}"

    def assign(self, group: Group) -> list[np.ndarray]:
        """Credit of every turn: K float64 arrays [T_k].

        Raises:
            UserError: too many trajectories got no judgement, the server refuses the key or does
                not know the model, or the cache cannot be used.
        """
        return self.assign_many([group])[0]

    def assign_many(self, groups: Sequence[Group]) -> list[list[np.ndarray]]:
        """`assign` for several groups; the judge gets all their prompts together."""
        shown = [self._questions(group) for group in groups]
        answers = self._answers([question for rows in shown for question, _ in rows])
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
        """Counts since the last report, for the log; names start with `judge_`."""
        now = self._account.report()
        row = {f"judge_{key}": now[key] - self._reported.get(key, 0) for key in now}
        row["judge_fallback_share"] = row["judge_fallbacks"] / max(1, row["judge_judged"])
        self._reported = now
        return row

    def _questions(self, group: Group) -> list[tuple[Question, list[int]]]:
        """The questions about a group, each with the indices of the trajectories that it shows."""
        asked = self._settings
        judged = [k for k, trajectory in enumerate(group.trajectories) if trajectory.turns]
        calls = [judged] if judged and asked.variant == "group" else [[k] for k in judged]
        found = []
        for positions in calls:
            shown = tuple(group.trajectories[k] for k in positions)
            judge = self._version, asked.base_url, asked.model, asked.temperature
            found.append((Question(self._environment, asked.variant, *judge, shown), positions))
        return found

    def _answers(self, questions: list[Question]) -> dict[str, Judgement | CallError]:
        """The answer to each question, by key. Equal questions are asked once, but all counted."""
        distinct = {question.key: question for question in questions}
        known = {key: self._cache.get(question) for key, question in distinct.items()}
        unknown = {key: distinct[key] for key, answer in known.items() if answer is None}
        answers: dict[str, Judgement | CallError] = {**known}
        prompts = {
            key: prompt(self._environment, self._text.primer, asked.trajectories, asked.variant)
            for key, asked in unknown.items()
        }
        with closing(self._judge.ask_all(prompts)) as arriving:
            for key, answer in arriving:
                if isinstance(answer, Judgement):
                    # Saved at once: a later crash must not lose what was paid for.
                    answer = self._cache.put(unknown[key], answer)
                answers[key] = answer
        self._count(questions, answers, set(unknown))
        return answers

    def _count(
        self, questions: list[Question], answers: dict[str, Judgement | CallError], asked: set[str]
    ) -> None:
        """Count the answers; UserError if too many trajectories got no judgement."""
        failed: Counter[str] = Counter()
        judged = hits = 0
        for question in questions:
            answer, size = answers[question.key], len(question.trajectories)
            judged += size
            if isinstance(answer, CallError):
                failed[answer.reason] += size
            elif question.key in asked:
                asked.remove(question.key)
            else:
                hits += size
        fallbacks = {f"fallback_{reason}": count for reason, count in failed.items()}
        self._account.count(judged=judged, cache_hits=hits, fallbacks=failed.total(), **fallbacks)
        limit = self._settings.fallback_limit
        if failed.total() > limit * judged:
            reasons = ", ".join(f"{name} {failed[name]}" for name in FALLBACKS if failed[name])
            raise UserError(
                f"judge {self._settings.model} at {self._settings.base_url}: {failed.total()} of "
                f"{judged} trajectories got no judgement ({reasons}): more than "
                f"credit.fallback_limit {limit:g} allows"
            )
