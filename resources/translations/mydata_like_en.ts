<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en" sourcelanguage="en">
<context>
    <name>DestinationCheck</name>
    <message numerus="yes">
        <source>Reading the list: %Ln file(s)</source>
        <translation>
            <numerusform>Reading the list: %Ln file</numerusform>
            <numerusform>Reading the list: %Ln files</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Looking for other files: %Ln seen</source>
        <translation>
            <numerusform>Looking for other files: %Ln seen</numerusform>
            <numerusform>Looking for other files: %Ln seen</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>and %Ln more</source>
        <translation>
            <numerusform>and %Ln more</numerusform>
            <numerusform>and %Ln more</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln missing</source>
        <translation>
            <numerusform>%Ln missing</numerusform>
            <numerusform>%Ln missing</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln with other bytes</source>
        <translation>
            <numerusform>%Ln with other bytes</numerusform>
            <numerusform>%Ln with other bytes</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln that cannot be read</source>
        <translation>
            <numerusform>%Ln that cannot be read</numerusform>
            <numerusform>%Ln that cannot be read</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) checked</source>
        <translation>
            <numerusform>%Ln file checked</numerusform>
            <numerusform>%Ln files checked</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1 of %Ln file(s) checked</source>
        <translation>
            <numerusform>%1 of %Ln file checked</numerusform>
            <numerusform>%1 of %Ln files checked</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln part(s) of their list damaged</source>
        <translation>
            <numerusform>%Ln part of their list damaged</numerusform>
            <numerusform>%Ln parts of their list damaged</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>DropDialog</name>
    <message numerus="yes">
        <source>Upload %Ln folder(s)</source>
        <translation>
            <numerusform>Upload %Ln folder</numerusform>
            <numerusform>Upload %Ln folders</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Upload %Ln file(s)</source>
        <translation>
            <numerusform>Upload %Ln file</numerusform>
            <numerusform>Upload %Ln files</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) to send, %1</source>
        <translation>
            <numerusform>%Ln file to send, %1</numerusform>
            <numerusform>%Ln files to send, %1</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Scanning: %Ln file(s) to send so far, %1</source>
        <translation>
            <numerusform>Scanning: %Ln file to send so far, %1</numerusform>
            <numerusform>Scanning: %Ln files to send so far, %1</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) to send, %1: about %2 at the speed of the last run</source>
        <translation>
            <numerusform>%Ln file to send, %1: about %2 at the speed of the last run</numerusform>
            <numerusform>%Ln files to send, %1: about %2 at the speed of the last run</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>DryRunDialog</name>
    <message numerus="yes">
        <source>and %Ln more file(s)</source>
        <translation>
            <numerusform>and %Ln more file</numerusform>
            <numerusform>and %Ln more files</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>FolderTree</name>
    <message numerus="yes">
        <source>%Ln failed</source>
        <translation>
            <numerusform>%Ln failed</numerusform>
            <numerusform>%Ln failed</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln waiting</source>
        <translation>
            <numerusform>%Ln waiting</numerusform>
            <numerusform>%Ln waiting</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln left out</source>
        <translation>
            <numerusform>%Ln left out</numerusform>
            <numerusform>%Ln left out</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>FoldersStep</name>
    <message numerus="yes">
        <source>%Ln dataset(s) found.</source>
        <translation>
            <numerusform>%Ln dataset found.</numerusform>
            <numerusform>%Ln datasets found.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>More than %Ln dataset(s) found.</source>
        <translation>
            <numerusform>More than %Ln dataset found.</numerusform>
            <numerusform>More than %Ln datasets found.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln folder(s) do not fit this layout:</source>
        <translation>
            <numerusform>%Ln folder does not fit this layout:</numerusform>
            <numerusform>%Ln folders do not fit this layout:</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) or folder(s) are left out, such as %1: %2</source>
        <translation>
            <numerusform>%Ln file or folder is left out, such as %1: %2</numerusform>
            <numerusform>%Ln files or folders are left out, such as %1: %2</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln owner(s) are not known to the server; their data go to the facility:</source>
        <translation>
            <numerusform>%Ln owner is not known to the server; the data go to the facility:</numerusform>
            <numerusform>%Ln owners are not known to the server; their data go to the facility:</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>FreeDialog</name>
    <message numerus="yes">
        <source>Deleting %Ln file(s)</source>
        <translation>
            <numerusform>Deleting %Ln file</numerusform>
            <numerusform>Deleting %Ln files</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) can be deleted: %1</source>
        <translation>
            <numerusform>%Ln file can be deleted: %1</numerusform>
            <numerusform>%Ln files can be deleted: %1</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Delete %Ln file(s)</source>
        <translation>
            <numerusform>Delete %Ln file</numerusform>
            <numerusform>Delete %Ln files</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) were deleted: %1</source>
        <translation>
            <numerusform>%Ln file was deleted: %1</numerusform>
            <numerusform>%Ln files were deleted: %1</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) so far, %1. Nothing is deleted yet.</source>
        <translation>
            <numerusform>%Ln file so far, %1. Nothing is deleted yet.</numerusform>
            <numerusform>%Ln files so far, %1. Nothing is deleted yet.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>GetDialog</name>
    <message numerus="yes">
        <source>Reading the list: %Ln file(s)</source>
        <translation>
            <numerusform>Reading the list: %Ln file</numerusform>
            <numerusform>Reading the list: %Ln files</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s), %1, are back in %2</source>
        <translation>
            <numerusform>%Ln file, %1, is back in %2</numerusform>
            <numerusform>%Ln files, %1, are back in %2</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) were here already.</source>
        <translation>
            <numerusform>%Ln file was here already.</numerusform>
            <numerusform>%Ln files were here already.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) did not come back:</source>
        <translation>
            <numerusform>%Ln file did not come back:</numerusform>
            <numerusform>%Ln files did not come back:</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Headline</name>
    <message numerus="yes">
        <source>%Ln other file(s) are safe there.</source>
        <translation>
            <numerusform>%Ln other file is safe there.</numerusform>
            <numerusform>%Ln other files are safe there.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) were left out on purpose.</source>
        <translation>
            <numerusform>%Ln file was left out on purpose.</numerusform>
            <numerusform>%Ln files were left out on purpose.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>HoldBackToast</name>
    <message numerus="yes">
        <source>%Ln file(s) are held back.</source>
        <translation>
            <numerusform>%Ln file is held back.</numerusform>
            <numerusform>%Ln files are held back.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ImportDialog</name>
    <message numerus="yes">
        <source>%Ln setting(s) would change. From %1:</source>
        <translation>
            <numerusform>%Ln setting would change. From %1:</numerusform>
            <numerusform>%Ln settings would change. From %1:</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>InstrumentStep</name>
    <message numerus="yes">
        <source>Your account manages %Ln facility(s).</source>
        <translation>
            <numerusform>Your account manages %Ln facility.</numerusform>
            <numerusform>Your account manages %Ln facilities.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>LogModel</name>
    <message numerus="yes">
        <source>At most %Ln channel(s) are used.</source>
        <translation>
            <numerusform>At most %Ln channel is used.</numerusform>
            <numerusform>At most %Ln channels are used.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>OpenProblems</name>
    <message numerus="yes">
        <source>and %Ln more kind(s) of problems</source>
        <translation>
            <numerusform>and %Ln more kind of problems</numerusform>
            <numerusform>and %Ln more kinds of problems</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>OutsideNote</name>
    <message numerus="yes">
        <source>%Ln file(s) are in no dataset and stay here: %1</source>
        <translation>
            <numerusform>%Ln file is in no dataset and stays here: %1</numerusform>
            <numerusform>%Ln files are in no dataset and stay here: %1</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ProblemFilter</name>
    <message numerus="yes">
        <source>Show %Ln hidden kind(s)</source>
        <translation>
            <numerusform>Show %Ln hidden kind</numerusform>
            <numerusform>Show %Ln hidden kinds</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ProblemsPage</name>
    <message numerus="yes">
        <source>The next run does so for %Ln file(s).</source>
        <translation>
            <numerusform>The next run does so for %Ln file.</numerusform>
            <numerusform>The next run does so for %Ln files.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ReplaceHereQuestion</name>
    <message numerus="yes">
        <source>Replace %Ln file(s) on this computer?</source>
        <translation>
            <numerusform>Replace %Ln file on this computer?</numerusform>
            <numerusform>Replace %Ln files on this computer?</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ReplaceQuestion</name>
    <message numerus="yes">
        <source>Replace the server&apos;s copies of %Ln file(s)?</source>
        <translation>
            <numerusform>Replace the server&apos;s copy of %Ln file?</numerusform>
            <numerusform>Replace the server&apos;s copies of %Ln files?</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>SettingsDialog</name>
    <message numerus="yes">
        <source>%Ln setting(s) must be corrected first</source>
        <translation>
            <numerusform>%Ln setting must be corrected first</numerusform>
            <numerusform>%Ln settings must be corrected first</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln change(s) from last time were not saved</source>
        <translation>
            <numerusform>%Ln change from last time was not saved</numerusform>
            <numerusform>%Ln changes from last time were not saved</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln setting(s) were taken from the file; OK saves them.</source>
        <translation>
            <numerusform>%Ln setting was taken from the file; OK saves it.</numerusform>
            <numerusform>%Ln settings were taken from the file; OK saves them.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>And %Ln more</source>
        <translation>
            <numerusform>And %Ln more</numerusform>
            <numerusform>And %Ln more</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>SpeedPage</name>
    <message numerus="yes">
        <source>%1 of at most %2; %Ln figure(s) so far</source>
        <translation>
            <numerusform>%1 of at most %2; %Ln figure so far</numerusform>
            <numerusform>%1 of at most %2; %Ln figures so far</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>StageCard</name>
    <message numerus="yes">
        <source>%Ln waiting</source>
        <translation>
            <numerusform>%Ln waiting</numerusform>
            <numerusform>%Ln waiting</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>StatusView</name>
    <message numerus="yes">
        <source>%Ln file(s), %1</source>
        <translation>
            <numerusform>%Ln file, %1</numerusform>
            <numerusform>%Ln files, %1</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>SummaryRow</name>
    <message numerus="yes">
        <source>%Ln file(s)</source>
        <translation>
            <numerusform>%Ln file</numerusform>
            <numerusform>%Ln files</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>; %Ln more file(s) differ from the server&apos;s copies, which you kept</source>
        <translation>
            <numerusform>; %Ln more file differs from the server&apos;s copy, which you kept</numerusform>
            <numerusform>; %Ln more files differ from the server&apos;s copies, which you kept</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln left out</source>
        <translation>
            <numerusform>%Ln left out</numerusform>
            <numerusform>%Ln left out</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln upload(s)</source>
        <translation>
            <numerusform>%Ln upload</numerusform>
            <numerusform>%Ln uploads</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Except for %Ln file(s) that were left out.</source>
        <translation>
            <numerusform>Except for %Ln file that was left out.</numerusform>
            <numerusform>Except for %Ln files that were left out.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>It was interrupted; %Ln of its file(s) are verified.</source>
        <translation>
            <numerusform>It was interrupted; %Ln of its files is verified.</numerusform>
            <numerusform>It was interrupted; %Ln of its files are verified.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s), %1 in %2</source>
        <translation>
            <numerusform>%Ln file, %1 in %2</numerusform>
            <numerusform>%Ln files, %1 in %2</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>TablePanel</name>
    <message numerus="yes">
        <source>%Ln row(s)</source>
        <translation>
            <numerusform>%Ln row</numerusform>
            <numerusform>%Ln rows</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>TransfersModel</name>
    <message numerus="yes">
        <source>Show %Ln more</source>
        <comment>files that wait</comment>
        <translation>
            <numerusform>Show %Ln more</numerusform>
            <numerusform>Show %Ln more</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1 and %Ln more</source>
        <comment>files in a batch</comment>
        <translation>
            <numerusform>%1 and %Ln more</numerusform>
            <numerusform>%1 and %Ln more</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>TransfersPage</name>
    <message numerus="yes">
        <source>%Ln file(s) still to be sent</source>
        <translation>
            <numerusform>%Ln file still to be sent</numerusform>
            <numerusform>%Ln files still to be sent</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>UnfinishedList</name>
    <message numerus="yes">
        <source>and %Ln more; Start continues with all</source>
        <translation>
            <numerusform>and %Ln more; Start continues with all</numerusform>
            <numerusform>and %Ln more; Start continues with all</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>UnfinishedRow</name>
    <message numerus="yes">
        <source>%Ln file(s), %1, not verified yet</source>
        <translation>
            <numerusform>%Ln file, %1, not verified yet</numerusform>
            <numerusform>%Ln files, %1, not verified yet</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>datasets</name>
    <message numerus="yes">
        <source>%1 of %Ln file(s) verified</source>
        <translation>
            <numerusform>%1 of %Ln file verified</numerusform>
            <numerusform>%1 of %Ln files verified</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>drop</name>
    <message numerus="yes">
        <source>%Ln file(s) are already safe on the server.</source>
        <translation>
            <numerusform>%Ln file is already safe on the server.</numerusform>
            <numerusform>%Ln files are already safe on the server.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) wait, such as %1: %2</source>
        <translation>
            <numerusform>%Ln file waits: %1: %2</numerusform>
            <numerusform>%Ln files wait, such as %1: %2</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln left out, such as %1: %2</source>
        <translation>
            <numerusform>%Ln left out, such as %1: %2</numerusform>
            <numerusform>%Ln left out, such as %1: %2</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>dry run</name>
    <message numerus="yes">
        <source>%Ln file(s), %1, would be uploaded.</source>
        <translation>
            <numerusform>%Ln file, %1, would be uploaded.</numerusform>
            <numerusform>%Ln files, %1, would be uploaded.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Nothing to upload: all %Ln file(s) are on the server.</source>
        <translation>
            <numerusform>Nothing to upload: the %Ln file is on the server.</numerusform>
            <numerusform>Nothing to upload: all %Ln files are on the server.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Nothing would be uploaded now, and %Ln file(s) are not on the server.</source>
        <translation>
            <numerusform>Nothing would be uploaded now, and %Ln file is not on the server.</numerusform>
            <numerusform>Nothing would be uploaded now, and %Ln files are not on the server.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) would replace other content on the server.</source>
        <translation>
            <numerusform>%Ln file would replace other content on the server.</numerusform>
            <numerusform>%Ln files would replace other content on the server.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>notifications</name>
    <message numerus="yes">
        <source>%Ln file(s) of what was added from it are not verified.</source>
        <translation>
            <numerusform>%Ln file of what was added from it is not verified.</numerusform>
            <numerusform>%Ln files of what was added from it are not verified.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>All %Ln file(s) that were added from it are safe on the server.</source>
        <translation>
            <numerusform>The %Ln file that was added from it is safe on the server.</numerusform>
            <numerusform>All %Ln files that were added from it are safe on the server.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n file(s) could not be uploaded.</source>
        <translation>
            <numerusform>%n file could not be uploaded.</numerusform>
            <numerusform>%n files could not be uploaded.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n file(s) were sent.</source>
        <translation>
            <numerusform>%n file was sent.</numerusform>
            <numerusform>%n files were sent.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n file(s) or folder(s) were left out.</source>
        <translation>
            <numerusform>%n file or folder was left out.</numerusform>
            <numerusform>%n files or folders were left out.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n file(s) wait for the next run.</source>
        <translation>
            <numerusform>%n file waits for the next run.</numerusform>
            <numerusform>%n files wait for the next run.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>problems</name>
    <message numerus="yes">
        <source>%Ln folder(s)</source>
        <translation>
            <numerusform>%Ln folder</numerusform>
            <numerusform>%Ln folders</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s)</source>
        <translation>
            <numerusform>%Ln file</numerusform>
            <numerusform>%Ln files</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>runs</name>
    <message numerus="yes">
        <source>Interrupted, %Ln file(s) unfinished</source>
        <translation>
            <numerusform>Interrupted, %Ln file unfinished</numerusform>
            <numerusform>Interrupted, %Ln files unfinished</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) failed</source>
        <translation>
            <numerusform>%Ln file failed</numerusform>
            <numerusform>%Ln files failed</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln left out</source>
        <translation>
            <numerusform>%Ln left out</numerusform>
            <numerusform>%Ln left out</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) wait</source>
        <translation>
            <numerusform>%Ln file waits</numerusform>
            <numerusform>%Ln files wait</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>All %Ln file(s) safe</source>
        <translation>
            <numerusform>%Ln file safe</numerusform>
            <numerusform>All %Ln files safe</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>sentences</name>
    <message numerus="yes">
        <source>Sending %Ln file(s), about %1 left</source>
        <translation>
            <numerusform>Sending %Ln file, about %1 left</numerusform>
            <numerusform>Sending %Ln files, about %1 left</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Sending %Ln file(s)</source>
        <translation>
            <numerusform>Sending %Ln file</numerusform>
            <numerusform>Sending %Ln files</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>The server is checking %Ln file(s)</source>
        <translation>
            <numerusform>The server is checking %Ln file</numerusform>
            <numerusform>The server is checking %Ln files</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Looking through %Ln file(s)</source>
        <translation>
            <numerusform>Looking through %Ln file</numerusform>
            <numerusform>Looking through %Ln files</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) are safe</source>
        <translation>
            <numerusform>%Ln file is safe</numerusform>
            <numerusform>%Ln files are safe</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1. %Ln file(s) (%2) are still only on this computer</source>
        <translation>
            <numerusform>%1. %Ln file (%2) is still only on this computer</numerusform>
            <numerusform>%1. %Ln files (%2) are still only on this computer</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln upload(s) that you added are not finished</source>
        <translation>
            <numerusform>%Ln upload that you added is not finished</numerusform>
            <numerusform>%Ln uploads that you added are not finished</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) are still only on this computer</source>
        <translation>
            <numerusform>%Ln file is still only on this computer</numerusform>
            <numerusform>%Ln files are still only on this computer</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) need your attention</source>
        <translation>
            <numerusform>%Ln file needs your attention</numerusform>
            <numerusform>%Ln files need your attention</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) or folder(s) were left out and are not on the server</source>
        <translation>
            <numerusform>%Ln file or folder was left out and is not on the server</numerusform>
            <numerusform>%Ln files or folders were left out and are not on the server</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) wait for the next run</source>
        <translation>
            <numerusform>%Ln file waits for the next run</numerusform>
            <numerusform>%Ln files wait for the next run</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) of the last upload are safe</source>
        <translation>
            <numerusform>%Ln file of the last upload is safe</numerusform>
            <numerusform>%Ln files of the last upload are safe</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>All %Ln file(s) are safe on the server</source>
        <translation>
            <numerusform>%Ln file is safe on the server</numerusform>
            <numerusform>All %Ln files are safe on the server</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) are safe on the server</source>
        <translation>
            <numerusform>%Ln file is safe on the server</numerusform>
            <numerusform>%Ln files are safe on the server</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1; %Ln file(s) differ from the server&apos;s copies, which you kept</source>
        <translation>
            <numerusform>%1; %Ln file differs from the server&apos;s copy, which you kept</numerusform>
            <numerusform>%1; %Ln files differ from the server&apos;s copies, which you kept</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>speed</name>
    <message numerus="yes">
        <source>%Ln channel(s)</source>
        <translation>
            <numerusform>%Ln channel</numerusform>
            <numerusform>%Ln channels</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln session(s)</source>
        <translation>
            <numerusform>%Ln session</numerusform>
            <numerusform>%Ln sessions</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln connection(s)</source>
        <translation>
            <numerusform>%Ln connection</numerusform>
            <numerusform>%Ln connections</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>where</name>
    <message numerus="yes">
        <source>No: %Ln file(s) in it are not safe yet</source>
        <translation>
            <numerusform>No: %Ln file in it is not safe yet</numerusform>
            <numerusform>No: %Ln files in it are not safe yet</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Yes, you may delete all %Ln file(s)</source>
        <translation>
            <numerusform>Yes, you may delete the %Ln file</numerusform>
            <numerusform>Yes, you may delete all %Ln files</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>No: %Ln file(s) must be kept</source>
        <translation>
            <numerusform>No: %Ln file must be kept</numerusform>
            <numerusform>No: %Ln files must be kept</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) can be deleted. The first one to keep is %1: %2</source>
        <translation>
            <numerusform>%Ln file can be deleted. The first one to keep is %1: %2</numerusform>
            <numerusform>%Ln files can be deleted. The first one to keep is %1: %2</numerusform>
        </translation>
    </message>
</context>
</TS>
