"""Planning a study is quick because it loads no large package, and jobs load few.

A study has hundreds of jobs that compute for seconds, and importing transformers takes one.
"""

import subprocess
import sys

from tiny_policy import make_policy

PROBE = """
import sys
from hgrpo.store.plan import Plan
from hgrpo.study.study import load_study
from hgrpo.workflow import preflight, rules, run, watch

list(Plan(load_study("configs/studies/bakeoff_plus.yaml")).jobs(asked_for=True))
print(*sorted({name.split(".")[0] for name in sys.modules}))
"""
LARGE = {
    *("accelerate", "matplotlib", "numba", "openai", "pandas", "peft", "pyarrow"),
    *("safetensors", "scipy", "statsmodels", "tokenizers", "torch", "transformers"),
}


def test_planning_loads_no_large_package(project):
    assert LARGE & loaded(project, PROBE) == set()


# Importing torch imports none of these.
PLAY = """
import sys
from pathlib import Path
from hgrpo.cli import run_stage
from hgrpo.policy.load import load_player
from hgrpo.policy.policy import Policy
from hgrpo.policy.settings import ModelConfig
from hgrpo.rollout import canary, collector
from hgrpo.rollout.engine import Sampling
from hgrpo.rollout.settings import EngineConfig
from hgrpo.stages import evaluate

base = Path(sys.argv[1])
model = ModelConfig(name="test", tiny={}, adapt="full")
EngineConfig().make(load_player(model, base, base), 2, Sampling(0.0, 4))
print(*sorted({name.split(".")[0] for name in sys.modules}))
"""


def test_an_evaluation_plays_saved_weights_without_transformers(project, tmp_path):
    make_policy(tmp_path)
    packages = loaded(project, PLAY, str(tmp_path))
    assert {"accelerate", "pandas", "peft", "scipy", "transformers"} & packages == set()
    assert "torch" in packages


def loaded(project, code, *words):
    """The packages that a process has loaded after it ran code, which prints them."""
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, cwd=project, capture_output=True, encoding="utf-8", check=True)
    return set(done.stdout.split())
