"""Tutorial 5's way from a folder of models to pods, with the commands that it prints."""

import json
import subprocess

import pytest
from cluster import ROOT, nightly, pod
from images import BINARY, kept_store, push_base
from outside import Outside, Zoo, copy_zoo, store

IMAGE = "gcr.io/elasticdl-test/elasticdl:mnist"
# Little, and something that nothing else brings.
LIGHT = "iniconfig==2.0.0\n"


@pytest.fixture(scope="session")
def outside(images, tmp_path_factory):
    """docker.io and gcr.io; python there is the base image of our tutorials."""
    folder = tmp_path_factory.mktemp("outside")
    push_base(images, "python:3.11-bookworm")
    made = Outside(folder, images.registry)
    yield made
    made.close()


@pytest.fixture
def zoo(outside, tmp_path):
    conf = store(tmp_path, kept_store("zoo"))
    return Zoo(copy_zoo(ROOT, tmp_path / "model_zoo", LIGHT), BINARY, conf, outside)


def blobs(images):
    """All that the registry holds, by digest, with sizes."""
    return images.blobs()


def run_pod(namespace, command):
    namespace.apply(pod("reader", command, image=IMAGE,
                        container={"imagePullPolicy": "Always"}))
    assert namespace.wait_for_phase("reader", "Succeeded", "Failed", seconds=180) == "Succeeded", (
        namespace.kubectl("logs", "reader"))
    return namespace.kubectl("logs", "reader")
