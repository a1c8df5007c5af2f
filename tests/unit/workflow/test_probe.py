"""What a study needs of a machine, and the shortest run of all its stages."""

import hashlib
import importlib.metadata
from types import SimpleNamespace

import pytest
from chat_models import write_chat
from places import PROJECT

from hgrpo.games.fetch import Source
from hgrpo.games.webshop.data import OFFICIAL
from hgrpo.study.overrides import read_assignments
from hgrpo.study.study import load_study
from hgrpo.workflow.planning.profile import read_profile
from hgrpo.workflow.probe import extras, findings, one_step

STUDIES = PROJECT / "configs/studies"


LAPTOP = read_profile(PROJECT / "profiles/laptop")


def lacking(name, environment=(), **overrides):
    study = load_study(STUDIES / f"{name}.yaml", overrides)
    return {
        each.name: each.text
        for each in findings(study, dict(environment), PROJECT, LAPTOP)
        if each.lacking
    }


def test_a_study_for_a_gpu_names_all_that_is_missing(monkeypatch):
    for name in ("WEBSHOP_DATA", "HGRPO_MODELS"):
        monkeypatch.delenv(name, raising=False)
    needs = lacking("webshop_5x40")
    data = {"$WEBSHOP_DATA/items_shuffle_1000.json", "$WEBSHOP_DATA/items_ins_v2_1000.json"}
    assert {"OPENAI_API_KEY", *data, "$HGRPO_MODELS/Qwen2.5-1.5B-Instruct"} <= set(needs)
    assert "required by LLMJudge_gpt" in needs["OPENAI_API_KEY"]
    unset = "is not set; `make fetch-assets STUDY=webshop_5x40` downloads it"
    assert all(needs[name].endswith(unset) for name in data)
    assert "is not set" in needs["$HGRPO_MODELS/Qwen2.5-1.5B-Instruct"]


def test_each_file_of_the_shop_and_the_models_weights_are_looked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("WEBSHOP_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HGRPO_MODELS", str(tmp_path))
    model = tmp_path / "Qwen2.5-1.5B-Instruct"
    model.mkdir()
    (write_chat(model) / "config.json").write_text("{}", encoding="utf-8")
    (tmp_path / "data").mkdir()
    (tmp_path / "data/items_shuffle_1000.json.part").write_text("[", encoding="utf-8")
    needs = lacking("webshop_5x40", {"OPENAI_API_KEY": "k"})
    text = needs["$WEBSHOP_DATA/items_shuffle_1000.json"]
    assert text.endswith("; `make fetch-assets STUDY=webshop_5x40` downloads it")
    assert "*.safetensors" in needs["$HGRPO_MODELS/Qwen2.5-1.5B-Instruct"]
    assert "OPENAI_API_KEY" not in needs
    (model / "model.safetensors").write_text("", encoding="utf-8")
    # The sizes are right, and every byte is 0.
    for name in ("items_shuffle_1000.json", "items_ins_v2_1000.json"):
        with (tmp_path / "data" / name).open("wb") as file:
            file.truncate(OFFICIAL[name].size)
    needs = lacking("webshop_5x40", {"OPENAI_API_KEY": "k"})
    damaged = [name for name in needs if name.startswith("$")]
    assert sorted(damaged) == [f"$WEBSHOP_DATA/items_{n}_1000.json" for n in ("ins_v2", "shuffle")]
    for name in damaged:
        assert needs[name].startswith("damaged: SHA-256 differs from the official file; remove it")
        assert needs[name].endswith("then `make fetch-assets STUDY=webshop_5x40` downloads it")
    for name in ("items_shuffle_1000.json", "items_ins_v2_1000.json"):
        (tmp_path / "data" / name).write_text("[]", encoding="utf-8")
        digest = hashlib.sha256(b"[]").hexdigest()
        monkeypatch.setitem(OFFICIAL, name, Source("https://x/", 2, digest))
    needs = lacking("webshop_5x40", {"OPENAI_API_KEY": "k"})
    assert not [name for name in needs if name.startswith("$")]


def test_a_model_without_conversations_lacks_something(monkeypatch, tmp_path):
    monkeypatch.setenv("HGRPO_MODELS", str(tmp_path))
    model = write_chat(tmp_path / "Qwen2.5-1.5B-Instruct")
    for other in ("config.json", "model.safetensors"):
        (model / other).write_text("{}", encoding="utf-8")
    path = "$HGRPO_MODELS/Qwen2.5-1.5B-Instruct"
    assert path not in lacking("webshop_5x40")
    (model / "chat_template.jinja").write_text("{% if", encoding="utf-8")
    assert "chat_template.jinja: not a chat template" in lacking("webshop_5x40")[path]


def test_a_gpu_is_named_with_its_memory(monkeypatch):
    card = SimpleNamespace(name="NVIDIA H100", total_memory=85_017_493_504)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    monkeypatch.setattr("torch.cuda.get_device_properties", lambda index: card)
    study = load_study(STUDIES / "webshop_5x40.yaml")
    needs = next(
        each for each in findings(study, {}, PROJECT, LAPTOP) if each.name.startswith("GPU")
    )
    # 85,017,493,504 / 2^30 = 79.18
    assert (needs.text, needs.lacking) == ("NVIDIA H100 with 79 GiB", False)


