"""The C++ example in the README is examples/gemv.cc, which the build compiles and a test runs."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent.parent
blocks = re.findall(r"```cpp\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
example = (root / "examples/gemv.cc").read_text()
if example not in blocks:
    sys.exit("README.md: its C++ example is not examples/gemv.cc")

# Every page and folder that the README and the docs name exists.
for page in [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]:
    for path in re.findall(r"(?<![\w/])((?:docs|src|include|tests|scripts|tools|examples|benchmarks)/[\w./-]*\w)(?![\w*])", page.read_text()):
        if not (root / path).exists() and "*" not in path:
            sys.exit(f"{page.relative_to(root)}: names {path}, which does not exist")
