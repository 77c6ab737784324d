<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de" sourcelanguage="en">
<context>
    <name>AccountStep</name>
    <message>
        <source>Which account?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The account that uploads, usually the facility manager&apos;s. Its API key is on the server&apos;s page “Manage Account”.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Open the server&apos;s page</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Account</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>API &amp;key</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep the key in a &amp;file that only you can read (not encrypted)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Unlock it and press Next again, or keep the key in a file that only you can read.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Already stored; leave empty to use it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Checking the account…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You are signed in as %1.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>AddressStep</name>
    <message>
        <source>Which server?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The web address of your MyTardis server, as you open it in a browser.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Server &amp;address</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Import from MyData…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Choose a MyData.cfg…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Try the demo</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Have you used MyData before? Its settings can be imported.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>MyData was used on this computer: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Connecting to the server…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is a MyTardis server: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Use %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>MyData&apos;s settings (*.cfg);;All files (*)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Settings of MyData</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>AppShell</name>
    <message>
        <source>mydata-like is still running</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Banner</name>
    <message>
        <source>Message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show &amp;more</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Close message</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>BarChart</name>
    <message>
        <source>Speed of each part alone, and of all together</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 (%2)</source>
        <comment>a rate, and an earlier one</comment>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1, the slowest</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1: %2</source>
        <comment>a stage and its rate</comment>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>; earlier %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>; this is the slowest</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>BundleDialog</name>
    <message>
        <source>Support bundle</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Files of the bundle</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Text of the file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Include names of files and folders</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Collecting diagnostic information</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is the complete content. It contains no API keys or passwords. Review it before you send it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save the support bundle</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Zip files (*.zip)</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>CleanupResultsModel</name>
    <message>
        <source>File</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Size</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reason</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ConnectionTest</name>
    <message>
        <source>Good</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not verified</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Failed</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ConnectionTestDialog</name>
    <message>
        <source>Connection test</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Steps of the test</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Testing the connection to the server</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy as &amp;text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The connection works</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing failed, but not every step could be verified</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The test failed</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>DateEditor</name>
    <message>
        <source>no day</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>DemoLauncher</name>
    <message>
        <source>This computer could not start another program.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The demo could not be started.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>DetailsPanel</name>
    <message>
        <source>Details</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>DropDialog</name>
    <message>
        <source>Upload</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Double-click an owner, experiment or dataset to change it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Notes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Upload</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Dropped folders and their destinations</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Upload %Ln folder(s) or file(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Nothing can be uploaded before the set-up is complete.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another upload is in progress. This one can start when it has ended.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A speed test is in progress. The upload can start when it has ended.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) to send, %1</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Scanning: %Ln file(s) to send so far, %1</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Nothing is to be sent.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) to send, %1: about %2 at the speed of the last run</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
</context>
<context>
    <name>DropFrame</name>
    <message>
        <source>Drop to upload</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>DropHint</name>
    <message>
        <source>Drop folders or files here to upload them</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>DropTarget</name>
    <message>
        <source>Choose a folder to upload</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>DryRunDialog</name>
    <message>
        <source>Dry run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Scanning the folders…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The dry run is in progress</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Folders</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Files and folders with remarks</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Upload now</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>and %Ln more file(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>The dry run ended before it was complete.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>EmptyState</name>
    <message>
        <source>Set &amp;up…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Try the de&amp;mo</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Upload sample data to a server inside this program</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your data, safe on the server</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This program uploads the files of an instrument to a MyTardis server and verifies that every byte arrived. The set-up takes six short steps.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>FoldedText</name>
    <message>
        <source>Details</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>FolderTree</name>
    <message>
        <source>Files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Size</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>State</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Verified</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not verified</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All further entries</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your account</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <comment>number of files of a total</comment>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln failed</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln waiting</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln left out</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
</context>
<context>
    <name>FoldersPage</name>
    <message>
        <source>Show files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open on server</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy path</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only this one now</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Send after all</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Send files of this folder that were left out or failed in this run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Folders</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Select a dataset, or a folder in one, to list its files or to open it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The folders appear here after the first run.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>FoldersStep</name>
    <message>
        <source>Which data?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The folder in which the instrument saves its data. Nothing in it is ever changed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>C&amp;hoose…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Data &amp;folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Folder &amp;structure</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What the folders become</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Data folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>For example: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The folder %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Scanning the folders…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Did you mean “%1”? &amp;Use it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server completes “…” with the full name of the owner.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln dataset(s) found.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>More than %Ln dataset(s) found.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>No folder fits this layout yet, so there is nothing to upload.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln folder(s) do not fit this layout:</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) or folder(s) are left out, such as %1: %2</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>A dry run lists all of them.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The owners could not be checked on the server.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln owner(s) are not known to the server; their data go to the facility:</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
</context>
<context>
    <name>FormerKeyQuestion</name>
    <message>
        <source>Use the stored key</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use the API key that is stored for %1 also for %2?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The key gives access to the account, and is sent to the new address from then on. Do this only if both are addresses of the same server.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Use the key</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Cancel</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>FreeDialog</name>
    <message>
        <source>Free space</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Progress</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Files to delete</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Files to keep</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Checking the server and reading the files again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing is deleted yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stop</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Deleting %Ln file(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>The server verifies its copies again, and each file is read again, right before it is deleted.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Can be deleted (%1)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Close</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing here can be deleted</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The reason for each file is listed below.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) can be deleted: %1</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>The server has a verified copy of each, with the same size and checksum. It verifies them again before anything is deleted. Folders are kept. Deleted files are not moved to the trash.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Delete %Ln file(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Deleted (%1)</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) were deleted: %1</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Nothing was deleted</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Every deletion is recorded in freed.jsonl in the state folder.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Kept (%1)</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) so far, %1. Nothing is deleted yet.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Headline</name>
    <message>
        <source>Another program or the service executes this run.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next automatic try: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Over HTTP, until the administrator approves SSH.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It takes longer, since more files were found.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It takes longer, since sending has become slower.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It takes longer, since the server needs more time for each file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It takes longer, since the files that are left need more time.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start continues where it stopped.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The oldest of them is from %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln other file(s) are safe there.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) were left out on purpose.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Resu&amp;me</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pa&amp;use</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open settin&amp;gs…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check key and approva&amp;l…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start agai&amp;n</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start n&amp;ow</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show pro&amp;blems</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>HelpDialog</name>
    <message>
        <source>Help</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Getting started</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What is new</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keys</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Versions</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Licences</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Getting started</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What is &amp;new</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Keys</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;About</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>**Set up** once: the server, the account, the instrument and its data folder. The first start opens the set-up; later, it is in the settings.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>**Start** sends what the server lacks. Or let it happen: *Settings*, *Schedule* has fixed times, and *with new files*.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>**Drop** folders or files on the window to upload what is elsewhere; choose the experiment and the dataset that they become.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>**Verified** means that the server has read the file and its checksum is right. Until then it counts as *only on this computer*.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>**May I delete it?** *Where is my data?* answers for a file or a folder, with the reasons, and can free the space.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>**Problems** says what happened to a file, who can fix it, and what to do. Nothing is lost meanwhile, and a later run continues.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>**Too slow?** The *speed test* finds out what the limit is, and which settings help.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Uploads research data from instruments to a MyTardis server.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Copy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy the versions as text, for a report</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What security depends on:</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is built on:</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>HistoryPage</name>
    <message>
        <source>Export…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Runs</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There are no runs yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Files of the run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This run did not change the status of any file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Runs of mydata-like</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Files of the run of %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Table (*.csv)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Web page (*.html)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>JSON (*.json)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Export runs</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Written to %1</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>HoldBackToast</name>
    <message numerus="yes">
        <source>%Ln file(s) are held back.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>%1 is held back.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>HostKeyPanel</name>
    <message>
        <source>&amp;Trust this host</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show the &amp;earlier key</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Folder of the staging area</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Write to this folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is the first connection to the staging host %1, port %2. Compare the fingerprint of its key with the one from your administrator:</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging host %1 identifies itself with another key than before: trust it only if your administrator confirms this fingerprint.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging host %1 identifies itself with another key than those in the setting “Trusted host keys”: trust it only if your administrator confirms this fingerprint.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging host %1 identifies itself with another key than those that the server names: trust it only if your administrator confirms this fingerprint.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fingerprint of the host&apos;s key</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Earlier key of port %1: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Looking for the next host…</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ImportDialog</name>
    <message>
        <source>Import settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reading %1…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What would change</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Import</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln setting(s) would change. From %1:</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Nothing would change: %1 has the current settings.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is locked and is not changed.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>InstrumentStep</name>
    <message>
        <source>Which instrument?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server shows datasets under the name of their instrument.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Contact person, for questions about this instrument</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;E-mail of the contact person</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Facility</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Instrument</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Loading the facilities…</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Your account manages %Ln facility(s).</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>The server knows this instrument.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New: the instrument “%1” will be made.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The address %1.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>KeyStep</name>
    <message>
        <source>Register this computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Files are uploaded with a key that was created on this computer. An administrator of the server approves it once.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Copy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Key fingerprint</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reading the key…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The administrator compares the fingerprint in the server&apos;s administration (MyData, uploader registration requests), chooses the storage box and ticks “approved”. You can close this window: the program keeps checking, and notifies you when the key is approved.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy a &amp;message for the administrator</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check &amp;again now</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Checking whether the key is approved…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The key is approved for the storage box “%1”.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Please let the uploader “%1” of %2 send data to %3.

Its key has the fingerprint %4 (MD5 %5).

In the server&apos;s administration, under MyData, uploader registration requests: compare the fingerprint, choose the storage box and tick “approved”. Then let the key into the staging host&apos;s account.
</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>LeftModel</name>
    <message>
        <source>File or folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remark</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>LogModel</name>
    <message>
        <source>Detail</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Information</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Warning</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Error</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Time</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Level</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Source</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>LogPage</name>
    <message>
        <source>Follow</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Which log</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Uploads</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This window</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Level</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Everything</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Information and above</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Warnings and errors</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Errors only</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only lines with this text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Text in the line</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing has been written yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy lines</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Find</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Support bundle…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lines of the log</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No lines match.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>MainWindow</name>
    <message>
        <source>mydata-like: demo</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Demo: sample data, and a server on this computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Start</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Pause</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Resume</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>S&amp;top</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Dry run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show what would be uploaded; nothing is sent</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Add folders…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>S&amp;ettings…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Help</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Quit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Find a file or folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Actions</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Where is…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next run %1</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>MyDataImportDialog</name>
    <message>
        <source>Import from MyData</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Settings to import</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep the API key in a &amp;file that only you can read (not encrypted)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Import</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reading MyData&apos;s settings…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing is changed yet. From %1:</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The API key is imported as well.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing was changed. Unlock it, or keep the key in a file.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Navigation</name>
    <message>
        <source>Pages</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>OpenProblems</name>
    <message>
        <source>Needs your attention</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>and %Ln more kind(s) of problems</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
