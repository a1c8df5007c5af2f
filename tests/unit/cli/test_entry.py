"""The command lines' common part: one line for a user's mistake, an exit code, no traceback."""

import errno
import json
import os
import signal
import subprocess
import sys

import pytest
from places import PROJECT

from hgrpo.cli.entry import command_parser, read_config
from hgrpo.cli.run_stage import read_settings
from hgrpo.command import INTERRUPTED, READER_GONE, USER_ERROR, run
from hgrpo.errors import UserError
from hgrpo.stages import evaluate, rl_round
from hgrpo.stages.paths import Job


def raising(error: BaseException):
    def main() -> None:
        raise error

    return main


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (UserError("games/x: already won at reset"), "error: games/x: already won at reset"),
        (OSError(errno.ENOSPC, "No space left on device"), "error: No space left on device (of th"),
        (
            OSError(errno.ENOSPC, "No space left on device", "w"),
            "error: w: No space left on device\n",
        ),
    ],
)
def test_a_users_error_is_one_line_and_exit_code_2(capsys, error, line):
    with pytest.raises(SystemExit) as caught:
        run(raising(error))
    assert caught.value.code == USER_ERROR == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(line)
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_an_interrupt_is_one_line_and_exit_code_130(capsys):
    with pytest.raises(SystemExit) as caught:
        run(raising(KeyboardInterrupt()))
    assert caught.value.code == INTERRUPTED == 130
    assert capsys.readouterr().err.startswith("interrupted")


def test_a_bug_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        run(raising(ZeroDivisionError()))


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_process_without_a_traceback(sent):
    code = (
        "import time\nfrom hgrpo.command import run\n"
        "def main():\n    print('ready', flush=True)\n    time.sleep(60)\nrun(main)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, sent)
        _, err = process.communicate(timeout=20)
    assert process.returncode == INTERRUPTED
    assert err.startswith("interrupted")
    assert "Traceback" not in err


def test_config_is_read_from_json_text_and_from_files(tmp_path):
    expected = {"a": {"b": [1, 2]}}
    (tmp_path / "c.json").write_text(json.dumps(expected), encoding="utf-8")
    (tmp_path / "c.yaml").write_text("a:\n  b: [1, 2]\n", encoding="utf-8")
    assert read_config(json.dumps(expected)) == expected
    assert read_config(str(tmp_path / "c.json")) == expected
    assert read_config(str(tmp_path / "c.yaml")) == expected


@pytest.mark.parametrize("text", ["{not json", "[1, 2]", "a: [1"])
def test_a_config_file_that_is_no_mapping_is_named(tmp_path, text):
    path = tmp_path / "bad.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"bad\.yaml"):
        read_config(str(path))


def test_sections_that_are_missing_or_unknown_are_named():
    sections = {"env": {"name": "alfworld", "games": {"generate": {}}}, "train": True}
    with pytest.raises(UserError, match="--config: model: required, but missing"):
        read_settings(evaluate, sections, Job())
    with pytest.raises(UserError, match="--config: engin: unknown key; did you mean 'engine'"):
        read_settings(rl_round, {"engin": {"kind": "vllm"}}, Job())


@pytest.mark.parametrize("words", [[], ["rl_rounds"]])
def test_a_command_without_a_stage_names_them(words):
    command = [sys.executable, "-m", "hgrpo.cli.stage", *words]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, encoding="utf-8")
    assert done.returncode == 1
    assert done.stderr.startswith("error: expected the name of a stage: study_config, ")


@pytest.mark.parametrize("words", ["smoke", "bakeoff --stage evaluate --method flatGRPO"])
def test_a_command_whose_reader_has_gone_ends_without_a_word(words):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "hgrpo.cli.config", *words.split()]
    done = subprocess.run(command, cwd=PROJECT, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (READER_GONE, b"")


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_text_is_utf_8_whatever_the_locale(tmp_path, mark):
    file = tmp_path / "method.yaml"
    file.write_bytes(mark + "label: größe √\n".encode())
    code = (
        "import sys; from pathlib import Path; from hgrpo.cli.entry import read_config\n"
        "from hgrpo.command import run; from hgrpo.config.read import read_yaml\n"
        "file = sys.argv[1]; assert read_yaml(Path(file)) == read_config(file)\n"
        "run(lambda: print(read_config(file)['label']))"
    )
    env = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-c", code, str(file)]
    done = subprocess.run(command, cwd=PROJECT, env=env, capture_output=True, check=False)
    assert (done.stdout, done.stderr) == ("größe √\n".encode(), b"")


def test_another_pipe_that_breaks_is_an_error(capfd):
    with pytest.raises(SystemExit) as caught:
        run(raising(BrokenPipeError(errno.EPIPE, "Broken pipe")))
    assert caught.value.code == USER_ERROR
    assert capfd.readouterr().err == "error: Broken pipe\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--chek-only=1", "a=b"], "unrecognized arguments: --chek-only=1"),
        (["--profile"], "argument --profile: expected one argument"),
    ],
)
def test_a_mistaken_option_is_one_line(words, message):
    parser = command_parser("A command.")
    parser.add_argument("settings", nargs="*")
    parser.add_argument("--profile")
    parser.add_argument("--check-only", action="store_true")
    with pytest.raises(UserError) as refused:
        parser.parse_intermixed_args(words)
    assert str(refused.value) == message
