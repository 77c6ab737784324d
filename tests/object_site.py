"""A site whose server keeps datafiles in object storage, and the settings to upload there."""

import tomlkit

from mydata_like.state.secrets import FileSecrets, Owner, Secret
from tests.fakes.objects import ACCOUNT, BUCKET, SECRET
from tests.site import Site

BOX = "objects"
PREFIX = "raw/scope 1"


def add_storage(site: Site, url: str, through: str = "") -> tuple[str, ...]:
    """Add a storage box in a service, and our secret; return the settings of a run.

    `through` is another address of the service, such as a proxy's, that the run uses.
    """
    endpoint = through or url
    site.server.add_object_box(
        BOX,
        endpoint_url=url,
        bucket_name=BUCKET,
        location=PREFIX,
        access_key=ACCOUNT,
        secret_key=SECRET,
    )
    keep_secret(site, endpoint)
    return (
        "transfer.method=s3",
        f"transfer.s3_endpoint={endpoint}",
        f"transfer.s3_bucket={BUCKET}",
        f"transfer.s3_prefix={PREFIX}",
        f"transfer.s3_box={BOX}",
        f"transfer.s3_access_key={ACCOUNT}",
    )


def use_storage(site: Site, url: str) -> None:
    """Let a site upload to a storage box in a service."""
    settings = tomlkit.parse(site.config.read_text(encoding="utf-8"))
    for setting in add_storage(site, url):
        name, _, value = setting.removeprefix("transfer.").partition("=")
        settings["transfer"][name] = value
    site.config.write_text(tomlkit.dumps(settings), encoding="utf-8")


def keep_secret(site: Site, endpoint: str = "s3", text: str = SECRET) -> None:
    """Store the secret of the access key for an address in the site's secrets file."""
    secrets = FileSecrets(site.config.with_name("secrets.toml"))
    secrets.save(Owner(endpoint, ACCOUNT), Secret(text))
