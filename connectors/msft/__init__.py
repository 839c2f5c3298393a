"""Microsoft 365 through Graph v1.0, with the delegated consent of one user."""
