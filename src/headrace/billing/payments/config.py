"""Configuration of payments: the merchant and its orders."""

from dataclasses import dataclass, field
from datetime import timedelta

WECHATPAY_URL = "https://api.mch.weixin.qq.com"


@dataclass(frozen=True, slots=True)
class WeChatPayConfig:
    """A merchant of WeChat Pay. Answers and notices are verified with WeChat Pay's public key (``public_key``), or with
    its certificates, which are fetched."""

    mch_id: str
    app_id: str
    cert_serial: str
    private_key: str = field(repr=False)  # PEM
    api_v3_key: str = field(repr=False)
    notify_url: str
    public_key: str | None = None  # PEM
    public_key_id: str | None = None
    base_url: str = WECHATPAY_URL
    timeout: timedelta = timedelta(seconds=10)

    def __post_init__(self) -> None:
        if len(self.api_v3_key.encode()) != 32:
            raise ValueError("the APIv3 key of a merchant has 32 characters")
        if (self.public_key is None) != (self.public_key_id is None):
            raise ValueError("the public key of WeChat Pay and its id go together")


@dataclass(frozen=True, slots=True)
class OrderConfig:
    """How long an order can be paid, how many of a user's may wait, and how often WeChat Pay is queried."""

    lifetime: timedelta = timedelta(minutes=30)
    max_waiting: int = 5
    check_every: timedelta = timedelta(minutes=1)
