"""A handler whose import starts a thread: a fork server must refuse it."""

import threading

threading.Thread(target=threading.Event().wait, daemon=True).start()


def handle(task, payload):
    yield {}
