"""LLMJudge: a language model, or the offline rubric, says which turns earned the return."""

from typing import Any

from hgrpo.credit.judge.settings import Settings
from hgrpo.errors import UserError

__all__ = ["Settings", "make"]


def make(settings: Settings, context: Any) -> Any:
    """The assigner these settings describe: an object with `assign` and `report`.

    Args:
        settings: the method's `credit:` section without `kind`.
        context: `cache_dir` (folder of judge.sqlite, shared by the study's jobs) and
            `environment` (family, such as "alfworld").

    Raises:
        UserError: a package, the key or the environment's primer is missing, or the cache cannot
            be opened.
    """
    try:
        from hgrpo.credit.judge.assigner import make_judge
    except ModuleNotFoundError as error:
        if error.name not in {"openai", "tenacity"}:
            raise
        raise UserError(
            f"credit kind 'judge' needs the package {error.name!r}: pip install -e '.[judge]'"
        ) from None
    return make_judge(settings, context)
