"""The stages of the pipeline, one module each; `order.py` lists them.

A stage's module has these parts:

    FOLDER       folder below results/<study> with a job's files; may contain Snakemake wildcards
    JOB          the options of the stage's command that name the job: method, seed, round
    OUTPUTS      name -> file in that folder
    outputs      a function that returns all files; present if they depend on the study
    RESOURCES    default resources of a job; or the name of another stage, to share its resources
    USES         plug-ins that the stage loads: env, engine, credit, rule; of the
                 env also assets or expert, the modules that make tasks and demonstrations
    Settings     the settings that the stage receives as --config
    Paths        the files and folders that the stage's command takes
    from_study   a function that takes the stage's settings from a study
    from_whole_study    a function that takes the stage's settings from another form of --config;
                 present if the command accepts one
    inputs       the files that a job reads
    extras       files that a job reads if they are there; present if there are any
    run          a function that does the stage's work

Planning imports these modules, so they import torch only inside `run` and its helpers.
"""
