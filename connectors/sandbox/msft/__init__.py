"""Microsoft's identity platform and Graph v1.0, as far as a sync client meets them."""
