"""ClickUp: tasks with their comments and attachments, and docs with their pages."""
