"""How actions on many rows go."""

from headrace.admin.bulk.store import purge_old
from headrace.purging import Purge

OLD = Purge("bulk_actions", purge_old)
