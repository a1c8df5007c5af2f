"""Evaluation of every round on the validation and test panels.

OUTPUTS, in eval/<method>/seed_<s>/round_<r>/:
    episodes.parquet     one row per episode
    summary.json
"""


rule evaluate:
    """Play both panels with the policy of one round."""
    input:
        **named(
            REMOTE,
            architecture=architecture_beside(evaluated_policy),
            **BESIDE_BASE,
            **TASKS,
        ),
        **SUMMARY_OF_BASE,
        policy=evaluated_policy,
        base=f"{R}/base/model.safetensors",
        panels=f"{R}/assets/panels.json",
    output:
        episodes=f"{R}/eval/{RUN}/episodes.parquet",
        summary=f"{R}/eval/{RUN}/summary.json",
    log:
        f"{R}/logs/evaluate/{RUN_NAME}.log",
    benchmark:
        f"{R}/benchmarks/evaluate/{RUN_NAME}.jsonl"
    threads: cores("evaluate")
    resources:
        **asks("evaluate"),
    params:
        cfg=lambda wildcards: cfg("evaluate", wildcards.method),
        code=code_version("evaluate"),
        assets=here(f"{R}/assets"),
        base=here(f"{R}/base"),
        policy=subpath(input.policy, parent=True),
        out=here(f"{R}/eval/{RUN}"),
    message:
        "{wildcards.method}, seed {wildcards.seed}: evaluation of round {wildcards.round}"
    shell:
        UNPACK_TASKS
        + UNPACK_BASE
        + "OMP_NUM_THREADS={threads} python -m hgrpo.cli.evaluate --config {params.cfg:q}"
        " --method {wildcards.method} --seed {wildcards.seed} --round {wildcards.round}"
        " --assets {params.assets:q} --base {params.base:q} --policy {params.policy:q}"
        " --out {params.out:q} > {log:q} 2>&1"
