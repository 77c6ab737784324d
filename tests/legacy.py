"""A MyData.cfg with all keys that MyData writes, as on a Windows PC in Germany."""

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from mydata_like.ssh.keys import load_key

WINDOWS_PAIRS = {
    "instrument_name": "Röntgen 3",
    "facility_name": "Bildgebung",
    "contact_name": "Jörg Müller",
    "contact_email": "joerg@example.org",
    "data_directory": r"D:\Größe 100%\Daten",
    "mytardis_url": "https://mytardis.example.org",
    "username": "facility",
    "api_key": "0123456789abcdef%canary",
    "schedule_type": "Weekly",
    "scheduled_date": "2021-03-19",
    "scheduled_time": "18:30:00",
    "monday_checked": "True",
    "tuesday_checked": "False",
    "wednesday_checked": "False",
    "thursday_checked": "True",
    "friday_checked": "False",
    "saturday_checked": "False",
    "sunday_checked": "False",
    "timer_minutes": "15",
    "timer_from_time": "00:00:00",
    "timer_to_time": "23:59:00",
    "user_filter": "",
    "dataset_filter": "",
    "experiment_filter": "",
    "ignore_old_datasets": "True",
    "ignore_interval_number": "6",
    "ignore_interval_unit": "months",
    "ignore_new_datasets": "False",
    "ignore_new_interval_number": "0",
    "ignore_new_interval_unit": "months",
    "ignore_new_files": "True",
    "ignore_new_files_minutes": "5",
    "use_includes_file": "False",
    "includes_file": "",
    "use_excludes_file": "True",
    "excludes_file": r"C:\ProgramData\Ausschlüsse.txt",
    "folder_structure": "User Group / Experiment / Dataset",
    "dataset_grouping": "User Group - Experiment",
    "group_prefix": "Gruppe-",
    "validate_folder_structure": "True",
    "start_automatically_on_login": "True",
    "on_start_run": "Minimized",
    "upload_invalid_user_folders": "False",
    "upload_method": "ParallelSSH",
    "max_upload_threads": "8",
    "max_upload_retries": "1",
    "locked": "False",
    "uuid": "9d0ff04e-c0d5-11eb-8529-0242ac130003",
    "verification_delay": "3.0",
    "max_verification_threads": "5",
    "fake_md5_sum": "False",
    "cipher": "aes128-gcm@openssh.com,aes128-ctr",
    "use_none_cipher": "False",
    "progress_poll_interval": "1.0",
    "immutable_datasets": "False",
    "cache_datafile_lookups": "True",
    "connection_timeout": "10.0",
}

OF_MYDATA = tuple(WINDOWS_PAIRS)


def write_legacy(path, pairs=WINDOWS_PAIRS, *, encoding="cp1252", newline="\r\n"):
    """Write a MyData.cfg as MyData does; return its path."""
    lines = ["[MyData]", *(f"{key} = {text}" for key, text in pairs.items()), "", ""]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(newline.join(lines).encode(encoding))
    return path


def write_old_key(path):
    """Create an RSA key in PEM format as MyData does; return it loaded."""
    path.parent.mkdir(parents=True, exist_ok=True)
    key = rsa.generate_private_key(65537, 2048)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    path.touch(mode=0o600)
    path.write_bytes(text)
    return load_key(path)
