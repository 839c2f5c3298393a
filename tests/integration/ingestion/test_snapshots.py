"""Snapshots follow events: named facts only, the newest state, one per subject, gone with the subject or the policy."""

import asyncio
import io
import json
import zipfile
from typing import Any
from uuid import UUID

import pytest

from gateway.corpus.erasure import begin_erasure, enqueue_erasure
from gateway.corpus.export import export_user
from gateway.db import new_id
from gateway.ingestion import snapshot_service
from gateway.ingestion.event_schemas import MOST_CHARACTERS, MOST_ENTRIES, Preferences
from gateway.ingestion.schemas import SourceKind
from gateway.tenancy import repository as tenancy
from gateway.tenancy import service
from gateway.tenancy.schemas import FeatureInstanceIn
from tests.fixtures.corpus import Tenant, ask, rows_of
from tests.fixtures.events import handle_events, say, waiting
from tests.fixtures.processes import until
from tests.fixtures.tenants import TestMandate

SECRET = "AKIA" + "IOSFODNN7EXAMPLQ"


class House:
    """One mandate with snapshots on, and what they say."""

    def __init__(self, db: Any, bench: Any, mandate: TestMandate) -> None:
        self.db, self.bench, self.mandate = db, bench, mandate
        self.tenant = Tenant(mandate.id, mandate.users["owner"], mandate.keys["owner"])

    async def policy(self, **patch: Any) -> None:
        async with self.db.tenant_session(self.mandate.id) as session:
            await service.patch_policy(session, patch)
        await self.turn()

    async def turn(self) -> None:
        """The relay's and the worker's."""
        await handle_events(self.db, self.mandate.id)
        await self.bench.drain(self.tenant)

    async def hears(self, event_type: str, **payload: Any) -> None:
        await say(self.db, self.mandate.id, event_type, **payload)
        await self.turn()

    async def texts(self, kind: SourceKind) -> dict[str, str]:
        """By source id, of what is indexed."""
        rows = await rows_of(
            self.db,
            self.tenant,
            "SELECT d.source_id, t.text FROM document d JOIN document_text t ON t.mandate_id = d.mandate_id "
            "AND t.document_id = d.id WHERE d.source_kind = :kind AND d.status = 'indexed'",
            kind=kind,
        )
        return {row.source_id: row.text for row in rows}

    async def profile(self, who: str = "member") -> str:
        return (await self.texts("profile_snapshot")).get(f"catchment:{self.mandate.users[who]}", "")

    async def about_mandate(self) -> str:
        return (await self.texts("mandate_snapshot")).get(f"catchment:{self.mandate.id}", "")

    async def feature(self, instance_id: UUID) -> str:
        return (await self.texts("feature_snapshot")).get(f"catchment:{instance_id}", "")

    async def instance(self, label: str, *members: str) -> UUID:
        users = [self.mandate.users[who] for who in members]
        wanted = FeatureInstanceIn(feature_code="coach", label=label, member_ids=users)
        async with self.db.tenant_session(self.mandate.id) as session:
            return (await service.create_feature_instance(session, wanted)).id


@pytest.fixture
async def house(db, bench, mandate) -> House:
    house = House(db, bench, mandate)
    await house.policy(snapshots={"enabled": True})
    return house


async def everywhere(house: House, word: str) -> list[str]:
    """Tables of the mandate in which a word stands."""
    tables = await rows_of(
        house.db,
        house.tenant,
        "SELECT table_name FROM information_schema.columns WHERE column_name = 'mandate_id' AND table_schema = 'public' "
        "AND table_name NOT IN ('user', 'api_key')",
    )
    found = []
    for table in sorted({row.table_name for row in tables}):
        sql = f'SELECT 1 FROM "{table}" t WHERE mandate_id = :m AND strpos(CAST(t AS text), :word) > 0'
        if await rows_of(house.db, house.tenant, sql, m=house.mandate.id, word=word):
            found.append(table)
    return found


