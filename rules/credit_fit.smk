"""Fits of learnt credit assigners, such as TurnRD, between the rounds of the methods that use them.

OUTPUTS, in credit_fit/<method>/seed_<s>/round_<r>/:
    model.safetensors    the assigner's weights after the rounds 1 to r
    model.json           its settings and its metrics
    train_log.json       a row for the start, then one per epoch
"""


rule credit_fit:
    """Fit on the trajectories of all rounds up to this one."""
    input:
        unpack(files("credit_fit")),
    output:
        **of.outputs("credit_fit"),
    log:
        of.log("credit_fit"),
    wildcard_constraints:
        method=TRAINED,
        round=TRAINED_ROUNDS,
    # Runs with fits take longest, because their rounds wait for fits. So fits come before rounds.
    priority: 15
    threads: of.threads("credit_fit")
    resources:
        **of.resources("credit_fit"),
    params:
        job=command("credit_fit"),
    message:
        "{wildcards.method}, seed {wildcards.seed}: credit fit after round {wildcards.round}"
    shell:
        "python -m hgrpo.cli.stage credit_fit --job {params.job:q} > {log:q} 2>&1"
