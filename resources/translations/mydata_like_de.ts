<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de" sourcelanguage="en">
<context>
    <name>AccountStep</name>
    <message>
        <source>Which account?</source>
        <translation>Welches Konto?</translation>
    </message>
    <message>
        <source>The account that uploads, usually the facility manager&apos;s. Its API key is on the server&apos;s page “Manage Account”.</source>
        <translation>Das Konto, das hochlädt, meist das der Leitung der Einrichtung. Sein API-Schlüssel steht auf der Seite „Manage Account“ des Servers.</translation>
    </message>
    <message>
        <source>&amp;Open the server&apos;s page</source>
        <translation>Seite des Servers ö&amp;ffnen</translation>
    </message>
    <message>
        <source>&amp;Account</source>
        <translation>&amp;Konto</translation>
    </message>
    <message>
        <source>API &amp;key</source>
        <translation>A&amp;PI-Schlüssel</translation>
    </message>
    <message>
        <source>Keep the key in a &amp;file that only you can read (not encrypted)</source>
        <translation>Den Schlüssel in einer &amp;Datei ablegen, die nur Sie lesen können (unverschlüsselt)</translation>
    </message>
    <message>
        <source>Already stored; leave empty to use it</source>
        <translation>Schon gespeichert; leer lassen, um ihn zu verwenden</translation>
    </message>
    <message>
        <source>Checking the account…</source>
        <translation>Das Konto wird geprüft …</translation>
    </message>
    <message>
        <source>Unlock it and press Next again, or keep the key in a file that only you can read.</source>
        <translation>Entsperren Sie ihn und drücken Sie noch einmal „Weiter“, oder legen Sie den Schlüssel in einer Datei ab, die nur Sie lesen können.</translation>
    </message>
    <message>
        <source>You are signed in as %1.</source>
        <translation>Sie sind angemeldet als %1.</translation>
    </message>
</context>
<context>
    <name>AddressStep</name>
    <message>
        <source>Which server?</source>
        <translation>Welcher Server?</translation>
    </message>
    <message>
        <source>The web address of your MyTardis server, as you open it in a browser.</source>
        <translation>Die Webadresse Ihres MyTardis-Servers, wie Sie sie im Browser öffnen.</translation>
    </message>
    <message>
        <source>Server &amp;address</source>
        <translation>&amp;Adresse des Servers</translation>
    </message>
    <message>
        <source>&amp;Import from MyData…</source>
        <translation>Aus &amp;MyData übernehmen …</translation>
    </message>
    <message>
        <source>&amp;Choose a MyData.cfg…</source>
        <translation>My&amp;Data.cfg auswählen …</translation>
    </message>
    <message>
        <source>&amp;Try the demo</source>
        <translation>D&amp;emo ausprobieren</translation>
    </message>
    <message>
        <source>Have you used MyData before? Its settings can be imported.</source>
        <translation>Haben Sie MyData verwendet? Seine Einstellungen können übernommen werden.</translation>
    </message>
    <message>
        <source>MyData was used on this computer: %1</source>
        <translation>MyData wurde auf diesem Computer verwendet: %1</translation>
    </message>
    <message>
        <source>Connecting to the server…</source>
        <translation>Verbindung zum Server wird hergestellt …</translation>
    </message>
    <message>
        <source>This is a MyTardis server: %1</source>
        <translation>Das ist ein MyTardis-Server: %1</translation>
    </message>
    <message>
        <source>&amp;Use %1</source>
        <translation>%1 &amp;verwenden</translation>
    </message>
    <message>
        <source>MyData&apos;s settings (*.cfg);;All files (*)</source>
        <translation>Einstellungen von MyData (*.cfg);;Alle Dateien (*)</translation>
    </message>
    <message>
        <source>Settings of MyData</source>
        <translation>Einstellungen von MyData</translation>
    </message>
</context>
<context>
    <name>ApiKeyRow</name>
    <message>
        <source>API key</source>
        <translation>API-Schlüssel</translation>
    </message>
    <message>
        <source>The key of the account, from its page on the server. It is stored in the system&apos;s keyring, or in a file that only you can read, and never in the settings.</source>
        <translation>Der Schlüssel des Kontos, von dessen Seite auf dem Server. Er wird im Schlüsselbund des Systems oder in einer Datei gespeichert, die nur Sie lesen können, und nie in den Einstellungen.</translation>
    </message>
    <message>
        <source>Forget</source>
        <translation>Vergessen</translation>
    </message>
    <message>
        <source>In the system&apos;s keyring</source>
        <translation>Im Schlüsselbund des Systems</translation>
    </message>
    <message>
        <source>In a file, not encrypted</source>
        <translation>In einer Datei, unverschlüsselt</translation>
    </message>
    <message>
        <source>Storage of the API key</source>
        <translation>Speicherort des API-Schlüssels</translation>
    </message>
    <message>
        <source>Remove the API key</source>
        <translation>API-Schlüssel entfernen</translation>
    </message>
    <message>
        <source>Looking up where it is stored</source>
        <translation>Der Speicherort wird ermittelt</translation>
    </message>
    <message>
        <source>Reset</source>
        <translation>Zurücksetzen</translation>
    </message>
    <message>
        <source>Reset: %1</source>
        <translation>Zurücksetzen: %1</translation>
    </message>
    <message>
        <source>Stored; type a new one to replace it</source>
        <translation>Abgelegt; geben Sie einen neuen ein, um ihn zu ersetzen</translation>
    </message>
    <message>
        <source>New: stored with OK</source>
        <translation>Neu: wird mit OK abgelegt</translation>
    </message>
    <message>
        <source>Removed with OK</source>
        <translation>Wird mit OK entfernt</translation>
    </message>
    <message>
        <source>Stored in %1</source>
        <translation>Abgelegt in: %1</translation>
    </message>
    <message>
        <source>Needed before a run can start</source>
        <translation>Nötig, bevor ein Lauf beginnen kann</translation>
    </message>
    <message>
        <source>the keyring</source>
        <translation>dem Schlüsselbund</translation>
    </message>
    <message>
        <source>the secrets file</source>
        <translation>der Datei der Geheimnisse</translation>
    </message>
</context>
<context>
    <name>AppShell</name>
    <message>
        <source>mydata-like is still running</source>
        <translation>mydata-like läuft weiter</translation>
    </message>
</context>
<context>
    <name>Banner</name>
    <message>
        <source>Message</source>
        <translation>Meldung</translation>
    </message>
    <message>
        <source>Show &amp;more</source>
        <translation>Mehr &amp;zeigen</translation>
    </message>
    <message>
        <source>&amp;Close message</source>
        <translation>Meldung sch&amp;ließen</translation>
    </message>
</context>
<context>
    <name>BarChart</name>
    <message>
        <source>Speed of each stage alone</source>
        <translation>Geschwindigkeit jeder Stufe allein</translation>
    </message>
    <message>
        <source>%1 (%2)</source>
        <comment>a rate, and an earlier one</comment>
        <translation>%1 (%2)</translation>
    </message>
    <message>
        <source>%1, the limit</source>
        <translation>%1, die Grenze</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <comment>a stage and its rate</comment>
        <translation>%1: %2</translation>
    </message>
    <message>
        <source>; earlier %1</source>
        <translation>; früher %1</translation>
    </message>
    <message>
        <source>; this is the limit</source>
        <translation>; das ist die Grenze</translation>
    </message>
</context>
<context>
    <name>BundleDialog</name>
    <message>
        <source>Include names of files and folders</source>
        <translation>Namen von Dateien und Ordnern aufnehmen</translation>
    </message>
    <message>
        <source>Save…</source>
        <translation>Speichern …</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Support bundle</source>
        <translation>Hilfspaket</translation>
    </message>
    <message>
        <source>Files of the bundle</source>
        <translation>Dateien des Pakets</translation>
    </message>
    <message>
        <source>Text of the file</source>
        <translation>Text der Datei</translation>
    </message>
    <message>
        <source>Collecting diagnostic information</source>
        <translation>Diagnosedaten werden gesammelt</translation>
    </message>
    <message>
        <source>This is the complete content. It contains no API keys or passwords. Review it before you send it.</source>
        <translation>Das ist der vollständige Inhalt. Er enthält keine API-Schlüssel und keine Passwörter. Prüfen Sie ihn, bevor Sie ihn verschicken.</translation>
    </message>
    <message>
        <source>Save the support bundle</source>
        <translation>Hilfspaket speichern</translation>
    </message>
    <message>
        <source>Zip files (*.zip)</source>
        <translation>Zip-Dateien (*.zip)</translation>
    </message>
</context>
<context>
    <name>CleanupResultsModel</name>
    <message>
        <source>File</source>
        <translation>Datei</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>Größe</translation>
    </message>
    <message>
        <source>Reason</source>
        <translation>Grund</translation>
    </message>
</context>
<context>
    <name>ConnectionTest</name>
    <message>
        <source>Good</source>
        <translation>Gut</translation>
    </message>
    <message>
        <source>Not verified</source>
        <translation>Nicht geprüft</translation>
    </message>
    <message>
        <source>Failed</source>
        <translation>Gescheitert</translation>
    </message>
</context>
<context>
    <name>ConnectionTestDialog</name>
    <message>
        <source>Connection test</source>
        <translation>Verbindungstest</translation>
    </message>
    <message>
        <source>Testing the connection to the server</source>
        <translation>Die Verbindung zum Server wird getestet</translation>
    </message>
    <message>
        <source>Copy as &amp;text</source>
        <translation>Als &amp;Text kopieren</translation>
    </message>
    <message>
        <source>Steps of the test</source>
        <translation>Schritte des Tests</translation>
    </message>
    <message>
        <source>The connection works</source>
        <translation>Die Verbindung funktioniert</translation>
    </message>
    <message>
        <source>Nothing failed, but not every step could be verified</source>
        <translation>Nichts ist fehlgeschlagen, aber nicht jeder Schritt konnte geprüft werden</translation>
    </message>
    <message>
        <source>The test failed</source>
        <translation>Der Test ist fehlgeschlagen</translation>
    </message>
</context>
<context>
    <name>DateEditor</name>
    <message>
        <source>no day</source>
        <translation>kein Tag</translation>
    </message>
</context>
<context>
    <name>DemoLauncher</name>
    <message>
        <source>This computer could not start another program.</source>
        <translation>Dieser Computer konnte kein weiteres Programm starten.</translation>
    </message>
    <message>
        <source>The demo could not be started.</source>
        <translation>Die Demo konnte nicht gestartet werden.</translation>
    </message>
</context>
<context>
    <name>DetailsPanel</name>
    <message>
        <source>Details</source>
        <translation>Details</translation>
    </message>
</context>
<context>
    <name>DropDialog</name>
    <message>
        <source>Upload</source>
        <translation>Hochladen</translation>
    </message>
    <message>
        <source>Double-click an owner, experiment or dataset to change it.</source>
        <translation>Doppelklicken Sie auf Eigentümer, Experiment oder Datensatz, um sie zu ändern.</translation>
    </message>
    <message>
        <source>&amp;Upload</source>
        <translation>Hoch&amp;laden</translation>
    </message>
    <message>
        <source>Dropped folders and their destinations</source>
        <translation>Abgelegte Ordner und ihre Ziele</translation>
    </message>
    <message>
        <source>Notes</source>
        <translation>Hinweise</translation>
    </message>
    <message>
        <source>Another upload is in progress. This one can start when it has ended.</source>
        <translation>Ein anderer Upload läuft. Dieser kann beginnen, wenn jener beendet ist.</translation>
    </message>
    <message>
        <source>A speed test is in progress. The upload can start when it has ended.</source>
        <translation>Ein Geschwindigkeitstest läuft. Der Upload kann beginnen, wenn er beendet ist.</translation>
    </message>
    <message numerus="yes">
        <source>Scanning: %Ln file(s) to send so far, %1</source>
        <translation>
            <numerusform>Suche läuft: bisher %Ln Datei zu senden, %1</numerusform>
            <numerusform>Suche läuft: bisher %Ln Dateien zu senden, %1</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Upload %Ln folder(s) or file(s)</source>
        <translation>
            <numerusform>%Ln Ordner oder Datei hochladen</numerusform>
            <numerusform>%Ln Ordner oder Dateien hochladen</numerusform>
        </translation>
    </message>
    <message>
        <source>Nothing can be uploaded before the set-up is complete.</source>
        <translation>Vor dem Abschluss der Einrichtung kann nichts hochgeladen werden.</translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) to send, %1</source>
        <translation>
            <numerusform>%Ln Datei zu senden, %1</numerusform>
            <numerusform>%Ln Dateien zu senden, %1</numerusform>
        </translation>
    </message>
    <message>
        <source>Nothing is to be sent.</source>
        <translation>Es ist nichts zu senden.</translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) to send, %1: about %2 at the speed of the last run</source>
        <translation>
            <numerusform>%Ln Datei zu senden, %1: etwa %2 bei der Geschwindigkeit des letzten Laufs</numerusform>
            <numerusform>%Ln Dateien zu senden, %1: etwa %2 bei der Geschwindigkeit des letzten Laufs</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>DropFrame</name>
    <message>
        <source>Drop to upload</source>
        <translation>Zum Hochladen hier ablegen</translation>
    </message>
</context>
<context>
    <name>DropHint</name>
    <message>
        <source>Drop folders or files here to upload them</source>
        <translation>Ordner oder Dateien zum Hochladen hier ablegen</translation>
    </message>
</context>
<context>
    <name>DropTarget</name>
    <message>
        <source>Choose a folder to upload</source>
        <translation>Ordner zum Hochladen auswählen</translation>
    </message>
</context>
<context>
    <name>DryRunDialog</name>
    <message>
        <source>Dry run</source>
        <translation>Probelauf</translation>
    </message>
    <message>
        <source>Scanning the folders…</source>
        <translation>Die Ordner werden durchsucht …</translation>
    </message>
    <message>
        <source>The dry run is in progress</source>
        <translation>Der Probelauf ist unterwegs</translation>
    </message>
    <message>
        <source>&amp;Upload now</source>
        <translation>Jetzt &amp;hochladen</translation>
    </message>
    <message>
        <source>Folders</source>
        <translation>Ordner</translation>
    </message>
    <message>
        <source>Not uploaded now</source>
        <translation>Was jetzt nicht hochgeladen wird</translation>
    </message>
    <message numerus="yes">
        <source>and %Ln more file(s)</source>
        <translation>
            <numerusform>und %Ln weitere Datei</numerusform>
            <numerusform>und %Ln weitere Dateien</numerusform>
        </translation>
    </message>
    <message>
        <source>The dry run ended before it was complete.</source>
        <translation>Der Probelauf endete, bevor er vollständig war.</translation>
    </message>
</context>
<context>
    <name>EmptyState</name>
    <message>
        <source>Your data, safe on the server</source>
        <translation>Ihre Daten, sicher auf dem Server</translation>
    </message>
    <message>
        <source>Set &amp;up…</source>
        <translation>Einri&amp;chten …</translation>
    </message>
    <message>
        <source>This program uploads the files of an instrument to a MyTardis server and verifies that every byte arrived. The set-up takes six short steps.</source>
        <translation>Dieses Programm lädt die Dateien eines Instruments auf einen MyTardis-Server und prüft, dass jedes Byte angekommen ist. Das Einrichten dauert sechs kurze Schritte.</translation>
    </message>
    <message>
        <source>Try the de&amp;mo</source>
        <translation>De&amp;mo ausprobieren</translation>
    </message>
    <message>
        <source>Upload sample data to a server inside this program</source>
        <translation>Beispieldaten zu einem Server innerhalb dieses Programms hochladen</translation>
    </message>
</context>
<context>
    <name>FolderTree</name>
    <message>
        <source>Folder</source>
        <translation>Ordner</translation>
    </message>
    <message>
        <source>State</source>
        <translation>Zustand</translation>
    </message>
    <message>
        <source>Verified</source>
        <translation>Geprüft</translation>
    </message>
    <message>
        <source>Files</source>
        <translation>Dateien</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>Größe</translation>
    </message>
    <message>
        <source>Not verified</source>
        <translation>Nicht geprüft</translation>
    </message>
    <message>
        <source>All further entries</source>
        <translation>Alle weiteren Einträge</translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <comment>number of files of a total</comment>
        <translation>%1 von %2</translation>
    </message>
    <message>
        <source>Your account</source>
        <translation>Ihr Konto</translation>
    </message>
    <message numerus="yes">
        <source>%Ln failed</source>
        <translation>
            <numerusform>%Ln gescheitert</numerusform>
            <numerusform>%Ln gescheitert</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln waiting</source>
        <translation>
            <numerusform>%Ln wartend</numerusform>
            <numerusform>%Ln wartend</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln left out</source>
        <translation>
            <numerusform>%Ln ausgelassen</numerusform>
            <numerusform>%Ln ausgelassen</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>FoldersPage</name>
    <message>
        <source>Show files</source>
        <translation>Dateien zeigen</translation>
    </message>
    <message>
        <source>Open folder</source>
        <translation>Ordner öffnen</translation>
    </message>
    <message>
        <source>Open on server</source>
        <translation>Auf dem Server öffnen</translation>
    </message>
    <message>
        <source>Copy path</source>
        <translation>Pfad kopieren</translation>
    </message>
    <message>
        <source>Only this one now</source>
        <translation>Jetzt nur diesen</translation>
    </message>
    <message>
        <source>Leave for next run</source>
        <translation>Dem nächsten Lauf überlassen</translation>
    </message>
    <message>
        <source>Send after all</source>
        <translation>Doch senden</translation>
    </message>
    <message>
        <source>Folders</source>
        <translation>Ordner</translation>
    </message>
    <message>
        <source>Send no more files of this folder in this run</source>
        <translation>In diesem Lauf keine weiteren Dateien aus diesem Ordner senden</translation>
    </message>
    <message>
        <source>Send files of this folder that were left out or failed in this run</source>
        <translation>Dateien dieses Ordners senden, die in diesem Lauf zurückgestellt wurden oder fehlgeschlagen sind</translation>
    </message>
    <message>
        <source>The folders appear here after the first run.</source>
        <translation>Die Ordner erscheinen hier nach dem ersten Lauf.</translation>
    </message>
