"""Games, panels and expert trajectories.

OUTPUTS:
    config.yaml                  the resolved study with package versions and the machine
    assets/panels.json           train, validation and test panels: ids, content hashes, types
    assets/manifest.json         counts, versions, hashes; the games stand beside it, and where
                                 results go to a store, in tasks.tar
    expert/trajectories.parquet  one row per expert or walkthrough trajectory
    expert/summary.json          the expert's success by task type
"""


rule study_config:
    """Write down the study that these results belong to."""
    output:
        f"{R}/config.yaml",
    log:
        f"{R}/logs/config.log",
    benchmark:
        f"{R}/benchmarks/study_config/config.jsonl"
    # What watches a run reads it.
    priority: 100
    params:
        cfg=cfg("config"),
        code=code_version("config"),
    message:
        "Resolved configuration of the study"
    shell:
        "python -m hgrpo.cli.config --config {params.cfg:q} --out {output:q} > {log:q} 2>&1"


rule assets:
    """Make or collect the games; the panels file holds the hash of each one."""
    output:
        **named(SHARED, **task_files()),
        **TASKS,
        panels=f"{R}/assets/panels.json",
        manifest=f"{R}/assets/manifest.json",
    log:
        f"{R}/logs/assets.log",
    benchmark:
        f"{R}/benchmarks/assets/assets.jsonl"
    cache: SHARED
    threads: cores("assets")
    resources:
        **asks("assets"),
    params:
        cfg=cfg("assets"),
        code=code_version("assets"),
        out=subpath(output.panels, parent=True),
    message:
        "Games and panels"
    shell:
        "OMP_NUM_THREADS={threads} python -m hgrpo.cli.assets --config {params.cfg:q} --seed 0"
        " --out {params.out:q} > {log:q} 2>&1" + PACK_TASKS


rule expert:
    """Demonstrations on the training panel: a scripted expert's, walkthroughs, or people's."""
    input:
        **TASKS,
        panels=f"{R}/assets/panels.json",
    output:
        trajectories=f"{R}/expert/trajectories.parquet",
        summary=f"{R}/expert/summary.json",
    log:
        f"{R}/logs/expert.log",
    benchmark:
        f"{R}/benchmarks/expert/expert.jsonl"
    cache: SHARED
    threads: cores("expert")
    resources:
        **asks("expert"),
    params:
        cfg=cfg("expert"),
        code=code_version("expert"),
        assets=here(f"{R}/assets"),
        out=subpath(output.summary, parent=True),
    message:
        "Expert trajectories"
    shell:
        UNPACK_TASKS
        + "OMP_NUM_THREADS={threads} python -m hgrpo.cli.expert --config {params.cfg:q} --seed 0"
        " --assets {params.assets:q} --out {params.out:q} > {log:q} 2>&1"


without_times("assets", "expert")
