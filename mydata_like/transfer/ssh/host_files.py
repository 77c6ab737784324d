"""The files of a destination on a host with a shell: its own programs tell and change them."""

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import chain
from threading import Condition, Thread
from typing import Final

from mydata_like.core.checksums import Algorithm
from mydata_like.core.destination_files import (
    OWN_FOLDER,
    DestinationFiles,
    ListedPart,
    Placement,
    ProvenFile,
    StoredContent,
    StoredFile,
    TreeFolder,
    TreeLink,
    Unpack,
    describe_occupied,
    digest_part,
    divide_listing,
)
from mydata_like.core.errors import (
    Problem,
    RejectedError,
    ServerUnavailableError,
    StagingError,
    TransientError,
    UploaderError,
)
from mydata_like.core.formatting import format_path
from mydata_like.ssh.capabilities import PREAMBLE, HostCapabilities, quote
from mydata_like.ssh.dialing import NO_CHANNEL
from mydata_like.ssh.session import CommandResult, OpenSession, Stream
from mydata_like.transfer.destination_problems import (
    ABSENT,
    absent,
    check_own,
    check_path,
    check_paths,
    describe_link,
    describe_missing,
    describe_refusal,
    destination_error,
    no_folder,
    shorten,
    unreadable,
)
from mydata_like.transfer.ssh.host_placing import (
    ENTER,
    PLACE,
    Answer,
    enter_words,
    read_placing,
    read_tree,
    write_placing,
    write_tree,
)
from mydata_like.transfer.ssh.host_programs import (
    FIND_FORMAT,
    PROBE,
    HostPrograms,
    describe_script,
    name_script,
    parse_attributes,
    parse_descriptions,
    parse_found,
    remove_script,
)
from mydata_like.transfer.ssh.host_python import (
    python_command,
    read_answers,
    write_command,
    write_input,
)
from mydata_like.transfer.ssh.host_tar import read_members
from mydata_like.transfer.ssh.kept_shell import (
    LONGEST,
    MOST_NOISE,
    KeptShell,
    make_nonce,
    unanswered,
)
from mydata_like.transfer.ssh.remote_shell import MARK

Connect = Callable[[], tuple[OpenSession, HostCapabilities]]

