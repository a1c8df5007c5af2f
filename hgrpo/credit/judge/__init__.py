"""LLMJudge: credit from a judge's scores of turns. The judge is an LLM or the offline rubric."""

import os
from typing import TYPE_CHECKING

from hgrpo.credit.base import Context
from hgrpo.credit.judge.settings import RUBRIC, SERVICE, Settings
from hgrpo.errors import UserError
from hgrpo.games.kinds import load

if TYPE_CHECKING:
    from hgrpo.credit.judge.assigner import JudgeCredit
    from hgrpo.credit.judge.protocol import Judge

__all__ = ["Settings", "make"]


def make(settings: Settings, context: Context) -> "JudgeCredit":
    """Create the assigner, which caches answers in `judge.sqlite` in the context's `cache_dir`.

    Packages that only judges require are imported in this function, because this module is also
    imported to read a study.

    Raises:
        UserError: the API key, the environment's judge text or `cache_dir` is missing; the judge is
            the offline rubric, but the environment has no rubric; or the database cannot be opened.
    """
    name, text = context.environment, load(context.environment).judge_text()
    if settings.model == RUBRIC and text.score is None:
        raise UserError(
            f"environment {name!r} has no offline rubric: add `score` to JUDGE_TEXT in "
            f"hgrpo/games/{name}/judge.py, or set `credit.model` to a language model"
        )
    if context.cache_dir is None:
        raise UserError("the judge requires a folder to cache answers; pass --cache")
    key = ""
    for variable, complaint in settings.environment_variables.items():
        key = os.environ.get(variable, "").strip()
        if not key:
            raise UserError(complaint)
    from hgrpo.credit.judge.accounting import Account
    from hgrpo.credit.judge.assigner import JudgeCredit
    from hgrpo.credit.judge.cache import Database

    database = Database(context.cache_dir / "judge.sqlite")
    account = Account(settings, database)
    if settings.base_url == SERVICE:
        from hgrpo.credit.judge.rubric import RubricJudge

        judge: Judge = RubricJudge(text, account)
    else:
        from hgrpo.credit.judge.endpoint import EndpointJudge

        judge = EndpointJudge(settings, key, account)
    return JudgeCredit(settings, name, text, database, judge, account)
