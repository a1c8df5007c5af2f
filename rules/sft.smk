"""The base model and its supervised fine-tuning.

OUTPUTS:
    base/model.safetensors   the base model's weights
    base/companions.tar.gz   its config, tokenizer and chat template
    base/summary.json        parameters, vocabulary, and the digest of all of it
    sft/adapter/             the SFT policy, where every arm starts; the KL penalty's reference
    sft/train_log.json       loss by step
    sft/summary.json
"""


rule base:
    """Build the tiny base model on the text of the expert, or adopt a pretrained one."""
    input:
        unpack(of.inputs("base")),
    output:
        **of.outputs("base"),
    log:
        of.log("base"),
    cache: SHARED
    threads: cores("base")
    resources:
        **asks("base"),
    params:
        cfg=lambda _: of.cfg("base"),
        code=of.code("base"),
        source=of.model_folder_digest(),
        contents=contents("base"),
        options=of.options("base"),
    message:
        "Base model"
    shell:
        "OMP_NUM_THREADS={threads} python -m hgrpo.cli.base --config {params.cfg:q}"
        " --progress {log:q} {params.options:q} > {log:q} 2>&1"


rule sft:
    """Supervised fine-tuning on expert trajectories, or an adapter that the user gives."""
    input:
        unpack(of.inputs("sft")),
    output:
        **of.outputs("sft"),
    log:
        of.log("sft"),
    cache: SHARED
    threads: cores("sft")
    resources:
        **asks("sft"),
    params:
        cfg=lambda _: of.cfg("sft"),
        code=of.code("sft"),
        given=of.given_adapter_digest(),
        options=of.options("sft"),
        scratch=of.scratch("sft"),
    message:
        "Supervised fine-tuning"
    shell:
        "OMP_NUM_THREADS={threads} python -m hgrpo.cli.sft --config {params.cfg:q}"
        " --progress {log:q} {params.options:q} --scratch {params.scratch:q} > {log:q} 2>&1"
