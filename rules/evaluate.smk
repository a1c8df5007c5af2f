"""Rules that evaluate all rounds on the validation and test panels."""


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
    # Evaluations have a higher priority than rounds, so that the first results are available early.
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
    """Run all evaluations, but not merge, statistics and report."""
    input:
        evaluations(),
    localrule: True


rule smoke_wave:
    """Run all evaluations of the methods in `smoke_wave` (default: the reference)."""
    input:
        evaluations([method for method in study.methods if method in FIRST]),
    localrule: True


rule rest_wave:
    """Run all evaluations of the methods that are not in `smoke_wave`."""
    input:
        evaluations([method for method in study.methods if method not in FIRST]),
    localrule: True


for axis, arms in study.axis_arms.items():

    rule:
        """Run all evaluations of the arms of one axis, which need not include the reference."""
        name:
            target(axis)
        input:
            evaluations(list(arms.values())),
        localrule: True
