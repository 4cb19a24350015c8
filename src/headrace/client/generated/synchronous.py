"""The client for programs without an event loop: each verb runs on a loop in a background thread.

Generated from the client with an event loop by `make docs`: do not edit.
"""

from __future__ import annotations  # a verb is called list

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2

from headrace.client.accounts import ApiKeys, Users
from headrace.client.asynchronous import Client
from headrace.client.blocking import Blocking, BlockingClient, BlockingLocks
from headrace.client.bulk import Bulk, Operations
from headrace.client.files import MAX_CONCURRENT_PARTS, Files, OnBytes
from headrace.client.generated.answers import (
    ApiKey,
    Archive,
    AuditEvent,
    AuditProof,
    AuditVerification,
    Balance,
    BulkAction,
    Capabilities,
    Config,
    ConfigKey,
    Deletion,
    Delivery,
    Endpoint,
    EndpointStatistics,
    Entitlement,
    EventType,
    Execution,
    File,
    LedgerEntry,
    LedgerVerification,
    Link,
    Lock,
    LogLine,
    Me,
    MonthsMade,
    Notification,
    Order,
    Ordered,
    OutboxEvent,
    OutboxState,
    Overview,
    Partition,
    Plan,
    Queue,
    QueueRules,
    Quote,
    Removal,
    ResultFile,
    Risk,
    RiskBoard,
    RiskTrace,
    RunWhy,
    Schedule,
    Session,
    Setting,
    Statistics,
    StatisticsStep,
    Step,
    StorageUse,
    Subscription,
    Task,
    TaskType,
    Upload,
    UsedDay,
    User,
    Why,
    Worker,
)
from headrace.client.generated.operators import (
    Archives,
    Audit,
    Configs,
    Deletions,
    Ledger,
    Outbox,
    Partitions,
    Plans,
    Risks,
    Sessions,
    Settings,
)
from headrace.client.inbox import Notifications
from headrace.client.locks import DEFAULT_TTL
from headrace.client.orders import NewSchedule, NewTask
from headrace.client.removals import NewRemoval, Removals
from headrace.client.retrying import RetryPolicy
from headrace.client.schedules import Executions, Schedules
from headrace.client.subscriptions import Payments, Subscriptions
from headrace.client.usage import Usage
from headrace.client.webhooks import NewEndpoint, Webhooks


class SyncUsers(Blocking[Users]):
    """Accounts, for administrators only."""

    def create(
        self,
        username: str,
        *,
        password: str | None = None,
        email: str | None = None,
        role: str = "USER",
        key: str | None = None,
    ) -> User:
        """Create an account. Without a ``password`` one is generated, which is shown only once."""
        return self._loop.run(self._verbs.create(username, password=password, email=email, role=role, key=key))

    def get(self, user_id: str) -> User:
        """One user."""
        return self._loop.run(self._verbs.get(user_id))

    def suspend(self, user_id: str, *, version: int | None = None) -> User:
        """Suspend a user: sessions end and API keys stop working at once."""
        return self._loop.run(self._verbs.suspend(user_id, version=version))

    def reinstate(self, user_id: str, *, version: int | None = None) -> User:
        """Reinstate a suspended user."""
        return self._loop.run(self._verbs.reinstate(user_id, version=version))

    def set_role(self, user_id: str, role: str, *, version: int | None = None) -> User:
        """Set a user's role: ``ADMIN`` or ``USER``."""
        return self._loop.run(self._verbs.set_role(user_id, role, version=version))

    def reset_password(self, user_id: str, *, password: str | None = None, version: int | None = None) -> User:
        """Set a user's password; all their sessions end. A generated one is shown only once."""
        return self._loop.run(self._verbs.reset_password(user_id, password=password, version=version))

    def disable_second_factor(self, user_id: str) -> User:
        """Turn a user's second factor off, when they lost their phone and their recovery codes."""
        return self._loop.run(self._verbs.disable_second_factor(user_id))

    def list(
        self, *, username: str | None = None, status: str | None = None, role: str | None = None
    ) -> Iterator[User]:
        """All users, newest first; by ``username`` at most one."""
        return self._loop.iterate(self._verbs.list(username=username, status=status, role=role))


class SyncApiKeys(Blocking[ApiKeys]):
    """API keys of the caller."""

    def create(
        self, name: str, scopes: Sequence[str], *, expires_at: datetime | None = None, key: str | None = None
    ) -> ApiKey:
        """Create a key, which is shown only once. Requires a session token (``POST /v1/auth/login``) instead of an
        API key.
        """
        return self._loop.run(self._verbs.create(name, scopes, expires_at=expires_at, key=key))

    def get(self, api_key_id: str) -> ApiKey:
        """One key, without the key itself."""
        return self._loop.run(self._verbs.get(api_key_id))

    def revoke(self, api_key_id: str) -> None:
        """Revoke a key."""
        self._loop.run(self._verbs.revoke(api_key_id))

    def list(self) -> Iterator[ApiKey]:
        """Unrevoked keys, newest first."""
        return self._loop.iterate(self._verbs.list())


