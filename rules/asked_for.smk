"""Pages that a run makes only if they are targets, and single files; nothing plays or trains.

OUTPUTS:
    viewer/index.html    single trajectories, coloured by what each arm gave every turn
    paper/               figures as SVG and PDF for a column and for a page, tables as LaTeX and Markdown
"""


rule viewer:
    """A page of single trajectories, which opens without a server."""
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
    """Figures and tables in the sizes and formats of a paper."""
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
    """A file of the study by its path below results/<study>."""
    input:
        one_line_errors()(of.linked),
    output:
        # Snakemake deletes other outputs before a job, here the file that an older link leads to.
        update(f"{plan.root}/{{path}}"),
    log:
        "results/store/links/{path}.log",
    localrule: True
    message:
        "{wildcards.path}"
    shell:
        "python -m hgrpo.cli.store link {output:q} {input:q} > {log:q} 2>&1"
