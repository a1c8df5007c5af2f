"""Rules for pages and links that are created only when requested; they do not train or evaluate."""


rule viewer:
    """Write a page that shows single trajectories. It can be opened without a server."""
    input:
        unpack(files("viewer")),
    output:
        **of.outputs("viewer"),
    log:
        of.log("viewer"),
    threads: of.threads("viewer")
    resources:
        **of.resources("viewer"),
    params:
        job=command("viewer"),
    message:
        "Page of single trajectories"
    shell:
        "python -m hgrpo.cli.stage viewer --job {params.job:q} > {log:q} 2>&1"


rule paper:
    """Write figures and tables in the sizes and formats of a paper."""
    input:
        unpack(files("paper")),
    output:
        **of.outputs("paper"),
    log:
        of.log("paper"),
    threads: of.threads("paper")
    resources:
        **of.resources("paper"),
    params:
        job=command("paper"),
    message:
        "Figures and tables for a paper"
    shell:
        "python -m hgrpo.cli.stage paper --job {params.job:q} > {log:q} 2>&1"


rule linked:
    """Link a file of the study to its path below results/<study>."""
    input:
        one_line_errors()(of.linked),
    output:
        # `output` may be a link from an earlier run. Without `update`, Snakemake would delete the
        # link's target.
        update(f"{plan.root}/{{path}}"),
    log:
        "results/store/links/{path}.log",
    localrule: True
    message:
        "{wildcards.path}"
    shell:
        "python -m hgrpo.cli.store link {output:q} {input:q} > {log:q} 2>&1"
