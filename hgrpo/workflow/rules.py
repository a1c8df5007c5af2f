"""A study's files, commands and resources for the Snakemake rules."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from snakemake.io import ancient

from hgrpo.errors import UserError
from hgrpo.stages.order import load, resources_key
from hgrpo.stages.paths import words
from hgrpo.store.entry import JOB_FILE, read_plan, unlink, write_job
from hgrpo.store.plan import STORE, Plan, Planned, below, beside, flat, outputs_of
from hgrpo.study.resources import StageResources


class StudyRules:
    """The files, commands and resources of a study's jobs, for the rules.

    Args:
        plan: the study's plan.
        for_one_job: whether another snakemake process started this one to run a single job. In a
            Kubernetes pod, the file job.json of this job does not exist yet.
    """

    def __init__(self, plan: Plan, for_one_job: bool = False):
        self.plan, self.for_one_job = plan, for_one_job

    def job(self, stage: str, wildcards: Mapping[str, str]) -> Planned:
        """The job of a stage with these wildcards.

        Raises:
            UserError: the job's key has changed since the run was planned.
        """
        values = {"method": "", "seed": 0, "round": 0} | dict(wildcards.items())
        planned = self.plan.find(stage, values["method"], int(values["seed"]), int(values["round"]))
        key = values.get("key") or self._submitted_key(planned)
        if planned.key != key:
            message = (
                f"{STORE}/{key}: the settings or the code of this job have changed since "
                "the run was planned; start the run again"
            )
            if self.for_one_job:
                # Write a log, because Snakemake prints the log of a failed Slurm job if it exists.
                log = Path(planned.log.replace(planned.key, key))
                log.parent.mkdir(parents=True, exist_ok=True)
                log.write_text(f"error: {message}\n", encoding="utf-8")
            raise UserError(message)
        return planned

    def _submitted_key(self, planned: Planned) -> str:
        """Key of a job whose wildcards have no key; for a submitted job, its key in plan.json."""
        if self.for_one_job and not (planned.entry / JOB_FILE).is_file():
            with suppress(UserError):  # there is no plan.json if results are in a bucket
                jobs = read_plan(Path(self.plan.root))
                same = (each for each in jobs if each.stage == planned.stage)
                return next((each.key for each in same if each.job == planned.job), planned.key)
        return planned.key

    def inputs(self, stage: str) -> Callable[[Mapping[str, str]], dict]:
        """Input function of a rule: takes wildcards and returns a mapping from names to files.

        For a finished job the function returns no inputs, so that deleted inputs are not recreated.
        """

        def files(wildcards: Mapping[str, str]) -> dict:
            planned = self.job(stage, wildcards)
            if not planned.whole:
                return dict(planned.inputs)
            return {"figures": self._drawn()} if stage == "report" else {}

        return files

    def _drawn(self) -> list[str]:
        """Paths of the figures, if all exist. As inputs, they are shown by `snakemake --report`."""
        figures = self.plan.find("figures")
        return [ancient(path) for path in flat(figures.outputs)] if figures.whole else []

    def outputs(self, stage: str) -> dict[str, str | list[str]]:
        """Map the names of outputs to the output files of a job of the stage."""
        return below(self._folder(stage), outputs_of(stage, self.plan.study))

    def _folder(self, stage: str) -> str:
        folder = load(stage).FOLDER
        if "{" in folder:
            return f"{STORE}/{{key}}/{folder}"
        try:
            return self.plan.find(stage).folder
        except UserError:  # the study has no such job; if it is required, `inputs` raises the error
            return f"{STORE}/{stage}/{folder}"

    def log(self, stage: str) -> str:
        """The log file of a job of the stage."""
        return f"{beside(stage, self._folder(stage))}.log"

    def command(self, stage: str) -> Callable[..., str]:
        """Params function of a rule: takes wildcards and returns the path of job.json."""

        def file(wildcards: Mapping[str, str]) -> str:
            planned = self.job(stage, wildcards)
            return str(self.write(planned) if self.for_one_job else planned.entry / JOB_FILE)

        return file

    def write(self, planned: Planned) -> Path:
        """Write job.json, which the job's command reads, and return its path."""
        return write_job(self.plan, planned, self._words(planned))

    def _words(self, planned: Planned) -> list[str]:
        module = load(planned.stage)
        values = {name: str(getattr(planned.job, name)) for name in module.JOB}
        places = {"cache": f"{self.plan.root}/cache", "scratch": f"{planned.entry}/unfinished"}
        fields = module.Paths.__dataclass_fields__
        values |= {name: path for name, path in places.items() if name in fields}
        options = [word for name, value in values.items() for word in (f"--{name}", value)]
        return options + words(module.Paths, {**planned.inputs, **planned.outputs})

    def threads(self, stage: str) -> int:
        """Threads of a job of the stage."""
        return self._needs(stage).threads

    def resources(self, stage: str) -> dict[str, Callable[..., int] | int]:
        """Memory (MiB), time limit (minutes) and GPUs; memory and time grow with every retry."""
        needs = self._needs(stage)
        grows = {
            "mem_mb": lambda wildcards, attempt: needs.mem_mb * attempt,
            "runtime": lambda wildcards, attempt: needs.runtime * attempt,
        }
        # Omit `gpu=0`, because the Kubernetes executor treats it as an incomplete GPU request.
        return grows | ({"gpu": needs.gpu} if needs.gpu else {})

    def gpus(self, stage: str, instead: Mapping) -> int:
        """GPUs of a job; `instead` contains the overrides from `--set-resources`."""
        # Use a dict, because `Resources.get` returns an empty Resource for a missing name.
        values = dict(instead.get(stage, {}))
        return values["gpu"].value if "gpu" in values else self._needs(stage).gpu

    def urgency(self, wildcards: Mapping[str, str]) -> int:
        """Priority of a round: higher for an arm's first seed if its credit plays continuations.

        Runs of such arms take longest. If they started last, other cores would be idle at the end.
        """
        arm = self.plan.study.methods[wildcards["method"]]
        first = int(wildcards["seed"]) == self.plan.study.config.seeds[0]
        return 11 if first and arm.credit.declared.plays else 10

    def _needs(self, stage: str) -> StageResources:
        return self.plan.study.config.resources.of(resources_key(stage))

    def measured(self, section: str, paths: Iterable[str]) -> list[str]:
        """Return `stored(paths)`, or raise a UserError that names `section` if `paths` is empty."""
        if not paths:
            name = self.plan.study.config.name
            raise UserError(
                f"{name} requires a section `{section}` and a trained arm; see docs/keys.md"
            )
        return self.stored(paths)

    def linked(self, wildcards: Mapping[str, str]) -> str:
        """The file in the store for a path below results/<study>.

        A link to an older result is removed, because Snakemake would treat it as up to date.
        """
        unlink(Path(self.plan.root), [self.plan.maker(wildcards["path"])], older=True)
        return self.plan.stored(wildcards["path"])

    def stored(self, paths: Iterable[str]) -> list[str]:
        """The files in the store for paths relative to results/<study>."""
        return [*map(self.plan.stored, paths)]
