; The installer for Windows, by NSIS 3: makensis -INPUTCHARSET UTF8 packaging/windows/mydata-like.nsi
;
; Options of the installer:
;   /CurrentUser, /AllUsers  for this account (default), or for the computer, as an administrator
;   /S                       silent
;   /SENDTO=0, /PATH=1, /AUTOSTART=1  the choices; an upgrade keeps the earlier ones
;   /LOG=FILE                append what is done to a file
;   /D=FOLDER                the folder, as the last option and without quotes
; Options of the uninstaller: /S, /LOG=FILE, and /PURGE to delete settings, keys, ledger and logs.
; Exit codes: 0 done, 1 cancelled, 2 failed, 5 the program cannot be stopped, 740 no administrator.

!ifndef BUNDLE
  !define BUNDLE "..\..\dist\mydata-like"
!endif
!ifndef ICON
  !define ICON "..\build\icons\mydata-like.ico"
!endif
!ifndef OUTPUT
  !define OUTPUT "..\..\dist"
!endif

; NSIS from its own site has no 64-bit stub, and makes a 32-bit installer of the same program.
!if /FileExists "${NSISDIR}\Stubs\lzma_solid-amd64-unicode"
  Target amd64-unicode
!else
  Unicode true
!endif
SetCompressor /SOLID lzma
SetCompressorDictSize 32

!include FileFunc.nsh
!include LogicLib.nsh
!include MUI2.nsh
!include nsDialogs.nsh
!include Sections.nsh
!include WinVer.nsh
!include x64.nsh

!define NAME "mydata-like"
!define UNINSTALL "Software\Microsoft\Windows\CurrentVersion\Uninstall\${NAME}"
!define RUN "Software\Microsoft\Windows\CurrentVersion\Run"
!define STILL_RUNNING 5
!define NOT_ADMINISTRATOR 740
; Owner, SYSTEM and administrators may write, users may read (SDDL).
!define FOLDER_ACCESS "O:BAG:BAD:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)"
!define FILE_ACCESS "O:BAG:BAD:PAI(A;;FA;;;SY)(A;;FA;;;BA)(A;;0x1200a9;;;BU)"
!define OWNER_AND_ACCESS 0x80000005

!getdllversion "${BUNDLE}\mydata-like.exe" V_
!define VERSION "${V_1}.${V_2}.${V_3}"

Name "${NAME}"
OutFile "${OUTPUT}\${NAME}-${VERSION}-setup.exe"
RequestExecutionLevel user
ManifestDPIAware true
ManifestSupportedOS Win10
BrandingText "${NAME} ${VERSION}"
AllowSkipFiles off
ShowInstDetails nevershow
ShowUninstDetails nevershow
VIProductVersion "${V_1}.${V_2}.${V_3}.${V_4}"
VIAddVersionKey ProductName "${NAME}"
VIAddVersionKey ProductVersion "${VERSION}"
VIAddVersionKey FileVersion "${VERSION}"
VIAddVersionKey FileDescription "${NAME} setup"
VIAddVersionKey CompanyName "The mydata-like developers"
VIAddVersionKey LegalCopyright "Apache License 2.0"

Var Everyone    ; 1: for all users of the computer
Var ForEveryone ; the option of the program for that, after a blank
Var Chosen      ; 1: an option or an earlier installation says for whom
Var LogFile
Var Parameters
Var Purge
Var Control     ; of a page
Var Upgrade     ; 1: an earlier version was set aside

!define MUI_ICON "${ICON}"
!define MUI_UNICON "${ICON}"
!define MUI_ABORTWARNING
!define MUI_COMPONENTSPAGE_NODESC
!define MUI_FINISHPAGE_RUN
!define MUI_FINISHPAGE_RUN_TEXT "$(OpenText)"
!define MUI_FINISHPAGE_RUN_FUNCTION OpenWindow
!insertmacro MUI_PAGE_LICENSE "${BUNDLE}\LICENSE"
Page custom ShowScope LeaveScope
!insertmacro MUI_PAGE_COMPONENTS
!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
UninstPage custom un.ShowPurge un.LeavePurge
!insertmacro MUI_UNPAGE_INSTFILES

