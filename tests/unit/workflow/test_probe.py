"""What a study needs of a machine, and the shortest run of all its stages."""

import hashlib
import importlib.metadata
import re
from types import SimpleNamespace

import pytest
from chat_models import write_chat
from places import PROJECT

from hgrpo.envs.source import Source
from hgrpo.envs.webshop.data import OFFICIAL
from hgrpo.study.overrides import read_assignments
from hgrpo.study.study import load_study
from hgrpo.workflow.packages import plugins
from hgrpo.workflow.planning.profile import read_profile
from hgrpo.workflow.probe import extras, findings, one_step

STUDIES = PROJECT / "configs/studies"


LAPTOP = read_profile(PROJECT / "profiles/laptop")


def lacking(name, environment=(), **overrides):
    study = load_study(STUDIES / f"{name}.yaml", overrides)
    return {
        found.name: found.found
        for found in findings(study, dict(environment), PROJECT, LAPTOP)
        if found.lacking
    }


def test_a_study_for_a_gpu_names_all_that_is_missing(monkeypatch):
    for name in ("WEBSHOP_DATA", "HGRPO_MODELS"):
        monkeypatch.delenv(name, raising=False)
    found = lacking("webshop_5x40")
    data = {"$WEBSHOP_DATA/items_shuffle_1000.json", "$WEBSHOP_DATA/items_ins_v2_1000.json"}
    assert {"OPENAI_API_KEY", *data, "$HGRPO_MODELS/Qwen2.5-1.5B-Instruct"} <= set(found)
    assert "needed by LLMJudge_gpt" in found["OPENAI_API_KEY"]
    unset = "is not set; set it, then `make fetch-assets STUDY=webshop_5x40` downloads it"
    assert all(found[name].endswith(unset) for name in data)
    model = found["$HGRPO_MODELS/Qwen2.5-1.5B-Instruct"]
    fetch = "hf download Qwen/Qwen2.5-1.5B-Instruct --local-dir $HGRPO_MODELS/Qwen2.5-1.5B-Instruct"
    assert f"is not set; set it, then `{fetch}` fetches it from the Hugging Face hub" in model
    assert model.endswith("; `path` in configs/models/qwen2.5-1.5b-5x40.yaml names the folder")


def test_each_file_of_the_shop_and_the_models_weights_are_looked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("WEBSHOP_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HGRPO_MODELS", str(tmp_path))
    model = tmp_path / "Qwen2.5-1.5B-Instruct"
    model.mkdir()
    (write_chat(model) / "config.json").write_text("{}", encoding="utf-8")
    (tmp_path / "data").mkdir()
    (tmp_path / "data/items_shuffle_1000.json.part").write_text("[", encoding="utf-8")
    found = lacking("webshop_5x40", {"OPENAI_API_KEY": "k"})
    said = found["$WEBSHOP_DATA/items_shuffle_1000.json"]
    assert said.endswith("; `make fetch-assets STUDY=webshop_5x40` downloads it")
    assert "*.safetensors" in found["$HGRPO_MODELS/Qwen2.5-1.5B-Instruct"]
    assert "OPENAI_API_KEY" not in found
    (model / "model.safetensors").write_text("", encoding="utf-8")
    # The sizes are right, and every byte is 0.
    for name in ("items_shuffle_1000.json", "items_ins_v2_1000.json"):
        with (tmp_path / "data" / name).open("wb") as file:
            file.truncate(OFFICIAL[name].size)
    found = lacking("webshop_5x40", {"OPENAI_API_KEY": "k"})
    damaged = [name for name in found if name.startswith("$")]
    assert sorted(damaged) == [f"$WEBSHOP_DATA/items_{n}_1000.json" for n in ("ins_v2", "shuffle")]
    for name in damaged:
        assert found[name].startswith("damaged: its SHA-256 is not the official file's; remove it")
        assert found[name].endswith("then `make fetch-assets STUDY=webshop_5x40` downloads it")
    for name in ("items_shuffle_1000.json", "items_ins_v2_1000.json"):
        (tmp_path / "data" / name).write_text("[]", encoding="utf-8")
        digest = hashlib.sha256(b"[]").hexdigest()
        monkeypatch.setitem(OFFICIAL, name, Source("https://x/", 2, digest))
    found = lacking("webshop_5x40", {"OPENAI_API_KEY": "k"})
    assert not [name for name in found if name.startswith("$")]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("chat_template.jinja", b"{% if", "chat_template.jinja: not a chat template"),
        ("chat_template.jinja", "grün".encode("latin-1"), "chat_template.jinja:1: not UTF-8; "),
        ("chat_template.jinja", b"hello", "does not give every message back once"),
        ("tokenizer_config.json", b"{}", ": no chat template, neither "),
        ("tokenizer.json", b"{}", "tokenizer.json: not a tokenizer"),
    ],
)
def test_a_model_without_conversations_lacks_something(monkeypatch, tmp_path, name, text, said):
    monkeypatch.setenv("HGRPO_MODELS", str(tmp_path))
    model = write_chat(tmp_path / "Qwen2.5-1.5B-Instruct")
    for other in ("config.json", "model.safetensors"):
        (model / other).write_text("{}", encoding="utf-8")
    path = "$HGRPO_MODELS/Qwen2.5-1.5B-Instruct"
    assert path not in lacking("webshop_5x40")
    (model / name).write_bytes(text)
    assert said in lacking("webshop_5x40")[path]


