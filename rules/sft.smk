"""Rules for the base model and its supervised fine-tuning."""


rule base:
    """Build the tiny base model from the expert's text, or convert a pretrained one."""
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
    """Fine-tune on expert trajectories, or copy the adapter in `sft.adapter`."""
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
