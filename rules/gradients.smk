"""Rules that measure the norms of task, KL and entropy gradients for each bucket of groups."""


rule gradients_round:
    """Play groups, split them into buckets, and measure the gradients of each bucket."""
    input:
        unpack(files("gradients_round")),
    output:
        **of.outputs("gradients_round"),
    log:
        of.log("gradients_round"),
    wildcard_constraints:
        method=TRAINED,
    threads: of.threads("gradients_round")
    resources:
        **of.resources("gradients_round"),
    params:
        job=command("gradients_round"),
    message:
        "{wildcards.method}, seed {wildcards.seed}: gradients after round {wildcards.round}"
    shell:
        "python -m hgrpo.cli.stage gradients_round --job {params.job:q} > {log:q} 2>&1"


rule gradients_page:
    """Write figures, tables and verdicts on gradient norms by bucket."""
    input:
        unpack(files("gradients_page")),
    output:
        **of.outputs("gradients_page"),
    log:
        of.log("gradients_page"),
    threads: of.threads("gradients_page")
    resources:
        **of.resources("gradients_page"),
    params:
        job=command("gradients_page"),
    message:
        "Gradients page"
    shell:
        "python -m hgrpo.cli.stage gradients_page --job {params.job:q} > {log:q} 2>&1"


GRADIENTS = ["gradients_page/index.html"] if gradient_rounds(study) else []


rule gradients:
    """Measure all policies in the study's section `gradients`, and write their page."""
    input:
        one_line_errors()(lambda w: of.measured("gradients", GRADIENTS)),
    localrule: True
