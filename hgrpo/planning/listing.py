"""`snakemake --summary` with one line per job in place of one per file.

For each file Snakemake reads that file's record again, to say when it was made and what it logged
to. In a finished study of 10,000 jobs that took nearly as long as all else. A Snakemake that makes
its table otherwise than by `DAG.summary` prints its own, which holds the same.

Example:
    python -m hgrpo.planning.listing --summary --config study=bakeoff
"""

import gc
from collections.abc import AsyncIterator

import snakemake.cli
from snakemake.dag import DAG


async def job_lines(dag: DAG, detailed: bool = False) -> AsyncIterator[str]:
    """Lines in the columns of `snakemake --summary`, with the first output of each job."""
    yield "output_file\tdate\trule\tlog-file(s)\tstatus\tplan"
    for job in dag.jobs:
        if job.output:
            plan = "update pending" if dag.reason(job) else "no update"
            yield f"{job.output[0]}\t-\t{job.rule.name}\t-\t-\t{plan}"


if __name__ == "__main__":
    # The graph lives to the end: going over it for what could be freed took a tenth of the time.
    gc.disable()
    DAG.summary = job_lines
    snakemake.cli.main()
