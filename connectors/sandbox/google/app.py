"""The sandbox's Google as one application: consent, Drive, Gmail, Calendar."""

from starlette.applications import Starlette

from connectors.sandbox.google.calendar_api import CalendarApi
from connectors.sandbox.google.consent import OAuthApi
from connectors.sandbox.google.drive_api import DriveApi
from connectors.sandbox.google.gmail_api import GmailApi
from connectors.sandbox.google.seed import USERS
from connectors.sandbox.google.world import GoogleWorld


def build(world: GoogleWorld) -> Starlette:
    return Starlette(
        routes=[
            *OAuthApi(world.grants, USERS).routes(),
            *DriveApi(world).routes(),
            *GmailApi(world).routes(),
            *CalendarApi(world).routes(),
        ]
    )
