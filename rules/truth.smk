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
        unpack(inputs("truth_round")),
    output:
        **of.outputs("truth_round"),
    log:
        of.log("truth_round"),
    benchmark:
        of.benchmark("truth_round")
    threads: cores("truth_round")
    resources:
        **asks("truth_round"),
    params:
        cfg=lambda _: of.cfg("truth_round"),
        code=of.code("truth_round"),
        seed=study.config.seeds[0],
        options=of.options("truth_round"),
        scratch=of.scratch("truth_round"),
    message:
        "Truth of the policy after round {wildcards.round}"
    shell:
        "OMP_NUM_THREADS={threads} python -m hgrpo.cli.truth_round --config {params.cfg:q}"
        " --progress {log:q} --seed {params.seed} --round {wildcards.round} {params.options:q}"
        " --scratch {params.scratch:q} > {log:q} 2>&1"


rule truth:
    """The truth of every policy that the study's section `truth` names."""
    input:
        wanted_truths,
    localrule: True
