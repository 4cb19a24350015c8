"""Who did what, to what, from where: one trail, written in the transaction of the change that it tells of.

What everybody needs to record is here; reading, sealing, proving and importing have modules of their own.
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
