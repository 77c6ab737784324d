"""This installation's standing with the server: its record, its key, its approval."""

from dataclasses import asdict, dataclass

from mydata_like.bootstrap.connection import Connection
from mydata_like.core.errors import RunError
from mydata_like.core.model import StagingArea
from mydata_like.server.uploader import Installation, Machine, PublicKey, Uploaders
from mydata_like.settings.schema import Settings
from mydata_like.ssh.keys import KeyPair, ensure_key
from mydata_like.store.paths import Places
from mydata_like.system.machine import describe_machine


@dataclass(frozen=True, slots=True)
class Applicant:
    """Who asks for approval: the installation, and the key that is to be approved."""

    installation: Installation
    pair: KeyPair

    @property
    def public(self) -> PublicKey:
        """The key as the server is told, its fingerprint in both forms, ours first."""
        key = self.pair.public
        comment = f"mydata-like {self.installation.name}"
        return PublicKey(key.line(comment), (key.fingerprint, key.md5_fingerprint))


def describe_applicant(
    connection: Connection, settings: Settings, places: Places, uploader: str
) -> Applicant:
    """Return who asks; the key is made where there is none."""
    pair = ensure_key(settings.transfer.key_file or places.key_file)
    installation = Installation(
        uuid=uploader,
        name=settings.instrument.name,
        contact_name=settings.instrument.contact_name,
        contact_email=settings.instrument.contact_email,
        data_path=str(settings.data.directory),
        account=connection.account.username,
        machine=Machine(**asdict(describe_machine())),
    )
    return Applicant(installation, pair)


def request_admission(connection: Connection, applicant: Applicant) -> StagingArea:
    """Tell the server about us, ask for approval once, and return the staging area.

    Raises `NotApprovedError` with the fingerprint while the approval is awaited.
    """
    if "mydata_uploader" not in connection.resources:
        raise RunError(
            "The server lacks the MyData app, which approves uploaders.",
            hint="Ask the server's administrator to install it, or set transfer.method to http.",
            code="server.no-mydata",
        )
    uploaders = Uploaders(connection.client)
    record = uploaders.ensure_uploader(applicant.installation, connection.instrument)
    uuid, key = applicant.installation.uuid, applicant.public
    area = uploaders.fetch_approval(uuid, key.fingerprints)
    if area is None:
        uploaders.request_approval(applicant.installation, record, key)
        area = uploaders.fetch_approval(uuid, key.fingerprints)
    if area is None:
        raise RunError("The server took our request for approval, but does not show it.")
    return area
