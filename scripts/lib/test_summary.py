"""Prints the skipped tests of a JUnit file with their reasons, and one line that counts all tests."""
import re
import sys
import xml.etree.ElementTree as xml


def skip_reason(case):
    """The text that the test gave when it skipped itself, as GoogleTest prints it after the place."""
    output = case.findtext("system-out") or ""
    found = re.search(r": Skipped\n(.*?)\n\s*\n?\[", output, re.DOTALL)
    if found:
        return " ".join(found.group(1).split())
    skipped = case.find("skipped")
    return skipped.get("message", "no reason given") if skipped is not None else "not run"


def main(path):
    passed = failed = 0
    skipped = []
    for case in xml.parse(path).getroot().iter("testcase"):
        status = case.get("status")
        if status == "run":
            passed += 1
        elif status in ("notrun", "disabled"):
            skipped.append((case.get("name"), skip_reason(case)))
        else:
            failed += 1
    for name, reason in skipped:
        print(f"skipped: {name}: {reason}")
    print(f"{passed} passed, {failed} failed, {len(skipped)} skipped")


if __name__ == "__main__":
    main(sys.argv[1])
