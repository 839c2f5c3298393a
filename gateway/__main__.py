"""`python -m gateway` is `catchment`."""

from gateway.cli import main

main()
