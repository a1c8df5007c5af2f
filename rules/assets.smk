"""Rules for games, panels and expert trajectories."""


rule study_config:
    """Record the resolved study."""
    input:
        unpack(files("study_config")),
    output:
        **of.outputs("study_config"),
    log:
        of.log("study_config"),
    # This job runs first, because the monitor reads its output while the study runs.
    priority: 100
    threads: of.threads("study_config")
    resources:
        **of.resources("study_config"),
    params:
        job=command("study_config"),
    message:
        "Resolved configuration of the study"
    shell:
        "python -m hgrpo.cli.stage study_config --job {params.job:q} > {log:q} 2>&1"


rule fetch_assets:
    """Download and check the environment's official files."""
    input:
        unpack(files("fetch_assets")),
    output:
        **of.outputs("fetch_assets"),
    log:
        of.log("fetch_assets"),
    # This job runs on the submitting machine, because compute nodes may have no network. It runs
    # like any other job if the compute nodes and the submitting machine do not share a disk.
    localrule: not ELSEWHERE
    params:
        job=command("fetch_assets"),
    message:
        "Official data files"
    shell:
        "python -m hgrpo.cli.stage fetch_assets --job {params.job:q} > {log:q} 2>&1"


rule assets:
    """Generate or collect the games, and write a panels file with the hash of each game."""
    input:
        unpack(files("assets")),
    output:
        **of.outputs("assets"),
    log:
        of.log("assets"),
    threads: of.threads("assets")
    resources:
        **of.resources("assets"),
    params:
        job=command("assets"),
    message:
        "Games and panels"
    shell:
        "python -m hgrpo.cli.stage assets --job {params.job:q} > {log:q} 2>&1"


rule expert:
    """Collect demonstrations on the training panel from a scripted expert, walkthroughs or humans."""
    input:
        unpack(files("expert")),
    output:
        **of.outputs("expert"),
    log:
        of.log("expert"),
    threads: of.threads("expert")
    resources:
        **of.resources("expert"),
    params:
        job=command("expert"),
    message:
        "Expert trajectories"
    shell:
        "python -m hgrpo.cli.stage expert --job {params.job:q} > {log:q} 2>&1"
