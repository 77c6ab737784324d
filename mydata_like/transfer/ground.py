"""The directories of the staging area, as scripts that run in them see it."""

from mydata_like.ssh.capabilities import quote
from mydata_like.ssh.session import Stream
from mydata_like.transfer.protocol import Member
from mydata_like.transfer.sealed import part_name
from mydata_like.transfer.shell import Shells, ancestors, enter, make

DROP = b'rm -f -- "./$t" "./$t.at"'  # what there is of a file under its temporary name


class Ground:
    """Starts scripts in the directories of files; knows which ones it has seen made."""

    def __init__(self, shells: Shells, location: bytes) -> None:
        self._shells = shells
        self._location = location
        self._known: set[bytes] = set()

    def start(self, member: Member, script: bytes, *, patient: bool = True) -> Stream:
        """Start a script in the file's directory, which is made where it is not known.

        The script's `$t` is the file's temporary name. Status 92 is `shell.NO_GROUND`, and 96
        says that the file has no place.
        """
        parent = parent_of(member)
        directories = [] if parent in self._known else ancestors(member.remote)
        into = b"cd -- %b || exit 96; " % quote(b"./" + parent)
        name = b"t=%b; " % part_name(member)
        ground = enter(self._location) + make(directories)
        return self._shells.start(ground + into + name + script, patient=patient)

    def drop(self, member: Member) -> None:
        """Remove what there is of a file under its temporary name."""
        self.start(member, DROP).finish()

    def note(self, member: Member, *, arrived: bool) -> None:
        """Remember whether the file's directory is there."""
        if arrived:
            self._known.add(parent_of(member))
        else:
            self._known.discard(parent_of(member))


def parent_of(member: Member) -> bytes:
    """Return the directory of a file, below the location."""
    return member.remote.rpartition(b"/")[0]
