"""Evaluation of every round on the validation and test panels."""


rule evaluate:
    """Evaluate the policy of one round on both panels."""
    input:
        unpack(files("evaluate")),
    output:
        **of.outputs("evaluate"),
    log:
        of.log("evaluate"),
    wildcard_constraints:
        seed=any_of([*study.config.seeds, EVERY_SEED]),
    # Evaluations run before new rounds so that the first results are available early.
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
    """All evaluations, without merge, statistics and report."""
    input:
        evaluations(),
    localrule: True


rule smoke_wave:
    """All evaluations of the methods in `smoke_wave`, by default of the reference."""
    input:
        evaluations([method for method in study.methods if method in FIRST]),
    localrule: True


rule rest_wave:
    """All evaluations of the other methods."""
    input:
        evaluations([method for method in study.methods if method not in FIRST]),
    localrule: True


for axis, arms in study.axis_arms.items():

    rule:
        """All evaluations of the arms of one axis; the reference only if it is one of them."""
        name:
            target(axis)
        input:
            evaluations(list(arms.values())),
        localrule: True
