"""Which gradient drives a policy: norms of the task's, the KL's and the entropy's, by bucket.

OUTPUTS, in gradients/<method>/seed_<s>/round_<r>/, for the policy after round r (0: the SFT policy):
    buckets.csv     one row per pass, bucket and component
    groups.csv      one row per group that was played
    summary.json    totals, and how the advantages were whitened
and in gradients_page/: index.html, its tables as CSV, and its figures
"""


rule gradients_round:
    """Play groups, cut them into buckets, and measure the gradients of each."""
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
    """Norms by bucket as figures and tables, with verdicts."""
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
        "Page about gradients"
    shell:
        "python -m hgrpo.cli.stage gradients_page --job {params.job:q} > {log:q} 2>&1"


GRADIENTS = ["gradients_page/index.html"] if gradient_rounds(study) else []


rule gradients:
    """The gradients of every policy that the study's section `gradients` names, and their page."""
    input:
        one_line_errors()(lambda w: of.measured("gradients", GRADIENTS)),
    localrule: True
