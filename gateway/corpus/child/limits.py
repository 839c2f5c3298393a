"""What a child may use. The figures come from measuring every chosen reader on real and hostile files.

A small file that wants much is a bomb; a large one may be a book. So memory and processor time are granted by the size of
the file, anew for each task, within hard limits that no child can raise.
"""

import resource
import signal
from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    # Address space: enough for every reader, and native code aborts at the end of it. The loaded readers take 290 MiB of
    # it, of which 170 are really there; so a small file stays below half a gigabyte of memory.
    memory_bytes: int = 1024 * MIB
    memory_bytes_at_first: int = 608 * MIB
    memory_bytes_per_byte: int = 8
    cpu_seconds: int = 30  # per task
    cpu_seconds_at_first: int = 6
    cpu_seconds_per_mib: float = 0.3
    wall_seconds: float = 30.0  # per task, kept by the parent
    file_bytes: int = 64 * MIB  # any one file it writes
    open_files: int = 64
    input_bytes: int = 512 * MIB
    output_bytes: int = 192 * MIB  # all frames of one task, counted by the parent

    def apply(self, *, resident_tasks: int) -> None:
        """Bind the calling process for good: hard limits cannot be raised again."""
        cpu_hard = (self.cpu_seconds + 2) * max(1, resident_tasks)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.file_bytes, self.file_bytes))
        resource.setrlimit(resource.RLIMIT_NOFILE, (self.open_files, self.open_files))
        resource.setrlimit(resource.RLIMIT_CPU, (self.cpu_seconds, cpu_hard))
        resource.setrlimit(resource.RLIMIT_AS, (self.memory_bytes, self.memory_bytes))

    def grant(self, size: int, seconds_per_mib: float | None = None) -> None:
        """What a file of this size may use. A resident child gets it anew for each task; the hard limits still end it.

        Processor time is counted by a timer that begins here. A limit on the whole life would have to know what was used
        before, and the kernel's count runs ahead of the usage it reports, more with every task. One second is for that.
        """
        memory = min(self.memory_bytes, self.memory_bytes_at_first + self.memory_bytes_per_byte * size)
        resource.setrlimit(resource.RLIMIT_AS, (memory, self.memory_bytes))
        share = self.cpu_seconds_per_mib if seconds_per_mib is None else seconds_per_mib
        seconds = min(self.cpu_seconds, self.cpu_seconds_at_first + int(share * size / MIB))
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))
        signal.setitimer(signal.ITIMER_PROF, seconds + 1)