</context>
<context>
    <name>FoldersStep</name>
    <message>
        <source>Which data?</source>
        <translation>Welche Daten?</translation>
    </message>
    <message>
        <source>C&amp;hoose…</source>
        <translation>&amp;Auswählen …</translation>
    </message>
    <message>
        <source>Data &amp;folder</source>
        <translation>Daten&amp;ordner</translation>
    </message>
    <message>
        <source>What the folders become</source>
        <translation>Was aus den Ordnern wird</translation>
    </message>
    <message>
        <source>Data folder</source>
        <translation>Datenordner</translation>
    </message>
    <message>
        <source>For example: %1</source>
        <translation>Zum Beispiel: %1</translation>
    </message>
    <message>
        <source>The folder in which the instrument saves its data. Nothing in it is ever changed.</source>
        <translation>Der Ordner, in dem das Instrument seine Daten speichert. Darin wird nie etwas geändert.</translation>
    </message>
    <message>
        <source>Folder &amp;structure</source>
        <translation>Ordnerstr&amp;uktur</translation>
    </message>
    <message>
        <source>Scanning the folders…</source>
        <translation>Die Ordner werden durchsucht …</translation>
    </message>
    <message>
        <source>The folder %1.</source>
        <translation>Der Ordner %1.</translation>
    </message>
    <message>
        <source>Did you mean “%1”? &amp;Use it</source>
        <translation>Meinten Sie „%1“? &amp;Ja, so</translation>
    </message>
    <message>
        <source>The server completes “…” with the full name of the owner.</source>
        <translation>Der Server ersetzt „…“ durch den vollen Namen des Besitzers.</translation>
    </message>
    <message numerus="yes">
        <source>%Ln dataset(s) found.</source>
        <translation>
            <numerusform>%Ln Datensatz gefunden.</numerusform>
            <numerusform>%Ln Datensätze gefunden.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>More than %Ln dataset(s) found.</source>
        <translation>
            <numerusform>Mehr als %Ln Datensatz gefunden.</numerusform>
            <numerusform>Mehr als %Ln Datensätze gefunden.</numerusform>
        </translation>
    </message>
    <message>
        <source>No folder fits this layout yet, so there is nothing to upload.</source>
        <translation>Noch passt kein Ordner zu diesem Aufbau, daher gibt es nichts hochzuladen.</translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) or folder(s) are left out, such as %1: %2</source>
        <translation>
            <numerusform>%Ln Datei oder Ordner wird ausgelassen, etwa %1: %2</numerusform>
            <numerusform>%Ln Dateien oder Ordner werden ausgelassen, etwa %1: %2</numerusform>
        </translation>
    </message>
    <message>
        <source>A dry run lists all of them.</source>
        <translation>Ein Probelauf listet alle auf.</translation>
    </message>
    <message>
        <source>The owners could not be checked on the server.</source>
        <translation>Die Besitzer konnten auf dem Server nicht geprüft werden.</translation>
    </message>
    <message numerus="yes">
        <source>%Ln folder(s) do not fit this layout:</source>
        <translation>
            <numerusform>%Ln Ordner passt nicht zu diesem Aufbau:</numerusform>
            <numerusform>%Ln Ordner passen nicht zu diesem Aufbau:</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln owner(s) are not known to the server; their data go to the facility:</source>
        <translation>
            <numerusform>%Ln Eigentümer ist dem Server unbekannt; seine Daten gehen an die Einrichtung:</numerusform>
            <numerusform>%Ln Eigentümer sind dem Server unbekannt; ihre Daten gehen an die Einrichtung:</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>FreeDialog</name>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Free space</source>
        <translation>Platz schaffen</translation>
    </message>
    <message>
        <source>Progress</source>
        <translation>Fortschritt</translation>
    </message>
    <message>
        <source>Files to delete</source>
        <translation>Zu löschende Dateien</translation>
    </message>
    <message>
        <source>Nothing is deleted yet.</source>
        <translation>Noch ist nichts gelöscht.</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Anhalten</translation>
    </message>
    <message numerus="yes">
        <source>Deleting %Ln file(s)</source>
        <translation>
            <numerusform>%Ln Datei wird gelöscht</numerusform>
            <numerusform>%Ln Dateien werden gelöscht</numerusform>
        </translation>
    </message>
    <message>
        <source>Can be deleted (%1)</source>
        <translation>Kann gelöscht werden (%1)</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Nothing here can be deleted</source>
        <translation>Hier kann nichts gelöscht werden</translation>
    </message>
    <message>
        <source>Files to keep</source>
        <translation>Dateien, die bleiben</translation>
    </message>
    <message>
        <source>Checking the server and reading the files again</source>
        <translation>Der Server wird abgefragt, und die Dateien werden noch einmal gelesen</translation>
    </message>
    <message>
        <source>The server verifies its copies again, and each file is read again, right before it is deleted.</source>
        <translation>Der Server prüft seine Kopien noch einmal, und jede Datei wird noch einmal gelesen, unmittelbar bevor sie gelöscht wird.</translation>
    </message>
    <message>
        <source>The reason for each file is listed below.</source>
        <translation>Der Grund für jede Datei steht unten.</translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) can be deleted: %1</source>
        <translation>
            <numerusform>%Ln Datei kann gelöscht werden: %1</numerusform>
            <numerusform>%Ln Dateien können gelöscht werden: %1</numerusform>
        </translation>
    </message>
    <message>
        <source>The server has a verified copy of each, with the same size and checksum. It verifies them again before anything is deleted. Folders are kept. Deleted files are not moved to the trash.</source>
        <translation>Der Server hat von jeder eine geprüfte Kopie mit gleicher Größe und Prüfsumme. Er prüft sie noch einmal, bevor etwas gelöscht wird. Ordner bleiben. Gelöschte Dateien kommen nicht in den Papierkorb.</translation>
    </message>
    <message numerus="yes">
        <source>Delete %Ln file(s)</source>
        <translation>
            <numerusform>%Ln Datei löschen</numerusform>
            <numerusform>%Ln Dateien löschen</numerusform>
        </translation>
    </message>
    <message>
        <source>Deleted (%1)</source>
        <translation>Gelöscht (%1)</translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) were deleted: %1</source>
        <translation>
            <numerusform>%Ln Datei wurde gelöscht: %1</numerusform>
            <numerusform>%Ln Dateien wurden gelöscht: %1</numerusform>
        </translation>
    </message>
    <message>
        <source>Nothing was deleted</source>
        <translation>Nichts wurde gelöscht</translation>
    </message>
    <message>
        <source>Every deletion is recorded in freed.jsonl in the state folder.</source>
        <translation>Jede Löschung wird in freed.jsonl im Zustandsordner aufgezeichnet.</translation>
    </message>
    <message>
        <source>Kept (%1)</source>
        <translation>Bleibt (%1)</translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) so far, %1. Nothing is deleted yet.</source>
        <translation>
            <numerusform>Bisher %Ln Datei, %1. Noch ist nichts gelöscht.</numerusform>
            <numerusform>Bisher %Ln Dateien, %1. Noch ist nichts gelöscht.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Headline</name>
    <message>
        <source>Another program or the service executes this run.</source>
        <translation>Ein anderes Programm oder der Dienst führt diesen Lauf aus.</translation>
    </message>
    <message>
        <source>Over HTTP, until the administrator approves SSH.</source>
        <translation>Über HTTP, bis die Administration SSH freigibt.</translation>
    </message>
    <message>
        <source>It takes longer, since more files were found.</source>
        <translation>Es dauert länger, weil mehr Dateien gefunden wurden.</translation>
    </message>
    <message>
        <source>It takes longer, since sending has become slower.</source>
        <translation>Es dauert länger, weil das Senden langsamer geworden ist.</translation>
    </message>
    <message>
        <source>Start continues where it stopped.</source>
        <translation>„Start“ macht dort weiter, wo der Lauf aufhörte.</translation>
    </message>
    <message>
        <source>The oldest of them is from %1.</source>
        <translation>Die älteste davon ist von %1.</translation>
    </message>
    <message numerus="yes">
        <source>%Ln other file(s) are safe there.</source>
        <translation>
            <numerusform>%Ln andere Datei ist dort sicher.</numerusform>
            <numerusform>%Ln andere Dateien sind dort sicher.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) were left out on purpose.</source>
        <translation>
            <numerusform>%Ln Datei wurde absichtlich ausgelassen.</numerusform>
            <numerusform>%Ln Dateien wurden absichtlich ausgelassen.</numerusform>
        </translation>
    </message>
    <message>
        <source>Start agai&amp;n</source>
        <translation>Er&amp;neut starten</translation>
    </message>
    <message>
        <source>Resu&amp;me</source>
        <translation>Wei&amp;ter</translation>
    </message>
    <message>
        <source>Pa&amp;use</source>
        <translation>Pa&amp;use</translation>
    </message>
    <message>
        <source>Start n&amp;ow</source>
        <translation>&amp;Jetzt starten</translation>
    </message>
    <message>
        <source>Show pro&amp;blems</source>
        <translation>Pro&amp;bleme zeigen</translation>
    </message>
</context>
<context>
    <name>HelpDialog</name>
    <message>
        <source>Help</source>
        <translation>Hilfe</translation>
    </message>
    <message>
        <source>Getting started</source>
        <translation>Erste Schritte</translation>
    </message>
    <message>
        <source>What is new</source>
        <translation>Neuigkeiten</translation>
    </message>
    <message>
        <source>Keys</source>
        <translation>Tasten</translation>
    </message>
    <message>
        <source>Versions</source>
        <translation>Versionen</translation>
    </message>
    <message>
        <source>&amp;Getting started</source>
        <translation>&amp;Erste Schritte</translation>
    </message>
    <message>
        <source>What is &amp;new</source>
        <translation>&amp;Neuigkeiten</translation>
    </message>
    <message>
        <source>&amp;Keys</source>
        <translation>&amp;Tasten</translation>
    </message>
    <message>
        <source>&amp;About</source>
        <translation>Ü&amp;ber</translation>
    </message>
    <message>
        <source>**Set up** once: the server, the account, the instrument and its data folder. The first start opens the set-up; later, it is in the settings.</source>
        <translation>**Einmal einrichten**: den Server, das Konto, das Instrument und seinen Datenordner. Der erste Start öffnet die Einrichtung, später ist sie in den Einstellungen.</translation>
    </message>
    <message>
        <source>**Start** sends what the server lacks. Or let it happen: *Settings*, *Schedule* has fixed times, and *with new files*.</source>
        <translation>**Start** sendet, was dem Server fehlt. Von selbst geschieht es nach einem Zeitplan (*Einstellungen*, *Zeitplan*): zu festen Zeiten oder bei neuen Dateien.</translation>
    </message>
    <message>
        <source>**Drop** folders or files on the window to upload what is elsewhere; choose the experiment and the dataset that they become.</source>
        <translation>**Ziehen** Sie Ordner oder Dateien auf das Fenster, um hochzuladen, was anderswo liegt, und wählen Sie Experiment und Datensatz, zu denen sie werden.</translation>
    </message>
    <message>
        <source>**Verified** means that the server has read the file and its checksum is right. Until then it counts as *only on this computer*.</source>
        <translation>**Geprüft** heißt, dass der Server die Datei gelesen hat und ihre Prüfsumme stimmt. Bis dahin gilt sie als *nur auf diesem Computer*.</translation>
    </message>
    <message>
        <source>**May I delete it?** *Where is my data?* answers for a file or a folder, with the reasons, and can free the space.</source>
        <translation>**Darf ich sie löschen?** *Wo sind meine Daten?* antwortet für eine Datei oder einen Ordner, mit den Gründen, und kann den Platz freigeben.</translation>
    </message>
    <message>
        <source>**Problems** says what happened to a file, who can fix it, and what to do. Nothing is lost meanwhile, and a later run continues.</source>
        <translation>**Probleme** sagt, was mit einer Datei geschehen ist, wer es beheben kann und was zu tun ist. Inzwischen geht nichts verloren, und ein späterer Lauf macht weiter.</translation>
    </message>
    <message>
        <source>**Too slow?** The *speed test* finds out what the limit is, and which settings help.</source>
        <translation>**Zu langsam?** Der *Geschwindigkeitstest* findet heraus, was die Grenze ist und welche Einstellungen helfen.</translation>
    </message>
    <message>
        <source>Uploads research data from instruments to a MyTardis server.</source>
        <translation>Bringt Forschungsdaten von Instrumenten zu einem MyTardis-Server.</translation>
    </message>
    <message>
        <source>It is built on:</source>
        <translation>Es baut auf:</translation>
    </message>
    <message>
        <source>&amp;Copy</source>
        <translation>&amp;Kopieren</translation>
    </message>
    <message>
        <source>Copy the versions as text, for a report</source>
        <translation>Die Versionen als Text kopieren, für einen Bericht</translation>
    </message>
    <message>
        <source>What security depends on:</source>
        <translation>Wovon die Sicherheit abhängt:</translation>
    </message>
    <message>
        <source>Licences</source>
        <translation>Lizenzen</translation>
    </message>
</context>
<context>
    <name>HistoryPage</name>
    <message>
        <source>Export…</source>
        <translation>Exportieren …</translation>
    </message>
    <message>
        <source>Runs of mydata-like</source>
        <translation>Läufe von mydata-like</translation>
    </message>
    <message>
        <source>Runs</source>
        <translation>Läufe</translation>
    </message>
    <message>
        <source>There are no runs yet.</source>
        <translation>Es gab noch keinen Lauf.</translation>
    </message>
    <message>
        <source>Files of the run</source>
        <translation>Dateien des Laufs</translation>
    </message>
    <message>
        <source>This run did not change the status of any file.</source>
        <translation>Dieser Lauf hat den Status keiner Datei geändert.</translation>
    </message>
    <message>
        <source>Files of the run of %1</source>
        <translation>Dateien des Laufs von %1</translation>
    </message>
    <message>
        <source>Export runs</source>
        <translation>Läufe exportieren</translation>
    </message>
    <message>
        <source>Table (*.csv)</source>
        <translation>Tabelle (*.csv)</translation>
    </message>
    <message>
        <source>Web page (*.html)</source>
        <translation>Webseite (*.html)</translation>
    </message>
    <message>
        <source>JSON (*.json)</source>
        <translation>JSON (*.json)</translation>
    </message>
    <message>
        <source>Written to %1</source>
        <translation>Geschrieben nach %1</translation>
    </message>
</context>
<context>
    <name>HostKeyPanel</name>
    <message>
        <source>Fingerprint of the host&apos;s key</source>
        <translation>Fingerabdruck des Rechnerschlüssels</translation>
    </message>
    <message>
        <source>&amp;Trust this host</source>
        <translation>Diesem Rechner &amp;vertrauen</translation>
    </message>
    <message>
        <source>Show the &amp;earlier key</source>
        <translation>Früheren Schlüssel &amp;anzeigen</translation>
    </message>
    <message>
        <source>Folder of the staging area</source>
        <translation>Ordner des Staging-Bereichs</translation>
    </message>
    <message>
        <source>&amp;Write to this folder</source>
        <translation>In diesen Ordner &amp;schreiben</translation>
    </message>
    <message>
        <source>This is the first connection to the staging host %1, port %2. Compare the fingerprint of its key with the one from your administrator:</source>
        <translation>Dies ist die erste Verbindung mit dem Staging-Host %1, Port %2. Vergleichen Sie den Fingerabdruck seines Schlüssels mit dem, den Ihr Administrator nennt:</translation>
    </message>
    <message>
        <source>The staging host %1 identifies itself with another key than before: trust it only if your administrator confirms this fingerprint.</source>
        <translation>Der Staging-Host %1 weist sich mit einem anderen Schlüssel aus als bisher: Vertrauen Sie ihm nur, wenn Ihr Administrator diesen Fingerabdruck bestätigt.</translation>
    </message>
    <message>
        <source>Earlier key of port %1: %2</source>
        <translation>Früherer Schlüssel von Port %1: %2</translation>
    </message>
    <message>
        <source>Looking for the next host…</source>
        <translation>Der nächste Rechner wird gesucht …</translation>
    </message>
</context>
<context>
    <name>ImportDialog</name>
    <message>
        <source>Import settings</source>
        <translation>Einstellungen importieren</translation>
    </message>
    <message>
        <source>Reading %1…</source>
        <translation>%1 wird gelesen …</translation>
    </message>
    <message>
        <source>&amp;Import</source>
        <translation>Ü&amp;bernehmen</translation>
    </message>
    <message>
        <source>Nothing would change: %1 has the current settings.</source>
        <translation>Nichts würde sich ändern: %1 enthält die aktuellen Einstellungen.</translation>
    </message>
    <message>
        <source>%1 is locked and is not changed.</source>
        <translation>%1 ist gesperrt und wird nicht geändert.</translation>
    </message>
    <message>
        <source>What would change</source>
        <translation>Was sich ändern würde</translation>
    </message>
    <message numerus="yes">
        <source>%Ln setting(s) would change. From %1:</source>
        <translation>
            <numerusform>%Ln Einstellung würde sich ändern. Aus %1:</numerusform>
            <numerusform>%Ln Einstellungen würden sich ändern. Aus %1:</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>InstrumentStep</name>
    <message>
        <source>Which instrument?</source>
        <translation>Welches Instrument?</translation>
    </message>
    <message>
        <source>The server shows datasets under the name of their instrument.</source>
        <translation>Der Server zeigt Datensätze unter dem Namen ihres Instruments.</translation>
    </message>
    <message>
        <source>&amp;Facility</source>
        <translation>&amp;Einrichtung</translation>
    </message>
    <message>
        <source>&amp;Instrument</source>
        <translation>&amp;Instrument</translation>
    </message>
    <message>
        <source>&amp;Contact person, for questions about this instrument</source>
        <translation>&amp;Kontaktperson für Fragen zu diesem Instrument</translation>
    </message>
    <message>
        <source>&amp;E-mail of the contact person</source>
        <translation>E-&amp;Mail der Kontaktperson</translation>
    </message>
    <message>
        <source>Loading the facilities…</source>
        <translation>Die Einrichtungen werden geladen …</translation>
    </message>
    <message numerus="yes">
        <source>Your account manages %Ln facility(s).</source>
        <translation>
            <numerusform>Ihr Konto verwaltet %Ln Einrichtung.</numerusform>
            <numerusform>Ihr Konto verwaltet %Ln Einrichtungen.</numerusform>
        </translation>
    </message>
    <message>
        <source>The server knows this instrument.</source>
        <translation>Der Server kennt dieses Instrument.</translation>
    </message>
    <message>
        <source>New: the instrument “%1” will be made.</source>
        <translation>Neu: Das Instrument „%1“ wird angelegt.</translation>
    </message>
    <message>
        <source>The address %1.</source>
        <translation>Die Adresse %1.</translation>
    </message>
</context>
<context>
    <name>KeyStep</name>
    <message>
        <source>Register this computer</source>
        <translation>Diesen Computer registrieren</translation>
    </message>
    <message>
        <source>Files are uploaded with a key that was created on this computer. An administrator of the server approves it once.</source>
        <translation>Dateien werden mit einem Schlüssel hochgeladen, der auf diesem Computer erzeugt wurde. Ein Administrator des Servers gibt ihn einmal frei.</translation>
    </message>
    <message>
        <source>&amp;Copy</source>
        <translation>&amp;Kopieren</translation>
    </message>
    <message>
        <source>&amp;Key fingerprint</source>
        <translation>Fingerabdruck des Schlüsse&amp;ls</translation>
    </message>
    <message>
        <source>Reading the key…</source>
        <translation>Der Schlüssel wird gelesen …</translation>
    </message>
    <message>
        <source>The administrator compares the fingerprint in the server&apos;s administration (MyData, uploader registration requests), chooses the storage box and ticks “approved”. You can close this window: the program keeps checking, and notifies you when the key is approved.</source>
        <translation>Der Administrator vergleicht den Fingerabdruck in der Verwaltung des Servers (MyData, uploader registration requests), wählt die Storage-Box und setzt das Häkchen bei „approved“. Sie können dieses Fenster schließen: Das Programm prüft weiter und benachrichtigt Sie, wenn der Schlüssel freigegeben ist.</translation>
    </message>
    <message>
        <source>Check &amp;again now</source>
        <translation>Jetzt er&amp;neut prüfen</translation>
    </message>
    <message>
        <source>Checking whether the key is approved…</source>
        <translation>Es wird geprüft, ob der Schlüssel freigegeben ist …</translation>
    </message>
    <message>
        <source>Copy a &amp;message for the administrator</source>
        <translation>&amp;Nachricht an die Administration kopieren</translation>
    </message>
    <message>
        <source>The key is approved for the storage box “%1”.</source>
        <translation>Der Schlüssel ist freigegeben für die Ablage „%1“.</translation>
    </message>
    <message>
        <source>Please let the uploader “%1” of %2 send data to %3.

Its key has the fingerprint %4 (MD5 %5).

In the server&apos;s administration, under MyData, uploader registration requests: compare the fingerprint, choose the storage box and tick “approved”. Then let the key into the staging host&apos;s account.
</source>
        <translation>Bitte lassen Sie den Uploader „%1“ von %2 Daten an %3 senden.

Sein Schlüssel hat den Fingerabdruck %4 (MD5 %5).

In der Verwaltung des Servers, unter MyData, uploader registration requests: Bitte vergleichen Sie den Fingerabdruck, wählen Sie die Ablage (storage box) und setzen Sie das Häkchen „approved“. Lassen Sie dann den Schlüssel in das Konto des Annahmerechners.
</translation>
    </message>
</context>
<context>
    <name>LeftModel</name>
    <message>
        <source>Not uploaded now</source>
        <translation>Jetzt nicht hochgeladen</translation>
    </message>
    <message>
        <source>Why</source>
        <translation>Warum</translation>
    </message>
</context>
<context>
    <name>LogModel</name>
    <message>
        <source>Time</source>
        <translation>Uhrzeit</translation>
    </message>
    <message>
        <source>Level</source>
        <translation>Stufe</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>Meldung</translation>
    </message>
    <message>
        <source>Source</source>
        <translation>Quelle</translation>
    </message>
    <message>
        <source>Detail</source>
        <translation>Einzelheit</translation>
    </message>
    <message>
        <source>Information</source>
        <translation>Auskunft</translation>
    </message>
    <message>
        <source>Warning</source>
        <translation>Warnung</translation>
    </message>
    <message>
        <source>Error</source>
        <translation>Fehler</translation>
    </message>
</context>
<context>
    <name>LogPage</name>
    <message>
        <source>Follow</source>
        <translation>Folgen</translation>
    </message>
    <message>
        <source>Nothing has been written yet.</source>
        <translation>Noch wurde nichts geschrieben.</translation>
    </message>
    <message>
        <source>Copy lines</source>
        <translation>Zeilen kopieren</translation>
    </message>
    <message>
        <source>Find</source>
        <translation>Suchen</translation>
    </message>
    <message>
        <source>Open folder</source>
        <translation>Ordner öffnen</translation>
    </message>
    <message>
        <source>Support bundle…</source>
        <translation>Hilfspaket …</translation>
    </message>
    <message>
        <source>Uploads</source>
        <translation>Uploads</translation>
    </message>
    <message>
        <source>This window</source>
        <translation>Dieses Fenster</translation>
    </message>
    <message>
        <source>Which log</source>
        <translation>Welches Protokoll</translation>
    </message>
    <message>
        <source>Everything</source>
        <translation>Alles</translation>
    </message>
    <message>
        <source>Information and above</source>
        <translation>Informationen und höher</translation>
    </message>
    <message>
        <source>Warnings and errors</source>
        <translation>Warnungen und Fehler</translation>
    </message>
    <message>
        <source>Errors only</source>
        <translation>Nur Fehler</translation>
    </message>
    <message>
        <source>Level</source>
        <translation>Stufe</translation>
    </message>
    <message>
        <source>Only lines with this text</source>
        <translation>Nur Zeilen mit diesem Text</translation>
    </message>
    <message>
        <source>Text in the line</source>
        <translation>Text in der Zeile</translation>
    </message>
    <message>
        <source>Lines of the log</source>
        <translation>Zeilen des Protokolls</translation>
    </message>
    <message>
        <source>No lines match.</source>
        <translation>Keine passenden Zeilen.</translation>
    </message>
