"""A program for the Python of a host: it hashes files, and gives those that are right their names.

One process does for thousands of files what takes the shell six programs and many steps for each
file: it is four times as fast. Where the host has no Python 3, the shell does the same.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from mydata_like.core.destination_files import Placement, ProvenFile, StoredFile
from mydata_like.ssh.capabilities import quote
from mydata_like.transfer.ssh.host_placing import Answer

# It reads for each file: where it is, its final path or nothing, its mode then, and the checksum
# that it must have to be placed; each is ended by NUL. Folders are opened one below the other, and
# no link is followed. Answers are ended by NUL: a word, and the checksum and attributes, or a
# reason. A file that changes while it is read, or cannot be read, is `gone`.
#
# It has to run with Python 3.6. `O_PATH` needs no permission to list a folder.
_PROGRAM: Final = b"""
import errno, hashlib, os, stat, sys
new = getattr(hashlib, sys.argv[1])
new(b'')
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
FOLDER = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, 'O_PATH', 0)
NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EMLINK}
opened = {}

class Refused(Exception):
    pass

def is_link(name, place):
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=place, follow_symlinks=False).st_mode)
    except OSError:
        return False

def step(place, name, makes):
    try:
        try:
            return os.open(name, FOLDER, dir_fd=place)
        except FileNotFoundError:
            if not makes:
                raise
        try:
            os.mkdir(name, dir_fd=place)
        except FileExistsError:
            pass
        return os.open(name, FOLDER, dir_fd=place)
    except OSError as error:
        raise Refused('link' if is_link(name, place) else error.strerror)

def enter(path, makes):
    if opened.get(makes, ('',))[0] != path:
        if makes in opened:
            os.close(opened.pop(makes)[1])
        place = os.open('.', FOLDER)
        for name in path.split(b'/') if path else ():
            above = place
            try:
                place = step(above, name, makes)
            finally:
                os.close(above)
        opened[makes] = path, place
    return opened[makes][1]

def seen(status):
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev)

def place(name, here, descriptor, before, final, mode):
    folder, _, last = final.rpartition(b'/')
    try:
        there = enter(folder, True)
    except Refused as error:
        return 'folder ' + str(error)
    if before.st_mode & 0o7777 != mode:
        try:
            os.fchmod(descriptor, mode)
        except OSError:
            pass
    try:
        link(name, last, src_dir_fd=here, dst_dir_fd=there, follow_symlinks=False)
    except FileExistsError:
        found = os.stat(last, dir_fd=there, follow_symlinks=False)
        if (found.st_ino, found.st_dev) != (before.st_ino, before.st_dev):
            return 'occupied'
    except OSError as error:
        return 'nolink' if error.errno in NO_LINKS else 'failed ' + error.strerror
    unlink(name, dir_fd=here)
    return ''

def prove(path, final, mode, wanted):
    folder, _, name = path.rpartition(b'/')
    try:
        here = enter(folder, False)
        descriptor = open_file(name, FILE, dir_fd=here)
    except (OSError, Refused):
        return 'gone'
    try:
        before = fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            return 'gone'
        left = before.st_size
        data = read(descriptor, min(left, 1048576))
        checksum = new(data)
        left -= len(data)
        while left > 0:
            data = read(descriptor, min(left, 1048576))
            if not data:
                return 'gone'
            checksum.update(data)
            left -= len(data)
        after = fstat(descriptor)
        attributes = seen(after)
        if attributes != seen(before):
            return 'gone'
        checksum = checksum.hexdigest()
        if final and checksum == wanted.decode():
            failure = place(name, here, descriptor, after, final, int(mode, 8))
            if failure:
                return failure
            attributes = seen(fstat(descriptor))
        return 'proven %s %d %d %d %d' % (checksum, *attributes[:4])
    except OSError:
        return 'gone'
    finally:
        close(descriptor)

open_file, fstat, read, close, link, unlink = (
    os.open, os.fstat, os.read, os.close, os.link, os.unlink
)
values = sys.stdin.buffer.read().split(b'\\0')
for path, final, mode, wanted in zip(*[iter(values)] * 4):
    sys.stdout.buffer.write(prove(path, final, mode, wanted).encode() + b'\\0')
sys.stdout.buffer.write(b'end\\0')
"""


def python_command(program: bytes) -> bytes:
    """Return the command that runs a program."""
    return b"python3 -I -S -c " + quote(program)


_COMMAND: Final = python_command(_PROGRAM)
# Prints `end` if the host can run it.
PROBE: Final = _COMMAND + b" md5 </dev/null 2>/dev/null | tr -d '\\0'"


def write_command(algorithm: str) -> bytes:
    """Return the command that reads `write_input` and prints what `read_answers` reads."""
    return _COMMAND + b" " + quote(algorithm.encode())


def write_input(placements: Sequence[Placement]) -> bytes:
    """Return the input for files that are placed if they have their checksums."""
    return b"".join(
        [
            b"%b\0%b\0%o\0%b\0" % (path, final, mode, checksum.encode())
            for path, final, mode, _, checksum in placements
        ]
    )


def read_answers(output: bytes, placements: Sequence[Placement]) -> Iterator[ProvenFile | Answer]:
    """Yield a proven file, or what prevents that; raises ValueError if the output is cut off."""
    *answers, end, rest = output.split(b"\0")
    if end != b"end" or rest or len(answers) != len(placements):
        raise ValueError("the output is cut off")
    for placement, answer in zip(placements, answers, strict=True):
        word, _, text = answer.partition(b" ")
        if word != b"proven":
            yield Answer(word.decode("ascii", "replace"), text)
            continue
        checksum, size, modified_ns, ctime_ns, inode = text.split(b" ")
        path = placement.final or placement.temporary
        yield ProvenFile(
            StoredFile(path, int(size), int(modified_ns), int(ctime_ns), int(inode)),
            checksum.decode("ascii"),
        )
