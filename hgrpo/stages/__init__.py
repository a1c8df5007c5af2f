"""The stages of the pipeline, one module each; `order.py` lists them.

A stage's module says everything about the stage:

    FOLDER       folder of a job's files below results/<study>, with its wildcards
    JOB          the options of the stage's command that name the job: method, seed, round
    OUTPUTS      name -> file in that folder; a function `outputs` if they depend on the study
    RESOURCES    what a job asks of the machine, unless the study says otherwise; or the name of
                 another stage whose resources this stage shares
    ENV_USES, ENGINE_USES    capabilities of environment and engine that the stage uses
    LOADS_CREDIT  given if the stage loads the credit assigners that its settings name
    Settings     the settings that the stage receives as --config
    Paths        the files and folders that the stage's command takes
    from_study   a function that takes the stage's settings from a study
    from_whole_study    given if the stage's command also accepts another form of --config
    inputs       the files that a job reads
    run          a function that does the stage's work

Snakemake reads the rest to plan, so only `run` may import torch.
"""
