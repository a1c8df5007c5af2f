"""Puts the judge's assigner together: its cache, its caps and the judge that it asks."""

import os

from hgrpo.credit.base import Context
from hgrpo.credit.judge import rubric
from hgrpo.credit.judge.accounting import Account
from hgrpo.credit.judge.assigner import JudgeCredit
from hgrpo.credit.judge.cache import ScoreCache
from hgrpo.credit.judge.database import Database
from hgrpo.credit.judge.protocol import Judge
from hgrpo.credit.judge.rubric_judge import RubricJudge
from hgrpo.credit.judge.settings import SERVICE, Settings
from hgrpo.credit.judge.spend import Spend
from hgrpo.credit.judge.text import JudgeText
from hgrpo.errors import UserError

CACHE_NAME = "judge.sqlite"


def build_judge(settings: Settings, context: Context, text: JudgeText) -> JudgeCredit:
    """The assigner that `settings` ask for.

    Args:
        settings: the method's.
        context: its `cache_dir` and `environment` are used.
        text: what a judge must know about the environment.

    Raises:
        UserError: the key, the environment's rubric or the cache's folder is missing, or the cache
            cannot be opened.
    """
    name = context.environment
    if settings.model == rubric.MODEL and text.score is None:
        raise UserError(
            f"environment {name!r} has no offline rubric: add `score` to JUDGE_TEXT in "
            f"hgrpo/envs/{name}/judge.py, or name a language model in credit.model"
        )
    if context.cache_dir is None:
        raise UserError("the judge needs a folder for its answers: --cache")
    key = "" if settings.base_url == SERVICE else _key(settings)
    database = Database(context.cache_dir / CACHE_NAME)
    account = Account(settings, Spend(database, settings))
    judge = _judge(settings, key, text, account)
    return JudgeCredit(settings, name, text, ScoreCache(database), judge, account)


def _judge(settings: Settings, key: str, text: JudgeText, account: Account) -> Judge:
    if settings.base_url == SERVICE:
        return RubricJudge(text, account)
    # Here, because the offline rubric does not need openai.
    from hgrpo.credit.judge.endpoint import EndpointJudge

    return EndpointJudge(settings, key, account)


def _key(settings: Settings) -> str:
    """The key that the environment variable holds; "" if the server needs none.

    Raises:
        UserError: the variable is not set.
    """
    if settings.api_key_env is None:
        return ""
    key = os.environ.get(settings.api_key_env, "").strip()
    if not key:
        raise UserError(
            f"the judge's key is missing: set the environment variable {settings.api_key_env} "
            "(or credit.api_key_env: null if the server needs no key)"
        )
    return key
