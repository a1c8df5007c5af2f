"""What a plan reads of a profile: jobs at a time, and prices with their mistakes."""

import pytest
import yaml

from hgrpo.errors import UserError
from hgrpo.study.resources import StageResources
from hgrpo.workflow.planning.profile import Prices, read_profile


@pytest.fixture
def profile(tmp_path):
    """Writes a profile of a folder named `mine`."""

    def write(config, prices=None):
        folder = tmp_path / "mine"
        folder.mkdir(exist_ok=True)
        (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        if prices is not None:
            (folder / "prices.yaml").write_text(yaml.safe_dump(prices), encoding="utf-8")
        return folder

    return write


def test_a_job_pays_for_its_cores_and_its_gpus():
    prices = Prices(core_hour=0.1, gpu_hour=2)
    # Half an hour of 8 cores and 2 GPUs: 0.5 * (0.8 + 4).
    assert prices.of_job(1800, StageResources(threads=8, gpu=2)) == pytest.approx(2.4)


def test_here_cores_count_and_on_a_cluster_jobs(profile):
    here = read_profile(profile({"cores": 3}))
    assert (here.cores, here.jobs, here.prices) == (3, None, None)
    assert read_profile(here.path, cores=8).cores == 8
    there = read_profile(profile({"executor": "slurm", "jobs": 50}), cores=8)
    assert (there.cores, there.jobs) == (None, 50)
    assert read_profile(profile({"executor": "slurm", "jobs": "unlimited"})).jobs is None


@pytest.mark.parametrize(
    ("prices", "message"),
    [
        ({"core_hour": 1}, "gpu_hour: required, but missing"),
        ({"core_hour": 1, "gpu_hours": 1}, "gpu_hours: unknown key; did you mean 'gpu_hour'?"),
    ],
)
def test_a_mistake_in_prices_names_file_and_key(profile, prices, message):
    folder = profile({}, prices)
    with pytest.raises(UserError) as caught:
        read_profile(folder)
    assert f"{folder}/prices.yaml: {message}" in str(caught.value)


def test_the_prices_that_come_with_a_profile_are_examples(project):
    names = {path.parent.name for path in (project / "profiles").glob("*/prices.yaml")}
    assert names == {"slurm", "kubernetes", "one-gpu"}
    for name in names:
        assert read_profile(project / f"profiles/{name}").prices.example