</context>
<context>
    <name>MainWindow</name>
    <message>
        <source>&amp;Start</source>
        <translation>&amp;Start</translation>
    </message>
    <message>
        <source>&amp;Pause</source>
        <translation>&amp;Pause</translation>
    </message>
    <message>
        <source>&amp;Resume</source>
        <translation>&amp;Weiter</translation>
    </message>
    <message>
        <source>S&amp;top</source>
        <translation>&amp;Anhalten</translation>
    </message>
    <message>
        <source>&amp;Dry run</source>
        <translation>P&amp;robelauf</translation>
    </message>
    <message>
        <source>Show what would be uploaded; nothing is sent</source>
        <translation>Zeigen, was hochgeladen würde; nichts wird gesendet</translation>
    </message>
    <message>
        <source>&amp;Add folders…</source>
        <translation>Ordner &amp;hinzufügen …</translation>
    </message>
    <message>
        <source>S&amp;ettings…</source>
        <translation>&amp;Einstellungen …</translation>
    </message>
    <message>
        <source>&amp;Help</source>
        <translation>H&amp;ilfe</translation>
    </message>
    <message>
        <source>&amp;Quit</source>
        <translation>&amp;Beenden</translation>
    </message>
    <message>
        <source>Actions</source>
        <translation>Aktionen</translation>
    </message>
    <message>
        <source>Where is…</source>
        <translation>Wo ist …</translation>
    </message>
    <message>
        <source>Find a file or folder</source>
        <translation>Nach einer Datei oder einem Ordner suchen</translation>
    </message>
    <message>
        <source>mydata-like: demo</source>
        <translation>mydata-like: Demo</translation>
    </message>
    <message>
        <source>Demo: sample data, and a server on this computer</source>
        <translation>Demo: Beispieldaten und ein Server auf diesem Rechner</translation>
    </message>
    <message>
        <source>Next run %1</source>
        <translation>Nächster Lauf %1</translation>
    </message>
</context>
<context>
    <name>MyDataImportDialog</name>
    <message>
        <source>Import from MyData</source>
        <translation>Aus MyData übernehmen</translation>
    </message>
    <message>
        <source>Keep the API key in a &amp;file that only you can read (not encrypted)</source>
        <translation>Den API-Schlüssel in einer &amp;Datei ablegen, die nur Sie lesen können (unverschlüsselt)</translation>
    </message>
    <message>
        <source>Settings to import</source>
        <translation>Zu übernehmende Einstellungen</translation>
    </message>
    <message>
        <source>&amp;Import</source>
        <translation>Ü&amp;bernehmen</translation>
    </message>
    <message>
        <source>Reading MyData&apos;s settings…</source>
        <translation>Die Einstellungen von MyData werden gelesen …</translation>
    </message>
    <message>
        <source>Nothing is changed yet. From %1:</source>
        <translation>Noch ist nichts geändert. Aus %1:</translation>
    </message>
    <message>
        <source>The API key is imported as well.</source>
        <translation>Der API-Schlüssel wird ebenfalls übernommen.</translation>
    </message>
    <message>
        <source>Nothing was changed. Unlock it, or keep the key in a file.</source>
        <translation>Nichts wurde geändert. Entsperren Sie ihn, oder lassen Sie den Schlüssel in einer Datei ablegen.</translation>
    </message>
</context>
<context>
    <name>Navigation</name>
    <message>
        <source>Pages</source>
        <translation>Seiten</translation>
    </message>
</context>
<context>
    <name>PathEditor</name>
    <message>
        <source>Choose…</source>
        <translation>Auswählen …</translation>
    </message>
    <message>
        <source>Choose: %1</source>
        <translation>Auswählen: %1</translation>
    </message>
</context>
<context>
    <name>PipelineStrip</name>
    <message>
        <source>Scan</source>
        <translation>Suchen</translation>
    </message>
    <message>
        <source>Check</source>
        <translation>Abgleichen</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>Senden</translation>
    </message>
    <message>
        <source>Register</source>
        <translation>Eintragen</translation>
    </message>
    <message>
        <source>Verify</source>
        <translation>Prüfen</translation>
    </message>
</context>
<context>
    <name>PlanModel</name>
    <message>
        <source>Folder</source>
        <translation>Ordner</translation>
    </message>
    <message>
        <source>Owner</source>
        <translation>Eigentümer</translation>
    </message>
    <message>
        <source>Experiment</source>
        <translation>Experiment</translation>
    </message>
    <message>
        <source>Dataset</source>
        <translation>Datensatz</translation>
    </message>
    <message>
        <source>Found</source>
        <translation>Gefunden</translation>
    </message>
    <message>
        <source>On the server</source>
        <translation>Auf dem Server</translation>
    </message>
    <message>
        <source>Not there yet</source>
        <translation>Noch nicht dort</translation>
    </message>
    <message>
        <source>(the account)</source>
        <translation>(das Konto)</translation>
    </message>
    <message>
        <source>(named after the owner)</source>
        <translation>(nach dem Eigentümer benannt)</translation>
    </message>
</context>
<context>
    <name>PreviewModel</name>
    <message>
        <source>Owner</source>
        <translation>Eigentümer</translation>
    </message>
    <message>
        <source>Experiment</source>
        <translation>Experiment</translation>
    </message>
    <message>
        <source>Dataset</source>
        <translation>Datensatz</translation>
    </message>
    <message>
        <source>Files</source>
        <translation>Dateien</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>Größe</translation>
    </message>
</context>
<context>
    <name>ProblemCard</name>
    <message>
        <source>Copy as text</source>
        <translation>Als Text kopieren</translation>
    </message>
    <message>
        <source>You can fix this.</source>
        <translation>Das können Sie beheben.</translation>
    </message>
    <message>
        <source>Your administrator can fix this.</source>
        <translation>Das kann Ihre Administration beheben.</translation>
    </message>
    <message>
        <source>The server has to recover. The program retries automatically.</source>
        <translation>Der Server muss sich erholen; das Programm versucht es von selbst wieder.</translation>
    </message>
    <message>
        <source>Nothing needs to be fixed.</source>
        <translation>Hier ist nichts zu beheben.</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>Noch einmal versuchen</translation>
    </message>
    <message>
        <source>Start</source>
        <translation>Start</translation>
    </message>
    <message>
        <source>Open folder</source>
        <translation>Ordner öffnen</translation>
    </message>
    <message>
        <source>Open settings…</source>
        <translation>Einstellungen öffnen …</translation>
    </message>
    <message>
        <source>Check key and approval…</source>
        <translation>Schlüssel und Freigabe prüfen …</translation>
    </message>
</context>
<context>
    <name>ProblemFilter</name>
    <message>
        <source>Kinds of problems</source>
        <translation>Arten von Problemen</translation>
    </message>
    <message numerus="yes">
        <source>Show %Ln hidden kind(s)</source>
        <translation>
            <numerusform>%Ln ausgeblendete Art zeigen</numerusform>
            <numerusform>%Ln ausgeblendete Arten zeigen</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ProblemGroupsModel</name>
    <message numerus="yes">
        <source>%Ln folder(s)</source>
        <translation>
            <numerusform>%Ln Ordner</numerusform>
            <numerusform>%Ln Ordner</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s)</source>
        <translation>
            <numerusform>%Ln Datei</numerusform>
            <numerusform>%Ln Dateien</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ProblemsPage</name>
    <message>
        <source>Hide this kind</source>
        <translation>Diese Art ausblenden</translation>
    </message>
    <message>
        <source>Nothing is wrong.</source>
        <translation>Alles ist in Ordnung.</translation>
    </message>
    <message>
        <source>Nothing else is wrong.</source>
        <translation>Sonst ist alles in Ordnung.</translation>
    </message>
    <message>
        <source>Files of this kind</source>
        <translation>Dateien dieser Art</translation>
    </message>
    <message>
        <source>No problems are known.</source>
        <translation>Es sind keine Probleme bekannt.</translation>
    </message>
    <message>
        <source>Show this kind</source>
        <translation>Diese Art zeigen</translation>
    </message>
    <message>
        <source>Paused</source>
        <translation>Pausiert</translation>
    </message>
    <message>
        <source>Nothing is sent for now.</source>
        <translation>Vorerst wird nichts gesendet.</translation>
    </message>
    <message>
        <source>Interrupted</source>
        <translation>Abgebrochen</translation>
    </message>
    <message>
        <source>The last run did not finish.</source>
        <translation>Der letzte Lauf wurde nicht beendet.</translation>
    </message>
    <message>
        <source>Failed</source>
        <translation>Gescheitert</translation>
    </message>
    <message>
        <source>None of its files can be sent.</source>
        <translation>Keine Datei daraus kann gesendet werden.</translation>
    </message>
    <message>
        <source>The last run ended early.</source>
        <translation>Der letzte Lauf endete vorzeitig.</translation>
    </message>
    <message>
        <source>The last run was interrupted: the program or the computer stopped.</source>
        <translation>Der letzte Lauf brach ab: Das Programm oder der Computer wurde beendet.</translation>
    </message>
    <message>
        <source>Nothing is lost: the next run continues.</source>
        <translation>Nichts ist verloren: Der nächste Lauf macht weiter.</translation>
    </message>
    <message>
        <source>This kind of problem is hidden.</source>
        <translation>Diese Art von Problem ist ausgeblendet.</translation>
    </message>
</context>
<context>
    <name>Program</name>
    <message>
        <source>The settings were not saved</source>
        <translation>Die Einstellungen wurden nicht gespeichert</translation>
    </message>
    <message>
        <source>Your changes can be restored.</source>
        <translation>Ihre Änderungen können wiederhergestellt werden.</translation>
    </message>
</context>
<context>
    <name>QuitPrompt</name>
    <message>
        <source>Quit</source>
        <translation>Beenden</translation>
    </message>
    <message>
        <source>An upload is active.</source>
        <translation>Ein Upload läuft.</translation>
    </message>
    <message>
        <source>It can continue without the window. If you stop it, the next run continues.</source>
        <translation>Er kann ohne das Fenster weiterlaufen. Wenn Sie ihn anhalten, setzt der nächste Lauf ihn fort.</translation>
    </message>
    <message>
        <source>Quit and &amp;leave the upload running</source>
        <translation>Beenden, der &amp;Upload läuft weiter</translation>
    </message>
    <message>
        <source>Stop the &amp;upload and quit</source>
        <translation>Upload a&amp;nhalten und beenden</translation>
    </message>
    <message>
        <source>&amp;Cancel</source>
        <translation>A&amp;bbrechen</translation>
    </message>
</context>
<context>
    <name>RecentDatasets</name>
    <message>
        <source>Datasets sent to most recently</source>
        <translation>Zuletzt gesendete Datensätze</translation>
    </message>
</context>
<context>
    <name>RemoveQuestion</name>
    <message>
        <source>Remove from the list</source>
        <translation>Aus der Liste entfernen</translation>
    </message>
    <message>
        <source>Stop uploading %1?</source>
        <translation>%1 nicht weiter hochladen?</translation>
    </message>
    <message>
        <source>Nothing is deleted, here or on the server. Files that are not on the server yet stay only on this computer, and no run uploads them until the folder is added again.</source>
        <translation>Nichts wird gelöscht, weder hier noch auf dem Server. Dateien daraus, die noch nicht auf dem Server sind, bleiben nur auf diesem Computer, und kein Lauf nimmt sie, bis der Ordner wieder hinzugefügt wird.</translation>
    </message>
    <message>
        <source>&amp;Remove</source>
        <translation>&amp;Entfernen</translation>
    </message>
    <message>
        <source>&amp;Keep</source>
        <translation>&amp;Behalten</translation>
    </message>
</context>
<context>
    <name>ResultView</name>
    <message>
        <source>&amp;Apply and measure again</source>
        <translation>&amp;Anwenden und noch einmal messen</translation>
    </message>
    <message>
        <source>&amp;Undo</source>
        <translation>&amp;Rückgängig</translation>
    </message>
    <message>
        <source>&amp;Copy as text</source>
        <translation>Als Te&amp;xt kopieren</translation>
    </message>
    <message>
        <source>All &amp;figures</source>
        <translation>Alle &amp;Zahlen</translation>
    </message>
    <message>
        <source>T&amp;est:</source>
        <translation>T&amp;est:</translation>
    </message>
    <message>
        <source>Compare &amp;with:</source>
        <translation>&amp;Vergleichen mit:</translation>
    </message>
    <message>
        <source>no other</source>
        <translation>keinem anderen</translation>
    </message>
    <message>
        <source>Recommendations:</source>
        <translation>Empfehlungen:</translation>
    </message>
    <message>
        <source>Not measured:</source>
        <translation>Nicht gemessen:</translation>
    </message>
    <message>
        <source>The settings were changed:</source>
        <translation>Die Einstellungen wurden geändert:</translation>
    </message>
</context>
<context>
    <name>ResultsModel</name>
    <message>
        <source>Stage</source>
        <translation>Stufe</translation>
    </message>
    <message>
        <source>What was measured</source>
        <translation>Was gemessen wurde</translation>
    </message>
    <message>
        <source>Figure</source>
        <translation>Zahl</translation>
    </message>
    <message>
        <source>Range</source>
        <translation>Spanne</translation>
    </message>
</context>
<context>
    <name>ResultsTable</name>
    <message>
        <source>All figures</source>
        <translation>Alle Zahlen</translation>
    </message>
</context>
<context>
    <name>RouteRow</name>
    <message>
        <source>This computer</source>
        <translation>Dieser Computer</translation>
    </message>
</context>
<context>
    <name>RowActions</name>
    <message>
        <source>Try again</source>
        <translation>Noch einmal versuchen</translation>
    </message>
    <message>
        <source>Open folder</source>
        <translation>Ordner öffnen</translation>
    </message>
    <message>
        <source>Open on server</source>
        <translation>Auf dem Server öffnen</translation>
    </message>
    <message>
        <source>Where is it?</source>
        <translation>Wo ist sie?</translation>
    </message>
    <message>
        <source>Copy path</source>
        <translation>Pfad kopieren</translation>
    </message>
</context>
<context>
    <name>SchedulePreview</name>
    <message>
        <source>Next starts</source>
        <translation>Nächste Starts</translation>
    </message>
    <message>
        <source>When runs would start automatically, in this computer&apos;s time.</source>
        <translation>Wann Läufe automatisch beginnen, nach der Uhr dieses Computers.</translation>
    </message>
    <message>
        <source>They are shown once the schedule is complete.</source>
        <translation>Sie werden angezeigt, sobald der Zeitplan vollständig ist.</translation>
    </message>
</context>
<context>
    <name>ScheduleStep</name>
    <message>
        <source>When to upload?</source>
        <translation>Wann wird hochgeladen?</translation>
    </message>
    <message>
        <source>You can start an upload at any time as well. The settings have more schedules.</source>
        <translation>Sie können jederzeit auch selbst starten. Weitere Zeitpläne stehen in den Einstellungen.</translation>
    </message>
    <message>
        <source>&amp;Soon after new files are complete</source>
        <translation>&amp;Bald nachdem neue Dateien fertig sind</translation>
    </message>
    <message>
        <source>Every &amp;day at</source>
        <translation>Jeden &amp;Tag um</translation>
    </message>
    <message>
        <source>&amp;Only when I press Start</source>
        <translation>&amp;Nur wenn ich Start drücke</translation>
    </message>
    <message>
        <source>Start the program in the tray when I log &amp;in</source>
        <translation>Das &amp;Programm beim Anmelden im Infobereich starten</translation>
    </message>
    <message>
        <source>Time of the daily upload</source>
        <translation>Uhrzeit des täglichen Hochladens</translation>
    </message>
    <message>
        <source>Uploads start automatically only while the program is running.</source>
        <translation>Hochladen beginnt nur automatisch, solange das Programm läuft.</translation>
    </message>
</context>
<context>
    <name>ServerIndicatorLabel</name>
    <message>
        <source>Server</source>
        <translation>Server</translation>
    </message>
</context>
<context>
    <name>SetByServer</name>
    <message>
        <source>The server sets some settings</source>
        <translation>Der Server legt einige Einstellungen fest</translation>
    </message>
    <message>
        <source>Ask the facility&apos;s administrator whether this is intended. What you save in the settings takes precedence until the server&apos;s settings change again.</source>
        <translation>Fragen Sie bei der Administration der Einrichtung nach, ob das beabsichtigt ist. Was Sie in den Einstellungen speichern, hat Vorrang, bis die Einstellungen auf dem Server wieder geändert werden.</translation>
    </message>
    <message>
        <source>%1: %2 instead of %3</source>
        <translation>%1: %2 statt %3</translation>
    </message>
    <message>
        <source>(empty)</source>
        <translation>(leer)</translation>
    </message>
</context>
<context>
    <name>SettingRow</name>
    <message>
        <source>Reset</source>
        <translation>Zurücksetzen</translation>
    </message>
    <message>
        <source>Reset: %1</source>
        <translation>Zurücksetzen: %1</translation>
    </message>
    <message>
        <source>Needed before a run can start</source>
        <translation>Nötig, bevor ein Lauf beginnen kann</translation>
    </message>
    <message>
        <source>Changed</source>
        <translation>Geändert</translation>
    </message>
    <message>
        <source>Changed: reset to %1</source>
        <translation>Geändert: zurücksetzen auf %1</translation>
    </message>
    <message>
        <source>Changed: reset to the default</source>
        <translation>Geändert: auf den Standard zurücksetzen</translation>
    </message>
</context>
<context>
    <name>SettingsDialog</name>
    <message>
        <source>Settings</source>
        <translation>Einstellungen</translation>
    </message>
    <message>
        <source>&amp;Import…</source>
        <translation>&amp;Importieren …</translation>
    </message>
    <message>
        <source>E&amp;xport…</source>
        <translation>E&amp;xportieren …</translation>
    </message>
    <message>
        <source>Test co&amp;nnection…</source>
        <translation>Verbindung &amp;testen …</translation>
    </message>
    <message numerus="yes">
        <source>%Ln setting(s) must be corrected first</source>
        <translation>
            <numerusform>%Ln Einstellung muss erst berichtigt werden</numerusform>
            <numerusform>%Ln Einstellungen müssen erst berichtigt werden</numerusform>
        </translation>
    </message>
    <message>
        <source>Test the connection to the server with these settings, step by step</source>
        <translation>Die Verbindung zum Server mit diesen Einstellungen Schritt für Schritt testen</translation>
    </message>
    <message numerus="yes">
        <source>%Ln change(s) from last time were not saved</source>
        <translation>
            <numerusform>%Ln Änderung vom letzten Mal wurde nicht gespeichert</numerusform>
            <numerusform>%Ln Änderungen vom letzten Mal wurden nicht gespeichert</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln setting(s) were taken from the file; OK saves them.</source>
        <translation>
            <numerusform>%Ln Einstellung wurde aus der Datei übernommen; OK speichert sie.</numerusform>
            <numerusform>%Ln Einstellungen wurden aus der Datei übernommen; OK speichert sie.</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 is locked and was not changed.</source>
        <translation>%1 ist gesperrt und wurde nicht geändert.</translation>
    </message>
    <message numerus="yes">
        <source>And %Ln more</source>
        <translation>
            <numerusform>Und %Ln weitere</numerusform>
            <numerusform>Und %Ln weitere</numerusform>
        </translation>
    </message>
    <message>
        <source>Take settings from MyData&apos;s MyData.cfg, or from a file</source>
        <translation>Einstellungen aus der MyData.cfg von MyData oder aus einer Datei übernehmen</translation>
    </message>
    <message>
        <source>Write the settings to a file, without secrets</source>
        <translation>Die Einstellungen ohne Geheimnisse in eine Datei schreiben</translation>
    </message>
    <message>
        <source>&amp;Restore them</source>
        <translation>Zurück&amp;holen</translation>
    </message>
    <message>
        <source>The settings file was changed by another program. Your changes are applied on top of it: review them and press OK again.</source>
        <translation>Die Einstellungsdatei wurde inzwischen anderswo geändert. Ihre Änderungen stehen darüber: Sehen Sie sie durch und drücken Sie noch einmal OK.</translation>
    </message>
    <message>
        <source>The API key cannot be stored, and nothing was saved. Unlock the keyring, or choose to keep the key in a file.</source>
        <translation>Der API-Schlüssel kann nicht abgelegt werden, und nichts wurde gespeichert. Entsperren Sie den Schlüsselbund, oder lassen Sie den Schlüssel in einer Datei ablegen.</translation>
    </message>
    <message>
        <source>Import settings</source>
        <translation>Einstellungen importieren</translation>
    </message>
    <message>
        <source>Settings (*.cfg *.toml)</source>
        <translation>Einstellungen (*.cfg *.toml)</translation>
    </message>
    <message>
        <source>Export the settings without secrets</source>
        <translation>Einstellungen ohne Geheimnisse exportieren</translation>
    </message>
    <message>
        <source>Settings (*.toml)</source>
        <translation>Einstellungen (*.toml)</translation>
    </message>
    <message>
        <source>The settings were written, without secrets.</source>
        <translation>Die Einstellungen wurden geschrieben, ohne Geheimnisse.</translation>
    </message>
</context>
<context>
    <name>SettingsTabs</name>
    <message>
        <source>Search all settings</source>
        <translation>Alle Einstellungen durchsuchen</translation>
    </message>
    <message>
        <source>Groups of settings</source>
        <translation>Gruppen von Einstellungen</translation>
    </message>
    <message>
        <source>No setting matches your search.</source>
        <translation>Keine Einstellung passt zu Ihrer Suche.</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>Einstellungen</translation>
    </message>
</context>
<context>
    <name>SetupWizard</name>
    <message>
        <source>Set up mydata-like</source>
        <translation>mydata-like einrichten</translation>
    </message>
    <message>
        <source>&amp;Later</source>
        <translation>&amp;Später</translation>
    </message>
    <message>
        <source>Check a&amp;gain</source>
        <translation>E&amp;rneut prüfen</translation>
    </message>
    <message>
        <source>&amp;Back</source>
        <translation>&amp;Zurück</translation>
    </message>
    <message>
        <source>Start &amp;now</source>
        <translation>&amp;Jetzt starten</translation>
    </message>
    <message>
        <source>&amp;Next</source>
        <translation>&amp;Weiter</translation>
    </message>
    <message>
        <source>Server</source>
        <translation>Server</translation>
    </message>
    <message>
        <source>Account</source>
        <translation>Konto</translation>
    </message>
    <message>
        <source>Instrument</source>
        <translation>Instrument</translation>
    </message>
    <message>
        <source>Data</source>
        <translation>Daten</translation>
    </message>
    <message>
        <source>When</source>
        <translation>Wann</translation>
    </message>
    <message>
        <source>Approval</source>
        <translation>Freigabe</translation>
    </message>
    <message>
        <source>Reading the settings…</source>
        <translation>Die Einstellungen werden gelesen …</translation>
    </message>
    <message>
        <source>&amp;Finish</source>
        <translation>&amp;Fertig</translation>
    </message>
    <message>
        <source>Cl&amp;ose and wait</source>
        <translation>S&amp;chließen und warten</translation>
    </message>