@pytest.mark.parametrize("name", ["webshop_5x40_cpu", "alfworld_5x40_cpu"])
def test_a_study_for_this_machine_lacks_nothing(name):
    assert lacking(name) == {}


def test_a_package_that_is_missing_or_too_old_is_named_with_what_is_needed(monkeypatch):
    version = importlib.metadata.version
    have = {"transformers": "4.45.2", "openai": None, "spacy": None, "wandb": None}

    def pretended(name):
        if have.get(name, "") is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return have.get(name) or version(name)

    monkeypatch.setattr("importlib.metadata.version", pretended)
    needs = lacking("webshop_5x40")
    assert needs["transformers"].startswith("4.45.2; required: >=")
    assert needs["openai"].startswith("not installed; required: >=3 (EXTRAS=judge)")
    assert needs["spacy"].endswith("(EXTRAS=webshop)")
    assert "wandb" not in needs
    # Nothing of a generated shop, judged by rules, needs them.
    assert set(lacking("webshop_5x40_cpu")) == {"transformers", "openai"}


PLUGINS = {
    "slurm": ["snakemake-executor-plugin-slurm"],
    "kubernetes": ["snakemake-executor-plugin-kubernetes", "snakemake-storage-plugin-s3"],
}


def on_a_cluster(profile, monkeypatch, tmp_path, sinfo):
    """Name -> finding for a study with GPUs, where `sinfo` is this script and no plug-in is."""
    version = importlib.metadata.version

    def pretended(name):
        if "-plugin-" in name:
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr("importlib.metadata.version", pretended)
    program = tmp_path / "sinfo"
    program.write_text(f"#!/bin/sh\n{sinfo}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    study = load_study(STUDIES / "alfworld_5x40.yaml")
    needs = findings(study, {}, PROJECT, read_profile(PROJECT / "profiles" / profile))
    return {each.name: each for each in needs}


@pytest.mark.parametrize("profile", PLUGINS)
def test_a_cluster_needs_its_plugins_here_and_gpus_on_its_nodes(profile, monkeypatch, tmp_path):
    needs = on_a_cluster(profile, monkeypatch, tmp_path, "echo 'gpu gpu:8'")
    for name in PLUGINS[profile]:
        assert needs[name].lacking
        assert needs[name].text.endswith(f" (EXTRAS={profile})")
    elsewhere = {name for name, each in needs.items() if each.lacking is None}
    assert elsewhere == ({"pods"} if profile == "kubernetes" else {"GPU (1 for a job)"})
    assert needs["OPENAI_API_KEY"].lacking
    if profile == "kubernetes":
        assert not {"torch", "disk", "sinfo", "engine vllm"} & set(needs)
    else:
        assert (needs["sinfo"].text, needs["sinfo"].lacking) == ("gpu gpu:8", False)
        assert {"torch", "disk", "engine vllm", "$ALFWORLD_DATA/json_2.1.1"} <= set(needs)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bakeoff", {"judge"}),
        ("webshop_5x40", {"judge", "webshop"}),
        ("alfworld_5x40", {"judge", "fetch"}),
        ("webshop_human", {"webshop"}),
        ("calibration_hard", set()),
        ("smollm2", {"smollm2"}),
    ],
)
def test_the_extras_of_a_study(name, expected):
    needs = extras(load_study(STUDIES / f"{name}.yaml"))
    assert set(needs) == {"train", "workflow"} | expected


def test_one_step_takes_every_stage_and_is_a_valid_study():
    for name in ("webshop_5x40", "alfworld_5x40_tier2", "smoke"):
        words = read_assignments(one_step(load_study(STUDIES / f"{name}.yaml")))
        assert words.pop("study") == name
        short = load_study(STUDIES / f"{name}.yaml", words)
        assert short.config.training.steps_per_round == 1 and short.has_reference
        fits = any(arm.credit.declared.fits for arm in short.methods.values())
        assert short.config.rounds == (2 if fits else 1)
        assert len(short.config.seeds) == 1 and len(short.methods) <= 4
        called = {name for name, arm in short.methods.items() if "Judge" in arm.name}
        assert called == ({"LLMJudge_gpt"} if name == "webshop_5x40" else set())


def test_what_the_command_line_changed_stays_in_the_step():
    overrides = {
        "seeds": "23",
        "set": "sft.adapter=/shared/sft training.lr=1e-5 evaluation.test_games=2 truth.groups=8 "
        "evaluation.endpoint={budget: 448}",
    }
    study = load_study(STUDIES / "bakeoff_plus.yaml", overrides)
    again = read_assignments(one_step(study))
    del again["study"]
    short = load_study(STUDIES / "bakeoff_plus.yaml", again).config
    assert (short.sft.adapter, short.training.lr, short.seeds) == ("/shared/sft", 1e-5, [23])
    assert (short.evaluation.test_games, short.truth) == (2, None)
    assert short.evaluation.endpoint == "last_round"
