"""What every turn was really worth: rollouts of a policy, and continuations from every turn.

OUTPUTS, in truth/round_<r>/, for the reference arm's policy after round r (0: the SFT policy):
    truth.parquet        one row per turn: values before and after it, their errors, its advantage
    turns.parquet        the rollouts, one row per turn
    sequences.parquet    the rollouts, one row per trajectory
    summary.json         totals, how reliable the truth is, seconds
"""


rule truth_round:
    """Play groups of rollouts, and play on from before each of their turns."""
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
        "Truth of the policy after round {wildcards.round}"
    shell:
        "python -m hgrpo.cli.stage truth_round --job {params.job:q} > {log:q} 2>&1"


rule truth:
    """The truth of every policy that the study's section `truth` names."""
    input:
        one_line_errors()(lambda w: of.measured("truth", truth_files(study, "truth.parquet"))),
    localrule: True
