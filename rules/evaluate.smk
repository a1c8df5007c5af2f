"""Evaluation of every round on the validation and test panels.

OUTPUTS, in eval/<method>/seed_<s>/round_<r>/:
    episodes.parquet     one row per episode
    summary.json
"""


rule evaluate:
    """Play both panels with the policy of one round."""
    input:
        unpack(inputs("evaluate")),
    output:
        **of.outputs("evaluate"),
    log:
        of.log("evaluate"),
    benchmark:
        of.benchmark("evaluate")
    wildcard_constraints:
        seed=any_of([*study.config.seeds, EVERY_SEED]),
    # Evaluations come before rounds: an early result is worth more than an early new arm.
    priority: 20
    threads: cores("evaluate")
    resources:
        **asks("evaluate"),
    params:
        cfg=lambda wildcards: of.cfg("evaluate", wildcards.method),
        code=lambda wildcards: of.code("evaluate", wildcards.method),
        options=of.options("evaluate"),
    message:
        "{wildcards.method}, seed {wildcards.seed}: evaluation of round {wildcards.round}"
    shell:
        "OMP_NUM_THREADS={threads} python -m hgrpo.cli.evaluate --config {params.cfg:q}"
        " --progress {log:q}"
        " --method {wildcards.method} --seed {wildcards.seed} --round {wildcards.round}"
        " {params.options:q} > {log:q} 2>&1"


rule evaluations:
    """Every evaluation, without merge, statistics and report."""
    input:
        with_config(evaluations()),
    localrule: True


rule smoke_wave:
    """Every evaluation of the methods in `smoke_wave`, or of the reference."""
    input:
        with_config(evaluations(smoke_methods())),
    localrule: True


rule rest_wave:
    """Every evaluation of the other methods."""
    input:
        with_config(
            evaluations([method for method in study.methods if method not in smoke_methods()])
        ),
    localrule: True


for axis in study.axis_arms:

    rule:
        """Every evaluation of the arms of one axis; the reference only if it is one of them."""
        name:
            target(axis)
        input:
            evaluations_of_axis(axis),
        localrule: True
