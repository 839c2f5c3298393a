"""`python -m workers`: a nursery and the worker it tends (`nursery.py`, `process.py`)."""

import gc
import os
import sys


def main() -> None:
    # A process that is to be forked has no threads, and numpy's library starts some when it is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.disable()  # loading makes a million objects and no garbage; looking for some takes a sixth of the time
    from workers.process import run  # noqa: PLC0415 - after that word

    sys.exit(run())


if __name__ == "__main__":
    main()