</context>
<context>
    <name>PathEditor</name>
    <message>
        <source>Choose…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose: %1</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>PipelineStrip</name>
    <message>
        <source>Scan</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Send</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Register</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Verify</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>PlanModel</name>
    <message>
        <source>Folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Owner</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Experiment</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Dataset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Found</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>On the server</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not there yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>(the account)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>(named after the owner)</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>PreviewModel</name>
    <message>
        <source>Owner</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Experiment</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Dataset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Size</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ProblemCard</name>
    <message>
        <source>Copy as text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You can fix this.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your administrator can fix this.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server has to recover. The program retries automatically.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing needs to be fixed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Try again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open settings…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check key and approval…</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ProblemFilter</name>
    <message>
        <source>Kinds of problems</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Show %Ln hidden kind(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ProblemsPage</name>
    <message>
        <source>Rep&amp;lace the server&apos;s…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Keep the server&apos;s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Hide this kind</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Files of this kind</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing else is wrong.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing is wrong.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No problems are known.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose whether to replace the copies or to keep them: for the selected files, or else for all that are listed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show this kind</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Paused</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing is sent for now.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Interrupted</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The last run did not finish.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Failed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No run of this window is active.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>None of its files can be sent.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The last run ended early.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The last run was interrupted: the program or the computer stopped.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing is lost: the next run continues.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not possible for these files now. Start a run first.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>The next run does so for %Ln file(s).</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>This kind of problem is hidden.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Program</name>
    <message>
        <source>The settings were not saved</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your changes can be restored.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln folder(s) or file(s) are scanned and then uploaded.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>“%1” is scanned and then uploaded.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Added</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>QueueActions</name>
    <message>
        <source>Send next</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Hold back</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Send this before everything else that waits</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Send the others first. What has arrived of this is kept: the next run continues it, or this one if you choose Send next.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>QuitPrompt</name>
    <message>
        <source>Quit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>An upload is active.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It can continue without the window. If you stop it, the next run continues.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Quit and &amp;leave the upload running</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stop the &amp;upload and quit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Cancel</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>RecentDatasets</name>
    <message>
        <source>Recent datasets</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>RemoveQuestion</name>
    <message>
        <source>Remove from the list</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stop uploading %1?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing is deleted, here or on the server. Files that are not on the server yet stay only on this computer, and no run uploads them until the folder is added again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Remove</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Keep</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ReplaceQuestion</name>
    <message>
        <source>Replace the server&apos;s copies</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Replace the server&apos;s copies of %Ln file(s)?</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>The next run replaces the verified copies with the files of this computer. Do this only if the files here are right.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Replace</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Cancel</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ResultView</name>
    <message>
        <source>T&amp;est:</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compare &amp;with:</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Apply</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Undo</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Copy as text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All &amp;figures</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no other</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Recommendations, faster twice:</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tried, not faster twice:</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not measured:</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ResultsModel</name>
    <message>
        <source>Stage</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What was measured</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Figure</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Range</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ResultsTable</name>
    <message>
        <source>All figures</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>RouteRow</name>
    <message>
        <source>This computer</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>RowActions</name>
    <message>
        <source>Try again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open on server</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Where is it?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy path</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Select files to open their folder, find them, or send them again.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>SchedulePreview</name>
    <message>
        <source>Next starts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>When runs would start automatically, in this computer&apos;s time.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>They are shown once the schedule is complete.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ScheduleStep</name>
    <message>
        <source>When to upload?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You can start an upload at any time as well. The settings have more schedules.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Soon after new files are complete</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Every &amp;day at</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Only when I press Start</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Time of the daily upload</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start the program in the tray when I log &amp;in</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Uploads start automatically only while the program is running.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>SecretRow</name>
    <message>
        <source>It is stored in the system&apos;s keyring, or in a file that only you can read, and never in the settings.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>API key</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The key of the account, from its page on the server.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>S3 secret access key</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The secret of the S3 access key, from the administrator of the object storage. Each access key and S3 address has its own.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use the key stored for %1…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Forget</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>In the system&apos;s keyring</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>In a file, not encrypted</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Storage: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Forget: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stored; type a new one to replace it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New: stored with OK</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Removed with OK</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stored in %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Looking up where it is stored</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Needed before a run can start</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Without a keyring, it can be stored in a file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the keyring</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the secrets file</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>SentBar</name>
    <message>
        <source>Sent</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ServerIndicatorLabel</name>
    <message>
        <source>Server</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>SetByServer</name>
    <message>
        <source>The server sets some settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the facility&apos;s administrator whether this is intended. What you save in the settings takes precedence until the server&apos;s settings change again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1: %2 instead of %3</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>(empty)</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>SettingRow</name>
    <message>
        <source>Reset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reset: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Needed before a run can start</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Changed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Changed: reset to the default</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Changed: reset to %1</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>SettingsDialog</name>
    <message>
        <source>Settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Import…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>E&amp;xport…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Test co&amp;nnection…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Test the connection to the server with these settings, step by step</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Take settings from MyData&apos;s MyData.cfg, or from a file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Write the settings to a file, without secrets</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln setting(s) must be corrected first</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln change(s) from last time were not saved</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>&amp;Restore them</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The settings file was changed by another program. Your changes are applied on top of it: review them and press OK again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The keyring cannot be used, and nothing was saved. Unlock it, or choose to keep the key in a file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Settings (*.cfg *.toml)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Import settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln setting(s) were taken from the file; OK saves them.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>%1 is locked and was not changed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>And %Ln more</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Export the settings without secrets</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Settings (*.toml)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The settings were written, without secrets.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>SettingsTabs</name>
    <message>
        <source>Search all settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Groups of settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No setting matches your search.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Settings</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>SetupWizard</name>
    <message>
        <source>Set up mydata-like</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Server</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Account</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Instrument</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Data</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>When</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Approval</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Later</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check a&amp;gain</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Back</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start &amp;now</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Next</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reading the settings…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Finish</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cl&amp;ose and wait</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ShutdownController</name>
    <message>
        <source>The program keeps running in the tray. Use Quit to end it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The program keeps running in a minimized window, since there is no tray. Use Quit to end it.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>SourcesModel</name>
    <message>
        <source>Folder or file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Owner</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Experiment</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Dataset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Size</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>other files</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>SpeedPage</name>
    <message>
        <source>&amp;Test now</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Quick test</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>About 15 seconds; less accurate</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ca&amp;ncel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The speed test is in progress</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Find out how fast each part of an upload is, and which settings are faster. A test takes a minute at most, and leaves nothing on the server.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Measuring each part of an upload…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ending the test, and removing what it wrote on the server…</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%1 of at most %2; %Ln figure(s) so far</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Set up the program before you run a speed test.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A run is active and would distort the test. Test again when it has ended.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>StageCard</name>
    <message>
        <source>%1 files/s</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln waiting</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>The limit</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>StartButton</name>
    <message>
        <source>Start now</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>StatusBreakdownBar</name>
    <message>
        <source>%1 verified</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 in progress</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 waiting</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 skipped</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 failed</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>StatusCard</name>
    <message>
        <source>May I delete it?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check now</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Free space…</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>StatusView</name>
    <message>
        <source>Open on the server</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy checksum</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>MD5 %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>An earlier version (%1) is kept until %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s), %1</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>verified by the server</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>sent</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>registered</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>being replaced</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>found, not sent yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>changed on this computer only</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>waiting</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>left out</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>failed</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>SuggestionsModel</name>
    <message>
        <source>Name</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>State</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Changed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Size</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>safe</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>failed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>left out</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not safe yet</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>SuggestionsTable</name>
    <message>
        <source>Files and folders of this name</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>SummaryRow</name>
    <message>
        <source>Only on this computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Last run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next run</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Cannot be read</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1; the oldest is from %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>; %Ln more file(s) differ from the server&apos;s copies, which you kept</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln left out</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Files and folders that were not left out on purpose.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln folder(s) or file(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>They were added and are not finished.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not known yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The first run finds out.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The next run finds out.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The last run found none.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Different from the server&apos;s copies, which you kept.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Every file that was found is on the server.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Except for %Ln file(s) left out on purpose.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Nothing</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>It was interrupted; %Ln of its file(s) are verified.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>None yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s), %1 in %2</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>It ended early, and no file was sent completely.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No file was sent completely, and not all files are safe.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing had to be sent.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>With new files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A run starts when they no longer change.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Press Start, or set a schedule in the settings.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not planned</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>SwitchEditor</name>
    <message>
        <source>On</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Off</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>TablePanel</name>
    <message>
        <source>There is nothing here yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>S&amp;how</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show all</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Filter by name</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Filter</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln row(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>counting…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No name contains “%1”.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No matching rows.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>TableView</name>
    <message>
        <source>Copy rows</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>TestFilePanel</name>
    <message>
        <source>&amp;Send a test file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Steps of the test upload</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A small file is uploaded, verified on the server and deleted again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Uploading a small file…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The test file did not arrive; see the last line.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing failed, but not every step could be verified.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The test upload succeeded. You can finish now.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Send it again</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ThroughputChart</name>
    <message>
        <source>Throughput of the last two minutes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 files/s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>seconds ago</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Files a second</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>MB/s by channel:</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source> and more</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Toast</name>
    <message>
        <source>Undo</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>TransfersModel</name>
    <message>
        <source>Name</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Progress</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sent</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Time left</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Speed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Channel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Attempt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Message</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%1 and %Ln more</source>
        <comment>files in a batch</comment>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>%1 %</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>about %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Waits for its turn</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>TransfersPage</name>
    <message>
        <source>Pause all</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Resume</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Move up</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Move down</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Active transfers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No file has been sent yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not sent yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>In progress</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Verified</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Waiting</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Failed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Left out</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only in %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No active transfers.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another program is uploading; its files appear below.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) still to be sent</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Tray</name>
    <message>
        <source>&amp;Start</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Pause</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pause for 1 &amp;hour</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Resume</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>S&amp;top</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Open</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Spee&amp;d test</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>S&amp;ettings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Quit</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>TrayPopup</name>
    <message>
        <source>&amp;Open the window</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Upload status</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>UnfinishedList</name>
    <message>
        <source>Added folders that are not finished</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>and %Ln more; Start continues with all</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
</context>
<context>
    <name>UnfinishedRow</name>
    <message>
        <source>Continue</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>uploaded as %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not scanned yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the next run checks whether everything is on the server</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s), %1, not verified yet</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
</context>
<context>
    <name>WherePage</name>
    <message>
        <source>Choose a file…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose a folder…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Part of a name, or a whole path</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Name or path</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Type part of a name, or drop a file or folder here.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Several paths contain this text. Choose one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No run has found a file with this name.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Checking the server</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Where is this file?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Where is this folder?</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>WizardStep</name>
    <message>
        <source>Set by %1.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>_Notice</name>
    <message>
        <source>Test an&amp;yway</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>contact</name>
    <message>
        <source>Server not contacted yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Server reachable</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Server answered %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Server not reachable</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No answer from the server for %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Waiting for approval</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>datasets</name>
    <message numerus="yes">
        <source>%1 of %Ln file(s) verified</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
