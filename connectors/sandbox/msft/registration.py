"""The application that is registered at the sandbox, and where its endpoints are."""

CLIENT_ID = "6f3b1a52-7c1d-4c55-9d0e-2a61c8b4f0aa"
CLIENT_SECRET = "sandbox~msft~client~secret"  # noqa: S105 - opens nothing but the sandbox
TENANT_ID = "7d1c9a34-5b0e-4f6a-8c2d-1e9b3f5a7c60"


def endpoints(url: str, second_url: str) -> dict[str, str]:
    return {"login": url, "tenant": "common", "graph": f"{url}/v1.0", "download": second_url}
