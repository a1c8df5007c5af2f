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
        unpack(files("base")),
    output:
        **of.outputs("base"),
    log:
        of.log("base"),
    threads: of.threads("base")
    resources:
        **of.resources("base"),
    params:
        job=command("base"),
    message:
        "Base model"
    shell:
        "python -m hgrpo.cli.stage base --job {params.job:q} > {log:q} 2>&1"


rule sft:
    """Supervised fine-tuning on expert trajectories, or an adapter that the user gives."""
    input:
        unpack(files("sft")),
    output:
        **of.outputs("sft"),
    log:
        of.log("sft"),
    threads: of.threads("sft")
    resources:
        **of.resources("sft"),
    params:
        job=command("sft"),
    message:
        "Supervised fine-tuning"
    shell:
        "python -m hgrpo.cli.stage sft --job {params.job:q} > {log:q} 2>&1"
