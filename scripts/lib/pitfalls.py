"""docs/pitfalls.md and the tests agree: a test it names exists; a number in a test's name has a row that lists it."""
import re

TABLE = "docs/pitfalls.md"
TEST = re.compile(r"\bTEST(?:_F|_P)?\(\w+,\s*((?:[PR]\d+_)+\w+)\)")
ROW = re.compile(r"\|\s*([PR]\d+)\s*\|[^|]*\|([^|]*)\|([^|]*)\|\s*$")
# A cell of tests: `file: NAME, NAME; file: NAME`, where file stands for tests/ops/pitfalls_file_test.cpp.
FILE = re.compile(r"(\w+): ((?:`[PR]\d+_\w+`(?:, )?)+)")
CASES = re.compile(r"cases of ((?:`\w+`(?:, )?)+)")


def tests_in(root):
    """Name of the file (its path without folder, prefix and suffix) and name of each test with a number."""
    for path in sorted((root / "tests").rglob("*_test.cpp")):
        short = path.name.removesuffix("_test.cpp").removeprefix("pitfalls_")
        for name in TEST.findall(path.read_text(encoding="utf-8")):
            yield short, name


def check(root, _files):
    path = root / TABLE
    if not path.exists():
        return [f"{TABLE} is missing"]
    problems, rows = [], {}
    tests = set(tests_in(root))
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        row = ROW.match(line)
        if not row:
            if re.match(r"\|\s*[PR]\d", line):
                problems.append(f"{TABLE}:{number}: a row has four cells")
            continue
        trap, cell, rest = row.groups()
        where = f"{TABLE}:{number}: {trap}"
        if trap in rows:
            problems.append(f"{where} has two rows")
        named = {(f, n) for f, names in FILE.findall(cell) for n in re.findall(r"`(\w+)`", names)}
        folders = [f for names in CASES.findall(cell) for f in re.findall(r"`(\w+)`", names)]
        if not named and not folders and not rest.strip():
            problems.append(f"{where} names neither a test nor what is open")
        loose = set(re.findall(r"`([PR]\d+_\w+)`", cell)) - {n for _, n in named}
        problems += [f"{where}: {n} has no file before it" for n in sorted(loose)]
        problems += [f"{where}: there is no test {n} in pitfalls_{f}_test.cpp" for f, n in sorted(named - tests)]
        problems += [f"{where}: {n} has another number" for _, n in sorted(named) if trap not in n.split("_")]
        problems += [f"{where}: there is no src/ops/{f}" for f in folders if not (root / "src/ops" / f).is_dir()]
        rows[trap] = named
    for short, name in sorted(tests):
        for trap in re.match(r"(?:[PR]\d+_)+", name).group().strip("_").split("_"):
            if (short, name) not in rows.get(trap, ()):
                problems.append(f"{TABLE}: the row of {trap} does not list {short}: {name}")
    return problems
