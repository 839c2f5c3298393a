"""What a vendor lists becomes what the corpus holds: pages, downloads, deletions, progress."""