class SyncBulk(Blocking[Bulk]):
    """Cancel, retry or delete tasks, enable or disable schedules: all that match, in one request."""

    def count(
        self,
        action: str | None = None,
        *,
        status: Sequence[str] | None = None,
        type: str | None = None,
        queue: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        user_id: str | None = None,
    ) -> int:
        """The number of matching tasks to which the action applies, counted up to 100,000."""
        return self._loop.run(
            self._verbs.count(
                action,
                status=status,
                type=type,
                queue=queue,
                created_after=created_after,
                created_before=created_before,
                user_id=user_id,
            )
        )

    def tasks(
        self,
        action: str,
        *,
        expected: int,
        status: Sequence[str] | None = None,
        type: str | None = None,
        queue: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        user_id: str | None = None,
        ids: Sequence[str] | None = None,
        key: str | None = None,
    ) -> BulkAction:
        """Apply ``cancel``, ``retry`` or ``delete`` to every task that matches now. ``expected`` is the confirmed
        number: refused with ``count_grew`` if many more match by now.
        """
        return self._loop.run(
            self._verbs.tasks(
                action,
                expected=expected,
                status=status,
                type=type,
                queue=queue,
                created_after=created_after,
                created_before=created_before,
                user_id=user_id,
                ids=ids,
                key=key,
            )
        )

    def schedules(
        self,
        action: str,
        *,
        expected: int,
        type: str | None = None,
        name: str | None = None,
        user_id: str | None = None,
        ids: Sequence[str] | None = None,
        key: str | None = None,
    ) -> BulkAction:
        """Apply ``enable`` or ``disable`` to every matching schedule."""
        return self._loop.run(
            self._verbs.schedules(action, expected=expected, type=type, name=name, user_id=user_id, ids=ids, key=key)
        )

    def get(self, task_id: str) -> BulkAction:
        """The progress of an action."""
        return self._loop.run(self._verbs.get(task_id))

    def list(self) -> Iterator[BulkAction]:
        """Bulk actions, newest first."""
        return self._loop.iterate(self._verbs.list())


class SyncOperations(Blocking[Operations]):
    """Statistics of the installation, for administrators."""

    def overview(self) -> Overview:
        """Queues, workers and findings at a glance."""
        return self._loop.run(self._verbs.overview())

    def statistics(self, range: str = "hour", *, task_type: str | None = None) -> tuple[StatisticsStep, ...]:
        """Submitted and ended tasks and their durations: the last ``hour``, ``day`` or ``week`` in intervals.

        ``task_type`` narrows the durations to one type.
        """
        return self._loop.run(self._verbs.statistics(range, task_type=task_type))


class SyncFiles(Blocking[Files]):
    """Uploads resume: sending a partly uploaded file again continues its upload. The server finds the partial upload
    by the file's SHA-256, so another program or machine can continue it too.
    """

    def upload(
        self,
        path: Path | str,
        *,
        name: str | None = None,
        strip_location: bool = False,
        at_once: int = MAX_CONCURRENT_PARTS,
        on_progress: OnBytes | None = None,
    ) -> File:
        """Upload a file; large ones in parallel parts. After an interruption the same call resumes."""
        return self._loop.run(
            self._verbs.upload(path, name=name, strip_location=strip_location, at_once=at_once, on_progress=on_progress)
        )

    def send(self, content: bytes, *, name: str, strip_location: bool = False) -> File:
        """Upload bytes in one request."""
        return self._loop.run(self._verbs.send(content, name=name, strip_location=strip_location))

    def begin(
        self,
        name: str,
        size: int,
        *,
        sha256: str | None = None,
        direct: bool = False,
        strip_location: bool = False,
        key: str | None = None,
    ) -> Upload:
        """Begin a multipart upload; parts of a ``direct`` one are sent to the storage, with ``part_links``."""
        return self._loop.run(
            self._verbs.begin(name, size, sha256=sha256, direct=direct, strip_location=strip_location, key=key)
        )

    def get_upload(self, upload_id: str) -> Upload:
        """An open upload with its stored parts."""
        return self._loop.run(self._verbs.get_upload(upload_id))

    def put_part(self, upload_id: str, number: int, content: bytes) -> None:
        """Upload one part. Idempotent."""
        self._loop.run(self._verbs.put_part(upload_id, number, content))

    def part_links(self, upload_id: str, numbers: Sequence[int]) -> dict[int, str]:
        """Links to PUT parts of a direct upload."""
        return self._loop.run(self._verbs.part_links(upload_id, numbers))

    def complete(self, upload_id: str) -> File:
        """Complete the upload and return the file. Idempotent. Waits while the file is inspected."""
        return self._loop.run(self._verbs.complete(upload_id))

    def abort(self, upload_id: str) -> None:
        """Abort an upload."""
        self._loop.run(self._verbs.abort(upload_id))

    def get(self, file_id: str) -> File:
        """One file's metadata."""
        return self._loop.run(self._verbs.get(file_id))

    def list(
        self,
        *,
        media_type: str | None = None,
        name: str | None = None,
        sha256: str | None = None,
        user_id: str | None = None,
    ) -> Iterator[File]:
        """Your files, newest first."""
        return self._loop.iterate(self._verbs.list(media_type=media_type, name=name, sha256=sha256, user_id=user_id))

    def usage(self) -> StorageUse:
        """The storage use and limit."""
        return self._loop.run(self._verbs.usage())

    def download(self, file_id: str, path: Path | str, *, on_progress: OnBytes | None = None) -> File:
        """Download a file to ``path``. Resumable; the file appears only when complete and verified."""
        return self._loop.run(self._verbs.download(file_id, path, on_progress=on_progress))

    def result(self, task_id: str) -> ResultFile:
        """The result file of a task."""
        return self._loop.run(self._verbs.result(task_id))

    def download_result(self, task_id: str, path: Path | str, *, on_progress: OnBytes | None = None) -> ResultFile:
        """Download the result file of a task to ``path``."""
        return self._loop.run(self._verbs.download_result(task_id, path, on_progress=on_progress))

    def link(
        self, file_id: str, *, expires_in: timedelta | None = None, inline: bool = False, preview: bool = False
    ) -> Link:
        """Create a link with which anyone can read the file until it expires."""
        return self._loop.run(self._verbs.link(file_id, expires_in=expires_in, inline=inline, preview=preview))

    def link_result(
        self, task_id: str, *, expires_in: timedelta | None = None, inline: bool = False, preview: bool = False
    ) -> Link:
        """Create a link with which anyone can read the result file of a task until it expires."""
        return self._loop.run(self._verbs.link_result(task_id, expires_in=expires_in, inline=inline, preview=preview))

    def delete(self, file_id: str) -> None:
        """Delete a file; its bytes are removed after a while."""
        self._loop.run(self._verbs.delete(file_id))


