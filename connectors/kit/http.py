"""The one way out: every request to a vendor and every download goes through here."""


class VendorHttp:
    """Placeholder until the guarded fetcher is in; see the brief of the connectors."""
