"""What can go wrong with subscriptions."""

from headrace.errors import Conflict, NotFound


class SubscriptionNotFound(NotFound):
    """There is no such subscription."""

    code = "subscription_not_found"


class AlreadySubscribed(Conflict):
    """You have this plan already: renew the subscription instead of ordering it once more."""

    code = "already_subscribed"


class SubscriptionEnded(Conflict):
    """This subscription is over: subscribe anew."""

    code = "subscription_ended"


class SubscriptionUnpaid(Conflict):
    """This subscription is not paid for yet: pay its order, or cancel it and subscribe anew."""

    code = "subscription_unpaid"
