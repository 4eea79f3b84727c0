"""The command and the environment of a worker that attached to its master."""

from pathlib import Path

import pytest

from elasticdl.python.elasticdl.worker.attached_worker import worker_command, worker_environment


def test_the_command_has_the_arguments_of_the_master() -> None:
    given = ["/usr/bin/python3", "-m", "elasticdl.worker", "--job_name=a", "--model_def=b.c",
             "--envs=X=1"]

    command = worker_command("python", given, {})

    assert command == ["python", "-m", "elasticdl.worker", "--job_name=a", "--model_def=b.c",
                       "--envs=X=1"]


def test_own_arguments_replace_those_of_the_master() -> None:
    given = ["python3", "-m", "elasticdl.worker", "--model_zoo=zoo", "--model_def=dir.file.model",
             "--log_level=INFO"]

    command = worker_command(
        "python", given, {"model_zoo": "here", "model_module": "mine", "log_level": "DEBUG"})

    assert command[3:] == ["--model_zoo=here", "--model_def=mine.model", "--log_level=DEBUG"]


def test_folders_of_another_container_are_not_passed_on(tmp_path: Path,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELASTICDL_TOKEN", "of this process")
    given = {"ELASTICDL_JOB_DIR": "/no/such/folder", "ELASTICDL_CHECKPOINTS": str(tmp_path),
             "MASTER_ADDR": "127.0.0.1:1", "WORKER_ID": "3"}

    env = worker_environment(given, "localhost:2", "/proc/self/fd/9")

    assert "ELASTICDL_JOB_DIR" not in env and "ELASTICDL_TOKEN" not in env
    assert env["ELASTICDL_CHECKPOINTS"] == str(tmp_path)
    assert env["MASTER_ADDR"] == env["DLROVER_MASTER_ADDR"] == "localhost:2"
    assert (env["WORKER_ID"], env["ELASTICDL_TOKEN_FILE"]) == ("3", "/proc/self/fd/9")
