"""What a job was planned with: one hash of its settings and one of its code.

Snakemake reads the project when it plans, and a job may start hours later. If somebody edits the
code or a config file in between, the job would run the edited version, and Snakemake would record
the planned one. So each job gets the planned hashes as an option, and refuses to run if the hashes
of its own settings and code differ.

To hash the code takes a job a third of a second. So the job also gets the hash of the package as it
was when the run was planned. If that is still the same, the job's code is the planned code.
"""

from collections.abc import Mapping

from hgrpo.config.canonical import settings_digest
from hgrpo.errors import UserError

# The environment variable that hands the result of `StudyRules.plans` to jobs.
PLANNED_VARIABLE = "HGRPO_PLANNED"
# The environment variable that holds `package_digest` at that time.
PACKAGE_VARIABLE = "HGRPO_PACKAGE"


def plan_hash(settings: Mapping, code: str) -> str:
    """The hash of a job's settings and the hash of its code, with a hyphen between them."""
    return f"{settings_digest(settings)}-{code}"


def planned_code(planned: str, package_then: str | None, package_now: str) -> str | None:
    """The hash of the job's code that the plan gives; None if the package has changed since.

    Args:
        planned: as for `check_plan`.
        package_then: `package_digest` when the run was planned; None if it is not known.
        package_now: `package_digest` now.
    """
    return planned.partition("-")[2] or None if package_then == package_now else None


def check_plan(planned: str, settings: Mapping, code: str) -> None:
    """Refuse to run a job that was planned with other settings or with other code.

    Args:
        planned: what `plan_hash` returned when the run was planned; "" if a user typed the command.
        settings: the job's settings.
        code: hash of the job's code.

    Raises:
        UserError: the code or the settings changed. The message says which.
    """
    found = plan_hash(settings, code)
    if planned in ("", found):
        return
    same_code = planned.partition("-")[2] == code
    what = "its settings" if same_code else "the code that it runs"
    raise UserError(
        f"this job was planned before {what} changed; start the run again, and it plans anew"
    )
