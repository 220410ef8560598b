"""Removes from a text what identifies a person or one machine: paths, users, hosts, addresses, serial numbers.

It is for free text only, such as messages. Names of operators and cases are checked by their form. Redacting a redacted
text changes nothing, so a reader can check whether a file was redacted.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PATH, USER, HOST, ADDRESS, SERIAL = "<path>", "<user>", "<host>", "<address>", "<serial>"

# Names that do not identify anyone, and the length below which a name looks like any other word.
_COMMON_NAMES = frozenset({"root", "user", "admin", "runner", "build", "guest", "nobody", "localhost", "local", "home"})
_SHORTEST = 3

# The last part of a path stays if it is the name of a source file or a library: it says where an error is from.
_KEPT = r"[\w+-]+\.(?:py|pyi|pyx|c|cc|cpp|cxx|h|hpp|hh|m|mm|metal|metallib|cu|cuh|so|dylib|swift|yaml)\b"
# Below a home a path may hold blanks.
_PART = r"(?:[^/\s\"'<>|:]|'(?=\w))+"
_HOMES = re.compile(
    rf"(?:file:/*)?(?:/private)?/(?:Users|home|Volumes)/(?:{_PART}(?:\ {_PART})*/)*(?:[^/\s\"'<>|:,;)\]]|'(?=\w))*"
)
_PATHS = re.compile(r"(?:file:/*|(?<![\w:/.<>])(?:~[\w.-]*)?)/(?P<rest>[^\s\"'<>|:,;()\[\]{}]+)")
_TILDE = re.compile(r"(?<![\w~])~[\w.-]*/[^\s\"'<>|:,;()\[\]{}]*")
_WINDOWS = re.compile(r"(?<!\w)[A-Za-z]:\\[^\s\"'<>|]+")
_NAME = re.compile(rf"^{_KEPT}")

_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*")
_LOCAL_HOST = re.compile(r"(?<![\w.])[\w-]+(?:\.[\w-]+)*\.(?:local|lan|home|internal|localdomain|corp)\b")
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])")
_HARDWARE = re.compile(r"(?<![\w:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![\w:])")
_IPV6 = re.compile(
    r"(?<![\w:.])(?:(?:[0-9A-Fa-f]{1,4}:){4,7}:?[0-9A-Fa-f]{1,4}|[0-9A-Fa-f]{1,4}::(?:[0-9A-Fa-f]{1,4}:)*[0-9A-Fa-f]{1,4})(?![\w:])"
)
_UUID = re.compile(r"(?<!\w)[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}(?!\w)")
_SERIAL = re.compile(r"(?i)(?P<word>serial[\s_-]*(?:number|no\.?)?[\s\"']*[:=]\s*[\"']?)(?P<number>(?!<)[^\s\"',;<]+)")


@dataclass(frozen=True)
class PrivateNames:
    """Names of persons, hosts and folders to remove; folders are whole paths, such as the home."""

    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    @classmethod
    def of_this_machine(cls) -> PrivateNames:
        """The user, the host and the folders of this process."""
        home = Path.home()
        users = [home.name, *(os.environ.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER"))]
        users += [_user(), *_full_names()]
        host = socket.gethostname()
        folders = [str(home), str(Path.cwd()), tempfile.gettempdir(), str(Path(tempfile.gettempdir()).resolve())]
        return cls(_identifying(users), _identifying([host, host.partition(".")[0]]), tuple(dict.fromkeys(folders)))

    @cached_property
    def _words(self) -> tuple[tuple[re.Pattern[str], str], ...]:
        named = ((self.users, USER), (self.hosts, HOST))
        return tuple((pattern, mark) for names, mark in named if (pattern := _any_of(names)) is not None)

    @cached_property
    def _folders(self) -> re.Pattern[str] | None:
        folders = sorted((folder for folder in self.folders if len(folder) > 1), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, folders)) + r"(?=$|\W)") if folders else None


NO_NAMES = PrivateNames()


def redacted(text: str, private: PrivateNames = NO_NAMES) -> str:
    """The text on one line, with marks such as `<path>` for what was removed; names of source files stay."""
    if not text.isprintable():
        text = "".join(character if character.isprintable() else " " for character in text)
    text = " ".join(text.split())
    if private._folders is not None:
        text = private._folders.sub("/Users/x", text)  # as any other home: the rest of the path goes too
    text = _HOMES.sub(_without_folders, text)
    text = _WINDOWS.sub(PATH, text)
    text = _TILDE.sub(_without_folders, text)
    text = _PATHS.sub(_without_folders, text)
    for pattern in (_MAIL, _HARDWARE, _IPV6, _IPV4):
        text = pattern.sub(ADDRESS, text)
    text = _LOCAL_HOST.sub(HOST, text)
    text = _UUID.sub(SERIAL, text)
    text = _SERIAL.sub(lambda match: match["word"] + SERIAL, text)
    for pattern, mark in private._words:
        text = pattern.sub(mark, text)
    return text


def message_of(text: str, private: PrivateNames, longest: int) -> str:
    """The redacted text, cut to a length, and redacted again because a cut may expose a name."""
    clean = redacted(text, private)
    return clean if len(clean) <= longest else redacted(clean[:longest], private)[:longest]


def is_private(text: str) -> bool:
    """Whether redaction would remove something from the text."""
    return redacted(text) != text


def _without_folders(match: re.Match[str]) -> str:
    last = match.group().rpartition("/")[2]
    return f"{PATH}{last}" if _NAME.match(last) else PATH


def _any_of(names: Iterable[str]) -> re.Pattern[str] | None:
    listed = sorted(names, key=len, reverse=True)
    if not listed:
        return None
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, listed))})(?![^\W_])", re.IGNORECASE)


def _identifying(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(n for n in names if len(n) >= _SHORTEST and n.lower() not in _COMMON_NAMES))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # no such user, as in a container
        return ""


def _full_names() -> list[str]:
    """The name that the system shows for the user, and its parts."""
    try:
        import pwd

        shown = pwd.getpwuid(os.getuid()).pw_gecos.partition(",")[0].strip()
    except (KeyError, ImportError):
        return []
    return [shown, *(part for part in shown.split() if part[0].isupper())] if shown else []
