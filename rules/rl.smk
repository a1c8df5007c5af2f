"""Rounds of reinforcement learning: a static chain, round r starts from round r - 1.

OUTPUTS, in rl/<method>/seed_<s>/round_<r>/:
    adapter/             the policy after the round, and the optimiser's moments beside it
    turns.parquet        one row per turn: rewards, progress, credit, advantage
    sequences.parquet    one row per trajectory: token ids, action spans, behaviour log-probs
    train_log.json       one row per optimiser batch
    summary.json, config.yaml

The scratch folder holds the step checkpoints of an unfinished round. It is no output, so that it
survives a failure, and its name holds what it belongs to, so that an edit cannot resume it.
"""

import hashlib


def round_code(wildcards):
    """The hash of a round's code covers the method's own assigner, and no other."""
    return code_version("rl_round", study.methods[wildcards.method].credit.kind)


def scratch(wildcards):
    key = cfg("rl_round", wildcards.method) + round_code(wildcards)
    name = hashlib.sha256(key.encode()).hexdigest()[:12]
    return f"{R}/scratch/{wildcards.method}/seed_{wildcards.seed}/round_{wildcards.round}-{name}"


rule rl_round:
    """Collect, credit, update, for the steps of one round."""
    input:
        **named(
            REMOTE,
            architecture=architecture_beside(previous_policy),
            sft_architecture=architecture(f"{R}/sft/adapter"),
            cards=cards(fitted),
            **BESIDE_BASE,
            **TASKS,
        ),
        **SUMMARY_OF_BASE,
        policy=previous_policy,
        state=previous_state,
        sft=weights(f"{R}/sft/adapter"),
        base=f"{R}/base/model.safetensors",
        panels=f"{R}/assets/panels.json",
        fitted=fitted,
    output:
        **named(REMOTE, architecture=architecture(f"{R}/rl/{RUN}/adapter")),
        policy=weights(f"{R}/rl/{RUN}/adapter"),
        state=f"{R}/rl/{RUN}/adapter/trainer_state.pt",
        turns=f"{R}/rl/{RUN}/turns.parquet",
        sequences=f"{R}/rl/{RUN}/sequences.parquet",
        log=f"{R}/rl/{RUN}/train_log.json",
        summary=f"{R}/rl/{RUN}/summary.json",
        config=f"{R}/rl/{RUN}/config.yaml",
    log:
        f"{R}/logs/rl_round/{RUN_NAME}.log",
    benchmark:
        f"{R}/benchmarks/rl_round/{RUN_NAME}.jsonl"
    wildcard_constraints:
        round=r"[1-9]\d*",
    # The chain of rounds is the longest path: evaluations fill the gaps.
    priority: 10
    threads: cores("rl_round")
    resources:
        **asks("rl_round"),
        # No param: how many share a round is not what is computed.
        processes=max(1, gpus("rl_round")),
    params:
        cfg=lambda wildcards: cfg("rl_round", wildcards.method),
        code=round_code,
        scratch=scratch,
        assets=here(f"{R}/assets"),
        base=here(f"{R}/base"),
        sft=here(f"{R}/sft/adapter"),
        policy=subpath(input.policy, parent=True),
        fitted=lambda wildcards, input: [
            part for path in input.fitted for part in ("--fitted", os.path.dirname(path))
        ],
        cache=f"{R}/cache",
        out=here(f"{R}/rl/{RUN}"),
    message:
        "{wildcards.method}, seed {wildcards.seed}: round {wildcards.round}"
    shell:
        UNPACK_TASKS
        + UNPACK_BASE
        + "OMP_NUM_THREADS={threads} python -m hgrpo.cli.rl_round --config {params.cfg:q}"
        " --seed {wildcards.seed} --round {wildcards.round} --assets {params.assets:q}"
        " --base {params.base:q} --sft {params.sft:q} --policy {params.policy:q}"
        " {params.fitted:q} --cache {params.cache:q} --scratch {params.scratch:q}"
        " --out {params.out:q} --processes {resources.processes} > {log:q} 2>&1"
