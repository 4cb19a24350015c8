"""What the kernel takes from a child process before it loads any code of others, without privileges or a dependency.

no new privileges   a program with the setuid bit (sudo, su) runs without it
no capabilities     where the worker is root: those that reach beyond files (modules, tracing, mounts, limits, clocks);
                    with ``files=False`` all of them
no escape           seccomp: no process leaves its group (setsid, setpgid), so that all of them end with the task
no kernel services  seccomp: no namespaces, tracing, keys, BPF, mounts, modules and the like (``DENIED``)
no reach            Landlock: neither memory, environment nor open files of processes outside can be read, the worker's
                    above all, and (Linux 6.12) no signal reaches them; files are as free as before
no files            Landlock, for types with ``files=False``: nothing can be opened, written or run; what Python
                    itself has to read can be read, and what the process was handed open stays usable; in the one
                    folder that its pool may be given it can make and open files whose names it knows, and list none;
                    seccomp: neither mode, owner, times nor attributes of a file change, no process is started, no
                    limit is raised (limits.py)
no network          seccomp, for types with ``network=False``: no socket can be made
a program's own     ``confine_program``, for a program of the system that reads an untrusted file: it can read and run
                    installed files, use one folder freely, and make sockets between its own processes only

Each holds for all that the child starts, and cannot be undone. Where the kernel does not know one, the child runs
without it and says so.
"""

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _SECCOMP_MODE_FILTER = 22, 38, 2
_PR_CAPBSET_DROP, _CAPABILITIES_VERSION = 24, 0x20080522
# net_admin, sys_module, sys_rawio, sys_chroot, sys_ptrace, sys_admin, sys_boot, sys_resource, sys_time, perfmon (which
# may read any process's environment), bpf, checkpoint_restore, mknod; setpcap last, which the others need to go.
_CAPABILITIES = (12, 16, 17, 18, 19, 21, 22, 24, 25, 38, 39, 40, 27, 8)
_SETPCAP = 8
_ALL_CAPABILITIES = (*(number for number in range(64) if number != _SETPCAP), _SETPCAP)

