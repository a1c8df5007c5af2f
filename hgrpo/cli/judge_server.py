"""Serve the offline rubric through a local OpenAI-compatible endpoint, to test failing calls.

The server computes rule-based scores (`score` in hgrpo/games/<name>/judge.py) and replies in the
JSON format of an LLM judge. Scores are cached separately for each base_url. To use the server, give
a method these settings:

  model: offline-rubric
  base_url: http://127.0.0.1:8123/v1
  api_key_env: null

When ready, the server prints its address. It answers POST /v1/chat/completions like OpenAI, and:

  GET /stats        counts to compare with train_log.json: requests, answered, refused,
                    one count for each fault, input_tokens and output_tokens

Token counts are UTF-8 bytes / 4, rounded up. API keys are ignored. Stop the server with Ctrl-C.

Faults to inject into a share of the requests (`--fault NAME=SHARE`, repeatable):
  rate-limit=0.2    HTTP 429 on a fifth of the requests
  drop=0.2          the connection closes without an answer
  timeout=0.2       no answer until the client hangs up
  malformed=0.2     an answer cut in the middle of its JSON
  wrong-length=0.2  an answer without its last score
Faults are drawn in this order, and only the first fault drawn is applied. A draw depends on --seed,
on the request, and on the number of earlier identical requests, but not on the order of different
requests. With all five faults at 0.2, 0.8^5 = 33 % of the requests are answered correctly.

Examples:
  python -m hgrpo.cli.judge_server --port 8123
  python -m hgrpo.cli.judge_server --fault rate-limit=0.2 --fault timeout=0.2 --seed 1
"""

import argparse

from hgrpo.cli.entry import command_parser
from hgrpo.command import run
from hgrpo.credit.judge.server import FAULTS, FaultPlan, JudgeServer
from hgrpo.credit.judge.settings import RUBRIC


def main() -> None:
    """Serve requests until SIGINT or SIGTERM."""
    parser = command_parser(__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free port")
    parser.add_argument(
        "--fault", type=_fault, action="append", default=[], metavar="NAME=SHARE", help="see above"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the faults")
    args = parser.parse_args()
    server = JudgeServer((args.host, args.port), FaultPlan(dict(args.fault), args.seed))
    try:
        print(f"judge server: {RUBRIC} at {server.url}", flush=True)
        server.serve_forever(poll_interval=0.1)
    except KeyboardInterrupt:
        pass  # Ctrl-C is the normal way to stop the server
    finally:
        server.server_close()


def _fault(text: str) -> tuple[str, float]:
    name, _, share = text.partition("=")
    try:
        value = float(share)
    except ValueError:
        value = -1.0
    if name not in FAULTS or not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected NAME=SHARE, with NAME one of {', '.join(FAULTS)} and SHARE in 0..1"
        )
    return name, value


if __name__ == "__main__":
    run(main)
