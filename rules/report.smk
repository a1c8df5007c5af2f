"""Merge, statistics, tables, figures and the page; none of it imports torch.

OUTPUTS, in report/:
    episodes.parquet           every evaluated episode of every arm
    methods_comparison.json    the reference's summary of all arms
    tables/, figures/          each figure as SVG beside the CSV it was drawn from
    report.html                one self-contained page
"""

from hgrpo.report.names import RUNS, figure_names, run_figures, table_names


def figures():
    """Every figure of the whole study and its numbers."""
    names = figure_names(stage_config(study, "figures"), study.config.rounds)
    return expand(f"{R}/report/figures/{{name}}.{{kind}}", name=names, kind=["svg", "csv"])


def figures_of_runs():
    """The folder of the figures of single runs, since Snakemake keeps a record of each output.

    In a bucket they are files: its plugin takes a folder that a pod has made for missing.
    """
    names = run_figures(stage_config(study, "figures"), study.config.seeds)
    if REMOTE:
        return expand(f"{R}/report/figures/{{name}}.{{kind}}", name=names, kind=["svg", "csv"])
    return [f"{R}/report/figures/{RUNS}"] if names else []


def tables():
    """Every table of the study."""
    names = table_names(stage_config(study, "figures"))
    return expand(f"{R}/report/tables/{{name}}.csv", name=names)


def fit_logs():
    """The log of every TurnRD fit; none follows the last round."""
    return [
        f"{R}/turnrd/{method}/seed_{seed}/round_{round}/train_log.json"
        for method, seed, round in runs()
        if fits(method) and round < study.config.rounds
    ]


rule merge:
    """All episodes of all arms in one table, checked to come from the same panels."""
    input:
        evaluations(),
    output:
        f"{R}/report/episodes.parquet",
    log:
        f"{R}/logs/merge.log",
    benchmark:
        f"{R}/benchmarks/merge/merge.jsonl"
    resources:
        **asks("report"),
    params:
        cfg=cfg("merge"),
        code=code_version("merge"),
    message:
        "Merge the episodes of all arms"
    shell:
        "python -m hgrpo.cli.merge --config {params.cfg:q} --out {output:q} {input:q}"
        " > {log:q} 2>&1"


rule figures:
    """Every figure as SVG, with the numbers it shows as CSV; redrawn from cached results."""
    input:
        episodes=f"{R}/report/episodes.parquet",
        logs=round_files("train_log.json"),
        turns=round_files("turns.parquet", [1]),
        fits=fit_logs(),
    output:
        index=f"{R}/report/figures/index.json",
        files=figures(),
        runs=figures_of_runs() if REMOTE else directory(figures_of_runs()),
    log:
        f"{R}/logs/figures.log",
    benchmark:
        f"{R}/benchmarks/figures/figures.jsonl"
    resources:
        **asks("report"),
    params:
        cfg=cfg("figures"),
        code=code_version("figures"),
        out=subpath(output.index, parent=True),
    message:
        "Figures"
    shell:
        "python -m hgrpo.cli.figures --config {params.cfg:q} --episodes {input.episodes:q}"
        " --train-logs {input.logs:q} --turns {input.turns:q} --fits {input.fits:q}"
        " --out {params.out:q} > {log:q} 2>&1"


rule report:
    """Statistics, tables and report.html."""
    input:
        episodes=f"{R}/report/episodes.parquet",
        index=f"{R}/report/figures/index.json",
        figures=figures(),
        runs=figures_of_runs(),
        study=f"{R}/config.yaml",
        logs=round_files("train_log.json"),
        fits=fit_logs(),
        snapshots=round_files("config.yaml"),
        expert=f"{R}/expert/summary.json",
        sft=f"{R}/sft/summary.json",
        assets=f"{R}/assets/manifest.json",
    output:
        page=f"{R}/report/report.html",
        comparison=f"{R}/report/methods_comparison.json",
        tables=tables(),
    log:
        f"{R}/logs/report.log",
    benchmark:
        f"{R}/benchmarks/report/report.jsonl"
    resources:
        **asks("report"),
    params:
        cfg=cfg("report"),
        code=code_version("report"),
        figures=subpath(input.index, parent=True),
        tables=here(f"{R}/report/tables"),
    message:
        "Tables and the report"
    shell:
        "python -m hgrpo.cli.report --config {params.cfg:q} --study {input.study:q}"
        " --episodes {input.episodes:q} --train-logs {input.logs:q} --fits {input.fits:q}"
        " --figures {params.figures:q} --snapshots {input.snapshots:q}"
        " --expert {input.expert:q} --sft {input.sft:q} --assets {input.assets:q}"
        " --out {output.page:q} --comparison {output.comparison:q}"
        " --tables {params.tables:q} > {log:q} 2>&1"
