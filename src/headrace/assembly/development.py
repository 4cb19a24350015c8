"""What `headrace up` permits on a developer's machine, which others cannot reach."""

from ipaddress import ip_address

from headrace.settings import Settings


def for_development(settings: Settings) -> Settings:
    """The same settings, with webhook receivers on this machine and open registration, if the API listens on this
    machine only. Explicit settings stay as they are."""
    behind_proxy = settings.api_public_url is not None or bool(settings.api_trusted_proxies)
    local = _is_loopback(settings.api_host) and not behind_proxy
    chosen: dict[str, object] = {}
    if settings.webhook_local_targets is None:
        chosen["webhook_local_targets"] = local
    if local and "registration" not in settings.model_fields_set:
        chosen["registration"] = "open"
    return settings.model_copy(update=chosen)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
