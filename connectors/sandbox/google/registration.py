"""What an application registered with the sandbox's Google knows."""

from collections.abc import Mapping

CLIENT_ID = "catchment-sandbox.apps.googleusercontent.example"
CLIENT_SECRET = "sandbox-google-secret"  # noqa: S105 - of a vendor that does not exist


def endpoints(url: str, _second_url: str) -> Mapping[str, str]:
    return {
        "auth": f"{url}/o/oauth2/v2/auth",
        "token": f"{url}/token",
        "revoke": f"{url}/revoke",
        "userinfo": f"{url}/v1/userinfo",
        "drive": f"{url}/drive/v3/",
        "gmail": f"{url}/",
        "calendar": f"{url}/calendar/v3/",
    }
