"""``headrace up --pay-locally``: a WeChat Pay on this machine beside the API, so that buying can be tried."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic import HttpUrl, SecretStr

from headrace.billing.payments.local.keys import LocalKeys, keys_in
from headrace.billing.payments.local.server import local_payments
from headrace.settings import PREFIX, BadSettings, Settings

_FOLDER = "pay-locally"


@dataclass(frozen=True, slots=True)
class Paying:
    """The settings and environment of the processes, and the page where a developer pays."""

    settings: Settings
    environment: Mapping[str, str]
    url: str | None = None


@asynccontextmanager
async def paying(chosen: Settings, api_url: str, *, locally: bool) -> AsyncIterator[Paying]:
    """The settings as they are; or the server, started, and settings that name it."""
    if not locally:
        yield Paying(chosen, {})
        return
    if chosen.wechatpay_mch_id is not None:
        raise BadSettings(
            "--pay-locally stands in for WeChat Pay, and the settings name a real merchant: unset HEADRACE_WECHATPAY_…"
        )
    folder = (chosen.data_dir / _FOLDER).resolve()
    keys = keys_in(folder)
    async with local_payments(keys) as running:
        overrides = _settings(keys, str(folder), running.url, api_url)
        update = {
            **overrides,
            "wechatpay_api_v3_key": SecretStr(keys.api_v3_key),
            "wechatpay_private_key_file": folder / "merchant_key",
            "wechatpay_public_key_file": folder / "platform_public_key",
            "wechatpay_notify_url": HttpUrl(overrides["wechatpay_notify_url"]),
            "wechatpay_base_url": HttpUrl(overrides["wechatpay_base_url"]),
        }
        environment = {f"{PREFIX}{name.upper()}": value for name, value in overrides.items()}
        yield Paying(chosen.model_copy(update=update), environment, running.url)


def _settings(keys: LocalKeys, folder: str, url: str, api_url: str) -> dict[str, str]:
    """As a worker in a process of its own reads them from its environment."""
    return {
        "wechatpay_mch_id": keys.mch_id,
        "wechatpay_app_id": keys.app_id,
        "wechatpay_cert_serial": keys.merchant_serial,
        "wechatpay_private_key_file": f"{folder}/merchant_key",
        "wechatpay_api_v3_key": keys.api_v3_key,
        "wechatpay_public_key_id": keys.public_key_id,
        "wechatpay_public_key_file": f"{folder}/platform_public_key",
        "wechatpay_notify_url": f"{api_url}/v1/payments/wechat/notify",
        "wechatpay_base_url": url,
    }
