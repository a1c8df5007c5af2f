"""profiles/kubernetes: a plan, and a study whose pods are processes and whose bucket is moto's."""

import re
import socket
import subprocess
import sys
import time

import pytest
import yaml
from chat_models import write_chat
from cluster_checkout import NAME, SAME_FILES, STUDY, make_checkout
from pretend_kubernetes import running_cluster

from hgrpo.store.plan import Plan
from hgrpo.study.study import load_study

pytest.importorskip("snakemake_executor_plugin_kubernetes", reason="needs the extra `kubernetes`")
pytest.importorskip("snakemake_storage_plugin_s3", reason="needs the extra `kubernetes`")
pytest.importorskip("moto", reason="needs the extra `bucket`")

KEYS = {"access_key": "a-key", "secret_key": "a-secret"}
BUCKET = "your-bucket"


def await_port(server, port):
    """Return once the server answers."""
    while True:
        assert server.poll() is None
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)


@pytest.fixture(scope="module")
def bucket():
    """An empty bucket, and the variables that tell where it is."""
    import boto3

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # It has its own process: vLLM inspects all imported modules and fails at Flask's proxies.
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    await_port(server, port)
    made = boto3.resource(
        "s3",
        endpoint_url=address,
        region_name="us-east-1",
        aws_access_key_id=KEYS["access_key"],
        aws_secret_access_key=KEYS["secret_key"],
    ).Bucket(BUCKET)
    made.create()
    settings = KEYS | {"endpoint_url": address}
    variables = {f"SNAKEMAKE_STORAGE_S3_{key.upper()}": value for key, value in settings.items()}
    yield made, variables
    server.kill()
    server.wait()