class SyncNotifications(Blocking[Notifications]):
    """The inbox of the API key's user."""

    def unread_count(self) -> int:
        """The number of unread notifications; 1000 means 1000 or more."""
        return self._loop.run(self._verbs.unread_count())

    def mark_read(self, notification_id: int) -> Notification:
        """Mark one as read."""
        return self._loop.run(self._verbs.mark_read(notification_id))

    def mark_all_read(self, *, up_to: int | None = None) -> int:
        """Mark all as read, or those up to an id; returns how many were unread."""
        return self._loop.run(self._verbs.mark_all_read(up_to=up_to))

    def language(self) -> str:
        """The language of future notifications."""
        return self._loop.run(self._verbs.language())

    def set_language(self, language: str) -> None:
        """Set the language of future notifications: ``en`` or ``zh``."""
        self._loop.run(self._verbs.set_language(language))

    def follow(self, *, after: int | None = None) -> Iterator[Notification]:
        """Stream notifications from now on, or after an id, for ever. Reconnects after a broken connection."""
        return self._loop.iterate(self._verbs.follow(after=after))

    def list(self, *, unread: bool | None = None) -> Iterator[Notification]:
        """Your notifications, newest first."""
        return self._loop.iterate(self._verbs.list(unread=unread))


class SyncLocks(BlockingLocks):
    """Distributed locks."""

    def acquire(
        self,
        key: str,
        *,
        ttl: timedelta = DEFAULT_TTL,
        wait: timedelta = timedelta(0),
        purpose: str | None = None,
        holder: str | None = None,
        once: str | None = None,
    ) -> Lock:
        """Take a lock, at once or within ``wait`` (at most 30 s). ``lock_held``, a conflict, names the holder.

        Renew it well before ``ttl`` is over, usually after a third. Retries take it once; with ``once``, your own
        idempotency key, also after a restart of your program.
        """
        return self._loop.run(self._verbs.acquire(key, ttl=ttl, wait=wait, purpose=purpose, holder=holder, once=once))

    def renew(self, lock: Lock, *, ttl: timedelta | None = None) -> Lock:
        """Extend a lock to ``ttl`` from now, by default its last TTL; after ``lock_lost``, a conflict, stop the
        guarded work.
        """
        return self._loop.run(self._verbs.renew(lock, ttl=ttl))

    def release(self, lock: Lock) -> Lock:
        """Release a lock; ``lock_lost`` if it was lost before."""
        return self._loop.run(self._verbs.release(lock))

    def force_release(self, key: str, *, user_id: str | None = None) -> Lock:
        """Force-release another user's lock. For administrators."""
        return self._loop.run(self._verbs.force_release(key, user_id=user_id))

    def list(
        self,
        *,
        key: str | None = None,
        holder: str | None = None,
        status: str | None = None,
        user_id: str | None = None,
    ) -> Iterator[Lock]:
        """Present and past holdings of your locks, newest first."""
        return self._loop.iterate(self._verbs.list(key=key, holder=holder, status=status, user_id=user_id))


class SyncRemovals(Blocking[Removals]):
    """Removal orders: quote, order, read."""

    def quote(self, asset_ids: Sequence[str], wanted: NewRemoval | None = None) -> Quote:
        """The present price of an order. Holds no units."""
        return self._loop.run(self._verbs.quote(asset_ids, wanted))

    def order(
        self, asset_ids: Sequence[str], wanted: NewRemoval | None = None, *, key: str | None = None
    ) -> Sequence[Removal]:
        """Order one removal for each file, all or none. Its id is a task id: ``client.wait`` waits for it, and
        ``client.files.download_result`` has the file.
        """
        return self._loop.run(self._verbs.order(asset_ids, wanted, key=key))

    def detect(
        self,
        asset_id: str,
        hints: Sequence[Mapping[str, Any]] = (),
        *,
        password: str | None = None,
        key: str | None = None,
    ) -> Task:
        """Detect watermarks, free of charge: the result of the succeeded task has the candidates."""
        return self._loop.run(self._verbs.detect(asset_id, hints, password=password, key=key))

    def get(self, removal_id: str) -> Removal:
        """One removal with its candidates."""
        return self._loop.run(self._verbs.get(removal_id))

    def return_result(self, removal_id: str) -> Removal:
        """Return a result that is not good, within 24 hours: its units come back. Repeating it changes nothing."""
        return self._loop.run(self._verbs.return_result(removal_id))

    def not_ordered(self) -> Sequence[File]:
        """Uploads among your last fifty files without a removal order."""
        return self._loop.run(self._verbs.not_ordered())

    def comparison(self, removal_id: str) -> bytes:
        """A comparison of before (left) and after (right), as JPEG."""
        return self._loop.run(self._verbs.comparison(removal_id))

    def preview(self, removal_id: str) -> bytes:
        """A preview of the result, as WebP."""
        return self._loop.run(self._verbs.preview(removal_id))

    def held_back(self, removal_id: str) -> bytes:
        """A preview of the result that ``accept_poor`` would buy: before and after as a small JPEG. Available if
        ``held_back`` of the failed removal is set.
        """
        return self._loop.run(self._verbs.held_back(removal_id))

    def list(
        self, *, batch_id: str | None = None, asset_id: str | None = None, user_id: str | None = None
    ) -> Iterator[Removal]:
        """Your removals, newest first."""
        return self._loop.iterate(self._verbs.list(batch_id=batch_id, asset_id=asset_id, user_id=user_id))