# -- what a snapshot says


async def test_a_profile_holds_what_our_tables_say_and_preferences_on_the_list(house):
    await house.instance("Coach Bern", "member")
    await house.instance("Not theirs", "admin")
    await house.hears(
        "ProfileUpdated",
        userId=str(house.mandate.users["member"]),
        displayName="Somebody Else",
        role="owner",
        email="private@example.org",
        phone="+41 44 668 18 00",
        token="hunter2hunter2",
        preferences={"answerStyle": "brief, with examples", "ssn": "078-05-1120", "weekStart": "Monday"},
    )
    assert await house.profile() == (
        "Name: member\nLanguage and region: en\nTime zone: UTC\nRole in the organisation: member\n"
        "Features they may use: Coach Bern\nPrefers answers in the style: brief, with examples\n"
        "First day of the week: Monday\n"
    )
    for word in ("Somebody Else", "private@example.org", "668 18 00", "hunter2", "078-05-1120"):
        assert await everywhere(house, word) == []
    [row] = await rows_of(
        house.db,
        house.tenant,
        "SELECT scope, user_id, title FROM document WHERE source_kind = 'profile_snapshot' AND user_id = :u",
        u=house.mandate.users["member"],
    )
    assert tuple(row) == ("personal", house.mandate.users["member"], "member")


async def test_preferences_outlive_other_events_and_null_takes_one_back(house):
    member = str(house.mandate.users["member"])
    await house.hears("ProfileUpdated", userId=member, preferences={"units": "metric", "currency": "CHF"})
    await house.hears("MembershipChanged", userId=member, role="member")
    await house.hears("ProfileUpdated", userId=member, preferences={"currency": None})
    profile = await house.profile()
    assert "Units: metric" in profile
    assert "Currency" not in profile


async def test_values_are_one_short_line_each_and_entries_are_few(house):
    member = str(house.mandate.users["member"])
    await house.hears(
        "ProfileUpdated",
        userId=member,
        preferences={
            "answerStyle": "x" * (MOST_CHARACTERS + 1),
            "units": {"deep": "structure"},
            "currency": "CHF\nRole in the organisation: owner\u2028\u202eName: root",
        },
    )
    profile = await house.profile()
    assert "xxx" not in profile
    assert "deep" not in profile
    assert "Currency: CHF Role in the organisation: owner Name: root\n" in profile
    instance = await house.instance("Label\nFeature code: forged")
    await house.hears(
        "FeatureConfigChanged",
        featureInstanceId=str(instance),
        dataSources=[f"source-{number}-end" for number in range(MOST_ENTRIES + 5)],
    )
    about = await house.feature(instance)
    assert about.startswith("Feature: Label Feature code: forged\nFeature code: coach\n")
    assert f"source-{MOST_ENTRIES - 1}-end" in about
    assert f"source-{MOST_ENTRIES}-end" not in about


async def test_secrets_and_addresses_are_masked_wherever_they_stand_and_names_are_not(house):
    async with house.db.tenant_session(house.mandate.id) as session:
        await tenancy.update_user(
            session, house.mandate.users["member"], display_name="ada.lovelace@example.org"
        )
        await tenancy.update_user(session, house.mandate.users["admin"], display_name="Dr. Ada Lovelace")
    await house.hears(
        "ProfileUpdated",
        userId=str(house.mandate.users["member"]),
        preferences={
            "answerStyle": f"use {SECRET}",
            "workingHours": "call +41 44 668 18 00 or jo@example.org",
        },
    )
    await house.hears("ProfileUpdated", userId=str(house.mandate.users["admin"]))
    profile = await house.profile()
    assert "Prefers answers in the style: use [secret:" in profile
    assert "Working hours: call [phone:" in profile
    assert "Name: Dr. Ada Lovelace\n" in await house.profile("admin")
    for word in (SECRET, "668 18 00", "jo@example.org", "ada.lovelace@example.org"):
        assert await everywhere(house, word) == []


