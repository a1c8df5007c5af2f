"""Targets by name: a study, and the waves it is played in."""


def rounds(messages):
    """Methods that a plan trains."""
    return {message.split(",")[0] for message in messages if ": round " in message}


def test_the_waves_of_a_study_share_its_methods_out(finished):
    def wave(name):
        return rounds(finished.planned(name, "study=alpha_sweep"))

    assert wave("smoke_wave") == {"TurnRDV2"}
    assert wave("rest_wave") == {"flatGRPO", "TurnRDV2_a000", "TurnRDV2_a025", "TurnRDV2_a075"}


def test_without_a_smoke_wave_it_is_the_reference(checkout):
    checkout.edit("hgrpo/credit/flat.py", "import", "import os\nimport")
    checkout.edit("hgrpo/credit/progress.py", "import", "import os\nimport")
    assert rounds(checkout.planned("smoke_wave")) == {"flatGRPO"}
    assert rounds(checkout.planned("rest_wave")) == {"Progressive"}


def test_a_study_is_a_target_by_its_name(finished):
    named = finished.snakemake("-n", "alpha_sweep", "study=alpha_sweep")
    assert named.returncode == 0
    assert "results/alpha_sweep/report/report.html" in named.stdout + named.stderr


def test_a_run_of_fewer_rounds_keeps_the_longer_report(checkout):
    page = checkout.root / "results/grid/report/report.html"
    before = page.read_bytes() + b"two rounds"
    page.write_bytes(before)
    done = checkout.snakemake("rounds=1")
    assert done.returncode == 0, done.stdout + done.stderr
    (kept,) = checkout.root.glob("results/grid/earlier_reports/*")
    assert f"the report with 2 rounds is kept in {kept.relative_to(checkout.root)}" in done.stderr
    assert (kept / "report.html").read_bytes() == before != page.read_bytes()
    assert checkout.snakemake("rounds=2").returncode == 0
    assert list(checkout.root.glob("results/grid/earlier_reports/*")) == [kept]
