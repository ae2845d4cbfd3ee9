"""Include layers: a folder of src/ may include only itself and folders that stand before it."""
import re

# Folders of one row do not include each other.
LAYERS = [
    ["core"],
    ["ir"],
    ["device"],
    ["codecs"],
    ["ops"],
    ["passes"],
    ["autodiff"],
    ["plan"],
    ["runtime"],
    ["backend"],
    ["io", "text"],
    ["nn", "optim"],
    ["models"],
    ["generate"],
    ["cli"],
]
RANK = {folder: rank for rank, row in enumerate(LAYERS) for folder in row}
# Generated headers, with the folder they count as.
GENERATED = {"all_ops.h": "ops"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes(path):
    """(line number, '<' or '"', name) of every include of a file."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            found = INCLUDE.match(line)
            if found:
                yield number, found[1], found[2]


def allowed(source, target):
    return source == target or RANK[target] < RANK[source]


def check_folder(root, name):
    source = name.split("/")[1]
    if source not in RANK:
        return [f"{name}: folder src/{source} has no place in scripts/lib/layers.py"]
    problems = []
    for number, quote, included in includes(root / name):
        target = GENERATED.get(included, included.split("/")[0])
        if quote == '"' and target not in RANK:
            problems.append(f'{name}:{number}: "{included}" does not start with a folder of src/')
        elif target in RANK and not allowed(source, target):
            problems.append(f"{name}:{number}: src/{source} may not include {included}")
    return problems


def check_level_source(root, name):
    """No standard header in what is compiled per level, directly or through our own headers."""
    problems = []
    seen = set()
    todo = [root / name]
    while todo:
        path = todo.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        for number, quote, included in includes(path):
            if quote == '"':
                todo += [root / "src" / included, root / "tests" / included]
            elif included not in ("immintrin.h", "arm_neon.h", "arm_sve.h"):
                place = path.relative_to(root)
                problems.append(f"{place}:{number}: <{included}> reaches {name}, which is compiled once per level")
    return problems


def check(root, files):
    problems = []
    for name in files:
        if name.startswith("src/") and name.endswith((".cpp", ".h")) and name.count("/") > 1:
            problems += check_folder(root, name)
        if name.endswith(".simd.cpp"):
            problems += check_level_source(root, name)
    return problems