!insertmacro MUI_LANGUAGE "English"
!insertmacro MUI_LANGUAGE "German"

!macro Text name english german
  LangString ${name} ${LANG_ENGLISH} "${english}"
  LangString ${name} ${LANG_GERMAN} "${german}"
!macroend
!insertmacro Text OpenText "Open mydata-like" "mydata-like öffnen"
!insertmacro Text ScopeTitle "Who uses mydata-like?" "Wer benutzt mydata-like?"
!insertmacro Text ScopeSubtitle "Every user has separate settings." \
  "Jeder Benutzer hat eigene Einstellungen."
!insertmacro Text ScopeMine "Only my account" "Nur mein Konto"
!insertmacro Text ScopeEveryone "All users of this computer (as an administrator)" \
  "Alle Benutzer dieses Computers (als Administrator)"
!insertmacro Text SendToName "Send to menu of this account" "Menü „Senden an“ dieses Kontos"
!insertmacro Text PathName "Command line (PATH)" "Kommandozeile (PATH)"
!insertmacro Text AutostartName "Start when a user logs in" "Bei jeder Anmeldung starten"
!insertmacro Text NeedsAdministrator "This needs the rights of an administrator." \
  "Das erfordert die Rechte eines Administrators."
!insertmacro Text NeedsWindows "mydata-like needs Windows 10 or newer with 64 bits." \
  "mydata-like benötigt Windows 10 oder neuer mit 64 Bit."
!insertmacro Text AskToStop \
  "mydata-like is running. It is stopped now. An upload that is interrupted continues later, and nothing is lost." \
  "mydata-like läuft und wird jetzt beendet. Ein unterbrochener Upload wird später fortgesetzt; nichts geht verloren."
!insertmacro Text CannotStop "mydata-like is still running. Close it, and try again." \
  "mydata-like läuft noch. Beenden Sie es, und versuchen Sie es noch einmal."
!insertmacro Text PurgeTitle "Remove mydata-like" "mydata-like entfernen"
!insertmacro Text PurgeSubtitle "Your data files and the server stay as they are." \
  "Ihre Datendateien und der Server bleiben, wie sie sind."
!insertmacro Text PurgeKept \
  "Settings, SSH key, ledger and logs are kept for a later installation." \
  "Einstellungen, SSH-Schlüssel, Verzeichnis der Uploads und Protokolle bleiben für eine spätere Installation erhalten."
!insertmacro Text PurgeToo "Delete these as well" "Auch diese löschen"