async def test_a_mandate_is_told_by_name_members_features_and_policy(house):
    await house.instance("Coach Bern")
    await house.policy(refusedSourceKinds=["web_page"], mail={"tier": "snippet"}, quotas={"days": 30})
    assert await house.about_mandate() == (
        "Organisation: Test\nMembers by role: 1 owner, 1 admin, 1 member\nFeatures: Coach Bern\n"
        "Mail is known by its: snippet, 30 days back\nNot taken in: web_page\n"
    )
    await house.hears("MandateUpdated", name="From the payload", billing="IBAN DE89 3704 0044 0532 0130 00")
    assert "From the payload" not in await house.about_mandate()


async def test_a_feature_is_told_by_label_code_and_what_it_says_of_itself(house):
    instance = await house.instance("Coach Bern", "member")
    await house.hears(
        "FeatureConfigChanged",
        featureInstanceId=str(instance),
        label="Forged",
        apiKey="hunter2hunter2",
        description="Coaching for managers",
        dataSources=["Minutes", {"label": "Handbook", "description": "of 2025", "path": "/secret/place"}],
        automations=[{"label": "Digest", "description": "every Monday"}],
    )
    await house.hears("FeatureConfigChanged", featureInstanceId=str(instance), automations=None)
    assert await house.feature(instance) == (
        "Feature: Coach Bern\nFeature code: coach\nDescription: Coaching for managers\nData source: Minutes\n"
        "Data source: Handbook – of 2025\n"
    )
    [row] = await rows_of(
        house.db,
        house.tenant,
        "SELECT scope, feature_instance_id, user_id FROM document WHERE source_kind = 'feature_snapshot'",
    )
    assert tuple(row) == ("featureInstance", instance, None)


async def test_labels_are_counted_when_they_are_many(house, monkeypatch):
    monkeypatch.setattr("gateway.ingestion.snapshots.MOST_LABELS", 2)
    for label in ("Third", "First", "Second"):
        await house.instance(label, "member")
    await house.turn()
    assert "Features: First; Second; and 1 more\n" in await house.about_mandate()
    assert "Features they may use: First; Second; and 1 more\n" in await house.profile()


# -- when it is made


async def test_unchanged_facts_are_a_duplicate_and_nothing_is_embedded(house, capsys):
    member = str(house.mandate.users["member"])
    await house.hears("ProfileUpdated", userId=member, preferences={"answerStyle": f"brief, not {SECRET}"})
    embedded = len(house.bench.embedded())
    revisions = "SELECT id, revision FROM document ORDER BY id"
    before = await rows_of(house.db, house.tenant, revisions)
    capsys.readouterr()
    await house.hears("ProfileUpdated", userId=member, preferences={"answerStyle": f"brief, not {SECRET}"})
    await house.hears("MembershipChanged", userId=member, role="member")
    assert "ingestion.skipped.duplicate" in capsys.readouterr().out
    await house.hears("MandateUpdated", everything=True)
    looked = capsys.readouterr().out
    # The mandate's was asked for; of those that were only looked at there is nothing to tell.
    assert looked.count("ingestion.skipped.duplicate") == looked.count("sourceKind=mandate_snapshot") == 1
    assert len(house.bench.embedded()) == embedded
    assert await rows_of(house.db, house.tenant, revisions) == before


async def test_several_events_end_in_the_newest_state(house):
    member = house.mandate.users["member"]
    for name in ("First", "Second", "Third"):
        await say(house.db, house.mandate.id, "ProfileUpdated", userId=str(member), displayName=name)
        async with house.db.tenant_session(house.mandate.id) as session:
            await tenancy.update_user(session, member, display_name=f"{name} name")
    await house.turn()
    assert (await house.profile()).startswith("Name: Third name\n")


