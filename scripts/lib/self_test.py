"""Tests of the checks and of scripts/figures: each rule must find what breaks it and accept what does not."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import generated_docs  # noqa: E402
import layers  # noqa: E402
import paths  # noqa: E402
import pitfalls  # noqa: E402
import sizes  # noqa: E402
import symbols  # noqa: E402
import test_summary  # noqa: E402


def load_script(name):
    loader = importlib.machinery.SourceFileLoader(name, str(HERE.parent / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return name

    def problems(self, check, name, text):
        return check(self.root, [self.write(name, text)])


class Layers(Tree):
    def test_looking_left_is_allowed(self):
        self.assertEqual(self.problems(layers.check, "src/ir/a.h", '#include "core/b.h"\n#include "ir/c.h"\n'), [])
        self.assertEqual(self.problems(layers.check, "src/cli/a.cpp", '#include "all_ops.h"\n#include <vector>\n'), [])

    def test_looking_right_is_not(self):
        found = self.problems(layers.check, "src/ir/a.h", '\n#include "ops/softmax/softmax.h"\n')
        self.assertEqual(found, ["src/ir/a.h:2: src/ir may not include ops/softmax/softmax.h"])
        self.assertEqual(len(self.problems(layers.check, "src/ir/a.h", '#include "all_ops.h"\n')), 1)

    def test_neighbours_are_apart(self):
        self.assertEqual(len(self.problems(layers.check, "src/passes/a.h", '#include "autodiff/b.h"\n')), 1)
        self.assertEqual(len(self.problems(layers.check, "src/text/a.h", '#include "io/b.h"\n')), 1)

    def test_unknown_folders(self):
        self.assertEqual(len(self.problems(layers.check, "src/misc/a.h", "")), 1)
        self.assertEqual(len(self.problems(layers.check, "src/ir/a.h", '#include "a.h"\n')), 1)

    def test_standard_headers_in_level_sources(self):
        self.write("src/core/simd.h", "#include <immintrin.h>\n")
        self.assertEqual(self.problems(layers.check, "src/ops/a/a.simd.cpp", '#include "core/simd.h"\n'), [])
        self.write("src/core/simd.h", "#include <immintrin.h>\n#include <span>\n")
        found = self.problems(layers.check, "src/ops/a/a.simd.cpp", '#include "core/simd.h"\n')
        self.assertEqual(len(found), 1)
        self.assertIn("src/core/simd.h:2: <span>", found[0])


class Sizes(Tree):
    def test_bounds(self):
        self.assertEqual(self.problems(sizes.check, "src/ir/a.h", "// Says what.\n" * 600), [])
        self.assertEqual(len(self.problems(sizes.check, "src/ir/a.h", "// Says what.\n" * 601)), 1)
        self.assertEqual(len(self.problems(sizes.check, "src/ir/a.h", "// Says what.\n" + "x" * 121)), 1)

    def test_first_line(self):
        self.assertEqual(len(self.problems(sizes.check, "src/ir/a.h", "#pragma once\n")), 1)
        self.assertEqual(self.problems(sizes.check, "scripts/x", "#!/bin/sh\n# Says what.\n"), [])


class Paths(Tree):
    def test_paths(self):
        here = "/" + "home/somebody/x"
        self.assertEqual(len(self.problems(paths.check, "a.md", f"see {here}\n")), 1)
        self.assertEqual(self.problems(paths.check, "a.md", "see /etc/apt and $HOME/home/x and src/work/a\n"), [])


class Pitfalls(Tree):
    def found(self, rows, tests="TEST(Pitfalls, P1_R2_Text) {"):
        self.write("tests/ops/pitfalls_shape_test.cpp", tests + "\n")
        self.write("src/ops/cast/cast.h", "")
        return self.problems(pitfalls.check, "docs/pitfalls.md", "".join(f"| {row} |\n" for row in rows))

    def test_agreement(self):
        both = ["P1 | a | shape: `P1_R2_Text`; cases of `cast` | ", "R2 | b | shape: `P1_R2_Text` | later: c"]
        self.assertEqual(self.found(both + ["P3 | c | – | later: convolution", "P4 | d | cases of `cast` |"]), [])

    def test_disagreement(self):
        good = "P1 | a | shape: `P1_R2_Text` |"
        self.assertIn("the row of R2 does not list shape: P1_R2_Text", self.found([good])[0])
        second = "R2 | b | shape: `P1_R2_Text` |"
        for row, message in {
            "P3 | c | shape: `P3_Gone` |": "there is no test P3_Gone",
            "P3 | c | other: `P1_R2_Text` |": "there is no test P1_R2_Text in pitfalls_other_test.cpp",
            "P3 | c | shape: `P1_R2_Text` |": "P1_R2_Text has another number",
            "P3 | c | `P1_R2_Text` |": "has no file before it",
            "P3 | c | cases of `nothing` |": "there is no src/ops/nothing",
            "P3 | c | |": "neither a test nor what is open",
            "P3 | c |": "a row has four cells",
            "P1 | a | shape: `P1_R2_Text` |": "has two rows",
        }.items():
            self.assertTrue(any(message in line for line in self.found([good, second, row])), row)


class Symbols(unittest.TestCase):
    def test_leaks(self):
        listing = """