</context>
<context>
    <name>ShutdownController</name>
    <message>
        <source>The program keeps running in the tray. Use Quit to end it.</source>
        <translation>Das Programm läuft im Infobereich weiter. „Beenden“ schließt es ganz.</translation>
    </message>
    <message>
        <source>The program keeps running in a minimized window, since there is no tray. Use Quit to end it.</source>
        <translation>Das Programm läuft in einem minimierten Fenster weiter, da es keinen Infobereich gibt. „Beenden“ schließt es ganz.</translation>
    </message>
</context>
<context>
    <name>SourcesModel</name>
    <message>
        <source>Folder or file</source>
        <translation>Ordner oder Datei</translation>
    </message>
    <message>
        <source>Owner</source>
        <translation>Eigentümer</translation>
    </message>
    <message>
        <source>Experiment</source>
        <translation>Experiment</translation>
    </message>
    <message>
        <source>Dataset</source>
        <translation>Datensatz</translation>
    </message>
    <message>
        <source>Files</source>
        <translation>Dateien</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>Größe</translation>
    </message>
    <message>
        <source>other files</source>
        <translation>andere Dateien</translation>
    </message>
</context>
<context>
    <name>SpeedPage</name>
    <message>
        <source>&amp;Test now</source>
        <translation>&amp;Jetzt testen</translation>
    </message>
    <message>
        <source>&amp;Quick test</source>
        <translation>&amp;Schnelltest</translation>
    </message>
    <message>
        <source>Ca&amp;ncel</source>
        <translation>A&amp;bbrechen</translation>
    </message>
    <message>
        <source>About 15 seconds; less accurate</source>
        <translation>Etwa 15 Sekunden; weniger genau</translation>
    </message>
    <message>
        <source>The speed test is in progress</source>
        <translation>Der Geschwindigkeitstest läuft</translation>
    </message>
    <message>
        <source>Measuring each stage of an upload…</source>
        <translation>Jede Stufe des Weges zum Server wird gemessen …</translation>
    </message>
    <message>
        <source>Measuring the improvement by the recommended settings…</source>
        <translation>Es wird gemessen, was die empfohlenen Einstellungen bringen …</translation>
    </message>
    <message>
        <source>Ending the test, and removing what it wrote on the server…</source>
        <translation>Der Test wird beendet, und was er auf dem Server geschrieben hat, wird entfernt …</translation>
    </message>
    <message numerus="yes">
        <source>%1 of at most %2; %Ln figure(s) so far</source>
        <translation>
            <numerusform>%1 von höchstens %2; bisher %Ln Zahl</numerusform>
            <numerusform>%1 von höchstens %2; bisher %Ln Zahlen</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 so far: first with the old settings, then with the recommended ones</source>
        <translation>Bisher %1: erst mit den alten, dann mit den empfohlenen Einstellungen</translation>
    </message>
    <message>
        <source>Set up the program before you run a speed test.</source>
        <translation>Vor einem Geschwindigkeitstest muss das Programm eingerichtet werden.</translation>
    </message>
    <message>
        <source>A run is active and would distort the test. Test again when it has ended.</source>
        <translation>Ein Lauf ist im Gange, und ein Test daneben würde wenig sagen. Testen Sie, wenn er beendet ist.</translation>
    </message>
</context>
<context>
    <name>StageCard</name>
    <message>
        <source>%1 files/s</source>
        <translation>%1 Dateien/s</translation>
    </message>
    <message numerus="yes">
        <source>%Ln waiting</source>
        <translation>
            <numerusform>%Ln wartend</numerusform>
            <numerusform>%Ln wartend</numerusform>
        </translation>
    </message>
    <message>
        <source>The limit</source>
        <translation>Die Grenze</translation>
    </message>
</context>
<context>
    <name>StatusBreakdownBar</name>
    <message>
        <source>%1 verified</source>
        <translation>%1 geprüft</translation>
    </message>
    <message>
        <source>%1 in progress</source>
        <translation>%1 unterwegs</translation>
    </message>
    <message>
        <source>%1 waiting</source>
        <translation>%1 wartend</translation>
    </message>
    <message>
        <source>%1 skipped</source>
        <translation>%1 übersprungen</translation>
    </message>
    <message>
        <source>%1 failed</source>
        <translation>%1 gescheitert</translation>
    </message>
</context>
<context>
    <name>StatusCard</name>
    <message>
        <source>May I delete it?</source>
        <translation>Darf ich das löschen?</translation>
    </message>
    <message>
        <source>Check now</source>
        <translation>Jetzt prüfen</translation>
    </message>
    <message>
        <source>Free space…</source>
        <translation>Platz schaffen …</translation>
    </message>
</context>
<context>
    <name>StatusView</name>
    <message>
        <source>Open on the server</source>
        <translation>Auf dem Server öffnen</translation>
    </message>
    <message>
        <source>Open folder</source>
        <translation>Ordner öffnen</translation>
    </message>
    <message>
        <source>Copy checksum</source>
        <translation>Prüfsumme kopieren</translation>
    </message>
    <message>
        <source>MD5 %1</source>
        <translation>MD5 %1</translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s), %1</source>
        <translation>
            <numerusform>%Ln Datei, %1</numerusform>
            <numerusform>%Ln Dateien, %1</numerusform>
        </translation>
    </message>
    <message>
        <source>verified by the server</source>
        <translation>vom Server geprüft</translation>
    </message>
    <message>
        <source>sent</source>
        <translation>gesendet</translation>
    </message>
    <message>
        <source>registered</source>
        <translation>eingetragen</translation>
    </message>
    <message>
        <source>being replaced</source>
        <translation>wird ersetzt</translation>
    </message>
    <message>
        <source>found, not sent yet</source>
        <translation>gefunden, noch nicht gesendet</translation>
    </message>
    <message>
        <source>changed on this computer only</source>
        <translation>nur auf diesem Computer geändert</translation>
    </message>
    <message>
        <source>waiting</source>
        <translation>wartend</translation>
    </message>
    <message>
        <source>left out</source>
        <translation>ausgelassen</translation>
    </message>
    <message>
        <source>failed</source>
        <translation>gescheitert</translation>
    </message>
</context>
<context>
    <name>SuggestionsModel</name>
    <message>
        <source>Name</source>
        <translation>Name</translation>
    </message>
    <message>
        <source>Folder</source>
        <translation>Ordner</translation>
    </message>
    <message>
        <source>State</source>
        <translation>Zustand</translation>
    </message>
    <message>
        <source>Changed</source>
        <translation>Geändert</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>Größe</translation>
    </message>
    <message>
        <source>folder</source>
        <translation>Ordner</translation>
    </message>
    <message>
        <source>safe</source>
        <translation>sicher</translation>
    </message>
    <message>
        <source>failed</source>
        <translation>gescheitert</translation>
    </message>
    <message>
        <source>left out</source>
        <translation>ausgelassen</translation>
    </message>
    <message>
        <source>not safe yet</source>
        <translation>noch nicht sicher</translation>
    </message>
</context>
<context>
    <name>SuggestionsTable</name>
    <message>
        <source>Files and folders of this name</source>
        <translation>Dateien und Ordner dieses Namens</translation>
    </message>
</context>
<context>
    <name>SummaryRow</name>
    <message>
        <source>Only on this computer</source>
        <translation>Nur auf diesem Computer</translation>
    </message>
    <message>
        <source>Last run</source>
        <translation>Letzter Lauf</translation>
    </message>
    <message>
        <source>Next run</source>
        <translation>Nächster Lauf</translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s)</source>
        <translation>
            <numerusform>%Ln Datei</numerusform>
            <numerusform>%Ln Dateien</numerusform>
        </translation>
    </message>
    <message>
        <source>Not known yet</source>
        <translation>Noch unbekannt</translation>
    </message>
    <message>
        <source>The first run finds out.</source>
        <translation>Der erste Lauf stellt es fest.</translation>
    </message>
    <message numerus="yes">
        <source>Except for %Ln file(s) left out on purpose.</source>
        <translation>
            <numerusform>Bis auf %Ln Datei, die absichtlich ausgelassen wurde.</numerusform>
            <numerusform>Bis auf %Ln Dateien, die absichtlich ausgelassen wurden.</numerusform>
        </translation>
    </message>
    <message>
        <source>Every file that was found is on the server.</source>
        <translation>Jede gefundene Datei ist auf dem Server.</translation>
    </message>
    <message>
        <source>Nothing</source>
        <translation>Nichts</translation>
    </message>
    <message>
        <source>Cannot be read</source>
        <translation>Nicht lesbar</translation>
    </message>
    <message>
        <source>%1; the oldest is from %2</source>
        <translation>%1; die älteste ist von %2</translation>
    </message>
    <message numerus="yes">
        <source>%Ln left out</source>
        <translation>
            <numerusform>%Ln ausgelassen</numerusform>
            <numerusform>%Ln ausgelassen</numerusform>
        </translation>
    </message>
    <message>
        <source>Files and folders that were not left out on purpose.</source>
        <translation>Dateien und Ordner, die niemand absichtlich ausgelassen hat.</translation>
    </message>
    <message numerus="yes">
        <source>%Ln folder(s) or file(s)</source>
        <translation>
            <numerusform>%Ln Ordner oder Datei</numerusform>
            <numerusform>%Ln Ordner oder Dateien</numerusform>
        </translation>
    </message>
    <message>
        <source>They were added and are not finished.</source>
        <translation>Hinzugefügt und noch nicht fertig.</translation>
    </message>
    <message>
        <source>The next run finds out.</source>
        <translation>Der nächste Lauf stellt es fest.</translation>
    </message>
    <message>
        <source>No files</source>
        <translation>Keine Dateien</translation>
    </message>
    <message>
        <source>The last run found none.</source>
        <translation>Der letzte Lauf hat keine gefunden.</translation>
    </message>
    <message numerus="yes">
        <source>It was interrupted; %Ln of its file(s) are verified.</source>
        <translation>
            <numerusform>Er brach ab; %Ln seiner Dateien ist geprüft.</numerusform>
            <numerusform>Er brach ab; %Ln seiner Dateien sind geprüft.</numerusform>
        </translation>
    </message>
    <message>
        <source>None yet</source>
        <translation>Noch keiner</translation>
    </message>
    <message>
        <source>It ended early and sent nothing.</source>
        <translation>Er endete vorzeitig und hat nichts gesendet.</translation>
    </message>
    <message>
        <source>It sent nothing, and not all files are safe.</source>
        <translation>Er hat nichts gesendet, und nicht alle Dateien sind sicher.</translation>
    </message>
    <message>
        <source>Nothing had to be sent.</source>
        <translation>Es war nichts zu senden.</translation>
    </message>
    <message>
        <source>A run starts when they no longer change.</source>
        <translation>Ein Lauf beginnt, wenn sie sich nicht mehr ändern.</translation>
    </message>
    <message>
        <source>Press Start, or set a schedule in the settings.</source>
        <translation>Klicken Sie auf „Start“, oder stellen Sie einen Zeitplan ein.</translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s), %1 in %2</source>
        <translation>
            <numerusform>%Ln Datei, %1 in %2</numerusform>
            <numerusform>%Ln Dateien, %1 in %2</numerusform>
        </translation>
    </message>
    <message>
        <source>With new files</source>
        <translation>Bei neuen Dateien</translation>
    </message>
    <message>
        <source>Not planned</source>
        <translation>Nicht geplant</translation>
    </message>
</context>
<context>
    <name>SwitchEditor</name>
    <message>
        <source>On</source>
        <translation>Ein</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>Aus</translation>
    </message>
</context>
<context>
    <name>TablePanel</name>
    <message>
        <source>There is nothing here yet.</source>
        <translation>Hier ist noch nichts.</translation>
    </message>
    <message>
        <source>S&amp;how</source>
        <translation>Zei&amp;gen</translation>
    </message>
    <message>
        <source>Show all</source>
        <translation>Alle zeigen</translation>
    </message>
    <message>
        <source>Filter</source>
        <translation>Filter</translation>
    </message>
    <message>
        <source>Filter by name</source>
        <translation>Nach Namen filtern</translation>
    </message>
    <message numerus="yes">
        <source>%Ln row(s)</source>
        <translation>
            <numerusform>%Ln Zeile</numerusform>
            <numerusform>%Ln Zeilen</numerusform>
        </translation>
    </message>
    <message>
        <source>counting…</source>
        <translation>wird gezählt …</translation>
    </message>
    <message>
        <source>No name contains “%1”.</source>
        <translation>Kein Name enthält „%1“.</translation>
    </message>
    <message>
        <source>No matching rows.</source>
        <translation>Keine passenden Zeilen.</translation>
    </message>
</context>
<context>
    <name>TableView</name>
    <message>
        <source>Copy rows</source>
        <translation>Zeilen kopieren</translation>
    </message>
</context>
<context>
    <name>TestFilePanel</name>
    <message>
        <source>&amp;Send a test file</source>
        <translation>&amp;Testdatei senden</translation>
    </message>
    <message>
        <source>Steps of the test upload</source>
        <translation>Schritte des Test-Uploads</translation>
    </message>
    <message>
        <source>A small file is uploaded, verified on the server and deleted again.</source>
        <translation>Eine kleine Datei wird hochgeladen, auf dem Server geprüft und wieder gelöscht.</translation>
    </message>
    <message>
        <source>Uploading a small file…</source>
        <translation>Eine kleine Datei wird hochgeladen …</translation>
    </message>
    <message>
        <source>Nothing failed, but not every step could be verified.</source>
        <translation>Nichts ist fehlgeschlagen, aber nicht jeder Schritt konnte geprüft werden.</translation>
    </message>
    <message>
        <source>The test upload succeeded. You can finish now.</source>
        <translation>Der Test-Upload war erfolgreich. Sie können das Einrichten jetzt abschließen.</translation>
    </message>
    <message>
        <source>The test file did not arrive; see the last line.</source>
        <translation>Die Testdatei kam nicht an; siehe die letzte Zeile.</translation>
    </message>
    <message>
        <source>&amp;Send it again</source>
        <translation>&amp;Testdatei noch einmal senden</translation>
    </message>
</context>
<context>
    <name>ThroughputChart</name>
    <message>
        <source>Throughput of the last two minutes</source>
        <translation>Durchsatz der letzten zwei Minuten</translation>
    </message>
    <message>
        <source>%1 files/s</source>
        <translation>%1 Dateien/s</translation>
    </message>
    <message>
        <source>Files a second</source>
        <translation>Dateien pro Sekunde</translation>
    </message>
    <message>
        <source>MB/s by channel:</source>
        <translation>MB/s je Kanal:</translation>
    </message>
    <message>
        <source> and more</source>
        <translation> und weitere</translation>
    </message>
    <message>
        <source>seconds ago</source>
        <translation>Sekunden zuvor</translation>
    </message>
</context>
<context>
    <name>Toast</name>
    <message>
        <source>Undo</source>
        <translation>Rückgängig</translation>
    </message>
</context>
<context>
    <name>TransfersModel</name>
    <message>
        <source>Name</source>
        <translation>Name</translation>
    </message>
    <message>
        <source>Progress</source>
        <translation>Fortschritt</translation>
    </message>
    <message>
        <source>Sent</source>
        <translation>Gesendet</translation>
    </message>
    <message>
        <source>Time left</source>
        <translation>Restzeit</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>Tempo</translation>
    </message>
    <message>
        <source>Channel</source>
        <translation>Kanal</translation>
    </message>
    <message>
        <source>Attempt</source>
        <translation>Versuch</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>Meldung</translation>
    </message>
    <message numerus="yes">
        <source>%1 and %Ln more</source>
        <comment>files in a batch</comment>
        <translation>
            <numerusform>%1 und %Ln weitere</numerusform>
            <numerusform>%1 und %Ln weitere</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 %</source>
        <translation>%1 %</translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <translation>%1 von %2</translation>
    </message>
    <message>
        <source>about %1</source>
        <translation>etwa %1</translation>
    </message>
</context>
<context>
    <name>TransfersPage</name>
    <message>
        <source>Pause all</source>
        <translation>Alle pausieren</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>Fortsetzen</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Files</source>
        <translation>Dateien</translation>
    </message>
    <message>
        <source>No file has been sent yet.</source>
        <translation>Noch wurde keine Datei gesendet.</translation>
    </message>
    <message>
        <source>Skip the selected files until the next run</source>
        <translation>Das Ausgewählte dem nächsten Lauf überlassen</translation>
    </message>
    <message>
        <source>All files</source>
        <translation>Alle Dateien</translation>
    </message>
    <message>
        <source>Active transfers</source>
        <translation>Aktive Übertragungen</translation>
    </message>
    <message>
        <source>Not sent yet</source>
        <translation>Noch nicht gesendet</translation>
    </message>
    <message>
        <source>In progress</source>
        <translation>In Arbeit</translation>
    </message>
    <message>
        <source>Verified</source>
        <translation>Geprüft</translation>
    </message>
    <message>
        <source>Waiting</source>
        <translation>Wartend</translation>
    </message>
    <message>
        <source>Failed</source>
        <translation>Gescheitert</translation>
    </message>
    <message>
        <source>Left out</source>
        <translation>Ausgelassen</translation>
    </message>
    <message>
        <source>Only in %1</source>
        <translation>Nur in %1</translation>
    </message>
    <message>
        <source>No active transfers.</source>
        <translation>Keine aktiven Übertragungen.</translation>
    </message>
    <message>
        <source>Another program is uploading; its files appear below.</source>
        <translation>Ein anderes Programm lädt hoch; seine Dateien erscheinen unten.</translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) still to be sent</source>
        <translation>
            <numerusform>%Ln Datei noch zu senden</numerusform>
            <numerusform>%Ln Dateien noch zu senden</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Tray</name>
    <message>
        <source>&amp;Start</source>
        <translation>&amp;Start</translation>
    </message>
    <message>
        <source>&amp;Pause</source>
        <translation>&amp;Pause</translation>
    </message>
    <message>
        <source>Pause for 1 &amp;hour</source>
        <translation>Für 1 S&amp;tunde pausieren</translation>
    </message>
    <message>
        <source>&amp;Resume</source>
        <translation>&amp;Weiter</translation>
    </message>
    <message>
        <source>S&amp;top</source>
        <translation>&amp;Anhalten</translation>
    </message>
    <message>
        <source>&amp;Open</source>
        <translation>Ö&amp;ffnen</translation>
    </message>
    <message>
        <source>Spee&amp;d test</source>
        <translation>Geschwin&amp;digkeitstest</translation>
    </message>
    <message>
        <source>S&amp;ettings</source>
        <translation>&amp;Einstellungen</translation>
    </message>
    <message>
        <source>&amp;Quit</source>
        <translation>&amp;Beenden</translation>
    </message>
</context>
<context>
    <name>UnfinishedList</name>
    <message>
        <source>Added folders that are not finished</source>
        <translation>Hinzugefügte Ordner, die nicht fertig sind</translation>
    </message>
    <message numerus="yes">
        <source>and %Ln more; Start continues with all</source>
        <translation>
            <numerusform>und %Ln weiterer; Start setzt alle fort</numerusform>
            <numerusform>und %Ln weitere; Start setzt alle fort</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>UnfinishedRow</name>
    <message>
        <source>Continue</source>
        <translation>Fortsetzen</translation>
    </message>
    <message>
        <source>Remove…</source>
        <translation>Entfernen…</translation>
    </message>
    <message>
        <source>uploaded as %1</source>
        <translation>wird hochgeladen als %1</translation>
    </message>
    <message>
        <source>not scanned yet</source>
        <translation>noch nicht durchsucht</translation>
    </message>
    <message>
        <source>the next run checks whether everything is on the server</source>
        <translation>der nächste Lauf prüft, ob alles daraus auf dem Server ist</translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s), %1, not verified yet</source>
        <translation>
            <numerusform>%Ln Datei, %1, noch nicht geprüft</numerusform>
            <numerusform>%Ln Dateien, %1, noch nicht geprüft</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>WherePage</name>
    <message>
        <source>Choose a file…</source>
        <translation>Datei auswählen …</translation>
    </message>
    <message>
        <source>Choose a folder…</source>
        <translation>Ordner auswählen …</translation>
    </message>
    <message>
        <source>Type part of a name, or drop a file or folder here.</source>
        <translation>Geben Sie einen Teil eines Namens ein, oder legen Sie hier eine Datei oder einen Ordner ab.</translation>
    </message>
    <message>
        <source>Part of a name, or a whole path</source>
        <translation>Ein Teil eines Namens oder ein ganzer Pfad</translation>
    </message>
    <message>
        <source>Name or path</source>
        <translation>Name oder Pfad</translation>
    </message>
    <message>
        <source>Several paths contain this text. Choose one.</source>
        <translation>Mehrere Pfade enthalten diesen Text. Wählen Sie einen aus.</translation>
    </message>
    <message>
        <source>No run has found a file with this name.</source>
        <translation>Kein Lauf hat eine Datei dieses Namens gefunden.</translation>
    </message>
    <message>
        <source>Checking the server</source>
        <translation>Der Server wird abgefragt</translation>
    </message>
    <message>
        <source>Where is this file?</source>
        <translation>Wo ist diese Datei?</translation>
    </message>
    <message>
        <source>Where is this folder?</source>
        <translation>Wo ist dieser Ordner?</translation>
    </message>
