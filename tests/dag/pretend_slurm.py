"""Programs in the place of Slurm's, which run a job at once, on this machine.

As with the real ones, a job has the environment of its submission only if `--export=ALL` says so.
"""

import sys
from pathlib import Path

SBATCH = """
arguments, state = sys.argv[1:], pathlib.Path(__file__).with_name("jobs")
wrapped = [word.removeprefix("--wrap=") for word in arguments if word.startswith("--wrap=")]
wrapped += [arguments[place + 1] for place, word in enumerate(arguments) if word == "--wrap"]
env = dict(os.environ) if "--export=ALL" in arguments else {"PATH": os.environ["PATH"]}
number = len(state.read_text(encoding="utf-8").splitlines()) + 1 if state.exists() else 1
env |= {"SLURM_JOB_ID": str(number), "SLURM_CPUS_PER_TASK": "1"}
with open(arguments[arguments.index("--output") + 1].replace("%j", str(number)), "w") as log:
    done = subprocess.run(wrapped[0], shell=True, env=env, stdout=log, stderr=log)
with state.open("a", encoding="utf-8") as file:
    file.write(f"{number}|{'FAILED' if done.returncode else 'COMPLETED'}\\n")
with pathlib.Path(__file__).with_name("commands").open("a", encoding="utf-8") as file:
    file.write(" ".join(arguments) + "\\n")
print(number)
"""
SQUEUE = """
state = pathlib.Path(__file__).with_name("jobs")
print(state.read_text(encoding="utf-8") if state.exists() else "")
"""
SRUN = """
words = sys.argv[1:]
while words[0].startswith("-"):
    words.pop(0)
os.execvp(words[0], words)
"""
QUIET = "print('MinJobAge = 300 sec')"


def pretend_slurm(folder: Path) -> Path:
    """Write the programs into a folder, which is then to stand first in PATH.

    `commands` in the folder will hold what was submitted.
    """
    folder.mkdir()
    programs = {"sbatch": SBATCH, "squeue": SQUEUE, "srun": SRUN, "sacct": "print()"}
    for name in ("sinfo", "scontrol", "scancel"):
        programs[name] = QUIET
    for name, body in programs.items():
        (folder / name).write_text(
            f"#!{sys.executable} -IS\nimport os, pathlib, subprocess, sys\n{body}", encoding="utf-8"
        )
        (folder / name).chmod(0o755)
    return folder
