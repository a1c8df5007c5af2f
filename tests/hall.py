"""Playing the toy hall with a very small policy."""

from tiny_policy import HallEnv, hall_tasks

from hgrpo.agent.conversation import Conversation
from hgrpo.policy.policy import Policy
from hgrpo.rollout.collector import Collector
from hgrpo.rollout.engine import Sampling
from hgrpo.rollout.torch.engine import TorchEngine
from hgrpo.trajectories.trajectory import Trajectory

TURN_CAP, MAX_TOKENS = 5, 6


def hall_collector(
    policy: Policy,
    capacity: int = 32,
    temperature: float = 1.0,
    embeddings: bool = False,
    compiled: bool = False,
) -> Collector:
    """A collector over an engine of `capacity` rows."""
    conversation = Conversation(policy.tokenizer)
    sampling = Sampling(temperature, MAX_TOKENS)
    engine = TorchEngine(policy, capacity, sampling, embeddings, compiled)
    return Collector(engine, conversation, HallEnv, TURN_CAP, MAX_TOKENS)


def collect(
    policy: Policy,
    capacity: int = 32,
    temperature: float = 1.0,
    tasks: int = 8,
    rollouts: int = 8,
    seed: int = 3,
    **settings: bool,
) -> list[Trajectory]:
    """Trajectories of the first tasks, groups one after the other; `settings` of the collector."""
    collector = hall_collector(policy, capacity, temperature, **settings)
    groups = collector.collect(hall_tasks(tasks), rollouts, ("test", seed))
    return [trajectory for group in groups for trajectory in group]
