"""`snakemake --summary` with one line per job in place of one per file, and no more than it needs.

For each file Snakemake reads that file's record again, to say when it was made and what it logged
to. In a finished study of 10,000 jobs that took nearly as long as all else. A Snakemake that makes
its table otherwise than by `DAG.summary` prints its own, which holds the same.

Two steps of a run are left to the run: it looks for software environments of jobs, of which no rule
asks for one, and expands every job's parameters to do so; and it compares all outputs with all
folders that are outputs. Together they took a quarter of the time of a plan.

Example:
    python -m hgrpo.workflow.planning.listing --summary --config study=bakeoff
"""

import gc
import os
from collections.abc import AsyncIterator

import snakemake.cli
from snakemake.dag import DAG


async def job_lines(dag: DAG, detailed: bool = False) -> AsyncIterator[str]:
    """Lines in the columns of `snakemake --summary`, with one output of each job.

    That is one that is missing, where the job is not to run, and else the first. Files in a store
    are not looked for.
    """
    yield "output_file\tdate\trule\tlog-file(s)\tstatus\tplan"
    for job in dag.jobs:
        if job.output:
            path, status, plan = job.output[0], "-", "update pending"
            if not dag.reason(job):
                plan = "no update"
                for output in job.output:
                    if not output.is_storage and not os.path.exists(output):
                        path, status = output, "missing"
                        break
            yield f"{path}\t-\t{job.rule.name}\t-\t{status}\t{plan}"


def nothing(dag: DAG) -> None:
    """Stand for a step that a plan does without."""


if __name__ == "__main__":
    # The graph lives to the end: going over it for what could be freed took a tenth of the time.
    gc.disable()
    DAG.summary = job_lines
    DAG.update_conda_envs = DAG.check_directory_outputs = nothing
    snakemake.cli.main()
