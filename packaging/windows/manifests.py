"""Write the files of winget and Chocolatey for the installer: python manifests.py DIST.

They name the version, the place where the repository's releases are, and the installer's checksum.
Nothing is sent anywhere: see README.md for what publishes them.
"""

import hashlib
import sys
import tomllib
from pathlib import Path

from mydata_like import __version__

ROOT = Path(__file__).parents[2]
WINGET = "mydata-like.mydata-like"
SUMMARY = "Carries research data from instruments to storage, and proves that every byte arrived."
HEAD = """\
# yaml-language-server: $schema=https://aka.ms/winget-manifest.{kind}.1.6.0.schema.json
PackageIdentifier: {identifier}
PackageVersion: {version}
"""
VERSION = """\
DefaultLocale: en-US
ManifestType: version
ManifestVersion: 1.6.0
"""
LOCALE = """\
PackageLocale: en-US
Publisher: The mydata-like developers
PackageName: mydata-like
PackageUrl: {repository}
License: Apache-2.0
ShortDescription: {summary}
ManifestType: defaultLocale
ManifestVersion: 1.6.0
"""
INSTALLER = """\
Platform:
- Windows.Desktop
MinimumOSVersion: 10.0.17763.0
InstallerType: nullsoft
InstallModes:
- interactive
- silent
UpgradeBehavior: install
Installers:
- Architecture: x64
  Scope: user
  InstallerUrl: {url}
  InstallerSha256: {checksum}
  InstallerSwitches:
    Custom: /CurrentUser /PATH=1
- Architecture: x64
  Scope: machine
  InstallerUrl: {url}
  InstallerSha256: {checksum}
  InstallerSwitches:
    Custom: /AllUsers /PATH=1
ManifestType: installer
ManifestVersion: 1.6.0
"""
NUSPEC = """\
<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://schemas.microsoft.com/packaging/2015/06/nuspec.xsd">
  <metadata>
    <id>mydata-like</id>
    <version>{version}</version>
    <title>mydata-like</title>
    <authors>The mydata-like developers</authors>
    <projectUrl>{repository}</projectUrl>
    <tags>mytardis research-data upload</tags>
    <summary>{summary}</summary>
    <description>{summary}</description>
  </metadata>
  <files>
    <file src="tools\\**" target="tools" />
  </files>
</package>
"""
INSTALL = """\
$ErrorActionPreference = 'Stop'
$arguments = @{{
  packageName    = 'mydata-like'
  fileType       = 'exe'
  url64bit       = '{url}'
  checksum64     = '{checksum}'
  checksumType64 = 'sha256'
  silentArgs     = '/S /AllUsers /PATH=1'
  validExitCodes = @(0)
}}
Install-ChocolateyPackage @arguments
"""
UNINSTALL = """\
$ErrorActionPreference = 'Stop'
[array]$found = Get-UninstallRegistryKey -SoftwareName 'mydata-like'
foreach ($key in $found) {{
  $arguments = @{{
    packageName    = 'mydata-like'
    fileType       = 'exe'
    silentArgs     = '/AllUsers /S'
    validExitCodes = @(0)
    file           = $key.UninstallString.Split('"')[1]
  }}
  Uninstall-ChocolateyPackage @arguments
}}
"""


def write_manifests(dist: Path) -> None:
    """Write the manifests beside the installer, into the folders winget and chocolatey."""
    installer = dist / f"mydata-like-{__version__}-setup.exe"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    repository = project["urls"]["Repository"]
    facts = {
        "version": __version__,
        "identifier": WINGET,
        "repository": repository,
        "summary": SUMMARY,
        "url": f"{repository}/releases/download/v{__version__}/{installer.name}",
        "checksum": hashlib.sha256(installer.read_bytes()).hexdigest().upper(),
    }
    texts = {
        f"winget/{WINGET}.yaml": HEAD.replace("{kind}", "version") + VERSION,
        f"winget/{WINGET}.locale.en-US.yaml": HEAD.replace("{kind}", "defaultLocale") + LOCALE,
        f"winget/{WINGET}.installer.yaml": HEAD.replace("{kind}", "installer") + INSTALLER,
        "chocolatey/mydata-like.nuspec": NUSPEC,
        "chocolatey/tools/chocolateyinstall.ps1": INSTALL,
        "chocolatey/tools/chocolateyuninstall.ps1": UNINSTALL,
    }
    for name, text in texts.items():
        file = dist / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.format(**facts), encoding="utf-8")


if __name__ == "__main__":
    write_manifests(Path(sys.argv[1]))
