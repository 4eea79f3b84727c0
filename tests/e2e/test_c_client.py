"""A C program that uses elasticdl_ps.h."""

import subprocess
from pathlib import Path

import pytest
from harness import BINARY, ROOT

LIBRARIES = Path(BINARY).resolve().parents[2] / "src/ps_client"
AUTO, TCP, SHARED_MEMORY = range(3)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    made = tmp_path_factory.mktemp("c") / "parameters"
    subprocess.run(["gcc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                    f"-I{ROOT}/src/ps_client", f"{ROOT}/tests/e2e/programs/parameters.c",
                    "-o", made, f"-L{LIBRARIES}", "-lelasticdl_ps", f"-Wl,-rpath,{LIBRARIES}"],
                   check=True)
    return made


@pytest.mark.parametrize("transport", [AUTO, TCP, SHARED_MEMORY])
def test_a_c_program_trains_saves_and_restores(program, start_ps, tmp_path, transport):
    def run(count, *more):
        servers = ",".join(server.address for server in start_ps(count))
        done = subprocess.run([program, servers, tmp_path / "checkpoint", str(transport), *more],
                              capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr

    run(2)
    run(1, "restored")


def test_the_header_can_be_included_in_cpp():
    subprocess.run(["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x",
                    "c++", ROOT / "src/ps_client/elasticdl_ps.h"], check=True)


def test_the_library_links_neither_grpc_nor_protobuf():
    file = LIBRARIES / "libelasticdl_ps.so"
    needed = subprocess.run(["ldd", file], capture_output=True, text=True, check=True).stdout
    assert "grpc" not in needed and "protobuf" not in needed
    seen = subprocess.run(["nm", "-D", "--defined-only", file], capture_output=True, text=True,
                          check=True).stdout
    assert all(line.split()[-1].startswith("edl_ps_") for line in seen.splitlines())