_NO_GROUND: Final = 92  # exit status: the location cannot be entered
_AT_ONCE: Final = 500  # files of one process
_BATCH: Final = 4096  # files of one command
_BATCH_BYTES: Final = 2 * 1024 * 1024  # of their paths
_READ: Final = 256 * 1024
_OFFERED: Final = 128 * 1024  # bytes of a tar stream, at least
_NEAR: Final = 0.005  # seconds; from a host that is farther, several connections transfer more
_SMALL: Final = 1024 * 1024  # bytes; the tar of the host packs only smaller files
# Scripts keep the account's own umask, as programs do that it starts.
_BEGIN: Final = b"u=$(umask); " + PREAMBLE + b'umask "$u"; '
# A silent connection counts as broken. While a program works for long, lines of the error output
# keep it alive; the other output must not be mixed with anything. The parent of `sleep` is killed,
# and `sleep` itself holds none of our pipes.
_ALIVE: Final = (
    b"( while sleep 10 >/dev/null 2>&1; do echo >&2 || exit; done ) >/dev/null & alive=$!; "
    b"trap 'kill $alive 2>/dev/null' 0; "
)
_OPEN: Final = (
    b'if [ -e "$w" ] || [ -h "$w" ]; then [ -d "$w" ] || { echo mydata:file; exit; }; '
    b'else [ -n %b ] || { echo "mydata:missing:$(ls -d -- "$w" 2>&1)"; exit; }; '
    b'v=$(mkdir -p -- "$w" 2>&1) || { echo "mydata:refused:$v"; exit; }; fi; '
    b'v=$(cd -P -- "$w" 2>&1) && cd -P -- "$w" || { echo "mydata:refused:$v"; exit; }; '
    # The shell's own printf may not report why it failed.
    b't=./.mydata-probe-%b; v=$( { echo x | cat > "$t"; } 2>&1) && [ -s "$t" ] '
    b'|| { rm -f "$t"; echo "mydata:refused:$v"; exit; }; rm -f "$t"; echo mydata:ready'
)
# `sync -f` and an error of the disk must not end in the other `sync`, which reports no errors.
_SYNC: Final = (
    b'v=$(sync -f . 2>&1) || case $v in *nput/output*|*"o space"*|*uota*) '
    b'echo "mydata:failed:$v"; exit;; *) sync;; esac; echo mydata:ready'
)
_LIST: Final = b"if %b; then find . %b-type f %b; fi; printf 'mydata:end\\n\\0'"
_END: Final = MARK + b"end\n\0"  # other records begin with a digit
_NEW_PART: Final = b"00 ./"  # where an inode ends with two zeros: after about a hundred files
_LONGEST_PART: Final = 1024 * 1024  # bytes
_PRUNE: Final = b"-path ./%b -prune -o " % OWN_FOLDER
# All contents arrive as one file, since `head` may read more of its input than it prints.
_WRITE: Final = (
    b'IFS=; root=$PWD; i=0; links=1; failed=; if %b; then :; else a refused "$v"; exit; fi; '
    b"""T=$PWD/%b; v=$( { cat > "$T"; } 2>&1); s=$(wc -c < "$T" 2>/dev/null | tr -d ' '); """
    b'if [ "$s" != %d ]; then rm -f "$T"; a refused "$v"; exit; fi; '
    b"""f() { n=$1; d=$PWD; U=./%b; if [ "$3" = 0 ]; then : > "$U"; """
    b'else v=$( { tail -c +"$2" "$T" | head -c "$3" > "$U"; } 2>&1); fi; '
    b"""s=$(wc -c < "$U" 2>/dev/null | tr -d ' '); """
    b'if [ "$s" != "$3" ]; then rm -f "$U"; a refused "$v"; return; fi; '
    b'sync "$U" 2>/dev/null || sync; %b; '
    # What is still there has not got its name. Without the first one, no other is written.
    b'[ ! -e "$U" ] || failed=1; rm -f "$U"; sync . 2>/dev/null; '
    b'[ "$i$failed" != 01 ] || { rm -f "$T"; exit 0; }; }; '
    b'%brm -f "$T"; exit 0'
)
_WRITE_ONE: Final = b'cd -- "$root"; i=%d; if %b; then f %b %d %d; else a refused "$v"; fi; '
_NEW: Final = b'p "$U" "$n"'
_REPLACE: Final = (
    b'if [ -d "$n" ]; then a failed "Is a directory"; '
    b'elif v=$(mv -f -- "$U" "$n" 2>&1); then a placed; else a failed "$v"; fi'
)
_NEW_FIRST: Final = b'if [ "$i" = 0 ]; then %b; else %b; fi' % (_NEW, _REPLACE)
_READ_OWN: Final = (
    b'(e=; if %b && n=%b && [ -f "$n" ] && [ ! -h "$n" ]; then printf \'mydata:found\\0\'; '
    b"""{ e=$(cat "$n" 2>&1 >&3) && e= || e=${e:-cat has failed}; } 3>&1; """
    b"else printf 'mydata:missing\\0'; fi; printf '%b:%%s\\0' \"$e\"); "
)
# Answers with the size on the disk, in KiB, and a line of `ls`.
_CONTENT: Final = (
    b'if %b && n=%b && [ -f "$n" ] && [ ! -h "$n" ]; then v=$(ls -lnd -- "$n"); '
    b'b=$(du -k -- "$n"); b=${b%%%%[!0-9]*}; printf \'mydata:%%s:%%s\\0\' "$b" "$v"; '
    b"%bprintf 'data\\0'; exec %b \"$n\"; fi; printf 'mydata:\\0'"
)
# GNU tar reads no holes: it asks the file system for them.
_DATA_ONLY: Final = (
    b"IFS=' '; set -- $v; "
    b'if [ "$((${b:-$5} * 1024 + %d))" -lt "$5" ] && tar --version 2>&1 | '
    b"grep -q 'GNU tar'; then printf 'tar\\0'; "
    b'exec tar -c -S --format=pax --sparse-version=1.0 -f - -- "$n"; fi; ' % _READ
)
_DESCRIBED: Final = re.compile(rb"mydata:(\d*):-([-rwxsStT]{9})\S* +\d+ +\S+ +\S+ +(\d+) ")
# The tar of the host reads the names, not the folders: links and FIFOs become members of no use.
_PACK: Final = b"head -c %d | xargs -0 tar -c -f - 2>/dev/null"
_PACK_TREE: Final = (
    b"if %b; then find . %b\\( -type d -o -type l \\) -print0 2>/dev/null | "
    b"xargs -0 -n %d tar -c -f - --no-recursion 2>/dev/null; fi"
)
_READ_AT_ONCE: Final = 16  # files of ours, which have some megabytes at most
_MODE: Final = (
    b'for f do shift; [ -f "$f" ] && [ ! -h "$f" ] && set -- "$@" "$f"; done; '
    b'[ $# = 0 ] || chmod %o "$@" 2>/dev/null; exit 0'
)
_PART: Final = b".write-"  # the beginning of a temporary name in a folder of ours
_LIST_OWN: Final = (
    b"e=; if %b; then { e=$(find . -type f -print0 2>&1 >&3); } 3>&1; fi; "
    b"printf 'mydata:end\\0%%s' \"$e\""
)
_CLEAR: Final = (
    b'root=$PWD; if %b; then cd -- "$root" && find %b -depth -type d -exec rmdir {} + 2>/dev/null; '
    b"[ ! -d %b ] || echo mydata:left; fi; exit 0"
)
# Folders that the account may not read are omitted, and files may vanish meanwhile.
_HARMLESS: Final = (b"Permission denied", b"No such file or directory", b"not permitted")


