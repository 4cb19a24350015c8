"""What must hold of webhooks and notifications."""

from tests.attack.model import Invariant

WEBHOOKS = [
    Invariant(
        "the attempts of an event at an endpoint are numbered from 1 without a gap, and one at the most is open",
        ("webhook_deliveries",),
        """
        SELECT endpoint_id, event_id, array_agg(attempt || ' ' || status ORDER BY attempt) AS attempts
        FROM headrace.webhook_deliveries
        GROUP BY endpoint_id, event_id
        HAVING min(attempt) <> 1 OR max(attempt) <> count(*) OR count(*) FILTER (WHERE status = 'PENDING') > 1
        """,
    ),
    Invariant(
        "what is open in the record is in the queue, and what is in the queue is open",
        ("webhook_queue", "webhook_deliveries"),
        """
        SELECT attempt.delivery_id, attempt.status, queue.id
        FROM (
          SELECT * FROM headrace.webhook_deliveries
          WHERE status IN ('PENDING', 'RETRYING')
        ) AS attempt
        FULL JOIN headrace.webhook_queue AS queue ON queue.delivery_id = attempt.delivery_id
        WHERE attempt.delivery_id IS NULL OR queue.id IS NULL OR queue.is_pending <> (attempt.status = 'PENDING')
        """,
    ),
    Invariant(
        "exactly endpoints that are active or paused have interests",
        ("webhook_endpoints", "event_interests"),
        """
        SELECT endpoint.id, endpoint.status FROM headrace.webhook_endpoints AS endpoint
        WHERE (endpoint.status <> 'DISABLED' AND endpoint.deleted_at IS NULL) <> EXISTS (
          SELECT FROM headrace.event_interests AS interest
          WHERE interest.consumer = 'webhooks' AND interest.key = endpoint.id)
        """,
    ),
    Invariant(
        "a deleted endpoint keeps no secret",
        ("webhook_endpoints",),
        """
        SELECT id FROM headrace.webhook_endpoints
        WHERE deleted_at IS NOT NULL AND (secret_ciphertext <> '' OR secret_previous_ciphertext IS NOT NULL)
        """,
    ),
    Invariant(
        "what is known of an endpoint's health is of one that is there",
        ("webhook_health",),
        """
        SELECT health.endpoint_id FROM headrace.webhook_health AS health
        JOIN headrace.webhook_endpoints AS endpoint ON endpoint.id = health.endpoint_id
        WHERE endpoint.deleted_at IS NOT NULL
        """,
    ),
]

NOTIFICATIONS = [
    Invariant(
        "nobody is told of one event twice",
        ("notifications",),
        """
        SELECT event_id, user_id, type FROM headrace.notifications
        WHERE event_id IS NOT NULL GROUP BY event_id, user_id, type HAVING count(*) > 1
        """,
    ),
]
