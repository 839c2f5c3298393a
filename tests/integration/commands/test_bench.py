"""`catchment bench`: what cannot be measured is said, not replaced by something else."""

from tests.fixtures import preloaded


def test_a_format_that_nothing_can_write_is_named():
    ran = preloaded.run("bench", "extract", "--format", "msg", "--format", "pdf")
    assert ran.returncode == 1
    assert "No such format to measure: msg." in ran.stderr
    assert ran.stdout == ""
