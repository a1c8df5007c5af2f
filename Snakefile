"""hgrpo: from an environment to a report that compares credit assigners.

    snakemake -n                                       the plan
    snakemake figures                                  figures from cached results; -f redraws all
    snakemake --config study=alpha_sweep seeds=11,23   another study, other seeds
    snakemake smoke_wave --config study=alpha_sweep    its first arms alone
    snakemake kl_sweep --config study=interventions    the arms of one axis
    snakemake results/bakeoff/rl/Progressive/seed_11/round_3/summary.json

Each rule is a stage. Its module in hgrpo/stages lists what it reads, what it writes and the resources
that it needs; `python -m hgrpo.cli.stage <stage>` runs it. Results lie in results/store/<key>/, where
the key is the hash of the stage, its settings, code and seed, and of the keys of its inputs. So an edit
runs the jobs whose key it changes.
OUTPUTS: links to the results in results/<study>/, listed at the head of each rules file.
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
    localrule: True
    params:
        findings=rules.report.output.findings,
        page=f"{plan.root}/report/report.html",
    message:
        "The whole study"
    shell:
        "cat {params.findings:q}; echo {params.page:q}"