# The same number on every architecture.
_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_RULE_PATH_BENEATH = 1
_ACCESS_EXECUTE, _ACCESS_WRITE_FILE, _ACCESS_READ_FILE, _ACCESS_READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_ACCESS_REFER, _ACCESS_TRUNCATE = 1 << 13, 1 << 14
_ACCESS_OF_FILES = _ACCESS_EXECUTE | _ACCESS_WRITE_FILE | _ACCESS_READ_FILE | _ACCESS_TRUNCATE
# Write, read, remove and make plain files, and truncate them; not list them: a process must know a file's name.
_ACCESS_WORK = _ACCESS_WRITE_FILE | _ACCESS_READ_FILE | 1 << 5 | 1 << 8 | _ACCESS_TRUNCATE
# All but making devices, and running files that it has written.
_OWN = ((1 << 15) - 1) & ~(_ACCESS_EXECUTE | 1 << 6 | 1 << 11)
# All that each version knows of: execute, write, read, list, remove, make and refer; then truncate; then device ioctl.
_ACCESS_ALL = {2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
_NEWEST = max(_ACCESS_ALL)
# Beside Python's own folders: libraries of the system, fonts, time zones; what tells how much memory this process has.
_SYSTEM = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/dev/null", "/dev/urandom", "/proc/self")
# What programs of the system read and run beside that: their settings, fonts, and facts about the machine.
_INSTALLED = (
    "/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache",
    "/etc/libreoffice", "/etc/localtime", "/etc/nsswitch.conf", "/etc/passwd", "/proc/self", "/proc/filesystems",
    "/sys/devices/system/cpu", "/var/cache/fontconfig", "/var/lib/libreoffice", "/var/spool/libreoffice",
)  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_SCOPE_SIGNAL = 1 << 1
_KNOWS_REFER, _KNOWS_SCOPES = 2, 6

_LOAD, _AND, _JUMP_IF_EQUAL, _JUMP_IF_GREATER_OR_EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_ALLOW, _REFUSE, _UNKNOWN_CALL = 0x7FFF0000, 0x00050000 | 13, 0x00050000 | 38  # EACCES, ENOSYS
_CLONE3, _FCHMODAT2, _CLONE_THREAD = 435, 452, 0x10000
_X32 = 0x40000000
_IO_URING_SETUP = 425
# What container engines deny by default: each is a large part of the kernel that no handler needs.
DENIED: dict[str, dict[str, int]] = {
    "x86_64": {
        "ptrace": 101, "syslog": 103, "vhangup": 153, "pivot_root": 155, "adjtimex": 159, "acct": 163,
        "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169,
        "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176,
        "quotactl": 179, "lookup_dcookie": 212, "clock_settime": 227, "kexec_load": 246, "add_key": 248,
        "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298, "name_to_handle_at": 303,
        "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310,
        "process_vm_writev": 311, "kcmp": 312, "finit_module": 313, "kexec_file_load": 320, "bpf": 321,
        "userfaultfd": 323,
    },
    "aarch64": {
        "lookup_dcookie": 18, "umount2": 39, "mount": 40, "pivot_root": 41, "vhangup": 58, "quotactl": 60, "acct": 89,
        "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106, "clock_settime": 112, "syslog": 116,
        "ptrace": 117, "reboot": 142, "sethostname": 161, "setdomainname": 162, "settimeofday": 170, "adjtimex": 171,
        "add_key": 217, "request_key": 218, "keyctl": 219, "swapon": 224, "swapoff": 225, "perf_event_open": 241,
        "name_to_handle_at": 264, "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268,
        "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273, "bpf": 280,
        "userfaultfd": 282, "kexec_file_load": 294,
    },
}  # fmt: skip
# The same numbers on every architecture.
DENIED_EVERYWHERE = {
    "io_uring_setup": _IO_URING_SETUP, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_getfd": 438,
    "mount_setattr": 442, "quotactl_fd": 443,
}  # fmt: skip
# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_NEW_NAMESPACES = 0x20000 | 0x2000000 | 0x4000000 | 0x8000000 | 0x10000000 | 0x20000000 | 0x40000000
_AF_UNIX, _W_OK = 1, 2
_SOCK_STREAM, _SOCK_TYPES = 1, 0xF  # and the bits of a socket's type


@dataclass(frozen=True, slots=True)
class _Machine:
    """Numbers of system calls, which differ by architecture."""

    audit: int
    socket: int
    socketpair: int
    connect: int
    access: int  # the call that asks whether a file may be written, and which of its arguments says so
    access_mode: int
    groups: tuple[int, ...]  # setsid, setpgid
    clone: int
    forks: tuple[int, ...]
    setrlimit: int
    prlimit: int
    attributes: tuple[int, ...]  # what changes mode, owner, times or extended attributes of files, and the root


_ARCHITECTURES = {
    "x86_64": _Machine(
        *(0xC000003E, 41, 53, 42, 21, 1),
        groups=(112, 109),
        clone=56,
        forks=(57, 58),
        setrlimit=160,
        prlimit=302,
        # chmod, fchmod, fchmodat; chown, fchown, lchown, fchownat; utime, utimes, futimesat, utimensat; chroot; xattrs
        attributes=(90, 91, 268, 92, 93, 94, 260, 132, 235, 261, 280, 161, 188, 189, 190, 197, 198, 199),
    ),
    "aarch64": _Machine(
        *(0xC00000B7, 198, 199, 203, 48, 2),
        groups=(157, 154),
        clone=220,
        forks=(),
        setrlimit=164,
        prlimit=261,
        # fchmod, fchmodat; fchownat, fchown; utimensat; chroot; xattrs
        attributes=(52, 53, 54, 55, 88, 51, 5, 6, 7, 14, 15, 16),
    ),
}


@dataclass(frozen=True, slots=True)
class Powers:
    """What a process keeps, if its type does not give it up."""

    network: bool = True
    files: bool = True
    folder: str = ""  # without files: the one place where it can make and open some


def confine(powers: Powers) -> list[str]:
    """Give up what this process does not need. To be called while it has one thread; gives what could not be done."""
    if sys.platform != "linux":
        return ["privileges", "reach"] + ["network"] * (not powers.network) + ["files"] * (not powers.files)
    libc = ctypes.CDLL(None, use_errno=True)
    missing = []
    if not _drop_capabilities(libc, _CAPABILITIES if powers.files else _ALL_CAPABILITIES):
        missing.append("capabilities")
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        missing.append("privileges")
    if not _enter_domain(libc, powers):
        missing += ["reach"] + ["files"] * (not powers.files)
    if not powers.network and not _give_up_sockets(libc):
        missing.append("network")
    if not _stay_in_group(libc, alone=not powers.files):
        missing.append("processes")
    return missing


def _drop_capabilities(libc: ctypes.CDLL, numbers: Sequence[int]) -> bool:
    """Root's: of those it has, and of those that a program which it starts would get back. Whether they are gone."""
    for number in numbers:
        libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)  # refused for who is not root, and has none
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITIES_VERSION, 0))
    sets = ctypes.create_string_buffer(24)
    if libc.capget(header, sets) != 0:
        return False
    # Effective, permitted and inheritable ones, the lower 32 of each first.
    words = list(struct.unpack("=6I", sets.raw[:24]))
    for number in numbers:
        half = number // 32 * 3
        for index in range(half, half + 3):
            words[index] &= ~(1 << number % 32)
    return bool(libc.capset(header, struct.pack("=6I", *words)) == 0)