class SyncSchedules(Blocking[Schedules]):
    """Schedules."""

    def create(self, schedule: NewSchedule, *, key: str | None = None) -> Schedule:
        """Create a schedule. Retries create one."""
        return self._loop.run(self._verbs.create(schedule, key=key))

    def get(self, schedule_id: str) -> Schedule:
        """One schedule."""
        return self._loop.run(self._verbs.get(schedule_id))

    def update(self, schedule_id: str, *, version: int | None = None, **changes: Any) -> Schedule:
        """Change fields of ``NewSchedule``; with a ``version`` only if it matches.

        Setting ``cron``, ``interval`` or ``run_at`` replaces the others.
        """
        return self._loop.run(self._verbs.update(schedule_id, version=version, **changes))

    def enable(self, schedule_id: str, *, version: int | None = None) -> Schedule:
        """Enable it from now on; times due meanwhile are skipped."""
        return self._loop.run(self._verbs.enable(schedule_id, version=version))

    def disable(self, schedule_id: str, *, version: int | None = None, cancel_pending: bool = False) -> Schedule:
        """Disable it; running and waiting runs continue, unless ``cancel_pending`` ends the waiting ones."""
        return self._loop.run(self._verbs.disable(schedule_id, version=version, cancel_pending=cancel_pending))

    def delete(self, schedule_id: str, *, version: int | None = None) -> None:
        """Delete a schedule and its history. Running runs continue as tasks."""
        self._loop.run(self._verbs.delete(schedule_id, version=version))

    def run(self, schedule_id: str, *, key: str | None = None) -> Execution:
        """Run it once now, beside its own times. Retries run it once."""
        return self._loop.run(self._verbs.run(schedule_id, key=key))

    def upcoming(self, schedule_id: str, *, count: int = 5) -> Sequence[datetime]:
        """The next due times; none while it is disabled."""
        return self._loop.run(self._verbs.upcoming(schedule_id, count=count))

    def preview(
        self,
        *,
        cron: str | None = None,
        interval: int | None = None,
        timezone: str = "UTC",
        after: datetime | None = None,
        count: int = 5,
    ) -> Sequence[datetime]:
        """Due times of a timing before it is saved."""
        return self._loop.run(
            self._verbs.preview(cron=cron, interval=interval, timezone=timezone, after=after, count=count)
        )

    def statistics(self, schedule_id: str) -> Statistics:
        """Statistics of its runs."""
        return self._loop.run(self._verbs.statistics(schedule_id))

    def list(
        self,
        *,
        type: str | None = None,
        enabled: bool | None = None,
        name: str | None = None,
        labels: Mapping[str, str] | None = None,
        user_id: str | None = None,
    ) -> Iterator[Schedule]:
        """Your schedules, newest first; ``name`` is a substring. ``user_id`` is for administrators: one user, or
        ``"*"`` for all.
        """
        return self._loop.iterate(
            self._verbs.list(type=type, enabled=enabled, name=name, labels=labels, user_id=user_id)
        )


class SyncExecutions(Blocking[Executions]):
    """The runs of schedules."""

    def get(self, execution_id: str) -> Execution:
        """One run, with its result or its error and stack."""
        return self._loop.run(self._verbs.get(execution_id))

    def cancel(self, execution_id: str) -> Execution:
        """Cancel a run; a running one receives a stop request and ends soon after. Idempotent."""
        return self._loop.run(self._verbs.cancel(execution_id))

    def why(self, execution_id: str) -> RunWhy:
        """Why a run is not running."""
        return self._loop.run(self._verbs.why(execution_id))

    def list(
        self,
        *,
        schedule_id: str | None = None,
        status: str | Sequence[str] | None = None,
        trigger: str | None = None,
        type: str | None = None,
        due_after: datetime | None = None,
        due_before: datetime | None = None,
        user_id: str | None = None,
    ) -> Iterator[Execution]:
        """Your runs, latest due time first, without results and stacks."""
        return self._loop.iterate(
            self._verbs.list(
                schedule_id=schedule_id,
                status=status,
                trigger=trigger,
                type=type,
                due_after=due_after,
                due_before=due_before,
                user_id=user_id,
            )
        )


class SyncSubscriptions(Blocking[Subscriptions]):
    """Subscriptions."""

    def create(self, plan: str, *, method: str = "NATIVE", auto_renew: bool = True, key: str | None = None) -> Ordered:
        """Order a plan, by id or name; the answer says how to pay. Retries create one order."""
        return self._loop.run(self._verbs.create(plan, method=method, auto_renew=auto_renew, key=key))

    def renew(self, subscription_id: str, *, method: str = "NATIVE", key: str | None = None) -> Ordered:
        """Order the next month."""
        return self._loop.run(self._verbs.renew(subscription_id, method=method, key=key))

    def get(self, subscription_id: str) -> Subscription:
        """One subscription."""
        return self._loop.run(self._verbs.get(subscription_id))

    def cancel(self, subscription_id: str, *, version: int | None = None) -> Subscription:
        """Cancel it: it ends with its period; an unpaid one ends at once."""
        return self._loop.run(self._verbs.cancel(subscription_id, version=version))

    def resume(self, subscription_id: str, *, version: int | None = None) -> Subscription:
        """Undo a cancellation while the period runs."""
        return self._loop.run(self._verbs.resume(subscription_id, version=version))

    def list(self, *, status: str | None = None, user_id: str | None = None) -> Iterator[Subscription]:
        """Your subscriptions, newest first. Administrators may name a user, or ``*``."""
        return self._loop.iterate(self._verbs.list(status=status, user_id=user_id))


class SyncPayments(Blocking[Payments]):
    """Orders and payments."""

    def get(self, order_id: str) -> Order:
        """One order."""
        return self._loop.run(self._verbs.get(order_id))

    def check(self, order_id: str) -> Order:
        """Query WeChat Pay about the order now."""
        return self._loop.run(self._verbs.check(order_id))

    def refund(self, order_id: str, *, reason: str) -> Order:
        """Refund the whole payment. For administrators; retries make one refund."""
        return self._loop.run(self._verbs.refund(order_id, reason=reason))

    def resolve(self, order_id: str, *, reason: str) -> Order:
        """Mark its ``problem`` as resolved. For administrators."""
        return self._loop.run(self._verbs.resolve(order_id, reason=reason))

    def list(self, *, status: str | None = None, user_id: str | None = None) -> Iterator[Order]:
        """Your orders, newest first. Administrators may name a user, or ``*``."""
        return self._loop.iterate(self._verbs.list(status=status, user_id=user_id))


