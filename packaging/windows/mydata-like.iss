; The installer for Windows, by Inno Setup 6: iscc packaging\windows\mydata-like.iss
; Installs for one user without administrator rights, or for all users (/ALLUSERS); silently with
; /VERYSILENT /NORESTART. Settings, logs and the ledger are kept when the program is removed.

#define Name "mydata-like"
#define Root "..\.."
#define Bundle Root + "\dist\mydata-like"
#define Version GetVersionNumbersString(Bundle + "\mydata-like.exe")

[Setup]
AppId={{6F0C1C39-7A52-4B1C-9F0B-5C7C1E6E4D11}
AppName={#Name}
AppVersion={#Version}
AppPublisher=The mydata-like developers
DefaultDirName={autopf}\{#Name}
DisableProgramGroupPage=yes
PrivilegesRequired=lowest
PrivilegesRequiredOverridesAllowed=dialog commandline
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
MinVersion=10.0.17763
LicenseFile={#Root}\LICENSE
SetupIconFile=..\build\icons\mydata-like.ico
UninstallDisplayIcon={app}\mydata-like-gui.exe
OutputDir={#Root}\dist
OutputBaseFilename=mydata-like-{#Version}-setup
Compression=lzma2
SolidCompression=yes
CloseApplications=yes
ChangesEnvironment=yes

[Languages]
Name: "english"; MessagesFile: "compiler:Default.isl"
Name: "german"; MessagesFile: "compiler:Languages\German.isl"

[Tasks]
Name: "path"; Description: "Add mydata-like to the PATH of command prompts"; Flags: unchecked
Name: "tray"; Description: "Start in the tray when I log in"; Flags: unchecked

[Files]
Source: "{#Bundle}\*"; DestDir: "{app}"; Flags: recursesubdirs ignoreversion

[Icons]
Name: "{autoprograms}\{#Name}"; Filename: "{app}\mydata-like-gui.exe"
Name: "{autostartup}\{#Name}"; Filename: "{app}\mydata-like-gui.exe"; Parameters: "--hidden"; Tasks: tray
Name: "{usersendto}\{#Name}"; Filename: "{app}\mydata-like-gui.exe"

[Registry]
Root: HKA; Subkey: "{code:EnvironmentKey}"; ValueType: expandsz; ValueName: "Path"; ValueData: "{olddata};{app}"; Tasks: path; Check: IsNotOnPath

[Run]
Filename: "{app}\mydata-like-gui.exe"; Description: "Open mydata-like"; Flags: nowait postinstall skipifsilent

[Code]
function EnvironmentKey(Unused: String): String;
begin
  if IsAdminInstallMode then
    Result := 'SYSTEM\CurrentControlSet\Control\Session Manager\Environment'
  else
    Result := 'Environment';
end;

function IsNotOnPath: Boolean;
var
  Path: String;
begin
  if not RegQueryStringValue(HKA, EnvironmentKey(''), 'Path', Path) then
    Path := '';
  Result := Pos(';' + Lowercase(ExpandConstant('{app}')) + ';', ';' + Lowercase(Path) + ';') = 0;
end;