def confine_program(folder: str) -> list[str]:
    """Give up what a program of the system does not need that is about to take this process's place: see above.

    Gives what could not be done.
    """
    if sys.platform != "linux":
        return ["privileges", "reach", "files", "network"]
    libc = ctypes.CDLL(None, use_errno=True)
    missing = []
    if not _drop_capabilities(libc, _ALL_CAPABILITIES):
        missing.append("capabilities")
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        missing.append("privileges")
    granted = dict.fromkeys(_INSTALLED, _ACCESS_READ_FILE | _ACCESS_READ_DIR | _ACCESS_EXECUTE)
    granted |= dict.fromkeys(_DEVICES, _ACCESS_READ_FILE | _ACCESS_WRITE_FILE)
    if not _enter(libc, {path: rights for path, rights in granted.items() if Path(path).exists()} | {folder: _OWN}):
        missing += ["reach", "files"]
    if not _keep_to_itself(libc):
        missing.append("network")
    if not _stay_in_group(libc, alone=False):
        missing.append("processes")
    return missing


def _enter_domain(libc: ctypes.CDLL, powers: Powers) -> bool:
    """Enter a Landlock domain: a process in it cannot trace, and so not read, a process outside of it."""
    if powers.files:
        # The files' part has to name something. REFER is the one right that a domain takes even if unnamed (renaming
        # from one folder to another), so where files stay free it is named here and granted everywhere.
        return _enter(libc, {"/": _ACCESS_REFER}, governed=_ACCESS_REFER)
    return _enter(libc, _readable() | ({powers.folder: _ACCESS_WORK} if powers.folder else {}))


