"""Set-up of a round: policy, learner, engine, collector and credit assigner."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from safetensors.torch import load_file
from torch.optim import AdamW

from hgrpo.archive import unpacked
from hgrpo.base_model.digest import any_digest
from hgrpo.base_model.folder import open_base
from hgrpo.base_model.safetensors_file import WEIGHTS, check_checksum
from hgrpo.credit.base import Context, make_assigner
from hgrpo.credit.settings import CreditSettings
from hgrpo.games.environment import EnvSettings
from hgrpo.games.kinds import load
from hgrpo.games.panels import read_panels
from hgrpo.learning.checkpoints import Checkpoints, files_in, read_state
from hgrpo.learning.critic import Critic, check_critic, value_head
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.ranks import ALONE, Ranks
from hgrpo.learning.round import Round, RoundId
from hgrpo.learning.scratch import CRITIC, TRAINER_STATE
from hgrpo.learning.settings import TrainingConfig
from hgrpo.learning.stops import greedy_validation
from hgrpo.learning.update import Learner
from hgrpo.policy.compatible import check_adapter, check_policy
from hgrpo.policy.load import load_policy
from hgrpo.policy.policy import Policy
from hgrpo.policy.precision import autocast_dtype
from hgrpo.policy.settings import ModelConfig
from hgrpo.rollout.collector import Collector
from hgrpo.rollout.engine import Sampling
from hgrpo.rollout.settings import EngineConfig


@dataclass(frozen=True)
class RoundSettings:
    """Sections of a study's configuration that a round requires in addition to its method."""

    env: EnvSettings
    model: ModelConfig
    engine: EngineConfig
    training: TrainingConfig


@dataclass(frozen=True)
class RoundInputs:
    """The input files and folders of a round.

    Attributes:
        sft: the SFT policy, which is the reference of the KL penalty.
        policy: the initial policy of the round. The folder may also contain the trainer's state.
        fitted: folder of the credit model that was fitted after the previous round, if any.
        cache: folder with a judge's cached answers, shared by all jobs of a study.
        evaluations: summary files of the evaluations after earlier rounds, in order.
        critic: file of the previous round's critic; None in the first round and without a critic.
    """

    panels: Path
    tasks: Path
    base: Path
    sft: Path
    policy: Path
    fitted: Path | None = None
    cache: Path | None = None
    evaluations: Sequence[Path] = ()
    critic: Path | None = None

    def files(self) -> list[Path]:
        """The round's input files, excluding the base and the tasks."""
        folders = [folder for folder in (self.sft, self.policy, self.fitted) if folder]
        in_folders = (path for folder in folders for path in files_in(folder))
        critic = [self.critic] if self.critic else []
        return [self.panels, *in_folders, *self.evaluations, *critic]


def round_inputs(
    method: MethodConfig, *, assets: Path, base: Path, policy: Path, **others: object
) -> RoundInputs:
    """Unpack the archives in a command's input folders, and return the inputs of its round.

    Args:
        others: further fields of `RoundInputs`.

    Raises:
        UserError: an archive or the folder of the base model is damaged.
    """
    panels, tasks = assets / "panels.json", unpacked(assets / "tasks.tar.gz")
    carried = method.uses_critic and (policy / TRAINER_STATE).is_file()
    critic = policy.parent / CRITIC if carried else None
    return RoundInputs(panels, tasks, open_base(base), policy=policy, critic=critic, **others)


def check_inputs(model: ModelConfig, inputs: RoundInputs) -> None:
    """Check that a round's panels, models and trainer state are intact.

    Call this function before computing the resume key. A damaged file would change the key, and
    steps that were saved under the old key would be removed.

    Raises:
        UserError: a file is missing or damaged, or belongs to another model, or panels overlap.
    """
    read_panels(inputs.panels)
    check_adapter(inputs.base, lora=False)
    for policy in (inputs.sft, inputs.policy):
        check_policy(model, inputs.base, policy)
    if (inputs.policy / TRAINER_STATE).is_file():
        read_state(inputs.policy / TRAINER_STATE, Learner.STATE)
    if inputs.critic:
        check_critic(inputs.critic, any_digest(inputs.base))
    if inputs.fitted and (inputs.fitted / WEIGHTS).is_file():
        check_checksum(inputs.fitted / WEIGHTS)


def set_up(
    id: RoundId,
    settings: RoundSettings,
    inputs: RoundInputs,
    checkpoints: Checkpoints,
    ranks: Ranks = ALONE,
) -> Round:
    """Create a round that is ready to run. Call `check_inputs` on `inputs` first.

    Raises:
        UserError: the model or the panels cannot be loaded, the engine does not support the model,
            or the assigner cannot be created.
    """
    policy = load_policy(settings.model, inputs.base, inputs.policy)
    policy.load_reference(inputs.sft)
    learner = _learner(policy, id.method, settings, ranks)
    if id.method.uses_critic:
        learner.critic = _critic(learner, settings, inputs)
    carried = inputs.policy / TRAINER_STATE
    if carried.is_file():
        learner.load_state(read_state(carried, Learner.STATE))
        if learner.critic:
            learner.critic.load_weights(load_file(inputs.critic))
    declared = id.method.credit.declared
    collector = _collector(policy, settings, inputs, declared)
    context = Context(
        settings.env.name, policy, policy.conversation, collector, inputs.cache, inputs.fitted
    )
    assigner = make_assigner(id.method.credit, context)
    # Recompute credit only if this is cheap, i.e. if the assigner requires only the turns.
    more = declared.plays or declared.needs_policy or declared.uses or declared.may_be_unreachable
    second = None if more else partial(make_assigner, id.method.credit, context)
    panel = read_panels(inputs.panels)["train"]
    validation = [greedy_validation(path) for path in inputs.evaluations]
    return Round(id, panel, collector, assigner, learner, checkpoints, validation, second)


def _learner(
    policy: Policy, method: MethodConfig, settings: RoundSettings, ranks: Ranks
) -> Learner:
    training = settings.training
    parameters = [parameter for _, parameter in policy.trainable]
    decay = training.weight_decay
    optimiser = AdamW(parameters, lr=training.lr, betas=training.betas, weight_decay=decay)
    autocast = autocast_dtype(settings.model, policy.device)
    coefficient, objective = training.kl.init, method.objective
    return Learner(policy, optimiser, coefficient, training, autocast, ranks, objective=objective)


def _critic(learner: Learner, settings: RoundSettings, inputs: RoundInputs) -> Critic:
    training, config = settings.training, settings.training.critic
    body = load_policy(settings.model, inputs.base, inputs.sft)
    head = value_head(body)
    optimiser = AdamW([*(p for _, p in body.trainable), *head.parameters()], lr=config.lr)
    tokens, ranks = training.microbatch_tokens, learner.ranks
    return Critic(body, head, optimiser, config, tokens, learner.autocast, ranks)


def _collector(
    policy: Policy, settings: RoundSettings, inputs: RoundInputs, needs: CreditSettings
) -> Collector:
    training = settings.training
    sampling = Sampling(training.temperature, training.max_action_tokens)
    engine = settings.engine.make(policy, training.in_flight, sampling, needs.reads_embeddings)
    return Collector(
        engine,
        policy.conversation,
        load(settings.env.name).factory(settings.env, inputs.tasks),
        settings.env.turn_cap,
        training.max_action_tokens,
    )
