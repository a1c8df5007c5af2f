"""All credit assigners of the study on the same rollouts: no new play, no GPU.

OUTPUTS, in credit_agreement/:
    credits.parquet                 credit of every turn by every method
    correlations.csv                rank correlation of every two methods
    checks.csv                      what each method's credit adds up to
    agreement.svg, agreement.csv    the correlations as a picture
    gallery.svg, gallery.csv        a few trajectories, coloured by every method
    index.json                      titles and captions of the pictures
    summary.json                    seconds, and what the assigners report
"""


rule credit_agreement:
    """Do the assigners agree? Tables and two pictures."""
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
