"""What one types: one file per family of commands, put together in `tree.py`.

Heavy rooms of the house are imported inside the command that needs them, so that the others answer at once.
"""
