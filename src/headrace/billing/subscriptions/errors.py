"""Errors of subscriptions."""

from headrace.errors import Conflict, NotFound


class SubscriptionNotFound(NotFound):
    """There is no such subscription."""

    code = "subscription_not_found"


class AlreadySubscribed(Conflict):
    """You have this plan already: renew the subscription instead of ordering it again."""

    code = "already_subscribed"


class SubscriptionEnded(Conflict):
    """This subscription has ended: subscribe again."""

    code = "subscription_ended"


class SubscriptionUnpaid(Conflict):
    """This subscription is not paid yet: pay its order, or cancel it and subscribe again."""

    code = "subscription_unpaid"
