"""Local jobs run in forks of one process that has imported torch, transformers and pandas already.

To import them takes a job two to four seconds, and a study has hundreds of jobs. `start.py` starts
the process when a run starts, `server.py` is that process, and `client.py` is what Snakemake sees
of a job. Without the process, a job imports everything itself, with the same results.
"""

# What a fork says when it has taken a job, and what the warm process says before the job's status.
TAKEN, ENDED = b"t", b"e"
