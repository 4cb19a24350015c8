"""From settings to payments."""

from pathlib import Path

from headrace import settings
from headrace.billing.maintenance import BillingJobs
from headrace.billing.payments.config import OrderConfig, WeChatPayConfig
from headrace.billing.subscriptions.model import RenewalConfig
from headrace.settings import Settings


def billing_jobs(chosen: Settings) -> BillingJobs:
    """What the schedules of billing work with."""
    return BillingJobs(renewal_config(chosen), wechatpay_config(chosen), order_config(chosen))


def wechatpay_config(chosen: Settings) -> WeChatPayConfig | None:
    """The merchant of the settings; None where nothing can be paid for."""
    key, file = chosen.wechatpay_api_v3_key, chosen.wechatpay_private_key_file
    if not (chosen.wechatpay_mch_id and chosen.wechatpay_app_id and chosen.wechatpay_cert_serial and key and file):
        return None
    public_key = chosen.wechatpay_public_key_file
    return WeChatPayConfig(
        mch_id=chosen.wechatpay_mch_id,
        app_id=chosen.wechatpay_app_id,
        cert_serial=chosen.wechatpay_cert_serial,
        private_key=_pem("WECHATPAY_PRIVATE_KEY_FILE", file),
        api_v3_key=key.get_secret_value(),
        notify_url=_notify_url(chosen),
        public_key=None if public_key is None else _pem("WECHATPAY_PUBLIC_KEY_FILE", public_key),
        public_key_id=chosen.wechatpay_public_key_id,
        base_url=str(chosen.wechatpay_base_url).rstrip("/"),
    )


def order_config(chosen: Settings) -> OrderConfig:
    return OrderConfig(lifetime=chosen.payment_order_lifetime)


def renewal_config(chosen: Settings) -> RenewalConfig:
    return RenewalConfig(grace_days=chosen.subscription_grace_days, notice_days=chosen.subscription_notice_days)


def _notify_url(chosen: Settings) -> str:
    if chosen.wechatpay_notify_url is not None:
        return str(chosen.wechatpay_notify_url)
    if chosen.api_public_url is None:
        raise settings.BadSettings(
            "WeChat Pay has to know where to tell of payments: set HEADRACE_API_PUBLIC_URL or "
            "HEADRACE_WECHATPAY_NOTIFY_URL."
        )
    return f"{str(chosen.api_public_url).rstrip('/')}/v1/payments/wechat/notify"


def _pem(name: str, file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else "it is not text"
        raise settings.BadSettings(f"{settings.PREFIX}{name}: {file} cannot be read: {why}") from None
