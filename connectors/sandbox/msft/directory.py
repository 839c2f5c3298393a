"""The people of the sandbox's tenant."""

from dataclasses import dataclass

from connectors.sandbox.msft.graph import Json
from connectors.sandbox.msft.registration import TENANT_ID
from connectors.sandbox.world import Ids, NoSuchObject

PEOPLE = (
    ("ada@demo.example", "Ada Brook", "Head of operations"),
    ("grace@demo.example", "Grace Weir", "Engineer"),
    ("linus@demo.example", "Linus Ford", None),
)


@dataclass(frozen=True, kw_only=True)
class User:
    id: str
    name: str
    email: str
    job: str | None = None

    def shown(self) -> Json:
        first, _, last = self.name.partition(" ")
        return {
            "businessPhones": [],
            "displayName": self.name,
            "givenName": first,
            "jobTitle": self.job,
            "mail": self.email,
            "mobilePhone": None,
            "officeLocation": None,
            "preferredLanguage": None,
            "surname": last,
            "userPrincipalName": self.email,
            "id": self.id,
        }

    def identity(self) -> Json:
        return {"user": {"email": self.email, "id": self.id, "displayName": self.name}}

    def sender(self) -> Json:
        return {
            "application": None,
            "device": None,
            "user": {
                "@odata.type": "#microsoft.graph.teamworkUserIdentity",
                "id": self.id,
                "displayName": self.name,
                "userIdentityType": "aadUser",
                "tenantId": TENANT_ID,
            },
        }


class Directory:
    def __init__(self, ids: Ids) -> None:
        self._users: dict[str, User] = {}
        for email, name, job in PEOPLE:
            user = User(id=ids.guid("user"), name=name, email=email, job=job)
            self._users[user.id] = user

    def all(self) -> list[User]:
        return list(self._users.values())

    def find(self, who: str) -> User:
        """By id, or by e-mail address in any case."""
        for user in self._users.values():
            if who == user.id or who.lower() == user.email.lower():
                return user
        raise NoSuchObject(who)
