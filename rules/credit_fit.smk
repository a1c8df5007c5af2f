"""Fits of learnt credit assigners, such as TurnRD, between the rounds of the methods that use them.

OUTPUTS, in credit_fit/<method>/seed_<s>/round_<r>/:
    model.safetensors    the assigner's weights after the rounds 1 to r
    model.json           its settings and its metrics
    train_log.json       a row for the start, then one per epoch
"""


rule credit_fit:
    """Fit on the trajectories of all rounds up to this one."""
    input:
        unpack(inputs("credit_fit")),
    output:
        **of.outputs("credit_fit"),
    log:
        of.log("credit_fit"),
    benchmark:
        of.benchmark("credit_fit")
    wildcard_constraints:
        method=TRAINED,
        round=TRAINED_ROUNDS,
    # Runs with fits take longest, because their rounds wait for fits. So fits come before rounds.
    priority: early(15)
    threads: cores("credit_fit")
    resources:
        **asks("credit_fit"),
    params:
        cfg=lambda wildcards: of.cfg("credit_fit", wildcards.method),
        code=lambda wildcards: of.code("credit_fit", wildcards.method),
        options=of.options("credit_fit"),
    message:
        "{wildcards.method}, seed {wildcards.seed}: credit fit after round {wildcards.round}"
    shell:
        "OMP_NUM_THREADS={threads} python -m hgrpo.cli.credit_fit --config {params.cfg:q}"
        " --progress {log:q}"
        " --seed {wildcards.seed} --round {wildcards.round} {params.options:q} > {log:q} 2>&1"
