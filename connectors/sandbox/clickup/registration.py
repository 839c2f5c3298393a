"""What an application registered with the sandbox's ClickUp knows."""

from collections.abc import Mapping

CLIENT_ID = "SANDBOXCLICKUPCLIENT"
CLIENT_SECRET = "sandbox-clickup-secret"  # noqa: S105 - of a vendor that does not exist


def endpoints(url: str, second_url: str) -> Mapping[str, str]:
    return {"auth": f"{url}/consent", "api": f"{url}/api", "files": f"{second_url}/attachments"}
