"""From settings to tasks: what their verbs work with, and the limits of users."""

from headrace.assembly.files import file_config
from headrace.assembly.followers import followers
from headrace.settings import Settings
from headrace.tasks.caps import Caps
from headrace.tasks.catalog import StoredCatalog
from headrace.tasks.service import Tasks
from headrace.tasks.submit import SubmitConfig, Submitter


def open_tasks(chosen: Settings) -> Tasks:
    """What the verbs of tasks work with, in a process that does not have the programs' code."""
    catalog, following = StoredCatalog(lifetime=chosen.task_type_lifetime), followers(file_config(chosen))
    return Tasks(Submitter(catalog, following, submit_config(chosen)), catalog, following, user_caps(chosen))


def submit_config(chosen: Settings) -> SubmitConfig:
    return SubmitConfig(payload_limit=chosen.task_payload_limit, idempotency_lifetime=chosen.idempotency_lifetime)


def user_caps(chosen: Settings) -> Caps:
    return Caps(
        priority=chosen.user_priority,
        attempts=chosen.user_attempts,
        timeout=chosen.user_timeout,
        delay=chosen.user_delay,
        payload_bytes=chosen.user_payload_limit,
        open_tasks=chosen.user_open_tasks,
        lanes=chosen.user_lanes,
        schedules=chosen.user_schedules,
        schedule_interval=chosen.user_schedule_interval,
    )
