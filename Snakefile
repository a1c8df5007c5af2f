"""hgrpo: from an environment to a report that compares credit assigners.

    snakemake -n                                       the plan
    snakemake figures                                  redraw from cached results
    snakemake alpha_sweep --config seeds=11,23         another study, other seeds
    snakemake smoke_wave --config study=alpha_sweep    its first arms alone
    snakemake results/bakeoff/rl/Progressive/seed_11/round_3/summary.json

Each rule is a stage: a module of hgrpo/stages says what it reads, writes and asks of the machine, and
`python -m hgrpo.cli.<stage>` runs it. `cfg` is the part of the study that the stage depends on, `code`
the hash of the modules that it runs; nothing else makes it rerun.
OUTPUTS: results/<study>/, listed at the head of each rules file.
"""

from snakemake.utils import min_version

min_version("9.0")


include: "rules/common.smk"
include: "rules/assets.smk"
include: "rules/sft.smk"
include: "rules/rl.smk"
include: "rules/credit_fit.smk"
include: "rules/evaluate.smk"
include: "rules/report.smk"
include: "rules/credit_agreement.smk"


onstart:
    if not workflow.executor_plugin.common_settings.touch_exec:
        check_needs()


localrules:
    all,
    evaluations,
    smoke_wave,
    rest_wave,


rule all:
    """The report of the study with its figures and tables, and its resolved configuration."""
    default_target: True
    input:
        of.everything(),


rule:
    """The same as `all`, under the study's own name."""
    name:
        study.config.name
    input:
        rules.all.input,
    localrule: True


rule unknown_target:
    """A name that is no target ends snakemake with one line."""
    input:
        no_such_target,
    output:
        "{target}",
    wildcard_constraints:
        target=r"[A-Za-z_]\w*",
    localrule: True


rule evaluations:
    """Every evaluation, without merge, statistics and report."""
    input:
        evaluations(),


rule smoke_wave:
    """Every evaluation of the methods in `smoke_wave`, or of the reference."""
    input:
        evaluations(smoke_methods()),


rule rest_wave:
    """Every evaluation of the other methods."""
    input:
        evaluations([method for method in study.methods if method not in smoke_methods()]),
