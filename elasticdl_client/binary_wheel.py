"""A build backend (PEP 517) that packs the elasticdl binary and its shared libraries into a wheel.

The same binary and libraries give the same bytes: entries are sorted, modes are fixed, and times
are SOURCE_DATE_EPOCH. It needs Debian (dpkg, for the licences of libraries), ldd and binutils.
"""

import base64
import hashlib
import os
import pathlib
import platform
import re
import subprocess
import tempfile
import time
import zipfile

import tomllib

HERE = pathlib.Path(__file__).resolve().parent
BINARY = HERE.parent / "build/release/apps/elasticdl/elasticdl"
LIBRARIES = "lib/elasticdl"  # the RPATH of the binary: apps/elasticdl/CMakeLists.txt
# Parts of glibc are not bundled: a process uses the glibc of the machine, and cannot mix two.
GLIBC = re.compile(r"(ld-linux.*|linux-vdso|lib(c|m|dl|pthread|rt|resolv|util|anl))\.so\.\d+")
DOCS = pathlib.Path("/usr/share/doc")
COMMON_LICENSES = pathlib.Path("/usr/share/common-licenses")


class WheelError(Exception):
    """The wheel cannot be built; the message says what to do."""


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """The hook that pip calls. Returns the name of the file."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    binary = pathlib.Path(os.environ.get("ELASTICDL_BIN") or BINARY)
    check_binary(binary, project["version"])
    libraries = closure(binary)
    glibc = glibc_needed([binary, *libraries])
    tag = f"py3-none-manylinux_{glibc[0]}_{glibc[1]}_{platform.machine()}"
    stem = f"{project['name']}-{project['version']}"

    data, info = f"{stem}.data", f"{stem}.dist-info"
    files = {f"{data}/data/{LIBRARIES}/{library.name}": library.read_bytes()
             for library in libraries}
    files[f"{data}/scripts/elasticdl"] = stripped(binary)
    licenses = notices(libraries)
    files.update((f"{info}/licenses/{name}", content) for name, content in licenses.items())
    files[f"{info}/METADATA"] = metadata(project, sorted(licenses))
    files[f"{info}/WHEEL"] = lines(["Wheel-Version: 1.0", "Generator: binary_wheel",
                                    "Root-Is-Purelib: false", f"Tag: {tag}"])
    files[f"{info}/RECORD"] = record(files, f"{info}/RECORD")
    name = f"{stem}-{tag}.whl"
    write_zip(pathlib.Path(wheel_directory, name), files)
    return name


def output(*command):
    # Without the user's variables, which change what ldd finds and the language of messages.
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE,
                          env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}).stdout


def check_binary(binary, version):
    if not binary.is_file():
        raise WheelError(f"{binary} is missing; build it with: make build")
    said = output(binary, "version").split()[-1]
    if said != version:
        raise WheelError(f"{binary} has version {said}, but the package has version {version}; "
                         "make src/base/version.h and pyproject.toml agree, and run: make build")


def closure(binary):
    """The shared libraries that the binary loads, without those of glibc."""
    found = []
    for line in output("ldd", binary).splitlines():
        name, _, path = line.strip().partition(" => ")
        name = pathlib.Path(name.split()[0]).name
        if GLIBC.fullmatch(name):
            continue
        path = path.split(" (")[0]
        if not path.startswith("/"):
            raise WheelError(f"{binary} needs {name}, which is not installed on this machine")
        found.append(pathlib.Path(path))
    return sorted(found)


def glibc_needed(files):
    """The highest version of glibc that one of the files refers to, as (2, 36)."""
    versions = set()
    for name in set(re.findall(r"\bGLIBC_(\w[\w.]*)", output("objdump", "-p", *files))):
        numbers = re.fullmatch(r"(\d+)\.(\d+)(\.\d+)?", name)
        if not numbers:
            raise WheelError(f"a library needs GLIBC_{name}, which a wheel's tag cannot express")
        versions.add((int(numbers[1]), int(numbers[2])))
    return max(versions)


def stripped(binary):
    with tempfile.TemporaryDirectory() as folder:
        output("strip", "--strip-all", "-o", f"{folder}/elasticdl", binary)
        return pathlib.Path(folder, "elasticdl").read_bytes()


def notices(libraries):
    """Our licence, and the copyright files of the Debian packages that contain the libraries."""
    packages = sorted({owner(library) for library in libraries})
    texts = {package: (DOCS / package / "copyright").read_bytes() for package in packages}
    found = {f"{package}/copyright": text for package, text in texts.items()}
    for name in set(re.findall(rb"%s/([\w.+-]*\w)" % bytes(COMMON_LICENSES),
                               b"".join(texts.values()))):
        name = name.decode()
        found[f"common-licenses/{name}"] = (COMMON_LICENSES / name).read_bytes()
    listed = output("dpkg-query", "-W", "-f=${Package} ${Version}: Debian's source package "
                    "${source:Package} ${source:Version}\n", *packages)
    found["libraries.txt"] = lines(sorted(set(listed.splitlines())))
    found["LICENSE"] = next(path for path in (HERE / "LICENSE", HERE.parent / "LICENSE")
                            if path.exists()).read_bytes()
    return found


def owner(library):
    """The Debian package of a library. A package may list /lib for a file in /usr/lib."""
    path = str(library.resolve())
    for name in (path, path.removeprefix("/usr"), f"/usr{path}"):
        said = subprocess.run(["dpkg-query", "-S", name], text=True, capture_output=True)
        if said.returncode == 0:
            return said.stdout.split(":")[0]
    raise WheelError(f"{path} does not belong to a Debian package, so its licence is unknown")


def metadata(project, licenses):
    return lines([
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License: {project['license']['text']}",
        *(f"License-File: {name}" for name in licenses),
        *(f"Classifier: {classifier}" for classifier in project["classifiers"]),
        f"Requires-Python: {project['requires-python']}",
        "Description-Content-Type: text/markdown",
        "",
        (HERE / project["readme"]).read_text()])


def record(files, own_name):
    def line(name, content):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
        return f"{name},sha256={digest.decode()},{len(content)}"
    return lines([line(name, content) for name, content in sorted(files.items())]
                 + [f"{own_name},,"])


def lines(texts):
    return ("\n".join(texts).rstrip("\n") + "\n").encode()


def write_zip(path, files):
    when = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH") or time.time()))[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, date_time=when)
            entry.create_system = 3  # Unix, so that the modes count
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED, 9)
