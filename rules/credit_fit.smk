"""Rule that fits learned credit assigners, such as TurnRD, between the rounds of their arms."""


rule credit_fit:
    """Fit an assigner on the trajectories of all rounds so far."""
    input:
        unpack(files("credit_fit")),
    output:
        **of.outputs("credit_fit"),
    log:
        of.log("credit_fit"),
    wildcard_constraints:
        method=TRAINED,
        round=TRAINED_ROUNDS,
    # Jobs that fit an assigner have a higher priority than rounds. Runs with such jobs take
    # longest, because each of their rounds waits for the fitted assigner.
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
