"""Texts of e-mails, in two languages."""

from collections.abc import Mapping
from typing import Literal

from headrace.accounts.model import LinkPurpose

Language = Literal["en", "zh"]

_LINKS: Mapping[LinkPurpose, Mapping[Language, tuple[str, str]]] = {
    LinkPurpose.PASSWORD_RESET: {
        "en": (
            "Reset your password",
            "A new password was requested for your account {username}.\n\n"
            "To choose one, open this link within {minutes} minutes:\n\n{url}\n\n"
            "The link works once. If it was not you, ignore this e-mail: your password stays as it is.\n",
        ),
        "zh": (
            "重置您的密码",
            "有人为您的账户 {username} 申请了新密码。\n\n请在 {minutes} 分钟内打开以下链接设置新密码：\n\n{url}\n\n"
            "该链接只能使用一次。如果不是您本人操作，请忽略此邮件，您的密码不会改变。\n",
        ),
    },
    LinkPurpose.EMAIL_CHANGE: {
        "en": (
            "Confirm your e-mail address",
            "To use this address for your account {username}, open this link within {minutes} minutes:\n\n{url}\n\n"
            "If it was not you, ignore this e-mail.\n",
        ),
        "zh": (
            "确认您的邮箱地址",
            "要将此邮箱用于您的账户 {username}，请在 {minutes} 分钟内打开以下链接：\n\n{url}\n\n"
            "如果不是您本人操作，请忽略此邮件。\n",
        ),
    },
}
_CHANGED: Mapping[Language, tuple[str, str]] = {
    "en": (
        "Your e-mail address was changed",
        "Your account {username} now has another e-mail address. If it was not you, ask the operator for help.\n",
    ),
    "zh": ("您的邮箱地址已更改", "您的账户 {username} 已更换邮箱地址。如果不是您本人操作，请联系管理员。\n"),
}
_PATHS = {LinkPurpose.PASSWORD_RESET: "/reset-password", LinkPurpose.EMAIL_CHANGE: "/confirm-email"}


def link_mail(
    purpose: LinkPurpose, language: Language, *, console_url: str, username: str, token: str, minutes: int
) -> tuple[str, str]:
    """Subject and text. The token is in the fragment, which browsers send to no server."""
    subject, text = _LINKS[purpose][language]
    url = f"{console_url.rstrip('/')}{_PATHS[purpose]}#token={token}"
    return subject, text.format(username=username, minutes=minutes, url=url)


def changed_mail(language: Language, *, username: str) -> tuple[str, str]:
    subject, text = _CHANGED[language]
    return subject, text.format(username=username)
