"""Workflow of hgrpo: from an environment to a report that compares credit assigners.

    snakemake --config study=alpha_sweep seeds=11,23   another study, other seeds
    snakemake results/bakeoff/rl/Progressive/seed_11/round_3/summary.json

Each rule runs a stage of hgrpo/stages and writes to results/store/<key>/. The key is a hash of the job's
settings, code and inputs. results/<study>/ links to the results; docs/artefacts.md lists all files.
"""

from snakemake.utils import min_version

min_version("9.0")


# Write results next to this file, even if snakemake starts elsewhere with `-s`; --directory overrides.
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
    """Make the study's report and everything it depends on, and print the report's headline."""
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
