"""Sends e-mail through an SMTP server, in the background: an answer must not tell by its time whether one was sent.

What waits to be sent is kept in memory only, because a stored link could be read by anyone who reads the database. A
process that stops sends what it has; after a crash the user asks again.
"""

import asyncio
import smtplib
import ssl
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from typing import Any

from headrace import logs
from headrace.accounts.config import MailConfig
from headrace.accounts.errors import MailBusy

log = logs.get(__name__)

_THREADS = 2


class Mailer:
    """E-mails in progress of one process."""

    def __init__(self, config: MailConfig) -> None:
        self.config = config
        self._waiting: set[asyncio.Task[None]] = set()
        # Threads of its own: a mail server that hangs must not take those of uploads and downloads.
        self._threads = ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="headrace-mail")

    def require_room(self) -> None:
        """``MailBusy`` if too much waits."""
        if len(self._waiting) >= self.config.max_waiting:
            raise MailBusy(retry_after=timedelta(minutes=1))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this work in the background. Failures are logged without the address. Call ``require_room`` before the
        change that the e-mail is about, as this does not fail after it."""
        task = asyncio.create_task(self._logged(work))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def close(self) -> None:
        """Wait for the work in progress, as long as one attempt may take; the rest is dropped."""
        if not self._waiting:
            self._threads.shutdown(wait=False, cancel_futures=True)
            return
        _, late = await asyncio.wait(self._waiting, timeout=self.config.timeout.total_seconds())
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def send(self, to: str, subject: str, text: str) -> None:
        """Send one message, with further attempts unless the server refuses it for good."""
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = self.config.sender, to, subject
        message["Date"], message["Message-ID"] = formatdate(), make_msgid(domain=_domain(self.config.sender))
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(text)
        for delay in (*self.config.retry_delays, None):
            try:
                await asyncio.get_running_loop().run_in_executor(self._threads, self._deliver, message)
            except (OSError, smtplib.SMTPException) as exc:
                if delay is None or _is_final(exc):
                    raise
                log.warning("mail.retried", error=type(exc).__name__)
                await asyncio.sleep(delay.total_seconds())
            else:
                return

    async def _logged(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as exc:  # noqa: BLE001 - it runs alone, and the message of some names the address
            log.error("mail.failed", error=type(exc).__name__)

    def _deliver(self, message: EmailMessage) -> None:
        config, timeout = self.config, self.config.timeout.total_seconds()
        context = ssl.create_default_context()
        server = (
            smtplib.SMTP_SSL(config.host, config.port, timeout=timeout, context=context)
            if config.security == "tls"
            else smtplib.SMTP(config.host, config.port, timeout=timeout)
        )
        with server:
            if config.security == "starttls":
                server.starttls(context=context)
            if config.username is not None and config.password is not None:
                server.login(config.username, config.password)
            server.send_message(message)


def _is_final(exc: Exception) -> bool:
    """Whether the server would refuse the same message again."""
    return isinstance(exc, smtplib.SMTPRecipientsRefused | smtplib.SMTPAuthenticationError | ssl.SSLError) or (
        isinstance(exc, smtplib.SMTPResponseException) and exc.smtp_code >= 500
    )


def _domain(sender: str) -> str:
    return sender.rpartition("@")[2].strip("> ") or "localhost"
