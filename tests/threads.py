"""Running test code in many threads at once and in forked children."""

import os
import signal
import threading
import time

import pytest


def at_once(*jobs):
    """Run functions in a thread each, all started together; raise what one of them raised."""
    barrier, failures = threading.Barrier(len(jobs)), []

    def run(job):
        try:
            barrier.wait()
            job()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def in_child(job, seconds=60):
    """Return whether a job ends well in a forked child, which is killed if it hangs."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            job()
            code = 0
        finally:
            os._exit(code)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return False


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
# Python warns of forks while other threads run, which is the case under test.
with_threads = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


def while_forking(busy, job, times=10):
    """Fork children that do a job, again and again, while two threads do `busy` over and over: each job ends well."""
    stop = threading.Event()

    def at_work():
        while not stop.is_set():
            busy()

    def forks():
        try:
            assert [in_child(job) for _ in range(times)] == [True] * times
        finally:
            stop.set()

    at_once(at_work, at_work, forks)
