"""Finds the line of a failed program's output that says why it failed."""

import re

# Python draws an exception group with these characters at the beginning of a line.
_BOX = "|+- \t"
# An exception's name and message as Python prints them, or an error of this project.
EXCEPTION = re.compile(r"([\w.]*(Error|Exception)\w*|error):\s*\S")
# A progress bar of tqdm, which a killed process leaves as its last line.
_BAR = re.compile(r"\d+%\|.*\|")


def telling_line(text: str) -> str:
    """The line of a failed program's output that best explains the failure.

    This is the last line that names an exception or error with its message. If no line does, or the
    last one reports an interrupt, it is the last line that is neither a separator nor a progress
    bar. It is "" if no line is left.
    """
    lines = [line.lstrip(_BOX).rstrip() for line in text.splitlines()]
    # Drop separators such as "1 ----------------".
    lines = [line for line in lines if line.strip("0123456789.- ") and not _BAR.search(line)]
    errors = [line for line in lines if EXCEPTION.match(line)]
    if lines and lines[-1].startswith("interrupted: "):
        return lines[-1]
    return (errors or lines or [""])[-1]
