"""LLMJudge: a language model, or the offline rubric, scores the turns."""

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
    """Make the assigner, which keeps answers in `judge.sqlite` in the context's `cache_dir`.

    The packages that only judges use are imported here, so that reading a study needs none of them.

    Raises:
        UserError: one of these is missing: the API key, the environment's judge text, the offline
            rubric (if it is the judge), or `cache_dir`; or the database cannot be opened.
    """
    name, text = context.environment, load(context.environment).judge_text()
    if settings.model == RUBRIC and text.score is None:
        raise UserError(
            f"environment {name!r} has no offline rubric: add `score` to JUDGE_TEXT in "
            f"hgrpo/games/{name}/judge.py, or name a language model in credit.model"
        )
    if context.cache_dir is None:
        raise UserError("the judge needs a folder for its answers: --cache")
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
