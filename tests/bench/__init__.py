"""Measurements beside other people's software. Nothing here is collected by pytest or needed by the suite."""
