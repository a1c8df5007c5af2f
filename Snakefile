"""hgrpo: from an environment to a report that compares credit assigners.

    snakemake --config study=alpha_sweep seeds=11,23   another study, other seeds
    snakemake results/bakeoff/rl/Progressive/seed_11/round_3/summary.json

Each rule is a stage of hgrpo/stages. OUTPUTS: results/store/<key>/, whose name is the hash of what makes
the results, so an edit runs the jobs whose key it changes; results/<study>/ links to them.
"""

from snakemake.utils import min_version

min_version("9.0")


# Write results beside this file, even if `-s` names it from another folder; --directory overrides.
workdir: workflow.basedir


report: "rules/captions/study.rst"


include: "rules/common.smk"
include: "rules/assets.smk"
include: "rules/sft.smk"
include: "rules/rl.smk"
include: "rules/credit_fit.smk"
include: "rules/evaluate.smk"
include: "rules/report.smk"
include: "rules/truth.smk"
include: "rules/gradients.smk"
include: "rules/credit_agreement.smk"
include: "rules/asked_for.smk"
include: "rules/sandbox.smk"


onstart:
    run.start(workflow)


onsuccess:
    run.end()


onerror:
    run.end()


rule all:
    """The study's report, with all that it is made from; ends with its headline."""
    default_target: True
    input:
        rules.report.output,
        findings=rules.report.output.findings,
    log:
        f"{plan.root}/report/headline.log",
    localrule: True
    message:
        "The whole study"
    shell:
        f"cat {{input.findings:q}} | tee {{log:q}}; echo {plan.root}/report/report.html"
