"""hgrpo: from an environment to a report that compares credit assigners.

    snakemake -n                                       the plan
    snakemake figures                                  figures from cached results; -f redraws all
    snakemake alpha_sweep --config seeds=11,23         another study, other seeds
    snakemake smoke_wave --config study=alpha_sweep    its first arms alone
    snakemake kl_sweep                                 the arms of one axis of `interventions`
    snakemake results/bakeoff/rl/Progressive/seed_11/round_3/summary.json

Each rule is a stage. Its module in hgrpo/stages says what it reads, what it writes and what it asks of
the machine; `python -m hgrpo.cli.<stage>` runs it. A stage reruns if an input file changes, or its
`cfg` (the part of the study that it depends on), or its `code` (the hash of the modules that it runs).
OUTPUTS: results/<study>/, listed at the head of each rules file.
"""

from pathlib import Path

from snakemake.logging import logger
from snakemake.utils import min_version

from hgrpo.workflow.run import check_writable, one_line_errors, short_commands
from hgrpo.workflow.warm import start as warm

min_version("9.27")
logger.addFilter(short_commands)

if workflow.is_main_process:
    with one_line_errors():
        # Snakemake works in the folder of --directory already.
        check_writable(Path("." if workflow.overwrite_workdir else workflow.basedir))


# Write results beside this file, even if `-s` names it from another folder; --directory overrides.
workdir: workflow.basedir


report: "rules/captions/study.rst"


include: "rules/common.smk"
include: "rules/assets.smk"
include: "rules/sft.smk"
include: "rules/rl.smk"
include: "rules/credit_fit.smk"
include: "rules/evaluate.smk"
include: "rules/report.smk"
include: "rules/truth.smk"
include: "rules/gradients.smk"
include: "rules/credit_agreement.smk"
include: "rules/asked_for.smk"
include: "rules/sandbox.smk"


onstart:
    note_interrupts()
    planned = {job.rule.name for job in workflow.dag.needrun_jobs()}
    # The sandbox's jobs need nothing of the chosen study, and leave it free for another run.
    of_the_study = not planned or any(not name.startswith("sandbox_") for name in planned)
    if of_the_study and not workflow.executor_plugin.common_settings.touch_exec:
        with one_line_errors():
            before_jobs(workflow, study, Path(R))
        if workflow.executor_plugin.name == "local":
            jobs = list(workflow.dag.needrun_jobs())
            warm.start(study, [job.rule.name for job in jobs if job.threads == 1])
            # On a cluster, a hundred jobs may run at once: too many for this display.
            line = start_line(study, Path(R), jobs, workflow.resource_settings.cores)
            print(line, file=sys.stderr, flush=True)
            mine = {str(path) for job in workflow.dag.jobs for path in job.output}
            show_progress(
                [job for job in study_jobs(study, Path(R)) if mine.issuperset(job.outputs)]
            )


onsuccess:
    after_jobs(Path(R))
    stages = {job.rule.name for job in workflow.dag.jobs}
    say_last([took_line(), *page_lines(stages, Path(R), os.environ)])


onerror:
    say_last(stopped_lines(workflow))


rule all:
    """The study's report, with all that it is made from."""
    default_target: True
    input:
        of.everything() if ELSEWHERE else of.wanted(),
    localrule: True
    message:
        "The whole study"


rule:
    """The same as `all`, under the study's own name."""
    name:
        study.config.name
    input:
        rules.all.input,
    localrule: True
    message:
        "The whole study"


with one_line_errors():
    check_rule_names(workflow)
