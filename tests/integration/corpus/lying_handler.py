"""A handler that answers in the parser's words, but not truthfully."""


def handle(task, payload):
    yield {"text": "short", "language": "en", "pageCount": None, "warnings": []}
    yield {"chunks": [task["policy"]["row"]]}