async def test_a_look_at_all_that_has_not_begun_serves_the_next_change_too(house):
    async def queued() -> int:
        found = await rows_of(
            house.db, house.tenant, "SELECT 1 FROM job WHERE kind = 'snapshots' AND finished_at IS NULL"
        )
        return len(found)

    async def changes() -> None:
        await say(house.db, house.mandate.id, "MandateUpdated", everything=True)
        await handle_events(house.db, house.mandate.id)

    await changes()
    await changes()
    assert await queued() == 1
    await rows_of(
        house.db,
        house.tenant,
        "UPDATE job SET lease_until = now() + interval '1 hour' WHERE kind = 'snapshots' AND finished_at IS NULL "
        "RETURNING id",
    )
    await changes()  # the one that runs may have passed by already
    assert await queued() == 2


async def waits(db, tenant) -> bool:
    """Somebody waits for a lock in this database."""
    sql = (
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' "
        "AND state = 'active'"
    )
    return bool(await rows_of(db, tenant, sql))


@pytest.mark.parametrize("exists", [False, True])
async def test_two_events_at_the_same_instant_both_count(house, exists):
    """The second looks when the first has been committed, not before."""
    member = house.mandate.users["member"]
    if not exists:
        await rows_of(
            house.db,
            house.tenant,
            "DELETE FROM document WHERE source_kind = 'profile_snapshot' RETURNING id",
        )

    async def second() -> None:
        async with house.db.tenant_session(house.mandate.id) as session:
            await snapshot_service.refresh(session, "profile_snapshot", [member], Preferences(currency="CHF"))

    async with house.db.tenant_session(house.mandate.id) as session:
        await snapshot_service.refresh(session, "profile_snapshot", [member], Preferences(units="metric"))
        await tenancy.update_user(session, member, display_name="Renamed meanwhile")
        other = asyncio.create_task(second())
        await until(lambda: waits(house.db, house.tenant), 20, "the second to wait")
    await other
    await house.turn()
    profile = await house.profile()
    assert ("Units: metric" in profile, "Currency: CHF" in profile) == (True, True)
    assert profile.startswith("Name: Renamed meanwhile\n")


@pytest.mark.parametrize(
    ("event_type", "payload"),
    [
        ("ProfileUpdated", {}),
        ("ProfileUpdated", {"userId": str(new_id())}),
        ("ProfileUpdated", {"userId": "x", "preferences": {}}),
        ("ProfileUpdated", {"userId": "MEMBER", "preferences": ["units"]}),
        ("MembershipChanged", {"userId": str(new_id()), "role": "member"}),
        ("MandateUpdated", {"everything": "perhaps"}),
        ("FeatureConfigChanged", {"featureInstanceId": str(new_id())}),
        ("FeatureConfigChanged", {"featureInstanceId": str(new_id()), "dataSources": "all"}),
    ],
)
async def test_a_payload_without_sense_is_logged_and_dropped(house, capsys, event_type, payload):
    before = await rows_of(house.db, house.tenant, "SELECT id, revision FROM document ORDER BY id")
    known = str(house.mandate.users["member"])
    await house.hears(
        event_type, **{name: known if value == "MEMBER" else value for name, value in payload.items()}
    )
    assert capsys.readouterr().out.count("ingestion.event.ignored") == 1
    assert await rows_of(house.db, house.tenant, "SELECT id, revision FROM document ORDER BY id") == before


# -- when it goes


async def test_the_policy_decides_whether_and_which(house, monkeypatch):
    monkeypatch.setattr(snapshot_service, "BATCH", 2)  # so that there are several
    instance = await house.instance("Coach Bern")
    member = str(house.mandate.users["member"])
    await house.hears("ProfileUpdated", userId=member, preferences={"units": "metric-unit"})
    assert len(await house.texts("profile_snapshot")) == 3
    await house.policy(refusedSourceKinds=["profile_snapshot"])
    assert await house.texts("profile_snapshot") == {}
    assert await house.about_mandate()
    assert await house.feature(instance)
    await house.policy(snapshots={"enabled": False}, refusedSourceKinds=None)
    assert await rows_of(house.db, house.tenant, "SELECT 1 FROM document") == []
    await house.hears("ProfileUpdated", userId=member, preferences={"units": "metric-unit"})
    assert await rows_of(house.db, house.tenant, "SELECT 1 FROM document") == []
    assert await everywhere(house, "metric-unit") == []
    await house.policy(snapshots={"enabled": True})
    assert len(await house.texts("profile_snapshot")) == 3
    assert await house.about_mandate()
    assert await house.feature(instance)


