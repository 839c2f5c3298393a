"""The way of one document: extract → neutralise → chunk (inside the parser child), then embed → store. One file a stage."""
