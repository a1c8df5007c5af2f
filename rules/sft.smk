"""The base model and its supervised fine-tuning.

OUTPUTS:
    base/                a Hugging Face folder: config, weights in one file, tokenizer
    sft/adapter/         the SFT policy, where every arm starts and what the KL is taken to
    sft/train_log.json   loss by step
    sft/summary.json
"""

from pathlib import Path

from hgrpo.base_model.digest import source_digest


def source():
    """What tells that the user's folder of a model holds another one now; of a store it is not asked."""
    if study.model.path is None or REMOTE:
        return {}
    return {"source": source_digest(study.model.path, Path(R, "base"))}


rule base:
    """Build the tiny base model on the text of the expert, or take over a pretrained one."""
    input:
        trajectories=f"{R}/expert/trajectories.parquet" if study.model.tiny else [],
    output:
        **named(SHARED and study.model.tiny, **tiny_extras()),
        **BESIDE_BASE,
        **SUMMARY_OF_BASE,
        config=f"{R}/base/config.json",
        weights=f"{R}/base/model.safetensors",
        tokenizer=f"{R}/base/tokenizer.json",
    log:
        f"{R}/logs/base.log",
    benchmark:
        f"{R}/benchmarks/base/base.jsonl"
    cache: SHARED and study.model.tiny is not None
    threads: cores("base")
    resources:
        **asks("base"),
    params:
        **source(),
        cfg=cfg("base"),
        code=code_version("base"),
        expert=here(f"{R}/expert"),
        out=subpath(output.config, parent=True),
    message:
        "Base model"
    shell:
        "OMP_NUM_THREADS={threads} python -m hgrpo.cli.base --config {params.cfg:q}"
        " --expert {params.expert:q} --seed 0 --out {params.out:q} > {log:q} 2>&1" + PACK_BASE


rule sft:
    """Supervised fine-tuning on expert trajectories."""
    input:
        **BESIDE_BASE,
        **SUMMARY_OF_BASE,
        base=f"{R}/base/model.safetensors",
        tokenizer=f"{R}/base/tokenizer.json",
        trajectories=f"{R}/expert/trajectories.parquet",
    output:
        **named(SHARED or REMOTE, architecture=architecture(f"{R}/sft/adapter")),
        policy=weights(f"{R}/sft/adapter"),
        log=f"{R}/sft/train_log.json",
        summary=f"{R}/sft/summary.json",
    log:
        f"{R}/logs/sft.log",
    benchmark:
        f"{R}/benchmarks/sft/sft.jsonl"
    cache: SHARED
    threads: cores("sft")
    resources:
        **asks("sft"),
    params:
        cfg=cfg("sft"),
        code=code_version("sft"),
        base=here(f"{R}/base"),
        expert=here(f"{R}/expert"),
        out=subpath(output.summary, parent=True),
    message:
        "Supervised fine-tuning"
    shell:
        UNPACK_BASE + "OMP_NUM_THREADS={threads} python -m hgrpo.cli.sft --config {params.cfg:q}"
        " --base {params.base:q} --expert {params.expert:q} --out {params.out:q}"
        " > {log:q} 2>&1"


without_times(*(["base", "sft"] if study.model.tiny else ["sft"]))