class SyncUsage(Blocking[Usage]):
    """Usage and remaining quota."""

    def balance(self, *, user_id: str | None = None) -> Balance:
        """The units that you can use now, and until when."""
        return self._loop.run(self._verbs.balance(user_id=user_id))

    def list(
        self,
        *,
        task_id: str | None = None,
        entitlement_id: str | None = None,
        status: str | None = None,
        source: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        user_id: str | None = None,
    ) -> Iterator[LedgerEntry]:
        """Your ledger, newest first: granted units, and those that each task held, used and released."""
        return self._loop.iterate(
            self._verbs.list(
                task_id=task_id,
                entitlement_id=entitlement_id,
                status=status,
                source=source,
                since=since,
                until=until,
                user_id=user_id,
            )
        )

    def days(
        self, *, since: date | None = None, until: date | None = None, user_id: str | None = None
    ) -> tuple[UsedDay, ...]:
        """Units charged and released on each day (UTC): by default the last 30 days, at most 366."""
        return self._loop.run(self._verbs.days(since=since, until=until, user_id=user_id))

    def entitlements(self, *, status: str | None = None, user_id: str | None = None) -> Iterator[Entitlement]:
        """Your entitlements, newest first."""
        return self._loop.iterate(self._verbs.entitlements(status=status, user_id=user_id))

    def entitlement(self, entitlement_id: str) -> Entitlement:
        """One entitlement."""
        return self._loop.run(self._verbs.entitlement(entitlement_id))

    def adjust(self, entitlement_id: str, units: int, *, reason: str, once: str | None = None) -> Entitlement:
        """Add units to a user's quota, or remove remaining ones. For administrators."""
        return self._loop.run(self._verbs.adjust(entitlement_id, units, reason=reason, once=once))


class SyncWebhooks(Blocking[Webhooks]):
    """Webhook endpoints and deliveries."""

    def create(self, endpoint: NewEndpoint, *, key: str | None = None) -> Endpoint:
        """Create an endpoint. Its ``secret`` is shown only once: store it for the receiver."""
        return self._loop.run(self._verbs.create(endpoint, key=key))

    def get(self, endpoint_id: str) -> Endpoint:
        """One endpoint, without its secret."""
        return self._loop.run(self._verbs.get(endpoint_id))

    def update(self, endpoint_id: str, *, version: int | None = None, **changes: Any) -> Endpoint:
        """Change some fields; ``None`` removes a filter (``task_types``, ``allow_ips``)."""
        return self._loop.run(self._verbs.update(endpoint_id, version=version, **changes))

    def delete(self, endpoint_id: str) -> None:
        """Delete an endpoint; waiting deliveries are not sent."""
        self._loop.run(self._verbs.delete(endpoint_id))

    def pause(self, endpoint_id: str) -> Endpoint:
        """Pause sending; events are queued."""
        return self._loop.run(self._verbs.pause(endpoint_id))

    def resume(self, endpoint_id: str) -> Endpoint:
        """Resume sending, oldest deliveries first."""
        return self._loop.run(self._verbs.resume(endpoint_id))

    def rotate_secret(self, endpoint_id: str, *, secret: str | None = None, key: str | None = None) -> Endpoint:
        """Set a new ``secret``, shown only once; the old one signs beside it for a while."""
        return self._loop.run(self._verbs.rotate_secret(endpoint_id, secret=secret, key=key))

    def statistics(self, endpoint_id: str, *, hours: int = 24) -> EndpointStatistics:
        """Statistics of an endpoint."""
        return self._loop.run(self._verbs.statistics(endpoint_id, hours=hours))

    def test(self, endpoint_id: str, *, key: str | None = None) -> Delivery:
        """Send a test event; ``delivery`` has the result."""
        return self._loop.run(self._verbs.test(endpoint_id, key=key))

    def delivery(self, delivery_id: str) -> Delivery:
        """One attempt with its request and response."""
        return self._loop.run(self._verbs.delivery(delivery_id))

    def resend(self, delivery_id: str, *, key: str | None = None) -> Delivery:
        """Resend its event, regardless of the result."""
        return self._loop.run(self._verbs.resend(delivery_id, key=key))

    def resend_failed(self, endpoint_id: str, *, since: datetime, until: datetime | None = None) -> int:
        """Resend all that failed for good in this time range; returns their number. Repeats while more remain."""
        return self._loop.run(self._verbs.resend_failed(endpoint_id, since=since, until=until))

    def deliveries(
        self,
        *,
        endpoint_id: str | None = None,
        event_id: str | None = None,
        event_type: str | None = None,
        status: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        user_id: str | None = None,
    ) -> Iterator[Delivery]:
        """Attempts, newest first."""
        return self._loop.iterate(
            self._verbs.deliveries(
                endpoint_id=endpoint_id,
                event_id=event_id,
                event_type=event_type,
                status=status,
                created_after=created_after,
                created_before=created_before,
                user_id=user_id,
            )
        )

    def list(self, *, status: str | None = None, user_id: str | None = None) -> Iterator[Endpoint]:
        """Your endpoints, newest first."""
        return self._loop.iterate(self._verbs.list(status=status, user_id=user_id))


class SyncSessions(Blocking[Sessions]):
    """The caller's sessions in browsers."""

    def get(self, session_id: str) -> Session:
        """One of your active sessions."""
        return self._loop.run(self._verbs.get(session_id))

    def revoke(self, session_id: str) -> None:
        """End one of your sessions. Ending the session of this request is a logout."""
        self._loop.run(self._verbs.revoke(session_id))

    def revoke_others(self) -> int:
        """End all your sessions but the one of this request."""
        return self._loop.run(self._verbs.revoke_others())

    def list(self) -> Iterator[Session]:
        """Your active sessions, newest first."""
        return self._loop.iterate(self._verbs.list())


