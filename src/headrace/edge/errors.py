"""Errors of the edge itself."""

from datetime import timedelta

from headrace.errors import Conflict, Exhausted, Invalid, Unavailable


class InvalidCursor(Invalid):
    """This cursor is unknown or was altered: start again without one."""

    code = "invalid_cursor"


class InvalidIdempotencyKey(Invalid):
    """An Idempotency-Key has 1 to 128 letters, digits or characters of . _ ~ : + / = @ - and is sent once."""

    code = "invalid_idempotency_key"


class IdempotencyKeyReused(Invalid):
    """This Idempotency-Key was used for another request: use a new key for each new request."""

    code = "idempotency_key_reused"


class IdempotencyInProgress(Conflict):
    """The first request with this Idempotency-Key is still running: send it again in a moment."""

    code = "idempotency_in_progress"
    retry_after = timedelta(seconds=1)


class IdempotencyAnswerLost(Conflict):
    """This request succeeded, but its answer can no longer be read, because the secret key of Headrace was changed."""

    code = "idempotency_answer_lost"


class InvalidIfMatch(Invalid):
    """If-Match takes one strong entity tag of an ETag header, such as "7", or an asterisk."""

    code = "invalid_if_match"


class RateLimited(Exhausted):
    """Too many requests: wait for the time in Retry-After."""

    code = "rate_limited"


class TooManyAtOnce(Exhausted):
    """Too many changes of this user are under way: send fewer at once."""

    code = "too_many_at_once"


class TooManyOpenBodies(Exhausted):
    """You are sending too many request bodies at once: wait until some have arrived."""

    code = "too_many_open_bodies"


class TooManyConnections(Exhausted):
    """Too many connections from this address are busy: wait until some requests end."""

    code = "too_many_connections"


class ServerBusy(Unavailable):
    """The server is at its limit of concurrent requests: try again in a moment."""

    code = "server_busy"


class RequestTooSlow(Invalid):
    """The request took too long to arrive."""

    code = "request_too_slow"


class BodyTooLarge(Invalid):
    """The request body exceeds the limit of this route."""

    code = "body_too_large"


class UnsupportedMediaType(Invalid):
    """Send the body as JSON, with Content-Type: application/json."""

    code = "unsupported_media_type"


class UnstorableText(Invalid):
    """Text must be valid Unicode without the character U+0000."""

    code = "unstorable_text"


class NumberOutOfRange(Invalid):
    """A number is too large or too small to be stored."""

    code = "number_out_of_range"


class InvalidJson(Invalid):
    """The body is not valid JSON."""

    code = "invalid_json"
