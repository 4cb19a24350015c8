"""Errors of webhooks."""

from headrace.errors import Conflict, Exhausted, Invalid, NotFound


class EndpointNotFound(NotFound):
    """There is no such endpoint."""

    code = "webhook_endpoint_not_found"


class DeliveryNotFound(NotFound):
    """There is no such delivery."""

    code = "webhook_delivery_not_found"


class EndpointInvalid(Invalid):
    """A property of the endpoint is not valid."""

    code = "webhook_endpoint_invalid"


class SecretInvalid(Invalid):
    """A secret is whsec_ and 24 to 64 bytes in base64, as it was shown when the endpoint was created."""

    code = "webhook_secret_invalid"


class EndpointUrlTaken(Conflict):
    """There is an endpoint with this URL already: change that one, or delete it first."""

    code = "webhook_url_taken"


class TooManyEndpoints(Exhausted):
    """You have reached the maximum number of endpoints: delete one first."""

    code = "too_many_webhook_endpoints"


class EndpointNotActive(Conflict):
    """Nothing is sent to this endpoint now: resume it first."""

    code = "webhook_endpoint_not_active"


class DeliveryUnderWay(Conflict):
    """This event is being sent to this endpoint already: wait for the outcome."""

    code = "webhook_delivery_under_way"
