"""A removal as a task: its four steps, each in a child, resumable at each of them, on any machine.

The handler runs on the worker's loop and does what needs the database and the storage. Everything that touches a
stranger's bytes happens in a child that has neither, no network, and no files but its folder's.
Canceling the handler kills the child at once. A child that dies fails the attempt; the next one goes on at the step.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import TypeAdapter, ValidationError

from headrace import logs
from headrace.assets.inspection.model import Format, MediaType
from headrace.assets.model import Asset
from headrace.assets.results import FIELD, Made, ResultFiles
from headrace.assets.store import assets
from headrace.database import Database
from headrace.errors import HeadraceError
from headrace.removal.images.shared_mark import MAX_HELD_BYTES, MAX_VIEWS
from headrace.removal.messages import CODES, TELLING, failure, refusal, require_as_paid
from headrace.removal.order import (
    ENDINGS,
    FailureCode,
    Names,
    Order,
    RemovalOrder,
    Stage,
    StageOrder,
)
from headrace.removal.report import Candidate, Report
from headrace.removal.runner import Conversion, payload_of, stage_types
from headrace.removal.service import passwords
from headrace.removal.service.batches import list_batch, list_learnt, size_of
from headrace.removal.service.config import RemoverConfig
from headrace.removal.service.orders.errors import DetectionLimit
from headrace.removal.service.orders.free_limits import count_detection
from headrace.removal.service.progress import Pace
from headrace.removal.service.same_result import waive_if_same, waive_sample
from headrace.removal.service.sample import is_sample
from headrace.removal.service.workspace import NotMade, Workspace, forget_leftovers
from headrace.storage import ObjectNotFound, Storage
from headrace.tasks.context import Step, TaskContext
from headrace.tasks.errors import BadResult, Fatal, LeaseLost
from headrace.tasks.isolation.errors import CrashCause, Crashed, HandlerFailed, ProgramBroken
from headrace.tasks.isolation.single import Standalone
from headrace.tasks.registry import TaskType
from headrace.vault import Vault

log = logs.get(__name__)

# A detection that ends with these still lists its candidates.
_LISTED_OUTCOMES = (FailureCode.NO_MARK, FailureCode.NEEDS_REVIEW, FailureCode.AI_LABEL)
_MAX_RESULT_BYTES = 256 * 1024
_LEFT_BEHIND = timedelta(days=1)
_REPORT = TypeAdapter(Report)
_CANDIDATES = TypeAdapter(tuple[Candidate, ...])
_MADE = TypeAdapter(Made)
_LAYOUT_VERSION = 3  # of what steps leave, to be raised when it changes: what another release has left is made again


class Remover:
    """Runs removals. Belongs to the loop it is first used on; leaving it ends its children."""

    def __init__(
        self,
        db: Database,
        storage: Storage,
        scratch: Path,
        config: RemoverConfig | None = None,
        vault: Vault | None = None,
    ) -> None:
        self._db = db
        self._storage = storage
        self._vault = vault  # what opens passwords
        self._config = config or RemoverConfig()
        self._scratch = scratch / "removal"
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._children = Standalone(
            size=self._config.processes + self._config.spare, folder=self._scratch, spare=self._config.spare
        )
        self._confined, self._converting = stage_types(self._config.limits)

    async def __aenter__(self) -> Self:
        longest = timedelta(seconds=len(Stage) * self._config.wall_seconds)
        await asyncio.to_thread(forget_leftovers, self._scratch, older_than=max(_LEFT_BEHIND, 2 * longest))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._children.__aexit__()

    @property
    def pids(self) -> frozenset[int]:
        """The children that are there, for metrics and tests."""
        return self._children.pids

    async def remove(self, context: TaskContext, order: RemovalOrder) -> dict[str, Any]:
        """The handler of the four media types."""
        async with self._job(context, order) as job:
            made = await job.run()
            if is_sample(order.sha256):
                await waive_sample(self._db, context)
            else:
                await waive_if_same(self._db, context, order, made)
            # Others of a batch may still learn the mark from it.
            await self._forget_steps(job, but=None if order.batch_id is None else Names.MATTE)
            return made

    async def _forget_steps(self, job: "_Job", *, but: str | None) -> None:
        """What steps have kept is several times the result, and of no use after it. If the end of the task is lost, the
        next attempt does the steps again."""
        try:
            await job.space.forget_kept(but=but)
        except HeadraceError as exc:  # the sweep finds them
            log.warning("removal.steps_not_removed", task_id=job.context.task_id, error=exc.code)

    async def detect(self, context: TaskContext, order: RemovalOrder) -> dict[str, Any]:
        """The handler of a look: what may be a mark, before anything is paid."""
        async with self._job(context, order) as job:
            async with self._db.transaction() as tx:  # tasks submitted directly are counted here
                try:
                    await count_detection(tx, context.task_id, context.user_id, order.sha256)
                except DetectionLimit as exc:
                    raise failure(FailureCode.UNSUPPORTED, exc.message) from None
            try:
                async with asyncio.timeout(self._config.look_seconds) as limit:
                    return await job.look()
            except TimeoutError:
                if not limit.expired():
                    raise
                raise failure(FailureCode.TOO_LONG) from None

    @asynccontextmanager
    async def _job(self, context: TaskContext, order: RemovalOrder) -> AsyncIterator["_Job"]:
        """Errors of the file reach the user; errors of ours stay in the log."""
        try:
            asset = await self._asset(order.asset_id, context.user_id, order.sha256)
            # Anybody can submit a look, with any payload; by the format it is decided which child opens the file.
            if order.format != (asset.meta_json or {}).get("format"):
                raise failure(FailureCode.UNSUPPORTED)
            async with Workspace(
                self._scratch, self._storage, task_id=context.task_id, user_id=context.user_id
            ) as space:
                try:
                    password = await self._password(asset, context.task_id)
                    yield _Job(self, context, asset, order, space, Pace(asset.media_type, context), password)
                finally:
                    self._children.forget(str(space.folder))
        except (Fatal, Crashed, LeaseLost, ProgramBroken):
            raise
        except NotMade as exc:
            raise failure(FailureCode.UNREADABLE) from exc
        except Exception as exc:
            log.exception("removal.broke_off", task_id=context.task_id, attempt=context.attempt)
            raise Crashed("It broke off here, through no fault of the file.") from exc

    async def _asset(self, asset_id: str, user_id: str, sha256: str | None = None) -> Asset:
        """The file, if it is this user's: a payload may have come from anywhere."""
        async with self._db.transaction(readonly=True) as tx:
            asset = await assets.find_bytes(tx, asset_id)
        if asset is None or asset.user_id != user_id or (sha256 is not None and asset.sha256 != sha256):
            raise failure(FailureCode.ASSET_GONE)
        return asset

    async def _password(self, asset: Asset, task_id: str) -> str | None:
        """What opens the document. It is gone with the end of the task: one that is tried again by hand has none."""
        if not (asset.meta_json or {}).get("encrypted"):
            return None
        async with self._db.transaction(readonly=True) as tx:
            sealed = await passwords.find(tx, task_id)
        if sealed is None:
            raise failure(FailureCode.ENCRYPTED)
        if self._vault is None:
            raise Crashed("This worker has no secret key, and so cannot open the document's password.")
        return passwords.unseal(self._vault, task_id, sealed)

    async def fetch(self, space: Workspace, name: str, asset_id: str, user_id: str) -> None:
        """Bring a user's file into the workspace, as it was when it was uploaded."""
        asset = await self._asset(asset_id, user_id)
        try:
            digest = await space.fetch(name, asset.object_name)
        except ObjectNotFound:
            raise failure(FailureCode.ASSET_GONE) from None
        if digest != asset.sha256:
            raise failure(FailureCode.DAMAGED, "The stored file is not the one that was uploaded.")

    async def batch(
        self, asset: Asset, batch_id: str, *, but: str
    ) -> tuple[list[str], list[tuple[str, dict[str, str]]]]:
        """Other pictures of an order that have the size of this one, no more than can be held at once; and those of
        its tasks that have learnt their mark already, with what these have kept."""
        async with self._db.transaction(readonly=True) as tx:
            siblings = [each for each in await list_batch(tx, batch_id, asset.user_id) if each.task_id != but]
            alike = [each for each in siblings if each.size == size_of(asset.meta_json)]
            learnt = await list_learnt(tx, [each.task_id for each in alike])
        width, height = size_of(asset.meta_json) or (0, 0)
        most = min(MAX_VIEWS, MAX_HELD_BYTES // max(1, 3 * width * height))
        return [each.asset_id for each in alike[:most]], learnt

    async def in_child(self, order: StageOrder, pace: Pace) -> Report:
        """One stage. What is wrong with the file ends the removal; a child that died, the attempt."""
        answer = await self._run(self._confined, payload_of(order), order.stage, pace, tenant=order.folder)
        try:
            return _REPORT.validate_python(answer)
        except ValidationError as exc:  # a child that was taken over may say anything
            raise failure(FailureCode.UNREADABLE) from exc

    async def convert(self, space: Workspace, source: str, result: str, pace: Pace) -> None:
        """Old slides into new ones, or back, as another file of the workspace."""
        order = Conversion(str(space.path(source)), str(space.path(result)))
        await self._run(self._converting, asdict(order), "conversion", pace, tenant=str(space.folder))

    async def _run(self, task_type: TaskType, payload: dict[str, Any], what: str, pace: Pace, *, tenant: str) -> Any:
        """The tenant is one attempt of one task: no child serves two."""
        try:
            return await self._children.run(
                task_type, payload, result_limit=_MAX_RESULT_BYTES, reporter=pace, tenant=tenant
            )
        except Fatal as exc:
            code = CODES.get(str(exc.details.get("code")), FailureCode.UNSUPPORTED)
            raise failure(code, exc.message if code in TELLING else None) from None
        except Crashed as exc:
            if exc.cause is CrashCause.TIME:
                raise failure(FailureCode.TOO_LONG) from exc
            raise
        except BadResult as exc:
            raise failure(FailureCode.UNREADABLE) from exc
        except HandlerFailed as exc:
            log.error("removal.stage_failed", stage=what, error=exc.traceback)
            raise Crashed(f"{what} broke off, through no fault of the file.") from None

    @property
    def results(self) -> ResultFiles:
        return ResultFiles(self._storage)

    async def is_stored(self, name: str) -> bool:
        try:
            await self._storage.size_of(name)
        except ObjectNotFound:
            return False
        return True


@dataclass(slots=True)
class _Job:
    """One attempt of one removal."""

    remover: Remover
    context: TaskContext
    asset: Asset
    order: RemovalOrder
    space: Workspace
    pace: Pace
    password: str | None = field(default=None, repr=False)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)  # by stage
    candidates: tuple[Candidate, ...] = ()

    async def run(self) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for stage in Stage:
            refused: Report | None = None
            async with self.context.step(stage) as step:
                resumed = step.done and await self._resume(stage, step.detail)
                if not resumed:
                    await self.pace.begin(stage)
                    report = await self._stage(stage)
                    if stage is Stage.PREPROCESSING and self.asset.media_type == MediaType.VIDEO:
                        require_as_paid(self.asset.meta_json or {}, report.facts)
                    await self._note(stage, step, report)
                    if report.refused is not None:
                        refused = report
                        if stage is not Stage.DETECTING:  # it has done its part: its candidates are listed
                            raise refusal(report, self.order)
                if stage is Stage.PACKAGING:
                    made = step.detail["result"] if resumed else await self._pack(step)
            if refused is not None:
                raise refusal(refused, self.order)
            if stage is Stage.DETECTING and (code := self.facts[stage].get("refused")) is not None:
                # By an earlier attempt, which is tried again.
                raise refusal(Report(refused=FailureCode(code)), self.order)
        return made

    async def look(self) -> dict[str, Any]:
        """The first two stages, with nothing kept."""
        for stage in (Stage.PREPROCESSING, Stage.DETECTING):
            await self.pace.begin(stage)
            report = await self._stage(stage)
            if report.refused not in (None, *_LISTED_OUTCOMES):
                raise refusal(report, self.order)
            self.candidates = report.candidates
        return {"outcome": report.refused or "FOUND", "candidates": self._listed(), "facts": report.facts}

    def _listed(self) -> list[dict[str, Any]]:
        return [each.as_json() for each in self.candidates]

    async def _stage(self, stage: Stage) -> Report:
        await self._need_files()
        views = []
        if stage is Stage.DETECTING and self.order.batch_id is not None:
            views = await self._need_views(self.order.batch_id)
        stage_order = StageOrder(
            self._order(),
            stage,
            str(self.space.folder),
            earlier=self._earlier(),
            views=views,
            same_mark=self.order.batch_id is not None,
        )
        if self.order.format == Format.PPT and stage in (Stage.DETECTING, Stage.INPAINTING):
            await self._need_converted()
        report = await self.remover.in_child(stage_order, self.pace)
        if Names.CLEANED in report.keeps:
            await self.remover.convert(self.space, self.space.made(Names.CLEANED).name, self._result, self.pace)
            return replace(report, keeps=[self._result])
        return report

    @property
    def _result(self) -> str:
        """The name of the result's file: its ending says what is written."""
        return f"result.{ENDINGS[self.order.output_format]}"

    def _order(self) -> Order:
        order = self.order
        return Order(
            str(self.space.path(Names.SOURCE)),
            str(self.space.path(self._result)),
            media=self.asset.media_type,
            format=order.format,
            output_format=order.output_format,
            frames=order.frames,
            quality=order.quality,
            mode=order.mode,
            hints=tuple(order.hints),
            mask=None if order.mask_asset_id is None else str(self.space.path(Names.MASK)),
            candidates=tuple(order.candidates),
            pages=tuple(order.pages),
            password=self.password,
            break_signature=order.break_signature,
            accept_poor=order.accept_poor,
            ai_label_reason=order.ai_label_reason,
        )

    async def _need_converted(self) -> None:
        if not self.space.has(Names.CONVERTED):
            await self.remover.convert(self.space, Names.SOURCE, Names.CONVERTED, self.pace)

    def _earlier(self) -> dict[str, Any]:
        found = self.facts.get(Stage.DETECTING)
        return {} if found is None else {**found, "candidates": self._listed()}

    async def _need_files(self) -> None:
        wanted = {Names.SOURCE: self.order.asset_id, Names.MASK: self.order.mask_asset_id}
        for name, asset_id in wanted.items():
            if asset_id is not None and not self.space.has(name):
                await self.remover.fetch(self.space, name, asset_id, self.context.user_id)

    async def _need_views(self, batch_id: str) -> list[str]:
        """The mark that the pictures of this order have in common, if one of them has learnt it; or else those of this
        size to learn it from, by the names that they have here."""
        others, learnt = await self.remover.batch(self.asset, batch_id, but=self.context.task_id)
        for task_id, files in learnt:
            if await self.space.restore({Names.MATTE: files[Names.MATTE]}, of=task_id):
                return []
        views = []
        for number, asset_id in enumerate(others):
            try:
                await self.remover.fetch(self.space, f"view.{number}", asset_id, self.context.user_id)
            except Fatal:  # gone: the rest will do
                continue
            views.append(f"view.{number}")
        return views

    async def _note(self, stage: Stage, step: Step, report: Report) -> None:
        """What the step leaves, in storage and in its detail."""
        self.facts[stage] = {**report.facts, "refused": report.refused}
        if stage is Stage.DETECTING:
            self.candidates = report.candidates
        files = await self.space.keep(report.keeps)
        detail = {"facts": self.facts[stage], "files": files, "layout": _LAYOUT_VERSION}
        step.detail = detail | ({"candidates": self._listed()} if stage is Stage.DETECTING else {})

    async def _resume(self, stage: Stage, detail: Any) -> bool:
        """Take up what an earlier attempt left; False if it is not there, and the step has to be done again."""
        if not isinstance(detail, dict) or detail.get("layout") != _LAYOUT_VERSION:
            return False
        if not await self.space.restore(detail["files"]):
            return False
        if stage is Stage.PACKAGING and not await self._is_packed(detail):
            return False
        self.facts[stage] = detail["facts"]
        if "candidates" in detail:
            self.candidates = _CANDIDATES.validate_python(detail["candidates"])
        await self.pace.skip(stage)
        return True

    async def _is_packed(self, detail: dict[str, Any]) -> bool:
        try:
            stored = {key: value for key, value in detail["result"][FIELD].items() if key != "metrics"}
            made = _MADE.validate_python(stored)
        except (KeyError, TypeError, ValidationError):
            return False
        return await self.remover.is_stored(f"result/{made.file.key}")

    async def _pack(self, step: Step) -> dict[str, Any]:
        """Store the result; it becomes the task's with its end."""
        name = self._result
        comparison = self.space.path(Names.COMPARISON)
        made = await self.remover.results.store(
            self.context.task_id,
            self.context.user_id,
            self.space.made(name),
            name=_result_name(self.asset.origin_name, name),
            mime_type=Format(self.order.output_format).mime_type
            if self.order.output_format != self.order.format
            else self.asset.mime_type,
            preview=self.space.made(Names.PREVIEW),
            comparison=self.space.made(Names.COMPARISON) if comparison.exists() else None,
        )
        metrics = {
            "found": len(self.candidates),
            **{key: value for facts in self.facts.values() for key, value in facts.items() if key in _METRICS},
            **self.facts.get(Stage.INPAINTING, {}).get("check", {}),
            **self.facts.get(Stage.PACKAGING, {}).get("check", {}),
            "seconds": self.pace.seconds,
        }
        result = made.as_json(metrics=metrics, outcome="REMOVED")
        step.detail["result"] = result
        return result


_METRICS = frozenset(
    ("score", "covered", "confidence", "computed", "invented", "residue_before", "residue_after", "outline_left",
     "seen_on_flat", "changed_area", "untouched_db", "pages", "removed", "warnings", "frames", "method", "verdict")
)  # fmt: skip


def _result_name(original: str, name: str) -> str:
    stem = original.rpartition(".")[0] or original
    return f"{stem}.clean.{name.rpartition('.')[2]}"
