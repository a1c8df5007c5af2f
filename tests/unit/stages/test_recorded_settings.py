"""What a stage records of its settings."""

from stage_settings import stage_settings

from hgrpo.stages.gradients_round import Settings, settings_read
from hgrpo.study.study import load_study


def test_gradients_record_no_settings_that_only_the_study_reads(project):
    study = load_study(project / "configs/studies/sokoban_gradients.yaml")
    settings = stage_settings(study, "gradients_round", "PPO")
    recorded = settings_read(Settings.model_validate(settings))["gradients"]
    assert recorded == settings["gradients"] and "after_rounds" not in recorded
