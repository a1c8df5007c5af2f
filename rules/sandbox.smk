"""Rules for the studies of the sandbox; `--config study=` does not affect them.

    snakemake sandbox_influence      one study of configs/sandbox: its tables and figures
    snakemake sandbox_all            every study, and the page
    snakemake sandbox_figures        every figure, from cached runs, without torch
    snakemake sandbox_ci             a few steps and two seeds of every arm

A run's folder is named after a hash of its settings and code. If two studies contain the same arm,
it is run only once.
"""

from hgrpo.workflow.sandbox_rules import RUN, SandboxRules

_STUDIES = os.path.relpath(workflow.current_basedir.join("../configs/sandbox"))
sandbox = SandboxRules(_STUDIES, "results/sandbox")
tiny = SandboxRules(_STUDIES, "results/sandbox_ci", tiny=True)
_TABLES = ("arms.csv", "pairs.csv", "tables.md")
_REPORTED = ("studies/{}/arms.csv", "studies/{}/pairs.csv", "studies/{}/figures")


rule sandbox_run:
    """Train one arm with all its seeds."""
    output:
        rows="results/sandbox/runs/{run}/rows.parquet",
        summary="results/sandbox/runs/{run}/summary.json",
    log:
        "results/sandbox/logs/runs/{run}.log",
    wildcard_constraints:
        run=RUN,
    priority: one_line_errors()(lambda w: sandbox.updates(w.run))
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=lambda wildcards, attempt: 120 * attempt,
    params:
        job=one_line_errors()(lambda w: sandbox.job("run", w.run)),
        # Two studies may share a run under different labels. A change of label must not cause a
        # rerun, so this param depends on `output`: Snakemake ignores changes of such params.
        arm=lambda w, output: one_line_errors()(lambda w: sandbox.label(w.run))(w),
    message:
        "Sandbox, {params.arm}"
    # With these variables, glibc keeps freed blocks of up to 1 GiB, and PyTorch requests pages of
    # 2 MB. A run then takes 10% less time.
    shell:
        "OMP_NUM_THREADS={threads} MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=1073741824"
        " THP_MEM_ALLOC_ENABLE=1 python -m hgrpo.cli.sandbox_study run --config {params.job:q}"
        " --output results/sandbox/runs/{wildcards.run} > {log:q} 2>&1"


rule sandbox_statistics:
    """Write a study's tables: confidence intervals of arms, and verdicts on pairs of arms."""
    input:
        one_line_errors()(lambda w: sandbox.rows(w.sandbox_study)),
        job=one_line_errors()(lambda w: sandbox.job("statistics", w.sandbox_study)),
    output:
        expand("results/sandbox/studies/{{sandbox_study}}/{table}", table=_TABLES),
    log:
        "results/sandbox/logs/statistics/{sandbox_study}.log",
    message:
        "Sandbox, {wildcards.sandbox_study}: statistics"
    shell:
        "python -m hgrpo.cli.sandbox_study statistics --config {input.job:q}"
        " --output results/sandbox/studies/{wildcards.sandbox_study} > {log:q} 2>&1"


rule sandbox_draw:
    """Draw the figures of a study, each with a CSV of its data."""
    input:
        one_line_errors()(lambda w: sandbox.rows(w.sandbox_study)),
        job=one_line_errors()(lambda w: sandbox.job("figures", w.sandbox_study)),
    output:
        directory("results/sandbox/studies/{sandbox_study}/figures"),
    log:
        "results/sandbox/logs/figures/{sandbox_study}.log",
    message:
        "Sandbox, {wildcards.sandbox_study}: figures"
    shell:
        "python -m hgrpo.cli.sandbox_study figures --config {input.job:q}"
        " --output {output} > {log:q} 2>&1"


rule sandbox_page:
    """Write the page with all studies."""
    input:
        one_line_errors()(lambda w: sandbox.of_all(*_REPORTED)),
        job=one_line_errors()(lambda w: sandbox.job("page")),
    output:
        "results/sandbox/sandbox.html",
    log:
        "results/sandbox/logs/page.log",
    message:
        "Sandbox: the page"
    shell:
        "python -m hgrpo.cli.sandbox_study page --config {input.job:q} --output {output} > {log:q} 2>&1"


rule sandbox_tiny:
    """Run a few steps with two seeds of every arm of a study, and write tables and figures."""
    input:
        job=one_line_errors()(lambda w: tiny.job("tiny", w.sandbox_study)),
    output:
        tables=expand("results/sandbox_ci/studies/{{sandbox_study}}/{table}", table=_TABLES),
        figures=directory("results/sandbox_ci/studies/{sandbox_study}/figures"),
    log:
        "results/sandbox_ci/logs/{sandbox_study}.log",
    message:
        "Sandbox, {wildcards.sandbox_study}: a tiny pass"
    shell:
        "OMP_NUM_THREADS={threads} python -m hgrpo.cli.sandbox_study tiny --config {input.job:q}"
        " --output results/sandbox_ci/studies/{wildcards.sandbox_study} > {log:q} 2>&1"


use rule sandbox_page as sandbox_ci with:
    input:
        one_line_errors()(lambda w: tiny.of_all(*_REPORTED)),
        job=one_line_errors()(lambda w: tiny.job("page")),
    output:
        "results/sandbox_ci/sandbox.html",
    log:
        "results/sandbox_ci/logs/page.log",
    message:
        "Sandbox: the page of the tiny pass"


rule sandbox_all:
    """Run all studies of the sandbox, and write their page."""
    input:
        "results/sandbox/sandbox.html",
    localrule: True


rule sandbox_figures:
    """Draw all figures of the sandbox."""
    input:
        one_line_errors()(lambda w: sandbox.of_all("studies/{}/figures")),
    localrule: True


for _name in sandbox.names:

    rule:
        """Run one study of the sandbox."""
        name:
            f"sandbox_{_name}"
        input:
            expand(f"results/sandbox/studies/{_name}/{{file}}", file=(*_TABLES, "figures")),
        localrule: True
        message:
            f"Sandbox, {_name}"