class HostFiles(DestinationFiles):
    """The files below a location on a host; see `DestinationFiles`.

    The location is absolute or relative to the account's home. The session is opened at the first
    call, and again after a call that raised `TransientError`. Several commands run over it at once,
    if the host allows that; each listing has a session of its own.
    """

    evidence = "host"
    attributes_complete = True

    def __init__(
        self,
        connect: Connect,
        location: bytes,
        programs: HostPrograms | None = None,
        at_once: int = 2,
    ) -> None:
        """`connect` opens a session and returns what the host has; `programs` are known ones.

        `at_once` is the largest number of commands at once.
        """
        self._connect = connect
        self._location = location
        self._changed = Condition()
        self._running = 0  # commands
        self._most = at_once
        self._session: OpenSession | None = None
        self._capabilities = HostCapabilities("")
        self._programs = programs
        self._listings = 0  # for which to log in
        self._ahead: list[Future[OpenSession]] = []  # these logins
        self._links = True  # until a hard link was refused
        self._shells: list[KeptShell] = []  # of the session, idle
        self._keeps_shells = True

    @property
    def concurrent(self) -> int:  # type: ignore[override]  # it may change
        """The number of commands at once, which is lower once the host has refused one."""
        return self._most

    @property
    def is_near(self) -> bool:
        """See `DestinationFiles`."""
        trip = self._session.network_round_trip if self._session else None
        return trip is not None and trip < _NEAR

    def relocate(self, location: bytes) -> None:
        """Use another folder on the same host, over the same session."""
        self._location = location

    def open(self, *, create: bool) -> None:
        """Check that the destination is a folder that takes files; with `create`, make it."""
        token = secrets.token_hex(8).encode()
        script = _OPEN % (b"1" if create else b"''", token)
        word, _, reason = self._run(script, enter=False).output.partition(MARK)[2].partition(b":")
        match word.strip():
            case b"ready":
                self._find_programs()
            case b"file":
                raise no_folder(self._location)
            case b"missing" | b"refused" if _IN_THE_WAY(reason):
                raise no_folder(self._location)
            case b"missing":
                raise absent(self._location)
            case b"refused":
                raise destination_error(self._location, reason)
            case _:
                raise unanswered()

    def log_in_ahead(self, listings: int) -> None:
        """Log in for as many listings as soon as the session is open, not when they begin."""
        self._listings = listings

    def _log_in_for_listings(self) -> None:
        count, self._listings = self._listings, 0
        for _ in range(count):
            login: Future[OpenSession] = Future()
            self._ahead.append(login)
            Thread(target=self._fulfil, args=(login,), name="login", daemon=True).start()

    def _fulfil(self, login: "Future[OpenSession]") -> None:
        try:
            login.set_result(self._log_in()[0])
        except UploaderError as error:
            login.set_exception(error)

    def _take_login(self) -> OpenSession:
        with self._changed:
            login = self._ahead.pop() if self._ahead else None
        return login.result() if login else self._log_in()[0]

    def list_files(self, folder: bytes) -> Iterator[StoredFile]:
        """Yield the files below a folder as the host finds them."""
        for part in self.list_parts(folder):
            yield from part.read()

    def list_parts(self, folder: bytes) -> Iterator[ListedPart]:
        """Yield the same in parts, of which none is parsed before it is read."""
        if folder:
            check_path(folder)
        if folder.split(b"/")[0] == OWN_FOLDER:
            return
        programs = self._find_programs()
        action = b"-printf " + FIND_FORMAT
        if not programs.prints:
            action = b"-print0 | " + name_script(programs, _AT_ONCE)
        prune = b"" if folder else _PRUNE
        script = ENTER + _LIST % (enter_words(b"w", folder), prune, action)
        top = folder + b"/" if folder else b""
        with closing(self._take_login()) as session:
            nonce, command = _wrap(self._prepare(_ALIVE + script))
            reader = _Reader(session.start(command))
            reader.skip(nonce)
            if programs.prints:
                yield from _read_found(reader, top)
            else:
                yield from divide_listing(self._read_named(reader, top))
            _check_found(reader.finish().errors)

    def _read_named(self, reader: "_Reader", top: bytes) -> Iterator[StoredFile]:
        left: list[bytes] = []
        yield from _read_named(reader, top, left)
        yield from (file for file in self.look(left) if file)

    def look(self, paths: Sequence[bytes]) -> list[StoredFile | None]:
        """Return the attributes of files in the order given."""
        return [file for batch in _split(paths) for file, _, _ in self._ask(batch, b"")]

    def sync(self) -> None:
        """Return once everything that was written before is on stable storage."""
        output = self._run(_ALIVE + _SYNC).output
        if MARK + b"ready" not in output:
            reason = output.partition(b"mydata:failed:")[2]
            if not reason:
                raise unanswered()
            raise destination_error(self._location, reason)

    def prove(self, paths: Sequence[bytes]) -> list[ProvenFile | None]:
        """Let the host hash files; in the order given."""
        if self._find_programs().python:
            answers = self._ask_python([Placement(path, b"") for path in paths])
            return [it if isinstance(it, ProvenFile) else None for it in answers]
        checksum = self._find_checksum()
        return [proven for batch in _split(paths) for proven in self._hash(batch, checksum)]

    def use(self, algorithm: Algorithm) -> None:
        """Compute checksums with this algorithm; raises `StagingError` if no program does."""
        super().use(algorithm)
        self._find_checksum()

    def _find_checksum(self) -> bytes:
        with self._turn():  # logs in, also where the programs are known already
            checksum = self._capabilities.find_checksum(self.algorithm)
        if checksum:
            return checksum
        raise StagingError(
            f"The host has no program that computes {self.algorithm.label} checksums.",
            hint=f"Its administrator can install one: {self.algorithm.program}, or openssl.",
            code="destination.no-checksum",
        )

    def prove_and_place(self, placements: Sequence[Placement]) -> list[ProvenFile | Problem | None]:
        """Prove files, and give those their final names whose bytes are right."""
        if not self._find_programs().python:
            return super().prove_and_place(placements)
        results: list[ProvenFile | Problem | None] = []
        unlinked = []
        for placement, answer in zip(placements, self._ask_python(placements), strict=True):
            if isinstance(answer, ProvenFile):
                results.append(answer if placement.is_right(answer) else None)
                continue
            if answer.word == "nolink":
                unlinked.append(len(results))
            results.append(None if answer.word == "gone" else _judge(placement, answer))
        if unlinked:
            others = super().prove_and_place([placements[at] for at in unlinked])
            for at, result in zip(unlinked, others, strict=True):
                results[at] = result
        return results

    def _ask_python(self, placements: Sequence[Placement]) -> list[ProvenFile | Answer]:
        """Prove and place files by the host's Python."""
        answers: list[ProvenFile | Answer] = []
        for part in _split([it.temporary for it in placements]):
            batch = placements[len(answers) :][: len(part)]
            check_paths([it.final for it in batch if it.final])
            command = self._find_programs().nice + write_command(self.algorithm.value)
            output = self._run(_ALIVE + command, write_input(batch)).output
            try:
                answers += read_answers(output, batch)
            except ValueError as error:
                # The next attempt uses the other programs.
                self._programs = self._find_programs()._replace(python=False)
                raise unanswered() from error
        return answers

    def place(self, placements: Sequence[Placement]) -> list[StoredFile | Problem]:
        """Give temporary files their final names; in the order given."""
        results: list[StoredFile | Problem] = []
        for start in range(0, len(placements), _BATCH):
            results += self._place(placements[start : start + _BATCH])
        return results

    def _place(self, placements: Sequence[Placement]) -> list[StoredFile | Problem]:
        for placement in placements:
            check_path(placement.temporary)
            check_path(placement.final)
        program, order = write_placing(placements, links=self._links)
        answers = read_placing(self._run(b"exec sh -s", program).output, order)
        if answers is None:
            raise TransientError(
                "The host did not report which files it has placed.", code="staging.shell"
            )
        self._links = self._links and not any(answer.word == "moved" for answer in answers)
        finals = [
            placement.final
            for placement, answer in zip(placements, answers, strict=True)
            if answer.word in ("placed", "moved")
        ]
        found = iter(self.look(finals))
        return [
            next(found) or describe_missing(placement.final)
            if answer.word in ("placed", "moved")
            else _judge(placement, answer)
            for placement, answer in zip(placements, answers, strict=True)
        ]

    def set_mode(self, paths: Sequence[bytes], mode: int) -> None:
        """Set the permissions of regular files, as far as the host allows it."""
        for path in paths:
            check_path(path)
        for batch in _split(paths):
            self._run(b"xargs -0 -n %d sh -c %b sh" % (_AT_ONCE, quote(_MODE % mode)), _join(batch))

    def remove(self, paths: Sequence[bytes]) -> None:
        """Remove files below `.mydata-like`; missing ones count as removed."""
        for path in paths:
            check_own(path)
        for batch in _split(paths):
            output = self._run(remove_script(_AT_ONCE), _join(batch)).output
            if MARK in output:
                raise destination_error(OWN_FOLDER, output.partition(MARK)[2])

    def read(self, path: bytes) -> bytes | None:
        """Return the content of a file below `.mydata-like`; None if it is missing."""
        return next(self.read_all([path]))

    def read_all(self, paths: Sequence[bytes]) -> Iterator[bytes | None]:
        """Yield the same for several files, with one command for some of them."""
        for start in range(0, len(paths), _READ_AT_ONCE):
            yield from self._read(paths[start : start + _READ_AT_ONCE])

    def _read(self, paths: Sequence[bytes]) -> Iterator[bytes | None]:
        end = b"\0mydata-" + secrets.token_hex(8).encode()
        script = ENTER
        for path in paths:
            check_own(path)
            folder, name = _divide(path)
            words = enter_words(b"w", folder), quote(b"./" + name), end.replace(b"\0", b"\\0")
            script += _READ_OWN % words
        ended = self._run(script)
        *answers, rest = re.split(b"%b:([^\0]*)\0" % end, ended.output)
        if len(answers) != 2 * len(paths) or rest:
            raise unanswered()
        for path, answer, failure in zip(paths, answers[::2], answers[1::2], strict=True):
            word, _, content = answer.partition(b"\0")
            if word not in (MARK + b"missing", MARK + b"found"):
                raise unanswered()
            if failure:
                raise StagingError(
                    f"{format_path(path)} at the destination cannot be read: {shorten(failure)}.",
                    hint="Give the account of the destination access to it.",
                    code="destination.denied",
                )
            yield content if word == MARK + b"found" else None

    @contextmanager
    def open_content(self, path: bytes, offset: int = 0) -> Iterator[StoredContent | None]:
        """Open a file for reading from an offset on; `cat` or `tail` of the host reads it.

        Or GNU tar does, if it has holes and is read as a whole.
        """
        check_path(path)
        folder, name = _divide(path)
        read = b"tail -c +%d" % (offset + 1) if offset else b"cat"
        words = enter_words(b"w", folder), quote(b"./" + name), b"" if offset else _DATA_ONLY, read
        script = ENTER + _CONTENT % words
        with self._reading(script) as reader:
            answer = reader.until(b"\0")
            if answer == MARK:
                yield None
                return
            found = _DESCRIBED.match(answer)
            if not found:
                raise unanswered()
            sparse = bool(found[1]) and int(found[1]) * 1024 + _READ < int(found[3])
            pieces = iter(lambda: reader.take(_READ), b"")
            if reader.until(b"\0") == b"tar":
                files = (it for it in read_members(reader.take) if it.kind == "file")
                pieces = chain.from_iterable(it.pieces for it in files)
            pieces = _read_content(reader, path, pieces)
            yield StoredContent(path, pieces, _parse_mode(found[2]), sparse=sparse)

    def open_contents(
        self, paths: Sequence[bytes], unpack: Unpack | None = None
    ) -> Iterator[StoredContent]:
        """Yield small files as the tar of the host writes them."""
        check_paths(paths)
        names = _join(paths)
        wanted = set(paths)

        def take_others() -> None:
            while unpack:
                used, came = reader.offer(unpack)
                wanted.difference_update(came)
                if not used:
                    return

        with self._reading(_PACK % len(names), names) as reader:
            for member in read_members(reader.take, take_others):
                if member.size > _SMALL:  # nothing that was asked for has this size
                    return
                if member.kind == "file" and member.path in wanted:
                    wanted.remove(member.path)
                    yield StoredContent(member.path, member.pieces, member.mode)

    def list_tree(self, folder: bytes) -> Iterator[TreeFolder | TreeLink]:
        """Yield a folder, and the folders and links below it, as the tar of the host has them."""
        if folder:
            check_path(folder)
        prune = b"" if folder else _PRUNE
        script = ENTER + _PACK_TREE % (enter_words(b"w", folder), prune, _AT_ONCE)
        with self._reading(script) as reader:
            for member in read_members(reader.take):
                path = b"/".join(filter(None, (folder, member.path)))
                if member.kind == "folder":
                    yield TreeFolder(path, member.mode, member.modified * 10**9)
                elif member.kind == "link":
                    yield TreeLink(path, member.target)

    @contextmanager
    def _reading(self, script: bytes, stdin: bytes = b"") -> "Iterator[_Reader]":
        """Run a script in the destination, and read its output while it runs."""
        nonce, command = _wrap(self._prepare(script))
        with self._turn() as session:
            try:
                stream = self._start(session, command)
            except RejectedError as error:
                raise _no_shell(error.message) from error
            with closing(stream):
                stream.write(stdin)
                reader = _Reader(stream)
                reader.skip(nonce)
                yield reader

    def list_own(self, folder: bytes) -> list[bytes]:
        """Return the sorted paths of the complete files below a folder, from there."""
        folder = folder.removesuffix(b"/")
        check_own(folder)
        ended = self._run(ENTER + _LIST_OWN % enter_words(b"w", folder))
        found, end, errors = ended.output.rpartition(MARK + b"end\0")
        *paths, rest = found.split(b"\0")
        if not end or rest:
            raise unanswered()
        _check_found(errors)
        return sorted(path[2:] for path in paths if not _divide(path)[1].startswith(_PART))

    def write(self, path: bytes, content: bytes, *, replace: bool = False) -> bool:
        """Write a file below `.mydata-like`; return False if its name is taken."""
        return self._write([(path, content)], _REPLACE if replace else _NEW)

    def write_new(self, path: bytes, content: bytes, others: Sequence[tuple[bytes, bytes]]) -> bool:
        """Write a file unless its name is taken, and then others, with one command."""
        return self._write([(path, content), *others], _NEW_FIRST)

    def write_all(self, files: Sequence[tuple[bytes, bytes]]) -> None:
        """Write several files below `.mydata-like` with one command."""
        if files:
            self._write(files, _REPLACE)

    def _write(self, files: Sequence[tuple[bytes, bytes]], place: bytes) -> bool:
        """Write files with one command; return False if a name is taken."""
        part = _PART + secrets.token_hex(8).encode()
        steps, start = b"", 1
        for index, (path, content) in enumerate(files):
            check_own(path)
            folder, name = _divide(path)
            words = enter_words(b"e", folder), quote(b"./" + name)
            steps += _WRITE_ONE % (index, *words, start, len(content))
            start += len(content)
        first = enter_words(b"e", _divide(files[0][0])[0])
        script = _WRITE % (first, part + b"-all", start - 1, part, place, steps)
        content = b"".join([it for _, it in files])
        output = self._run(_ALIVE + ENTER + PLACE + script, content).output
        answers = read_tree(output, len(files)) or read_tree(output, 1)
        if answers is None:
            raise unanswered()
        for (path, _), answer in zip(files, answers, strict=False):
            if answer.word not in ("placed", "moved", "occupied"):
                problem = _judge_folder(path, answer)
                raise StagingError(problem.message, hint=problem.hint, code=problem.code)
        if answers[0].word == "occupied":
            return False
        if len(answers) < len(files):
            raise unanswered()
        return True

    @property
    def has_python(self) -> bool:
        """See `DestinationFiles`."""
        return self._find_programs().python

    def run_python(self, program: bytes, stdin: bytes) -> bytes:
        """Return what a program of Python prints in the destination."""
        return self._run(_ALIVE + python_command(program), stdin).output

    def make_tree(self, folders: Sequence[TreeFolder], links: Sequence[TreeLink]) -> list[Problem]:
        """Make folders and links that are missing; return what cannot be made."""
        paths = [folder.path for folder in folders] + [link.path for link in links]
        for path in paths:
            check_path(path)
        if not paths:
            return []
        answers = read_tree(self._run(b"exec sh -s", write_tree(folders, links)).output, len(paths))
        if answers is None:
            raise unanswered()
        return [
            _judge_folder(path, answer)
            for path, answer in zip(paths, answers, strict=True)
            if answer.word != "there"
        ]

    def clear(self, folder: bytes) -> bool:
        """Remove the empty folders at and below a folder below `.mydata-like`."""
        check_own(folder)
        place = quote(b"./" + folder)
        ended = self._run(_ALIVE + ENTER + _CLEAR % (enter_words(b"w", folder), place, place))
        return MARK in ended.output

    def close(self) -> None:
        while self._ahead:
            with suppress(UploaderError):
                self._ahead.pop().result().close()
        session, self._session = self._session, None
        self._shells.clear()
        if session is not None:
            session.close()

    def _hash(self, paths: Sequence[bytes], checksum: bytes) -> list[ProvenFile | None]:
        described = self._ask(paths, checksum)
        match = _CHECKSUMS[self.algorithm]
        return [
            ProvenFile(file, found[0].decode())
            if file and file == after and (found := match(line))
            else None
            for file, line, after in described
        ]

    def _ask(
        self, paths: Sequence[bytes], checksum: bytes, *, alone: bool = False
    ) -> list[tuple[StoredFile | None, bytes, StoredFile | None]]:
        """Return the attributes, checksum and attributes again of each file.

        The host answers for groups; if a program has not printed one line for each file, this group
        is described file by file.
        """
        script = describe_script(self._find_programs(), checksum, _AT_ONCE, alone=alone)
        ended = self._run(_ALIVE + script, _join(paths))
        results: list[tuple[StoredFile | None, bytes, StoredFile | None]] = []
        try:
            for group in parse_descriptions(ended.output):
                names = paths[len(results) :][: group.files]
                none = [b""] * group.files
                frames = (
                    group.before,
                    group.checksums if checksum else none,
                    group.after if checksum else none,
                )
                if all(len(frame) == group.files for frame in frames):
                    lines = zip(names, *frames, strict=True)
                    results += [
                        (parse_attributes(name, before), line, parse_attributes(name, after))
                        for name, before, line, after in lines
                    ]
                elif group.files > 1 and not alone:
                    results += self._ask(names, checksum, alone=True)
                else:
                    results.append((None, b"", None))
        except ValueError as error:
            raise unanswered() from error
        if ended.status or len(results) != len(paths):
            raise unanswered()
        return results

    def _find_programs(self) -> HostPrograms:
        if self._programs is None:
            self._programs = HostPrograms.parse(self._run(PROBE).output)
        if self._programs is None:
            raise StagingError(
                "The host lacks programs that copies need: find, xargs -0 and stat.",
                hint="Its administrator can install them (GNU findutils and coreutils).",
                code="destination.no-programs",
            )
        return self._programs

    def _run(
        self, script: bytes, stdin: bytes | None = None, *, enter: bool = True
    ) -> CommandResult:
        """Run a script in the destination; the output of login scripts is omitted."""
        script = self._prepare(script, enter=enter)
        ended: CommandResult | None = None
        while ended is None:
            with self._turn() as session:
                try:
                    ended = self._run_in_shell(session, script, stdin)
                    ended = ended or self._run_alone(session, script, stdin)
                except RejectedError as error:
                    raise _no_shell(error.message) from error
                except TransientError as error:
                    alone = self._most == 1 and not self._shells
                    if error.problem_code != NO_CHANNEL or alone:
                        raise
            if ended is None and not self._end_shells():
                self._most = 1  # the host allows only one at once
        if ended.status == _NO_GROUND:
            raise self._unavailable()
        return ended

    def _run_in_shell(
        self, session: OpenSession, script: bytes, stdin: bytes | None
    ) -> CommandResult | None:
        """Run a short script in a shell that stays; return None if the host refuses that."""
        if not self._keeps_shells or len(script) + len(stdin or b"") > LONGEST:
            return None
        try:
            shell = self._take_shell() or KeptShell(session)
            ended = shell.run(script, stdin)
        except TransientError as error:
            if error.problem_code != NO_CHANNEL:
                raise
            self._keeps_shells = False
            return None
        with self._changed:
            if kept := self._keeps_shells and self._session is session:
                self._shells.append(shell)
        if not kept:
            shell.end()
        return ended

    def _run_alone(self, session: OpenSession, script: bytes, stdin: bytes | None) -> CommandResult:
        """Run a script as a command of its own; without input, its output may have any size."""
        nonce, command = _wrap(script)
        stream = self._start(session, command)
        output = bytearray()
        if stdin is None:
            while more := stream.read(_READ):
                output += more
        else:
            stream.write(stdin)
        ended = stream.finish()
        _, answered, answer = (bytes(output) + ended.output).partition(nonce)
        if not answered or ended.status is None:
            raise unanswered()
        return ended._replace(output=answer)

    def _start(self, session: OpenSession, command: bytes) -> Stream:
        """Start a command; if the host allows no channel beside idle shells, end these first."""
        try:
            return session.start(command)
        except TransientError as error:
            if error.problem_code != NO_CHANNEL or not self._end_shells():
                raise
        return session.start(command)

    def _end_shells(self) -> bool:
        """End the idle shells, and keep none from now on; return whether there were any."""
        self._keeps_shells = False
        ended = False
        while shell := self._take_shell():
            shell.end()
            ended = True
        return ended

    def _take_shell(self) -> KeptShell | None:
        with self._changed:
            return self._shells.pop() if self._shells else None

    @contextmanager
    def _turn(self) -> Iterator[OpenSession]:
        """Yield the session once another command may run; close it if that fails.

        If the host refuses a command beside others, fewer run at once from then on.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._running < self._most)
            if self._session is None:
                self._session, self._capabilities = self._log_in()
                self._log_in_for_listings()
            session = self._session
            self._running += 1
        try:
            yield session
        except TransientError as error:
            with self._changed:
                if error.problem_code == NO_CHANNEL and self._running > 1:
                    self._most = self._running - 1
                elif self._session is session:
                    self.close()
            raise
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _prepare(self, script: bytes, *, enter: bool = True) -> bytes:
        """Return a script with what each begins with; with `enter`, in the destination."""
        into = b'cd -P -- "$w" 2>/dev/null || exit %d; ' % _NO_GROUND if enter else b""
        where = self._location if self._location.startswith(b"/") else b"./" + self._location
        return _BEGIN + b"w=%b; " % quote(where) + into + script

    def _log_in(self) -> tuple[OpenSession, HostCapabilities]:
        session, capabilities = self._connect()
        if capabilities.access != "shell":
            session.close()
            raise _no_shell(capabilities.why)
        session.run_ahead()
        return session, capabilities

    def _unavailable(self) -> ServerUnavailableError:
        return ServerUnavailableError(
            f"The destination {format_path(self._location)} cannot be entered.",
            hint="If it is on a disk or a share, mount it on the host.",
            code=ABSENT,
        )


_IN_THE_WAY: Final = re.compile(rb"Not a directory|File exists").search
_CHECKSUMS: Final = {
    it: re.compile(rb"[0-9a-f]{%d}(?![0-9a-f])" % it.digits).match for it in Algorithm
}


def _wrap(script: bytes) -> tuple[bytes, bytes]:
    """Return a line that is printed before the answer, and the command that runs a script."""
    nonce = make_nonce()
    begin = b"printf '\\n%b\\n'; " % nonce
    return b"\n" + nonce + b"\n", b"exec sh -c " + quote(begin + script)


class _Reader:
    """Reads the output of a stream up to given bytes."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._output = b""
        self._taken = 0  # bytes of this output, by `take`

    def skip(self, end: bytes) -> None:
        """Skip the output of login scripts."""
        while end not in self._output:
            if len(self._output) > MOST_NOISE:
                raise unanswered()
            self._output += self._receive()
        self._output = self._output.partition(end)[2]

    def until(self, end: bytes) -> bytes:
        """Return the output before the next `end`."""
        while (place := self._output.find(end)) < 0:
            self._output += self._receive()
        found, self._output = self._output[:place], self._output[place + len(end) :]
        return found

    def parts(self) -> Iterator[bytes]:
        """Yield records, each ended by NUL, up to `_END`; a part begins where `_NEW_PART` is.

        So the parts beside a file that was added or removed are the same in the next listing.
        """
        searched = 0
        while True:
            begin = 0
            while (place := self._output.find(_NEW_PART, searched)) >= 0:
                searched = place + 1
                start = self._output.rfind(b"\0", begin, place) + 1
                if start > begin:
                    yield self._output[begin:start]
                    begin = start
            while cut := self._output.find(b"\0", begin + _LONGEST_PART) + 1:
                yield self._output[begin:cut]
                begin = cut
            rest = self._output[begin:]
            if rest == _END or rest.endswith(b"\0" + _END):
                if part := rest.removesuffix(_END):
                    yield part
                return
            searched = max(0, len(rest) - len(_NEW_PART) + 1)
            self._output = rest + self._receive()

    def take(self, size: int) -> bytes:
        """Return so many bytes of the output, or fewer at its end."""
        pieces = []
        while size:
            if self._taken == len(self._output):
                # Of a large piece no more, so that the next one is not made of two.
                most = size if 2 * size > _READ else _READ
                self._output, self._taken = self._stream.read(most, size), 0
                if not self._output:
                    break
            piece = self._output[self._taken : self._taken + size]
            self._taken += len(piece)
            size -= len(piece)
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def offer(self, unpack: Unpack) -> tuple[int, Sequence[bytes]]:
        """Let `unpack` take from the output, of which much has come, or the end."""
        pieces = [self._output[self._taken :]]
        missing = _OFFERED - len(pieces[0])
        while missing > 0 and (more := self._stream.read(_READ, missing)):
            pieces.append(more)
            missing -= len(more)
        if len(pieces) > 1:
            self._output, self._taken = b"".join(pieces), 0
        taken = unpack(self._output, self._taken)
        self._taken += taken[0]
        return taken

    def finish(self) -> CommandResult:
        return self._stream.finish()

    def _receive(self) -> bytes:
        if more := self._stream.read(_READ):
            return more
        raise unanswered()


