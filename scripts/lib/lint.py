"""clang-format and clang-tidy on chosen files."""
import concurrent.futures
import json
import os
import shutil
import subprocess

import files as file_lists

VERSIONS = ("-22", "-19", "")
MISSING = "{} is not installed: run scripts/setup --ci"


def tool(name):
    for version in VERSIONS:
        found = shutil.which(name + version)
        if found:
            return found
    return None


def sources(chosen):
    return [name for name in chosen if file_lists.is_cpp(name)]


def check_format(root, chosen):
    names = sources(chosen)
    if not names:
        return []
    formatter = tool("clang-format")
    if not formatter:
        return [MISSING.format("clang-format")]
    problems = []
    for name in names:
        wanted = subprocess.run([formatter, name], cwd=root, capture_output=True).stdout
        if wanted != (root / name).read_bytes():
            problems.append(f"{name}: not formatted; run scripts/check --fix format")
    return problems


def fix_format(root, chosen):
    names = sources(chosen)
    formatter = tool("clang-format")
    if names and formatter:
        subprocess.run([formatter, "-i", *names], cwd=root, check=True)


def translation_units(root, chosen):
    """The .cpp files to lint: the chosen ones and, for each chosen header, one that includes it."""
    every = [name for name in file_lists.tracked(root) if name.endswith(".cpp") and name.startswith(("src/", "tests/"))]
    units = {name for name in chosen if name in every}
    for header in (name for name in chosen if name.endswith(".h") and name.startswith(("src/", "tests/"))):
        twin = header[:-2] + ".cpp"
        if twin in every:
            units.add(twin)
            continue
        line = f'#include "{header.split("/", 1)[1]}"'
        users = [name for name in every if line in (root / name).read_text(encoding="utf-8")]
        if users and not units.intersection(users):
            units.add(users[0])
    return sorted(units)


def write_commands(root):
    """Configures build/tidy and keeps one command a file: kernels are compiled once per level, the last is enough."""
    done = subprocess.run(["cmake", "--preset", "tidy"], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    if done.returncode != 0:
        return done.stdout
    commands = {entry["file"]: entry for entry in json.loads((root / "build/tidy/compile_commands.json").read_text())}
    folder = root / "build/tidy/lint"
    folder.mkdir(exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps(list(commands.values())))
    return ""


def check_tidy(root, chosen):
    units = translation_units(root, chosen)
    if not units:
        return []
    linter = tool("clang-tidy")
    if not linter:
        return [MISSING.format("clang-tidy")]
    problem = write_commands(root)
    if problem:
        return [problem]

    def lint(name):
        done = subprocess.run([linter, "--quiet", "-p", "build/tidy/lint", name], cwd=root,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return done.stdout.strip() if done.returncode != 0 else ""

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [text for text in pool.map(lint, units) if text]