0000000000000000 T _ZN3rlx2v44rowsEPKfPfll
0000000000000000 W _ZN3rlx2v44foldIfEEvT_
0000000000000010 R _ZN3rlx2v415softmax_kernelsE
0000000000000000 t _ZL5localv
0000000000000000 W _ZNSt6vectorIfE4sizeEv
0000000000000000 u _ZN3rlx3v4b1xE
0000000000000000 V DW.ref.__gxx_personality_v0
"""
        self.assertEqual(symbols.leaks(listing, "v4"), ["_ZNSt6vectorIfE4sizeEv", "_ZN3rlx3v4b1xE"])


class Summary(Tree):
    def test_reasons(self):
        output = "[ RUN      ] A.B\nfile.cpp:3: Skipped\nno model\nhere\n\n[  SKIPPED ] A.B (0 ms)\n"
        self.write("t.xml", f"""<testsuite>
<testcase name="A.B" status="notrun"><skipped message="m"/><system-out>{output}</system-out></testcase>
<testcase name="C" status="run"/><testcase name="D" status="fail"/></testsuite>""")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            test_summary.main(self.root / "t.xml")
        self.assertEqual(out.getvalue(), "skipped: A.B: no model here\n1 passed, 1 failed, 1 skipped\n")


class Figures(Tree):
    def run_topic(self, body, records=None):
        self.write("scripts/figures.d/t.py", body)
        if records is not None:
            self.write("docs/figures/t.json", json.dumps(records))
        with contextlib.redirect_stdout(io.StringIO()) as out:
            code = load_script("figures").main(self.root, ["t", "--json"])
        return code, json.loads(out.getvalue())

    def test_short_is_an_error(self):
        self.assertEqual(self.run_topic("def figures(root): yield 'a', 1, 2, True")[0], 0)
        self.assertEqual(self.run_topic("def figures(root): yield 'a', 3, 2, False")[0], 1)
        self.assertEqual(self.run_topic("def figures(root): return iter(())")[0], 1)

    def test_records_are_joined(self):
        record = {"name": "b", "value": 5, "bound": 4, "ok": False, "where": "there"}
        code, figures = self.run_topic("def figures(root): yield 'a', 1, 2, True", [record])
        self.assertEqual(code, 1)
        self.assertEqual([figure["name"] for figure in figures], ["a", "b"])


class GeneratedDocs(Tree):
    OP = {"name": "pad", "summary": "One.", "doc": "One. |x| two.", "elementwise": False, "commutative": False,
          "attributes": [{"name": "axis", "kind": "integer", "default": "-1"}],
          "definition": True, "gradient": "definition", "reference": False}

    def test_an_op_has_a_row_and_a_section(self):
        page = generated_docs.page([self.OP])
        self.assertIn("| [`pad`](#pad) | One. | yes | definition | - |\n", page)
        self.assertIn("### pad\n\nOne. |x| two.\n", page)
        self.assertIn("| `axis` | integer | `-1` |\n", page)

    def test_an_elementwise_op_without_attributes_has_its_text_in_the_row(self):
        page = generated_docs.page([{**self.OP, "elementwise": True, "attributes": []}])
        self.assertIn("| `pad` | One. \\|x\\| two. | yes | definition | - |\n", page)
        self.assertNotIn("### pad", page)

    def test_another_page_is_a_problem(self):
        self.addCleanup(setattr, generated_docs, "current", generated_docs.current)
        self.addCleanup(setattr, generated_docs.build, "release", generated_docs.build.release)
        generated_docs.current = lambda root: "new\n"
        generated_docs.build.release = lambda root: ""
        self.write("docs/ops.md", "old\n")
        self.assertIn("not current", generated_docs.check(self.root, [])[0])
        self.write("docs/ops.md", "new\n")
        self.assertEqual(generated_docs.check(self.root, []), [])


if __name__ == "__main__":
    unittest.main()