def test_a_gpu_is_named_with_its_memory(monkeypatch):
    card = SimpleNamespace(name="NVIDIA H100", total_memory=85_017_493_504)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    monkeypatch.setattr("torch.cuda.get_device_properties", lambda index: card)
    study = load_study(STUDIES / "webshop_5x40.yaml")
    found = next(
        each for each in findings(study, {}, PROJECT, LAPTOP) if each.name.startswith("GPU")
    )
    # 85,017,493,504 / 2^30 = 79.18
    assert (found.found, found.lacking) == ("NVIDIA H100 with 79 GiB", False)


def test_games_that_lack_a_split_are_not_there(monkeypatch, tmp_path):
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    unset = "is not set; set it, then `make fetch-assets STUDY=alfworld_5x40` downloads it"
    assert lacking("alfworld_5x40")["$ALFWORLD_DATA/json_2.1.1"].endswith(unset)
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    for split in ("train", "valid_seen", "valid_unseen"):
        said = lacking("alfworld_5x40")["$ALFWORLD_DATA/json_2.1.1"]
        assert "make fetch-assets STUDY=alfworld_5x40" in said
        path = tmp_path / f"json_2.1.1/{split}/task/trial/game.tw-pddl"
        path.parent.mkdir(parents=True)
        path.write_text("{}", encoding="utf-8")
    assert "$ALFWORLD_DATA/json_2.1.1" not in lacking("alfworld_5x40")


def test_a_given_adapter_is_looked_for(tmp_path):
    assert str(tmp_path) in lacking("webshop_5x40_cpu", set=f"sft.adapter={tmp_path}")


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
    found = lacking("webshop_5x40")
    assert found["transformers"].startswith("4.45.2; >=")
    assert found["openai"].startswith("not installed; >=3 is needed (EXTRAS=judge)")
    assert found["spacy"].endswith("(EXTRAS=webshop)")
    assert "wandb" not in found
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
    found = findings(study, {}, PROJECT, read_profile(PROJECT / "profiles" / profile))
    return {each.name: each for each in found}


@pytest.mark.parametrize("profile", PLUGINS)
def test_a_cluster_needs_its_plugins_here_and_gpus_on_its_nodes(profile, monkeypatch, tmp_path):
    found = on_a_cluster(profile, monkeypatch, tmp_path, "echo 'gpu gpu:8'")
    for name in PLUGINS[profile]:
        assert found[name].lacking
        assert found[name].found.endswith(f"is needed (EXTRAS={profile})")
    elsewhere = {name for name, each in found.items() if each.lacking is None}
    assert elsewhere == ({"pods"} if profile == "kubernetes" else {"GPU (1 for a job)"})
    assert found["OPENAI_API_KEY"].lacking
    if profile == "kubernetes":
        assert not {"torch", "disk", "sinfo", "engine vllm"} & set(found)
    else:
        assert (found["sinfo"].found, found["sinfo"].lacking) == ("gpu gpu:8", False)
        assert {"torch", "disk", "engine vllm", "$ALFWORLD_DATA/json_2.1.1"} <= set(found)


def test_a_slurm_that_does_not_answer_is_lacking(monkeypatch, tmp_path):
    found = on_a_cluster("slurm", monkeypatch, tmp_path, "echo 'no controller' >&2; exit 1")
    assert found["sinfo"].lacking
    assert found["sinfo"].found == "Slurm does not answer: no controller"


@pytest.mark.parametrize(
    ("executor", "hint"), [("slurm", r".*\(EXTRAS=slurm\)"), ("lsf", "; it is needed")]
)
def test_an_executor_without_its_plugin_names_the_package(executor, hint, monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", missing)
    plugin = next(each for each in plugins(executor) if "executor" in each.name)
    assert plugin.lacking and plugin.name == f"snakemake-executor-plugin-{executor}"
    assert re.fullmatch(f"not installed{hint}", plugin.found)


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
    found = extras(load_study(STUDIES / f"{name}.yaml"))
    assert set(found) == {"train", "workflow"} | expected


def test_one_step_takes_every_stage_and_is_a_valid_study():
    for name in ("webshop_5x40", "alfworld_5x40_tier2", "bakeoff", "webshop_credit", "smoke"):
        given = read_assignments(one_step(load_study(STUDIES / f"{name}.yaml")))
        assert given.pop("study") == name
        short = load_study(STUDIES / f"{name}.yaml", given)
        assert short.config.training.steps_per_round == 1 and short.has_reference
        fits = any(arm.credit.declared.fits for arm in short.methods.values())
        assert short.config.rounds == (2 if fits else 1)
        assert len(short.config.seeds) == 1 and len(short.methods) <= 4
        called = {name for name, arm in short.methods.items() if "Judge" in arm.name}
        assert called == ({"LLMJudge_gpt"} if name == "webshop_5x40" else set())


def test_what_the_command_line_changed_stays_in_the_step():
    given = {
        "seeds": "23",
        "set": "sft.adapter=/shared/sft training.lr=1e-5 evaluation.test_games=2 truth.groups=8 "
        "evaluation.endpoint={budget: 448}",
    }
    study = load_study(STUDIES / "bakeoff_plus.yaml", given)
    again = read_assignments(one_step(study))
    del again["study"]
    short = load_study(STUDIES / "bakeoff_plus.yaml", again).config
    assert (short.sft.adapter, short.training.lr, short.seeds) == ("/shared/sft", 1e-5, [23])
    assert (short.evaluation.test_games, short.truth) == (2, None)
    assert short.evaluation.endpoint == "last_round"