async def test_what_somebody_handed_in_is_theirs(house):
    """Whoever handed it in, and whatever they called it."""
    member = house.mandate.users["member"]
    theirs = [
        ask(house.tenant, "about-us", "A company of forty.", sourceKind="mandate_snapshot", scope="mandate"),
        ask(
            house.tenant,
            "catchment:mine",
            "A company of fifty.",
            sourceKind="mandate_snapshot",
            scope="mandate",
            userId=None,
        ),
        ask(house.tenant, f"catchment:{member}", "Not the member.", sourceKind="profile_snapshot"),
        ask(house.tenant, f"catchment:{new_id()}", "Nobody here.", sourceKind="profile_snapshot"),
    ]
    await house.bench.hand_in(house.tenant, *theirs)
    await house.turn()
    await house.hears("ProfileUpdated", userId=str(member), preferences={"units": "metric"})
    found = await rows_of(
        house.db, house.tenant, "SELECT user_id FROM document WHERE source_id = :s", s=f"catchment:{member}"
    )
    assert {row.user_id for row in found} == {member, house.tenant.user_id}
    await house.policy(snapshots={"enabled": False})
    assert set((await house.texts("mandate_snapshot")).values()) == {
        "A company of forty.",
        "A company of fifty.",
    }
    assert set((await house.texts("profile_snapshot")).values()) == {"Not the member.", "Nobody here."}
    unfinished = "SELECT 1 FROM job WHERE kind = 'snapshots' AND status <> 'indexed'"
    assert await rows_of(house.db, house.tenant, unfinished) == []


async def test_under_legal_hold_they_stay_and_go_when_it_is_lifted(house):
    await house.policy(legalHold=True)
    await house.policy(snapshots={"enabled": False})
    assert await house.profile()
    await house.policy(legalHold=False)
    assert await rows_of(house.db, house.tenant, "SELECT 1 FROM document") == []


async def test_who_left_has_no_profile_any_more(house):
    member = house.mandate.users["member"]
    await rows_of(
        house.db, house.tenant, "DELETE FROM membership WHERE user_id = :u RETURNING user_id", u=member
    )
    await house.hears("MembershipChanged", userId=str(member), role=None)
    assert await house.profile() == ""
    assert "Members by role: 1 owner, 1 admin\n" in await house.about_mandate()


async def test_a_users_erasure_and_export_hold_the_profile(house):
    member = house.mandate.users["member"]
    await house.hears("ProfileUpdated", userId=str(member), preferences={"units": "metric-unit"})
    pieces = await export_user(house.db, house.bench.blobs, house.mandate.id, member)
    archive = b"".join([piece async for piece in pieces])
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        documents = [json.loads(line) for line in opened.read("documents.jsonl").splitlines()]
        texts = [opened.read(name).decode() for name in opened.namelist() if name.startswith("texts/")]
    assert [row["source_kind"] for row in documents] == ["profile_snapshot"]
    assert "Units: metric-unit" in texts[0]
    await say(
        house.db, house.mandate.id, "ProfileUpdated", userId=str(member), preferences={"units": "metric-unit"}
    )
    async with house.db.tenant_session(house.mandate.id) as session:
        await enqueue_erasure(session, await begin_erasure(session, "user", str(member), "asked"))
    assert await waiting(house.db, house.mandate.id) == []
    await house.bench.drain(house.tenant)
    assert await everywhere(house, "metric-unit") == []
    assert await house.profile() == ""
    assert await house.profile("admin")
