"""The answers and failures of an S3 service as `UploaderError`."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from mydata_like.core.destination_files import OCCUPIED
from mydata_like.core.errors import (
    AccessDeniedError,
    RejectedError,
    ServerUnavailableError,
    StagingError,
    TransientError,
    UploaderError,
)
from mydata_like.core.formatting import format_text
from mydata_like.transfer.s3.s3_client import Bucket

_SHOWN: Final = 200  # characters of the service's own text


class _Rule(NamedTuple):
    """What an answer or a failure means: by the codes of S3 and its other implementations.

    `names` may also be names of botocore's exceptions. The texts have the fields host, bucket,
    account and said.
    """

    kind: type[UploaderError]
    code: str
    names: tuple[str, ...]
    message: str
    hint: str = ""
    statuses: tuple[int, ...] = ()


_ANSWERS: Final = (
    _Rule(
        AccessDeniedError,
        code="s3.key",
        names=(
            *("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidSecurity", "ExpiredToken"),
            *("InvalidToken", "UnrecognizedClientException", "XAdminUserNotFound"),
        ),
        message="{host} does not accept the access key {account}: {said}.",
        hint="Check transfer.s3_access_key, and store its secret again with: mydata-like settings "
        "set-key --s3",
        statuses=(401,),
    ),
    _Rule(
        StagingError,
        code="s3.clock",
        names=("RequestTimeTooSkewed", "RequestExpired"),
        message="The object storage refuses requests because this computer's clock differs from "
        "its own by too much: {said}.",
        hint="Set this computer's clock, best automatically by a time server.",
    ),
    _Rule(
        StagingError,
        code="s3.no-bucket",
        names=("NoSuchBucket", "InvalidBucketName"),
        message="{host} has no bucket {bucket}.",
        hint="Check transfer.s3_bucket and transfer.s3_endpoint.",
    ),
    _Rule(
        StagingError,
        code="s3.elsewhere",
        names=(
            *("PermanentRedirect", "TemporaryRedirect", "Redirect"),
            *("AuthorizationHeaderMalformed", "IllegalLocationConstraintException"),
        ),
        message="{host} redirects to another address or region, which is not followed: {said}.",
        hint="Set transfer.s3_endpoint and transfer.s3_region to those of the bucket.",
        statuses=tuple(range(300, 400)),
    ),
    _Rule(
        StagingError,
        code="staging.full",
        names=(
            *("QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded"),
            *("StorageFull", "InsufficientStorage", "InsufficientCapacity", "NoSpaceLeft"),
        ),
        message="The object storage is full, or its quota is used up: {said}.",
        hint="Contact the administrator of the object storage.",
        statuses=(507,),
    ),
    _Rule(
        TransientError,
        code="s3.damaged",
        names=(
            *("BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch", "IncompleteBody"),
            "XAmzContentChecksumMismatch",
        ),
        message="The object storage received other bytes than were sent: {said}.",
    ),
    _Rule(
        TransientError,
        code="s3.failed",
        names=(
            *("NoSuchUpload", "InvalidPart", "RequestTimeout", "OperationAborted"),
            *("InternalError", "ConditionalRequestConflict"),
        ),
        message="The object storage could not do this now: {said}.",
        statuses=(408, 500, 502, 504),
    ),
    _Rule(
        ServerUnavailableError,
        code="s3.busy",
        names=(
            *("SlowDown", "SlowDownRead", "SlowDownWrite", "ServiceUnavailable", "Throttling"),
            *("ThrottlingException", "RequestLimitExceeded", "TooManyRequests"),
        ),
        message="{host} is too busy: {said}.",
        statuses=(429, 503),
    ),
    _Rule(
        RejectedError,
        code="staging.name",
        names=("KeyTooLongError", "KeyTooLong", "XMinioInvalidObjectName"),
        message="The object storage cannot store the name: {said}.",
        hint="Shorten the names of the file and its folders.",
    ),
    _Rule(
        RejectedError,
        code=OCCUPIED,
        names=("PreconditionFailed",),
        message="An object in the bucket is not as expected, and was not replaced: {said}.",
        statuses=(412,),
    ),
    _Rule(
        StagingError,
        code="s3.denied",
        names=("AccessDenied", "AccountProblem", "AllAccessDisabled"),
        message="The access key {account} may not do this in the bucket {bucket}: {said}.",
        hint="Ask the administrator of the object storage for the rights to put, get and delete "
        "objects below the prefix.",
        statuses=(403,),
    ),
)
_REFUSED: Final = _Rule(
    RejectedError,
    code="s3.refused",
    names=(),
    message="The object storage refuses this: {said}.",
    hint="Contact the administrator of the object storage.",
)
_FAILURES: Final = (
    _Rule(
        AccessDeniedError,
        code="s3.key",
        names=(
            *("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError"),
            *("SSOError", "TokenRetrievalError"),
        ),
        message="There are no valid credentials for {host}: {said}.",
    ),
    _Rule(
        StagingError,
        code="s3.certificate",
        names=("SSLError",),
        message="The encrypted connection to {host} fails: {said}.",
        hint="If its certificate was issued by a private authority, set server.ca_file.",
    ),
    _Rule(
        ServerUnavailableError,
        code="server.proxy",
        names=("ProxyConnectionError", "InvalidProxiesConfigError"),
        message="The proxy for {host} fails: {said}.",
        hint="Check the proxy in the setting server.proxy.",
    ),
    _Rule(
        ServerUnavailableError,
        code="s3.unreachable",
        names=("EndpointConnectionError", "ConnectTimeoutError"),
        message="{host} cannot be reached: {said}.",
        hint="Check the network and transfer.s3_endpoint.",
    ),
    _Rule(
        TransientError,
        code="s3.lost",
        names=("HTTPClientError", "IncompleteReadError"),
        message="The connection to {host} was lost: {said}.",
    ),
    _Rule(
        StagingError,
        code="s3.no-bucket",
        names=("ParamValidationError",),
        message="The bucket {bucket} cannot exist: {said}.",
        hint="Check transfer.s3_bucket.",
    ),
)
_CHECK_ADDRESS: Final = (
    "Check the name of the bucket, AWS_ENDPOINT_URL and AWS_REGION, or ~/.aws/config."
)
# The hints by code where address and account are not those of the settings.
_AWS_HINTS: Final = {
    "s3.key": "Check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials.",
    "s3.no-bucket": _CHECK_ADDRESS,
    "s3.elsewhere": _CHECK_ADDRESS,
    "s3.unreachable": _CHECK_ADDRESS,
    "s3.strange-answer": _CHECK_ADDRESS,
    "s3.certificate": "If its certificate was issued by a private authority, set AWS_CA_BUNDLE.",
    "server.proxy": "Check HTTPS_PROXY and HTTP_PROXY.",
}
# What botocore says ends with the address of the object, which is not that of the service.
_ADDRESS: Final = re.compile(r'(for |endpoint |proxy )?(URL: )?"?https?://[^" ]*"?').sub
_STRANGE: Final = _Rule(
    StagingError,
    code="s3.strange-answer",
    names=(),
    message="{host} sent no valid answer of an object storage: {said}.",
    hint="Check transfer.s3_endpoint.",
)


@contextmanager
def s3_errors(bucket: Bucket) -> Iterator[None]:
    """Turn errors of botocore into `UploaderError`."""
    # Loaded with the client.
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    try:
        yield
    except ClientError as error:
        raise translate_answer(bucket, error.response) from error
    except (BotoCoreError, ResponseParserError, KeyError, ValueError) as error:
        raise _translate_failure(bucket, error) from error


def translate_answer(bucket: Bucket, answer: Any) -> UploaderError:
    """Return the error for a refusal by the service, from botocore's `ClientError.response`."""
    told = answer.get("Error", {})
    code, text = str(told.get("Code", "")), str(told.get("Message", ""))
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    rules = [rule for rule in _ANSWERS if code in rule.names]
    rules += [rule for rule in _ANSWERS if status in rule.statuses]
    return _build(rules[0] if rules else _REFUSED, bucket, f"{code}: {text}".strip(": ."))


