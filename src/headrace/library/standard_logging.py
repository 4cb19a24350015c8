"""Sends our log lines through the standard library's loggers, which the embedding program configures."""

import structlog

from headrace import logs


def use_standard_logging() -> None:
    """Send log lines to ``logging.getLogger("headrace…")``, unless the program has configured structlog.

    By default structlog would print them to the program's standard output.
    """
    if structlog.is_configured():
        return
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            logs.hide_secrets,
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(key_order=["event"]),
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
