"""Credit assigner that uses a judge's scores, or uniform credit if the judge fails."""

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from hgrpo.credit.base import CreditAssigner, Group
from hgrpo.credit.judge.accounting import Account
from hgrpo.credit.judge.cache import Database, Question
from hgrpo.credit.judge.protocol import (
    FALLBACKS,
    PROMPT_VERSION,
    CallError,
    Judge,
    Judgement,
    prompt,
)
from hgrpo.credit.judge.scores import credit
from hgrpo.credit.judge.settings import RUBRIC, Settings
from hgrpo.credit.to_go import credit_to_go
from hgrpo.errors import UserError
from hgrpo.games.environment import JudgeText


@dataclass(eq=False, repr=False)
class JudgeCredit(CreditAssigner):
    """Computes credit from a judge's scores.

    Trajectories without turns are not judged. Only questions that are not in the cache are sent to
    the judge, and every new judgement is cached. Trajectories without a judgement are counted by
    the reason for the failed call.
    """

    settings: Settings
    environment: str
    text: JudgeText
    cache: Database
    judge: Judge
    account: Account

    def __post_init__(self) -> None:
        self._reported: dict[str, float] = {}
        self._version = PROMPT_VERSION + self.text.primer_version
        if self.settings.model == RUBRIC:
            # Cached scores are invalid if the rules have changed.
            self._version += f"+rubric-{self.text.rubric_version}"

    def assign_many(self, groups: Sequence[Group]) -> list[list[np.ndarray]]:
        """Return the credit of every turn. The prompts of all groups are sent together.

        Raises:
            UserError: the judge or cache cannot be used, or the share of trajectories without a
                judgement exceeds `fallback_limit`.
        """
        questions = [self._questions(group) for group in groups]
        answers = self._answers([question for row in questions for question, _ in row])
        results = []
        for group, row in zip(groups, questions, strict=True):
            scores: list[list[float] | None] = [None] * len(group.trajectories)
            for question, positions in row:
                answer = answers[question.key]
                if isinstance(answer, Judgement):
                    for k, values in zip(positions, answer.scores, strict=True):
                        scores[k] = values
            turns = [len(trajectory.turns) for trajectory in group.trajectories]
            returns = [trajectory.env_return for trajectory in group.trajectories]
            rows = credit(scores, turns, returns, self.settings.normalisation)
            results.append(credit_to_go(rows, self.settings.to_go))
        return results

    def report(self) -> dict[str, float]:
        """Return counts since the last report, under names with the prefix `judge_`."""
        row = {f"judge_{name}": value for name, value in self._since_report().items()}
        row["judge_fallback_share"] = row["judge_fallbacks"] / max(1, row["judge_judged"])
        self._reported = self.account.report()
        return row

    def _since_report(self) -> dict[str, float]:
        now = self.account.report()
        return {name: now[name] - self._reported.get(name, 0) for name in now}

    def _questions(self, group: Group) -> list[tuple[Question, list[int]]]:
        settings, variant = self.settings, self.settings.variant
        judged = [k for k, trajectory in enumerate(group.trajectories) if trajectory.turns]
        calls = [judged] if judged and variant == "group" else [[k] for k in judged]
        judge = self._version, settings.base_url, settings.model, settings.temperature
        questions = []
        for positions in calls:
            trajectories = tuple(group.trajectories[k] for k in positions)
            question = Question(self.environment, variant, *judge, trajectories)
            questions.append((question, positions))
        return questions

    def _answers(self, questions: list[Question]) -> dict[str, Judgement | CallError]:
        """Return answers by question key. Identical questions are sent to the judge only once."""
        distinct = {question.key: question for question in questions}
        known = {key: self.cache.get(question) for key, question in distinct.items()}
        unknown = {key: distinct[key] for key, answer in known.items() if answer is None}
        answers: dict[str, Judgement | CallError] = {**known}
        prompts = {
            key: prompt(self.environment, self.text.primer, each.trajectories, each.variant)
            for key, each in unknown.items()
        }
        with closing(self.judge.ask_all(prompts)) as arriving:
            for key, answer in arriving:
                if isinstance(answer, Judgement):
                    # Save each answer immediately, so that a crash does not lose paid answers.
                    answer = self.cache.put(unknown[key], answer)
                answers[key] = answer
        self._count(questions, answers, set(unknown))
        return answers

    def _count(
        self, questions: list[Question], answers: dict[str, Judgement | CallError], new: set[str]
    ) -> None:
        failed: Counter[str] = Counter()
        judged = hits = 0
        # Show only messages about malformed answers. Other messages contain text from the server,
        # which may include the API key.
        errors = [answer for answer in answers.values() if isinstance(answer, CallError)]
        malformed = {str(error) for error in errors if error.reason == "malformed"}
        for question in questions:
            answer, size = answers[question.key], len(question.trajectories)
            judged += size
            if isinstance(answer, CallError):
                failed[answer.reason] += size
            elif question.key in new:
                new.remove(question.key)
            else:
                hits += size
        fallbacks = {f"fallback_{reason}": count for reason, count in failed.items()}
        self.account.count(judged=judged, cache_hits=hits, fallbacks=failed.total(), **fallbacks)
        # The share is over all groups of this step up to now. With dynamic sampling, one call of
        # `assign_many` may get so few groups that a few failures would exceed the limit.
        step, limit = self._since_report(), self.settings.fallback_limit
        if step["fallbacks"] > limit * step["judged"]:
            shares = ((name, step[f"fallback_{name}"]) for name in FALLBACKS)
            reasons = ", ".join(f"{name} {number:.0f}" for name, number in shares if number)
            raise UserError(
                f"judge {self.settings.model} at {self.settings.base_url}: "
                f"{step['fallbacks']:.0f} of {step['judged']:.0f} trajectories have no judgement "
                f"({reasons}), more than `credit.fallback_limit: {limit:g}` allows"
                + "".join(f"; malformed: {text}" for text in sorted(malformed))
            )
