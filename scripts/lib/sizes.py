"""Sizes and first lines of source files."""
MAX_LINES = 600
MAX_COLUMNS = 120
# Generated tables: any length.
EXEMPT = {
    "LICENSE",
    "docs/ops.md",
}
CODE = (".cpp", ".h", ".py", ".cmake", ".sh")
PROSE = (".md", ".txt")
# Data that tests and examples read.
DATA = ("tests/data/", "examples/")


def first_line_says_something(lines, name):
    if lines and lines[0].startswith("#!"):
        lines = lines[1:]
    start = {".cpp": "// ", ".h": "// "}.get(name[name.rfind("."):], ("# ", '"""'))
    return bool(lines) and lines[0].startswith(start) and len(lines[0]) > 8


def check_file(path, name):
    lines = path.read_text(encoding="utf-8").splitlines()
    problems = []
    if len(lines) > MAX_LINES:
        problems.append(f"{name}: {len(lines)} lines, at most {MAX_LINES}")
    code = name.endswith(CODE) or bool(lines and lines[0].startswith("#!"))
    if not code:
        return problems
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            problems.append(f"{name}:{number}: {len(line)} columns, at most {MAX_COLUMNS}")
    if not first_line_says_something(lines, name):
        problems.append(f"{name}:1: the first line does not say what the file is for")
    return problems


def check(root, files):
    problems = []
    for name in files:
        script = name.startswith("scripts/") and "." not in name
        if name in EXEMPT or name.startswith(DATA) or not (name.endswith(CODE + PROSE) or script):
            continue
        problems += check_file(root / name, name)
    return problems
