"""A child process: ``python -P -m headrace.tasks.isolation WORKER_PID network|no-network files|no-files FOLDER SOCKET
[SOCKET]``. The folder may be empty text; the first socket is for messages, the second for open files, of which only
``no-files`` needs any.
"""

import gc

# Until the first task: loaded modules never become garbage, and collecting takes an eighth of the time.
gc.disable()

import socket  # noqa: E402
import sys  # noqa: E402

from headrace.tasks.isolation.child import main  # noqa: E402
from headrace.tasks.isolation.sandbox import Powers  # noqa: E402

_, _worker, _network, _reading, _folder, *_passed = sys.argv
_sockets = [socket.socket(fileno=int(each)) for each in _passed]
for _each in _sockets:
    # Passing it on made it inheritable; what a handler starts must not hold the connection.
    _each.set_inheritable(False)
main(
    _sockets[0],
    _sockets[1] if len(_sockets) > 1 else None,
    int(_worker),
    Powers(network=_network == "network", files=_reading == "files", folder=_folder),
)
