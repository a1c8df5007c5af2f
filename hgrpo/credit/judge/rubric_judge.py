"""The offline rubric as a judge in this process."""

from collections.abc import Mapping

from hgrpo.credit.judge import rubric
from hgrpo.credit.judge.accounting import Account, Usage
from hgrpo.credit.judge.failures import CallError
from hgrpo.credit.judge.prompts import Prompt
from hgrpo.credit.judge.protocol import Answers, Judgement
from hgrpo.credit.judge.record import read
from hgrpo.credit.judge.scores import check
from hgrpo.envs.environment import JudgeText
from hgrpo.errors import UserError


class RubricJudge:
    """Scores prompts by the rules of one environment; a `protocol.Judge`.

    Calls and tokens are counted as for a language model. A study thus shows how much a paid judge
    would read and write.
    """

    def __init__(self, text: JudgeText, account: Account):
        self._text = text
        self._account = account

    def ask_all(self, prompts: Mapping[str, Prompt]) -> Answers:
        """Answer the prompts in their order.

        Raises:
            UserError: the rules do not give one score in 0..10 for each turn.
        """
        for name, prompt in prompts.items():
            try:
                yield name, self._ask(prompt)
            except CallError as cap:
                yield name, cap

    def _ask(self, prompt: Prompt) -> Judgement:
        aside = self._account.begin(prompt, retry=False)
        environment, goal, records = read(prompt.user)
        scores = rubric.judge(self._text, goal, records)
        try:
            check(scores, prompt.turns)
        except CallError as error:
            raise UserError(
                f"the offline rubric of environment {environment!r}: {error}; see `score` in "
                f"hgrpo/envs/{environment}/judge.py"
            ) from None
        texts = [message["content"] for message in prompt.messages]
        answer = rubric.answer(scores, prompt.variant)
        self._account.answered(
            aside, Usage(rubric.count_tokens(*texts), rubric.count_tokens(answer))
        )
        return Judgement(scores, rubric.MODEL)
