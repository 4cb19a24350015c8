"""Endpoints as audit resources: without the URL, which often is a secret itself."""

from headrace.audit import Resource, ResourceType
from headrace.webhooks.model import Endpoint


def resource_of(endpoint: Endpoint) -> Resource:
    return Resource(ResourceType.WEBHOOK_ENDPOINT, endpoint.id, {"name": endpoint.name, "user_id": endpoint.user_id})
