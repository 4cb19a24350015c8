"""What can go wrong with webhooks."""

from headrace.errors import Conflict, Exhausted, Invalid, NotFound


class EndpointNotFound(NotFound):
    """There is no such endpoint."""

    code = "webhook_endpoint_not_found"


class DeliveryNotFound(NotFound):
    """There is no such delivery."""

    code = "webhook_delivery_not_found"


class EndpointInvalid(Invalid):
    """An endpoint cannot be like this."""

    code = "webhook_endpoint_invalid"


class SecretInvalid(Invalid):
    """A secret is whsec_ and 24 to 64 bytes in base64, as the endpoint showed it when it was made."""

    code = "webhook_secret_invalid"


class EndpointUrlTaken(Conflict):
    """There is an endpoint with this URL already: change that one, or delete it first."""

    code = "webhook_url_taken"


class TooManyEndpoints(Exhausted):
    """There are as many endpoints as one user may have: delete one first."""

    code = "too_many_webhook_endpoints"


class EndpointNotActive(Conflict):
    """Nothing is sent to this endpoint now: resume it first."""

    code = "webhook_endpoint_not_active"


class DeliveryUnderWay(Conflict):
    """This event is being sent to this endpoint already: wait for the outcome."""

    code = "webhook_delivery_under_way"
