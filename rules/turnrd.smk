"""Fits of TurnRD between the rounds of the methods that use it.

OUTPUTS, in turnrd/<method>/seed_<s>/round_<r>/:
    model.safetensors    the model after the rounds 1 to r
    model.json           its settings and its metrics
    train_log.json       a row for the start, then one per epoch
"""


rule turnrd_fit:
    """Fit on the trajectories of all rounds up to this one."""
    input:
        **named(REMOTE, cards=cards(previous_fit)),
        rounds=lambda wildcards: [
            f"{R}/rl/{wildcards.method}/seed_{wildcards.seed}/round_{number}/{name}.parquet"
            for number in range(1, int(wildcards.round) + 1)
            for name in ("sequences", "turns")
        ],
        previous=previous_fit,
    output:
        model=f"{R}/turnrd/{RUN}/model.safetensors",
        card=f"{R}/turnrd/{RUN}/model.json",
        log=f"{R}/turnrd/{RUN}/train_log.json",
    log:
        f"{R}/logs/turnrd_fit/{RUN_NAME}.log",
    benchmark:
        f"{R}/benchmarks/turnrd_fit/{RUN_NAME}.jsonl"
    priority: 10
    threads: cores("turnrd_fit")
    resources:
        **asks("turnrd_fit"),
    params:
        cfg=lambda wildcards: cfg("turnrd_fit", wildcards.method),
        code=code_version("turnrd_fit"),
        rounds=lambda wildcards: [
            here(f"{R}/rl/{wildcards.method}/seed_{wildcards.seed}/round_{number}")
            for number in range(1, int(wildcards.round) + 1)
        ],
        previous=lambda wildcards, input: [
            part for path in input.previous for part in ("--previous", os.path.dirname(path))
        ],
        out=subpath(output.model, parent=True),
    message:
        "{wildcards.method}, seed {wildcards.seed}: TurnRD fit after round {wildcards.round}"
    shell:
        "OMP_NUM_THREADS={threads} python -m hgrpo.cli.turnrd_fit --config {params.cfg:q}"
        " --seed {wildcards.seed} --round {wildcards.round} --rounds {params.rounds:q}"
        " {params.previous:q} --out {params.out:q} > {log:q} 2>&1"
