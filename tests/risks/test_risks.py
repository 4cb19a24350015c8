"""The ledger of known risks. W-21."""

from dataclasses import replace
from typing import Any

import pytest

from headrace.access import PreconditionFailed
from headrace.audit import Action, Resource, ResourceType, Who, record
from headrace.database import Tx
from headrace.risks import service, store
from headrace.risks.errors import RiskIdTaken, RiskNotFound
from headrace.risks.model import Category, Facts, Risk, RiskStatus, Severity

FACTS = Facts(
    Category.TECHNICAL,
    Severity.HIGH,
    RiskStatus.OPEN,
    "the disk is full",
    "look at it every day",
    "ada",
    {"trace_ids": ["trace-1"], "links": []},
)


async def enter(tx: Tx, who: Who, risk_id: str | None = None, **changes: Any) -> Risk:
    return await service.create_risk(tx, who, replace(FACTS, **changes), risk_id=risk_id)


async def test_a_risk_is_entered_changed_and_struck_out(tx: Tx, who: Who) -> None:
    made = await enter(tx, who, "R-1")
    assert (made.risk_id, made.version, made.owner) == ("R-1", 0, "ada")
    assert (await enter(tx, who)).risk_id.startswith("rsk_")
    changed = await service.change_risk(tx, who, "R-1", {"status": RiskStatus.MITIGATING}, expected=0)
    assert (changed.version, changed.status, changed.owner) == (1, RiskStatus.MITIGATING, "ada")
    assert await service.change_risk(tx, who, "R-1", {"status": RiskStatus.MITIGATING}) == changed
    with pytest.raises(PreconditionFailed):  # W-09
        await service.change_risk(tx, who, "R-1", {"owner": "bob"}, expected=0)
    await service.delete_risk(tx, who, "R-1", expected=1)
    with pytest.raises(RiskNotFound):
        await service.get_risk(tx, "R-1")
    events = await tx.fetch(
        "SELECT action FROM headrace.audit_events WHERE resource ->> 'identifier' = 'R-1' ORDER BY seq"
    )
    assert [event["action"] for event in events] == ["created", "updated", "deleted"]


async def test_an_id_names_one_risk(tx: Tx, who: Who) -> None:
    await enter(tx, who, "R-1")
    with pytest.raises(RiskIdTaken):
        async with tx.savepoint():
            await enter(tx, who, "R-1")


async def test_the_board_counts_what_is_not_closed(tx: Tx, who: Who) -> None:
    for severity, status, owner in (
        (Severity.LOW, RiskStatus.OPEN, "ada"),
        (Severity.CRITICAL, RiskStatus.OPEN, "bob"),
        (Severity.CRITICAL, RiskStatus.CLOSED, "bob"),
        (Severity.HIGH, RiskStatus.ACCEPTED, "ada"),
        (Severity.HIGH, RiskStatus.ACCEPTED, "ada"),
    ):
        await enter(tx, who, severity=severity, status=status, owner=owner)
    board = [(each.severity, each.status, each.owner, each.count) for each in await service.board(tx)]
    assert board == [("CRITICAL", "OPEN", "bob", 1), ("HIGH", "ACCEPTED", "ada", 2), ("LOW", "OPEN", "ada", 1)]
    assert {each.owner for each in await service.board(tx, owner="ada")} == {"ada"}
    grave = await service.list_risks(tx, statuses=[RiskStatus.OPEN], severities=[Severity.CRITICAL], limit=10)
    assert [each.owner for each in grave] == ["bob"]


async def test_a_risk_leads_to_the_audit_events_of_its_traces_and_back(tx: Tx, who: Who) -> None:
    await enter(tx, who, "R-1")
    await enter(tx, who, "R-2", refs_json=None)
    await enter(tx, who, "R-3", refs_json={"trace_ids": "by hand"})
    traced = replace(who, trace_id="trace-1")
    await record(tx, traced, Action.UPDATED, Resource(ResourceType.QUEUE, "default"))
    (trace,) = await service.list_traces(tx, who, "R-1", limit=10)
    assert (trace.trace_id, trace.action, trace.resource_type, trace.resource_id) == (
        "trace-1",
        "updated",
        "queue",
        "default",
    )
    assert await service.list_traces(tx, who, "R-2", limit=10) == []
    assert await service.list_traces(tx, who, "R-3", limit=10) == []
    assert [each.risk_id for each in await service.list_risks(tx, trace_id="trace-1", limit=10)] == ["R-1"]


async def test_look_ups_use_their_index(owner_tx: Tx) -> None:  # W-20
    await owner_tx.execute(
        """
        INSERT INTO headrace.tech_risk_ledger
          (risk_id, category, severity, status, trigger_condition, mitigation_plan, owner, refs_json, created_at)
          SELECT 'R-' || n, 'COST', (ARRAY['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'])[n % 4 + 1],
                 CASE WHEN n % 100 = 0 THEN 'OPEN' ELSE 'CLOSED' END, 't', 'm', 'owner-' || n % 500,
                 jsonb_build_object('trace_ids', jsonb_build_array('trace-' || n)), now() - n * interval '1 s'
          FROM generate_series(1, 20000) AS n;
        ANALYZE headrace.tech_risk_ledger;
        """
    )
    page = "ORDER BY created_at DESC, id DESC LIMIT 21"
    queries: dict[str, tuple[str, tuple[object, ...]]] = {
        "uk_tech_risk_ledger_risk_id": (store.FIND, ("R-7",)),
        "idx_tech_risk_ledger_status_severity": store.board(None),
        "idx_tech_risk_ledger_owner": (f"{store.SELECT_RISKS} WHERE owner = $1 {page}", ("owner-7",)),
        "idx_tech_risk_ledger_refs": (
            f"{store.SELECT_RISKS} WHERE refs_json @> $1 {page}",
            ({"trace_ids": ["trace-7"]},),
        ),
        "idx_tech_risk_ledger_created_at": (f"{store.SELECT_RISKS} {page}", ()),
        "trace_id": (store.TRACES, (["trace-7"], 100)),
    }
    grave = f"{store.SELECT_RISKS} WHERE status = 'OPEN' AND severity = 'CRITICAL' {page}"
    for index, (sql, args) in [*queries.items(), ("idx_tech_risk_ledger_status_severity", (grave, ()))]:
        plan = "\n".join(row[0] for row in await owner_tx.fetch(f"EXPLAIN {sql}", *args))
        assert index in plan, plan
        assert "Seq Scan on tech_risk_ledger" not in plan, plan
