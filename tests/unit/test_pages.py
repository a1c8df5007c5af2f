"""README.md and docs/*.md: links lead somewhere, and the tests that they name exist."""

import re

import pytest

LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<file>[^)#\s]*)(?:#(?P<anchor>[^)\s]*))?\)")
IMAGE = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")
CODE = re.compile(r"```.*?```", re.DOTALL)
TEST_FILE = re.compile(r"`((?:[\w./]+/)?test_\w+\.py)`((?:(?:: |, )`test_\w+`)*)")


def pages(project):
    return [project / "README.md", *sorted((project / "docs").glob("*.md"))]


def anchors(text):
    """The anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", CODE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("A round", "a-round"),
        ("`plan`: before and after", "plan-before-and-after"),
        ("`judge_server`: drills", "judge_server-drills"),
        ("Slurm: squeue or sacct?", "slurm-squeue-or-sacct"),
    ],
)
def test_anchors_by_hand(heading, anchor):
    assert anchors(f"text\n## {heading}\n") == {anchor}


def test_every_link_leads_to_a_file_and_a_heading(project):
    dead = []
    for page in pages(project):
        text = CODE.sub("", page.read_text(encoding="utf-8"))
        for link in LINK.finditer(text):
            if link["file"].startswith("http"):
                continue
            target = (page.parent / link["file"]).resolve() if link["file"] else page
            known = anchors(target.read_text(encoding="utf-8")) if target.suffix == ".md" else set()
            if not target.exists() or (link["anchor"] and link["anchor"] not in known):
                dead.append(f"{page.name}: {link.group()}")
        dead += [
            f"{page.name}: {image}"
            for image in IMAGE.findall(text)
            if not (page.parent / image).exists()
        ]
    assert dead == []


def test_every_test_that_a_page_names_exists(project):
    named, missing = 0, []
    for page in pages(project):
        for path, tests in TEST_FILE.findall(page.read_text(encoding="utf-8")):
            file = project / path if path.startswith("tests/") else project / "tests/unit" / path
            code = file.read_text(encoding="utf-8") if file.exists() else ""
            names = re.findall(r"test_\w+", tests)
            named += 1 + len(names)
            missing += [] if code else [f"{page.name}: {path}"]
            missing += [f"{path}: {name}" for name in names if f"def {name}(" not in code]
    assert missing == []
    assert named > 50


def test_every_file_and_name_of_the_architecture_exists(project):
    text = (project / "docs/architecture.md").read_text(encoding="utf-8")
    paths = set(re.findall(r"`([\w/]+\.(?:py|smk|js))`", text))
    files = {
        path: [p for p in (project / "hgrpo" / path, project / path) if p.is_file()]
        for path in paths
    }
    named = re.findall(r"`([\w/]+\.py)`: ((?:`\w+`(?:, | and )?)+)", text)
    missing = sorted(path for path, places in files.items() if not places)
    for path, names in named:
        code = "".join(file.read_text(encoding="utf-8") for file in files[path])
        for name in re.findall(r"\w+", names):
            if not re.search(rf"^ *(?:def |class )?{name}\b[ (:=]", code, re.MULTILINE):
                missing.append(f"{path}: {name}")
    assert (missing, len(named) > 15, len(paths) > 80) == ([], True, True)
