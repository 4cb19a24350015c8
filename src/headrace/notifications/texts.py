"""Texts of notifications. A text may name fields of its event's payload; a missing field becomes an empty string."""

from collections.abc import Mapping
from typing import Any

from headrace.notifications.model import Language, NotificationType

_MAX_TITLE_LENGTH = 128
_MAX_BODY_LENGTH = 2000

_TEXTS: Mapping[NotificationType, Mapping[Language, tuple[str, str]]] = {
    NotificationType.TASK_SUCCEEDED: {
        "en": ("Your {kind} is ready{title}", "Task {task_id} has succeeded. The result is kept for a limited time."),
        "zh": ("您的{kind}已处理完成{title}", "任务 {task_id} 已成功完成。结果将保留一段时间，请及时下载。"),
    },
    NotificationType.TASK_FAILED: {
        "en": (
            "Your {kind} could not be processed{title}",
            "Task {task_id} has failed: {reason} Nothing was charged for it.",
        ),
        "zh": ("您的{kind}处理失败{title}", "任务 {task_id} 失败：{reason}本次未扣费。"),
    },
    NotificationType.QUOTA_REACHED: {
        "en": ("{percent} % of your units are used", "{left} of {total} units are left until {until}."),
        "zh": ("您的额度已使用 {percent}%", "{until} 前还剩 {left} / {total} 个单位。"),
    },
    NotificationType.SUBSCRIPTION_ACTIVATED: {
        "en": ("Your subscription is active", "Your subscription is active until {until}."),
        "zh": ("您的订阅已生效", "您的订阅已生效，有效期至 {until}。"),
    },
    NotificationType.SUBSCRIPTION_EXPIRING: {
        "en": ("Your subscription is about to end", "Your subscription ends on {until}. Renew it to keep your quota."),
        "zh": ("您的订阅即将到期", "您的订阅将于 {until} 到期，请及时续订以保留额度。"),
    },
}
_KINDS: Mapping[str, Mapping[Language, str]] = {
    "IMAGE": {"en": "image", "zh": "图片"},
    "VIDEO": {"en": "video", "zh": "视频"},
    "PDF": {"en": "PDF", "zh": "PDF"},
    "PPT": {"en": "presentation", "zh": "演示文稿"},
}
_ANY_KIND: Mapping[Language, str] = {"en": "task", "zh": "任务"}
_COLON: Mapping[Language, str] = {"en": ": ", "zh": "："}
_STOP: Mapping[Language, str] = {"en": ".", "zh": "。"}


def write(type_: NotificationType, language: Language, payload: Mapping[str, Any]) -> tuple[str, str]:
    """Title and body."""
    if "batch_id" in payload:
        return _write_batch(language, payload)
    title, body = _TEXTS[type_][language]
    facts = _Facts(
        task_id=str(payload.get("task_id", "")),
        title=_COLON[language] + str(payload["title"]) if payload.get("title") else "",
        kind=_KINDS.get(str(payload.get("type")), _ANY_KIND)[language],
        reason=_sentence(payload.get("error_message") or payload.get("error_code"), language),
        until=str(payload.get("period_end") or payload.get("expire_at") or payload.get("renews_at") or "")[:10],
        percent=str(payload.get("percent", "")),
        left=str(payload.get("left", "")),
        total=str(payload.get("total", "")),
    )
    return title.format_map(facts)[:_MAX_TITLE_LENGTH], body.format_map(facts)[:_MAX_BODY_LENGTH]


_BATCH: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "title": "Your {n} files are processed",
        "succeeded": "{n} ready",
        "needs_input": "{n} waiting for your decision",
        "failed": "{n} failed",
    },
    "zh": {
        "title": "您的 {n} 个文件已处理完",
        "succeeded": "{n} 个已完成",
        "needs_input": "{n} 个等待您确认",
        "failed": "{n} 个失败",
    },
}
_COMMA: Mapping[Language, str] = {"en": ", ", "zh": "，"}


def _write_batch(language: Language, payload: Mapping[str, Any]) -> tuple[str, str]:
    """How the files of a batch ended; a count of zero is left out."""
    words = _BATCH[language]
    ends = [words[name].format(n=payload[name]) for name in ("succeeded", "needs_input", "failed") if payload.get(name)]
    return words["title"].format(n=payload.get("total", "")), _COMMA[language].join(ends) + _STOP[language]


class _Facts(dict[str, str]):
    def __missing__(self, _: str) -> str:
        return ""


def _sentence(reason: object, language: Language) -> str:
    """The failure reason as a sentence; a handler wrote it, so it may be any text."""
    if not reason:
        return ""
    text = str(reason).strip()
    return text if text.endswith((".", "。", "!", "?")) else f"{text}{_STOP[language]}"
