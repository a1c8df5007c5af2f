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
        unpack(inputs("credit_agreement")),
    output:
        **of.outputs("credit_agreement"),
    log:
        of.log("credit_agreement"),
    benchmark:
        of.benchmark("credit_agreement")
    threads: cores("credit_agreement")
    resources:
        **asks("credit_agreement"),
    params:
        cfg=lambda _: of.cfg("credit_agreement"),
        code=of.code("credit_agreement"),
        seed=study.config.seeds[0],
        options=of.options("credit_agreement"),
        cache=f"{R}/cache",
    message:
        "Credit agreement"
    shell:
        "OMP_NUM_THREADS={threads} python -m hgrpo.cli.credit_agreement --config {params.cfg:q}"
        " --progress {log:q}"
        " --seed {params.seed} {params.options:q} --cache {params.cache:q} > {log:q} 2>&1"