</context>
<context>
    <name>WizardStep</name>
    <message>
        <source>Set by %1.</source>
        <translation>Festgelegt von %1.</translation>
    </message>
</context>
<context>
    <name>_EmptyState</name>
    <message>
        <source>&amp;Test now</source>
        <translation>&amp;Jetzt testen</translation>
    </message>
    <message>
        <source>Find out what limits the speed of your uploads, and what would help. A test takes a minute at most, and leaves nothing on the server.</source>
        <translation>Finden Sie heraus, was Ihre Uploads bremst und was helfen würde. Ein Test dauert höchstens eine Minute und lässt nichts auf dem Server zurück.</translation>
    </message>
</context>
<context>
    <name>_Notice</name>
    <message>
        <source>Test an&amp;yway</source>
        <translation>Trotz&amp;dem testen</translation>
    </message>
</context>
<context>
    <name>_OverviewContent</name>
    <message>
        <source>Sent</source>
        <translation>Gesendet</translation>
    </message>
</context>
<context>
    <name>contact</name>
    <message>
        <source>Server reachable</source>
        <translation>Server erreichbar</translation>
    </message>
    <message>
        <source>Server not reachable</source>
        <translation>Server nicht erreichbar</translation>
    </message>
    <message>
        <source>Waiting for approval</source>
        <translation>Wartet auf Freigabe</translation>
    </message>
    <message>
        <source>Server not contacted yet</source>
        <translation>Server noch nicht kontaktiert</translation>
    </message>
</context>
<context>
    <name>datasets</name>
    <message numerus="yes">
        <source>%1 of %Ln file(s) verified</source>
        <translation>
            <numerusform>%1 von %Ln Datei geprüft</numerusform>
            <numerusform>%1 von %Ln Dateien geprüft</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>drop</name>
    <message>
        <source>One of this and %1 contains the other. Remove one of them.</source>
        <translation>%1 ist ein Teil hiervon, oder dies ein Teil davon. Lassen Sie eines von beiden weg.</translation>
    </message>
    <message>
        <source>%1 would become the same dataset. Give one of the two another name.</source>
        <translation>%1 würde derselbe Datensatz. Geben Sie einem von beiden einen anderen Namen.</translation>
    </message>
    <message>
        <source>The dataset already has files of %1. Files with the same names will be replaced.</source>
        <translation>Der Datensatz enthält schon Dateien von %1. Dateien mit gleichen Namen werden ersetzt.</translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) are already safe on the server.</source>
        <translation>
            <numerusform>%Ln Datei ist schon sicher auf dem Server.</numerusform>
            <numerusform>%Ln Dateien sind schon sicher auf dem Server.</numerusform>
        </translation>
    </message>
    <message>
        <source>It was uploaded as %1 before. Everything will be uploaded again.</source>
        <translation>Es wurde schon als %1 hochgeladen. Alles wird noch einmal hochgeladen.</translation>
    </message>
    <message>
        <source>It holds no files.</source>
        <translation>Es enthält keine Dateien.</translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) wait, such as %1: %2</source>
        <translation>
            <numerusform>%Ln Datei wartet, etwa %1: %2</numerusform>
            <numerusform>%Ln Dateien warten, etwa %1: %2</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln left out, such as %1: %2</source>
        <translation>
            <numerusform>%Ln ausgelassen, etwa %1: %2</numerusform>
            <numerusform>%Ln ausgelassen, etwa %1: %2</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>dry run</name>
    <message numerus="yes">
        <source>%Ln file(s), %1, would be uploaded.</source>
        <translation>
            <numerusform>%Ln Datei, %1, würde hochgeladen.</numerusform>
            <numerusform>%Ln Dateien, %1, würden hochgeladen.</numerusform>
        </translation>
    </message>
    <message>
        <source>No files were found.</source>
        <translation>Es wurden keine Dateien gefunden.</translation>
    </message>
    <message numerus="yes">
        <source>Nothing to upload: all %Ln file(s) are on the server.</source>
        <translation>
            <numerusform>Nichts hochzuladen: Die %Ln Datei ist auf dem Server.</numerusform>
            <numerusform>Nichts hochzuladen: Alle %Ln Dateien sind auf dem Server.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Nothing would be uploaded now, and %Ln file(s) are not on the server.</source>
        <translation>
            <numerusform>Jetzt würde nichts hochgeladen, und %Ln Datei ist nicht auf dem Server.</numerusform>
            <numerusform>Jetzt würde nichts hochgeladen, und %Ln Dateien sind nicht auf dem Server.</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 on the server</source>
        <translation>%1 auf dem Server</translation>
    </message>
    <message>
        <source>%1 sent before and not verified yet</source>
        <translation>%1 schon gesendet und noch nicht geprüft</translation>
    </message>
    <message>
        <source>%1 waiting</source>
        <translation>%1 wartend</translation>
    </message>
    <message>
        <source>%1 left out</source>
        <translation>%1 ausgelassen</translation>
    </message>
    <message>
        <source>%1 that cannot be read</source>
        <translation>%1 nicht lesbar</translation>
    </message>
</context>
<context>
    <name>files</name>
    <message>
        <source>Name</source>
        <translation>Name</translation>
    </message>
    <message>
        <source>State</source>
        <translation>Zustand</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>Größe</translation>
    </message>
    <message>
        <source>When</source>
        <translation>Wann</translation>
    </message>
    <message>
        <source>Folder</source>
        <translation>Ordner</translation>
    </message>
    <message>
        <source>What happened</source>
        <translation>Was geschah</translation>
    </message>
    <message>
        <source>Verified</source>
        <translation>Geprüft</translation>
    </message>
    <message>
        <source>In archive</source>
        <translation>Im Archiv</translation>
    </message>
    <message>
        <source>Gone</source>
        <translation>Verschwunden</translation>
    </message>
</context>
<context>
    <name>layouts</name>
    <message>
        <source>User name / Dataset</source>
        <translation>Benutzername / Datensatz</translation>
    </message>
    <message>
        <source>E-mail address / Dataset</source>
        <translation>E-Mail-Adresse / Datensatz</translation>
    </message>
    <message>
        <source>User name / Experiment / Dataset</source>
        <translation>Benutzername / Experiment / Datensatz</translation>
    </message>
    <message>
        <source>E-mail address / Experiment / Dataset</source>
        <translation>E-Mail-Adresse / Experiment / Datensatz</translation>
    </message>
    <message>
        <source>User name / “MyTardis” / Experiment / Dataset</source>
        <translation>Benutzername / „MyTardis“ / Experiment / Datensatz</translation>
    </message>
    <message>
        <source>User group / Instrument / Full name / Dataset</source>
        <translation>Benutzergruppe / Instrument / Voller Name / Datensatz</translation>
    </message>
    <message>
        <source>User group / Dataset</source>
        <translation>Benutzergruppe / Datensatz</translation>
    </message>
    <message>
        <source>User group / Experiment / Dataset</source>
        <translation>Benutzergruppe / Experiment / Datensatz</translation>
    </message>
    <message>
        <source>Experiment / Dataset</source>
        <translation>Experiment / Datensatz</translation>
    </message>
    <message>
        <source>Dataset</source>
        <translation>Datensatz</translation>
    </message>
</context>
<context>
    <name>limits</name>
    <message>
        <source>the disk of this computer</source>
        <translation>die Festplatte dieses Computers</translation>
    </message>
    <message>
        <source>the processors of this computer</source>
        <translation>die Prozessoren dieses Computers</translation>
    </message>
    <message>
        <source>the server that stores the files</source>
        <translation>der Server, der die Dateien speichert</translation>
    </message>
    <message>
        <source>the server&apos;s verification</source>
        <translation>die Prüfung durch den Server</translation>
    </message>
    <message>
        <source>local disk</source>
        <translation>lokale Festplatte</translation>
    </message>
    <message>
        <source>local processors</source>
        <translation>lokale Prozessoren</translation>
    </message>
    <message>
        <source>latency</source>
        <translation>Latenz</translation>
    </message>
    <message>
        <source>server storage</source>
        <translation>Serverspeicher</translation>
    </message>
    <message>
        <source>bandwidth limit</source>
        <translation>Bandbreitengrenze</translation>
    </message>
    <message>
        <source>server responses</source>
        <translation>Serverantworten</translation>
    </message>
    <message>
        <source>network or server</source>
        <translation>Netz oder Server</translation>
    </message>
    <message>
        <source>the network, or an overloaded server</source>
        <translation>das Netz oder ein überlasteter Server</translation>
    </message>
    <message>
        <source>the latency to the server</source>
        <translation>die Latenz zum Server</translation>
    </message>
    <message>
        <source>the configured bandwidth</source>
        <translation>die eingestellte Bandbreite</translation>
    </message>
    <message>
        <source>the server&apos;s responses to requests</source>
        <translation>die Antworten des Servers auf Anfragen</translation>
    </message>
    <message>
        <source>verification</source>
        <translation>Prüfung</translation>
    </message>
</context>
<context>
    <name>marks</name>
    <message>
        <source>Registered</source>
        <translation>Eingetragen</translation>
    </message>
    <message>
        <source>Failed</source>
        <translation>Gescheitert</translation>
    </message>
    <message>
        <source>Left out</source>
        <translation>Ausgelassen</translation>
    </message>
    <message>
        <source>Not sent yet</source>
        <translation>Noch nicht gesendet</translation>
    </message>
    <message>
        <source>Sent</source>
        <translation>Gesendet</translation>
    </message>
    <message>
        <source>Being replaced</source>
        <translation>Wird ersetzt</translation>
    </message>
    <message>
        <source>Verified</source>
        <translation>Geprüft</translation>
    </message>
    <message>
        <source>Changed on this computer only</source>
        <translation>Nur auf diesem Computer geändert</translation>
    </message>
    <message>
        <source>Waiting</source>
        <translation>Wartend</translation>
    </message>
</context>
<context>
    <name>notifications</name>
    <message>
        <source>Nothing is being uploaded</source>
        <translation>Nichts wird hochgeladen</translation>
    </message>
    <message>
        <source>Action required</source>
        <translation>Handlung erforderlich</translation>
    </message>
    <message numerus="yes">
        <source>%n file(s) could not be uploaded.</source>
        <translation>
            <numerusform>%n Datei konnte nicht hochgeladen werden.</numerusform>
            <numerusform>%n Dateien konnten nicht hochgeladen werden.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n file(s) were sent.</source>
        <translation>
            <numerusform>%n Datei wurde gesendet.</numerusform>
            <numerusform>%n Dateien wurden gesendet.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n file(s) or folder(s) were left out.</source>
        <translation>
            <numerusform>%n Datei oder Ordner wurde ausgelassen.</numerusform>
            <numerusform>%n Dateien oder Ordner wurden ausgelassen.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n file(s) wait for the next run.</source>
        <translation>
            <numerusform>%n Datei wartet auf den nächsten Lauf.</numerusform>
            <numerusform>%n Dateien warten auf den nächsten Lauf.</numerusform>
        </translation>
    </message>
    <message>
        <source>They are safe on the server.</source>
        <translation>Sie sind sicher auf dem Server.</translation>
    </message>
    <message>
        <source>All files are safe on the server.</source>
        <translation>Alle Dateien sind sicher auf dem Server.</translation>
    </message>
    <message>
        <source>Upload finished</source>
        <translation>Hochladen beendet</translation>
    </message>
    <message>
        <source>Waiting for approval</source>
        <translation>Warten auf Freigabe</translation>
    </message>
    <message>
        <source>Approved</source>
        <translation>Freigegeben</translation>
    </message>
    <message>
        <source>The server accepts this computer. Uploads can begin.</source>
        <translation>Der Server nimmt diesen Computer an. Das Hochladen kann beginnen.</translation>
    </message>
</context>
<context>
    <name>pages</name>
    <message>
        <source>Overview</source>
        <translation>Übersicht</translation>
    </message>
    <message>
        <source>Folders</source>
        <translation>Ordner</translation>
    </message>
    <message>
        <source>Transfers</source>
        <translation>Übertragungen</translation>
    </message>
    <message>
        <source>Problems</source>
        <translation>Probleme</translation>
    </message>
    <message>
        <source>Where is my data?</source>
        <translation>Wo sind meine Daten?</translation>
    </message>
    <message>
        <source>Speed test</source>
        <translation>Geschwindigkeitstest</translation>
    </message>
    <message>
        <source>History</source>
        <translation>Verlauf</translation>
    </message>
    <message>
        <source>Log</source>
        <translation>Protokoll</translation>
    </message>
</context>
<context>
    <name>runs</name>
    <message>
        <source>When</source>
        <translation>Wann</translation>
    </message>
    <message>
        <source>Outcome</source>
        <translation>Ergebnis</translation>
    </message>
    <message>
        <source>Files sent</source>
        <translation>Gesendet</translation>
    </message>
    <message>
        <source>Reason</source>
        <translation>Grund</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>Größe</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>Tempo</translation>
    </message>
    <message>
        <source>Duration</source>
        <translation>Dauer</translation>
    </message>
    <message>
        <source>Limit</source>
        <translation>Grenze</translation>
    </message>
    <message>
        <source>Started by a user</source>
        <translation>Von Hand</translation>
    </message>
    <message>
        <source>At program start</source>
        <translation>Beim Programmstart</translation>
    </message>
    <message>
        <source>Second attempt</source>
        <translation>Zweiter Versuch</translation>
    </message>
    <message numerus="yes">
        <source>Interrupted, %Ln file(s) unfinished</source>
        <translation>
            <numerusform>Abgebrochen, %Ln Datei unfertig</numerusform>
            <numerusform>Abgebrochen, %Ln Dateien unfertig</numerusform>
        </translation>
    </message>
    <message>
        <source>Settings were saved</source>
        <translation>Einstellungen gespeichert</translation>
    </message>
    <message>
        <source>Schedule: once</source>
        <translation>Zeitplan: einmal</translation>
    </message>
    <message>
        <source>Schedule: daily</source>
        <translation>Zeitplan: täglich</translation>
    </message>
    <message>
        <source>Schedule: weekly</source>
        <translation>Zeitplan: wöchentlich</translation>
    </message>
    <message>
        <source>Schedule: every few minutes</source>
        <translation>Zeitplan: alle paar Minuten</translation>
    </message>
    <message>
        <source>New files had settled</source>
        <translation>Neue Dateien kamen zur Ruhe</translation>
    </message>
    <message>
        <source>One folder only</source>
        <translation>Nur ein Ordner</translation>
    </message>
    <message>
        <source>Folders were added</source>
        <translation>Ordner kamen hinzu</translation>
    </message>
    <message>
        <source>Not finished</source>
        <translation>Nicht beendet</translation>
    </message>
    <message>
        <source>Stopped</source>
        <translation>Angehalten</translation>
    </message>
    <message>
        <source>Ended early</source>
        <translation>Vorzeitig beendet</translation>
    </message>
    <message>
        <source>Interrupted</source>
        <translation>Abgebrochen</translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) failed</source>
        <translation>
            <numerusform>%Ln Datei gescheitert</numerusform>
            <numerusform>%Ln Dateien gescheitert</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln left out</source>
        <translation>
            <numerusform>%Ln ausgelassen</numerusform>
            <numerusform>%Ln ausgelassen</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) wait</source>
        <translation>
            <numerusform>%Ln Datei wartet</numerusform>
            <numerusform>%Ln Dateien warten</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>All %Ln file(s) safe</source>
        <translation>
            <numerusform>%Ln Datei, sicher</numerusform>
            <numerusform>Alle %Ln Dateien sicher</numerusform>
        </translation>
    </message>
    <message>
        <source>Nothing to send</source>
        <translation>Nichts zu senden</translation>
    </message>
    <message>
        <source>No files found</source>
        <translation>Keine Dateien gefunden</translation>
    </message>
</context>
<context>
    <name>sentences</name>
    <message>
        <source>Reading the settings</source>
        <translation>Die Einstellungen werden gelesen</translation>
    </message>
    <message>
        <source>Not set up yet</source>
        <translation>Noch nicht eingerichtet</translation>
    </message>
    <message>
        <source>Starting</source>
        <translation>Start läuft</translation>
    </message>
    <message>
        <source>Stopping</source>
        <translation>Wird angehalten</translation>
    </message>
    <message>
        <source>A speed test is in progress</source>
        <translation>Ein Geschwindigkeitstest läuft</translation>
    </message>
    <message>
        <source>The engine has stopped</source>
        <translation>Das Übertragungsprogramm ist stehen geblieben</translation>
    </message>
    <message>
        <source>The limit: %1</source>
        <translation>Die Grenze: %1</translation>
    </message>
    <message>
        <source>The limit: %1, at %2</source>
        <translation>Die Grenze: %1, bei %2</translation>
    </message>
    <message>
        <source>Paused</source>
        <translation>Pausiert</translation>
    </message>
    <message numerus="yes">
        <source>Sending %Ln file(s), about %1 left</source>
        <translation>
            <numerusform>%Ln Datei wird gesendet, noch etwa %1</numerusform>
            <numerusform>%Ln Dateien werden gesendet, noch etwa %1</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Sending %Ln file(s)</source>
        <translation>
            <numerusform>%Ln Datei wird gesendet</numerusform>
            <numerusform>%Ln Dateien werden gesendet</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>The server is checking %Ln file(s)</source>
        <translation>
            <numerusform>Der Server prüft %Ln Datei</numerusform>
            <numerusform>Der Server prüft %Ln Dateien</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Looking through %Ln file(s)</source>
        <translation>
            <numerusform>%Ln Datei wird angesehen</numerusform>
            <numerusform>%Ln Dateien werden angesehen</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 of %2 sent, %3 %</source>
        <translation>%1 von %2 gesendet, %3 %</translation>
    </message>
    <message>
        <source>%1 of %2 sent, %3 %, at %4</source>
        <translation>%1 von %2 gesendet, %3 %, mit %4</translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) sent over HTTP; SSH awaits its approval</source>
        <translation>
            <numerusform>%Ln Datei über HTTP gesendet; die Freigabe für SSH steht aus</numerusform>
            <numerusform>%Ln Dateien über HTTP gesendet; die Freigabe für SSH steht aus</numerusform>
        </translation>
    </message>
    <message>
        <source>Waiting for the administrator&apos;s approval</source>
        <translation>Die Freigabe durch die Administration steht aus</translation>
    </message>
    <message>
        <source>Ready to start</source>
        <translation>Bereit zum Start</translation>
    </message>
    <message>
        <source>The last run was interrupted</source>
        <translation>Der letzte Lauf brach ab</translation>
    </message>
    <message numerus="yes">
        <source>%1; %Ln file(s), %2, exist only on this computer</source>
        <translation>
            <numerusform>%1; %Ln Datei, %2, gibt es nur auf diesem Computer</numerusform>
            <numerusform>%1; %Ln Dateien, %2, gibt es nur auf diesem Computer</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) need your attention</source>
        <translation>
            <numerusform>%Ln Datei erfordert Ihre Aufmerksamkeit</numerusform>
            <numerusform>%Ln Dateien erfordern Ihre Aufmerksamkeit</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) or folder(s) were left out and are not on the server</source>
        <translation>
            <numerusform>%Ln Datei oder Ordner wurde ausgelassen und ist nicht auf dem Server</numerusform>
            <numerusform>%Ln Dateien oder Ordner wurden ausgelassen und sind nicht auf dem Server</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) wait for the next run</source>
        <translation>
            <numerusform>%Ln Datei wartet auf den nächsten Lauf</numerusform>
            <numerusform>%Ln Dateien warten auf den nächsten Lauf</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln added folder(s) or file(s) are not finished</source>
        <translation>
            <numerusform>%Ln hinzugefügter Ordner (oder Datei) ist nicht fertig</numerusform>
            <numerusform>%Ln hinzugefügte Ordner oder Dateien sind nicht fertig</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) exist only on this computer</source>
        <translation>
            <numerusform>%Ln Datei gibt es nur auf diesem Computer</numerusform>
            <numerusform>%Ln Dateien gibt es nur auf diesem Computer</numerusform>
        </translation>
    </message>
    <message>
        <source>No files were found</source>
        <translation>Es wurden keine Dateien gefunden</translation>
    </message>
    <message>
        <source>No files to send were found</source>
        <translation>Es wurden keine zu sendenden Dateien gefunden</translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) of the last upload are safe</source>
        <translation>
            <numerusform>%Ln Datei des letzten Uploads ist sicher</numerusform>
            <numerusform>%Ln Dateien des letzten Uploads sind sicher</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>All %Ln file(s) are safe on the server</source>
        <translation>
            <numerusform>%Ln Datei, sicher auf dem Server</numerusform>
            <numerusform>Alle %Ln Dateien sind sicher auf dem Server</numerusform>
        </translation>
    </message>
    <message>
        <source>Everything up to %1 is safe on the server.</source>
        <translation>Alles bis %1 ist sicher auf dem Server.</translation>
    </message>
    <message>
        <source>Everything up to %1 is safe on the server, except for what was left out on purpose.</source>
        <translation>Alles bis %1 ist sicher auf dem Server, außer was absichtlich ausgelassen wurde.</translation>
    </message>
