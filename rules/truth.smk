"""Rules that measure the ground-truth credit of turns, with continuations of rollouts."""


rule truth_round:
    """Play groups of rollouts, and continuations from the state before each of their turns."""
    input:
        unpack(files("truth_round")),
    output:
        **of.outputs("truth_round"),
    log:
        of.log("truth_round"),
    threads: of.threads("truth_round")
    resources:
        **of.resources("truth_round"),
    params:
        job=command("truth_round"),
    message:
        "Ground-truth credit of the policy after round {wildcards.round}"
    shell:
        "python -m hgrpo.cli.stage truth_round --job {params.job:q} > {log:q} 2>&1"


rule truth:
    """Measure ground-truth credit for all policies in the study's section `truth`."""
    input:
        one_line_errors()(lambda w: of.measured("truth", truth_files(study, "truth.parquet"))),
    localrule: True
