"""The limited parser child: where files from strangers are opened.

A file may be a bomb, a virus or simply broken. So no file is parsed in a process that holds a database connection, a
token or another tenant's text. `ChildPool` keeps a fork server (a clean process with the readers loaded, `server.py`)
that forks children with limits on memory, time, files, output, processes and network (`confinement.py`); each child runs
one handler module (`inside.py`) and answers with length-limited msgpack frames (`frames.py`). A bad file costs that file.
"""

from gateway.corpus.child.failures import ChildFailed, PoolUnavailable, TaskFailed
from gateway.corpus.child.limits import Limits
from gateway.corpus.child.link import Launched, launch
from gateway.corpus.child.pool import ChildPool

__all__ = ["ChildFailed", "ChildPool", "Launched", "Limits", "PoolUnavailable", "TaskFailed", "launch"]