</context>
<context>
    <name>drop</name>
    <message>
        <source>One of this and %1 contains the other. Remove one of them.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 would become the same dataset. Give one of the two another name.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The dataset already has files of %1. Files with the same names will be replaced.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It was uploaded as %1 before. Everything will be uploaded again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It holds no files.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) are already safe on the server.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln left out, such as %1: %2</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) wait, such as %1: %2</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
</context>
<context>
    <name>dry run</name>
    <message>
        <source>The server has other content: %1, not verified.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server has other content: %1, verified on %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Would be replaced</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s), %1, would be uploaded.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) would replace other content on the server.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>No files were found.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Nothing to upload: all %Ln file(s) are on the server.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Nothing would be uploaded now, and %Ln file(s) are not on the server.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>%1 waiting</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 waiting, of which %2 held until you choose</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 on the server</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 sent before and not verified yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 left out</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 that cannot be read</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>engine</name>
    <message>
        <source>%1 : interrupted transfers start again from the beginning.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 = &quot;%2&quot; in %3 is no longer supported; &quot;%4&quot; is used instead.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 = %2; MyData has %3</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 According to the server, the key %2 is approved.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 The run tries again automatically, %2 seconds later at most.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 Until then, files are sent over HTTP, which is slower.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 Until then, the previous settings apply.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 Without a keyring, use `--store=file`.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 accepts the uploader&apos;s key for %2, but wants %3 as well.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 accepts the uploader&apos;s key for %2, but wants another proof as well.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 allows only scp: interrupted transfers start again from the beginning.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 and %2 other files are sent while open in %3.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 and %2 other files are sent with a modification time in the future.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 and %2 overlap.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 and libssh have no %2 in common. The host offers %3; mydata-like offers %4.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 and libssh have no %2 in common. The host offers none; mydata-like offers %3.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 and paramiko have no %2 in common. The host offers %3; mydata-like offers %4.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 and paramiko have no %2 in common. The host offers none; mydata-like offers %3.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 and this program have no common encryption method.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 asks us to wait until %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 belongs to another account, so the system does not say whether a program is writing to it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 can log in and manages the facility %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 cannot be edited here because of its syntax.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 cannot be reached on port %2: %3.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 cannot be reached on port %2: its name cannot be resolved.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 cannot be reached: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 cannot be read or deleted: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 cannot be read: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 cannot be removed: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 cannot be uploaded: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 cannot be used. %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 cannot be written: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 changed a moment ago.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 changed while it was added to the archive.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 changed while it was being read.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 closed the connection on port %2 during the key exchange.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 contains a null character.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 contains a symbolic link, which is not followed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 contains bytes that are not text.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 contains the data directory.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 could not answer (status %2).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 does not accept the access key %2: %3.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 does not accept the account %2 with its API key.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 does not accept the uploader&apos;s key for %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 does not allow another channel.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 does not contain a usable private key.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 does not name an experiment and a dataset.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 does not offer SFTP.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 does not rename and remove files: interrupted transfers start again from the beginning.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 does not run commands.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 does not seem to be a MyTardis server.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 does not set times: files there get the time of their transfer.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 does not switch it on</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 exists already.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 files (%2) of interrupted transfers were removed from the staging area because they had not changed for %3 days.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 files were sent in the last week, but no run over the whole data directory has finished: it is unknown whether all files are safe.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 from the server is ignored: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 from the server is ignored: only this computer may set it to %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 from the server is ignored: only this computer may set it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 has been changed or replaced.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 has locked the ledger %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 has no bucket %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 has no program for checksums: interrupted transfers start again from the beginning.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 has no supported tar: small files are sent one by one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 has no valid checksum or size.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 has the file open and may still write to it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 in %2 is ignored: it is locked by %3.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is a %2, but the program needs a regular file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is a MyTardis server, but the MyData app, which approves uploaders, is not installed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is a MyTardis server.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is a link to something else.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is in the data directory. It is part of the dataset &quot;%2&quot; of the experiment &quot;%3&quot;.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is in the data directory. It is part of the dataset &quot;%2&quot;.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is in the data directory. It is the dataset &quot;%2&quot; of the experiment &quot;%3&quot;.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is in the data directory. It is the dataset &quot;%2&quot;.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is in the data directory. The layout maps its folders to datasets.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is in use by another program, which lets no other read it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is left out: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is locked by %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is locked by a program that may write to it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is neither True nor False: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is neither a folder nor a regular file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is no longer the file that was sent.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is none of: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is not a MyData.cfg: it has no section [MyData].</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is not a day of the week</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is not a host; write HOST, HOST:PORT or [ADDRESS]:PORT</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is not a host; write user@host:port, with an IPv6 address in brackets</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is not a number of minutes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is not a number of retries</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is not a regular file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is not a setting; did you mean %2?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is not a valid file name on this system.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is not a valid path in the staging area.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is not allowed; choose from %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is not an unfinished extra source.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is not known as the folder of the storage box %2: it has no file %3.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is not text in UTF-8 or in the code page %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is not the file that was found there.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is open in a program (%2).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is open in a program that may write to it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is open in another program.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is reached with paramiko, which is slower: the installed libssh does not check what it receives with AES-GCM, and both sides allow no other cipher.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is running: nothing is sent.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is sent while open in %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is sent with a modification time in the future.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is the folder of another storage box, not of %2 with the location %3.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is the least here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is the most here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is to be the folder of the storage box %2, whose location on the server is %3. It is on the file system that is mounted at %4.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is to be the folder of the storage box %2, whose location on the server is %3. It is on the same file system as %4, so it is probably not mounted now.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is too busy: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is too large for a MyData.cfg (1 MiB at most).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 locks settings, but users without administrator rights can change it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 names no file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 no longer exists.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 occurs several times; the last value is used.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 of %2 runs of the last week did not succeed; %3 files are not safe on the server yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 of %2 runs of the last week did not succeed; %3 files are not safe on the server yet. %4</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 prints more output than expected.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 redirects to another address or region, which is not followed: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 redirects to another address: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 redirects to another address: none given.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 refused this (status %2)%3.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 refused this (status %2).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 refused this (status %2): %3.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 refused to connect to %2, port %3.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 refuses the account %2: %3.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 remains %2; MyData has %3.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 remains %2; MyData has (empty).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 remains (empty); MyData has %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 remains (empty); MyData has (empty).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 requires a login for its API; a MyTardis server does not.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 returned an empty file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 returned an invalid answer: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 sent no valid answer of an object storage: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 took too long to answer.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 was %2 before: its files are sent again, as another dataset.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 was changed by another program or user in the meantime.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 was changed by another program.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 was not created by this program and is left unchanged.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 was not written completely by the server.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 was not written completely.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 was refused by the server, which gives no reason.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 was refused by the server: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 was refused by the server: refused.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 was replaced or changed by another program.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 was replaced twice by another program; the first is now named %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1, port %2, has a different key than the known one: %3 (%4) instead of %5.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1, the newer key, is used</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1: No space left on device</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1:%2 is not a time of day</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>1 file (%1) of interrupted transfers were removed from the staging area because they had not changed for %2 days.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A channel did not respond for %1 seconds.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A channel ended with %1: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A file of %1 was sent and has the correct size; this host computes no checksums.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A file of %1 was sent and read back: size and checksum are correct.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A file of %1 was sent and read back: the checksum is correct.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A file of %1 was sent, but the file on the staging host differs.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A file of %1 was sent, but the object in the bucket differs.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A file of %1 was sent; this host cannot report whether it arrived.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A firewall in front of the server may object to a name. Rename the file, or ask the server&apos;s administrator.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A folder runs no commands: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A folder&apos;s name must have text, and an experiment&apos;s title at most %1 characters.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A gateway in front of the server did not wait for the answer. The server&apos;s administrator can raise its time limit (nginx: proxy_read_timeout).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A later archive or datafile of the same dataset contains it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A later run uploads it if it has not changed by then. Check the clocks of this computer and of the one that wrote the file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A later run uploads it, once it is closed or has not changed for 12 hours.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A later run uploads it; filters.settle_seconds sets how long it must stay unchanged.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A listing of %1 changed repeatedly while it was read.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A login script of the staging account may print endlessly.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A pattern in %1 is invalid: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A pattern in filters.excludes is invalid: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A pattern in filters.includes is invalid: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A quota that is used up is a common one. The server&apos;s administrator can find it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A record with this name may already exist, or the server cannot store the name.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A run is already in progress.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A run over the data directory uploads it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A run reads it once and compares the checksum. It is sent only if it differs.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A run uploads each file only once: leave out one of the two.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A speed test would disturb the instrument or its network now. %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A start file of the account on the host, such as .bashrc, prints text. Its administrator can let it print nothing where no terminal is used.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A stream has ended.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A user cancelled the transfer.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A web page answered instead of %1 (status %2)%3.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A web page answered instead of %1 (status %2).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>About the file:</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Add the key to an SSH agent (ssh-add), and switch transfer.ssh_agent on. On Windows, use a key file without a passphrase.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All is well: %1 files of the last week are safe on the server (%2 runs).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Allow one of the AES ciphers, or use the other SSH implementation.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>An API key belongs to a server and an account, but one of them is not set.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>An answer of the server contradicts that it has this file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>An archive that the server has not verified yet may contain this file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another computer may be impersonating the staging host. Nothing was sent to it. Ask your facility. If it has replaced the key, ask the administrator of the server to correct host_keys of the storage box, or trust the new one with: mydata-like register --accept-host-key %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another computer may be impersonating the staging host. Nothing was sent to it. Ask your facility. If it has replaced the key, replace the old one in transfer.host_keys or --accept-host-key, or trust the new one with: mydata-like register --accept-host-key %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another computer may be impersonating the staging host. Nothing was sent to it. Ask your facility. If it has replaced the key, trust the new one with: mydata-like register --accept-host-key %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another file of the session failed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another folder of this run maps to the same dataset, %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another process keeps the file %1 locked.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another program has locked the ledger %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another program registered different content under this name during the upload.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another run is in progress on %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another run is in progress on shard %1 of %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another session was refused: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another session was refused: no output</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another stream of the file has failed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another upload is in progress.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another uploader created the dataset %1 at the same time. Both use the older one (id %2); the one with the id %3 stays empty.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another uploader created the experiment %1 at the same time. Both use the older one (id %2); the one with the id %3 stays empty.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another watch is already running%1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another watch is already running.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the administrator of the object storage for the rights to put, get and delete objects below the prefix.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the administrator of the object storage to check it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the administrator of this computer to change it there.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the facility&apos;s administrator to add it to its group again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the facility&apos;s administrator to approve the key with this fingerprint again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the facility&apos;s administrator to approve the key with this fingerprint and to choose a storage box for it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the facility&apos;s administrator to approve this uploader&apos;s key.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the facility&apos;s administrator to check the server&apos;s storage; then run again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the facility&apos;s administrator to extend it before the staging host refuses the uploader&apos;s key.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the facility&apos;s administrator to extend it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the facility&apos;s administrator to replace the datafile, or rename the local file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the facility&apos;s administrator whether this is intended, or set it here.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the facility&apos;s administrator. The dataset may also be locked.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the server&apos;s administrator to approve the bucket&apos;s storage box, or set transfer.s3_bucket and transfer.s3_box.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the server&apos;s administrator to check the storage of the staging area.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the server&apos;s administrator to correct it, or set transfer.s3_endpoint.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the server&apos;s administrator to install it, or set transfer.method to http.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the server&apos;s administrator to install it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the server&apos;s administrator to make it a manager of your facility.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the server&apos;s administrator to make the account a manager of the facility.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the server&apos;s administrator to set this in the storage box&apos;s attributes (location: in its options).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the server&apos;s administrator whether a gateway or a proxy in front of the server answers in its place.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask the server&apos;s administrator.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask your facility whether this is its key; if so, trust it with --accept-host-key %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Before the first run, confirm it with: mydata-like register. If the folder is not mounted, mount it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Before the first shard starts, run once: mydata-like register. Or set instrument.uuid to the same value on all computers.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Both contents are unchanged. To replace the one on the server without keeping it, use mydata-like changed replace.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Broken pipe</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cannot allocate memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Change filters.symlinks to follow more links.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Change or clear the filter to upload it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Change the patterns under filters to upload it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Change the setting in the file with a text editor.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Changed files wait for a decision: their verified copies on the server were not replaced.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check LoadCredential= in the service&apos;s unit.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check data.directory, and that its drive is connected.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check data.layout and instrument.name.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check filters.includes_file and filters.excludes_file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check how it is mounted, and that the account that runs this program may write to it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check instrument.name: it must match the folder&apos;s name.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check its permissions and its drive; the next run tries again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check its permissions, and that its disk works and no other program locks it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check its permissions, and those of its folder.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check its permissions.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check its permissions. It holds one uuid, which is in the log of every run.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check its server and the network.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check that its drive is connected.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check that its drive is connected. If the files were deleted on purpose, confirm it once: mydata-like run --accept-empty</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check that the disk is not full, and that the folder is writable.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check that the disk is not full, that the folder is writable, and that no other program uses the file; then run again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check that this is the address of a MyTardis server.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check the account name and the API key in the settings.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check the address and the clock of this computer. To use your own certificate authorities, set server.ca_file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check the clocks of this computer and of the one that wrote the file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check the current values, and save again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check the free space of the disk for temporary files; SQLITE_TMPDIR names another folder for them.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check the network and the server address.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check the network and transfer.s3_endpoint.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check the network; the staging host may be down.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check the path after --config.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check the path of MyData.cfg.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check the path, and that its drive is connected.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check the path, its permissions and its disk.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check the path, the layout and the filters.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check the permissions of the folder and the free space of the disk.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check the permissions of the parent folder.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check the private key in the transfer settings.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check the proxy in the setting server.proxy, or else in the environment variable HTTPS_PROXY. To connect directly, set server.proxy to none.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check the proxy in the setting server.proxy.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check the schedule: mydata-like status</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check the server address in the settings.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check the server address.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check transfer.s3_access_key, and store its secret again with: mydata-like settings set-key --s3</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check transfer.s3_bucket and transfer.s3_endpoint.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check transfer.s3_bucket.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check transfer.s3_endpoint and transfer.s3_region.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check transfer.s3_endpoint.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose a folder on a local disk in advanced.state_directory.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose a settings file of mydata-like (.toml) or of MyData (.cfg).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose an empty folder on a disk with free space.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose another folder, and check that the disk is not full.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose another folder.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose another name.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose for each whether to replace its copy or to keep it. To list them, run: mydata-like changed list</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Close that program, or exclude this folder from backups and virus scans; then run again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compare it with the server&apos;s copy: a disk fault or a program has changed it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Connect its drive; the next run continues. Or remove it from the list of sources.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Connection refused</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Connection reset by peer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Connection timed out</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Contact the administrator of the object storage.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy the key again from where it is shown.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Correct the settings; `mydata-like settings check` checks them again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Correct transfer.folder or data.directory: what is written to the folder would be uploaded again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Correct transfer.folder, or the file %1 in the folder if the storage box was renamed or moved.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Correct transfer.folder: it is another folder, or not the top of the location.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Create one and put the experiments there, or choose another layout.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Create them, owned by this account, and install the service again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Data about very many files cannot be stored in a temporary file: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Device or resource busy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Disk quota exceeded</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Divide the file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Download it again from the server. Read other tar files with tar.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Download the archive again from the server.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Every session has all its channels.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Example: https://mytardis.example.org</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Extract the archive on another system.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Facilities of this account: %1. Set instrument.facility to one of them.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>File exists</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>File name too long</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>File too large</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Files are sent over HTTP only, because no storage box has been approved.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Files are sent over HTTP, as set in transfer.method; SSH was not tested.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Files are sent over HTTP, until its key %1 is approved; SSH was not tested.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Files cannot be sent to object storage without %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Files cannot be sent to object storage: the package botocore is not installed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Files go to the bucket %1 at %2, the storage box %3.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Files still on this computer are sent or verified again now. Notify the server&apos;s administrator: other copies may be lost as well.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fix or delete the link.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Folders whose names begin with a dot are not uploaded.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>For %1 hours no run has succeeded.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>For a service of the whole computer run this as an administrator.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Give a folder or a file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Give a folder outside the data directory.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Give it a shorter name.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Give the account that runs this program write access to the folder.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Give the folder that it points to.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Have the system keep the file on this computer (in OneDrive: Always keep on this device); the next run uploads it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Host is down</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>If both are addresses of the same server, use that key: mydata-like settings set-key --from %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>If it was moved, the next run finds it at its new path.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>If its certificate was issued by a private authority, set server.ca_file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>If that is right, run again with --accept-folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>If the first run is refused, ask the server&apos;s administrator to add the account.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>If the host offers aes128-ctr, add it to transfer.ciphers.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>If the instrument produced data, check that it writes to data.directory.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>If the local file changes again, this choice no longer applies.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>If this access was not intended, find out who had it: the ledger and the logs contain file names.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>If this is a copy, give it its own identity: mydata-like register --new-identity. If it replaces the one on %1: mydata-like register --keep-identity</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>If this network requires a login, open any page in a browser and log in. Otherwise, check the server address.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>If this persists, ask the facility&apos;s administrator to check the storage.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>If this persists, the host&apos;s administrator can check the account&apos;s login scripts and its limit of processes.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>If your server has moved there, run: mydata-like settings set server.url %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>If your server has moved, change server.url in the settings.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Imported with a difference:</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Input/output error</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Install it with: pip install &quot;mydata-like[s3]&quot;</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Install that version, or choose another folder in advanced.state_directory.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Install the package ssh-python, or set transfer.ssh to &quot;auto&quot;.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Internal error: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Invalid argument</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Is a directory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It can take a while until the staging host accepts a newly approved key. If the problem persists, contact the server&apos;s administrator.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It cannot be asked whether it sees the file: %1 This is not needed to send files.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It contains no settings.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It continues.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It does not see the file in %1, the location of the storage box.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It has ended or never started.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is left for the next run.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is moved aside before the next run. Nothing is lost: that run queries the server for its files, which takes a little longer.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is no longer a regular file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is not in UTF-8: check that letters with accents are correct above.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is not known whether the server stored the records. %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is on the file system that is mounted at %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is on the same file system as %1, so it is probably not mounted now.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is sent again when that has ended, in %1 seconds at the latest; everything else continues.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is sent again when that has ended, in %1 seconds at the latest; everything else continues. %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is sent once that program has closed it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is sent when no program writes to it any more.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is uploaded once it is old enough.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It may be of an earlier version or of another account. Control it where it was started.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It must be a regular file that you own.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It sees the file in %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Its administrator can allow an algorithm that docs/ssh.md names.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Its administrator can raise MaxSessions in sshd_config (10 is the default, 0 allows nothing), or the limits of processes for this account.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Its contents are unknown, so its files are sent again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Its files that are still on this computer are sent or verified again now. Notify the server&apos;s administrator: other copies may be lost as well.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep the file and try again later. If this persists, notify the server&apos;s administrator: the server&apos;s verification may be stuck.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep the file, and ask the server&apos;s administrator what happened to the record.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep the file, and notify the server&apos;s administrator.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep the file. The next run compares it with the server again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep the file. The next run sends it again if it is missing.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep the file. The next run sends it, unless its copy on the server is held or kept.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep the file; the next run requests verification.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep the local file. The next run checks again. If this persists, contact the administrator.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep the local file. The next run compares it with the server, and sends it again if needed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep the local file. The next run continues. If this persists, contact the administrator.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Kept as it is here:</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keys of the types Ed25519, ECDSA and RSA are supported.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Leave some hours free in limits.quiet_hours.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Line %1 is not a setting.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Links and their targets are never deleted.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Login and upload work: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Many files changed within a day. The local file (%1, changed on %2 UTC) differs from the verified copy on the server (%3).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Many files changed within a day. The local file (%1, changed on %2 UTC) differs from the verified copy on the server (%3, verified on %4 by the server&apos;s clock).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Mount it again, or restart this computer.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Mount it with write access.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Mount it, or correct transfer.folder.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Move it away first, or add the line &quot;Made by mydata-like, which removes it as well&quot; to a comment in it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Move it away, or choose another place in the settings; then try again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Move it into a dataset folder, or choose another layout.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>MyData has no such key</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>MyData has no such key; did you mean %1?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>MyData shows this time but ignores it; here it applies</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>MyData takes * ? [ as wildcards; here names must contain them literally</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>MyData&apos;s file contains no API key.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>MyData&apos;s settings are in %1. Import them: mydata-like settings import</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>MyData&apos;s settings are in %1. Import them: mydata-like settings import --config &quot;%2&quot;</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>MyData&apos;s settings are in %1. Import them: mydata-like settings import%2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Name the file in which MyData stores its settings.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Name the file: mydata-like settings import FILE</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Network is unreachable</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New files are found by a scan every schedule.minutes.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No MyData.cfg was found in the usual folders of this system.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No action is needed: files that were not complete are sent again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No action is needed: their local files have since been changed, deleted or sent again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No changed file is held at %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No data directory is set.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No data was exchanged with %1 for %2 seconds.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No directories can be created in the staging area.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No lock can be created in %1: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No longer needed:</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No new data in the last week: %1 runs found no new file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No one is there to answer during an upload. The host&apos;s administrator can exempt this account from the second factor, or renew its password if that has expired.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No route to host</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No run has sent this file or found it on the server.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No run is in progress.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No run started in the last week.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No run starts automatically, because schedule.kind is manual.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No space left on device</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No staging host can be asked whether it sees the file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No such device</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No such device or address</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No such file or directory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not a directory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not a setting of MyData either:</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not imported; check these:</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing can be replaced without SSH.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing is deleted over http://. Use the server&apos;s https:// address.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing is deleted until then: set transfer.method to auto, and ask for approval with: mydata-like register</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing is lost. The engine restarts automatically and keeps the schedule. To continue at once, press Start. If this happens again, see the log.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing is lost: the next run continues.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing is lost: this run queries the server for its files, which takes a little longer.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing needs to be done.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing needs to be done: the files are uploaded once.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing was changed. Unlock the keyring, or store the key unencrypted in a file that only you can read: add --key-store file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing was deleted. Check the free space of the disk and the permissions of the file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Object storage has no objects above %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only a watch can start a run.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only files that the program has uploaded can be freed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only regular files are uploaded and deleted.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open files are sent when they have not changed for 12 hours, and again if they change.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open it in a text editor and save it as UTF-8.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Operation not permitted</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Other accounts of this computer could read or change %1 and %2 more; their access was removed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Other accounts of this computer could read or change %1; their access was removed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Other accounts of this computer may change the files in %1: with them, they could make the program call files safe that are not.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Other programs wait for disk or memory more than %1 % of the time. Nothing new is sent.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Permission denied</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Please send the log to the maintainers.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Quiet hours fill the whole week: nothing is ever sent.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Quiet hours: nothing is sent until %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Raise that age to upload it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Read-only file system</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remote I/O error</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename it on the disk or in the settings.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename it on the disk.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename one of the two folders, so that their files stay apart.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename the file, using only characters that display correctly.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename the folder to upload it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename the folder, ask the facility to add the user or group, or set data.unknown_owners to upload such folders under the facility&apos;s account.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename the folder.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename the local file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Report this to the server&apos;s administrator. Other files are not affected.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Request approval with: mydata-like register</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Request it with: mydata-like register</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Required key not available</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Resource busy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Restore the file and run again. To return to the earlier version that the server still has, run: mydata-like changed undo PATH.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Restrict its permissions: chmod 600 %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Resume it to continue.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Run a new one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Run again: the file is then compared with the server&apos;s new record.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Run it again: that also removes the files that this one left on the server.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Run: chmod 600 &apos;%1&apos;</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Runs over both send these files twice. Upload only one of the two directories.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>SFTP takes files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>SFTP takes files, but does not rename and remove them</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>SSH agents cannot be used on Windows.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sending resumes automatically then. The hours are set in limits.quiet_hours.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sending resumes automatically when the program ends.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sending resumes automatically when they wait less than half of that.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Set each with: mydata-like settings set KEY VALUE</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Set filters.default_ignores to false to upload them.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Set it with: mydata-like settings set data.directory FOLDER</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Set its owners on the server&apos;s web pages.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Set server.url and server.username first.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Set them in the environment of this program, HTTPS_PROXY=http://NAME:PASSWORD@HOST:PORT, and leave the setting server.proxy empty. Or ask for access without a password.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Set this computer&apos;s clock, best automatically by a time server.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Set transfer.s3_access_key to its id first.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Set transfer.s3_endpoint and transfer.s3_region to those of the bucket.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Set transfer.ssh to &quot;auto&quot;, which uses paramiko then, or add aes128-ctr to transfer.ciphers, if the host offers it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Set transfer.ssh to &quot;auto&quot;: libssh does not use agents.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Set:</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shorten the names of the file and its folders.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Some files were not sent; the staging host may have changed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stale file handle</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start a run over the data directory: mydata-like run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start a run. Files that the server has verified can then be freed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start ssh-agent before mydata-like, or switch transfer.ssh_agent off.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stop that process; then try again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Store it with `mydata-like settings set-key --s3`, or set the environment variable %1. The administrator of the object storage provides it with the access key.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Store it with `mydata-like settings set-key`, or set the environment variable %1. MyTardis shows it on the account&apos;s page &apos;Manage Account&apos;.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Store the keys again in a new file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Switch transfer.ssh_agent off, and use a key without a passphrase.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Systems and programs create such files; they are not research data.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Take their permission away (chmod go-w %1), or choose another folder in advanced.state_directory.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>That transfer is not in progress.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The API key belongs to another server or account than the one set here.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The API key cannot be stored. %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The API key is stored for %1. If both are addresses of the same server, use that key: mydata-like settings set-key --from %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The MyData app, which approves uploaders, is not installed on the server.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The SSH agent at %1 does not answer: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The SSH implementation libssh is not installed here.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The access key %1 may not do this in the bucket %2: %3.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The access key for object storage is not set.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The account %1 cannot create these folders: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The account %1 does not manage any facility.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The account %1 has lost permissions on %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The account %1 has no permission for this.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The account belongs to the group mydata-default-permissions.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The account does not manage a facility named &quot;%1&quot;.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The account is not in the group mydata-default-permissions, but may have the same permissions.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The added folders and files are uploaded after it has ended.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The address %1 answers with a web page (status %2).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The address %1 answers with a web page%2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The address %1 answers with a web page.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The address %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The address of the storage box&apos;s object storage, %1, %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The address of the storage box&apos;s object storage, %1, must begin with https://.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The agent or the device with the key did not sign.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The approval of this uploader expired on %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The approval of this uploader expires on %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The approval of this uploader&apos;s key %1 expired on %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The approval of this uploader&apos;s key %1 has been withdrawn.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The approved storage box %1 has no usable %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The approved storage box %1 is not that of a bucket.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The approved storage box %1 is not that of the bucket %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The archive %1 on the server is ignored: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The archive on the server that should contain this file does not.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The archive on the server that should contain this file is damaged or of another program.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The bandwidth is limited to %1/s (limits.bandwidth) now, but a test sends as fast as it can.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The bandwidth is limited to %1/s (limits.timetable: %2) now, but a test sends as fast as it can.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The bucket %1 cannot exist: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The certificate authorities in %1 cannot be read: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The certificate of %1 is not trusted: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The channels are closed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The checksum of %1 does not match.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The choice cannot be written into the state folder.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The command cannot be written into the state folder.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The connection broke.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The connection to %1 broke.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The connection to %1 was lost%2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The connection to %1 was lost.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The connection to %1 was lost: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The connection to %1 was lost: a packet was damaged or changed on the way.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The connection to the server is not encrypted, so an attacker on the network could report files as safe.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The content is not on this computer, but in cloud storage such as OneDrive, or on tape.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The content on the server was not replaced, because the staging area cannot keep it. %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The content on the server was not replaced, because the staging area cannot keep it. The staging host cannot rename files.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The credential %1 of the service cannot be read.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The data directories %1 and %2 contain the same files.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The data directory %1 is not available: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The data directory contains no folders.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The data directory is not available: %1 is empty, and the %2 files that earlier runs found there are missing.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The data directory is not available: %1 is empty, and the file that earlier runs found there is missing.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The dataset folder changed more recently than filters.ignore_newer_than ago.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The dataset folder has not changed for longer than filters.ignore_older_than.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The dataset with the earlier name stays on the server. Rename the folder back if this was not intended.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The dataset&apos;s name contains a null character.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The dataset&apos;s name contains bytes that are not text.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The dataset&apos;s name has %1 characters; the server allows %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The dataset&apos;s name is empty.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The deletion log %1 cannot be read: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The deletion log %1 cannot be written: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The directory contains a null character.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The directory contains bytes that are not text.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The directory of %1 has more than the 255 characters the server allows.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The encrypted connection to %1 fails: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The engine ended unexpectedly (%1).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The experiment %1 could not be shared: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The experiment&apos;s title contains a null character.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The experiment&apos;s title contains bytes that are not text.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The experiment&apos;s title has %1 characters; the server allows %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The experiment&apos;s title is empty.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The facility has no instrument %1 yet; registering creates it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The facility has the instrument %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file %1 cannot be written: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file %1 stays in the staging area: this host does not allow us to remove files.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file cannot be read: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file changed recently and may still be written to.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file changed while it was being sent.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file is not in a dataset folder.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file was found and is not verified yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file was kept. Close the program, and try again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file was kept. Free space as the account that owns it, or as administrator.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file was kept. The next run checks it again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file was known as verified, but an answer of the server contradicts that.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file was not sent completely.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file was removed again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file&apos;s content has changed since it was sent, although size and time have not.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file&apos;s modification time is in the future.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file&apos;s name contains a null character.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file&apos;s name contains bytes that are not text.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file&apos;s name has %1 characters; the server allows %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file&apos;s name has more than %1 characters, more than the server can store.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file&apos;s name is empty.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The first file that the server verifies proves that the folder is the right one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The folder %1 cannot be created: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The folder %1 cannot be reached: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The folder %1 did not respond within the time of the test.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The folder %1 does not accept files: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The folder %1 does not respond.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The folder %1 does not respond: %2 processes wait for it and cannot be ended.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The folder %1 is mounted read-only.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The folder %1 was deleted.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The folder cannot be read: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The folder has no sub-folder MyTardis.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The folder has no sub-folder with this instrument&apos;s name.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The folder is not confirmed yet: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The folder of the file does not exist.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The folder was lost: %1: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The folder&apos;s name does not contain %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The host answers, but it may limit logins (MaxStartups of sshd) or block this computer (fail2ban, TCP wrappers, a firewall), or the port is not that of its SSH server. Its administrator finds the reason in the log of sshd.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The identity of this installation cannot be read from %1: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The identity of this installation is not set in its own settings file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The include and exclude patterns exclude this file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The installed libssh does not check what it receives with AES-GCM (CVE-2026-59847), and transfer.ciphers and %1 have no other cipher in common.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The instrument&apos;s name contains a null character.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The instrument&apos;s name contains bytes that are not text.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The instrument&apos;s name has %1 characters; the server allows %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The instrument&apos;s name is empty.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The key %1 of this uploader awaits approval.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The key %1 of this uploader awaits approval. The administrator wrote: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The key exchange with %1 on port %2 failed: %3.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The key is approved for the storage box %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The key of %1, port %2, is not known yet. Its fingerprint is %3 (%4).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The layout uses another folder of this level.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The ledger %1 cannot be used: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The ledger %1 is damaged: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The ledger was damaged and has been moved aside as %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The ledger was written by a newer version of this program.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The ledger was written by an older version of this program.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) differs from the verified copy on the server (%3), which the staging area cannot keep in addition to the new content.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) differs from the verified copy on the server (%3), which uploads over HTTP cannot replace.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) differs from the verified copy on the server (%3).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) differs from the verified copy on the server (%3, verified on %4 by the server&apos;s clock), which the staging area cannot keep in addition to the new content.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) differs from the verified copy on the server (%3, verified on %4 by the server&apos;s clock), which uploads over HTTP cannot replace.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) differs from the verified copy on the server (%3, verified on %4 by the server&apos;s clock).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) is much smaller than the copy on the server (%3).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) is much smaller than the copy on the server (%3, verified on %4 by the server&apos;s clock).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) is much smaller than the verified copy on the server (%3).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) is much smaller than the verified copy on the server (%3, verified on %4 by the server&apos;s clock).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The local file differs from the content that the server has verified.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The local file differs from the copy on the server, and the user chose to keep the copy.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The local file differs from the server&apos;s copy, which is no longer in the staging area.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The local file has the same name as an archive of other files on the server.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The log lists them with the reasons; mydata-like status shows the current state.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The log shows why; mydata-like status shows what the program is waiting for.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The name %1 contains bytes that are not text.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The name is not valid text, so the server cannot store it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The new bytes of %1 are not in the staging area.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The new bytes of %1 are not there.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The next host may be down, or the one before it may not allow forwarding.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The next run brings it up to date.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The next run checks again. If this persists, contact the server&apos;s administrator.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The next run checks it again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The next run has it verify all files of these datasets again. Keep the local files, and notify the server&apos;s administrator.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The next run sends it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The next run sends it. The server&apos;s administrator can free space or raise the quota.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The next run sends the rest again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The next run sends them. The server&apos;s administrator can free space or raise the quota.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The next run updates it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The next run uploads it, unless the filters or the layout exclude it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The next run uploads it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The next run uploads the rest.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The next run uses it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The next test replaces it; the server&apos;s administrator may remove it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The object storage cannot store the name: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The object storage could not do this now: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The object storage is full, or its quota is used up: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The object storage received other bytes than were sent.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The object storage received other bytes than were sent: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The object storage refuses requests because this computer&apos;s clock differs from its own by too much: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The object storage refuses this: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The object storage&apos;s address cannot be used: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The parts of %1 uploads that were interrupted a week ago or earlier were removed from the bucket.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The parts of 1 upload that were interrupted a week ago or earlier were removed from the bucket.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The path %1 points outside its dataset on the server.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The path below the dataset folder has more than %1 characters, more than the server can store.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The path contains a null character.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The path contains bytes that are not text.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The pattern file %1 cannot be read: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The payload was cancelled.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The private key %1 can be read by other users of this computer.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The private key %1 cannot be read: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The private key %1 is protected by a passphrase.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The private key of %1 is stored on a device or in an agent.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The process of a channel ended during its work.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The program is already open, but does not respond.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The program waits for it, for %1 seconds at most.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The proxy for %1 fails: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The proxy for %1 refuses the connection.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The proxy for %1 requires an account and a password.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The registration may have been withdrawn; ask the server&apos;s administrator.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The response to a request was lost; the server may still be processing it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The run does not answer.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The run ends before this file&apos;s turn.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The run has just ended.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The run in progress accepts no commands.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The run is ending, so it cannot be paused.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The run is ending.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The run tries again automatically, %1 seconds later at most.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The run was stopped before it finished.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The secrets file %1 belongs to another account.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The secrets file %1 can be read by other accounts.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The secrets file %1 cannot be opened: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The secrets file %1 has unexpected content.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The secrets file %1 is not TOML.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server accepted the request for approval but does not list it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server address %1 is not a web address.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server address %1 is not encrypted.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server answered SFTP with: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server cannot store the name of the %1: %2 has characters that cannot be shown.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server cannot store the name of the %1: it has more than %2 characters.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server cannot store the name of the %1: it is empty.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server did not accept a chunk: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server did not accept the records: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server did not confirm %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server does not allow reading the archive %1: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server does not support sharing the experiment %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server ended SFTP.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server has a file of this name and size. The local file must be read to compare them.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server has assigned another staging area since this run started.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server has different content for %1, which cannot be replaced without SSH.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server has no record of this file any more.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server has no user or group for the folder %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server has no verified copy of this file at present.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server has not verified the new content of this file yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server has not verified this file yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server has not yet verified its copy of this file again, as requested.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server has repeatedly confirmed the record of this file without storing it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server has the file, but has not verified it yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server keeps no earlier content of %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server must offer TLS 1.2 or later on this port.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server no longer has %1 files of the dataset %2 as verified: records or copies are missing or differ.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server no longer has 1 file of the dataset %1 as verified: records or copies are missing or differ.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server no longer has a record of this file, or this account may not see it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server no longer has the archive %1 as verified: its record or its copy is missing or differs.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server requires a chunk checksum that is not supported.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server returned other bytes for %1 than it has verified.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server&apos;s administrator can allow a shell, scp or SFTP for this account.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server&apos;s administrator can fix its permissions or free space.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server&apos;s administrator can fix its permissions.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server&apos;s administrator can free space or raise the quota.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server&apos;s administrator may delete the empty one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server&apos;s answer is too large.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server&apos;s copy does not match the checksum, even after the file was sent again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server&apos;s record describes a newer version of this file that never arrived, and the local file was missing when it should have been sent again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server&apos;s record does not match the local file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server&apos;s record of this file is invalid: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server&apos;s settings conflict with those of this computer: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server&apos;s settings exclude this: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server&apos;s settings for this uploader have changed. It now sets: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server&apos;s settings for this uploader have changed. It now sets: none.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server, or a gateway in front of it, limits the size of a request. The server&apos;s administrator can raise that limit (nginx: client_max_body_size).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The session of a channel was closed because another channel failed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The setting server.ca_file requires a PEM file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The settings exclude symbolic links of this kind.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The settings file %1 does not exist.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The settings file cannot be edited here because of its syntax.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The settings were changed and are now invalid. %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The shards have no common identity yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The shell of %1 is not used, since it has no %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The shell of the staging host did not answer.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The signal address of monitor.signal_url could not be called: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The signal address of monitor.signal_url could not be called: it answers with status %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The signal file cannot be written: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The speed test ended unexpectedly (%1).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The speed test has reached its limit of bytes.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging area has no host.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging area has no space for %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging area has no space for some files, which wait.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging area is full.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging area refused %1: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging area&apos;s folder %1 does not accept files: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging area&apos;s folder %1 does not accept files: no reason given.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging folder %1 and the data directory %2 contain each other.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging host accepts the uploader&apos;s key, but allows neither commands nor transfers: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging host did not execute a command.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging host did not remove the test files.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging host did not report how the file arrived.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging host did not report which files it renamed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging host does not accept files: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging host does not follow the SFTP protocol.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging host does not follow the scp protocol.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging host ended scp.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging host printed too much output for a batch.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging host refused scp: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging host&apos;s shell has ended.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The support bundle %1 cannot be written: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The symbolic link is broken.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The symbolic link points to a folder that this dataset folder already contains.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The system does not report changes in %1: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The system&apos;s keyring did not respond within %1 seconds.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The system&apos;s keyring did not store the key.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The system&apos;s keyring does not respond.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The system&apos;s keyring failed (%1).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The transfer was cancelled.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The uploader&apos;s key for %1 cannot be used: %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The uploader&apos;s key for %1 cannot be used: the agent does not have it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The uploader&apos;s key is not the problem. The host&apos;s administrator can renew the account or its password.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The user cancelled this file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The user paused the run.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There are no failed or cancelled files there that can be sent again now.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is less data than announced.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is more data than announced.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is no %1 for %2 on %3.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is no API key for %1 on %2, but one is stored for %3.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is no API key for %1 on %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is no dataset folder at or below %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is no earlier speed test to continue from.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is no file %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is nothing to stop.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>These settings are not set yet: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This computer has no keyring that stores secrets safely (found: %1).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This computer has no record of any upload from this data directory.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This installation on %1 has the same identity as the one on %2, which has used it since %3.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is a symbolic link, or is reached through one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not a regular file but a pipe, a socket or a device.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not a regular file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not a valid key: it is empty, too long or has invalid characters.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: %1 is not a regular file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: a long name and its header differ.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: it ends too early.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: it has a duplicate name.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: it has a header that mydata-like does not write.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: it has a member with an unsafe path: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: it has a name that is too long.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: it has no index.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: it has too many members.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: its end is incomplete.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: its index and its headers differ.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: its index has a line that is too long.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: its index is invalid.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: its index is not at its end.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: its index is of another version.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: the checksum of %1 differs from its index.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: there is data after its end.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This is not in the data directory.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This run has uploaded that folder already, or accepts no more.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This system does not report how long programs wait for its disks.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This uploader has not requested approval yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>To change it, run for example: mydata-like settings set schedule.kind watch</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>To find out where it is set, run: mydata-like settings explain instrument.uuid, and the same for transfer.key_file. Change it there.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>To keep the copy, run: mydata-like changed keep &quot;%1&quot;. To upload the local file as well, rename it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>To list all of them, run: mydata-like changed list</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>To list them, run: mydata-like sources</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>To remove this message, reset the setting or choose another value.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>To replace the copy, run: mydata-like changed replace &quot;%1&quot;. To keep it, run: mydata-like changed keep &quot;%2&quot;.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>To see which value is used, run: mydata-like settings explain KEY</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>To try at once, resume the run.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Too many levels of symbolic links</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Too many open files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Transport endpoint is not connected</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Try again after a successful run.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Try again later, or use --anyway to run the test regardless.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Try again later; filters.settle_seconds sets how long it must stay unchanged.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Unexpected error in the window: %1: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Unlock the keyring, or provide the key in the environment variable MYDATA_LIKE_API_KEY, or store it in an unencrypted file that only you can read: `mydata-like settings set-key --store=file`.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Until then, the previous settings apply.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Uploads are not affected. If it happens again, send the log to your administrator.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Uploads continue. Check the address and the network.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Uploads run unattended; use a key without a passphrase.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use `mydata-like watch --events`.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use a layout with owners or experiments, or run without --shard.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use fewer or shorter folder names.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use its https:// address; the setting server.allow_http permits http://.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Wait a minute and try again. If that does not help, end it in the task manager and start it again. Files that were sent are not lost.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Wait until it has ended, or stop it there.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Wait until it has ended, or stop it there. The lock of a killed run expires after %1 minutes.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Wait until it has ended, or stop it there. The mark of a killed run expires after five minutes.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>When it was asked to verify again, the server no longer had %1 files as verified.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>When it was asked to verify again, the server no longer had 1 file as verified.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>With the layout &quot;%1&quot; the whole data directory is one experiment, which cannot be split into shards.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Write EXPERIMENT/DATASET, or OWNER/EXPERIMENT/DATASET.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Write patterns as in a .gitignore file, such as *.tmp or /raw/**.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Writing to it works: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>a dataset must stay open for the files of later runs</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>another folder or drive has taken its place</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>begins with ~ but does not name a known home folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>broken pipe</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>cannot allocate memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>cannot be read: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>case is ignored, as in MyData on Windows</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>checksums are always needed for verification</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>connection refused</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>connection reset by peer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>connection timed out</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>device or resource busy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>disk quota exceeded</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>file exists</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>file name too long</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>file too large</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>files known to be on the server are always remembered</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>folders are always checked against the layout</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>has a pattern that matches nothing: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>host is down</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>input/output error</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>invalid argument</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>is a directory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>is a secret, not a setting: store it with `mydata-like settings set-key`</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>is a section: write [%1] and its settings below</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>is not TOML: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>is not TOML: nested too deeply</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>is not UTF-8 text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>is not a setting</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>is not a setting; did you mean %1?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>is not a web address</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>is too large for a settings file (1 MiB at most)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>is unknown: [locked] has keys and by</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it already exists</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it does not answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it has no %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it has no effect in MyData either</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it has no version</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it is MyData&apos;s default, which every file has; the default here is better</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it is a secret, and secrets are not settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it is empty</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it is larger than %1 bytes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it is no longer a regular file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it is not a folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it is not a ledger</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it is not a setting</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it only describes the layout in words; MyData never reads it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>its header is damaged</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>limits.pause_under_pressure has no effect here; limits.pause_while_running has.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>locks %1, which is not a setting</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must be a date, such as 2026-12-31</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must be a fingerprint as `ssh-keygen -lf` prints it: SHA256:...</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must be a finite number</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must be a list of keys, as in [&apos;server.*&apos;]</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must be a list, such as [&apos;a&apos;, &apos;b&apos;]</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must be a local time without a zone, such as 18:30:00</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must be a number</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must be a number and a unit, such as &quot;30 days&quot;, &quot;2 weeks&quot;, &quot;6 months&quot;</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must be a time, such as 18:30:00</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must be a whole number</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must be an absolute path, including the drive on Windows</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must be an e-mail address, such as name@example.org</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must be at least %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must be at most %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must be at most 1000 years</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must be like &quot;* below 100 kB&quot;, &quot;*.dcm below 1 MB from 500 files by dataset&quot;</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must be like &quot;monday-friday 09:00-17:00&quot; or &quot;22:00-06:00&quot;</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must be like raw/microscopes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must be one line without control characters</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must be one of: %1 or %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must be text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must be true or false</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must begin with https://</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must end in a number of MB/s, as in &quot;monday-friday 09:00-17:00 5&quot;</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must end with the path: no ? and no #</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must end with the port: a proxy has no path</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must have at most %1 characters</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must name a size from 1 byte to 64 MB, because archives are for tiny files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must name at least 1 file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must name at least one cipher</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must not contain a NUL character</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>must not contain a user name or a password</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>mydata-like where shows what is kept of a file.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>names a %1 twice</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>names no server</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>needs a value: --set section.key=value</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>network is unreachable</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no day of the week is selected, so MyData never starts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no headers received</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no output</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no route to host</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no space left on device</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no such device</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no such device or address</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no such file or directory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not a directory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>only a schedule of the type Once has a date</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>operation not permitted</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>paramiko has none of the ciphers or algorithms that are allowed for %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>permission denied</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>progress is measured here, without queries to the server</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>read-only file system</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>remote i/o error</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>required key not available</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>resource busy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>scheduled_date has no value</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>scp works</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>settings are locked by an administrator&apos;s managed file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>stale file handle</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>text came before its answer: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the age is that of a folder&apos;s last change; in MyData on Windows, of its creation</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the agent refused</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the answer took too long</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the connection was refused</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the first attempt counts as well</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the folder takes files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the path is not possible below the folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the shell works,  tar extracts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the shell works, %1 tar extracts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the shell works, but no tar extracts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>there is no route to it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>too many levels of symbolic links</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>too many open files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>transfer.ssh_agent is on, but there is no agent: SSH_AUTH_SOCK is not set.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>transport endpoint is not connected</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>weak or unknown, and not used: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>weak or unknown: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>what was written is not there</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>files</name>
    <message>
        <source>What happened</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Verified</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>In archive</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Name</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>State</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Size</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>When</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Gone</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>layouts</name>
    <message>
        <source>User name / Dataset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>E-mail address / Dataset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>User name / Experiment / Dataset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>E-mail address / Experiment / Dataset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>User name / “MyTardis” / Experiment / Dataset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>User group / Instrument / Full name / Dataset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>User group / Dataset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>User group / Experiment / Dataset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Experiment / Dataset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Dataset</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>limits</name>
    <message>
        <source>the disk of this computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the processors of this computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the network, or an overloaded server</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the latency to the server</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the server that stores the files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the configured bandwidth</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the server&apos;s responses to requests</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the server&apos;s verification</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>local disk</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>local processors</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>network or server</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>latency</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>server storage</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>bandwidth limit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>server responses</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>verification</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>marks</name>
    <message>
        <source>Failed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Left out</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not sent yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sent</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Registered</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Being replaced</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Verified</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Changed on this computer only</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Waiting</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>notifications</name>
    <message>
        <source>Nothing is being uploaded</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Action required</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%n file(s) could not be uploaded.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n file(s) were sent.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n file(s) or folder(s) were left out.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n file(s) wait for the next run.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>They are safe on the server.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All files are safe on the server.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Upload finished</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Waiting for approval</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Approved</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server accepts this computer. Uploads can begin.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>pages</name>
    <message>
        <source>Folders</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>History</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Log</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Problems</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Speed test</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Transfers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Where is my data?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Overview</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>problems</name>
    <message>
        <source>Show</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln folder(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
</context>
<context>
    <name>runs</name>
    <message>
        <source>Files sent</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Outcome</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Duration</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Limit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>When</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reason</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Size</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Speed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Started by a user</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>At program start</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Settings were saved</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Schedule: once</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Schedule: daily</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Schedule: weekly</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Schedule: every few minutes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New files had settled</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>One folder only</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Second attempt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Folders were added</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not finished</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Interrupted</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Interrupted, %Ln file(s) unfinished</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Stopped</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ended early</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) failed</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln left out</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) wait</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>All %Ln file(s) safe</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Nothing to send</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No files found</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1, %2 replaced</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Replaced files had other content on the server before, which is kept for a while. “Where is my data?” shows it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A further %1 did not have to be sent: holes, or left by earlier runs.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>sentences</name>
    <message>
        <source>The staging host has a different key than the trusted one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another computer may be impersonating it. Nothing was sent to it. Ask your administrator whether its key was replaced.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reading the settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not set up yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Starting</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pausing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stopping</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A speed test is in progress</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The engine has stopped</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Paused</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The limit: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The limit: %1, at %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Sending %Ln file(s), about %1 left</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Sending %Ln file(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>The server is checking %Ln file(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Looking through %Ln file(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>%1 of %2 sent, %3 %</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 of %2 sent, %3 %, at %4</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) sent over HTTP; SSH awaits its approval</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Waiting for the administrator&apos;s approval</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ready to start</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The last run was interrupted</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%1; %Ln file(s), %2, exist only on this computer</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) need your attention</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) or folder(s) were left out and are not on the server</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) wait for the next run</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln added folder(s) or file(s) are not finished</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) exist only on this computer</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>No files were found</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No files to send were found</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) of the last upload are safe</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>All %Ln file(s) are safe on the server</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) are safe on the server</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>%1, last compared %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%1; %Ln file(s) differ from the server&apos;s copies, which you kept</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Everything up to %1 is safe on the server.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Everything up to %1 is safe on the server, except for what was left out on purpose.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Everything up to %1 is safe on the server, except for the files whose copies on the server you kept.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Everything up to %1 is safe on the server, except for what was left out on purpose and the files whose copies on the server you kept.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 Last compared with it %2.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>settings</name>
    <message>
        <source>Server address</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The web address of the MyTardis server. It begins with https://.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Account</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The MyTardis account that uploads, usually that of a facility manager. Its API key is stored separately from the settings.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Certificate authorities</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A PEM file with the certificate authorities to trust instead of the system&apos;s. Needed if the server&apos;s certificate was issued by a private authority.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Proxy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The address of the proxy for the server, such as http://proxy.example.org:3128. Empty uses the system&apos;s proxy; none connects directly. For a proxy with a password, set the environment variable HTTPS_PROXY.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Allow unencrypted http</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Whether to accept an http:// address for a server on another machine. Anyone on the network can then read the API key.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Connection timeout</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How long to wait for the server to accept a connection. Raise it for slow networks.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Read timeout</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How long to wait for further data from the server during a request.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Request deadline</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How long one request may take in total.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Change timeout</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How long a request that changes data on the server may take. If its response is lost, the request is not sent again before this time has passed, because the server may still be processing it, unless it is seen that the server went down.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Parallel requests</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How many requests to the server may run concurrently, at most. Fewer do while the server is slow. Lower it for a small server.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Instrument</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The name of the instrument as shown on the server.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Facility</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The name, on the server, of the facility that operates the instrument.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Contact name</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The person the server&apos;s administrators can contact about this uploader.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Contact e-mail</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The e-mail address of the contact person.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Uploader identity</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The identity of this installation on the server. It is created at the first start. Two installations must never share one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Data directory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The folder that contains the instrument&apos;s data. Nothing in it is ever changed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Layout</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What each level of folders below the data directory represents.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Group prefix</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The text put before the name of a user group&apos;s folder to get the group&apos;s name on the server. Only for layouts with user groups.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Folders of unknown owners</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Whether to upload folders for the facility or skip them if the server does not know their owner.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Changed files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What happens to a file that was rewritten after the server verified it: it is sent and the earlier copy is kept for a while, unless the file shrank below half its size; or it is held until you choose; or it is always sent. A file to which data was only appended is sent in any case.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep replaced content</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How many days the server&apos;s storage keeps the earlier content of a changed file; it needs as much space. With 0 it is removed once the server has verified the new content.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>days</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Replace freely</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Patterns of files that programs rewrite all the time, such as *.log. They are never held and do not count for data.brake.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Brake</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How many files of a dataset may be rewritten or shrink within 24 hours before the rest is held, if they are more than 5 % of its files. The same applies to 25 times as many files of all datasets. 0 turns it off.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Owner contains</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Upload only owners&apos; folders whose name contains this text; empty uploads all.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Experiment contains</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Upload only experiment folders whose name contains this text; empty uploads all.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Dataset contains</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Upload only dataset folders whose name contains this text; empty uploads all.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Skip datasets older than</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Skip dataset folders older than this age, such as &quot;6 months&quot;; empty skips none.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Skip datasets newer than</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Skip dataset folders younger than this age, such as &quot;2 days&quot;; empty skips none.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Settling time</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How long a file must remain unchanged before it is uploaded. Raise it for an instrument that pauses while it writes.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Include patterns</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Upload only files that match one of these patterns; empty uploads all.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Exclude patterns</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Skip files that match one of these patterns.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>File of include patterns</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A UTF-8 text file with include patterns, one per line.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>File of exclude patterns</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A UTF-8 text file with exclude patterns, one per line.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Skip system and temporary files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Whether to skip files and folders that systems and programs leave behind (Thumbs.db, .DS_Store, ._ files and __MACOSX of macOS, @eaDir of a NAS, lock files, unfinished downloads).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Symbolic links</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Whether to skip links, follow them to files, or follow them to files and folders within the data directory.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Upload method</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Whether to send over SSH, over HTTP, over SSH as soon as it is approved, to a mounted folder, or to object storage (S3).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Staging folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The mounted folder that is the location of the approved storage box, for the upload method folder; such as /mnt/staging or \\server\staging.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>S3 address</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The address of the object storage, such as https://s3.example.org; empty for Amazon&apos;s, or that of the approved storage box.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>S3 region</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The region of the bucket; empty for us-east-1, which most servers accept.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>S3 bucket</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The bucket for the files; empty for the approved storage box&apos;s.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>S3 prefix</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The beginning of all keys in the bucket, which is the storage box&apos;s location; empty for none, or that of the approved storage box.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>S3 storage box</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The name of the server&apos;s storage box for this bucket; empty for the approved one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>S3 access key</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The id of the access key. Its secret is stored separately from the settings.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>SSH implementation</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Which implementation of SSH to use. Automatic uses the fastest one that works.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Jump hosts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The hosts through which the staging host is reached, in order, each as user@host:port; user and port are optional.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>SSH agent</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Whether to use an SSH agent for the uploader&apos;s key and for keys of the jump hosts. Sessions with such keys use paramiko.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Channels</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How many transfers run concurrently; 0 finds a good number automatically.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ciphers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The SSH ciphers to offer, in order of preference; only modern ones are allowed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Trusted host keys</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fingerprints (SHA256:...) of the keys of staging hosts and jump hosts, as given by their administrator. A listed key is trusted without a prompt. If any are listed, keys that the server names for the staging hosts are not trusted.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Private key</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The uploader&apos;s private SSH key, if it is not the one created at the first start.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compression</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Whether to compress data in transit with zstd. Automatic compresses if the network limits the speed, the staging host has zstd and the data compress well.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Skip zeros</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Whether to search files that are sent alone and have no holes for long runs of zeros, and not to send these runs: the file on the server has holes in their place. With a shell on the staging host, a file that is at least half zeros is read twice, and starts again from its beginning after a lost connection.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How long to wait for a staging host to accept a connection.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stall timeout</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How long a transfer may make no progress before its connection is closed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Attempts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How often a transfer is tried in one run before its files count as failed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Batch files below</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Files smaller than this are sent together; 0 sends each file alone.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>bytes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Batch size</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A batch is sent when it has this size.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Files per batch</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A batch is sent when it has this many files: at most 100 to a mounted folder, and 25 to object storage.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Batch age</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A batch is sent when its first file has waited this long.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Archive rules</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Which files are stored in tar archives on the server instead of having one record each, such as &quot;*.dcm below 1 MB from 500 files by dataset&quot;. The first rule that matches applies.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Archive size</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The largest size of an archive. Further files go into another archive.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start runs</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>When runs start: manually, with the program, when settings are saved, once, daily, weekly, at an interval (timer), or when new files have settled (watch).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Date</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The date of a run that starts once.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Time</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The local time of day at which single, daily and weekly runs start.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Days</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The days of the week on which weekly runs start.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Every</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The minutes between two starts of the timer. For watch, the longest time between two scans.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>min</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>From</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The local time of day from which the timer or the watch starts runs.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>To</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The local time of day until which the timer or the watch starts runs. If it is earlier than the start, the period ends on the next day.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Bandwidth</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The most that all channels together may send; 0 is no limit.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>MB/s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Bandwidth timetable</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Periods with their own bandwidth in MB/s, in local time, such as &quot;monday-friday 09:00-17:00 5&quot;. The first one that contains the current time applies.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Quiet hours</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Periods in local time, such as &quot;monday-friday 09:00-17:00&quot;, in which nothing is sent. Transfers in progress wait, and continue afterwards.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Low priority</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Whether other programs have priority in the use of the processor and the disk.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pause while running</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Names or full paths of programs, such as acquire.exe. While one of them runs, nothing is sent.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pause under pressure</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The share of time in which other programs wait for disk or memory. Above it, nothing is sent; 0 never pauses.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep awake</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Whether to prevent the computer from going to sleep while files are sent.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Weekly notice</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The day of the weekly notice, which reports whether all is well or no new files came.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Signal file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A file that is written after each successful run, for a monitoring system to check.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Signal address</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A web address that is requested after each successful run (a dead man&apos;s switch).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Silence</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The number of hours without a successful run after which the user is notified, if runs were tried. A run succeeds if it ends without a problem or a failed file; 0 never notifies.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>h</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start at login</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Whether the program starts in the tray at login.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Window at start</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How the window appears when the program starts.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Colours</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Whether the window is light or dark, or follows the system.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Language</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The language of the window, from its next start on. Logs, commands and messages of the server remain in English.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Continue when the window is closed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Whether the program continues when its window is closed: in the tray, or as a small window on systems without a tray. Otherwise, closing the window quits the program.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Notify of uploads</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Whether to show a notification when files were uploaded.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Notify of problems</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Whether to show a notification for problems that need attention.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Notify of the approval</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Whether to show a notification when the uploader awaits approval and when it is approved.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Notify of inactivity</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Whether to show a notification when no run has succeeded for monitor.silent_hours.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>State directory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The folder for the ledger and other state; empty uses the system&apos;s default.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Log level</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How detailed the log is; DEBUG helps to diagnose a problem.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Records per request</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How many records one request creates at first.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Parallel registrations</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How many requests that create records run concurrently, at most. Fewer do while the server is slow.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Verification interval</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How long to wait before the first query whether the server has verified files.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Verification timeout</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How long a run waits for the server&apos;s verification. The next run continues to wait for the remaining files.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pause timeout</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How long a run waits while the server is unavailable or asks it to wait, or while the staging area is full, before it ends.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Full check</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The number of days after which every datafile on the server is compared with the ledger again; 0 compares in every run. In between, two queries for each dataset show whether any are missing or no longer verified.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;General</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Data and layout</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Filters</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Schedule</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Transfer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Advanced</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Server</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Window</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Data</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Which files are uploaded</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>When runs start</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Limits while the instrument is in use</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Transfers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rarely needed settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Health signals</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Archives of tiny files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Example: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not kept</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>off</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>automatic</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>each file alone</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no limit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>never</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Default</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>From the managed file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>From the server</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>From your file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>From the environment</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>From the command line</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Set by the environment variable %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Locked by %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>“%1”</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Monday</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tuesday</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Wednesday</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Thursday</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Friday</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Saturday</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sunday</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Never</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Manually only</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>When the program starts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>When settings are saved</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Once</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Every day</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>On some days of the week</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>At a fixed interval</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>When new files no longer change</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Upload for the facility</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Skip</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Send, and keep the earlier copy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Hold until you choose</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Send always, hold nothing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Follow to files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Follow within the data directory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Automatic: SSH as soon as it is approved</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>SSH</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>HTTP</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Mounted folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Object storage (S3)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Automatic</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Normal</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Minimised</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Maximised</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>In the tray</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Same as the system</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Light</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Dark</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not used: see “%1”</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>speed</name>
    <message>
        <source>Disk of this computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Checksums</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Encryption</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Connection</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All together</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Staging host&apos;s processors</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Disk of the server</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Mounted folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Server&apos;s API</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Comparison</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the disk of this computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>computing checksums on this computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the connection to the staging host</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the disk of the server</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the mounted folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the server&apos;s API in earlier runs</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Large files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tiny files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 files/s</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%Ln channel(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln session(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln connection(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>%1, on one core here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>MD5 on one core</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>MD5 on all cores</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Round trip</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Connection set-up</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Size when compressed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Renaming a file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Records, in earlier runs</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shortest answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>One page of a listing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Statistics</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All together, large files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All together, tiny files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Connection to the server</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compression</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ciphers on this computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Comparison of settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 to %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 ms</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 %</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 requests/s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging host allows no shell: the connection to it and its disk could not be measured alone.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The speed of registering and verifying was not measured, because a test must not leave records and no earlier run had to wait for it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The staging host cannot remove files: nothing was sent, and only this computer and the API were measured.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The data directory has too few large files to measure how fast they are read.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The data directory has too few tiny files to measure how fast they are read.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The connection to the server was not measured: ask for approval first.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The connection to the server was not measured: the staging area has no host.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The connection to the server was not measured: files are sent over HTTP.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The connection to the server was not measured: files are sent to object storage.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The connection to the server was not measured: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 could not be fully measured: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1: there was no time left to measure this.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 on the staging host could not be removed; the next test removes it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 in the folder could not be removed; the next test removes it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1: sent at %2. The slowest part is %3, with %4 alone.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1: sent at %2.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1: not sent. The slowest part measured is %3, with %4 alone.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing could be measured.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1: %2 times as fast</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Locked by %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 (%2: %3, now %4)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Offer the cipher %1 first.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compress during transfer: your data shrinks to %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose the number of channels automatically.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Send more tiny files together: use the default batch sizes.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Other programs used %1 % of this computer: it may be faster alone.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1, quick</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Speed test of mydata-like, %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Recommendations</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tried, not faster twice</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What could not be measured</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All figures</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source> (the slowest)</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>starts</name>
    <message>
        <source>Only when you press Start.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Each time the program starts.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Each time settings are saved.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>When new files have not changed for %1, and at the latest:</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Never: that moment has passed.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>tree</name>
    <message>
        <source>Unfinished</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not sent yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Files left out</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No files</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>where</name>
    <message>
        <source>stored with other files in the archive %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Changed here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Found by a run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sent</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Registered on the server</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Verified by the server</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not in this version; the next run sends it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>it may have changed since; the next run checks it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not yet; the next run continues here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is not in the data folder, and was never added in this window.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No run has found it. It may be new, or excluded by the layout.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is neither on this computer nor in the list of sent files.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No: as far as is known, it exists only on this computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is no such file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is no longer on this computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server had a verified copy when it was last checked.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>As far as is known, the server has no verified copy.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It was safe when the server was last checked</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use Check now to find out whether you may delete it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Last compared with the server: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No: it has changed since it was sent</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No: it may have changed since it was verified</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No: the server has not verified it yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No: the server contradicts that it is safe</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No: it is not on the server</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It cannot be read now</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No: the server has an earlier version</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The next run sends the current version.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The next run checks it, and sends it if it has changed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Check that its drive is connected, and that you may read it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>No: %Ln file(s) in it are not safe yet</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Use Check now to find out which of the others you may delete.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All files that runs found in it were safe when the server was last checked</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There are no files in it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Yes, you may delete it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The server has a verified copy with the same size and checksum, and the local file was read again (%1). Free space lets the server verify its copy again before it deletes.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Yes, you may delete all %Ln file(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>The server has a verified copy of each, with the same size and checksum, and the local files were read again (%1). Free space lets the server verify its copies again before it deletes.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No: keep it</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>No: %Ln file(s) must be kept</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) can be deleted. The first one to keep is %1: %2</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
</context>
<context>
    <name>words</name>
    <message>
        <source>%1/s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 min</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 h %2 min</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 days</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>today %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>yesterday %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>tomorrow %1</source>
        <translation type="unfinished"></translation>
    </message>
</context>
</TS>
