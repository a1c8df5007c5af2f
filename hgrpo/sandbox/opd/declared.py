"""The losses: what each needs, which function is its term, and where its settings come from."""

from hgrpo.sandbox.opd.rule_settings import Clip, Truncation
from hgrpo.sandbox.rule import Rule

PACKAGE = "hgrpo.sandbox.opd.rules"
_TOP_K = {"k": "top_k", "support": "top_k_support"}


def _truncated(name: str, term: str, *needs: str) -> Rule:
    return Rule(name, f"truncated.{term}", ("truncates", *needs), Truncation, _TOP_K)


RULES = {
    rule.name: rule
    for rule in (
        Rule("OPDReverseKL", "exact.reverse"),
        _truncated("OPDTopKReverseKL", "reverse"),
        _truncated("OPDTopKRenormalised", "renormalised", "several_tokens"),
        _truncated("OPDTopKTail", "tail"),
        _truncated("OPDTopKForwardKL", "forward"),
        Rule("OPDPG", "sampled.clipped", ("ratios",), Clip, {"clip": "clip_epsilon"}),
    )
}
# The losses that take a top-k set; the first is the original's.
TRUNCATED = tuple(name for name, rule in RULES.items() if rule.settings is Truncation)
