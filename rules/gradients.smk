"""Which gradient drives a policy: norms of the task's, the KL's and the entropy's, by bucket.

OUTPUTS, in gradients/<method>/seed_<s>/round_<r>/, for the policy after round r (0: the SFT policy):
    buckets.csv     one row per pass, bucket and component
    groups.csv      one row per group that was played
    summary.json    totals, and how the advantages were whitened
and in gradients_page/: index.html, its tables as CSV, and its figures
"""


rule gradients_round:
    """Play groups, cut them into buckets, and measure the gradients of each."""
    input:
        unpack(inputs("gradients_round")),
    output:
        **of.outputs("gradients_round"),
    log:
        of.log("gradients_round"),
    benchmark:
        of.benchmark("gradients_round")
    wildcard_constraints:
        method=TRAINED,
    threads: cores("gradients_round")
    resources:
        **asks("gradients_round"),
    params:
        cfg=lambda wildcards: of.cfg("gradients_round", wildcards.method),
        code=lambda wildcards: of.code("gradients_round", wildcards.method),
        options=of.options("gradients_round"),
        scratch=of.scratch("gradients_round"),
        cache=f"{R}/cache",
    message:
        "{wildcards.method}, seed {wildcards.seed}: gradients after round {wildcards.round}"
    shell:
        "OMP_NUM_THREADS={threads} python -m hgrpo.cli.gradients_round --config {params.cfg:q}"
        " --progress {log:q} --seed {wildcards.seed} --round {wildcards.round} {params.options:q}"
        " --cache {params.cache:q} --scratch {params.scratch:q} > {log:q} 2>&1"


rule gradients_page:
    """Norms by bucket as figures and tables, with verdicts."""
    input:
        unpack(inputs("gradients_page")),
    output:
        **of.outputs("gradients_page"),
    log:
        of.log("gradients_page"),
    threads: cores("gradients_page")
    resources:
        **asks("gradients_page"),
    params:
        cfg=lambda _: of.cfg("gradients_page"),
        code=of.code("gradients_page"),
        options=of.options("gradients_page"),
    message:
        "Page about gradients"
    shell:
        "python -m hgrpo.cli.gradients_page --config {params.cfg:q}"
        " --progress {log:q} {params.options:q} > {log:q} 2>&1"


rule gradients:
    """The gradients of every policy that the study's section `gradients` names, and their page."""
    input:
        wanted_gradients,
    localrule: True
