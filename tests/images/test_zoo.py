"""`elasticdl zoo` with a real builder, and its errors when something is missing. Needs root."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from bare_system import ROOT
from outside import Zoo, running_registry, store, without_tls
from waiting import wait_for

BINARY = Path(os.environ.get("ELASTICDL_BIN", ROOT / "build/release/apps/elasticdl/elasticdl"))
REVISION = "org.opencontainers.image.revision"


@pytest.fixture(scope="module")
def storage(tmp_path_factory):
    folder = tmp_path_factory.mktemp("storage")
    conf = store(folder, folder / "kept")
    yield conf
    env = {**os.environ, "CONTAINERS_STORAGE_CONF": str(conf)}
    subprocess.run(["buildah", "rm", "--all"], env=env, check=True, capture_output=True)
    subprocess.run(["umount", "--recursive", str(folder / "kept/overlay")], check=False)


@pytest.fixture
def zoo(tmp_path, storage):
    """An empty folder to build images in; the base image contains only a shell."""
    folder = tmp_path / "zoo"
    folder.mkdir()
    made = Zoo(folder, BINARY, storage)
    if "localhost/shell" not in buildah(made, "images", "--format={{.Name}}"):
        container = buildah(made, "from", "scratch")
        libraries = subprocess.run(["ldd", "/bin/busybox"], check=True, text=True,
                                   capture_output=True).stdout.split()
        for source, place in [("/bin/busybox", "/bin/sh"), ("/bin/busybox", "/bin/busybox"),
                              *((word, word) for word in libraries if word.startswith("/"))]:
            buildah(made, "copy", "--quiet", container, os.path.realpath(source), place)
        buildah(made, "commit", "--quiet", "--rm", container, "localhost/shell")
    return made


def buildah(zoo, *arguments):
    done = subprocess.run(["buildah", *arguments], env=zoo.env, text=True, capture_output=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def dockerfile(zoo, *lines):
    text = "\n".join(("FROM localhost/shell", *lines, ""))
    (zoo.folder / "Dockerfile").write_text(text)


def message(done):
    """The error message of elasticdl: its last line with the prefix, and what follows."""
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr[done.stderr.rindex("elasticdl: "):]


def test_the_same_files_make_the_same_layers(zoo):
    # `touch` in a step, and a changed file time: neither may change a layer.
    dockerfile(zoo, "ARG SOURCE_DATE_EPOCH=315532800", "RUN busybox touch /made", "COPY a /a")
    first = zoo.folder / "a"
    first.write_text("one")
    zoo("zoo", "build", "--image=once", ".")
    os.utime(first, (1, 1))
    zoo("zoo", "build", "--image=twice", "--no_cache", ".")
    first.write_text("two")
    zoo("zoo", "build", "--image=thrice", ".")

    assert zoo.layers("once") == zoo.layers("twice")
    # Only the last layer changes with the file.
    assert zoo.layers("once")[:-1] == zoo.layers("thrice")[:-1]
    assert zoo.layers("once")[-1] != zoo.layers("thrice")[-1]


def test_other_dockerfiles_keep_their_times(zoo):
    dockerfile(zoo, "COPY a /a")
    (zoo.folder / "a").write_text("one")
    os.utime(zoo.folder / "a", (1, 1))
    zoo("zoo", "build", "--image=once", ".")
    os.utime(zoo.folder / "a", (2, 2))
    zoo("zoo", "build", "--image=twice", "--no_cache", ".")
    assert zoo.layers("once") != zoo.layers("twice")


def test_an_image_says_its_version_and_commit(zoo):
    dockerfile(zoo, "COPY Dockerfile /")
    git = ["git", "-C", str(zoo.folder), "-c", "user.name=x", "-c", "user.email=x"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, text=True,
                            capture_output=True).stdout.strip()
    zoo("zoo", "build", "--image=clean", ".")
    dockerfile(zoo, "COPY Dockerfile /changed")
    zoo("zoo", "build", "--image=changed", ".")
    assert zoo.label("clean", REVISION) == commit
    assert zoo.label("clean", "org.opencontainers.image.version") == "2.0.0"
    assert zoo.label("changed", REVISION) == commit + "-dirty"


def test_the_hosts_settings_reach_the_build_and_stay_out_of_the_image(zoo, tmp_path):
    (tmp_path / "ca.pem").write_text("a certificate")
    zoo.env.update(SSL_CERT_FILE=str(tmp_path / "ca.pem"), PIP_CONFIG_FILE="/dev/null",
                   PIP_INDEX_URL="https://index.example/simple",
                   https_proxy="http://proxy.example:3128")
    dockerfile(zoo, "RUN busybox cat /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; "
               "busybox echo; busybox env")
    said = zoo("zoo", "build", "--image=settings", ".")
    for line in ("index-url = https://index.example/simple",
                 "cert = /etc/ssl/certs/ca-certificates.crt", "a certificate",
                 "https_proxy=http://proxy.example:3128"):
        assert line in said.splitlines()
    shown = buildah(zoo, "inspect", "--type=image", "settings")
    assert "example" not in shown
    mounted = buildah(zoo, "from", "--name=look", "settings")
    folder = Path(buildah(zoo, "mount", mounted))
    assert (folder / "etc/pip.conf").read_text() == ""
    buildah(zoo, "rm", "look")


def test_without_a_builder_it_says_which_there_are(zoo, tmp_path):
    dockerfile(zoo)
    (tmp_path / "bin").mkdir()
    zoo.env["PATH"] = str(tmp_path / "bin")
    said = message(zoo.run("zoo", "build", "--image=x", "."))
    assert said == ("elasticdl: cannot build images: none of buildah, podman, docker is in "
                    "$PATH; install one, for example buildah, which needs no daemon (Debian: apt "
                    "install buildah)\n")


def test_a_base_image_that_is_not_there_is_named(zoo):
    # A registry that does not exist: the port is closed.
    (zoo.folder / "Dockerfile").write_text("FROM 127.0.0.1:1/no/base:1\n")
    said = message(zoo.run("zoo", "build", "--image=x", "."))
    assert "buildah could not build x: step 1/2, FROM 127.0.0.1:1/no/base:1: " in said
    assert "connection refused" in said and "--base_image=NAME" in said


def test_a_step_that_fails_is_named(zoo):
    dockerfile(zoo, "RUN busybox echo ERROR: No matching distribution for nonsense; false",
               "COPY . /zoo")
    done = zoo.run("zoo", "build", "--image=x", ".")
    assert "No matching distribution" in done.stdout + done.stderr
    assert message(done) == (
        "elasticdl: buildah could not build x: step 2/4, RUN busybox echo ERROR: No matching "
        "distribution for nonsense; false: No matching distribution for nonsense\n")


def test_docker_without_its_daemon_is_told(zoo, tmp_path):
    """The program is installed, as on many machines, but its daemon does not run."""
    docker = next((Path(folder) / "docker" for folder in os.environ["PATH"].split(":")
                   if (Path(folder) / "docker").exists()), None)
    if docker is None:
        pytest.skip("there is no docker")
    dockerfile(zoo)
    zoo.env["DOCKER_HOST"] = f"unix://{tmp_path}/none.sock"
    said = message(zoo.run("zoo", "build", "--image=x", "."))
    assert said.startswith("elasticdl: docker could not build x: ")
    assert "docker.sock" in said or "none.sock" in said


def test_a_registry_that_refuses_is_told(zoo, tmp_path):
    dockerfile(zoo)
    zoo("zoo", "build", "--image=127.0.0.1:1/a/b:c", ".")
    said = message(zoo.run("zoo", "push", "127.0.0.1:1/a/b:c"))
    assert said.startswith("elasticdl: buildah could not push 127.0.0.1:1/a/b:c to 127.0.0.1:1: ")
    assert "connection refused" in said

    (tmp_path / "users").write_text("")
    auth = f"auth: {{htpasswd: {{realm: here, path: {tmp_path}/users}}}}"
    with running_registry(tmp_path, auth) as registry:
        zoo.env.update(without_tls(tmp_path, registry))
        name = f"{registry}/a/b:c"
        zoo("zoo", "build", f"--image={name}", ".")
        said = message(zoo.run("zoo", "push", name))
        assert f"could not push {name} to {registry}: " in said
        assert said.endswith(f"\n  to log in: buildah login {registry}\n")
        assert message(zoo.run("zoo", "push", f"{registry}/never/built:1")).endswith(
            f"\n  to build it: elasticdl zoo build --image={registry}/never/built:1 .\n")


@pytest.mark.parametrize("when", ["STEP 2/3", "begun"])
def test_ctrl_c_ends_the_build_and_leaves_nothing(zoo, tmp_path, when):
    """Also at the moment when a step starts, when builders lose a signal."""
    dockerfile(zoo, "RUN busybox printf 'beg%s\\n' un; busybox sleep 1000")
    zoo.env["TMPDIR"] = str(tmp_path / "tmp")
    (tmp_path / "tmp").mkdir()
    build = subprocess.Popen([str(BINARY), "zoo", "build", "--image=x", "."], cwd=zoo.folder,
                             env=zoo.env, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, start_new_session=True)
    while not build.stdout.readline().startswith(when):
        assert build.poll() is None
    build.send_signal(signal.SIGINT)
    said = build.communicate(timeout=30)[0]
    assert build.returncode == 128 + signal.SIGINT, said
    assert "interrupted" in said
    assert not list((tmp_path / "tmp").glob("elasticdl-*"))
    wait_for("the build's processes to be gone", lambda: not running_in_session(build.pid), 10)


def running_in_session(session):
    """Processes in the folder that still run, except zombies."""
    listed = subprocess.run(["ps", "-s", str(session), "-o", "stat=,pid=,args="], check=False,
                            text=True, capture_output=True).stdout
    return [line for line in listed.splitlines() if not line.startswith("Z")]


def test_podman_builds_as_buildah_does(zoo):
    if subprocess.run(["sh", "-c", "command -v podman"], check=False,
                      capture_output=True).returncode != 0:
        pytest.skip("there is no podman")
    dockerfile(zoo, "ARG SOURCE_DATE_EPOCH=315532800", "COPY a /a")
    (zoo.folder / "a").write_text("one")
    zoo("zoo", "build", "--image=once", ".")
    zoo("zoo", "build", "--image=twice", "--builder=podman", "--no_cache", ".")
    assert zoo.layers("once") == zoo.layers("twice")
