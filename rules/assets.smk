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
    output:
        **of.outputs("study_config"),
    log:
        of.log("study_config"),
    benchmark:
        of.benchmark("study_config")
    # The monitor reads this file while the study runs, so it comes first.
    priority: 100
    params:
        cfg=lambda _: of.cfg("study_config"),
        code=of.code("study_config"),
        options=of.options("study_config"),
    message:
        "Resolved configuration of the study"
    shell:
        "python -m hgrpo.cli.study_config --config {params.cfg:q}"
        " --progress {log:q} {params.options:q} > {log:q} 2>&1"


rule fetch_assets:
    """Download the environment's official files, and check them."""
    output:
        **of.outputs("fetch_assets"),
    log:
        of.log("fetch_assets"),
    # Nodes that train may have no network, so this job stays on the machine of the run. Only where
    # jobs share no disk with that machine, it runs where their data is.
    localrule: not ELSEWHERE
    params:
        cfg=lambda _: of.cfg("fetch_assets"),
        code=of.code("fetch_assets"),
        options=of.options("fetch_assets"),
    message:
        "Official data files"
    shell:
        "python -m hgrpo.cli.fetch_assets --config {params.cfg:q}"
        " --progress {log:q} {params.options:q} > {log:q} 2>&1"


rule assets:
    """Make or collect the games; the panels file holds the hash of each one."""
    input:
        unpack(of.inputs("assets")),
    output:
        **of.outputs("assets"),
    log:
        of.log("assets"),
    cache: SHARED
    threads: cores("assets")
    resources:
        **asks("assets"),
    params:
        cfg=lambda _: of.cfg("assets"),
        code=of.code("assets"),
        options=of.options("assets"),
        user_files=of.user_files_digest("assets"),
        contents=contents("assets"),
    message:
        "Games and panels"
    shell:
        "OMP_NUM_THREADS={threads} python -m hgrpo.cli.assets --config {params.cfg:q}"
        " --progress {log:q} {params.options:q} > {log:q} 2>&1"


rule expert:
    """Demonstrations on the training panel: a scripted expert's, walkthroughs, or people's."""
    input:
        unpack(of.inputs("expert")),
    output:
        **of.outputs("expert"),
    log:
        of.log("expert"),
    cache: SHARED
    threads: cores("expert")
    resources:
        **asks("expert"),
    params:
        cfg=lambda _: of.cfg("expert"),
        code=of.code("expert"),
        options=of.options("expert"),
        user_files=of.user_files_digest("expert"),
        contents=contents("expert"),
    message:
        "Expert trajectories"
    shell:
        "OMP_NUM_THREADS={threads} python -m hgrpo.cli.expert --config {params.cfg:q}"
        " --progress {log:q} {params.options:q} > {log:q} 2>&1"
