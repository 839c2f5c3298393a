"""One small reader per format."""
