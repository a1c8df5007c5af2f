"""Rounds of reinforcement learning: a static chain, in which round r starts from round r - 1.

OUTPUTS, in rl/<method>/seed_<s>/round_<r>/:
    adapter/             the policy after the round, and the optimiser's moments beside it
    turns.parquet        one row per turn: rewards, progress, credit, advantage
    sequences.parquet    one row per trajectory: token ids, action spans, behaviour log-probs
    train_log.json       one row per optimiser batch
    summary.json, config.yaml
"""


rule rl_round:
    """Collect, credit, update, for the steps of one round."""
    input:
        unpack(files("rl_round")),
    output:
        **of.outputs("rl_round"),
    log:
        of.log("rl_round"),
    wildcard_constraints:
        method=TRAINED,
        round=TRAINED_ROUNDS,
    # The rounds of a run follow each other and take longest, so they start early: first those of the
    # first seed whose credit plays on, which take several times as long as others.
    priority: of.urgency
    threads: of.threads("rl_round")
    resources:
        **of.resources("rl_round"),
        # This is a resource, because the number of processes changes no result.
        processes=max(1, of.gpus("rl_round", workflow.resource_settings.overwrite_resources)),
    params:
        job=command("rl_round"),
    message:
        "{wildcards.method}, seed {wildcards.seed}: round {wildcards.round}"
    shell:
        "python -m hgrpo.cli.stage rl_round --job {params.job:q} --processes {resources.processes} > {log:q} 2>&1"
