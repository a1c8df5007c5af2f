"""Games, panels and expert trajectories.

OUTPUTS:
    config.yaml                  the resolved study with package versions and the machine
    data/files.json              official data files: names, sizes, hashes; only if some are fetched
    assets/panels.json           train, validation and test panels: ids, content hashes, types
    assets/tasks.tar.gz          the tasks as play reads them: games, or a shop and its goals
    assets/manifest.json         counts, versions, hashes
    expert/trajectories.parquet  one row per expert or walkthrough trajectory
    expert/summary.json          the expert's success by task type
"""


rule study_config:
    """Write down the study that these results belong to."""
    input:
        unpack(files("study_config")),
    output:
        **of.outputs("study_config"),
    log:
        of.log("study_config"),
    # The monitor reads this file while the study runs, so it comes first.
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
    """Download the environment's official files, and check them."""
    input:
        unpack(files("fetch_assets")),
    output:
        **of.outputs("fetch_assets"),
    log:
        of.log("fetch_assets"),
    # Nodes that train may have no network, so this job stays on the machine of the run. Only where
    # jobs share no disk with that machine, it runs where their data is.
    localrule: not ELSEWHERE
    params:
        job=command("fetch_assets"),
    message:
        "Official data files"
    shell:
        "python -m hgrpo.cli.stage fetch_assets --job {params.job:q} > {log:q} 2>&1"


rule assets:
    """Make or collect the games; the panels file holds the hash of each one."""
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
    """Demonstrations on the training panel: a scripted expert's, walkthroughs, or people's."""
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