; Both the installer and the uninstaller have these functions.
!macro Shared un
  Function ${un}ReadOptions
    SetRegView 64
    ${GetParameters} $Parameters
    ${GetOptions} $Parameters "/LOG=" $LogFile
    StrCpy $Everyone 0
    ${GetOptions} $Parameters "/AllUsers" $R0
    ${IfNot} ${Errors}
      StrCpy $Everyone 1
      StrCpy $Chosen 1
    ${EndIf}
    ${GetOptions} $Parameters "/CurrentUser" $R0
    ${IfNot} ${Errors}
      StrCpy $Chosen 1
    ${EndIf}
  FunctionEnd

  ; Start again as an administrator, if that is needed and the user can be asked.
  Function ${un}RequireRights
    ${If} $Everyone == 0
      Return
    ${EndIf}
    UserInfo::GetAccountType
    Pop $R0
    ${If} $R0 == "Admin"
      Return
    ${EndIf}
    ${If} ${Silent}
      SetErrorLevel ${NOT_ADMINISTRATOR}
      Quit
    ${EndIf}
    ClearErrors
    !if "${un}" == ""
      ExecShell "runas" "$EXEPATH" "/AllUsers $Parameters"
    !else
      ExecShell "runas" "$INSTDIR\uninstall.exe" "/AllUsers $Parameters"
    !endif
    ${If} ${Errors}
      MessageBox MB_ICONSTOP "$(NeedsAdministrator)"
      SetErrorLevel ${NOT_ADMINISTRATOR}
    ${EndIf}
    Quit
  FunctionEnd

  Function ${un}UseScope
    ${If} $Everyone == 1
      SetShellVarContext all
      StrCpy $ForEveryone " --everyone"
    ${Else}
      SetShellVarContext current
      StrCpy $ForEveryone ""
    ${EndIf}
  FunctionEnd

  ; Append the text on the stack to the log.
  Function ${un}WriteLog
    Exch $R9
    ${If} $LogFile != ""
      ${GetTime} "" "L" $R0 $R1 $R2 $R3 $R4 $R5 $R6
      FileOpen $R8 "$LogFile" a
      FileSeek $R8 0 END
      FileWrite $R8 "$R2-$R1-$R0 $R4:$R5:$R6 $R9$\r$\n"
      FileClose $R8
    ${EndIf}
    Pop $R9
  FunctionEnd

  ; Run the program with the arguments on the stack, hidden; $0 is its exit code, or "error".
  Function ${un}RunProgram
    Exch $R7
    nsExec::ExecToStack '"$INSTDIR\mydata-like.exe" $R7'
    Pop $0
    Pop $1
    Push "mydata-like $R7: exit code $0. $1"
    Call ${un}WriteLog
    Pop $R7
  FunctionEnd

  ; $0 is 1 if one of the programs is running: its file cannot be written then.
  Function ${un}FindRunning
    StrCpy $0 0
    ClearErrors
    ${If} ${FileExists} "$INSTDIR\mydata-like.exe"
      FileOpen $1 "$INSTDIR\mydata-like.exe" a
      FileClose $1
    ${EndIf}
    ${If} ${FileExists} "$INSTDIR\mydata-like-gui.exe"
      FileOpen $1 "$INSTDIR\mydata-like-gui.exe" a
      FileClose $1
    ${EndIf}
    ${If} ${Errors}
      StrCpy $0 1
    ${EndIf}
  FunctionEnd

  ; Stop the program, after asking; the file stopped.json gets what was running.
  Function ${un}StopProgram
    InitPluginsDir
    Call ${un}FindRunning
    ${If} $0 == 0
      Return
    ${EndIf}
    MessageBox MB_OKCANCEL|MB_ICONINFORMATION "$(AskToStop)" /SD IDOK IDOK stop
    SetErrorLevel 1
    Abort
    stop:
    Push '--installer stop --list "$PLUGINSDIR\stopped.json"'
    Call ${un}RunProgram
    Call ${un}FindRunning
    ${If} $0 == 0
      Return
    ${EndIf}
    MessageBox MB_RETRYCANCEL|MB_ICONEXCLAMATION "$(CannotStop)" /SD IDCANCEL IDRETRY stop
    Push "The program cannot be stopped."
    Call ${un}WriteLog
    SetErrorLevel ${STILL_RUNNING}
    Abort
  FunctionEnd
!macroend
!insertmacro Shared ""
!insertmacro Shared "un."

!macro Log text
  Push "${text}"
  !ifdef __UNINSTALL__
    Call un.WriteLog
  !else
    Call WriteLog
  !endif
!macroend
!define Log "!insertmacro Log"

!macro Protect path access
  System::Call 'advapi32::ConvertStringSecurityDescriptorToSecurityDescriptorW(w "${access}", i 1, *p .r0, p 0) i .r1'
  System::Call 'advapi32::SetFileSecurityW(w "${path}", i ${OWNER_AND_ACCESS}, p r0) i .r1'
  System::Call 'kernel32::LocalFree(p r0)'
  ${Log} "Access to ${path} is limited: $1"
!macroend

