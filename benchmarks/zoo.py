"""The time to build and push an image after a change of a model, and the amount of data sent.

The same is measured with the layers of the original, which copied the models before it installed
their requirements. Both use one builder, one image store and one registry, on this machine. The
models need TensorFlow. Needs root.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

from common import figure, median

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/images")]

from builder import BINARY, Builder  # noqa: E402
from outside import Zoo, copy_zoo, running_registry, without_tls  # noqa: E402

ROUNDS, PEER_ROUNDS = 5, 1
PEER = """FROM elasticdl:base as base
RUN pip install elasticai_api elasticdl_api elasticdl_client
COPY . /model_zoo
RUN pip install -r /model_zoo/requirements.txt
"""


def stored(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("storage/**/blobs/**/data"))


def change(zoo: Zoo, text: str) -> None:
    with open(zoo.folder / "iris/dnn_estimator.py", "a") as model:
        model.write(f"# {text}\n")


def measure(zoo: Zoo, image: str, folder: Path, rounds: int):
    """The seconds and megabytes of each change, after a first build."""
    began = time.monotonic()
    zoo("zoo", "build", f"--image={image}", ".")
    zoo("zoo", "push", image)
    print(f"{image}: the first build and push took {time.monotonic() - began:.1f} s", flush=True)
    builds, pushes, sizes = [], [], []
    for number in range(rounds):
        change(zoo, f"change {number} of {os.getpid()}")
        before, began = stored(folder), time.monotonic()
        zoo("zoo", "build", f"--image={image}", ".")
        built = time.monotonic()
        zoo("zoo", "push", image)
        builds.append(built - began)
        pushes.append(time.monotonic() - built)
        sizes.append((stored(folder) - before) / 1e6)
    return builds, pushes, sizes


def main() -> int:
    builder = Builder()
    with tempfile.TemporaryDirectory() as scratch, builder.locked(), \
            running_registry(Path(scratch)) as address:
        folder = Path(scratch)
        builder.build_ours("base")
        figures = {}
        for name, rounds in (("ours", ROUNDS), ("original", PEER_ROUNDS)):
            zoo = Zoo(copy_zoo(ROOT, folder / name, None), BINARY,
                      builder.env["CONTAINERS_STORAGE_CONF"])
            zoo.env.update(without_tls(folder, address))
            if name == "ours":
                zoo("zoo", "init", "--base_image=localhost/elasticdl:base")
            else:
                (zoo.folder / "Dockerfile").write_text(PEER)
            figures[name] = measure(zoo, f"{address}/bench/{name}:1", folder, rounds)
            for what, values in zip(("build, s", "push, s", "pushed, MB"), figures[name]):
                print(f"{name}: {what}:", *(f"{value:.2f}" for value in values), flush=True)
    for name, prefix in (("ours", "zoo"), ("original", "zoo.original")):
        builds, pushes, sizes = figures[name]
        figure(f"{prefix}.rebuild_s", median(builds), "s")
        figure(f"{prefix}.push_s", median(pushes), "s")
        figure(f"{prefix}.push_mb", median(sizes), "MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
