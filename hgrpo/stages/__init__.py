"""The stages of the pipeline, one module each; `order.py` lists them.

A stage's module says everything about the stage:

    FOLDER       folder of a job's files below results/<study>, with its wildcards
    JOB          the options of its command that say which job it is: method, seed, round
    OUTPUTS      name -> file in that folder; a function `outputs` if they depend on the study
    RESOURCES    what a job asks of the machine, where the study does not say otherwise; the name
                 of another stage if it shares that one's
    ENV_USES, ENGINE_USES    what it uses of the study's environment and engine
    LOADS_CREDIT  given if it loads the credit assigners that its settings name
    Settings     what the stage is given as --config
    Paths        the files and folders that its command takes
    from_study   the part of a study that the settings are made of
    from_whole_study    given if its command also takes another form of --config
    inputs       the files that a job reads
    run          the work

Snakemake reads the rest to plan, so only `run` may import torch.
"""