class SyncDeletions(Blocking[Deletions]):
    """Deletions of accounts, for administrators."""

    def order(self, user_id: str, *, at_once: bool | None = None) -> Deletion:
        """Request the deletion of a user's account. Idempotent; with `at_once` it begins now. Only an administrator
        can undo it.
        """
        return self._loop.run(self._verbs.order(user_id, at_once=at_once))

    def get(self, user_id: str) -> Deletion:
        """The last deletion of an account, with its progress."""
        return self._loop.run(self._verbs.get(user_id))

    def undo(self, user_id: str) -> User:
        """Undo a deletion that has not begun: the user's former status is restored. Their API keys stay revoked."""
        return self._loop.run(self._verbs.undo(user_id))

    def list(self, *, status: str | None = None) -> Iterator[Deletion]:
        """Deletions of accounts, newest first."""
        return self._loop.iterate(self._verbs.list(status=status))


class SyncPlans(Blocking[Plans]):
    """Plans for sale; ``all`` and the changes are for administrators."""

    def all(self, *, is_active: bool | None = None) -> Iterator[Plan]:
        """All plans, newest first."""
        return self._loop.iterate(self._verbs.all(is_active=is_active))

    def create(
        self,
        name: str,
        price_cents: int,
        monthly_quota: int,
        *,
        currency: str | None = None,
        features: Sequence[Any] | None = None,
        is_active: bool | None = None,
        sort_order: int | None = None,
        key: str | None = None,
    ) -> Plan:
        """Create a plan: a monthly price and units."""
        return self._loop.run(
            self._verbs.create(
                name,
                price_cents,
                monthly_quota,
                currency=currency,
                features=features,
                is_active=is_active,
                sort_order=sort_order,
                key=key,
            )
        )

    def get(self, plan_id: str) -> Plan:
        """One plan."""
        return self._loop.run(self._verbs.get(plan_id))

    def update(self, plan_id: str, *, version: int | None = None, **changes: Any) -> Plan:
        """Change the named fields. Earlier orders and entitlements keep the former values."""
        return self._loop.run(self._verbs.update(plan_id, version=version, **changes))

    def delete(self, plan_id: str, *, version: int | None = None) -> None:
        """Remove a plan that was never used. For a used one, set `is_active` to false instead."""
        self._loop.run(self._verbs.delete(plan_id, version=version))

    def list(self) -> Sequence[Plan]:
        """The plans on offer, in their order. No account is needed."""
        return self._loop.run(self._verbs.list())


class SyncLedger(Blocking[Ledger]):
    """Proof of the ledger, for administrators."""

    def verify(self) -> LedgerVerification:
        """Read the whole ledger and report inconsistencies: for each entitlement total = left + held + committed,
        for each hold its settlement, for each open hold a task that has not ended. Takes seconds for millions of
        entries. Archived months are read by `headrace ledger verify`.
        """
        return self._loop.run(self._verbs.verify())

    def verification(self) -> LedgerVerification | None:
        """The result of the last verification; null before the first. A schedule verifies the ledger every day."""
        return self._loop.run(self._verbs.verification())


class SyncAudit(Blocking[Audit]):
    """The audit trail."""

    def get(self, event_id: str) -> AuditEvent:
        """One event, with both sides of the change."""
        return self._loop.run(self._verbs.get(event_id))

    def prove(self, event_id: str) -> AuditProof:
        """The proof that an event was sealed as it is, which can be checked without Headrace."""
        return self._loop.run(self._verbs.prove(event_id))

    def verify(self, *, month: str | None = None, whole: bool | None = None) -> AuditVerification:
        """Recompute the seals since the last verification, and some earlier ones, from the events, and name the
        first thing that does not fit. The trail tells of it.

        With `whole` it recomputes every seal, which takes seconds for a million events; with `month` those of one
        month. Archived months are read by `headrace audit verify --whole`.
        """
        return self._loop.run(self._verbs.verify(month=month, whole=whole))

    def list(
        self,
        *,
        action: str | None = None,
        resource_type: str | None = None,
        resource_id: str | None = None,
        user_id: str | None = None,
        client_ip: str | None = None,
        request_id: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        q: str | None = None,
        changes: bool | None = None,
    ) -> Iterator[AuditEvent]:
        """Audit events, newest first: the caller's own, or all for administrators. The administrator's read is
        audited.
        """
        return self._loop.iterate(
            self._verbs.list(
                action=action,
                resource_type=resource_type,
                resource_id=resource_id,
                user_id=user_id,
                client_ip=client_ip,
                request_id=request_id,
                created_after=created_after,
                created_before=created_before,
                q=q,
                changes=changes,
            )
        )


class SyncConfigs(Blocking[Configs]):
    """Values that change at run time, for administrators."""

    def keys(self) -> Sequence[ConfigKey]:
        """All keys, with the schema and default of each value."""
        return self._loop.run(self._verbs.keys())

    def get(self, key: str, *, scope: str | None = None, scope_id: str | None = None) -> Config:
        """The value of exactly this scope."""
        return self._loop.run(self._verbs.get(key, scope=scope, scope_id=scope_id))

    def set(
        self,
        key: str,
        value: Any,
        *,
        is_active: bool | None = None,
        scope: str | None = None,
        scope_id: str | None = None,
        version: int | None = None,
    ) -> Config:
        """Set a value for all users, a tenant or a user; the narrower wins. `If-Match: "0"` sets it if there is
        none.
        """
        return self._loop.run(
            self._verbs.set(key, value, is_active=is_active, scope=scope, scope_id=scope_id, version=version)
        )

    def unset(
        self, key: str, *, scope: str | None = None, scope_id: str | None = None, version: int | None = None
    ) -> None:
        """Remove a value: the wider scope's applies then, or the default."""
        self._loop.run(self._verbs.unset(key, scope=scope, scope_id=scope_id, version=version))

    def list(
        self,
        *,
        key: str | None = None,
        scope: str | None = None,
        scope_id: str | None = None,
        is_active: bool | None = None,
    ) -> Iterator[Config]:
        """All set values, newest first."""
        return self._loop.iterate(self._verbs.list(key=key, scope=scope, scope_id=scope_id, is_active=is_active))


class SyncSettings(Blocking[Settings]):
    """The settings in force, for administrators."""

    def list(self) -> Sequence[Setting]:
        """What this deployment has chosen, in the API process that answers. Secrets are hidden."""
        return self._loop.run(self._verbs.list())


