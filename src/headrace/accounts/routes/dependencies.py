"""Dependencies of these routes."""

from typing import Annotated

from fastapi import Depends, Request

from headrace.access import Caller, Scope
from headrace.accounts.service import Accounts
from headrace.edge.authorization import scoped


async def _accounts(request: Request) -> Accounts:
    accounts = request.state.accounts
    assert isinstance(accounts, Accounts)
    return accounts


AccountsDep = Annotated[Accounts, Depends(_accounts)]
Reader = Annotated[Caller, Depends(scoped(Scope.ACCOUNT_READ))]
Writer = Annotated[Caller, Depends(scoped(Scope.ACCOUNT_WRITE))]
