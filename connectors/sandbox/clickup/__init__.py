"""ClickUp as far as a sync client can tell."""
