"""The rollout engine in plain PyTorch.

The KV cache persists across turns. If new conversations with the same prefix start in the same
step, the prefix is computed once. If a conversation starts with a cached text (`HoldsTexts`), its
own slot contains only the suffix. A released conversation frees its slot immediately.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from hgrpo.games.streams import uniform
from hgrpo.policy.load import SavedPolicy
from hgrpo.policy.policy import Policy
from hgrpo.rollout.engine import Completion, Request, Sampling
from hgrpo.rollout.torch.decoder import Branch, Decoder


@dataclass(eq=False)
class _Row:
    """One or more conversations with identical tokens so far, in the same cache slot.

    Attributes:
        slot: index of the row in the cache.
        streams: maps each conversation to the key of its random stream.
        queued: the conversations whose current reply is queued.
        cached: tokens whose keys and values are in the cache.
        pending: tokens to process in the next step.
        reply, logprobs: tokens of the current reply so far, and their log-probs.
        hidden, read: sum of hidden states over the tokens processed since the last finished reply,
            and the number of these tokens.
        cut: whether the reply was truncated and its last token has not been processed yet.
        branch: the branch from a cached text, or None.
    """

    slot: int
    streams: dict[int, int] = field(default_factory=dict)
    queued: set[int] = field(default_factory=set)
    cached: list[int] = field(default_factory=list)
    pending: list[int] = field(default_factory=list)
    reply: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    hidden: Tensor | None = None
    read: int = 0
    cut: bool = False
    branch: Branch | None = None


class TorchEngine:
    """A `RolloutEngine` that runs in float32 on the policy's device."""

    dtype = torch.float32

    def __init__(
        self,
        policy: Policy | SavedPolicy,
        capacity: int,
        sampling: Sampling,
        embeddings: bool = False,
        compiled: bool = False,
    ):
        self.capacity = capacity
        self.embeddings = embeddings
        self.sampling = sampling
        self.end_id = policy.conversation.end_id
        config = policy.architecture
        self.max_length = config.max_position_embeddings
        self._decoder = Decoder(config, capacity, self.max_length, policy.device, compiled)
        self.load_weights(policy)

    def load_weights(self, policy: Policy | SavedPolicy) -> None:
        self._decoder.load(policy.merged_weights())
        self._rows: dict[int, _Row] = {}
        self._active: dict[int, _Row] = {}
        self._texts: dict[int, int] = {}
        # A new branch is stored here until it is processed. The key is (text id, prefix length).
        self._fresh: dict[tuple[int, int], _Row] = {}
        self._free = list(range(self.capacity))

    def hold(self, text: int, tokens: list[int]) -> None:
        """See `HoldsTexts`."""
        # Place texts in the highest free slots, because conversations use the lowest ones.
        self._texts[text] = slot = self._take(max)
        self._decoder.forward([slot], [tokens], [0])

    def drop(self, text: int) -> None:
        """See `HoldsTexts`."""
        self._free.append(self._texts.pop(text))

    def _take(self, choose: Callable[[list[int]], int]) -> int:
        if not self._free:
            raise RuntimeError(f"all {self.capacity} slots of the engine are in use")
        slot = choose(self._free)
        self._free.remove(slot)
        return slot

    def submit(self, request: Request) -> None:
        name = request.conversation
        row = self._rows.get(name) or self._begin(request)
        known = len(row.cached)
        if request.prefix[:known] != row.cached or len(request.prefix) <= known:
            raise RuntimeError(f"conversation {name}: the prompt must begin with the cached tokens")
        pending = request.prefix[known:]
        if row.queued and pending != row.pending:
            shared, row = row, self._split(row, [name])
            self._copy(shared, [row])
        if not row.queued:
            row.pending, row.reply, row.logprobs = pending, [], []
        row.queued.add(name)
        row.streams[name] = request.stream
        self._active[name] = row

    def _begin(self, request: Request) -> _Row:
        name, text = request.conversation, request.text
        if text is None:
            row = _Row(self._take(min))
        elif (place := (text, len(request.prefix))) in self._fresh:
            row = self._fresh[place]
        else:
            # The last token is processed again, because sampling requires its hidden state.
            cached = request.prefix[:-1]
            branch = Branch(self._texts[text], len(cached))
            row = self._fresh[place] = _Row(self._take(min), cached=cached, branch=branch)
        self._rows[name] = row
        row.streams[name] = request.stream
        return row

    def _split(self, row: _Row, names: list[int]) -> _Row:
        part = replace(
            row,
            slot=self._take(min),
            streams={name: row.streams.pop(name) for name in names},
            queued=row.queued.intersection(names),
            cached=row.cached[:],
            reply=row.reply[:],
            logprobs=row.logprobs[:],
        )
        row.queued.difference_update(names)
        for name in names:
            self._rows[name] = part
            if name in self._active:
                self._active[name] = part
        return part

    def release(self, conversation: int) -> None:
        row = self._rows.pop(conversation)
        self._active.pop(conversation, None)
        row.queued.discard(conversation)
        del row.streams[conversation]
        if not row.streams:
            self._free.append(row.slot)

    def sleep(self) -> None:
        """Do nothing, because this engine cannot free its memory."""

    def step(self) -> list[Completion]:
        if not self._active:
            return []
        self._fresh.clear()
        leaders: dict[tuple[int, ...], _Row] = {}
        followers: dict[_Row, list[_Row]] = {}
        fed: list[_Row] = []
        for row in dict.fromkeys(self._active.values()):
            if len(row.queued) < len(row.streams):
                self._copy(row, [self._split(row, [*row.streams.keys() - row.queued])])
            if not row.cached:
                leader = leaders.setdefault(tuple(row.pending), row)
                if leader is not row:
                    followers.setdefault(leader, []).append(row)
                    continue
            fed.append(row)
        branches = any(row.branch for row in fed)
        if branches:
            # Rows with the same cached text must be adjacent.
            fed.sort(key=lambda row: (row.branch.slot if row.branch else -1, row.slot))
        logits, sums = self._decoder.forward(
            [row.slot for row in fed],
            [row.pending for row in fed],
            [len(row.cached) for row in fed],
            self.embeddings and not all(row.branch for row in fed),
            [row.branch for row in fed] if branches else (),
        )
        rows, source = list(fed), list(range(len(fed)))
        for index, row in enumerate(fed):
            if group := followers.get(row):
                rows += group
                source += [index] * len(group)
                slots = [follower.slot for follower in group]
                self._decoder.copy_prefix(row.slot, slots, len(row.pending))
        if sums is not None:
            for row, index in zip(rows, source, strict=True):
                if row.branch is None:
                    row.hidden = sums[index] if row.hidden is None else row.hidden + sums[index]
                    row.read += len(row.pending)
        return self._sample(rows, logits[source] if followers else logits)

    def _copy(self, row: _Row, others: list[_Row]) -> None:
        length = len(row.cached) - row.branch.length
        self._decoder.copy_prefix(row.slot, [other.slot for other in others], length)

    def _embedding(self, row: _Row) -> np.ndarray | None:
        if row.hidden is None:
            return None
        mean = (row.hidden / row.read).numpy()
        row.hidden, row.read = None, 0
        return mean

    def _sample(self, rows: list[_Row], logits: Tensor) -> list[Completion]:
        """Sample a token for each conversation from its row's logits; return finished replies."""
        for row in rows:
            row.cached.extend(row.pending)
        finished: list[Completion] = []
        whole = [index for index, row in enumerate(rows) if not row.cut]
        if len(whole) < len(rows):
            for row in rows:
                if row.cut:
                    row.cut = False
                    finished += self._complete(row, overlong=True)
            if not whole:
                return finished
            rows, logits = [rows[i] for i in whole], logits[whole]
        source = [index for index, row in enumerate(rows) for _ in row.streams]
        names = [name for row in rows for name in row.streams]
        streams = np.array([s for row in rows for s in row.streams.values()], dtype=np.uint64)
        positions = np.array([len(rows[index].cached) for index in source])
        if len(source) > len(rows):
            logits = logits[source]
        tokens, logprobs = draw(logits, self.sampling.temperature, streams, positions)
        drawn: list[dict[int, tuple[float, list[int]]]] = [{} for _ in rows]
        for index, name, token, logprob in zip(source, names, tokens, logprobs, strict=True):
            drawn[index].setdefault(token, (logprob, []))[1].append(name)
        for row, choices in zip(rows, drawn, strict=True):
            finished += self._follow(row, choices)
        return finished

    def _follow(self, row: _Row, choices: dict[int, tuple[float, list[int]]]) -> list[Completion]:
        """Split the row by sampled token. `choices` maps tokens to (log-prob, conversations)."""
        parts = [row]
        if len(choices) > 1:
            parts += [self._split(row, names) for _, names in list(choices.values())[1:]]
            self._copy(row, parts[1:])
        finished = []
        for part, (token, (logprob, _)) in zip(parts, choices.items(), strict=True):
            part.reply.append(token)
            part.logprobs.append(logprob)
            part.pending = [token]
            overlong = token != self.end_id and len(part.reply) >= self.sampling.max_tokens
            if overlong and self.embeddings and part.branch is None:
                # The embedding is a mean that includes the last token, so the engine processes this
                # token before it completes the reply.
                part.cut = True
            elif token == self.end_id or overlong:
                # The last token is processed later, together with the next observation.
                finished += self._complete(part, overlong)
        return finished

    def _complete(self, row: _Row, overlong: bool) -> list[Completion]:
        embedding = self._embedding(row)
        row.queued.clear()
        for name in row.streams:
            del self._active[name]
        return [
            Completion(name, row.reply, row.logprobs, overlong, embedding) for name in row.streams
        ]


def draw(
    logits: Tensor, temperature: float, streams: np.ndarray, positions: np.ndarray
) -> tuple[list[int], list[float]]:
    """Sample one token per row by inverse transform sampling.

    Args:
        logits: float32 [rows, vocabulary].
        temperature: as in `Sampling`.
        streams: uint64 [rows], key of each row's random stream.
        positions: integer [rows], index of the random number within each row's stream.

    Returns:
        The tokens and their log-probs, one per row.
    """
    scaled = logits / temperature if temperature > 0 else logits
    logp = torch.log_softmax(scaled, dim=-1)
    if temperature == 0:
        tokens = logp.argmax(-1)
    else:
        cumulative = logp.double().exp().cumsum(-1)
        drawn = torch.from_numpy(uniform(streams, positions)).to(logits.device)
        target = drawn * cumulative[:, -1]
        tokens = torch.searchsorted(cumulative, target[:, None], right=True).squeeze(1)
        tokens = tokens.clamp_(max=logits.shape[-1] - 1)
    return tokens.tolist(), logp.gather(1, tokens[:, None]).squeeze(1).tolist()
