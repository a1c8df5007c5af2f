"""Rule for rounds of reinforcement learning; round r starts from the policy of round r - 1."""


rule rl_round:
    """Run one round of training: collect rollouts, assign credit and update the policy."""
    input:
        unpack(files("rl_round")),
    output:
        **of.outputs("rl_round"),
    log:
        of.log("rl_round"),
    wildcard_constraints:
        method=TRAINED,
        round=TRAINED_ROUNDS,
    # The rounds of a run are sequential and take longest, so they start early. Arms whose credit plays
    # continuations come first, with their first seed, because they take several times as long.
    priority: of.urgency
    threads: of.threads("rl_round")
    resources:
        **of.resources("rl_round"),
        # A resource instead of a param, because the number of processes does not change results.
        processes=max(1, of.gpus("rl_round", workflow.resource_settings.overwrite_resources)),
    params:
        job=command("rl_round"),
    message:
        "{wildcards.method}, seed {wildcards.seed}: round {wildcards.round}"
    shell:
        "python -m hgrpo.cli.stage rl_round --job {params.job:q} --processes {resources.processes} > {log:q} 2>&1"
