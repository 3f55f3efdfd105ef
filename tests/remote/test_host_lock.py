"""One measuring run a host, told by name; the lock ends with its holder."""

from __future__ import annotations

import subprocess
import sys

import pytest

from records.errors import RunBusyError
from remote.host_lock import sole_run

HOLDER = """
import sys, time
from pathlib import Path
from remote.host_lock import sole_run
with sole_run("first", Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_second_run_is_refused_by_the_name_of_the_first(tmp_path):
    lock = tmp_path / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(RunBusyError, match="run first is being measured"), sole_run("b", lock):
            pass
        holder.kill()
        holder.wait()
        with sole_run("second", lock):
            assert lock.read_text() == "run second\n"
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()


def test_the_lock_is_free_again_after_the_run(tmp_path):
    for name in ("first", "second"):
        with sole_run(name, tmp_path / "lock"):
            pass