</context>
<context>
    <name>settings</name>
    <message>
        <source>&amp;General</source>
        <translation>&amp;Allgemein</translation>
    </message>
    <message>
        <source>&amp;Data and layout</source>
        <translation>&amp;Daten und Aufbau</translation>
    </message>
    <message>
        <source>&amp;Filters</source>
        <translation>&amp;Filter</translation>
    </message>
    <message>
        <source>&amp;Schedule</source>
        <translation>&amp;Zeitplan</translation>
    </message>
    <message>
        <source>&amp;Transfer</source>
        <translation>Ü&amp;bertragung</translation>
    </message>
    <message>
        <source>&amp;Advanced</source>
        <translation>&amp;Erweitert</translation>
    </message>
    <message>
        <source>Server</source>
        <translation>Server</translation>
    </message>
    <message>
        <source>Instrument</source>
        <translation>Instrument</translation>
    </message>
    <message>
        <source>The web address of the MyTardis server. It begins with https://.</source>
        <translation>Die Webadresse des MyTardis-Servers. Sie beginnt mit https://.</translation>
    </message>
    <message>
        <source>The MyTardis account that uploads, usually that of a facility manager. Its API key is stored separately from the settings.</source>
        <translation>Das MyTardis-Konto, das hochlädt, meist das der Leitung einer Einrichtung. Sein API-Schlüssel wird getrennt von den Einstellungen gespeichert.</translation>
    </message>
    <message>
        <source>A PEM file with the certificate authorities to trust instead of the system&apos;s. Needed if the server&apos;s certificate was issued by a private authority.</source>
        <translation>Eine PEM-Datei mit den Zertifizierungsstellen, denen statt denen des Systems vertraut wird. Nötig, wenn das Zertifikat des Servers von einer privaten Stelle stammt.</translation>
    </message>
    <message>
        <source>The address of the proxy for the server, such as http://proxy.example.org:3128. Empty uses the system&apos;s proxy; none connects directly. For a proxy with a password, set the environment variable HTTPS_PROXY.</source>
        <translation>Die Adresse des Proxys für den Server, zum Beispiel http://proxy.example.org:3128. Leer verwendet den Proxy des Systems, none verbindet direkt. Für einen Proxy mit Passwort wird die Umgebungsvariable HTTPS_PROXY gesetzt.</translation>
    </message>
    <message>
        <source>Whether to accept an http:// address for a server on another machine. Anyone on the network can then read the API key.</source>
        <translation>Ob eine http://-Adresse für einen Server auf einem anderen Rechner zulässig ist. Dann können alle im Netzwerk den API-Schlüssel lesen.</translation>
    </message>
    <message>
        <source>How long to wait for the server to accept a connection. Raise it for slow networks.</source>
        <translation>Wie lange auf die Annahme einer Verbindung durch den Server gewartet wird. Erhöhen Sie den Wert bei langsamen Netzwerken.</translation>
    </message>
    <message>
        <source>Read timeout</source>
        <translation>Lese-Zeitlimit</translation>
    </message>
    <message>
        <source>How long to wait for further data from the server during a request.</source>
        <translation>Wie lange während einer Anfrage auf weitere Daten des Servers gewartet wird.</translation>
    </message>
    <message>
        <source>How long one request may take in total.</source>
        <translation>Wie lange eine Anfrage insgesamt dauern darf.</translation>
    </message>
    <message>
        <source>Change timeout</source>
        <translation>Frist für Änderungen</translation>
    </message>
    <message>
        <source>Full check</source>
        <translation>Volle Prüfung</translation>
    </message>
    <message>
        <source>How long a request that changes data on the server may take. If its response is lost, the request is not sent again before this time has passed, because the server may still be processing it.</source>
        <translation>Wie lange eine Anfrage dauern darf, die Daten auf dem Server ändert. Geht ihre Antwort verloren, wird sie vor Ablauf dieser Zeit nicht erneut gesendet, weil der Server sie noch bearbeiten kann.</translation>
    </message>
    <message>
        <source>How many requests to the server may run concurrently. Lower it for a small server.</source>
        <translation>Wie viele Anfragen an den Server gleichzeitig laufen dürfen. Senken Sie den Wert für einen kleinen Server.</translation>
    </message>
    <message>
        <source>The name of the instrument as shown on the server.</source>
        <translation>Der Name des Instruments, wie er auf dem Server angezeigt wird.</translation>
    </message>
    <message>
        <source>The name, on the server, of the facility that operates the instrument.</source>
        <translation>Der Name der Einrichtung auf dem Server, die das Instrument betreibt.</translation>
    </message>
    <message>
        <source>The person the server&apos;s administrators can contact about this uploader.</source>
        <translation>Die Kontaktperson zu diesem Uploader für die Administration des Servers.</translation>
    </message>
    <message>
        <source>The identity of this installation on the server. It is created at the first start. Two installations must never share one.</source>
        <translation>Die Identität dieser Installation auf dem Server. Sie wird beim ersten Start erzeugt. Zwei Installationen dürfen nie dieselbe haben.</translation>
    </message>
    <message>
        <source>The folder that contains the instrument&apos;s data. Nothing in it is ever changed.</source>
        <translation>Der Ordner mit den Daten des Instruments. Nichts darin wird je verändert.</translation>
    </message>
    <message>
        <source>What each level of folders below the data directory represents.</source>
        <translation>Wofür jede Ebene von Ordnern unter dem Datenordner steht.</translation>
    </message>
    <message>
        <source>The text put before the name of a user group&apos;s folder to get the group&apos;s name on the server. Only for layouts with user groups.</source>
        <translation>Der Text vor dem Namen des Ordners einer Benutzergruppe, mit dem sich der Name der Gruppe auf dem Server ergibt. Nur für Aufbauten mit Benutzergruppen.</translation>
    </message>
    <message>
        <source>Whether to upload folders for the facility or skip them if the server does not know their owner.</source>
        <translation>Ob Ordner für die Einrichtung hochgeladen oder übersprungen werden, wenn der Server ihren Eigentümer nicht kennt.</translation>
    </message>
    <message>
        <source>Upload only owners&apos; folders whose name contains this text; empty uploads all.</source>
        <translation>Nur Ordner von Eigentümern hochladen, deren Name diesen Text enthält; leer lädt alle hoch.</translation>
    </message>
    <message>
        <source>Upload only experiment folders whose name contains this text; empty uploads all.</source>
        <translation>Nur Ordner von Experimenten hochladen, deren Name diesen Text enthält; leer lädt alle hoch.</translation>
    </message>
    <message>
        <source>Upload only dataset folders whose name contains this text; empty uploads all.</source>
        <translation>Nur Ordner von Datensätzen hochladen, deren Name diesen Text enthält; leer lädt alle hoch.</translation>
    </message>
    <message>
        <source>Skip dataset folders older than this age, such as &quot;6 months&quot;; empty skips none.</source>
        <translation>Ordner von Datensätzen überspringen, die älter sind als dieses Alter, zum Beispiel &quot;6 months&quot;; leer überspringt keine.</translation>
    </message>
    <message>
        <source>Skip dataset folders younger than this age, such as &quot;2 days&quot;; empty skips none.</source>
        <translation>Ordner von Datensätzen überspringen, die jünger sind als dieses Alter, zum Beispiel &quot;2 days&quot;; leer überspringt keine.</translation>
    </message>
    <message>
        <source>How long a file must remain unchanged before it is uploaded. Raise it for an instrument that pauses while it writes.</source>
        <translation>Wie lange eine Datei unverändert sein muss, bevor sie hochgeladen wird. Erhöhen Sie den Wert für ein Instrument, das beim Schreiben Pausen macht.</translation>
    </message>
    <message>
        <source>Upload only files that match one of these patterns; empty uploads all.</source>
        <translation>Nur Dateien hochladen, die zu einem dieser Muster passen; leer lädt alle hoch.</translation>
    </message>
    <message>
        <source>Skip files that match one of these patterns.</source>
        <translation>Dateien überspringen, die zu einem dieser Muster passen.</translation>
    </message>
    <message>
        <source>A UTF-8 text file with include patterns, one per line.</source>
        <translation>Eine Textdatei in UTF-8 mit Mustern für Dateien, die hochgeladen werden, eines je Zeile.</translation>
    </message>
    <message>
        <source>A UTF-8 text file with exclude patterns, one per line.</source>
        <translation>Eine Textdatei in UTF-8 mit Mustern für Dateien, die übersprungen werden, eines je Zeile.</translation>
    </message>
    <message>
        <source>Skip system and temporary files</source>
        <translation>System- und Zwischendateien überspringen</translation>
    </message>
    <message>
        <source>Whether to skip files that systems and programs leave behind (Thumbs.db, .DS_Store, lock and temporary files).</source>
        <translation>Ob Dateien übersprungen werden, die Systeme und Programme hinterlassen (Thumbs.db, .DS_Store, Sperr- und Zwischendateien).</translation>
    </message>
    <message>
        <source>Whether to skip links, follow them to files, or follow them to files and folders within the data directory.</source>
        <translation>Ob Verknüpfungen übersprungen werden, ob ihnen zu Dateien gefolgt wird oder zu Dateien und Ordnern innerhalb des Datenordners.</translation>
    </message>
    <message>
        <source>Whether to send over SSH, over HTTP, over SSH as soon as it is approved, to a mounted folder, or to object storage (S3).</source>
        <translation>Ob über SSH gesendet wird, über HTTP, über SSH, sobald es freigegeben ist, in einen eingehängten Ordner oder in einen Objektspeicher (S3).</translation>
    </message>
    <message>
        <source>Staging folder</source>
        <translation>Staging-Ordner</translation>
    </message>
    <message>
        <source>S3 address</source>
        <translation>S3-Adresse</translation>
    </message>
    <message>
        <source>The address of the object storage, such as https://s3.example.org; empty for Amazon&apos;s, or that of the approved storage box.</source>
        <translation>Die Adresse des Objektspeichers, etwa https://s3.example.org; leer für den von Amazon oder den der freigegebenen Ablage.</translation>
    </message>
    <message>
        <source>S3 region</source>
        <translation>S3-Region</translation>
    </message>
    <message>
        <source>The region of the bucket; empty for us-east-1, which most servers accept.</source>
        <translation>Die Region des Buckets; leer für us-east-1, was die meisten Server annehmen.</translation>
    </message>
    <message>
        <source>S3 bucket</source>
        <translation>S3-Bucket</translation>
    </message>
    <message>
        <source>The bucket for the files; empty for the approved storage box&apos;s.</source>
        <translation>Der Bucket für die Dateien; leer für den der freigegebenen Ablage.</translation>
    </message>
    <message>
        <source>S3 prefix</source>
        <translation>S3-Präfix</translation>
    </message>
    <message>
        <source>The beginning of all keys in the bucket, which is the storage box&apos;s location; empty for none, or that of the approved storage box.</source>
        <translation>Der Anfang aller Schlüssel im Bucket, also der Ort der Ablage; leer für keinen oder den der freigegebenen Ablage.</translation>
    </message>
    <message>
        <source>S3 storage box</source>
        <translation>S3-Ablage</translation>
    </message>
    <message>
        <source>The name of the server&apos;s storage box for this bucket; empty for the approved one.</source>
        <translation>Der Name der Ablage des Servers für diesen Bucket; leer für die freigegebene.</translation>
    </message>
    <message>
        <source>S3 access key</source>
        <translation>S3-Zugriffsschlüssel</translation>
    </message>
    <message>
        <source>The id of the access key. Its secret is stored separately from the settings.</source>
        <translation>Die Kennung des Zugriffsschlüssels. Sein Geheimnis wird getrennt von den Einstellungen gespeichert.</translation>
    </message>
    <message>
        <source>Which implementation of SSH to use. Automatic uses the fastest one that works.</source>
        <translation>Welche Implementierung von SSH verwendet wird. Automatisch verwendet die schnellste, die funktioniert.</translation>
    </message>
    <message>
        <source>The hosts through which the staging host is reached, in order, each as user@host:port; user and port are optional.</source>
        <translation>Die Rechner, über die der Annahmerechner erreicht wird, der Reihe nach, jeder als user@host:port; user und port dürfen fehlen.</translation>
    </message>
    <message>
        <source>Whether to use an SSH agent for the uploader&apos;s key and for keys of the jump hosts. Sessions with such keys use paramiko.</source>
        <translation>Ob ein SSH-Agent für den Schlüssel des Uploaders und die Schlüssel der Zwischenrechner verwendet wird. Sitzungen mit solchen Schlüsseln verwenden paramiko.</translation>
    </message>
    <message>
        <source>How many transfers run concurrently; 0 finds a good number automatically.</source>
        <translation>Wie viele Übertragungen gleichzeitig laufen; 0 findet automatisch eine gute Anzahl.</translation>
    </message>
    <message>
        <source>The SSH ciphers to offer, in order of preference; only modern ones are allowed.</source>
        <translation>Die angebotenen SSH-Chiffren, die bevorzugten zuerst; nur moderne sind erlaubt.</translation>
    </message>
    <message>
        <source>Fingerprints (SHA256:...) of the keys of staging hosts and jump hosts, as given by their administrator. A listed key is trusted without a prompt. If any are listed, keys that the server names for the staging hosts are not trusted.</source>
        <translation>Fingerabdrücke (SHA256:...) der Schlüssel von Annahmerechnern und Zwischenrechnern, wie ihre Administration sie angibt. Einem genannten Schlüssel wird ohne Nachfrage vertraut. Sind welche genannt, wird den Schlüsseln nicht vertraut, die der Server für die Annahmerechner angibt.</translation>
    </message>
    <message>
        <source>The uploader&apos;s private SSH key, if it is not the one created at the first start.</source>
        <translation>Der private SSH-Schlüssel des Uploaders, wenn es nicht der beim ersten Start erzeugte ist.</translation>
    </message>
    <message>
        <source>Whether to compress data in transit with zstd. Automatic compresses if the network limits the speed, the staging host has zstd and the data compress well.</source>
        <translation>Ob Daten bei der Übertragung mit zstd komprimiert werden. Automatisch komprimiert, wenn das Netzwerk die Geschwindigkeit begrenzt, der Annahmerechner zstd hat und sich die Daten gut komprimieren lassen.</translation>
    </message>
    <message>
        <source>Skip zeros</source>
        <translation>Nullen überspringen</translation>
    </message>
    <message>
        <source>Whether to search files that are sent alone and have no holes for long runs of zeros, and not to send these runs: the file on the server has holes in their place. With a shell on the staging host, a file that is at least half zeros is read twice, and starts again from its beginning after a lost connection.</source>
        <translation>Ob Dateien, die einzeln gesendet werden und keine Lücken haben, nach langen Folgen von Nullen durchsucht und diese nicht gesendet werden: Die Datei auf dem Server hat an ihrer Stelle Lücken. Mit einer Shell auf dem Annahmerechner wird eine Datei, die mindestens zur Hälfte aus Nullen besteht, zweimal gelesen und beginnt nach einer unterbrochenen Verbindung von vorn.</translation>
    </message>
    <message>
        <source>How long a transfer may make no progress before its connection is closed.</source>
        <translation>Wie lange eine Übertragung ohne Fortschritt bleiben darf, bevor ihre Verbindung geschlossen wird.</translation>
    </message>
    <message>
        <source>Files smaller than this are sent together; 0 sends each file alone.</source>
        <translation>Kleinere Dateien werden zusammen gesendet; 0 sendet jede einzeln.</translation>
    </message>
    <message>
        <source>A batch is sent when it has this size.</source>
        <translation>Ein Bündel wird gesendet, wenn es diese Größe hat.</translation>
    </message>
    <message>
        <source>Files per batch</source>
        <translation>Dateien je Bündel</translation>
    </message>
    <message>
        <source>A batch is sent when it has this many files.</source>
        <translation>Ein Bündel wird gesendet, wenn es so viele Dateien enthält.</translation>
    </message>
    <message>
        <source>A batch is sent when its first file has waited this long.</source>
        <translation>Ein Bündel wird gesendet, wenn seine erste Datei so lange gewartet hat.</translation>
    </message>
    <message>
        <source>Which files are stored in tar archives on the server instead of having one record each, such as &quot;*.dcm below 1 MB from 500 files by dataset&quot;. The first rule that matches applies.</source>
        <translation>Welche Dateien auf dem Server in tar-Archiven gespeichert werden, statt je einen Eintrag zu haben, zum Beispiel &quot;*.dcm below 1 MB from 500 files by dataset&quot;. Die erste passende Regel gilt.</translation>
    </message>
    <message>
        <source>The largest size of an archive. Further files go into another archive.</source>
        <translation>Die maximale Größe eines Archivs. Weitere Dateien kommen in ein weiteres Archiv.</translation>
    </message>
    <message>
        <source>When runs start: manually, with the program, when settings are saved, once, daily, weekly, at an interval (timer), or when new files have settled (watch).</source>
        <translation>Wann Läufe beginnen: von Hand, mit dem Programm, beim Speichern von Einstellungen, einmal, täglich, wöchentlich, in Abständen (timer) oder wenn neue Dateien zur Ruhe gekommen sind (watch).</translation>
    </message>
    <message>
        <source>The date of a run that starts once.</source>
        <translation>Der Tag eines Laufs, der einmal beginnt.</translation>
    </message>
    <message>
        <source>The local time of day at which single, daily and weekly runs start.</source>
        <translation>Die Ortszeit, zu der einmalige, tägliche und wöchentliche Läufe beginnen.</translation>
    </message>
    <message>
        <source>The days of the week on which weekly runs start.</source>
        <translation>Die Wochentage, an denen wöchentliche Läufe beginnen.</translation>
    </message>
    <message>
        <source>The minutes between two starts of the timer. For watch, the longest time between two scans.</source>
        <translation>Die Minuten zwischen zwei Starts in Abständen. Beim Beobachten die längste Zeit zwischen zwei Durchsuchungen.</translation>
    </message>
    <message>
        <source>The local time of day from which the timer or the watch starts runs.</source>
        <translation>Die Ortszeit, ab der in Abständen oder beim Beobachten Läufe beginnen.</translation>
    </message>
    <message>
        <source>The local time of day until which the timer or the watch starts runs. If it is earlier than the start, the period ends on the next day.</source>
        <translation>Die Ortszeit, bis zu der in Abständen oder beim Beobachten Läufe beginnen. Liegt sie vor dem Anfang, endet der Zeitraum am nächsten Tag.</translation>
    </message>
    <message>
        <source>The most that all channels together may send; 0 is no limit.</source>
        <translation>Wie schnell alle Kanäle zusammen höchstens senden dürfen; 0 ist ohne Grenze.</translation>
    </message>
    <message>
        <source>Periods with their own bandwidth in MB/s, in local time, such as &quot;monday-friday 09:00-17:00 5&quot;. The first one that contains the current time applies.</source>
        <translation>Zeiträume mit eigener Bandbreite in MB/s, in Ortszeit, zum Beispiel &quot;monday-friday 09:00-17:00 5&quot;. Der erste, der die aktuelle Zeit enthält, gilt.</translation>
    </message>
    <message>
        <source>Whether other programs have priority in the use of the processor and the disk.</source>
        <translation>Ob andere Programme bei der Nutzung von Prozessor und Platte Vorrang haben.</translation>
    </message>
    <message>
        <source>Whether to prevent the computer from going to sleep while files are sent.</source>
        <translation>Ob der Ruhezustand des Computers verhindert wird, während Dateien gesendet werden.</translation>
    </message>
    <message>
        <source>The day of the weekly notice, which reports whether all is well or no new files came.</source>
        <translation>Der Tag der wöchentlichen Nachricht, die meldet, ob alles in Ordnung ist oder keine neuen Dateien kamen.</translation>
    </message>
    <message>
        <source>A file that is written after each successful run, for a monitoring system to check.</source>
        <translation>Eine Datei, die nach jedem erfolgreichen Lauf geschrieben wird, damit eine Überwachung sie prüfen kann.</translation>
    </message>
    <message>
        <source>A web address that is requested after each successful run (a dead man&apos;s switch).</source>
        <translation>Eine Webadresse, die nach jedem erfolgreichen Lauf aufgerufen wird (Totmannschalter).</translation>
    </message>
    <message>
        <source>The number of hours without a successful run after which the user is notified, if runs were tried. A run succeeds if it ends without a problem or a failed file; 0 never notifies.</source>
        <translation>Die Anzahl der Stunden ohne erfolgreichen Lauf, nach der eine Meldung erscheint, wenn Läufe versucht wurden. Ein Lauf ist erfolgreich, wenn er ohne Problem und ohne fehlgeschlagene Datei endet; 0 meldet nie.</translation>
    </message>
    <message>
        <source>Whether the program starts in the tray at login.</source>
        <translation>Ob das Programm bei der Anmeldung im Infobereich startet.</translation>
    </message>
    <message>
        <source>Window at start</source>
        <translation>Fenster beim Start</translation>
    </message>
    <message>
        <source>How the window appears when the program starts.</source>
        <translation>Wie das Fenster beim Start des Programms erscheint.</translation>
    </message>
    <message>
        <source>The language of the window, from its next start on. Messages of the engine and the server remain in English.</source>
        <translation>Die Sprache des Fensters ab seinem nächsten Start. Meldungen des Übertragungsprogramms und des Servers bleiben englisch.</translation>
    </message>
    <message>
        <source>Continue when the window is closed</source>
        <translation>Nach dem Schließen des Fensters weiterlaufen</translation>
    </message>
    <message>
        <source>Whether the program continues when its window is closed: in the tray, or as a small window on systems without a tray. Otherwise, closing the window quits the program.</source>
        <translation>Ob das Programm nach dem Schließen seines Fensters weiterläuft: im Infobereich oder, wenn das System keinen hat, als kleines Fenster. Sonst beendet das Schließen das Programm.</translation>
    </message>
    <message>
        <source>Notify of uploads</source>
        <translation>Uploads melden</translation>
    </message>
    <message>
        <source>Whether to show a notification when files were uploaded.</source>
        <translation>Ob eine Meldung erscheint, wenn Dateien hochgeladen wurden.</translation>
    </message>
    <message>
        <source>Notify of problems</source>
        <translation>Probleme melden</translation>
    </message>
    <message>
        <source>Whether to show a notification for problems that need attention.</source>
        <translation>Ob eine Meldung bei Problemen erscheint, um die sich jemand kümmern muss.</translation>
    </message>
    <message>
        <source>Notify of the approval</source>
        <translation>Freigabe melden</translation>
    </message>
    <message>
        <source>Whether to show a notification when the uploader awaits approval and when it is approved.</source>
        <translation>Ob eine Meldung erscheint, wenn der Uploader auf seine Freigabe wartet und wenn er freigegeben ist.</translation>
    </message>
    <message>
        <source>Notify of inactivity</source>
        <translation>Ausbleibende Läufe melden</translation>
    </message>
    <message>
        <source>Whether to show a notification when no run has succeeded for monitor.silent_hours.</source>
        <translation>Ob eine Meldung erscheint, wenn seit monitor.silent_hours kein Lauf erfolgreich war.</translation>
    </message>
    <message>
        <source>The folder for the ledger and other state; empty uses the system&apos;s default.</source>
        <translation>Der Ordner für das Hauptbuch und andere Zustandsdateien; leer verwendet den üblichen Ort des Systems.</translation>
    </message>
    <message>
        <source>How detailed the log is; DEBUG helps to diagnose a problem.</source>
        <translation>Wie ausführlich das Protokoll ist; DEBUG hilft bei der Fehlersuche.</translation>
    </message>
    <message>
        <source>Records per request</source>
        <translation>Einträge je Anfrage</translation>
    </message>
    <message>
        <source>How many records one request creates at first.</source>
        <translation>Wie viele Einträge eine Anfrage zunächst anlegt.</translation>
    </message>
    <message>
        <source>How many requests that create records run concurrently.</source>
        <translation>Wie viele Anfragen, die Einträge anlegen, gleichzeitig laufen.</translation>
    </message>
    <message>
        <source>How long to wait before the first query whether the server has verified files.</source>
        <translation>Wie lange vor der ersten Abfrage gewartet wird, ob der Server Dateien geprüft hat.</translation>
    </message>
    <message>
        <source>Verification timeout</source>
        <translation>Zeitlimit der Prüfung</translation>
    </message>
    <message>
        <source>How long a run waits for the server&apos;s verification. The next run continues to wait for the remaining files.</source>
        <translation>Wie lange ein Lauf auf die Prüfung durch den Server wartet. Auf die übrigen Dateien wartet der nächste Lauf.</translation>
    </message>
    <message>
        <source>Pause timeout</source>
        <translation>Zeitlimit für Pausen</translation>
    </message>
    <message>
        <source>How long a run waits while the server is unavailable or the staging area is full, before it ends.</source>
        <translation>Wie lange ein Lauf wartet, während der Server nicht verfügbar oder der Annahmebereich voll ist, bevor er endet.</translation>
    </message>
    <message>
        <source>The number of days after which every datafile on the server is compared with the ledger again; 0 compares in every run. In between, one query for each dataset shows whether any are missing.</source>
        <translation>Die Anzahl der Tage, nach der jede Datei auf dem Server erneut mit dem Hauptbuch verglichen wird; 0 vergleicht bei jedem Lauf. Dazwischen zeigt eine Abfrage je Datensatz, ob Dateien fehlen.</translation>
    </message>
    <message>
        <source>days</source>
        <translation>Tage</translation>
    </message>
    <message>
        <source>Window</source>
        <translation>Fenster</translation>
    </message>
    <message>
        <source>Data</source>
        <translation>Daten</translation>
    </message>
    <message>
        <source>Which files are uploaded</source>
        <translation>Welche Dateien hochgeladen werden</translation>
    </message>
    <message>
        <source>Limits while the instrument is in use</source>
        <translation>Rücksicht auf das Instrument</translation>
    </message>
    <message>
        <source>Transfers</source>
        <translation>Übertragung</translation>
    </message>
    <message>
        <source>Rarely needed settings</source>
        <translation>Selten benötigte Einstellungen</translation>
    </message>
    <message>
        <source>Health signals</source>
        <translation>Statussignale</translation>
    </message>
    <message>
        <source>Example: %1</source>
        <translation>Beispiel: %1</translation>
    </message>
    <message>
        <source>automatic</source>
        <translation>automatisch</translation>
    </message>
    <message>
        <source>Manually only</source>
        <translation>Nur von Hand</translation>
    </message>
    <message>
        <source>At a fixed interval</source>
        <translation>In festem Abstand</translation>
    </message>
    <message>
        <source>When new files no longer change</source>
        <translation>Wenn neue Dateien sich nicht mehr ändern</translation>
    </message>
    <message>
        <source>Mounted folder</source>
        <translation>Eingehängter Ordner</translation>
    </message>
    <message>
        <source>Object storage (S3)</source>
        <translation>Objektspeicher (S3)</translation>
    </message>
    <message>
        <source>Same as the system</source>
        <translation>Wie das System</translation>
    </message>
    <message>
        <source>When runs start</source>
        <translation>Wann Läufe beginnen</translation>
    </message>
    <message>
        <source>Archives of tiny files</source>
        <translation>Archive winziger Dateien</translation>
    </message>
    <message>
        <source>each file alone</source>
        <translation>jede Datei allein</translation>
    </message>
    <message>
        <source>no limit</source>
        <translation>keine Grenze</translation>
    </message>
    <message>
        <source>never</source>
        <translation>nie</translation>
    </message>
    <message>
        <source>Default</source>
        <translation>Standard</translation>
    </message>
    <message>
        <source>From the managed file</source>
        <translation>Aus der verwalteten Datei</translation>
    </message>
    <message>
        <source>From the server</source>
        <translation>Vom Server</translation>
    </message>
    <message>
        <source>From your file</source>
        <translation>Aus Ihrer Datei</translation>
    </message>
    <message>
        <source>From the environment</source>
        <translation>Aus der Umgebung</translation>
    </message>
    <message>
        <source>From the command line</source>
        <translation>Von der Befehlszeile</translation>
    </message>
    <message>
        <source>Set by the environment variable %1</source>
        <translation>Festgelegt durch die Umgebungsvariable %1</translation>
    </message>
    <message>
        <source>Locked by %1</source>
        <translation>Gesperrt durch %1</translation>
    </message>
    <message>
        <source>“%1”</source>
        <translation>„%1“</translation>
    </message>
    <message>
        <source>Monday</source>
        <translation>Montag</translation>
    </message>
    <message>
        <source>Tuesday</source>
        <translation>Dienstag</translation>
    </message>
    <message>
        <source>Wednesday</source>
        <translation>Mittwoch</translation>
    </message>
    <message>
        <source>Thursday</source>
        <translation>Donnerstag</translation>
    </message>
    <message>
        <source>Friday</source>
        <translation>Freitag</translation>
    </message>
    <message>
        <source>Saturday</source>
        <translation>Samstag</translation>
    </message>
    <message>
        <source>Sunday</source>
        <translation>Sonntag</translation>
    </message>
    <message>
        <source>Never</source>
        <translation>Nie</translation>
    </message>
    <message>
        <source>When the program starts</source>
        <translation>Wenn das Programm startet</translation>
    </message>
    <message>
        <source>When settings are saved</source>
        <translation>Wenn Einstellungen gespeichert werden</translation>
    </message>
    <message>
        <source>Once</source>
        <translation>Einmal</translation>
    </message>
    <message>
        <source>Every day</source>
        <translation>Jeden Tag</translation>
    </message>
    <message>
        <source>On some days of the week</source>
        <translation>An einigen Tagen der Woche</translation>
    </message>
    <message>
        <source>Upload for the facility</source>
        <translation>Für die Einrichtung hochladen</translation>
    </message>
    <message>
        <source>Skip</source>
        <translation>Überspringen</translation>
    </message>
    <message>
        <source>Follow to files</source>
        <translation>Zu Dateien folgen</translation>
    </message>
    <message>
        <source>Follow within the data directory</source>
        <translation>Innerhalb des Datenordners folgen</translation>
    </message>
    <message>
        <source>Automatic: SSH as soon as it is approved</source>
        <translation>Automatisch: SSH, sobald es freigegeben ist</translation>
    </message>
    <message>
        <source>SSH</source>
        <translation>SSH</translation>
    </message>
    <message>
        <source>HTTP</source>
        <translation>HTTP</translation>
    </message>
    <message>
        <source>Automatic</source>
        <translation>Automatisch</translation>
    </message>
    <message>
        <source>Normal</source>
        <translation>Normal</translation>
    </message>
    <message>
        <source>Minimised</source>
        <translation>Minimiert</translation>
    </message>
    <message>
        <source>Maximised</source>
        <translation>Maximiert</translation>
    </message>
    <message>
        <source>In the tray</source>
        <translation>Im Infobereich</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>Hell</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>Dunkel</translation>
    </message>
    <message>
        <source>Server address</source>
        <translation>Adresse des Servers</translation>
    </message>
    <message>
        <source>Account</source>
        <translation>Konto</translation>
    </message>
    <message>
        <source>Certificate authorities</source>
        <translation>Zertifizierungsstellen</translation>
    </message>
    <message>
        <source>Proxy</source>
        <translation>Proxy</translation>
    </message>
    <message>
        <source>Allow unencrypted http</source>
        <translation>Unverschlüsseltes http erlauben</translation>
    </message>
    <message>
        <source>Connection timeout</source>
        <translation>Frist für die Verbindung</translation>
    </message>
    <message>
        <source>s</source>
        <translation>s</translation>
    </message>
    <message>
        <source>Request deadline</source>
        <translation>Frist für Anfragen</translation>
    </message>
    <message>
        <source>Parallel requests</source>
        <translation>Gleichzeitige Anfragen</translation>
    </message>
    <message>
        <source>Facility</source>
        <translation>Einrichtung</translation>
    </message>
    <message>
        <source>Contact name</source>
        <translation>Name der Kontaktperson</translation>
    </message>
    <message>
        <source>Contact e-mail</source>
        <translation>E-Mail der Kontaktperson</translation>
    </message>
    <message>
        <source>The e-mail address of the contact person.</source>
        <translation>Die E-Mail-Adresse der Kontaktperson.</translation>
    </message>
    <message>
        <source>Uploader identity</source>
        <translation>Identität des Uploaders</translation>
    </message>
    <message>
        <source>Data directory</source>
        <translation>Datenordner</translation>
    </message>
    <message>
        <source>Layout</source>
        <translation>Aufbau</translation>
    </message>
    <message>
        <source>Group prefix</source>
        <translation>Vorsilbe von Gruppen</translation>
    </message>
    <message>
        <source>Folders of unknown owners</source>
        <translation>Ordner unbekannter Eigentümer</translation>
    </message>
    <message>
        <source>Owner contains</source>
        <translation>Eigentümer enthält</translation>
    </message>
    <message>
        <source>Experiment contains</source>
        <translation>Experiment enthält</translation>
    </message>
    <message>
        <source>Dataset contains</source>
        <translation>Datensatz enthält</translation>
    </message>
    <message>
        <source>Skip datasets older than</source>
        <translation>Datensätze überspringen, älter als</translation>
    </message>
    <message>
        <source>Skip datasets newer than</source>
        <translation>Datensätze überspringen, jünger als</translation>
    </message>
    <message>
        <source>Settling time</source>
        <translation>Ruhezeit</translation>
    </message>
    <message>
        <source>Include patterns</source>
        <translation>Muster, die gelten</translation>
    </message>
    <message>
        <source>Exclude patterns</source>
        <translation>Muster, die ausschließen</translation>
    </message>
    <message>
        <source>File of include patterns</source>
        <translation>Datei mit geltenden Mustern</translation>
    </message>
    <message>
        <source>File of exclude patterns</source>
        <translation>Datei mit ausschließenden Mustern</translation>
    </message>
    <message>
        <source>Symbolic links</source>
        <translation>Symbolische Verknüpfungen</translation>
    </message>
    <message>
        <source>Upload method</source>
        <translation>Weg des Hochladens</translation>
    </message>
    <message>
        <source>The mounted folder that is the location of the approved storage box, for the upload method folder; such as /mnt/staging or \\server\staging.</source>
        <translation>Der eingehängte Ordner, der der Speicherort (location) der freigegebenen Ablage ist, wenn in einen Ordner hochgeladen wird; etwa /mnt/staging oder \\server\staging.</translation>
    </message>
    <message>
        <source>SSH implementation</source>
        <translation>SSH-Implementierung</translation>
    </message>
    <message>
        <source>Jump hosts</source>
        <translation>Zwischenrechner</translation>
    </message>
    <message>
        <source>SSH agent</source>
        <translation>SSH-Agent</translation>
    </message>
    <message>
        <source>Channels</source>
        <translation>Kanäle</translation>
    </message>
    <message>
        <source>Ciphers</source>
        <translation>Chiffren</translation>
    </message>
    <message>
        <source>Trusted host keys</source>
        <translation>Vertraute Rechnerschlüssel</translation>
    </message>
    <message>
        <source>Private key</source>
        <translation>Privater Schlüssel</translation>
    </message>
    <message>
        <source>Compression</source>
        <translation>Komprimierung</translation>
    </message>
    <message>
        <source>How long to wait for a staging host to accept a connection.</source>
        <translation>Wie lange auf die Annahme einer Verbindung durch einen Annahmerechner gewartet wird.</translation>
    </message>
    <message>
        <source>Stall timeout</source>
        <translation>Frist für Stillstand</translation>
    </message>
    <message>
        <source>Attempts</source>
        <translation>Versuche</translation>
    </message>
    <message>
        <source>How often a transfer is tried in one run before its files count as failed.</source>
        <translation>Wie oft eine Übertragung in einem Lauf versucht wird, bevor ihre Dateien als gescheitert gelten.</translation>
    </message>
    <message>
        <source>Batch files below</source>
        <translation>Dateien bündeln unter</translation>
    </message>
    <message>
        <source>bytes</source>
        <translation>Bytes</translation>
    </message>
    <message>
        <source>Batch size</source>
        <translation>Größe eines Bündels</translation>
    </message>
    <message>
        <source>Batch age</source>
        <translation>Alter eines Bündels</translation>
    </message>
    <message>
        <source>Archive rules</source>
        <translation>Regeln für Archive</translation>
    </message>
    <message>
        <source>Archive size</source>
        <translation>Größe eines Archivs</translation>
    </message>
    <message>
        <source>Start runs</source>
        <translation>Läufe beginnen</translation>
    </message>
    <message>
        <source>Date</source>
        <translation>Datum</translation>
    </message>
    <message>
        <source>Time</source>
        <translation>Uhrzeit</translation>
    </message>
    <message>
        <source>Days</source>
        <translation>Tage</translation>
    </message>
    <message>
        <source>Every</source>
        <translation>Alle</translation>
    </message>
    <message>
        <source>min</source>
        <translation>min</translation>
    </message>
    <message>
        <source>From</source>
        <translation>Von</translation>
    </message>
    <message>
        <source>To</source>
        <translation>Bis</translation>
    </message>
    <message>
        <source>Bandwidth</source>
        <translation>Bandbreite</translation>
    </message>
    <message>
        <source>MB/s</source>
        <translation>MB/s</translation>
    </message>
    <message>
        <source>Bandwidth timetable</source>
        <translation>Fahrplan der Bandbreite</translation>
    </message>
    <message>
        <source>Quiet hours</source>
        <translation>Ruhige Stunden</translation>
    </message>
    <message>
        <source>Periods in local time, such as &quot;monday-friday 09:00-17:00&quot;, in which nothing is sent. Transfers in progress wait, and continue afterwards.</source>
        <translation>Zeiträume in Ortszeit, zum Beispiel &quot;monday-friday 09:00-17:00&quot;, in denen nichts gesendet wird. Laufende Übertragungen warten und gehen danach weiter.</translation>
    </message>
    <message>
        <source>Low priority</source>
        <translation>Niedriger Vorrang</translation>
    </message>
    <message>
        <source>Pause while running</source>
        <translation>Pausieren, solange läuft</translation>
    </message>
    <message>
        <source>Names or full paths of programs, such as acquire.exe. While one of them runs, nothing is sent.</source>
        <translation>Namen oder volle Pfade von Programmen, zum Beispiel acquire.exe. Während eines davon läuft, wird nichts gesendet.</translation>
    </message>
    <message>
        <source>Pause under pressure</source>
        <translation>Pausieren bei Andrang</translation>
    </message>
    <message>
        <source>The share of time in which other programs wait for disk or memory. Above it, nothing is sent; 0 never pauses.</source>
        <translation>Der Anteil der Zeit, in dem andere Programme auf Platte oder Speicher warten. Darüber wird nichts gesendet; 0 pausiert nie.</translation>
    </message>
    <message>
        <source>%</source>
        <translation>%</translation>
    </message>
    <message>
        <source>Keep awake</source>
        <translation>Wach halten</translation>
    </message>
    <message>
        <source>Weekly notice</source>
        <translation>Wöchentliche Nachricht</translation>
    </message>
    <message>
        <source>Signal file</source>
        <translation>Signaldatei</translation>
    </message>
    <message>
        <source>Signal address</source>
        <translation>Signaladresse</translation>
    </message>
    <message>
        <source>Silence</source>
        <translation>Stille</translation>
    </message>
    <message>
        <source>h</source>
        <translation>h</translation>
    </message>
    <message>
        <source>Start at login</source>
        <translation>Start bei der Anmeldung</translation>
    </message>
    <message>
        <source>Colours</source>
        <translation>Farben</translation>
    </message>
    <message>
        <source>Whether the window is light or dark, or follows the system.</source>
        <translation>Ob das Fenster hell oder dunkel ist oder dem System folgt.</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>Sprache</translation>
    </message>
    <message>
        <source>State directory</source>
        <translation>Ordner des Zustands</translation>
    </message>
    <message>
        <source>Log level</source>
        <translation>Umfang des Protokolls</translation>
    </message>
    <message>
        <source>Parallel registrations</source>
        <translation>Gleichzeitige Einträge</translation>
    </message>
    <message>
        <source>Verification interval</source>
        <translation>Abstand der Prüfung</translation>
    </message>
