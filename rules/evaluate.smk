"""Evaluation of every round on the validation and test panels.

OUTPUTS, in eval/<method>/seed_<s>/round_<r>/:
    episodes.parquet     one row per episode
    summary.json
"""


rule evaluate:
    """Play both panels with the policy of one round."""
    input:
        unpack(files("evaluate")),
    output:
        **of.outputs("evaluate"),
    log:
        of.log("evaluate"),
    wildcard_constraints:
        seed=any_of([*study.config.seeds, EVERY_SEED]),
    # Evaluations come before rounds: an early result is worth more than an early new arm.
    priority: 20
    threads: of.threads("evaluate")
    resources:
        **of.resources("evaluate"),
    params:
        job=command("evaluate"),
    message:
        "{wildcards.method}, seed {wildcards.seed}: evaluation of round {wildcards.round}"
    shell:
        "python -m hgrpo.cli.stage evaluate --job {params.job:q} > {log:q} 2>&1"


rule evaluations:
    """Every evaluation, without merge, statistics and report."""
    input:
        evaluations(),
    localrule: True


rule smoke_wave:
    """Every evaluation of the methods in `smoke_wave`, or of the reference."""
    input:
        evaluations([method for method in study.methods if method in FIRST]),
    localrule: True


rule rest_wave:
    """Every evaluation of the other methods."""
    input:
        evaluations([method for method in study.methods if method not in FIRST]),
    localrule: True


for axis, arms in study.axis_arms.items():

    rule:
        """Every evaluation of the arms of one axis; the reference only if it is one of them."""
        name:
            target(axis)
        input:
            evaluations(list(arms.values())),
        localrule: True
