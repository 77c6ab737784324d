"""A program for the Python of a host: it writes segments of a manifest again without some files.

It does what `Manifest.withdraw` does otherwise, without sending whole segments to and fro, which
takes most of the time where few of many files have changed.
"""

from typing import Final

# It reads paths, each ended by NUL, and prints `end`. What people check goes first: it never says
# more than what counts. It follows no link, and stops at what it does not expect; all files are
# whole then, and some written again. It has to run with Python 3.6.
WITHDRAW: Final = b"""
import base64, json, os, re, stat, sys
paths = set(sys.stdin.buffer.read().split(b'\\0')[:-1])
gone = paths | {b'./' + path for path in paths}
tokens = {base64.b64encode(path) for path in paths}
ESCAPES = {b'\\\\': b'\\\\', b'n': b'\\n', b'r': b'\\r'}

def fail(error):
    raise error

def read(name, place):
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(name, flags, dir_fd=place), 'rb') as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(name)
        return file.read()

def write(name, place, content):
    part = '.write-' + os.urandom(8).hex()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with open(os.open(part, flags, 0o666, dir_fd=place), 'wb') as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.rename(part, name, src_dir_fd=place, dst_dir_fd=place)
        except BaseException:
            os.unlink(part, dir_fd=place)
            raise
    os.fsync(place)

def find_name(line):
    name = line[line.find(b'  ') + 2 :]
    if line.startswith(b'\\\\'):
        name = re.sub(rb'\\\\([\\\\nr])', lambda found: ESCAPES[found.group(1)], name)
    return name

def withdraw_checksums(name, place):
    content = read(name, place)
    lines = content.split(b'\\n')
    if b'\\\\' in content:
        kept = [line for line in lines if find_name(line) not in gone]
    else:
        kept = [line for line in lines if line[line.find(b'  ') + 2 :] not in gone]
    if len(kept) < len(lines):
        write(name, place, b'\\n'.join(kept))

def withdraw_listed(name, place):
    head, *lines, rest = read(name, place).split(b'\\n')
    facts = json.loads(head.decode())
    if rest or facts['format'] != 1 or facts.get('files', len(lines)) != len(lines):
        raise ValueError(name)
    kept = [line for line in lines if line[2 : line.find(b'"', 2)] not in tokens]
    if len(kept) < len(lines):
        facts['files'] = len(kept)
        write(name, place, b'\\n'.join([json.dumps(facts).encode()] + kept + [b'']))

own = os.open('.mydata-like', os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
for endings, withdraw in ((('.md5', '.sha256'), withdraw_checksums), ('.jsonl', withdraw_listed)):
    for _, _, names, place in os.fwalk('manifest', onerror=fail, dir_fd=own):
        for name in names:
            if name.endswith(endings):
                withdraw(name, place)
sys.stdout.write('end')
"""
