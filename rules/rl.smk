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
        unpack(inputs("rl_round")),
    output:
        **of.outputs("rl_round"),
    log:
        of.log("rl_round"),
    benchmark:
        of.benchmark("rl_round")
    wildcard_constraints:
        method=TRAINED,
        round=TRAINED_ROUNDS,
    # The rounds of a run follow each other and take longest, so they start early.
    priority: early(10)
    threads: cores("rl_round")
    resources:
        **asks("rl_round"),
        # This is a resource, not a param, because the number of processes changes no result.
        processes=max(1, gpus("rl_round")),
    params:
        cfg=lambda wildcards: of.cfg("rl_round", wildcards.method),
        code=lambda wildcards: of.code("rl_round", wildcards.method),
        options=of.options("rl_round"),
        cache=f"{R}/cache",
        scratch=of.scratch("rl_round"),
    message:
        "{wildcards.method}, seed {wildcards.seed}: round {wildcards.round}"
    shell:
        "OMP_NUM_THREADS={threads} python -m hgrpo.cli.rl_round --config {params.cfg:q}"
        " --progress {log:q} --seed {wildcards.seed} --round {wildcards.round} {params.options:q}"
        " --cache {params.cache:q} --scratch {params.scratch:q}"
        " --processes {resources.processes} > {log:q} 2>&1"
