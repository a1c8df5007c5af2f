"""What a study needs of a machine, and the shortest run of all its stages."""

import subprocess

from places import PROJECT

from hgrpo.cli import probe
from hgrpo.study.overrides import parse_overrides, read_assignments
from hgrpo.study.study import StudyConfig, load_study
from hgrpo.workflow.probe import findings, one_step

STUDIES = PROJECT / "configs/studies"


def lacking(name, environment=(), monkeypatch=None):
    study = load_study(STUDIES / f"{name}.yaml")
    return {
        found.name: found.found
        for found in findings(study, dict(environment), PROJECT)
        if found.lacking
    }


def test_a_study_for_a_gpu_names_all_that_is_missing(monkeypatch):
    for name in ("WEBSHOP_DATA", "HGRPO_MODELS"):
        monkeypatch.delenv(name, raising=False)
    found = lacking("webshop_5x40")
    assert {"OPENAI_API_KEY", "$WEBSHOP_DATA", "$HGRPO_MODELS/Qwen2.5-1.5B-Instruct"} <= set(found)
    assert "needed by LLMJudge_gpt" in found["OPENAI_API_KEY"]
    assert "the environment variable is not set" in found["$WEBSHOP_DATA"]


def test_what_is_there_is_not_missed(monkeypatch, tmp_path):
    monkeypatch.setenv("WEBSHOP_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HGRPO_MODELS", str(tmp_path))
    model = tmp_path / "Qwen2.5-1.5B-Instruct"
    model.mkdir()
    found = lacking("webshop_5x40", {"OPENAI_API_KEY": "k"})
    assert "make fetch-assets STUDY=webshop_5x40" in found["$WEBSHOP_DATA"]
    assert "$HGRPO_MODELS/Qwen2.5-1.5B-Instruct" in found and "OPENAI_API_KEY" not in found
    (model / "config.json").write_text("{}")
    (tmp_path / "data").mkdir()
    (tmp_path / "data/items_shuffle_1000.json").write_text("[]")
    found = lacking("webshop_5x40", {"OPENAI_API_KEY": "k"})
    assert not {"$WEBSHOP_DATA", "$HGRPO_MODELS/Qwen2.5-1.5B-Instruct"} & set(found)


def test_a_study_for_this_machine_lacks_nothing():
    assert lacking("webshop_5x40_cpu") == {}


def test_one_step_takes_every_stage_and_is_a_valid_study():
    for name in ("webshop_5x40", "alfworld_5x40_tier2", "bakeoff", "webshop_credit", "smoke"):
        given = read_assignments(one_step(load_study(STUDIES / f"{name}.yaml")))
        assert given.pop("study") == name
        short = load_study(STUDIES / f"{name}.yaml", given)
        assert short.config.training.steps_per_round == 1 and short.has_reference
        fits = any(arm.credit.declared.fits for arm in short.methods.values())
        assert short.config.rounds == (2 if fits else 1)
        assert len(short.config.seeds) == 1 and len(short.methods) <= 3


def test_one_step_is_a_step_of_the_study_as_it_was_asked_for(tmp_path, monkeypatch):
    (tmp_path / "configs").symlink_to(PROJECT / "configs")
    monkeypatch.chdir(tmp_path)
    ran = []

    def snakemake(command, **options):
        ran.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(probe.subprocess, "run", snakemake)
    asked = ["study=smoke", "training.lr=1e-4", "set=training.steps_per_round=9 sft.epochs=0.05"]
    monkeypatch.setattr("sys.argv", ["probe", *asked])
    probe.main()
    ((*_, assigned),) = ran
    assert assigned.startswith("set=") and "study=smoke" in ran[0]
    given = parse_overrides({"set": assigned.removeprefix("set=")}, StudyConfig)
    assert given["training"] == {"lr": "1e-4", "steps_per_round": 1}
    assert given["sft"] == {"epochs": 0.05}
    assert not (tmp_path / "results/.probe/smoke").exists()
