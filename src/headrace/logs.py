"""Structured logs, one event name per line: readable in a terminal, as JSON otherwise."""

import io
import json
import logging
import sys
import threading
import traceback
from collections.abc import Callable, MutableMapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TextIO, cast

from headrace.errors import HeadraceError
from headrace.visible import make_visible

if TYPE_CHECKING:
    import structlog  # imported with the first log line: most commands log none

Format = Literal["auto", "human", "json"]

# Fields with one of these words in their name are never logged.
_SECRET_WORDS = ("password", "secret", "token", "authorization", "cookie", "api_key")


_chosen: tuple[Literal["human", "json"], str] | None = None
_json_alone = False
_pending: Callable[[], None] | None = None


def configure(*, format: Format = "auto", level: str = "INFO") -> None:  # noqa: A002 - the setting's name
    """Send structlog and the standard library's loggers through one formatter to standard error."""
    global _chosen, _json_alone, _pending  # logging is global as well
    import structlog

    _pending = None
    _json_alone = format == "json"
    human = sys.stderr.isatty() if format == "auto" else format == "human"
    _chosen = "human" if human else "json", level
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S" if human else "iso", utc=not human),
        add_reason,
        hide_secrets,
        _show_controls if human else structlog.processors.format_exc_info,  # JSON has an escape for each
    ]
    render: Any = (
        # Plain tracebacks: the default ones show local variables, and with them keys and request bodies.
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=_visible_traceback)
        if human
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        # A line below the level is dropped before anything is made of it.
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, render],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    # Requests are logged once, by our own middleware, with the request id.
    logging.getLogger("uvicorn.access").handlers[:] = []
    logging.getLogger("uvicorn.access").propagate = False
    for chatty in ("httpx2", "httpcore2", "uvicorn.error"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    logging.getLogger("asyncio").addFilter(_is_news)
    logging.getLogger("asyncpg.pool").addFilter(_in_a_line)


def json_alone() -> bool:
    """Whether JSON was set explicitly: then a long-running process writes nothing else to standard error."""
    return _json_alone


def write(event: str, message: str, *, level: str = "info", **fields: object) -> None:
    """Write one line of JSON at any level: messages of a process that are otherwise shown as text."""
    at = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    line = {"message": message, **fields, "event": event, "level": level, "timestamp": at}
    sys.stderr.write(json.dumps(line, default=str) + "\n")
    sys.stderr.flush()


def write_foreign(lines: str) -> None:
    """Write foreign output as JSON, one object for each line; lines that are JSON objects are unchanged."""
    for line in lines.splitlines():
        if _is_object(line):
            sys.stderr.write(f"{line}\n")
        elif line.strip():
            write("child.printed", line)
    sys.stderr.flush()


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def catch_all() -> None:
    """Write Python's own output to standard error, warnings and uncaught errors, as JSON."""
    logging.captureWarnings(True)

    def uncaught(kind: type[BaseException], error: BaseException | None, trace: Any) -> None:
        text = "".join(traceback.format_exception(kind, error, trace))
        write("process.uncaught", f"{kind.__name__}: {error}", level="error", exception=text)

    sys.excepthook = uncaught
    threading.excepthook = lambda args: uncaught(args.exc_type, args.exc_value, args.exc_traceback)
    sys.unraisablehook = lambda args: uncaught(args.exc_type, args.exc_value, args.exc_traceback)


def configure_later(*, format: Format = "auto", level: str = "INFO") -> None:  # noqa: A002 - the setting's name
    """Configure on the first log line, for commands that rarely log."""
    global _json_alone, _pending
    _json_alone = format == "json"
    _pending = partial(configure, format=format, level=level)
    root = logging.getLogger()
    root.handlers[:] = [_Configuring()]
    root.setLevel(level)


class _Configuring(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        _configure_now()
        logging.getLogger().handle(record)


def _configure_now() -> None:
    if _pending is not None:
        _pending()


def chosen() -> tuple[Literal["human", "json"], str] | None:
    """The format and level of this process, for child processes; None if it was not configured here."""
    return _chosen


def get(name: str) -> "structlog.stdlib.BoundLogger":
    """A logger for one module: ``log = logs.get(__name__)``."""
    return cast("structlog.stdlib.BoundLogger", _Logger(name))


_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}


def _say_nothing(*_: object, **__: object) -> None: ...


class _Logger:
    """A placeholder for structlog's logger until the first line."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._logger: Any = None

    def __getattr__(self, method: str) -> Any:
        if self._logger is None:
            if _pending is not None and not logging.getLogger().isEnabledFor(_LEVELS.get(method, logging.CRITICAL)):
                return _say_nothing
            import structlog

            _configure_now()
            self._logger = structlog.get_logger(self._name)
        return getattr(self._logger, method)


def _is_news(record: logging.LogRecord) -> bool:
    """False for asyncpg's message after a canceled connect, an error set on an abandoned future."""
    return "unexpected connection_lost() call" not in record.getMessage()


def _in_a_line(record: logging.LogRecord) -> bool:
    """Shorten a pool's repeated connection failures, which it logs with a whole stack each time, to one line."""
    if record.exc_info and record.exc_info[1] is not None:
        said = record.getMessage()
        if "connection floor" in said:
            said = "PostgreSQL cannot be reached; trying again"
        record.msg = f"{said} ({type(record.exc_info[1]).__name__})"
        record.args, record.exc_info = (), None
    return True


def add_reason(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add the operator's details of a logged exception, such as the bucket."""
    logged = event.get("exc_info")
    exc = sys.exc_info()[1] if logged is True else logged[1] if isinstance(logged, tuple) else logged
    if isinstance(exc, HeadraceError) and exc.operator_message != exc.message:
        event.setdefault("reason", exc.operator_message)
    return event


def _show_controls(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Escape control characters, which could act on the operator's terminal."""
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = make_visible(value)
    return event


def _visible_traceback(stream: TextIO, exc_info: Any) -> None:
    import structlog

    structlog.dev.plain_traceback(written := io.StringIO(), exc_info)
    stream.write(make_visible(written.getvalue()))


def hide_secrets(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Hide every field whose name contains a secret word."""
    for key in event:
        if any(word in key.lower() for word in _SECRET_WORDS):
            event[key] = "…"
    return event