class SyncOutbox(Blocking[Outbox]):
    """Events on their way to receivers, for administrators."""

    def state(self) -> OutboxState:
        """The number and age of waiting events, the dead ones, and the relays that are alive."""
        return self._loop.run(self._verbs.state())

    def get(self, outbox_event_id: str) -> OutboxEvent:
        """One event with its data, for as long as it is kept."""
        return self._loop.run(self._verbs.get(outbox_event_id))

    def revive(self, outbox_event_id: str) -> OutboxEvent:
        """Let an event that was given up be tried again. It comes after events of the same thing that were published
        since: receivers who need the order go by `created_at`.
        """
        return self._loop.run(self._verbs.revive(outbox_event_id))

    def revive_all(self, *, type: str | None = None) -> int:
        """Let all events that were given up be tried again, or those of one type."""
        return self._loop.run(self._verbs.revive_all(type=type))

    def list(
        self,
        *,
        status: str | None = None,
        type: str | None = None,
        aggregate_id: str | None = None,
        user_id: str | None = None,
    ) -> Iterator[OutboxEvent]:
        """Everybody's events, newest first; those that were published go after HEADRACE_RETENTION_OUTBOX.

        A page may be short, even empty, without being the last: continue until `next_cursor` is null.
        """
        return self._loop.iterate(
            self._verbs.list(status=status, type=type, aggregate_id=aggregate_id, user_id=user_id)
        )


class SyncArchives(Blocking[Archives]):
    """Archived months, for administrators."""

    def get(self, archive_id: str) -> Archive:
        """One archive, by its id or by its month's name."""
        return self._loop.run(self._verbs.get(archive_id))

    def list(self, *, table: str | None = None, status: str | None = None) -> Iterator[Archive]:
        """Months that have left their table, the last to leave first: their places, contents and hashes."""
        return self._loop.iterate(self._verbs.list(table=table, status=status))


class SyncPartitions(Blocking[Partitions]):
    """Months of tables, for administrators."""

    def make_ahead(self) -> MonthsMade:
        """Make the months that are missing, from this one to three ahead. Running processes do so by themselves,
        too.
        """
        return self._loop.run(self._verbs.make_ahead())

    def list(self) -> Sequence[Partition]:
        """Every month of every table that is kept by months, with its size."""
        return self._loop.run(self._verbs.list())


