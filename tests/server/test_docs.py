"""The docs do what they say: sessions are typed into a real redis-cli, examples are run, links lead somewhere.

A fenced block `redis` is a session: lines that start with "> " are typed, the others are what redis-cli --no-raw
prints. The blocks of a page are one story that starts with an empty database, no policies, and a frozen clock. Comments
that no reader sees stand before a block: <!-- clock: +30s --> moves the clock, <!-- resp: 3 --> speaks RESP3, and
<!-- output: allow.py --> says that the block is what this example prints.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness import PRELOAD, START_US, pairs

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = ROOT / "docs" / "examples"
CLI = os.environ.get("REDIS_CLI") or "redis-cli"

MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
DIRECTIVE = re.compile(r"<!-- (clock|resp|output): (\S+) -->")
SHIFT = re.compile(r"([+-]\d+)(ms|s|m|h|d)")
FENCE = re.compile(r"```(\w*)")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"#+ (.*)")
INTERNAL = {"rl.apply", "rl.debug"}


def name(path):
    return str(path.relative_to(ROOT))


class Block:
    def __init__(self, page, line, language, directives):
        self.where = f"{name(page)}:{line}"
        self.language = language
        self.directives = directives
        self.lines = []

    def text(self):
        return "".join(line + "\n" for line in self.lines)


def blocks(page, language):
    """The fenced blocks of a page, with the directives before each."""
    found, directives, block = [], {}, None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if block:
            if line == "```":
                found.append(block)
                block = None
            else:
                block.lines.append(line)
        elif directive := DIRECTIVE.fullmatch(line):
            directives[directive[1]] = directive[2]
        elif fence := FENCE.fullmatch(line):
            block = Block(page, number, fence[1], directives)
            directives = {}
        else:
            assert not line.startswith("```"), f"{name(page)}:{number}: {line}"
            assert not directives or not line, f"{name(page)}:{number}: a directive must stand right before a block"
    assert not block and not directives, f"{name(page)} ends too early"
    return [b for b in found if b.language == language]


def prose(page):
    """A page without its code."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"^    .*$|`[^`\n]*`", "", text, flags=re.MULTILINE)


def run_session(server, block):
    """What a terminal would show: the commands, each with what redis-cli prints. Where nobody types, redis-cli doesn't
    show where an answer ends, so a marker is typed after each command: a setting that redis-cli itself doesn't know."""
    commands = [line[2:] for line in block.lines if line.startswith("> ")]
    cli = [CLI, "-p", str(server.port), "--no-raw", *(["-3"] if block.directives.get("resp") == "3" else [])]
    typed = "".join(f"{command}\n:set marker\n" for command in commands)
    ran = subprocess.run(cli, input=typed, capture_output=True, text=True, timeout=30)
    assert ran.stderr == "", f"{block.where}: {ran.stderr}"
    answers = re.split(r"^unknown \S+ preference 'marker'\n", ran.stdout.replace("\r", ""), flags=re.MULTILINE)
    assert len(answers) == len(commands) + 1, f"{block.where}: {ran.stdout}"
    return "".join(f"> {command}\n{answer}" for command, answer in zip(commands, answers))


def move_clock(server, block):
    if shift := block.directives.get("clock"):
        parts = SHIFT.fullmatch(shift)
        assert parts, f"{block.where}: clock must be such as +30s or -500ms, not {shift}"
        server.clock.advance(ms=int(parts[1]) * MS[parts[2]])


def start_anew(server):
    """Without what FLUSHALL leaves: policies, counts, and loads, which are gone when they have ended."""
    if names := server.client.execute_command("RL.POLICY", "LIST", NEVER_DECODE=True):
        server.run("RL.POLICY", "DEL", *names)
    server.run("RL.STATS", "RESET")
    server.clock.freeze(START_US + 367 * MS["d"] * 1000)
    server.run("DEBUG", "RELOAD")
    server.clock.freeze()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_sessions(server, page):
    start_anew(server)
    for block in blocks(page, "redis"):
        assert block.lines and block.lines[0].startswith("> "), f"{block.where}: a session starts with a command"
        move_clock(server, block)
        assert run_session(server, block) == block.text(), block.where


def run_example(server, path):
    interpreter = {".py": sys.executable, ".sh": "sh"}[path.suffix]
    environ = {**os.environ, "REDIS_URL": f"redis://127.0.0.1:{server.port}", "REDIS_CLI": CLI}
    return subprocess.run([interpreter, str(path)], capture_output=True, text=True, timeout=30, env=environ)


@pytest.mark.parametrize("path", sorted([*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.sh")]), ids=name)
def test_examples_run(server, path):
    ran = run_example(server, path)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr


OUTPUTS = [(page, block) for page in PAGES for block in blocks(page, "text") if "output" in block.directives]


@pytest.mark.parametrize("page, block", OUTPUTS, ids=[block.where for _, block in OUTPUTS])
def test_examples_print_what_the_page_says(server, page, block):
    ran = run_example(server, page.parent / block.directives["output"])
    assert ran.stdout == block.text(), block.where


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_lua_is_that_of_an_example(page):
    examples = "".join(path.read_text(encoding="utf-8") for path in EXAMPLES.glob("*.py"))
    for block in blocks(page, "lua"):
        assert block.text() in examples, block.where


@pytest.mark.skipif(bool(PRELOAD), reason="its server doesn't know of the sanitizer")
def test_the_plot_is_what_its_script_draws():
    script = [sys.executable, str(ROOT / "tests" / "bench" / "plot_admitted.py")]
    drawn = subprocess.run(script, capture_output=True, text=True, timeout=60, check=True).stdout
    assert drawn == (ROOT / "docs" / "guides" / "choosing.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_compiles(page):
    for block in blocks(page, "python"):
        compile(block.text(), block.where, "exec")


def test_every_command_has_a_page(server):
    commands = {command.lower() for command in server.run("COMMAND LIST", "FILTERBY", "MODULE", "ratelimit")}
    pages = {path.stem for path in (ROOT / "docs" / "commands").glob("*.md")}
    assert pages == {command for command in commands if "|" not in command} - INTERNAL


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "commands").glob("*.md")), ids=name)
def test_a_page_says_what_the_server_says(server, path):
    text = path.read_text(encoding="utf-8")
    command = path.stem.upper()
    docs = pairs(pairs(server.run("COMMAND DOCS", command))[command])
    assert text.startswith(f"# {command}\n\n    {command} ")
    assert docs["summary"] in text
    assert f"| Since | {docs['since']} |" in text
    assert f"| Complexity | {docs['complexity']} |" in text
    assert f"](docs/commands/{path.name})" in README.read_text(encoding="utf-8")
    for subcommand, about in (pairs(docs.get("subcommands")) or {}).items():
        word, about = subcommand.split("|")[1].upper(), pairs(about)
        assert f"    {command} {word}" in text
        assert f"## {word}\n\n{about['summary']} {about['complexity']}." in text


def anchors(page):
    """What GitHub makes of the headings."""
    headings = [match[1] for line in prose(page).splitlines() if (match := HEADING.fullmatch(line))]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    for link in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name(page)}: {link}"
        if anchor:
            assert anchor in anchors(target), f"{name(page)}: {link}"
