"""Pages and files that a run makes only if they are asked for; nothing plays or trains.

OUTPUTS:
    viewer/index.html    single trajectories, coloured by what each arm gave every turn
    paper/               figures as SVG and PDF for a column and for a page, tables as LaTeX and Markdown
"""


rule viewer:
    """A page of single trajectories, which opens without a server."""
    input:
        unpack(of.inputs("viewer")),
    output:
        **of.outputs("viewer"),
    log:
        of.log("viewer"),
    threads: cores("viewer")
    resources:
        **asks("viewer"),
    params:
        cfg=lambda _: of.cfg("viewer"),
        code=of.code("viewer"),
        options=of.options("viewer"),
        # Not inputs: whoever wants to look at trajectories need not want truth, which takes long.
        measured=f"{R}/truth",
        agreement=of.agreement_folder(),
        truth=of.truth_digest(),
    message:
        "Page of single trajectories"
    shell:
        "python -m hgrpo.cli.viewer --config {params.cfg:q}"
        " --progress {log:q} --truth {params.measured:q}"
        " --agreement {params.agreement:q} {params.options:q} > {log:q} 2>&1"


rule paper:
    """Figures and tables in the sizes and formats of a paper."""
    input:
        unpack(of.inputs("paper")),
    output:
        **of.outputs("paper"),
    log:
        of.log("paper"),
    threads: cores("paper")
    resources:
        **asks("paper"),
    params:
        cfg=lambda _: of.cfg("paper"),
        code=of.code("paper"),
        options=of.options("paper"),
    message:
        "Figures and tables for a paper"
    shell:
        "python -m hgrpo.cli.paper --config {params.cfg:q}"
        " --progress {log:q} {params.options:q} > {log:q} 2>&1"
