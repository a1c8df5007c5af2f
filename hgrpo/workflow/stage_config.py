"""The part of a study that each stage depends on: what is not in it cannot make it rerun."""

import json

from hgrpo.study.study import Study

# Keys of EvaluationConfig that only the statistics read.
STATISTICS = {"bootstrap", "confidence"}
# Keys of TrainingConfig that the report may find to be factors of the study.
_TOLD = {"lr", "rollouts_per_task"}
# Keys of TrainingConfig that say how turns are played.
PLAY = {"temperature", "max_action_tokens", "in_flight"}


def stage_config(study: Study, stage: str, method: str | None = None) -> dict:
    """The resolved settings of one stage as plain JSON types.

    Args:
        study: from `load_study`.
        stage: a key of `hgrpo.workflow.code_version.STAGES`.
        method: needed by rl_round, turnrd_fit and evaluate.
    """
    env = study.env.model_dump(mode="json", exclude=set() if stage == "expert" else {"expert"})
    model = study.model.model_dump(mode="json")
    engine = study.config.engine.model_dump(mode="json")
    match stage:
        case "config":
            return study.resolved()
        case "assets":
            return {"env": env} | _open_panels(study)
        case "expert":
            return {"env": env}
        case "base":
            if study.model.tiny is None:
                return {"model": model, "engine": {"kind": engine["kind"]}}
            # Either engine plays a tiny model; its tokenizer is cut to fit the environment's text.
            return {"model": model, "env": {"name": study.env.name}}
        case "sft":
            return {"model": model, "sft": study.config.sft.model_dump(mode="json")}
        case "rl_round":
            arm = study.methods[method]
            return {
                "env": env,
                "model": model,
                "engine": engine,
                "training": study.training[method].model_dump(mode="json"),
                "method": arm.model_dump(mode="json", exclude={"label", "training"}),
            }
        case "turnrd_fit":
            return {"credit": study.methods[method].credit.settings}
        case "evaluate":
            train = study.methods[method].train
            unread = STATISTICS | ({"sft_temperatures"} if train else set())
            evaluation = study.config.evaluation.model_dump(mode="json", exclude=unread)
            return {
                "env": env,
                "model": model,
                "engine": engine,
                "evaluation": evaluation,
                "train": train,
            }
        case "merge":
            return {"methods": list(study.methods)}
        case "figures":
            return _comparison(study)
        case "report":
            about = {"study": study.config.name, "description": study.config.description}
            return _comparison(study) | about
        case "credit_agreement":
            reference = study.config.reference
            return {
                "env": env,
                "model": model,
                "engine": engine,
                "play": study.training[reference].model_dump(mode="json", include=PLAY),
                "agreement": study.config.agreement.model_dump(mode="json"),
                "reference": reference,
                "stream": study.methods[reference].stream,
                # A list, since mappings are sorted on their way: the study's order is shown.
                "methods": [
                    arm.model_dump(mode="json", include={"name", "credit"})
                    | {"label": arm.shown_label}
                    for arm in study.methods.values()
                    if arm.train
                ],
            }
        case _:
            raise KeyError(stage)


def _open_panels(study: Study) -> dict:
    """Games that evaluation wants of panels whose size only their folder knows; {} without any."""
    wanted = {
        f"{panel}_games": getattr(study.config.evaluation, f"{panel}_games")
        for panel in ("validation", "test")
        if getattr(study.env.panels, panel) is None
    }
    return {"study": study.config.name, "evaluation": wanted} if wanted else {}


def _comparison(study: Study) -> dict:
    evaluation = study.config.evaluation.model_dump(mode="json", include=STATISTICS)
    # A key that one arm changes is shown for all, so that arms can be told apart; the rest of the
    # training is the same for all of them and says nothing here.
    told = _TOLD.union(*(method.training for method in study.methods.values()))
    methods = {
        name: method.model_dump(mode="json", exclude={"training"})
        | {"label": method.shown_label}
        | {"training": study.training[name].model_dump(mode="json", include=told)}
        for name, method in study.methods.items()
    }
    # JSON with sorted keys forgets the order of the arms, in which they are shown.
    order = {"order": list(study.methods)}
    return evaluation | order | {"reference": study.config.reference, "methods": methods}


def as_json(config: dict) -> str:
    """One line of JSON with sorted keys: the same settings give the same text everywhere."""
    return json.dumps(config, sort_keys=True, separators=(",", ":"))
