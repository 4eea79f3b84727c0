"""Packs the compiled module of this folder into a wheel (tools/wheels calls it).

The tag of the wheel names the interpreter that builds it, and the oldest glibc that the module
works with.
"""

import pathlib
import platform
import re
import subprocess

from setuptools import Distribution, setup

HERE = pathlib.Path(__file__).resolve().parent


class NativeDistribution(Distribution):
    """Has a compiled module, which CMake has built."""

    def has_ext_modules(self):
        return True


def native_module():
    modules = sorted(HERE.glob("_native*.so"))
    if len(modules) != 1:
        raise SystemExit(f"{HERE} has {len(modules)} files _native*.so instead of one; build the "
                         "module with: make native")
    return modules[0]


def glibc_needed(module):
    """The highest version of glibc that the module refers to, as "2_36"."""
    printed = subprocess.run(["objdump", "-p", module], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
    found = re.findall(r"\bGLIBC_(\d+)\.(\d+)", printed)
    versions = [tuple(map(int, numbers)) for numbers in found]
    return "{}_{}".format(*max(versions))


def packages():
    """The packages below this folder, without their tests."""
    found = (path.parent.relative_to(HERE) for path in HERE.glob("**/__init__.py"))
    return sorted(".".join(("elasticdl", *path.parts)) for path in found
                  if "tests" not in path.parts)


module = native_module()
setup(
    distclass=NativeDistribution,
    package_dir={"elasticdl": "."},
    packages=packages(),
    package_data={"elasticdl": [module.name, "_native.pyi", "py.typed"],
                  "elasticdl.data_gen": ["digits.txt", "model_zoo/*/*"]},
    include_package_data=False,
    options={"bdist_wheel": {
        "plat_name": f"manylinux_{glibc_needed(module)}_{platform.machine()}"}},
)
