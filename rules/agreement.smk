"""All credit assigners of the study on the same rollouts: no new play, no GPU.

OUTPUTS, in credit_agreement/:
    credits.parquet                 credit of every turn by every method
    correlations.csv                rank correlation of every two methods
    checks.csv                      what each method's credit adds up to
    agreement.svg, agreement.csv    the correlations as a picture
    gallery.svg, gallery.csv        a few trajectories, coloured by every method
    index.json                      titles and captions of the pictures
    summary.json                    seconds, and what the assigners report

Read are the rollouts of the reference method's first seed, in round 2: by then every TurnRD has a
model of its own round 1. A study of one round has none, and TurnRD falls back on equal shares.
"""

_AGREEMENT_ROUND = min(2, study.config.rounds)
_AGREEMENT_SEED = study.config.seeds[0]
_AGREEMENT_ROLLOUTS = (
    f"{R}/rl/{study.config.reference}/seed_{_AGREEMENT_SEED}/round_{_AGREEMENT_ROUND}"
)
_AGREEMENT_FITTED = {
    method: f"{R}/turnrd/{method}/seed_{_AGREEMENT_SEED}/round_{_AGREEMENT_ROUND - 1}"
    for method in study.methods
    if fits(method) and _AGREEMENT_ROUND > 1
}


def agreement_policy():
    """Weights that the reference method's round started from."""
    carry = study.training[study.config.reference].carry_policy
    number = _AGREEMENT_ROUND - 1 if carry else 0
    return policy(study.config.reference, number).format(seed=_AGREEMENT_SEED)


rule credit_agreement:
    """Do the assigners agree? Tables and two pictures."""
    input:
        **named(
            REMOTE,
            architecture=architecture(os.path.dirname(agreement_policy())),
            cards=[f"{folder}/model.json" for folder in _AGREEMENT_FITTED.values()],
            **BESIDE_BASE,
            **TASKS,
        ),
        **SUMMARY_OF_BASE,
        turns=f"{_AGREEMENT_ROLLOUTS}/turns.parquet",
        sequences=f"{_AGREEMENT_ROLLOUTS}/sequences.parquet",
        policy=agreement_policy(),
        base=f"{R}/base/model.safetensors",
        panels=f"{R}/assets/panels.json",
        fitted=[f"{folder}/model.safetensors" for folder in _AGREEMENT_FITTED.values()],
    output:
        credits=f"{R}/credit_agreement/credits.parquet",
        correlations=f"{R}/credit_agreement/correlations.csv",
        checks=f"{R}/credit_agreement/checks.csv",
        pictures=expand(
            f"{R}/credit_agreement/{{name}}.{{kind}}",
            name=["agreement", "gallery"],
            kind=["svg", "csv"],
        ),
        index=f"{R}/credit_agreement/index.json",
        summary=f"{R}/credit_agreement/summary.json",
    log:
        f"{R}/logs/credit_agreement.log",
    benchmark:
        f"{R}/benchmarks/credit_agreement/credit_agreement.jsonl"
    threads: cores("credit_agreement")
    resources:
        **asks("credit_agreement"),
    params:
        cfg=cfg("credit_agreement"),
        code=code_version(
            "credit_agreement",
            tuple(sorted({arm.credit.kind for arm in study.methods.values() if arm.train})),
        ),
        seed=_AGREEMENT_SEED,
        rollouts=here(_AGREEMENT_ROLLOUTS),
        assets=here(f"{R}/assets"),
        base=here(f"{R}/base"),
        policy=subpath(input.policy, parent=True),
        fitted=[
            part
            for method, folder in _AGREEMENT_FITTED.items()
            for part in ("--fitted", f"{method}={here(folder)}")
        ],
        cache=f"{R}/cache",
        out=subpath(output.index, parent=True),
    message:
        "Credit agreement"
    shell:
        UNPACK_TASKS
        + UNPACK_BASE
        + "OMP_NUM_THREADS={threads} python -m hgrpo.cli.credit_agreement --config {params.cfg:q}"
        " --seed {params.seed} --rollouts {params.rollouts:q} --assets {params.assets:q}"
        " --base {params.base:q} --policy {params.policy:q} {params.fitted:q}"
        " --cache {params.cache:q} --out {params.out:q} > {log:q} 2>&1"