def _read_content(reader: _Reader, path: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the rest of the output; raises `RejectedError` if the program could not read all."""
    yield from pieces
    ended = reader.finish()
    if ended.status is None:
        raise unanswered()
    if ended.status:
        raise unreadable(path, ended.errors)


def _parse_mode(letters: bytes) -> int:
    """Return permissions from what `ls` prints of them, without setuid and the like."""
    bits = (letter not in b"-ST" for letter in letters)
    return sum(0o400 >> place for place, is_set in enumerate(bits) if is_set)


def _read_found(reader: _Reader, top: bytes) -> Iterator[ListedPart]:
    for text in reader.parts():
        read = partial(_parse_found, text, top)
        yield ListedPart(digest_part(top + b"\0" + text), text.count(b"\0"), read)


def _parse_found(text: bytes, top: bytes) -> list[StoredFile]:
    try:
        return parse_found(text, top)
    except ValueError as error:
        raise unanswered() from error


def _read_named(reader: _Reader, top: bytes, left: list[bytes]) -> Iterator[StoredFile]:
    """Yield files of groups; add the paths to `left` whose attributes are not certain."""
    while True:
        reader.until(MARK)
        word = reader.until(b"\n")
        if word == b"end":
            return
        names = [top + reader.until(b"\0")[2:] for _ in range(int(word))]
        lines = list(iter(partial(reader.until, b"\n"), MARK))
        if len(lines) != len(names):
            left += names
            continue
        files = map(parse_attributes, names, lines)
        yield from (file for file in files if file)


def _check_found(errors: bytes) -> None:
    """Raise `TransientError` if find could not read a folder for a reason that may pass."""
    for line in errors.splitlines():
        if line.startswith(b"find: ") and not line.endswith(_HARMLESS):
            raise TransientError(
                f"The destination could not be listed: {shorten(line)}.", code="staging.lost"
            )


def _judge(placement: Placement, answer: Answer) -> Problem:
    """Return the problem of a file that was not placed."""
    if answer.word == "missing":
        return describe_missing(placement.temporary)
    if answer.word == "occupied":
        return describe_occupied(placement.final)
    return _judge_folder(placement.final, answer)


def _judge_folder(path: bytes, answer: Answer) -> Problem:
    if answer.reason == b"link":
        return describe_link(path)
    if answer.word == "occupied":
        return describe_occupied(path)
    return describe_refusal(path, answer.reason)


def _split(paths: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Yield paths in batches that one command describes."""
    check_paths(paths)
    batch: list[bytes] = []
    size = 0
    for path in paths:
        if len(batch) == _BATCH or size > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(path)
        size += len(path)
    if batch:
        yield batch


def _join(paths: Iterable[bytes]) -> bytes:
    return b"".join(b"./%b\0" % path for path in paths)


def _divide(path: bytes) -> tuple[bytes, bytes]:
    folder, _, name = path.rpartition(b"/")
    return folder, name


def _no_shell(why: str) -> StagingError:
    return StagingError(
        f"The host allows no shell with the programs that copies need: {why.rstrip('.')}.",
        hint="Its administrator can allow a shell for this account.",
        code="destination.no-shell",
    )
