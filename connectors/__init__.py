"""Vendor adapters: authorise, list, fetch, watch. No database, no queue, no embeddings."""
