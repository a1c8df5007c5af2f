"""Merge, statistics, tables, figures and the page; none of it imports torch.

OUTPUTS, in report/:
    episodes.parquet           every evaluated episode of every arm
    methods_comparison.json    a summary of all arms
    findings.txt               the report's headline and cautions
    tables/, figures/          each figure as SVG beside the CSV it was drawn from
    report.html                one self-contained page
"""


rule merge:
    """All episodes of all arms in one table, checked to come from the same panels."""
    input:
        unpack(of.inputs("merge")),
    output:
        **of.outputs("merge"),
    log:
        of.log("merge"),
    benchmark:
        of.benchmark("merge")
    threads: cores("merge")
    resources:
        **asks("merge"),
    params:
        cfg=lambda _: of.cfg("merge"),
        code=of.code("merge"),
        options=of.options("merge"),
    message:
        "Merge the episodes of all arms"
    shell:
        "python -m hgrpo.cli.merge --config {params.cfg:q}"
        " --progress {log:q} {params.options:q} > {log:q} 2>&1"


rule figures:
    """Every figure as SVG, with the numbers it shows as CSV; drawn from cached results."""
    input:
        unpack(of.inputs("figures")),
    output:
        index=of.outputs("figures")["index"],
        figures=shown(of.outputs("figures")["figures"], "Figures", "captions/figure.rst"),
    log:
        of.log("figures"),
    benchmark:
        of.benchmark("figures")
    threads: cores("figures")
    resources:
        **asks("figures"),
    params:
        cfg=lambda _: of.cfg("figures"),
        code=of.code("figures"),
        options=of.options("figures"),
    message:
        "Figures"
    shell:
        "python -m hgrpo.cli.figures --config {params.cfg:q}"
        " --progress {log:q} {params.options:q} > {log:q} 2>&1"


rule report:
    """Statistics, tables and report.html."""
    input:
        unpack(of.inputs("report")),
    output:
        page=shown([of.outputs("report")["page"]], "Page", "captions/page.rst"),
        comparison=of.outputs("report")["comparison"],
        findings=of.outputs("report")["findings"],
        tables=shown(of.outputs("report")["tables"], "Tables", "captions/table.rst"),
    log:
        of.log("report"),
    benchmark:
        of.benchmark("report")
    threads: cores("report")
    resources:
        **asks("report"),
    params:
        cfg=lambda _: of.cfg("report"),
        code=of.code("report"),
        options=of.options("report"),
        # Not an input: whoever wants a report need not want truth, which takes long.
        agreement=of.agreement_folder(),
        truth=of.truth_digest(),
        imported=imported_here(),
    message:
        "Tables and the report"
    shell:
        "python -m hgrpo.cli.report --config {params.cfg:q}"
        " --progress {log:q} --agreement {params.agreement:q}"
        " --imported {params.imported:q} {params.options:q} > {log:q} 2>&1"