</context>
<context>
    <name>speed</name>
    <message>
        <source>Nothing could be measured that predicts the speed of an upload.</source>
        <translation>Es konnte nichts gemessen werden, das sagt, wie schnell Dateien übertragen würden.</translation>
    </message>
    <message>
        <source>The limit is %1 for large files, and %2 for tiny ones.</source>
        <translation>Die Grenze ist für große Dateien %1, für winzige %2.</translation>
    </message>
    <message>
        <source>%1 at %2</source>
        <comment>a limit at its speed</comment>
        <translation>%1 mit %2</translation>
    </message>
    <message>
        <source>the network or the disk of the server</source>
        <translation>das Netz oder die Festplatte des Servers</translation>
    </message>
    <message>
        <source>The next limit is %1, which alone would reach %2.</source>
        <translation>Dahinter kommt %1; allein wären es %2.</translation>
    </message>
    <message>
        <source>%1: %2 times as fast</source>
        <translation>%1: %2-mal so schnell</translation>
    </message>
    <message>
        <source>Locked by %1.</source>
        <translation>Gesperrt von %1.</translation>
    </message>
    <message>
        <source>Offer the cipher %1 first.</source>
        <translation>Die Chiffre %1 zuerst anbieten.</translation>
    </message>
    <message>
        <source>Compress during transfer: your data shrinks to %1.</source>
        <translation>Unterwegs komprimieren: Ihre Daten schrumpfen auf %1.</translation>
    </message>
    <message>
        <source>Keep tiny files in archives, which have one record each (archive.rules).</source>
        <translation>Winzige Dateien in Archiven halten, die je einen einzigen Eintrag haben (archive.rules).</translation>
    </message>
    <message>
        <source>More or faster processors in this computer would help.</source>
        <translation>Mehr oder schnellere Prozessoren in diesem Computer würden helfen.</translation>
    </message>
    <message>
        <source>A faster disk, or less use of it by other programs, would help.</source>
        <translation>Eine schnellere Festplatte für die Daten würde helfen, oder weniger, was andere darauf tun.</translation>
    </message>
    <message>
        <source>A faster network between here and the staging host would help.</source>
        <translation>Ein schnelleres Netz zwischen hier und dem Annahmerechner würde helfen.</translation>
    </message>
    <message>
        <source>A closer staging host, or one with larger SSH windows, would help.</source>
        <translation>Ein näherer Annahmerechner würde helfen, oder einer mit größeren SSH-Fenstern.</translation>
    </message>
    <message>
        <source>More cores for the staging host, or several hosts, would help.</source>
        <translation>Mehr Kerne für den Annahmerechner oder mehrere solche Rechner würden helfen.</translation>
    </message>
    <message>
        <source>Faster storage behind the staging host would help.</source>
        <translation>Ein schnellerer Speicher hinter dem Annahmerechner würde helfen.</translation>
    </message>
    <message>
        <source>More workers for the server&apos;s web application would help.</source>
        <translation>Mehr Arbeitsprozesse für die Webanwendung des Servers würden helfen.</translation>
    </message>
    <message>
        <source>After that the limit is %1.</source>
        <translation>Danach ist die Grenze %1.</translation>
    </message>
    <message>
        <source>%1: %2 now</source>
        <translation>%1: jetzt %2</translation>
    </message>
    <message>
        <source>%1: %3 before, %2 now</source>
        <translation>%1: vorher %3, jetzt %2</translation>
    </message>
    <message>
        <source>The staging host allows no shell: its processors, its disk without the network, the round trip and tiny files could not be measured.</source>
        <translation>Der Annahmerechner erlaubt keine Shell: seine Prozessoren, seine Festplatte ohne das Netz, die Umlaufzeit und winzige Dateien lassen sich nicht bestimmen.</translation>
    </message>
    <message>
        <source>The staging host cannot remove files: nothing was sent, and only this computer and the API were measured.</source>
        <translation>Der Annahmerechner kann nichts entfernen: Es wurde nichts gesendet; nur dieser Computer und die API wurden gemessen.</translation>
    </message>
    <message>
        <source>The improvement was not measured: the staging host no longer allows a shell.</source>
        <translation>Was die Einstellungen bringen, wurde nicht gemessen: Der Annahmerechner erlaubt keine Shell mehr.</translation>
    </message>
    <message>
        <source>%1: there was no time left to measure this.</source>
        <translation>Für diese Messung blieb keine Zeit: %1</translation>
    </message>
    <message>
        <source>A speed test would disturb the instrument or its network now. %1</source>
        <translation>Ein Geschwindigkeitstest würde das Instrument oder sein Netz jetzt stören. %1</translation>
    </message>
    <message>
        <source>Quiet hours fill the whole week: nothing is ever sent.</source>
        <translation>Ruhige Stunden füllen die ganze Woche: Es wird nie etwas gesendet.</translation>
    </message>
    <message>
        <source>The speed test ended unexpectedly (%1).</source>
        <translation>Der Geschwindigkeitstest endete unerwartet (%1).</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation>%1: %2</translation>
    </message>
    <message>
        <source>The limit is %1 for large files. The limit for tiny files is unknown.</source>
        <translation>Die Grenze ist für große Dateien %1. Die Grenze für winzige Dateien ist nicht bekannt.</translation>
    </message>
    <message>
        <source>The connection to the server was not measured. Without it, the limit is %1 for large files, and %2 for tiny ones.</source>
        <translation>Die Verbindung zum Server wurde nicht gemessen. Ohne sie ist die Grenze für große Dateien %1, für winzige %2.</translation>
    </message>
    <message>
        <source>the number of channels over this distance or the size of batches</source>
        <translation>die Zahl der Kanäle über diese Entfernung oder die Größe der Bündel</translation>
    </message>
    <message>
        <source>%1, quick</source>
        <translation>%1, kurz</translation>
    </message>
    <message>
        <source>Speed test of mydata-like, %1</source>
        <translation>Geschwindigkeitstest von mydata-like, %1</translation>
    </message>
    <message>
        <source>What could not be measured</source>
        <translation>Was nicht gemessen werden konnte</translation>
    </message>
    <message>
        <source>All figures</source>
        <translation>Alle Zahlen</translation>
    </message>
    <message>
        <source> (the limit)</source>
        <translation> (die Grenze)</translation>
    </message>
    <message>
        <source>Disk of this computer</source>
        <translation>Festplatte dieses Computers</translation>
    </message>
    <message>
        <source>Checksums</source>
        <translation>Prüfsummen</translation>
    </message>
    <message>
        <source>Encryption</source>
        <translation>Verschlüsselung</translation>
    </message>
    <message>
        <source>Network</source>
        <translation>Netz</translation>
    </message>
    <message>
        <source>Channels</source>
        <translation>Kanäle</translation>
    </message>
    <message>
        <source>Staging host&apos;s processors</source>
        <translation>Prozessoren des Annahmerechners</translation>
    </message>
    <message>
        <source>Disk of the server</source>
        <translation>Festplatte des Servers</translation>
    </message>
    <message>
        <source>Server&apos;s API</source>
        <translation>API des Servers</translation>
    </message>
    <message>
        <source>the processors that both sides share (mainly checksums)</source>
        <translation>die von beiden Seiten geteilte Rechenleistung (vor allem für Prüfsummen)</translation>
    </message>
    <message>
        <source>the processors that both sides share (mainly encryption)</source>
        <translation>die von beiden Seiten geteilte Rechenleistung (vor allem für die Verschlüsselung)</translation>
    </message>
    <message>
        <source>the processors that both sides share (mainly receiving)</source>
        <translation>die von beiden Seiten geteilte Rechenleistung (vor allem für das Empfangen)</translation>
    </message>
    <message>
        <source>the disk of this computer</source>
        <translation>die Festplatte dieses Computers</translation>
    </message>
    <message>
        <source>computing checksums on this computer</source>
        <translation>das Berechnen der Prüfsummen auf diesem Computer</translation>
    </message>
    <message>
        <source>encryption on this computer</source>
        <translation>die Verschlüsselung auf diesem Computer</translation>
    </message>
    <message>
        <source>the network</source>
        <translation>das Netz</translation>
    </message>
    <message>
        <source>the number of channels over this distance</source>
        <translation>die Zahl der Kanäle über diese Entfernung</translation>
    </message>
    <message>
        <source>the processors of the staging host</source>
        <translation>die Rechenleistung des Annahmerechners</translation>
    </message>
    <message>
        <source>the disk of the server</source>
        <translation>die Festplatte des Servers</translation>
    </message>
    <message>
        <source>the server&apos;s API</source>
        <translation>die API des Servers</translation>
    </message>
    <message>
        <source>Large files</source>
        <translation>Große Dateien</translation>
    </message>
    <message>
        <source>Mixed files</source>
        <translation>Gemischte Dateien</translation>
    </message>
    <message>
        <source>Tiny files</source>
        <translation>Winzige Dateien</translation>
    </message>
    <message>
        <source>%1 files/s</source>
        <translation>%1 Dateien/s</translation>
    </message>
    <message numerus="yes">
        <source>%Ln channel(s)</source>
        <translation>
            <numerusform>%Ln Kanal</numerusform>
            <numerusform>%Ln Kanäle</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln connection(s)</source>
        <translation>
            <numerusform>%Ln Verbindung</numerusform>
            <numerusform>%Ln Verbindungen</numerusform>
        </translation>
    </message>
    <message>
        <source>%1, on one core here</source>
        <translation>%1, auf einem Kern hier</translation>
    </message>
    <message>
        <source>MD5 on one core</source>
        <translation>MD5 auf einem Kern</translation>
    </message>
    <message>
        <source>MD5 on all cores</source>
        <translation>MD5 auf allen Kernen</translation>
    </message>
    <message>
        <source>Round trip</source>
        <translation>Umlaufzeit</translation>
    </message>
    <message>
        <source>Connection set-up</source>
        <translation>Verbindungsaufbau</translation>
    </message>
    <message>
        <source>Maximum of one channel</source>
        <translation>Das Meiste, was ein Kanal trägt</translation>
    </message>
    <message>
        <source>Size when compressed</source>
        <translation>Größe nach der Kompression</translation>
    </message>
    <message>
        <source>Compression on one core</source>
        <translation>Kompression auf einem Kern</translation>
    </message>
    <message>
        <source>Records, in earlier runs</source>
        <translation>Einträge, in früheren Läufen</translation>
    </message>
    <message>
        <source>Shortest answer</source>
        <translation>Kürzeste Antwort</translation>
    </message>
    <message>
        <source>One page of a listing</source>
        <translation>Eine Seite einer Liste</translation>
    </message>
    <message>
        <source>Statistics</source>
        <translation>Statistik</translation>
    </message>
    <message>
        <source>All together, large files</source>
        <translation>Alles zusammen, große Dateien</translation>
    </message>
    <message>
        <source>All together, tiny files</source>
        <translation>Alles zusammen, winzige Dateien</translation>
    </message>
    <message>
        <source>All together, tiny files, in batches as usual</source>
        <translation>Alles zusammen, kleine Dateien, in Bündeln wie voreingestellt</translation>
    </message>
    <message>
        <source>Connection to the server</source>
        <translation>Verbindung zum Server</translation>
    </message>
    <message>
        <source>Quiet hours: nothing is sent until %1.</source>
        <translation>Ruhige Stunden: Bis %1 wird nichts gesendet.</translation>
    </message>
    <message>
        <source>%1 is running: nothing is sent.</source>
        <translation>%1 läuft: Es wird nichts gesendet.</translation>
    </message>
    <message>
        <source>Run it again: that also removes the files that this one left on the server.</source>
        <translation>Starten Sie ihn noch einmal: Das entfernt auch die Dateien, die dieser auf dem Server hinterlassen hat.</translation>
    </message>
    <message>
        <source>Choose the number of channels automatically.</source>
        <translation>Die Zahl der Kanäle automatisch wählen.</translation>
    </message>
    <message>
        <source>Send more tiny files together: use the default batch sizes.</source>
        <translation>Mehr winzige Dateien zusammen senden: die voreingestellten Bündelgrößen verwenden.</translation>
    </message>
    <message>
        <source>Other programs used %1 % of this computer: it may be faster alone.</source>
        <translation>Andere Programme nahmen %1 % dieses Computers in Anspruch: Allein wäre er vielleicht schneller.</translation>
    </message>
    <message>
        <source>Recommendations</source>
        <translation>Empfehlungen</translation>
    </message>
    <message>
        <source>Measured gain</source>
        <translation>Gemessener Gewinn</translation>
    </message>
    <message>
        <source>Compression</source>
        <translation>Komprimierung</translation>
    </message>
    <message>
        <source>Ciphers on this computer</source>
        <translation>Chiffren auf diesem Computer</translation>
    </message>
    <message>
        <source>All together</source>
        <translation>Alles zusammen</translation>
    </message>
    <message>
        <source>%1 to %2</source>
        <translation>%1 bis %2</translation>
    </message>
    <message>
        <source>%1 ms</source>
        <translation>%1 ms</translation>
    </message>
    <message>
        <source>%1 %</source>
        <translation>%1 %</translation>
    </message>
    <message>
        <source>%1 requests/s</source>
        <translation>%1 Anfragen/s</translation>
    </message>
    <message>
        <source>The speed of registering and verifying was not measured, because a test must not leave records and no earlier run had to wait for it.</source>
        <translation>Wie schnell der Server Einträge anlegt und prüft, wurde nicht gemessen, denn ein Test darf keine Einträge hinterlassen, und kein früherer Lauf musste darauf warten.</translation>
    </message>
    <message>
        <source>The data directory has too few large files to measure how fast they are read.</source>
        <translation>Im Datenordner sind zu wenige große Dateien, um zu messen, wie schnell sie gelesen werden.</translation>
    </message>
    <message>
        <source>The data directory has too few tiny files to measure how fast they are read.</source>
        <translation>Im Datenordner sind zu wenige winzige Dateien, um zu messen, wie schnell sie gelesen werden.</translation>
    </message>
    <message>
        <source>The connection to the server was not measured: ask for approval first.</source>
        <translation>Die Verbindung zum Server wurde nicht gemessen: Bitten Sie zuerst um die Freigabe.</translation>
    </message>
    <message>
        <source>The connection to the server was not measured: the staging area has no host.</source>
        <translation>Die Verbindung zum Server wurde nicht gemessen: Zum Annahmebereich gehört kein Rechner.</translation>
    </message>
    <message>
        <source>The connection to the server was not measured: files are sent over HTTP.</source>
        <translation>Die Verbindung zum Server wurde nicht gemessen: Dateien werden über HTTP übertragen.</translation>
    </message>
    <message>
        <source>The connection to the server was not measured: %1</source>
        <translation>Die Verbindung zum Server wurde nicht gemessen: %1</translation>
    </message>
    <message>
        <source>%1 could not be fully measured: %2</source>
        <translation>Nicht vollständig gemessen: %1 (%2)</translation>
    </message>
    <message>
        <source>%1 on the staging host could not be removed; the next test removes it.</source>
        <translation>%1 auf dem Annahmerechner konnte nicht entfernt werden; der nächste Test entfernt es.</translation>
    </message>
    <message>
        <source>The bandwidth is limited to %1 now, but a test sends as fast as it can.</source>
        <translation>Die Bandbreite ist jetzt auf %1 begrenzt, aber ein Test sendet so schnell wie möglich.</translation>
    </message>
    <message>
        <source>There is no earlier speed test to continue from.</source>
        <translation>Es gibt keinen früheren Geschwindigkeitstest, der fortgesetzt werden könnte.</translation>
    </message>
    <message>
        <source>Run a new one.</source>
        <translation>Starten Sie einen neuen.</translation>
    </message>
