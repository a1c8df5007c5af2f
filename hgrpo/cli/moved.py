"""Old names of commands: each prints one line with the new command and exits with status 2.

`hgrpo/cli/__init__.py` runs this file under every name in the table.
"""

import sys

MOVED = {
    "alfworld_parity": "python -m hgrpo.envs.alfworld.check_parity DIR",
    "turnrd_fit": "python -m hgrpo.cli.credit_fit",
    "turnrd_needle": "python -m pytest tests/unit/credit/turnrd/test_turnrd_fit.py",
    "webshop_replay": "WEBSHOP_SESSIONS=LOG WEBSHOP_ASSETS=FOLDER python -m pytest "
    "tests/unit/envs/webshop/test_webshop_replay.py",
}

if __name__ == "__main__":
    old = __spec__.name.rpartition(".")[2]
    print(f"error: hgrpo.cli.{old}: run `{MOVED.get(old, 'another command')}`", file=sys.stderr)
    sys.exit(2)
