"""Google: Drive, Gmail and Calendar of one user who consented."""