def snakemake(
    checkout, variables: dict[str, str], *arguments: str, study: str = NAME
) -> subprocess.CompletedProcess:
    return subprocess.run(
        [
            *(sys.executable, "-m", "snakemake"),
            *("--workflow-profile", "profiles/kubernetes", *arguments),
            *("--config", f"study={study}"),
        ],
        cwd=checkout.root,
        env=checkout.environment() | variables,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def no_results(checkout) -> bool:
    """Whether nothing but what jobs' commands read lies beside the checkout."""
    files = [path for path in (checkout.root / "results").rglob("*") if path.is_file()]
    shared = ("settings", "code")
    return all(path.name == "job.json" or path.parent.name in shared for path in files)


def test_a_plan_needs_a_bucket_and_no_cluster(project, tmp_path, bucket):
    checkout = make_checkout(project, tmp_path / "checkout")
    _, variables = bucket
    planned = snakemake(checkout, variables, "-n", "--printshellcmds")
    assert planned.returncode == 0, planned.stdout + planned.stderr
    assert "Tables and the report" in planned.stdout
    page = rf"s3/{BUCKET}/hgrpo/results/store/[0-9a-f]{{16}}/report/findings\.txt"
    assert re.search(page, planned.stdout)
    assert no_results(checkout)


def test_a_judges_key_reaches_pods_in_a_secret(project, tmp_path, bucket):
    checkout = make_checkout(project, tmp_path / "checkout")
    subprocess.run(["git", "init", "--quiet"], cwd=checkout.root, check=True)
    subprocess.run(["git", "add", "--all"], cwd=checkout.root, check=True)
    paid = {"model": "gpt-4o-mini", "base_url": "https://api.openai.com/v1"}
    study = STUDY | {
        "methods": [*STUDY["methods"], "Paid"],
        "variants": {"Paid": {"of": "LLMJudge", "label": "paid", "credit": paid}},
    }
    (checkout.root / f"configs/studies/{NAME}.yaml").write_text(
        yaml.safe_dump(study), encoding="utf-8"
    )
    _, variables = bucket
    with running_cluster(tmp_path / "cluster", lambda command: True) as (cluster, kubeconfig):
        done = snakemake(
            checkout,
            variables | {"KUBECONFIG": str(kubeconfig), "OPENAI_API_KEY": "sk-secret"},
            *("--seconds-between-status-checks=1", "--retries=0"),
        )
    assert done.returncode and cluster.jobs  # no pod ran
    for manifest in cluster.jobs.values():
        (container,) = manifest["spec"]["template"]["spec"]["containers"]
        assert "OPENAI_API_KEY" in {variable["name"] for variable in container["env"]}
        assert "sk-secret" not in str(container)
    assert cluster.secrets == {} and "sk-secret" not in done.stdout + done.stderr


@pytest.mark.slow
def test_a_study_of_official_data_has_a_plan(project, tmp_path, bucket):
    checkout = make_checkout(project, tmp_path / "checkout")
    _, variables = bucket
    planned = snakemake(checkout, variables, "-n", study="webshop_5x40")
    assert planned.returncode == 0, planned.stdout + planned.stderr
    assert "Official data files" in planned.stdout
    assert re.search(r"^total +127$", planned.stdout, re.MULTILINE)


@pytest.mark.slow
def test_a_study_of_pods_that_share_nothing_but_a_bucket(local, project, tmp_path, bucket):
    checkout = make_checkout(project, tmp_path / "checkout")
    # Sources travel as what git lists.
    subprocess.run(["git", "init", "--quiet"], cwd=checkout.root, check=True)
    subprocess.run(["git", "add", "--all"], cwd=checkout.root, check=True)
    evictions = iter([True])

    def evicted(command: str) -> bool:
        return "rl_round:" in command and next(evictions, False)

    made, variables = bucket
    with running_cluster(tmp_path / "cluster", evicted) as (cluster, kubeconfig):
        done = snakemake(
            checkout,
            variables | {"KUBECONFIG": str(kubeconfig)},
            "--seconds-between-status-checks=1",
            "--latency-wait=5",
        )
    logs = "\n".join(path.read_text(encoding="utf-8") for path in cluster.output.values())
    assert done.returncode == 0, done.stdout + done.stderr + logs
    for name in SAME_FILES:
        file = (local.results / name).resolve()
        stored = made.Object(f"hgrpo/{file.relative_to(local.root.resolve())}").get()["Body"].read()
        assert stored == file.read_bytes(), name
    assert no_results(checkout)

    containers = [
        manifest["spec"]["template"]["spec"]["containers"][0] for manifest in cluster.jobs.values()
    ]
    rounds = [each["resources"] for each in containers if "rl_round:" in each["args"][-1]]
    assert [each["limits"] for each in rounds] == [
        {"cpu": "1000m", "memory": memory, "nvidia.com/gpu": "1", "ephemeral-storage": "1000M"}
        for memory in ("1700M", "3400M")
    ]
    others = [each for each in containers if "rl_round:" not in each["args"][-1]]
    assert len(others) == 8
    assert not any("nvidia.com/gpu" in each["resources"]["limits"] for each in others)
    assert {each["image"] for each in containers} == {"registry.example.org/hgrpo:0.1"}
    # Keys travel in a secret, which is gone at the end.
    assert not any(key in each["args"][-1] for each in containers for key in KEYS.values())
    assert cluster.secrets == {}


@pytest.mark.slow
def test_a_chat_model_travels_whole(project, tmp_path, bucket):
    from transformers import Qwen2Config, Qwen2ForCausalLM

    checkout = make_checkout(project, tmp_path / "checkout")
    source = write_chat(tmp_path / "source")
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    config = Qwen2Config(vocab_size=600, tie_word_embeddings=True, **shape, **heads)
    Qwen2ForCausalLM(config).save_pretrained(source)
    configs = checkout.root / "configs"
    model = {"name": "chat", "path": str(source), "system": "One command."}
    (configs / "models/chat.yaml").write_text(yaml.safe_dump(model), encoding="utf-8")
    few = yaml.safe_load((configs / "envs/alfworld-few.yaml").read_bytes())
    few["expert"]["trajectories"], few["turn_cap"] = 20, 3
    (configs / "envs/alfworld-few.yaml").write_text(yaml.safe_dump(few), encoding="utf-8")
    (configs / f"studies/{NAME}.yaml").write_text(
        yaml.safe_dump(STUDY | {"model": "chat"}), encoding="utf-8"
    )
    subprocess.run(["git", "init", "--quiet"], cwd=checkout.root, check=True)
    subprocess.run(["git", "add", "--all"], cwd=checkout.root, check=True)
    plan = Plan(load_study(configs / f"studies/{NAME}.yaml"))
    episodes = plan.stored("eval/flatGRPO/seed_11/round_1/episodes.parquet")
    made, variables = bucket
    made.objects.all().delete()
    with running_cluster(tmp_path / "cluster", lambda command: False) as (cluster, kubeconfig):
        done = snakemake(
            checkout,
            variables | {"KUBECONFIG": str(kubeconfig)},
            *(episodes, "--seconds-between-status-checks=1", "--latency-wait=5"),
        )
    logs = "\n".join(path.read_text(encoding="utf-8") for path in cluster.output.values())
    assert done.returncode == 0, done.stdout + done.stderr + logs
    assert made.Object(f"hgrpo/{episodes}").content_length