class SyncRisks(Blocking[Risks]):
    """Known risks, for administrators."""

    def create(
        self,
        category: str,
        severity: str,
        trigger_condition: str,
        mitigation_plan: str,
        owner: str,
        *,
        risk_id: str | None = None,
        status: str | None = None,
        refs: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Risk:
        """Enter a risk into the ledger."""
        return self._loop.run(
            self._verbs.create(
                category,
                severity,
                trigger_condition,
                mitigation_plan,
                owner,
                risk_id=risk_id,
                status=status,
                refs=refs,
                key=key,
            )
        )

    def get(self, risk_id: str) -> Risk:
        """One risk."""
        return self._loop.run(self._verbs.get(risk_id))

    def update(self, risk_id: str, *, version: int | None = None, **changes: Any) -> Risk:
        """Change the named fields."""
        return self._loop.run(self._verbs.update(risk_id, version=version, **changes))

    def delete(self, risk_id: str, *, version: int | None = None) -> None:
        """Delete a risk that was entered in error. Close a resolved one instead: it stays in the ledger."""
        self._loop.run(self._verbs.delete(risk_id, version=version))

    def board(self, *, owner: str | None = None) -> RiskBoard:
        """Numbers of open risks by severity, owner and status."""
        return self._loop.run(self._verbs.board(owner=owner))

    def traces(self, risk_id: str) -> Sequence[RiskTrace]:
        """The newest audit events with the risk's trace ids, at most a hundred."""
        return self._loop.run(self._verbs.traces(risk_id))

    def list(
        self,
        *,
        status: str | Sequence[str] | None = None,
        severity: str | Sequence[str] | None = None,
        category: str | None = None,
        owner: str | None = None,
        trace_id: str | None = None,
    ) -> Iterator[Risk]:
        """Risks, newest first."""
        return self._loop.iterate(
            self._verbs.list(status=status, severity=severity, category=category, owner=owner, trace_id=trace_id)
        )


class SyncClient(BlockingClient):
    """A client of one server with one API key. Its own verbs are about tasks; ``schedules``, ``executions``,
    ``locks``, ``bulk``, ``files``, ``removals``, ``usage``, ``plans``, ``subscriptions``, ``payments``,
    ``webhooks``, ``notifications``, ``users``, ``api_keys`` and ``sessions`` have theirs, and for administrators
    ``operations``, ``deletions``, ``ledger``, ``audit``, ``configs``, ``settings``, ``outbox``, ``archives``,
    ``partitions`` and ``risks``. Submits are idempotent: retries create one task.

    Every verb raises the errors of ``headrace.client.errors``; requests to a busy (429, 503) or unreachable
    server are retried first, with growing pauses.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout: timedelta = timedelta(seconds=30),
        retry: RetryPolicy | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(Client(base_url, api_key, timeout=timeout, retry=retry, transport=transport))
        self.schedules = SyncSchedules(self._verbs.schedules, self._loop)
        self.executions = SyncExecutions(self._verbs.executions, self._loop)
        self.locks = SyncLocks(self._verbs.locks, self._loop)
        self.usage = SyncUsage(self._verbs.usage, self._loop)
        self.bulk = SyncBulk(self._verbs.bulk, self._loop)
        self.operations = SyncOperations(self._verbs.operations, self._loop)
        self.plans = SyncPlans(self._verbs.plans, self._loop)
        self.subscriptions = SyncSubscriptions(self._verbs.subscriptions, self._loop)
        self.payments = SyncPayments(self._verbs.payments, self._loop)
        self.webhooks = SyncWebhooks(self._verbs.webhooks, self._loop)
        self.notifications = SyncNotifications(self._verbs.notifications, self._loop)
        self.files = SyncFiles(self._verbs.files, self._loop)
        self.removals = SyncRemovals(self._verbs.removals, self._loop)
        self.users = SyncUsers(self._verbs.users, self._loop)
        self.api_keys = SyncApiKeys(self._verbs.api_keys, self._loop)
        self.sessions = SyncSessions(self._verbs.sessions, self._loop)
        self.deletions = SyncDeletions(self._verbs.deletions, self._loop)
        self.ledger = SyncLedger(self._verbs.ledger, self._loop)
        self.audit = SyncAudit(self._verbs.audit, self._loop)
        self.configs = SyncConfigs(self._verbs.configs, self._loop)
        self.settings = SyncSettings(self._verbs.settings, self._loop)
        self.outbox = SyncOutbox(self._verbs.outbox, self._loop)
        self.archives = SyncArchives(self._verbs.archives, self._loop)
        self.partitions = SyncPartitions(self._verbs.partitions, self._loop)
        self.risks = SyncRisks(self._verbs.risks, self._loop)

    def submit(
        self,
        type: str,
        payload: Any = None,
        *,
        title: str | None = None,
        queue: str | None = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        max_attempts: int | None = None,
        timeout: timedelta | None = None,
        limit_key: str | None = None,
        labels: Mapping[str, str] | None = None,
        key: str | None = None,
    ) -> Task:
        """Submit one task. With your own ``key`` it is submitted once even if your program restarts."""
        return self._loop.run(
            self._verbs.submit(
                type,
                payload,
                title=title,
                queue=queue,
                priority=priority,
                run_at=run_at,
                max_attempts=max_attempts,
                timeout=timeout,
                limit_key=limit_key,
                labels=labels,
                key=key,
            )
        )

    def submit_many(self, tasks: Sequence[NewTask], *, key: str | None = None) -> Sequence[str]:
        """Submit tasks in this order; returns their ids. Each thousand is accepted completely or not at all.

        An error after a part was accepted has those ids in ``details["submitted_ids"]``. After a temporary error
        (``Exhausted``, ``Unavailable``), the same call with the key in ``details["key"]`` continues within a day;
        otherwise submit the rest in a new call.
        """
        return self._loop.run(self._verbs.submit_many(tasks, key=key))

    def get(self, task_id: str) -> Task:
        """One task, with its payload and its result."""
        return self._loop.run(self._verbs.get(task_id))

    def steps(self, task_id: str, *, failed: bool = False) -> Sequence[Step]:
        """The steps of every attempt, or only ``failed`` ones, in their order."""
        return self._loop.run(self._verbs.steps(task_id, failed=failed))

    def why(self, task_id: str) -> Why:
        """Why a task is not running."""
        return self._loop.run(self._verbs.why(task_id))

    def logs(self, task_id: str) -> Iterator[LogLine]:
        """Ends of attempts and log lines of the handler, oldest first."""
        return self._loop.iterate(self._verbs.logs(task_id))

    def queues(self) -> Sequence[Queue]:
        """Waiting and running tasks of each queue."""
        return self._loop.run(self._verbs.queues())

    def workers(self) -> Sequence[Worker]:
        """Workers that have not ended. For administrators."""
        return self._loop.run(self._verbs.workers())

    def task_types(self) -> Sequence[TaskType]:
        """All registered task types."""
        return self._loop.run(self._verbs.task_types())

    def me(self) -> Me:
        """The user and credentials of this client."""
        return self._loop.run(self._verbs.me())

    def capabilities(self) -> Capabilities:
        """What this installation offers the caller: its version, limits and public configs."""
        return self._loop.run(self._verbs.capabilities())

    def event_types(self) -> Sequence[EventType]:
        """All event types for webhooks and brokers."""
        return self._loop.run(self._verbs.event_types())

    def follow(self, task_id: str) -> Iterator[Task]:
        """Yield the task now and after every change; the last one has ended and is complete.

        Uses server-sent events, or polling where a proxy does not pass them.
        """
        return self._loop.iterate(self._verbs.follow(task_id))

    def cancel(self, task_id: str, *, version: int | None = None) -> Task:
        """Cancel a task; a running one is asked to stop and ends soon after. With a ``version`` only if it matches."""
        return self._loop.run(self._verbs.cancel(task_id, version=version))

    def retry(self, task_id: str, *, version: int | None = None) -> Task:
        """Retry a failed or canceled task."""
        return self._loop.run(self._verbs.retry(task_id, version=version))

    def delete(self, task_id: str) -> None:
        """Delete an ended task."""
        self._loop.run(self._verbs.delete(task_id))

    def pause(self, queue: str, *, create: bool = False) -> QueueRules:
        """Pause a queue; ``create`` allows an unknown one. For administrators."""
        return self._loop.run(self._verbs.pause(queue, create=create))

    def resume(self, queue: str) -> QueueRules:
        """Resume a paused queue. For administrators."""
        return self._loop.run(self._verbs.resume(queue))

    def limit(self, queue: str, max_running: int | None, *, create: bool = False) -> QueueRules:
        """Limit a queue's concurrently running tasks; None for no limit. For administrators."""
        return self._loop.run(self._verbs.limit(queue, max_running, create=create))

    def list(
        self,
        *,
        status: str | Sequence[str] | None = None,
        type: str | None = None,
        queue: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        user_id: str | None = None,
        title: str | None = None,
        labels: Mapping[str, str] | None = None,
        key: str | None = None,
        error: str | None = None,
    ) -> Iterator[Task]:
        """Your tasks, newest first, without payloads and results; fetched page by page.

        ``user_id`` is for administrators: one user, or ``"*"`` for all. ``title`` and ``error`` are substrings of
        the title and of the error's code or message; ``key`` is the idempotency key of the submission.
        """
        return self._loop.iterate(
            self._verbs.list(
                status=status,
                type=type,
                queue=queue,
                created_after=created_after,
                created_before=created_before,
                user_id=user_id,
                title=title,
                labels=labels,
                key=key,
                error=error,
            )
        )