Section "-Program" SectionProgram
  Call StopProgram
  Call SetAside
  SetOutPath "$INSTDIR"
  File /r "${BUNDLE}\*"
  WriteUninstaller "$INSTDIR\uninstall.exe"
  ${Log} "The files of ${VERSION} are in $INSTDIR."
  CreateShortcut "$SMPROGRAMS\${NAME}.lnk" "$INSTDIR\mydata-like-gui.exe"
  Delete "$SENDTO\${NAME}.lnk"
  ${If} $Everyone == 1
    DeleteRegValue HKLM "${RUN}" "${NAME}"
    ; Any user can create folders there, so it is created here, and its owner is set.
    CreateDirectory "$APPDATA\${NAME}"
    !insertmacro Protect "$APPDATA\${NAME}" "${FOLDER_ACCESS}"
    ${If} ${FileExists} "$APPDATA\${NAME}\managed.toml"
      !insertmacro Protect "$APPDATA\${NAME}\managed.toml" "${FILE_ACCESS}"
    ${EndIf}
  ${EndIf}
SectionEnd

Section "$(SendToName)" SectionSendTo
  CreateShortcut "$SENDTO\${NAME}.lnk" "$INSTDIR\mydata-like-gui.exe"
SectionEnd

Section /o "$(PathName)" SectionPath
  ; The rest is in SectionLast, which also removes it again.
SectionEnd

Section /o "$(AutostartName)" SectionAutostart
  WriteRegStr HKLM "${RUN}" "${NAME}" '"$INSTDIR\mydata-like-gui.exe" --hidden'
SectionEnd

Section "-Last" SectionLast
  ReadRegDWORD $R1 SHCTX "${UNINSTALL}" "SearchPath"
  ${If} ${SectionIsSelected} ${SectionPath}
    Push "--installer add-path$ForEveryone"
    Call RunProgram
  ${ElseIf} $R1 == 1
    Push "--installer remove-path$ForEveryone"
    Call RunProgram
  ${EndIf}
  Call Register
  ${If} $Upgrade == 1
    Call RemoveOld
  ${EndIf}
  Call StartAgain
  ${Log} "${VERSION} is installed."
SectionEnd

!macro WriteChoice section name
  ${If} ${SectionIsSelected} ${section}
    WriteRegDWORD SHCTX "${UNINSTALL}" "${name}" 1
  ${Else}
    WriteRegDWORD SHCTX "${UNINSTALL}" "${name}" 0
  ${EndIf}
!macroend

; The entry in "Apps", and the choices for the next upgrade.
Function Register
  StrCpy $0 "/CurrentUser"
  ${If} $Everyone == 1
    StrCpy $0 "/AllUsers"
  ${EndIf}
  WriteRegStr SHCTX "${UNINSTALL}" "DisplayName" "${NAME}"
  WriteRegStr SHCTX "${UNINSTALL}" "DisplayVersion" "${VERSION}"
  WriteRegStr SHCTX "${UNINSTALL}" "DisplayIcon" "$INSTDIR\mydata-like-gui.exe"
  WriteRegStr SHCTX "${UNINSTALL}" "Publisher" "The mydata-like developers"
  WriteRegStr SHCTX "${UNINSTALL}" "InstallLocation" "$INSTDIR"
  WriteRegStr SHCTX "${UNINSTALL}" "UninstallString" '"$INSTDIR\uninstall.exe" $0'
  WriteRegStr SHCTX "${UNINSTALL}" "QuietUninstallString" '"$INSTDIR\uninstall.exe" $0 /S'
  WriteRegDWORD SHCTX "${UNINSTALL}" "NoModify" 1
  WriteRegDWORD SHCTX "${UNINSTALL}" "NoRepair" 1
  SectionGetSize ${SectionProgram} $0
  WriteRegDWORD SHCTX "${UNINSTALL}" "EstimatedSize" $0
  !insertmacro WriteChoice ${SectionSendTo} "SendTo"
  !insertmacro WriteChoice ${SectionPath} "SearchPath"
  !insertmacro WriteChoice ${SectionAutostart} "Autostart"
FunctionEnd

