"""The audit trail: actor, action, resource and origin, written in the transaction of the change.

This package exports what recording needs; reading, sealing, proving and importing have their own modules.
"""

from headrace.audit.accounts import local_account as local_account
from headrace.audit.model import ANONYMOUS as ANONYMOUS
from headrace.audit.model import SYSTEM as SYSTEM
from headrace.audit.model import Action as Action
from headrace.audit.model import ActorType as ActorType
from headrace.audit.model import EventId as EventId
from headrace.audit.model import Principal as Principal
from headrace.audit.model import PrincipalType as PrincipalType
from headrace.audit.model import Resource as Resource
from headrace.audit.model import ResourceType as ResourceType
from headrace.audit.model import Who as Who
from headrace.audit.record import record as record
from headrace.audit.record import record_read as record_read
