"""The fork server's memory in large pages: nothing in it changes, and forks have less to copy."""

import subprocess
import sys
from pathlib import Path

FILLED = """
import ctypes
from pathlib import Path
from gateway.corpus.child import pages

def large():
    return sum(int(line.split()[1]) for line in Path("/proc/self/smaps").read_text().splitlines() if line.startswith("AnonHugePages"))

held = [bytes([number]) * 1_000_000 for number in range(64)]
before = large()
pages.enlarge()
assert held == [bytes([number]) * 1_000_000 for number in range(64)]
print(large() - before)
"""
SUPPORTED = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def test_what_is_held_stays_what_it_is_and_lies_in_large_pages_where_there_are_any():
    ran = subprocess.run([sys.executable, "-c", FILLED], check=True, capture_output=True, text=True)
    assert int(ran.stdout) > 0 or not SUPPORTED.exists()