; Set the earlier version aside until the new one is complete. A folder with files in use cannot
; be renamed, so nothing has changed if that fails.
Function SetAside
  RMDir /r "$INSTDIR\_internal.old"
  ${IfNot} ${FileExists} "$INSTDIR\_internal\*.*"
    Return
  ${EndIf}
  ClearErrors
  Rename "$INSTDIR\_internal" "$INSTDIR\_internal.old"
  ${If} ${Errors}
    ${Log} "Files in $INSTDIR\_internal are in use."
    MessageBox MB_ICONSTOP "$(CannotStop)" /SD IDOK
    SetErrorLevel ${STILL_RUNNING}
    Abort
  ${EndIf}
  StrCpy $Upgrade 1
  Delete "$INSTDIR\mydata-like.exe.old"
  Delete "$INSTDIR\mydata-like-gui.exe.old"
  Rename "$INSTDIR\mydata-like.exe" "$INSTDIR\mydata-like.exe.old"
  Rename "$INSTDIR\mydata-like-gui.exe" "$INSTDIR\mydata-like-gui.exe.old"
FunctionEnd

Function RemoveOld
  RMDir /r "$INSTDIR\_internal.old"
  Delete "$INSTDIR\mydata-like.exe.old"
  Delete "$INSTDIR\mydata-like-gui.exe.old"
FunctionEnd

; Start what was stopped.
Function StartAgain
  ${If} ${FileExists} "$PLUGINSDIR\stopped.json"
    Push '--installer start --list "$PLUGINSDIR\stopped.json"$ForEveryone'
    Call RunProgram
  ${EndIf}
FunctionEnd

; Bring the earlier version back, for example when the disk is full.
Function .onInstFailed
  ${Log} "The installation failed."
  ${If} $Upgrade == 1
    RMDir /r "$INSTDIR\_internal"
    Delete "$INSTDIR\mydata-like.exe"
    Delete "$INSTDIR\mydata-like-gui.exe"
    Rename "$INSTDIR\_internal.old" "$INSTDIR\_internal"
    Rename "$INSTDIR\mydata-like.exe.old" "$INSTDIR\mydata-like.exe"
    Rename "$INSTDIR\mydata-like-gui.exe.old" "$INSTDIR\mydata-like-gui.exe"
  ${EndIf}
  Call StartAgain
FunctionEnd

!macro ReadChoice section name option
  ReadRegDWORD $R0 SHCTX "${UNINSTALL}" "${name}"
  ${GetOptions} $Parameters "${option}=" $R1
  ${IfNot} ${Errors}
    StrCpy $R0 $R1
  ${EndIf}
  ${If} $R0 == 1
    !insertmacro SelectSection ${section}
  ${ElseIf} $R0 == 0
    !insertmacro UnselectSection ${section}
  ${EndIf}
!macroend

Function .onInit
  Call ReadOptions
  ${IfNot} ${AtLeastWin10}
  ${OrIfNot} ${RunningX64}
    MessageBox MB_ICONSTOP "$(NeedsWindows)" /SD IDOK
    SetErrorLevel 2
    Quit
  ${EndIf}
  ${If} $Chosen != 1
    ReadRegStr $R0 HKLM "${UNINSTALL}" "InstallLocation"
    ReadRegStr $R1 HKCU "${UNINSTALL}" "InstallLocation"
    ${If} $R0 != ""
    ${AndIf} $R1 == ""
      StrCpy $Everyone 1
    ${EndIf}
    ${If} $R0 != ""
    ${OrIf} $R1 != ""
      StrCpy $Chosen 1
    ${EndIf}
  ${EndIf}
  Call RequireRights
  Call ChooseScope
FunctionEnd

; Apply the scope to folders, registry and choices.
Function ChooseScope
  Call UseScope
  ${If} $INSTDIR == ""
    ReadRegStr $INSTDIR SHCTX "${UNINSTALL}" "InstallLocation"
  ${EndIf}
  ${If} $INSTDIR == ""
    StrCpy $INSTDIR "$LOCALAPPDATA\Programs\${NAME}"
    ${If} $Everyone == 1
      StrCpy $INSTDIR "$PROGRAMFILES64\${NAME}"
    ${EndIf}
  ${EndIf}
  !insertmacro ReadChoice ${SectionSendTo} "SendTo" "/SENDTO"
  !insertmacro ReadChoice ${SectionPath} "SearchPath" "/PATH"
  !insertmacro ReadChoice ${SectionAutostart} "Autostart" "/AUTOSTART"
  ; For one account this is a setting of the program.
  ${If} $Everyone == 0
    !insertmacro UnselectSection ${SectionAutostart}
    SectionSetText ${SectionAutostart} ""
  ${Else}
    SectionSetText ${SectionAutostart} "$(AutostartName)"
  ${EndIf}
