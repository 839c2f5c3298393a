"""Tests mirror the code; `tests.fixtures` is what they stand on."""