</context>
<context>
    <name>starts</name>
    <message>
        <source>Only when you press Start.</source>
        <translation>Nur, wenn Sie auf „Start“ klicken.</translation>
    </message>
    <message>
        <source>Each time the program starts.</source>
        <translation>Jedes Mal, wenn das Programm startet.</translation>
    </message>
    <message>
        <source>Each time settings are saved.</source>
        <translation>Jedes Mal, wenn Einstellungen gespeichert werden.</translation>
    </message>
    <message>
        <source>When new files have not changed for %1, and at the latest:</source>
        <translation>Wenn neue Dateien sich %1 lang nicht geändert haben, und spätestens:</translation>
    </message>
    <message>
        <source>Never: that moment has passed.</source>
        <translation>Nie: Dieser Zeitpunkt ist vorbei.</translation>
    </message>
</context>
<context>
    <name>tree</name>
    <message>
        <source>Files left out</source>
        <translation>Dateien ausgelassen</translation>
    </message>
    <message>
        <source>Unfinished</source>
        <translation>Unfertig</translation>
    </message>
    <message>
        <source>Not sent yet</source>
        <translation>Noch nicht gesendet</translation>
    </message>
    <message>
        <source>No files</source>
        <translation>Keine Dateien</translation>
    </message>
</context>
<context>
    <name>where</name>
    <message>
        <source>Changed here</source>
        <translation>Hier geändert</translation>
    </message>
    <message>
        <source>Sent</source>
        <translation>Gesendet</translation>
    </message>
    <message>
        <source>Registered on the server</source>
        <translation>Auf dem Server eingetragen</translation>
    </message>
    <message>
        <source>Verified by the server</source>
        <translation>Vom Server geprüft</translation>
    </message>
    <message>
        <source>it may have changed since; the next run checks it</source>
        <translation>vielleicht seither geändert; der nächste Lauf prüft es</translation>
    </message>
    <message>
        <source>not yet</source>
        <translation>noch nicht</translation>
    </message>
    <message>
        <source>There is no such file</source>
        <translation>Eine solche Datei gibt es nicht</translation>
    </message>
    <message>
        <source>It is no longer on this computer</source>
        <translation>Es ist nicht mehr auf diesem Computer</translation>
    </message>
    <message>
        <source>Found by a run</source>
        <translation>Von einem Lauf gefunden</translation>
    </message>
    <message>
        <source>not in this version; the next run sends it</source>
        <translation>nicht in dieser Fassung; der nächste Lauf sendet sie</translation>
    </message>
    <message>
        <source>not yet; the next run continues here</source>
        <translation>noch nicht; der nächste Lauf macht hier weiter</translation>
    </message>
    <message>
        <source>stored with other files in the archive %1</source>
        <translation>mit anderen Dateien im Archiv %1 gespeichert</translation>
    </message>
    <message>
        <source>It is not in the data folder, and was never added in this window.</source>
        <translation>Es liegt nicht im Datenordner und wurde nie in diesem Fenster hinzugefügt.</translation>
    </message>
    <message>
        <source>No run has found it. It may be new, or excluded by the layout.</source>
        <translation>Kein Lauf hat es gefunden. Es ist vielleicht neu oder durch den Aufbau ausgeschlossen.</translation>
    </message>
    <message>
        <source>It is neither on this computer nor in the list of sent files.</source>
        <translation>Es ist weder auf diesem Computer noch in der Liste gesendeter Dateien.</translation>
    </message>
    <message>
        <source>No: as far as is known, it exists only on this computer</source>
        <translation>Nein: Soweit bekannt, gibt es das nur auf diesem Computer</translation>
    </message>
    <message>
        <source>The server had a verified copy when it was last checked.</source>
        <translation>Der Server hatte bei der letzten Abfrage eine geprüfte Kopie.</translation>
    </message>
    <message>
        <source>As far as is known, the server has no verified copy.</source>
        <translation>Soweit bekannt, hat der Server keine geprüfte Kopie davon.</translation>
    </message>
    <message>
        <source>It was safe when the server was last checked</source>
        <translation>Es war sicher, als der Server zuletzt abgefragt wurde</translation>
    </message>
    <message>
        <source>Use Check now to find out whether you may delete it.</source>
        <translation>Mit „Jetzt prüfen“ erfahren Sie, ob Sie es löschen dürfen.</translation>
    </message>
    <message>
        <source>No: it has changed since it was sent</source>
        <translation>Nein: Es hat sich seit dem Senden geändert</translation>
    </message>
    <message>
        <source>No: it may have changed since it was verified</source>
        <translation>Nein: Es hat sich seit der Prüfung vielleicht geändert</translation>
    </message>
    <message>
        <source>No: it is not on the server</source>
        <translation>Nein: Es ist nicht auf dem Server</translation>
    </message>
    <message>
        <source>It cannot be read now</source>
        <translation>Es kann gerade nicht gelesen werden</translation>
    </message>
    <message>
        <source>The next run sends the current version.</source>
        <translation>Der nächste Lauf sendet die aktuelle Fassung.</translation>
    </message>
    <message>
        <source>The next run checks it, and sends it if it has changed.</source>
        <translation>Der nächste Lauf prüft es und sendet es, wenn es sich geändert hat.</translation>
    </message>
    <message numerus="yes">
        <source>No: %Ln file(s) in it are not safe yet</source>
        <translation>
            <numerusform>Nein: %Ln Datei darin ist noch nicht sicher</numerusform>
            <numerusform>Nein: %Ln Dateien darin sind noch nicht sicher</numerusform>
        </translation>
    </message>
    <message>
        <source>Use Check now to find out which of the others you may delete.</source>
        <translation>Mit „Jetzt prüfen“ erfahren Sie, welche der anderen Sie löschen dürfen.</translation>
    </message>
    <message>
        <source>All files that runs found in it were safe when the server was last checked</source>
        <translation>Alle Dateien, die Läufe darin gefunden haben, waren sicher, als der Server zuletzt abgefragt wurde</translation>
    </message>
    <message numerus="yes">
        <source>No: %Ln file(s) must be kept</source>
        <translation>
            <numerusform>Nein: %Ln Datei muss bleiben</numerusform>
            <numerusform>Nein: %Ln Dateien müssen bleiben</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) can be deleted. The first one to keep is %1: %2</source>
        <translation>
            <numerusform>%Ln Datei kann gelöscht werden. Die erste, die bleiben muss, ist %1: %2</numerusform>
            <numerusform>%Ln Dateien können gelöscht werden. Die erste, die bleiben muss, ist %1: %2</numerusform>
        </translation>
    </message>
    <message>
        <source>No: the server has an earlier version</source>
        <translation>Nein: Der Server hat einen früheren Stand davon</translation>
    </message>
    <message>
        <source>No: the server has not verified it yet</source>
        <translation>Nein: Der Server hat es noch nicht geprüft</translation>
    </message>
    <message>
        <source>Check that its drive is connected, and that you may read it.</source>
        <translation>Prüfen Sie, ob das Laufwerk verbunden ist und ob Sie es lesen dürfen.</translation>
    </message>
    <message>
        <source>There are no files in it</source>
        <translation>Es sind keine Dateien darin</translation>
    </message>
    <message>
        <source>Yes, you may delete it</source>
        <translation>Ja, Sie dürfen es löschen</translation>
    </message>
    <message>
        <source>The server has a verified copy with the same size and checksum, and the local file was read again (%1). Free space lets the server verify its copy again before it deletes.</source>
        <translation>Der Server hat eine geprüfte Kopie mit gleicher Größe und Prüfsumme, und die lokale Datei wurde noch einmal gelesen (%1). „Platz schaffen“ lässt den Server seine Kopie vor dem Löschen noch einmal prüfen.</translation>
    </message>
    <message numerus="yes">
        <source>Yes, you may delete all %Ln file(s)</source>
        <translation>
            <numerusform>Ja, Sie dürfen die %Ln Datei löschen</numerusform>
            <numerusform>Ja, Sie dürfen alle %Ln Dateien löschen</numerusform>
        </translation>
    </message>
    <message>
        <source>The server has a verified copy of each, with the same size and checksum, and the local files were read again (%1). Free space lets the server verify its copies again before it deletes.</source>
        <translation>Der Server hat von jeder eine geprüfte Kopie mit gleicher Größe und Prüfsumme, und die lokalen Dateien wurden noch einmal gelesen (%1). „Platz schaffen“ lässt den Server seine Kopien vor dem Löschen noch einmal prüfen.</translation>
    </message>
    <message>
        <source>No: keep it</source>
        <translation>Nein: Behalten Sie es</translation>
    </message>
</context>
<context>
    <name>words</name>
    <message>
        <source>%1/s</source>
        <translation>%1/s</translation>
    </message>
    <message>
        <source>%1 s</source>
        <translation>%1 s</translation>
    </message>
    <message>
        <source>%1 min</source>
        <translation>%1 min</translation>
    </message>
    <message>
        <source>%1 h %2 min</source>
        <translation>%1 h %2 min</translation>
    </message>
    <message>
        <source>%1 days</source>
        <translation>%1 Tage</translation>
    </message>
    <message>
        <source>today %1</source>
        <translation>heute %1</translation>
    </message>
    <message>
        <source>yesterday %1</source>
        <translation>gestern %1</translation>
    </message>
    <message>
        <source>tomorrow %1</source>
        <translation>morgen %1</translation>
    </message>
</context>
</TS>