FunctionEnd

Function ShowScope
  ${If} $Chosen == 1
    Abort
  ${EndIf}
  !insertmacro MUI_HEADER_TEXT "$(ScopeTitle)" "$(ScopeSubtitle)"
  nsDialogs::Create 1018
  Pop $0
  ${NSD_CreateRadioButton} 0 10u 100% 12u "$(ScopeMine)"
  Pop $0
  ${NSD_CreateRadioButton} 0 28u 100% 12u "$(ScopeEveryone)"
  Pop $Control
  ${If} $Everyone == 1
    ${NSD_Check} $Control
  ${Else}
    ${NSD_Check} $0
  ${EndIf}
  nsDialogs::Show
FunctionEnd

Function LeaveScope
  ${NSD_GetState} $Control $Everyone
  Call RequireRights
  StrCpy $INSTDIR ""
  Call ChooseScope
FunctionEnd

; By the shell, since the window must not have the rights of an administrator.
Function OpenWindow
  Exec '"$WINDIR\explorer.exe" "$INSTDIR\mydata-like-gui.exe"'
FunctionEnd

Function un.onInit
  Call un.ReadOptions
  Call un.RequireRights
  Call un.UseScope
  StrCpy $Purge 0
  ${GetOptions} $Parameters "/PURGE" $R0
  ${IfNot} ${Errors}
    StrCpy $Purge 1
  ${EndIf}
FunctionEnd

Function un.ShowPurge
  !insertmacro MUI_HEADER_TEXT "$(PurgeTitle)" "$(PurgeSubtitle)"
  nsDialogs::Create 1018
  Pop $0
  ${NSD_CreateLabel} 0 10u 100% 24u "$(PurgeKept)"
  Pop $0
  ${NSD_CreateCheckbox} 0 40u 100% 12u "$(PurgeToo)"
  Pop $Control
  ${NSD_SetState} $Control $Purge
  nsDialogs::Show
FunctionEnd

Function un.LeavePurge
  ${NSD_GetState} $Control $Purge
FunctionEnd

Section "Uninstall"
  Call un.StopProgram
  Push "watch --uninstall"
  Call un.RunProgram
  ${If} $Everyone == 1
    Push "watch --uninstall --system"
    Call un.RunProgram
    DeleteRegValue HKLM "${RUN}" "${NAME}"
  ${EndIf}
  Push "--installer remove-path$ForEveryone"
  Call un.RunProgram
  Delete "$SMPROGRAMS\${NAME}.lnk"
  Delete "$SENDTO\${NAME}.lnk"
  ; The program itself has made this one.
  DeleteRegValue HKCU "${RUN}" "${NAME}"
  RMDir /r "$INSTDIR\_internal"
  Delete "$INSTDIR\mydata-like.exe"
  Delete "$INSTDIR\mydata-like-gui.exe"
  Delete "$INSTDIR\LICENSE"
  Delete "$INSTDIR\THIRD-PARTY.txt"
  Delete "$INSTDIR\sbom.cdx.json"
  Delete "$INSTDIR\uninstall.exe"
  RMDir "$INSTDIR"
  DeleteRegKey SHCTX "${UNINSTALL}"
  ${If} $Purge == 1
    Call un.Purge
  ${EndIf}
  ${If} $Everyone == 1
    RMDir "$APPDATA\${NAME}" ; if it is empty
  ${EndIf}
  ${Log} "${VERSION} is removed."
SectionEnd

; Delete settings, keys, ledger and logs, and those of the computer.
Function un.Purge
  SetShellVarContext current
  RMDir /r "$LOCALAPPDATA\${NAME}"
  ${If} $Everyone == 1
    SetShellVarContext all
    RMDir /r "$APPDATA\${NAME}"
  ${EndIf}
  ${Log} "Settings, keys, ledger and logs are deleted."
FunctionEnd
