"""This installation's config keys, and the settings that clients can read."""

from headrace import __version__
from headrace.configs import keys, registry
from headrace.configs.schemas import AccountsOffer, Limits, Offer
from headrace.notifications.model import LANGUAGE
from headrace.settings import Settings


def config_keys() -> registry.Registry:
    """Every config key there is; a package with keys of its own adds them here."""
    return registry.Registry([*keys.GENERAL, LANGUAGE])


def offer(chosen: Settings) -> Offer:
    """The settings that clients can read."""
    from headrace.edge.paging import MAX_LIMIT  # the web framework comes with it, and commands need only the keys

    return Offer(
        version=__version__,
        accounts=AccountsOffer(
            registration=chosen.registration,
            logins=["password", "wechat"] if chosen.wechat_app_id else ["password"],
            password_min_length=chosen.password_min_length,
            mail=chosen.smtp_host is not None,
            deletion_grace_seconds=int(chosen.account_deletion_grace.total_seconds()),
        ),
        limits=Limits(
            body_bytes=chosen.api_body_limit,
            task_payload_bytes=chosen.task_payload_limit,
            task_result_bytes=chosen.task_result_limit,
            page_items=MAX_LIMIT,
            requests_per_minute=chosen.api_rate_limit,
            requests_at_once=chosen.api_rate_burst,
            idempotency_seconds=int(chosen.idempotency_lifetime.total_seconds()),
        ),
    )
