"""`catchment`: loads the commands and runs the one that was asked for."""

import signal


def main() -> None:
    # Nothing runs yet: Ctrl-C while the commands load ends us without a word about what was just being loaded.
    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heard:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from gateway.commands.tree import run  # noqa: PLC0415 - after that word

    if heard:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()
