"""Several training threads in one process, each with its own ShardTrainer, share a client."""

from typing import Callable

from test_counting import Killing, await_share, check_counts, newest_checkpoint, start_counting

SIZE, EPOCHS = 6_000, 2


def test_threads_of_one_process_train_every_batch_once(start: Callable,
                                                       start_ps: Callable) -> None:
    job = start_counting(start, name="threads", workers=2, size=SIZE, epochs=EPOCHS, threads=3)
    killing = Killing(job)
    for share, role in ((0.3, "worker"), (0.6, "ps")):
        await_share(job, share, SIZE, EPOCHS)
        killing.kill_now(role)
    job.assert_succeeded(180)
    check_counts(start_ps, newest_checkpoint(job), size=SIZE, epochs=EPOCHS)