def _enter(libc: ctypes.CDLL, granted: dict[str, int], governed: int | None = None) -> bool:
    """A domain with these rights, and with no others of those that it governs: all that the kernel knows."""
    version = libc.syscall(_LANDLOCK_CREATE_RULESET, None, 0, _ASK_VERSION)
    if version < _KNOWS_REFER:
        return False
    governed = governed or _ACCESS_ALL[min(version, _NEWEST)]
    attributes = struct.pack("=Q", governed)
    if version >= _KNOWS_SCOPES:
        attributes = struct.pack("=QQQ", governed, 0, _SCOPE_SIGNAL)
    ruleset = libc.syscall(_LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0:
        return False
    try:
        for path, rights in granted.items():
            known = rights & governed if Path(path).is_dir() else rights & governed & _ACCESS_OF_FILES
            if not _grant(libc, ruleset, path, known):
                return False
        return bool(libc.syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def _readable() -> dict[str, int]:
    """What Python has to read when it imports something, with the rights to it."""
    paths = {*_SYSTEM, sys.prefix, sys.base_prefix, sys.exec_prefix, *(entry for entry in sys.path if entry)}
    return {path: _ACCESS_READ_FILE | _ACCESS_READ_DIR for path in sorted(paths) if Path(path).exists()}


def _grant(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> bool:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        rule = struct.pack("=Qi", rights, descriptor)
        return bool(libc.syscall(_LANDLOCK_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0) == 0)
    finally:
        os.close(descriptor)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def _give_up_sockets(libc: ctypes.CDLL) -> bool:
    """Refuse socket(2), and io_uring, which makes sockets without it. Pairs of sockets inside the process stay, if
    they are streams: half a pair of datagrams sends to any named socket, the system's log for one."""
    machine = _ARCHITECTURES.get(platform.machine())
    return machine is not None and _install(
        libc, machine, (*_refused(machine.socket), *_streams_alone(machine.socketpair))
    )


def _keep_to_itself(libc: ctypes.CDLL) -> bool:
    """For a program that does not start without sockets: local ones alone, and none reaches anything.

    Landlock does not know of sockets that are files, so no connection is let through at all. To the question whether
    something may be written the answer is no: so LibreOffice makes its socket in its own folder, not in everybody's.
    """
    machine = _ARCHITECTURES.get(platform.machine())
    if machine is None:
        return False
    return _install(
        libc,
        machine,
        (
            *_refused(machine.connect),
            *_decided(machine.access, machine.access_mode, _W_OK, equal=_REFUSE, other=_ALLOW),
            *_streams_alone(machine.socketpair),
            *_streams_alone(machine.socket),
            *_decided(machine.socket, 0, _AF_UNIX, equal=_ALLOW, other=_REFUSE),
        ),
    )


def _stay_in_group(libc: ctypes.CDLL, *, alone: bool) -> bool:
    """Refuse to leave the process group, by which a task's processes are ended, and the kernel services in ``DENIED``.

    ``alone``: refuse other processes, too, and what Landlock does not govern: changes of a file's mode, owner, times
    and attributes, or of a limit of any process.
    """
    machine = _ARCHITECTURES.get(platform.machine())
    if machine is None:
        return False
    denied = (*machine.groups, *DENIED[platform.machine()].values(), *DENIED_EVERYWHERE.values())
    rules: _Steps = tuple(step for call in denied for step in _refused(call))
    # glibc uses clone where clone3, whose flags no filter can see, is not known.
    rules += ((_JUMP_IF_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _UNKNOWN_CALL))
    rules += _refused_with(machine.clone, _NEW_NAMESPACES)
    if alone:
        refused = (*machine.forks, *machine.attributes, _FCHMODAT2, machine.setrlimit)
        rules += tuple(step for call in refused for step in _refused(call))
        rules += _reading_alone(machine.prlimit)
        rules += (
            (_JUMP_IF_EQUAL, 0, 5, machine.clone),
            (_LOAD, 0, 0, 16),
            (_AND, 0, 0, _CLONE_THREAD),
            (_JUMP_IF_EQUAL, 1, 0, _CLONE_THREAD),
            (_RETURN, 0, 0, _REFUSE),
            (_LOAD, 0, 0, 0),
        )
    return _install(libc, machine, rules)


# Each step: code, how many to skip if true, if false, operand. The number of the call is loaded when a rule begins.
_Steps = tuple[tuple[int, int, int, int], ...]


def _refused(call: int) -> _Steps:
    return ((_JUMP_IF_EQUAL, 0, 1, call), (_RETURN, 0, 0, _REFUSE))


def _refused_with(call: int, flags: int) -> _Steps:
    """Refuse a call with any of these flags in its first argument."""
    return (
        (_JUMP_IF_EQUAL, 0, 5, call),
        (_LOAD, 0, 0, 16),
        (_AND, 0, 0, flags),
        (_JUMP_IF_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _REFUSE),
        (_LOAD, 0, 0, 0),
    )


def _streams_alone(call: int) -> _Steps:
    """Refuse a call that makes sockets of another type, which is its second argument."""
    return (
        (_JUMP_IF_EQUAL, 0, 5, call),
        (_LOAD, 0, 0, 16 + 8),
        (_AND, 0, 0, _SOCK_TYPES),
        (_JUMP_IF_EQUAL, 1, 0, _SOCK_STREAM),
        (_RETURN, 0, 0, _REFUSE),
        (_LOAD, 0, 0, 0),
    )


def _reading_alone(call: int) -> _Steps:
    """Refuse prlimit with new limits: with a pointer, of which both halves are looked at, as its third argument."""
    return (
        (_JUMP_IF_EQUAL, 0, 6, call),
        (_LOAD, 0, 0, 16 + 8 * 2),
        (_JUMP_IF_EQUAL, 0, 2, 0),
        (_LOAD, 0, 0, 16 + 8 * 2 + 4),
        (_JUMP_IF_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _REFUSE),
        (_LOAD, 0, 0, 0),
    )


def _decided(call: int, argument: int, value: int, *, equal: int, other: int) -> _Steps:
    """What becomes of a call by one of its arguments, of which the lower half is looked at."""
    return (
        (_JUMP_IF_EQUAL, 0, 4, call),
        (_LOAD, 0, 0, 16 + 8 * argument),
        (_JUMP_IF_EQUAL, 0, 1, value),
        (_RETURN, 0, 0, equal),
        (_RETURN, 0, 0, other),
    )


def _install(libc: ctypes.CDLL, machine: _Machine, rules: _Steps) -> bool:
    # The architecture is at 4, the number of the call at 0.
    steps = (
        (_LOAD, 0, 0, 4),
        (_JUMP_IF_EQUAL, 1, 0, machine.audit),
        (_RETURN, 0, 0, _REFUSE),
        (_LOAD, 0, 0, 0),
        (_JUMP_IF_GREATER_OR_EQUAL, 0, 1, _X32),
        (_RETURN, 0, 0, _REFUSE),
        *_refused(_IO_URING_SETUP),
        *rules,
        (_RETURN, 0, 0, _ALLOW),
    )
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = _Program(len(steps), ctypes.addressof(code))
    return bool(libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) == 0)
