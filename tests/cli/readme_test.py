"""The C++ example in the README is examples/gemv.cc, which the build compiles and a test runs."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent.parent
blocks = re.findall(r"```cpp\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
example = (root / "examples/gemv.cc").read_text()
if example not in blocks:
    sys.exit("README.md: its C++ example is not examples/gemv.cc")
