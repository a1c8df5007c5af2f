"""Define the stages of the pipeline, one module per stage; `order.py` lists them.

A stage's module has these parts:

    FOLDER       folder of a job's files below results/<study>; may contain Snakemake wildcards
    JOB          the command's options that identify the job: method, seed, round
    OUTPUTS      map from output names to files in that folder
    outputs      optional function that returns the outputs of a given study
    RESOURCES    default resources of a job, or the name of another stage to share its resources
    USES         plug-ins that the stage loads: env, engine, credit, rule, assets or expert; the
                 last two are the environment's modules that make tasks and demonstrations
    Settings     the stage's settings, passed as --config
    Paths        the stage's command-line options that are files or folders
    from_study   a function that extracts the stage's settings from a study
    from_whole_study    optional function that also accepts the content of a file in configs/envs
    inputs       a function that returns the input files of a job
    extras       optional function that returns optional input files
    run          a function that runs the stage

Planning a run imports these modules, so they must import torch only within functions.
"""
