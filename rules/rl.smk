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
    # Rounds start early, because the rounds of a run are sequential and take most of the time. Arms
    # that play continuations take several times as long, so their first seed has a higher priority.
    priority: of.urgency
    threads: of.threads("rl_round")
    resources:
        **of.resources("rl_round"),
        # `processes` is a resource and not a param, because it does not change results.
        processes=max(1, of.gpus("rl_round", workflow.resource_settings.overwrite_resources)),
    params:
        job=command("rl_round"),
    message:
        "{wildcards.method}, seed {wildcards.seed}: round {wildcards.round}"
    shell:
        "python -m hgrpo.cli.stage rl_round --job {params.job:q} --processes {resources.processes} > {log:q} 2>&1"
