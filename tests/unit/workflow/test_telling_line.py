"""Which line of a failed program's output is shown."""

import pytest

from hgrpo.workflow.telling_line import telling_line

# Output of Snakemake's storage plugins if a bucket's credentials are missing.
GROUP = """\
Traceback (most recent call last):
  File "snakemake_storage_plugin_s3/__init__.py", line 7, in g
    try: f()
         ^^^
botocore.exceptions.NoCredentialsError: Unable to locate credentials

During handling of the above exception, another exception occurred:

  + Exception Group Traceback (most recent call last):
  |   File "snakemake/dag.py", line 9, in <module>
  |     raise ExceptionGroup("unhandled errors in a TaskGroup", [e])
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "snakemake_storage_plugin_s3/__init__.py", line 7, in g
    |     raise NoCredentialsError()
    | botocore.exceptions.NoCredentialsError: Unable to locate credentials
    +------------------------------------
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (GROUP, "botocore.exceptions.NoCredentialsError: Unable to locate credentials"),
        (
            "Using profile\nerror: mine.yaml: rounds: no number\n",
            "error: mine.yaml: rounds: no number",
        ),
        ("error: no such study\nShutting down\n", "error: no such study"),
        ("round:   0%|  | 0/32\rround:  50%|██  | 16/32 [00:00<00:00, 16.19traj/s]", ""),
        ("IncompleteFilesException:\nThese files are incomplete:\n", "These files are incomplete:"),
        ("usage: snakemake\nsnakemake: error: no such flag\n", "snakemake: error: no such flag"),
        ("something\n  +-+--- 1 ---\n    +-----\n", "something"),
        ("\n  \n", ""),
    ],
)
def test_of_a_failure_the_line_is_shown_that_says_most(text, line):
    assert telling_line(text) == line