def _translate_failure(bucket: Bucket, error: Exception) -> UploaderError:
    """Return the error for a request without a valid answer."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    rules = (rule for rule in _FAILURES if not kinds.isdisjoint(rule.names))
    said = _find_reason(error) or _ADDRESS("", str(error))
    return _build(next(rules, _STRANGE), bucket, said.strip(": ."))


def _find_reason(error: BaseException | None) -> str:
    """Return the system's reason for a failed connection, or an empty text."""
    while error is not None:
        if isinstance(error, OSError) and error.strerror:
            return error.strerror
        wrapped = getattr(error, "kwargs", {}).get("error")  # of botocore's errors
        error = wrapped if isinstance(wrapped, BaseException) else error.__cause__
    return ""


def _build(rule: _Rule, bucket: Bucket, said: str) -> UploaderError:
    text = format_text(" ".join(said.split()))
    fields = {
        "host": bucket.host,
        "bucket": format_text(bucket.name),
        "account": format_text(bucket.access_key),
        "said": text if len(text) <= _SHOWN else f"{text[:_SHOWN]} [...]",
    }
    hint = _AWS_HINTS.get(rule.code, rule.hint) if bucket.from_aws else rule.hint
    return rule.kind(rule.message.format(**fields), hint=hint, code=rule.code)
