"""Planning a study is quick because it loads no large package."""

import subprocess
import sys

PROBE = """
import sys
from hgrpo.stages.order import STAGES, belongs_to_an_arm
from hgrpo.study.study import load_study
from hgrpo.workflow import ending, preflight, run
from hgrpo.workflow.rules import StudyRules
from hgrpo.workflow.watch import jobs, terminal

of = StudyRules(load_study("configs/studies/bakeoff_plus.yaml"), "results/x")
of.everything()
for stage in STAGES:
    of.code(stage, "TurnRDV2" if belongs_to_an_arm(stage) else None)
print(*sorted({name.split(".")[0] for name in sys.modules}))
"""
LARGE = {
    *("accelerate", "matplotlib", "numba", "openai", "pandas", "peft", "pyarrow"),
    *("safetensors", "scipy", "statsmodels", "tokenizers", "torch", "transformers"),
}


def test_planning_loads_no_large_package(project):
    done = subprocess.run(
        [sys.executable, "-c", PROBE], cwd=project, capture_output=True, text=True, check=True
    )
    assert LARGE & set(done.stdout.split()) == set()
