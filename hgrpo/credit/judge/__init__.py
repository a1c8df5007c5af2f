"""LLMJudge: a language model, or the offline rubric, says which turns earned the return."""

from typing import TYPE_CHECKING

from hgrpo.credit.base import Context
from hgrpo.credit.judge.settings import Settings
from hgrpo.envs.kinds import load
from hgrpo.errors import UserError

if TYPE_CHECKING:
    from hgrpo.credit.judge.assigner import JudgeCredit

__all__ = ["Settings", "make"]


def make(settings: Settings, context: Context) -> "JudgeCredit":
    """The assigner.

    Packages that only judging needs are imported here, so that reading a study needs none.

    Args:
        settings: the method's `credit:` section without `kind`.
        context: `cache_dir` (folder of judge.sqlite, shared by the study's jobs) and
            `environment` (its name) are used.

    Raises:
        UserError: a package, the key, the environment's text or the cache's folder is missing,
            or the cache cannot be opened.
    """
    try:
        from hgrpo.credit.judge.build import build_judge

        return build_judge(settings, context, load(context.environment).judge_text())
    except ModuleNotFoundError as error:
        if error.name not in {"openai", "tenacity"}:
            raise
        raise UserError(
            f"credit kind 'judge' needs the package {error.name!r}: pip install -e '.[judge]'"
        ) from None
