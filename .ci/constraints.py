"""Write the versions of this environment as pip's constraints: python .ci/constraints.py >constraints.txt

Left out are the package itself, PyTorch's local versions (+cpu) and what it brings for one system only.
"""

import importlib.metadata
import platform
import re

LEFT_OUT = re.compile(r"clutils|nvidia-.*|cuda-.*|triton|pip|setuptools|wheel")
PYTHON = f"Python {platform.python_version()}, {platform.system()}"
HEADING = f"""# All tests passed with these versions ({PYTHON}). Made by `make constraints`. Use them with
# `make lab LOCKED=1` or `pip install -c constraints.txt -e '.[course]'`."""

found = {}
for package in importlib.metadata.distributions():
    name = re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower()
    if not LEFT_OUT.fullmatch(name):
        found[name] = package.version.partition("+")[0]
print(HEADING)
for name, version in sorted(found.items()):
    print(f"{name}=={version}")
