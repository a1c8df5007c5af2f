"""Merge, statistics, tables, figures and the page; none of it imports torch.

OUTPUTS, in report/:
    episodes.parquet           every evaluated episode of every arm
    methods_comparison.json    the reference's summary of all arms
    tables/, figures/          each figure as SVG beside the CSV it was drawn from
    report.html                one self-contained page
"""


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


rule report:
    """Tables, figures and report.html."""
    input:
        episodes=f"{R}/report/episodes.parquet",
        config=f"{R}/config.yaml",
        logs=round_files("train_log.json"),
        summaries=round_files("summary.json"),
        turns=round_files("turns.parquet"),
        expert=f"{R}/expert/summary.json",
        sft=f"{R}/sft/summary.json",
        assets=f"{R}/assets/manifest.json",
    output:
        page=f"{R}/report/report.html",
        comparison=f"{R}/report/methods_comparison.json",
    log:
        f"{R}/logs/report.log",
    benchmark:
        f"{R}/benchmarks/report/report.jsonl"
    resources:
        **asks("report"),
    params:
        cfg=cfg("report"),
        code=code_version("report"),
        out=subpath(output.page, parent=True),
    message:
        "Tables, figures and the report"
    shell:
        "python -m hgrpo.cli.report --config {params.cfg:q} --out {params.out:q}" " > {log:q} 2>&1"
