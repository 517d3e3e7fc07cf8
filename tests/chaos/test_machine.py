"""The worker's own machine: its disk is full, its memory used up, its clock is wrong or is set while it works.

The clock is the port `Clock`, set by the driver: the package takes the time of the worker from nowhere else. Disks are full by
`RLIMIT_FSIZE`, above which no file of the process can grow, and memory is used up by `RLIMIT_AS`.
"""

import os
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from sluice import log_events
from tests.chaos.lab import Lab
from tests.chaos.worker import Mark

HOUR = timedelta(hours=1)
MOMENTS = [
    Mark(1, log_events.RUN_ADMITTED),
    Mark(2, log_events.PAGE_FETCHED),
    Mark(3, log_events.CHUNK_CHECKPOINTED),
    Mark(2, log_events.CHUNK_TRANSFORMED),
    Mark(1, log_events.REVIEW_MADE),
    Mark(1, log_events.UNDO_STORED),
]


@pytest.mark.parametrize("largest_file", [0, 1500])
def test_a_disk_that_is_full(lab: Lab, largest_file: int) -> None:
    """Of what a worker keeps on its disk it does without; a review it cannot write says so, and waits for one that can."""
    with lab.experiment(lab.story[2]) as experiment:
        ended = experiment.start(largest_file=largest_file).end()
        experiment.faults.append("disk full")
        assert (ended.status, ended.error) == (None, "DiskFull"), ended
        assert "TMPDIR" in (ended.message or "")
        kept = [file.stat().st_size for file in experiment.cache.rglob("*") if file.is_file()]
        assert max(kept, default=0) <= largest_file
        assert bool(kept) == bool(largest_file)
        experiment.go_on()
        experiment.check()


@pytest.mark.parametrize("event", [log_events.STEP_STARTED, log_events.SHARD_FETCHED])
def test_a_memory_that_is_used_up(lab: Lab, event: str) -> None:
    """The step says so, and nothing that is half done is left to whoever goes on."""
    with lab.experiment(lab.story[2]) as experiment:
        ended = experiment.start(lacks_memory_at=Mark(1, event)).end()
        experiment.faults.append("memory used up")
        assert (ended.status, ended.error) == (None, "OutOfMemory"), ended
        experiment.go_on()
        experiment.check()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small file system")
def test_a_file_system_that_runs_full(lab: Lab, tmp_path: Path) -> None:
    """The copies have a file system of 16 kB: the first fit, and the run succeeds without the others."""
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k,mode=700", "tmpfs", tmp_path], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"nothing can be mounted here: {error}")
    try:
        with lab.experiment(lab.story[2]) as experiment:
            experiment.cache = tmp_path / "cache"
            ended = experiment.start().end()
            experiment.faults.append("disk full")
            assert ended.status == "succeeded", ended
            with pytest.raises(OSError, match="No space left"):
                (tmp_path / "more").write_bytes(bytes(1 << 14))
            experiment.check()
    finally:
        subprocess.run(["umount", "--lazy", tmp_path], check=True)


def test_copies_that_are_damaged_while_nobody_works(lab: Lab) -> None:
    """Whoever goes on from a dead worker's checkpoints finds its copies garbled, cut or gone, and asks the store."""
    with lab.experiment(lab.story[0]) as experiment:
        worker = experiment.start(Mark(1, log_events.REVIEW_MADE))
        worker.held()
        experiment.kill(worker, "killed, its copies damaged")
        copies = [file for file in sorted(experiment.cache.rglob("*")) if file.is_file()]
        assert len(copies) > 12
        for place, file in enumerate(copies):
            data = file.read_bytes()
            match place % 3:
                case 0:
                    file.write_bytes(data[::-1])
                case 1:
                    file.write_bytes(data[: len(data) // 2])
                case 2:
                    file.unlink()
        experiment.go_on()
        experiment.check()


@pytest.mark.parametrize("jump", [-HOUR, HOUR], ids=["backwards", "forwards"])
def test_a_clock_that_jumps(lab: Lab, jump: timedelta) -> None:
    """Set by an hour at six moments of a run: neither leases nor chunks nor what is published go by it."""
    with lab.experiment(lab.story[1]) as experiment:
        ended = experiment.start(clock_jumps=dict.fromkeys(MOMENTS, jump)).end()
        experiment.faults += [f"clock set {'back' if jump < timedelta(0) else 'forward'} by an hour"] * len(MOMENTS)
        assert ended.status == "succeeded", ended
        experiment.check()


@pytest.mark.parametrize("off", [-HOUR, HOUR], ids=["behind", "ahead"])
def test_a_worker_with_a_wrong_clock_takes_over_in_time_and_not_before(lab: Lab, off: timedelta) -> None:
    """A lease ends by the database's clock: one whose clock is wrong neither breaks into it nor waits for an hour."""
    begin = Mark(1)
    with lab.experiment(lab.story[1]) as experiment:
        experiment.include = lab.project(stage={"heartbeat": "0.2s"})
        owner = experiment.start(Mark(2, log_events.CHUNK_CHECKPOINTED))
        owner.held()
        follower = experiment.start(Mark(1, log_events.FLIGHT_AWAITED), clock_jumps={begin: off})
        follower.held()
        experiment.faults.append(f"clock {'behind' if off < timedelta(0) else 'ahead'} by an hour while it follows")
        experiment.kill(owner, "killed while another run follows")
        experiment.let_leases_run_out()
        follower.go_on()
        ended = follower.end()
        assert ended.status == "succeeded", ended
        experiment.check()
