"""Rule that compares all credit assigners on the same stored rollouts; it requires no GPU."""


rule credit_agreement:
    """Write tables and plots of the agreement between assigners."""
    input:
        unpack(files("credit_agreement")),
    output:
        **of.outputs("credit_agreement"),
    log:
        of.log("credit_agreement"),
    threads: of.threads("credit_agreement")
    resources:
        **of.resources("credit_agreement"),
    params:
        job=command("credit_agreement"),
    message:
        "Credit agreement"
    shell:
        "python -m hgrpo.cli.stage credit_agreement --job {params.job:q} > {log:q} 2>&1"
