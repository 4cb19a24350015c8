"""Who removes what when an account goes."""

from collections.abc import Callable, Sequence

from headrace.accounts.deletion.credentials import ForgetCredentials
from headrace.admin.bulk.erasure import ForgetBulkActions
from headrace.assets.erasure import ForgetFiles
from headrace.assets.service import Files
from headrace.billing.erasure import EndSubscriptions
from headrace.configs.erasure import ForgetConfigs
from headrace.erasure import Eraser
from headrace.locks.erasure import ForgetLocks
from headrace.notifications.erasure import ForgetNotifications
from headrace.removal.service.erasure import ForgetRemovals
from headrace.schedules.erasure import ForgetSchedules
from headrace.tasks.erasure import CancelTasks, EraseTasks
from headrace.tasks.service import Tasks
from headrace.webhooks.erasure import ForgetWebhooks


def erasers(tasks: Tasks, files: Callable[[], Files]) -> Sequence[Eraser]:
    """The erasers of a deleted account, in this order: first its running work, last its credentials."""
    return [
        ForgetWebhooks(),
        ForgetSchedules(),
        CancelTasks(tasks),
        ForgetFiles(files),
        ForgetRemovals(),
        EraseTasks(),
        ForgetBulkActions(),
        EndSubscriptions(),
        ForgetLocks(),
        ForgetNotifications(),
        ForgetConfigs(),
        ForgetCredentials(),
    ]
