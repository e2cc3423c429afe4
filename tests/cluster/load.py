"""How busy the machine is while a test waits, so that a bound on time that holds on a quiet machine can be lengthened by what was
measured, and by nothing else.

    with Load() as load: ...wait...
    self.assertLess(seconds, load.longer(15))
"""

from __future__ import annotations

import statistics
import threading
import time

# Of processor time: longer than the slices that the kernel deals out (3 ms), short beside the pause.
PROBE_S = 0.01
PAUSE_S = 0.3
# A machine that is slower than this is not one to measure times on.
MOST = 8.0


def wall_over_processor_time() -> float:
    """What a short piece of work takes, by the clock, over the processor time that it takes: 1 if a processor is free."""
    begin, used = time.perf_counter(), time.thread_time()
    while time.thread_time() < used + PROBE_S:
        pass
    return (time.perf_counter() - begin) / (time.thread_time() - used)


class Load:
    """Probes the machine again and again from __enter__ to __exit__, in a thread of this process, which waits meanwhile."""

    def __enter__(self) -> "Load":
        self._probes = [wall_over_processor_time()]
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._probe, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._is_over.set()
        self._thread.join()

    def _probe(self) -> None:
        while not self._is_over.wait(PAUSE_S):
            self._probes.append(wall_over_processor_time())

    def factor(self) -> float:
        """The mean of the probes so far: work that several programs do in turn takes so many times as long. 1 to MOST."""
        return min(MOST, max(1.0, statistics.fmean(self._probes)))

    def longer(self, seconds: float) -> float:
        """The bound `seconds` of a quiet machine, on this one."""
        return seconds * self.factor()
