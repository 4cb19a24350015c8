"""WeChat Pay, and renewal of subscriptions."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, ClassVar, Self

from pydantic import Field, HttpUrl, SecretStr, model_validator

from headrace.settings.kinds import Duration, Group, setting

_TOGETHER = (
    "wechatpay_mch_id",
    "wechatpay_app_id",
    "wechatpay_cert_serial",
    "wechatpay_private_key_file",
    "wechatpay_api_v3_key",
)


class PaymentsSettings(Group):
    title: ClassVar[str] = "Payments"

    wechatpay_mch_id: str | None = setting("The merchant's number at WeChat Pay; unset, payments are off.", None)
    wechatpay_app_id: str | None = setting("The AppID that the merchant is bound to.", None)
    wechatpay_cert_serial: str | None = setting("The serial number of the merchant's API certificate.", None)
    wechatpay_private_key_file: Path | None = setting("The merchant's private key (apiclient_key.pem).", None)
    wechatpay_api_v3_key: SecretStr | None = setting("The merchant's APIv3 key, of 32 characters.", None)
    wechatpay_public_key_id: str | None = setting(
        "The id of WeChat Pay's public key (PUB_KEY_ID_…), for merchants that have one. Without it WeChat Pay is "
        "verified by its certificates, which are fetched.",
        None,
    )
    wechatpay_public_key_file: Path | None = setting("WeChat Pay's public key (pub_key.pem).", None)
    wechatpay_notify_url: HttpUrl | None = setting(
        "The URL for WeChat Pay's notices; by default HEADRACE_API_PUBLIC_URL with the path "
        "/v1/payments/wechat/notify.",
        None,
    )
    wechatpay_base_url: HttpUrl = setting("The URL of WeChat Pay's API.", HttpUrl("https://api.mch.weixin.qq.com"))
    payment_order_lifetime: Annotated[Duration, Field(ge=timedelta(minutes=1), le=timedelta(hours=2))] = setting(
        "How long an order can be paid.", timedelta(minutes=30)
    )
    subscription_grace_days: Annotated[int, Field(ge=0, le=365)] = setting(
        "How many days a subscription waits for its renewal after its period (PAST_DUE).", 7
    )
    subscription_notice_days: Annotated[int, Field(ge=1, le=28)] = setting(
        "How many days before the end of a subscription its user is notified; the free plan's units of the next month "
        "are granted as long before it begins.",
        3,
    )

    @model_validator(mode="after")
    def _check_payments(self) -> Self:
        missing = [name for name in _TOGETHER if getattr(self, name) is None]
        if missing and len(missing) < len(_TOGETHER):
            raise ValueError(f"WeChat Pay needs all of {', '.join(_TOGETHER)} or none: {missing[0]} is missing")
        if (self.wechatpay_public_key_id is None) != (self.wechatpay_public_key_file is None):
            raise ValueError("wechatpay_public_key_id and wechatpay_public_key_file go together: set both or none")
        if self.wechatpay_api_v3_key and len(self.wechatpay_api_v3_key.get_secret_value().encode()) != 32:
            raise ValueError("wechatpay_api_v3_key must have 32 characters")
        return self
