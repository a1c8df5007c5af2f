"""Rules for merge, statistics, tables, figures and the report; their jobs do not import torch."""


rule merge:
    """Merge all episodes, and check that they come from the same panels."""
    input:
        unpack(files("merge")),
    output:
        **of.outputs("merge"),
    log:
        of.log("merge"),
    threads: of.threads("merge")
    resources:
        **of.resources("merge"),
    params:
        job=command("merge"),
    message:
        "Merge the episodes of all arms"
    shell:
        "python -m hgrpo.cli.stage merge --job {params.job:q} > {log:q} 2>&1"


rule figures:
    """Draw all figures from cached results, as SVG with their data as CSV."""
    input:
        unpack(files("figures")),
    output:
        index=of.outputs("figures")["index"],
        figures=labelled(of.outputs("figures")["figures"], "Figures", "captions/figure.rst"),
    log:
        of.log("figures"),
    threads: of.threads("figures")
    resources:
        **of.resources("figures"),
    params:
        job=command("figures"),
    message:
        "Figures"
    shell:
        "python -m hgrpo.cli.stage figures --job {params.job:q} > {log:q} 2>&1"


rule report:
    """Compute the statistics, and write the tables and report.html."""
    input:
        unpack(files("report")),
    output:
        page=labelled([of.outputs("report")["page"]], "Page", "captions/page.rst"),
        comparison=of.outputs("report")["comparison"],
        findings=of.outputs("report")["findings"],
        tables=labelled(of.outputs("report")["tables"], "Tables", "captions/table.rst"),
    log:
        of.log("report"),
    threads: of.threads("report")
    resources:
        **of.resources("report"),
    params:
        job=command("report"),
    message:
        "Tables and the report"
    shell:
        "python -m hgrpo.cli.stage report --job {params.job:q} > {log:q} 2>&1"
