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
        <source>&amp;Eject</source>
        <translation>Aus&amp;werfen</translation>
    </message>
    <message>
        <source>Show &amp;receipt</source>
        <translation>&amp;Beleg zeigen</translation>
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
        <source>%1 (%2)</source>
        <comment>a rate, and an earlier one</comment>
        <translation>%1 (%2)</translation>
    </message>
    <message>
        <source>Speed of each part alone, and of all together</source>
        <translation>Geschwindigkeit jeder Stufe allein und aller zusammen</translation>
    </message>
    <message>
        <source>%1, the slowest</source>
        <translation>%1, am langsamsten</translation>
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
        <source>; this is the slowest</source>
        <translation>; das ist am langsamsten</translation>
    </message>
</context>
<context>
    <name>BucketStep</name>
    <message>
        <source>Which bucket?</source>
        <translation>Welcher Bucket?</translation>
    </message>
    <message>
        <source>Its access key is found as the AWS tools find it.</source>
        <translation>Sein Zugriffsschlüssel wird so gefunden, wie ihn die Werkzeuge von AWS finden.</translation>
    </message>
    <message>
        <source>&amp;Address</source>
        <translation>&amp;Adresse</translation>
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
    <name>ConnectionRemedy</name>
    <message>
        <source>T&amp;rust this host</source>
        <translation>Diesem Rechner &amp;vertrauen</translation>
    </message>
    <message>
        <source>&amp;Copy</source>
        <translation>&amp;Kopieren</translation>
    </message>
    <message>
        <source>This is the first connection to %1. Compare the fingerprint of its key with the one that its administrator names:</source>
        <translation>Dies ist die erste Verbindung mit %1. Vergleichen Sie den Fingerabdruck seines Schlüssels mit dem, den seine Administration nennt:</translation>
    </message>
    <message>
        <source>Add this line to the file .ssh/authorized_keys of that account, or send it to the administrator; then test again:</source>
        <translation>Fügen Sie diese Zeile in die Datei .ssh/authorized_keys dieses Kontos ein, oder senden Sie sie an die Administration; testen Sie dann noch einmal:</translation>
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
        <source>Copy as &amp;text</source>
        <translation>Als &amp;Text kopieren</translation>
    </message>
    <message>
        <source>Steps of the test</source>
        <translation>Schritte des Tests</translation>
    </message>
    <message>
        <source>Testing the connection</source>
        <translation>Die Verbindung wird getestet</translation>
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
    <name>DayBars</name>
    <message>
        <source>Sent in the last %1 days: %2</source>
        <translation>In den letzten %1 Tagen gesendet: %2</translation>
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
    <name>DestinationCheck</name>
    <message>
        <source>Read all files there and compare their checksums</source>
        <translation>Alle Dateien dort lesen und ihre Prüfsummen vergleichen</translation>
    </message>
    <message>
        <source>Connecting</source>
        <translation>Verbindung wird aufgebaut</translation>
    </message>
    <message numerus="yes">
        <source>Reading the list: %Ln file(s)</source>
        <translation>
            <numerusform>Liste wird gelesen: %Ln Datei</numerusform>
            <numerusform>Liste wird gelesen: %Ln Dateien</numerusform>
        </translation>
    </message>
    <message>
        <source>Checked %1 of %2 files, %3 of %4</source>
        <translation>%1 von %2 Dateien geprüft, %3 von %4</translation>
    </message>
    <message numerus="yes">
        <source>Looking for other files: %Ln seen</source>
        <translation>
            <numerusform>Suche nach anderen Dateien: %Ln gesehen</numerusform>
            <numerusform>Suche nach anderen Dateien: %Ln gesehen</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>and %Ln more</source>
        <translation>
            <numerusform>und %Ln weitere</numerusform>
            <numerusform>und %Ln weitere</numerusform>
        </translation>
    </message>
    <message>
        <source>The files there were not checked since they arrived.</source>
        <translation>Die Dateien dort wurden seit ihrer Ankunft nicht geprüft.</translation>
    </message>
    <message>
        <source>The next run sends or lists again what is still on this computer.</source>
        <translation>Der nächste Lauf sendet oder verzeichnet wieder, was noch auf diesem Computer ist.</translation>
    </message>
    <message>
        <source>Missing: %1</source>
        <translation>Fehlt: %1</translation>
    </message>
    <message>
        <source>Other bytes: %1</source>
        <translation>Andere Bytes: %1</translation>
    </message>
    <message>
        <source>Cannot be read: %1</source>
        <translation>Nicht lesbar: %1</translation>
    </message>
    <message numerus="yes">
        <source>%Ln missing</source>
        <translation>
            <numerusform>%Ln fehlt</numerusform>
            <numerusform>%Ln fehlen</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln with other bytes</source>
        <translation>
            <numerusform>%Ln mit anderen Bytes</numerusform>
            <numerusform>%Ln mit anderen Bytes</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln that cannot be read</source>
        <translation>
            <numerusform>%Ln nicht lesbar</numerusform>
            <numerusform>%Ln nicht lesbar</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) checked</source>
        <translation>
            <numerusform>%Ln Datei, geprüft</numerusform>
            <numerusform>%Ln Dateien, geprüft</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1 of %Ln file(s) checked</source>
        <translation>
            <numerusform>%1 von %Ln Datei, geprüft</numerusform>
            <numerusform>%1 von %Ln Dateien, geprüft</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 %2: all as they were sent.</source>
        <translation>%1 %2: alle wie gesendet.</translation>
    </message>
    <message>
        <source>%1 by ETags %2: all as they were sent.</source>
        <translation>%1 anhand der ETags %2: alle wie gesendet.</translation>
    </message>
    <message>
        <source>%1 %2: %3.</source>
        <translation>%1 %2: %3.</translation>
    </message>
    <message numerus="yes">
        <source>%Ln part(s) of their list damaged</source>
        <translation>
            <numerusform>%Ln Teil ihrer Liste beschädigt</numerusform>
            <numerusform>%Ln Teile ihrer Liste beschädigt</numerusform>
        </translation>
    </message>
    <message>
        <source>The check was not completed.</source>
        <translation>Die Prüfung wurde nicht abgeschlossen.</translation>
    </message>
    <message>
        <source>Proved restorable %1: %2 of %3 files came back as they were sent.</source>
        <translation>Wiederherstellung geprüft %1: %2 von %3 Dateien kamen zurück, wie sie gesendet wurden.</translation>
    </message>
    <message>
        <source>Restore test %1: only %2 of %3 files came back as they were sent.</source>
        <translation>Wiederherstellung geprüft %1: Nur %2 von %3 Dateien kamen zurück, wie sie gesendet wurden.</translation>
    </message>
    <message>
        <source>The test was not completed.</source>
        <translation>Die Prüfung wurde nicht beendet.</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Anhalten</translation>
    </message>
    <message>
        <source>Check now</source>
        <translation>Jetzt prüfen</translation>
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
    <message>
        <source>Double-click the name of a folder there to change it.</source>
        <translation>Doppelklicken Sie auf den Namen eines Ordners am Ziel, um ihn zu ändern.</translation>
    </message>
    <message numerus="yes">
        <source>Upload %Ln folder(s)</source>
        <translation>
            <numerusform>%Ln Ordner hochladen</numerusform>
            <numerusform>%Ln Ordner hochladen</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Upload %Ln file(s)</source>
        <translation>
            <numerusform>%Ln Datei hochladen</numerusform>
            <numerusform>%Ln Dateien hochladen</numerusform>
        </translation>
    </message>
    <message>
        <source>Upload %1 and %2</source>
        <translation>%1 und %2 hochladen</translation>
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
        <source>Files and folders with remarks</source>
        <translation>Dateien und Ordner mit Anmerkungen</translation>
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
        <source>Set &amp;up…</source>
        <translation>Einri&amp;chten …</translation>
    </message>
    <message>
        <source>Try the de&amp;mo</source>
        <translation>De&amp;mo ausprobieren</translation>
    </message>
    <message>
        <source>Upload sample data to a server inside this program</source>
        <translation>Beispieldaten zu einem Server innerhalb dieses Programms hochladen</translation>
    </message>
    <message>
        <source>Your data, safe and verified</source>
        <translation>Ihre Daten, sicher und geprüft</translation>
    </message>
    <message>
        <source>This program sends the files of an instrument to a MyTardis server, a computer with SSH or a folder, and verifies that every byte arrived. The set-up takes a few short steps.</source>
        <translation>Dieses Programm sendet die Dateien eines Instruments an einen MyTardis-Server, an einen Computer mit SSH oder in einen Ordner und prüft, dass jedes Byte angekommen ist. Das Einrichten dauert wenige kurze Schritte.</translation>
    </message>
    <message>
        <source>Missing and locked by %1: %2. Ask your administrator to enter it there.</source>
        <translation>Fehlt und ist gesperrt durch %1: %2. Bitten Sie Ihren Administrator, es dort einzutragen.</translation>
    </message>
</context>
<context>
    <name>FoldedText</name>
    <message>
        <source>Details</source>
        <translation>Details</translation>
    </message>
</context>
<context>
    <name>FolderStep</name>
    <message>
        <source>Which folder?</source>
        <translation>Welcher Ordner?</translation>
    </message>
    <message>
        <source>A folder of another disk or of a network drive.</source>
        <translation>Ein Ordner auf einem anderen Datenträger oder auf einem Netzlaufwerk.</translation>
    </message>
    <message>
        <source>C&amp;hoose…</source>
        <translation>&amp;Auswählen …</translation>
    </message>
    <message>
        <source>&amp;Folder</source>
        <translation>&amp;Ordner</translation>
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
        <source>Experiment named after the instrument</source>
        <translation>Nach dem Instrument benanntes Experiment</translation>
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
        <source>Save a receipt…</source>
        <translation>Beleg speichern …</translation>
    </message>
    <message>
        <source>Get it back…</source>
        <translation>Zurückholen …</translation>
    </message>
    <message>
        <source>Only this one now</source>
        <translation>Jetzt nur diesen</translation>
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
        <source>Send files of this folder that were left out or failed in this run</source>
        <translation>Dateien dieses Ordners senden, die in diesem Lauf zurückgestellt wurden oder fehlgeschlagen sind</translation>
    </message>
    <message>
        <source>Select a dataset, or a folder in one, to list its files or to open it.</source>
        <translation>Wählen Sie einen Datensatz oder einen Ordner darin aus, um die Dateien aufzulisten oder ihn zu öffnen.</translation>
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
        <source>The folder has no files yet.</source>
        <translation>Der Ordner enthält noch keine Dateien.</translation>
    </message>
    <message>
        <source>Folders and files arrive there as they are here.</source>
        <translation>Ordner und Dateien kommen dort so an, wie sie hier sind.</translation>
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
    <name>Form</name>
    <message>
        <source>More settings</source>
        <translation>Weitere Einstellungen</translation>
    </message>
</context>
<context>
    <name>FormerKeyQuestion</name>
    <message>
        <source>Use the stored key</source>
        <translation>Abgelegten Schlüssel verwenden</translation>
    </message>
    <message>
        <source>Use the API key that is stored for %1 also for %2?</source>
        <translation>Den API-Schlüssel, der für %1 abgelegt ist, auch für %2 verwenden?</translation>
    </message>
    <message>
        <source>The key gives access to the account, and is sent to the new address from then on. Do this only if both are addresses of the same server.</source>
        <translation>Der Schlüssel gibt Zugang zum Konto und wird von da an an die neue Adresse gesendet. Tun Sie das nur, wenn beides Adressen desselben Servers sind.</translation>
    </message>
    <message>
        <source>&amp;Use the key</source>
        <translation>Schlüssel &amp;verwenden</translation>
    </message>
    <message>
        <source>&amp;Cancel</source>
        <translation>A&amp;bbrechen</translation>
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
        <translation>Der Server hat von jeder eine geprüfte Kopie mit gleicher Größe und Prüfsumme. Sie wird dort noch einmal geprüft, bevor etwas gelöscht wird. Ordner bleiben. Gelöschte Dateien kommen nicht in den Papierkorb.</translation>
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
    <name>GetDialog</name>
    <message>
        <source>Get it back</source>
        <translation>Zurückholen</translation>
    </message>
    <message>
        <source>Where should it go?</source>
        <translation>Wohin soll es?</translation>
    </message>
    <message>
        <source>To its own &amp;place, as far as it is missing there</source>
        <translation>An seinen &amp;Platz, soweit es dort fehlt</translation>
    </message>
    <message>
        <source>To &amp;another folder:</source>
        <translation>In einen &amp;anderen Ordner:</translation>
    </message>
    <message>
        <source>&amp;Choose…</source>
        <translation>A&amp;uswählen …</translation>
    </message>
    <message>
        <source>What did not come back</source>
        <translation>Was nicht zurückkam</translation>
    </message>
    <message>
        <source>&amp;Replace…</source>
        <translation>&amp;Ersetzen …</translation>
    </message>
    <message>
        <source>&amp;Get it back</source>
        <translation>&amp;Zurückholen</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Progress</source>
        <translation>Fortschritt</translation>
    </message>
    <message>
        <source>Target folder</source>
        <translation>Zielordner</translation>
    </message>
    <message>
        <source>Connecting</source>
        <translation>Verbindung wird hergestellt</translation>
    </message>
    <message numerus="yes">
        <source>Reading the list: %Ln file(s)</source>
        <translation>
            <numerusform>Liste wird gelesen: %Ln Datei</numerusform>
            <numerusform>Liste wird gelesen: %Ln Dateien</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 of %2 files, %3 of %4</source>
        <translation>%1 von %2 Dateien, %3 von %4</translation>
    </message>
    <message>
        <source>Nothing came back</source>
        <translation>Nichts kam zurück</translation>
    </message>
    <message>
        <source>It was stopped. The next time, it continues.</source>
        <translation>Es wurde angehalten. Beim nächsten Mal geht es weiter.</translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s), %1, are back in %2</source>
        <translation>
            <numerusform>%Ln Datei, %1, ist zurück in %2</numerusform>
            <numerusform>%Ln Dateien, %1, sind zurück in %2</numerusform>
        </translation>
    </message>
    <message>
        <source>Each was compared with what was proven.</source>
        <translation>Jede wurde mit dem verglichen, was bewiesen war.</translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) were here already.</source>
        <translation>
            <numerusform>%Ln Datei war schon hier.</numerusform>
            <numerusform>%Ln Dateien waren schon hier.</numerusform>
        </translation>
    </message>
    <message>
        <source>Everything was here already</source>
        <translation>Alles war schon hier</translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) did not come back:</source>
        <translation>
            <numerusform>%Ln Datei kam nicht zurück:</numerusform>
            <numerusform>%Ln Dateien kamen nicht zurück:</numerusform>
        </translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
</context>
<context>
    <name>GetProblemsModel</name>
    <message>
        <source>File</source>
        <translation>Datei</translation>
    </message>
    <message>
        <source>Reason</source>
        <translation>Grund</translation>
    </message>
</context>
<context>
    <name>Headline</name>
    <message>
        <source>Another program or the service executes this run.</source>
        <translation>Ein anderes Programm oder der Dienst führt diesen Lauf aus.</translation>
    </message>
    <message>
        <source>Next automatic try: %1.</source>
        <translation>Nächster automatischer Versuch: %1.</translation>
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
        <source>It takes longer, since the server needs more time for each file.</source>
        <translation>Es dauert länger, weil der Server für jede Datei mehr Zeit braucht.</translation>
    </message>
    <message>
        <source>It takes longer, since the files that are left need more time.</source>
        <translation>Es dauert länger, weil die übrigen Dateien mehr Zeit brauchen.</translation>
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
        <source>Chec&amp;k key…</source>
        <translation>Schlüsse&amp;l prüfen …</translation>
    </message>
    <message>
        <source>Start agai&amp;n</source>
        <translation>Er&amp;neut starten</translation>
    </message>
    <message>
        <source>Open settin&amp;gs…</source>
        <translation>Einstellun&amp;gen öffnen …</translation>
    </message>
    <message>
        <source>Check key and approva&amp;l…</source>
        <translation>Schlüsse&amp;l und Freigabe prüfen …</translation>
    </message>
    <message>
        <source>Resu&amp;me</source>
        <translation>Wei&amp;ter</translation>
    </message>
    <message>
        <source>You can start already; until then, uploads are slower.</source>
        <translation>Sie können schon starten; bis dahin geht das Hochladen langsamer.</translation>
    </message>
    <message>
        <source>Uploads get faster once your facility approves this computer.</source>
        <translation>Das Hochladen wird schneller, sobald Ihre Einrichtung diesen Computer zulässt.</translation>
    </message>
    <message>
        <source>The next run continues where it stopped.</source>
        <translation>Der nächste Lauf macht dort weiter, wo er aufgehört hat.</translation>
    </message>
    <message>
        <source>Pa&amp;use</source>
        <translation>Pa&amp;use</translation>
    </message>
    <message>
        <source>Conti&amp;nue</source>
        <translation>Fo&amp;rtsetzen</translation>
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
        <source>**Start** sends what the server lacks. Or let it happen: *Settings*, *Schedule* has fixed times, and *with new files*.</source>
        <translation>**Start** sendet, was dem Server fehlt. Von selbst geschieht es nach einem Zeitplan (*Einstellungen*, *Zeitplan*): zu festen Zeiten oder bei neuen Dateien.</translation>
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
        <source>It is built on:</source>
        <translation>Es baut auf:</translation>
    </message>
    <message>
        <source>&amp;Copy</source>
        <translation>&amp;Kopieren</translation>
    </message>
    <message>
        <source>**Set up** once: where the data goes, and the data folder. The first start opens the set-up; later, it is in the settings.</source>
        <translation>**Einmal einrichten**: das Ziel der Daten und den Datenordner. Der erste Start öffnet die Einrichtung, später ist sie in den Einstellungen.</translation>
    </message>
    <message>
        <source>**Drop** folders or files on the window to upload what is elsewhere; choose what they become there.</source>
        <translation>**Ziehen** Sie Ordner oder Dateien auf das Fenster, um hochzuladen, was anderswo liegt, und wählen Sie, was am Ziel daraus wird.</translation>
    </message>
    <message>
        <source>Uploads research data and verifies that every byte arrived.</source>
        <translation>Lädt Forschungsdaten hoch und prüft, dass jedes Byte angekommen ist.</translation>
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
    <name>HoldBackToast</name>
    <message numerus="yes">
        <source>%Ln file(s) are held back.</source>
        <translation>
            <numerusform>%Ln Datei ist zurückgestellt.</numerusform>
            <numerusform>%Ln Dateien sind zurückgestellt.</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 is held back.</source>
        <translation>%1 ist zurückgestellt.</translation>
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
        <source>The staging host %1 identifies itself with another key than those in the setting “Trusted host keys”: trust it only if your administrator confirms this fingerprint.</source>
        <translation>Der Staging-Host %1 weist sich mit einem anderen Schlüssel aus als denen in der Einstellung „Vertraute Rechnerschlüssel“: Vertrauen Sie ihm nur, wenn Ihr Administrator diesen Fingerabdruck bestätigt.</translation>
    </message>
    <message>
        <source>The staging host %1 identifies itself with another key than those that the server names: trust it only if your administrator confirms this fingerprint.</source>
        <translation>Der Staging-Host %1 weist sich mit einem anderen Schlüssel aus als denen, die der Server nennt: Vertrauen Sie ihm nur, wenn Ihr Administrator diesen Fingerabdruck bestätigt.</translation>
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
    <name>HostStep</name>
    <message>
        <source>Which computer?</source>
        <translation>Welcher Computer?</translation>
    </message>
    <message>
        <source>Your SSH configuration, keys and agent are used, as ssh uses them. A name from your SSH configuration is enough as the address.</source>
        <translation>Ihre SSH-Konfiguration, Ihre Schlüssel und Ihr Agent werden verwendet, wie ssh sie verwendet. Als Adresse genügt ein Name aus Ihrer SSH-Konfiguration.</translation>
    </message>
    <message>
        <source>The keys that ssh uses, or a new one</source>
        <translation>Die Schlüssel, die ssh verwendet, oder ein neuer</translation>
    </message>
    <message>
        <source>C&amp;hoose…</source>
        <translation>Auswä&amp;hlen …</translation>
    </message>
    <message>
        <source>&amp;Address</source>
        <translation>&amp;Adresse</translation>
    </message>
    <message>
        <source>&amp;Folder there</source>
        <translation>&amp;Ordner dort</translation>
    </message>
    <message>
        <source>&amp;Key file (optional)</source>
        <translation>Sch&amp;lüsseldatei (optional)</translation>
    </message>
    <message>
        <source>Private key</source>
        <translation>Privater Schlüssel</translation>
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
    <name>KindStep</name>
    <message>
        <source>Where should the data go?</source>
        <translation>Wohin sollen die Daten gehen?</translation>
    </message>
    <message>
        <source>Every file is verified there after it has arrived, whatever you choose.</source>
        <translation>Jede Datei wird dort nach ihrer Ankunft geprüft, was immer Sie wählen.</translation>
    </message>
    <message>
        <source>To a &amp;MyTardis server</source>
        <translation>An einen &amp;MyTardis-Server</translation>
    </message>
    <message>
        <source>The server lists the files of each dataset, for its owner.</source>
        <translation>Der Server führt die Dateien jedes Datensatzes auf, für dessen Eigentümer.</translation>
    </message>
    <message>
        <source>To a &amp;computer with SSH</source>
        <translation>An einen Com&amp;puter mit SSH</translation>
    </message>
    <message>
        <source>A storage host, a cluster or a NAS on which you have an account. Nothing has to be installed there.</source>
        <translation>Ein Speicherrechner, ein Cluster oder ein NAS, auf dem Sie ein Konto haben. Dort muss nichts installiert werden.</translation>
    </message>
    <message>
        <source>To a &amp;folder or network drive</source>
        <translation>In einen &amp;Ordner oder auf ein Netzlaufwerk</translation>
    </message>
    <message>
        <source>Another disk, or a share that is mounted on this computer.</source>
        <translation>Ein anderer Datenträger oder eine Freigabe, die auf diesem Computer eingehängt ist.</translation>
    </message>
    <message>
        <source>To a &amp;bucket (S3)</source>
        <translation>In einen &amp;Bucket (S3)</translation>
    </message>
    <message>
        <source>Object storage of a cloud, or of your own institution.</source>
        <translation>Objektspeicher einer Cloud oder Ihrer eigenen Institution.</translation>
    </message>
</context>
<context>
    <name>LeftModel</name>
    <message>
        <source>File or folder</source>
        <translation>Datei oder Ordner</translation>
    </message>
    <message>
        <source>Remark</source>
        <translation>Anmerkung</translation>
    </message>
</context>
<context>
    <name>LogModel</name>
    <message>
        <source>Start was chosen.</source>
        <translation>„Start“ wurde gewählt.</translation>
    </message>
    <message>
        <source>Pause was chosen.</source>
        <translation>„Pause“ wurde gewählt.</translation>
    </message>
    <message>
        <source>Resume was chosen.</source>
        <translation>„Weiter“ wurde gewählt.</translation>
    </message>
    <message>
        <source>Stop was chosen.</source>
        <translation>„Anhalten“ wurde gewählt.</translation>
    </message>
    <message>
        <source>Files were held back.</source>
        <translation>Dateien wurden zurückgestellt.</translation>
    </message>
    <message>
        <source>Try again was chosen.</source>
        <translation>„Noch einmal versuchen“ wurde gewählt.</translation>
    </message>
    <message>
        <source>Send next was chosen.</source>
        <translation>„Als Nächstes senden“ wurde gewählt.</translation>
    </message>
    <message>
        <source>The number of channels was set.</source>
        <translation>Die Anzahl der Kanäle wurde festgelegt.</translation>
    </message>
    <message>
        <source>The bandwidth limit was set.</source>
        <translation>Die Begrenzung der Bandbreite wurde festgelegt.</translation>
    </message>
    <message>
        <source>Folders or files were added.</source>
        <translation>Ordner oder Dateien wurden hinzugefügt.</translation>
    </message>
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
        <source>A run has started.</source>
        <translation>Ein Lauf hat begonnen.</translation>
    </message>
    <message>
        <source>The run has ended: %1 of %2 files are verified.</source>
        <translation>Der Lauf ist zu Ende: %1 von %2 Dateien sind geprüft.</translation>
    </message>
    <message>
        <source>The run goes on.</source>
        <translation>Der Lauf geht weiter.</translation>
    </message>
    <message>
        <source>Channel %1 to %2 is open.</source>
        <translation>Kanal %1 zu %2 ist offen.</translation>
    </message>
    <message>
        <source>Channel %1 to %2 was lost.</source>
        <translation>Kanal %1 zu %2 ging verloren.</translation>
    </message>
    <message numerus="yes">
        <source>At most %Ln channel(s) are used.</source>
        <translation>
            <numerusform>Höchstens %Ln Kanal wird benutzt.</numerusform>
            <numerusform>Höchstens %Ln Kanäle werden benutzt.</numerusform>
        </translation>
    </message>
    <message>
        <source>The next run is planned for %1.</source>
        <translation>Der nächste Lauf ist für %1 geplant.</translation>
    </message>
    <message>
        <source>No run is planned.</source>
        <translation>Kein Lauf ist geplant.</translation>
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
        <source>Next run with new files</source>
        <translation>Nächster Lauf mit neuen Dateien</translation>
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
    <name>OpenProblems</name>
    <message>
        <source>Needs your attention</source>
        <translation>Braucht Ihre Aufmerksamkeit</translation>
    </message>
    <message numerus="yes">
        <source>and %Ln more kind(s) of problems</source>
        <translation>
            <numerusform>und eine weitere Art von Problemen</numerusform>
            <numerusform>und %Ln weitere Arten von Problemen</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>OutsideNote</name>
    <message numerus="yes">
        <source>%Ln file(s) are in no dataset and stay here: %1</source>
        <translation>
            <numerusform>%Ln Datei liegt in keinem Datensatz und bleibt hier: %1</numerusform>
            <numerusform>%Ln Dateien liegen in keinem Datensatz und bleiben hier: %1</numerusform>
        </translation>
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
    <message>
        <source>(files in no folder)</source>
        <translation>(Dateien in keinem Ordner)</translation>
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
        <source>Folder</source>
        <translation>Ordner</translation>
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
        <source>(files in no folder)</source>
        <translation>(Dateien in keinem Ordner)</translation>
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
        <source>Rep&amp;lace the server&apos;s…</source>
        <translation>Kopie des Servers erse&amp;tzen …</translation>
    </message>
    <message>
        <source>&amp;Keep the server&apos;s</source>
        <translation>&amp;Kopie des Servers behalten</translation>
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
        <source>Choose whether to replace the copies or to keep them: for the selected files, or else for all that are listed.</source>
        <translation>Entscheiden Sie, ob die Kopien ersetzt oder behalten werden: für die ausgewählten Dateien, sonst für alle aufgeführten.</translation>
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
        <source>No run of this window is active.</source>
        <translation>Dieses Fenster führt keinen Lauf aus.</translation>
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
    <message numerus="yes">
        <source>The next run does so for %Ln file(s).</source>
        <translation>
            <numerusform>Der nächste Lauf tut dies für %Ln Datei.</numerusform>
            <numerusform>Der nächste Lauf tut dies für %Ln Dateien.</numerusform>
        </translation>
    </message>
    <message>
        <source>This is not possible for these files now. Start a run first.</source>
        <translation>Das ist für diese Dateien jetzt nicht möglich. Starten Sie zuerst einen Lauf.</translation>
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
    <message>
        <source>What you added is scanned and then uploaded.</source>
        <translation>Was Sie hinzugefügt haben, wird durchsucht und dann hochgeladen.</translation>
    </message>
    <message>
        <source>“%1” is scanned and then uploaded.</source>
        <translation>„%1“ wird durchsucht und dann hochgeladen.</translation>
    </message>
    <message>
        <source>Added</source>
        <translation>Hinzugefügt</translation>
    </message>
    <message>
        <source>Version %1 is available</source>
        <translation>Version %1 ist verfügbar</translation>
    </message>
    <message>
        <source>You have %1. Nothing is installed automatically.</source>
        <translation>Sie haben %1. Nichts wird automatisch installiert.</translation>
    </message>
</context>
<context>
    <name>QueueActions</name>
    <message>
        <source>Send next</source>
        <translation>Als Nächstes senden</translation>
    </message>
    <message>
        <source>Hold back</source>
        <translation>Zurückstellen</translation>
    </message>
    <message>
        <source>Send this before everything else that waits</source>
        <translation>Dies vor allem anderen senden, was wartet</translation>
    </message>
    <message>
        <source>Send the others first. What has arrived of this is kept: the next run continues it, or this one if you choose Send next.</source>
        <translation>Die anderen zuerst senden. Was davon angekommen ist, bleibt: Der nächste Lauf setzt es fort, oder dieser, wenn Sie Als Nächstes senden wählen.</translation>
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
    <name>ReceiptSaver</name>
    <message>
        <source>Web page (*.html)</source>
        <translation>Webseite (*.html)</translation>
    </message>
    <message>
        <source>Text for md5sum -c (*.txt)</source>
        <translation>Text für md5sum -c (*.txt)</translation>
    </message>
    <message>
        <source>Receipt of %1</source>
        <translation>Beleg für %1</translation>
    </message>
    <message>
        <source>Save a receipt</source>
        <translation>Beleg speichern</translation>
    </message>
</context>
<context>
    <name>RecentDatasets</name>
    <message>
        <source>Recent datasets</source>
        <translation>Zuletzt geänderte Datensätze</translation>
    </message>
    <message>
        <source>Recent folders</source>
        <translation>Zuletzt geänderte Ordner</translation>
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
    <name>ReplaceHereQuestion</name>
    <message>
        <source>Replace local files</source>
        <translation>Lokale Dateien ersetzen</translation>
    </message>
    <message numerus="yes">
        <source>Replace %Ln file(s) on this computer?</source>
        <translation>
            <numerusform>%Ln Datei auf diesem Computer ersetzen?</numerusform>
            <numerusform>%Ln Dateien auf diesem Computer ersetzen?</numerusform>
        </translation>
    </message>
    <message>
        <source>Each gets the content that was copied. What is in it now is lost, unless it was copied as well.</source>
        <translation>Jede erhält den Inhalt, der kopiert wurde. Was jetzt in ihr steht, geht verloren, wenn es nicht auch kopiert wurde.</translation>
    </message>
    <message>
        <source>&amp;Replace</source>
        <translation>&amp;Ersetzen</translation>
    </message>
    <message>
        <source>&amp;Cancel</source>
        <translation>&amp;Abbrechen</translation>
    </message>
</context>
<context>
    <name>ReplaceQuestion</name>
    <message>
        <source>Replace the server&apos;s copies</source>
        <translation>Kopien des Servers ersetzen</translation>
    </message>
    <message numerus="yes">
        <source>Replace the server&apos;s copies of %Ln file(s)?</source>
        <translation>
            <numerusform>Die Kopie des Servers von %Ln Datei ersetzen?</numerusform>
            <numerusform>Die Kopien des Servers von %Ln Dateien ersetzen?</numerusform>
        </translation>
    </message>
    <message>
        <source>The next run replaces the verified copies with the files of this computer. Do this only if the files here are right.</source>
        <translation>Der nächste Lauf ersetzt die geprüften Kopien durch die Dateien dieses Computers. Tun Sie das nur, wenn die Dateien hier richtig sind.</translation>
    </message>
    <message>
        <source>&amp;Replace</source>
        <translation>&amp;Ersetzen</translation>
    </message>
    <message>
        <source>&amp;Cancel</source>
        <translation>A&amp;bbrechen</translation>
    </message>
</context>
<context>
    <name>ResultView</name>
    <message>
        <source>&amp;Apply</source>
        <translation>&amp;Anwenden</translation>
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
        <source>T&amp;est:</source>
        <translation>T&amp;est:</translation>
    </message>
    <message>
        <source>Compare &amp;with:</source>
        <translation>&amp;Vergleichen mit:</translation>
    </message>
    <message>
        <source>Details</source>
        <translation>Details</translation>
    </message>
    <message>
        <source>no other</source>
        <translation>keinem anderen</translation>
    </message>
    <message>
        <source>Recommendations, faster twice:</source>
        <translation>Empfehlungen, zweimal schneller:</translation>
    </message>
    <message>
        <source>No other setting that was tried was faster twice.</source>
        <translation>Keine andere Einstellung, die probiert wurde, war zweimal schneller.</translation>
    </message>
    <message>
        <source>Tried, not faster twice:</source>
        <translation>Versucht, nicht zweimal schneller:</translation>
    </message>
    <message>
        <source>Not measured:</source>
        <translation>Nicht gemessen:</translation>
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
    <message>
        <source>Select files to open their folder, find them, or send them again.</source>
        <translation>Wählen Sie Dateien aus, um ihren Ordner zu öffnen, sie zu finden oder erneut zu senden.</translation>
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
    <name>SecretRow</name>
    <message>
        <source>It is stored in the system&apos;s keyring, or in a file that only you can read, and never in the settings.</source>
        <translation>Er wird im Schlüsselbund des Systems oder in einer Datei gespeichert, die nur Sie lesen können, und nie in den Einstellungen.</translation>
    </message>
    <message>
        <source>API key</source>
        <translation>API-Schlüssel</translation>
    </message>
    <message>
        <source>The key of the account, from its page on the server.</source>
        <translation>Der Schlüssel des Kontos, von dessen Seite auf dem Server.</translation>
    </message>
    <message>
        <source>S3 secret access key</source>
        <translation>Geheimer S3-Zugriffsschlüssel</translation>
    </message>
    <message>
        <source>The secret of the S3 access key, from the administrator of the object storage. Each access key and S3 address has its own.</source>
        <translation>Der geheime Teil des S3-Zugriffsschlüssels, vom Administrator des Objektspeichers. Zu jedem Zugriffsschlüssel und jeder S3-Adresse gehört ein eigener.</translation>
    </message>
    <message>
        <source>Use the key stored for %1…</source>
        <translation>Schlüssel verwenden, der für %1 abgelegt ist …</translation>
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
        <source>Storage: %1</source>
        <translation>Speicherort: %1</translation>
    </message>
    <message>
        <source>Forget: %1</source>
        <translation>Vergessen: %1</translation>
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
        <source>Looking up where it is stored</source>
        <translation>Der Speicherort wird ermittelt</translation>
    </message>
    <message>
        <source>Needed before a run can start</source>
        <translation>Nötig, bevor ein Lauf beginnen kann</translation>
    </message>
    <message>
        <source>Without a keyring, it can be stored in a file.</source>
        <translation>Ohne Schlüsselbund kann er in einer Datei abgelegt werden.</translation>
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
    <name>SentBar</name>
    <message>
        <source>Sent</source>
        <translation>Gesendet</translation>
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
    <message>
        <source>Test the connection with these settings, step by step</source>
        <translation>Die Verbindung mit diesen Einstellungen Schritt für Schritt testen</translation>
    </message>
    <message numerus="yes">
        <source>%Ln setting(s) must be corrected first</source>
        <translation>
            <numerusform>%Ln Einstellung muss erst berichtigt werden</numerusform>
            <numerusform>%Ln Einstellungen müssen erst berichtigt werden</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln change(s) from last time were not saved</source>
        <translation>
            <numerusform>%Ln Änderung vom letzten Mal wurde nicht gespeichert</numerusform>
            <numerusform>%Ln Änderungen vom letzten Mal wurden nicht gespeichert</numerusform>
        </translation>
    </message>
    <message>
        <source>The keyring cannot be used, and nothing was saved. Unlock it, or choose to keep the key in a file.</source>
        <translation>Der Schlüsselbund ist nicht verwendbar, und nichts wurde gespeichert. Entsperren Sie ihn, oder lassen Sie den Schlüssel in einer Datei ablegen.</translation>
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
        <source>Destination</source>
        <translation>Ziel</translation>
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
        <source>Address</source>
        <translation>Adresse</translation>
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
        <source>Folder there</source>
        <translation>Ordner am Ziel</translation>
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
        <source>Find out how fast each part of an upload is, and which settings are faster. A test takes a minute at most, and leaves nothing on the server.</source>
        <translation>Finden Sie heraus, wie schnell jede Stufe eines Uploads ist und welche Einstellungen schneller sind. Ein Test dauert höchstens eine Minute und lässt nichts auf dem Server zurück.</translation>
    </message>
    <message>
        <source>Measuring each part of an upload…</source>
        <translation>Jede Stufe des Weges zum Server wird gemessen …</translation>
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
    <name>StartButton</name>
    <message>
        <source>Start now</source>
        <translation>Jetzt starten</translation>
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
        <source>Save a receipt…</source>
        <translation>Beleg speichern …</translation>
    </message>
    <message>
        <source>Get it back…</source>
        <translation>Zurückholen …</translation>
    </message>
    <message>
        <source>Copy checksum</source>
        <translation>Prüfsumme kopieren</translation>
    </message>
    <message>
        <source>An earlier version (%1) is kept until %2.</source>
        <translation>Ein früherer Stand (%1) wird bis %2 aufbewahrt.</translation>
    </message>
    <message>
        <source>It was brought back to this computer: %1.</source>
        <translation>Auf diesen Computer zurückgeholt: %1.</translation>
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
        <source>Folder</source>
        <translation>Ordner</translation>
    </message>
    <message>
        <source>Changed</source>
        <translation>Geändert</translation>
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
    <message numerus="yes">
        <source>%Ln upload(s)</source>
        <translation>
            <numerusform>%Ln Upload</numerusform>
            <numerusform>%Ln Uploads</numerusform>
        </translation>
    </message>
    <message>
        <source>You added them, and they are not finished.</source>
        <translation>Sie haben sie hinzugefügt, und sie sind nicht abgeschlossen.</translation>
    </message>
    <message>
        <source>Not known yet</source>
        <translation>Noch unbekannt</translation>
    </message>
    <message>
        <source>The first run finds out.</source>
        <translation>Der erste Lauf stellt es fest.</translation>
    </message>
    <message>
        <source>Different from the server&apos;s copies, which you kept.</source>
        <translation>Verschieden von den Kopien des Servers, die Sie behalten haben.</translation>
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
        <source>; %Ln more file(s) differ from the server&apos;s copies, which you kept</source>
        <translation>
            <numerusform>; %Ln weitere Datei weicht von der Kopie des Servers ab, die Sie behalten haben</numerusform>
            <numerusform>; %Ln weitere Dateien weichen von den Kopien des Servers ab, die Sie behalten haben</numerusform>
        </translation>
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
        <source>Except for %Ln file(s) that were left out.</source>
        <translation>
            <numerusform>Bis auf %Ln Datei, die ausgelassen wurde.</numerusform>
            <numerusform>Bis auf %Ln Dateien, die ausgelassen wurden.</numerusform>
        </translation>
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
        <source>It ended early, and no file was sent completely.</source>
        <translation>Er endete vorzeitig, und keine Datei wurde vollständig gesendet.</translation>
    </message>
    <message>
        <source>No file was sent completely, and not all files are safe.</source>
        <translation>Keine Datei wurde vollständig gesendet, und nicht alle Dateien sind sicher.</translation>
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
        <source>A run starts when they no longer change, or %1.</source>
        <translation>Ein Lauf beginnt, wenn sie sich nicht mehr ändern, oder %1.</translation>
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
    <name>TargetStep</name>
    <message>
        <source>&amp;Test</source>
        <translation>&amp;Testen</translation>
    </message>
    <message>
        <source>Steps of the test</source>
        <translation>Schritte des Tests</translation>
    </message>
    <message>
        <source>Nothing is left there by the test.</source>
        <translation>Der Test lässt dort nichts zurück.</translation>
    </message>
    <message>
        <source>The address %1.</source>
        <translation>Die Adresse %1.</translation>
    </message>
    <message>
        <source>Testing…</source>
        <translation>Die Verbindung wird getestet …</translation>
    </message>
    <message>
        <source>Files can be sent there.</source>
        <translation>Dorthin können Dateien gesendet werden.</translation>
    </message>
    <message>
        <source>One more step is needed to log in:</source>
        <translation>Zum Anmelden ist noch ein Schritt nötig:</translation>
    </message>
    <message>
        <source>The test failed.</source>
        <translation>Der Test ist fehlgeschlagen.</translation>
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
        <source>Attempt %1</source>
        <translation>Versuch %1</translation>
    </message>
    <message>
        <source>Under way</source>
        <translation>In Arbeit</translation>
    </message>
    <message>
        <source>Waiting</source>
        <translation>Wartend</translation>
    </message>
    <message numerus="yes">
        <source>Show %Ln more</source>
        <comment>files that wait</comment>
        <translation>
            <numerusform>%Ln weitere anzeigen</numerusform>
            <numerusform>%Ln weitere anzeigen</numerusform>
        </translation>
    </message>
    <message>
        <source>Held back</source>
        <translation>Zurückgehalten</translation>
    </message>
    <message>
        <source>Earlier</source>
        <translation>Vorher</translation>
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
        <source>Sending</source>
        <translation>Wird gesendet</translation>
    </message>
    <message>
        <source>Coming back</source>
        <translation>Kommt zurück</translation>
    </message>
    <message>
        <source>%1: %2 of %3</source>
        <translation>%1: %2 von %3</translation>
    </message>
    <message>
        <source>%1 %</source>
        <translation>%1 %</translation>
    </message>
    <message>
        <source>about %1 left</source>
        <translation>noch etwa %1</translation>
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
        <source>Files</source>
        <translation>Dateien</translation>
    </message>
    <message>
        <source>No file has been sent yet.</source>
        <translation>Noch wurde keine Datei gesendet.</translation>
    </message>
    <message>
        <source>All files</source>
        <translation>Alle Dateien</translation>
    </message>
    <message>
        <source>Move up</source>
        <translation>Nach oben</translation>
    </message>
    <message>
        <source>Move down</source>
        <translation>Nach unten</translation>
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
        <source>Files come back.</source>
        <translation>Dateien werden zurückgeholt.</translation>
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
    <name>TrayPopup</name>
    <message>
        <source>Open the &amp;window</source>
        <translation>Fenster ö&amp;ffnen</translation>
    </message>
    <message>
        <source>Upload status</source>
        <translation>Stand des Uploads</translation>
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
        <source>These files changed last. Choose one, or type part of a name.</source>
        <translation>Diese Dateien wurden zuletzt geändert. Wählen Sie eine, oder geben Sie einen Teil eines Namens ein.</translation>
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
    <name>_Notice</name>
    <message>
        <source>Test an&amp;yway</source>
        <translation>Trotz&amp;dem testen</translation>
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
        <source>No answer from the server for %1</source>
        <translation>Seit %1 keine Antwort vom Server</translation>
    </message>
    <message>
        <source>Waiting for approval</source>
        <translation>Wartet auf Freigabe</translation>
    </message>
    <message>
        <source>Server answered %1</source>
        <translation>Server hat %1 geantwortet</translation>
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
    <name>dates</name>
    <message>
        <source>ddd d MMM</source>
        <translation>ddd d. MMM</translation>
    </message>
    <message>
        <source>d MMM yyyy</source>
        <translation>d. MMM yyyy</translation>
    </message>
    <message>
        <source>d MMMM yyyy</source>
        <translation>d. MMMM yyyy</translation>
    </message>
    <message>
        <source>dddd d MMMM</source>
        <translation>dddd, d. MMMM</translation>
    </message>
</context>
<context>
    <name>destination</name>
    <message>
        <source>on the server: in NAME; On the server: In NAME; on server: in NAME; by the server: in NAME; The server is checking: Checking; The server: The destination; The server&apos;s storage: The destination; the server&apos;s storage: the destination; the server: the destination; Server: Destination; staging host: host; staging area: destination; Check key and approval: Check the login; Check key and approva&amp;l: Check the &amp;login</source>
        <translation>auf dem Server: in NAME; Auf dem Server: In NAME; vom Server geprüft: in NAME geprüft; Vom Server geprüft: In NAME geprüft; Kopie des Servers: Kopie in NAME; Kopien des Servers: Kopien in NAME; Der Server prüft seine: Das Ziel prüft seine; Der Server prüft: Prüfung läuft:; der Server, der: das Ziel, das; Der Speicher des Servers: Das Ziel; den Speicher des Servers: das Ziel; zum Speicher des Servers: zum Ziel; Der Server: Das Ziel; der Server: das Ziel; den Server: das Ziel; dem Server: dem Ziel; des Servers: des Ziels; vom Server: vom Ziel; zum Server: zum Ziel; Server: Ziel; MyTardis-Server: MyTardis-Server; ein Server: ein Server; einem Server: einem Server; einen Server: einen Server; keinen Server: keinen Server; überlasteter Server: überlasteter Server; den Server des Ordners: den Server des Ordners; Annahmerechner: Rechner; Annahmerechners: Rechners; Annahmerechnern: Rechnern; Annahmebereich: Zielbereich; Annahmebereichs: Zielbereichs; Schlüssel und Freigabe prüfen: Anmeldung prüfen; Schlüsse&amp;l und Freigabe prüfen: Anme&amp;ldung prüfen</translation>
    </message>
    <message>
        <source>on the server: on NAME; On the server: On NAME; on server: on NAME; by the server: on NAME; The server is checking: Checking; The server: NAME; The server&apos;s storage: NAME; the server&apos;s storage: NAME; the server: NAME; Server: NAME; staging host: host; staging area: destination; Check key and approval: Check the login; Check key and approva&amp;l: Check the &amp;login</source>
        <translation>auf dem Server: auf NAME; Auf dem Server: Auf NAME; vom Server geprüft: auf NAME geprüft; Vom Server geprüft: Auf NAME geprüft; Kopie des Servers: Kopie auf NAME; Kopien des Servers: Kopien auf NAME; Der Server prüft seine: NAME prüft seine; Der Server prüft: Prüfung läuft:; Der Speicher des Servers: NAME; den Speicher des Servers: NAME; zum Speicher des Servers: zu NAME; Der Server: NAME; der Server: NAME; den Server: NAME; dem Server: NAME; des Servers: von NAME; vom Server: von NAME; zum Server: zu NAME; Server: NAME; MyTardis-Server: MyTardis-Server; ein Server: ein Server; einem Server: einem Server; einen Server: einen Server; keinen Server: keinen Server; überlasteter Server: überlasteter Server; den Server des Ordners: den Server des Ordners; Annahmerechner: Rechner; Annahmerechners: Rechners; Annahmerechnern: Rechnern; Annahmebereich: Zielbereich; Annahmebereichs: Zielbereichs; Schlüssel und Freigabe prüfen: Anmeldung prüfen; Schlüsse&amp;l und Freigabe prüfen: Anme&amp;ldung prüfen</translation>
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
        <source>A folder there cannot have this name.</source>
        <translation>Am Ziel kann kein Ordner diesen Namen haben.</translation>
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
    <message numerus="yes">
        <source>%Ln file(s) would replace other content on the server.</source>
        <translation>
            <numerusform>%Ln Datei würde anderen Inhalt auf dem Server ersetzen.</numerusform>
            <numerusform>%Ln Dateien würden anderen Inhalt auf dem Server ersetzen.</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 waiting, of which %2 held until you choose</source>
        <translation>%1 wartend, davon %2 zurückgehalten, bis Sie entscheiden</translation>
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
        <source>The server has other content: %1, not verified.</source>
        <translation>Der Server hat anderen Inhalt: %1, nicht geprüft.</translation>
    </message>
    <message>
        <source>The server has other content: %1, verified on %2.</source>
        <translation>Der Server hat anderen Inhalt: %1, geprüft: %2.</translation>
    </message>
    <message>
        <source>Would be replaced</source>
        <translation>Würde ersetzt</translation>
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
    <name>engine</name>
    <message>
        <source>%1 = &quot;%2&quot; in %3 is no longer supported; &quot;%4&quot; is used instead.</source>
        <translation>%1 = &quot;%2&quot; in %3 wird nicht mehr unterstützt; stattdessen gilt &quot;%4&quot;.</translation>
    </message>
    <message>
        <source>%1 = %2; MyData has %3</source>
        <translation>%1 = %2; MyData hat %3</translation>
    </message>
    <message>
        <source>%1 According to the server, the key %2 is approved.</source>
        <translation>%1 Laut dem Server ist der Schlüssel %2 freigegeben.</translation>
    </message>
    <message>
        <source>%1 Until then, files are sent over HTTP, which is slower.</source>
        <translation>%1 Bis dahin werden Dateien über HTTP gesendet, was langsamer ist.</translation>
    </message>
    <message>
        <source>%1 Until then, the previous settings apply.</source>
        <translation>%1 Bis dahin gelten die bisherigen Einstellungen.</translation>
    </message>
    <message>
        <source>%1 Without a keyring, use `--store=file`.</source>
        <translation>%1 Ohne Schlüsselbund verwenden Sie `--store=file`.</translation>
    </message>
    <message>
        <source>%1 accepts the uploader&apos;s key for %2, but wants %3 as well.</source>
        <translation>%1 nimmt den Schlüssel des Uploaders für %2 an, verlangt aber auch %3.</translation>
    </message>
    <message>
        <source>%1 accepts the uploader&apos;s key for %2, but wants another proof as well.</source>
        <translation>%1 nimmt den Schlüssel des Uploaders für %2 an, verlangt aber noch einen anderen Nachweis.</translation>
    </message>
    <message>
        <source>%1 already goes to the folder %2 of the destination.</source>
        <translation>%1 geht schon in den Ordner %2 am Ziel.</translation>
    </message>
    <message>
        <source>%1 and %2 other files are sent while open in %3.</source>
        <translation>%1 und %2 andere Dateien werden gesendet, obwohl sie in %3 geöffnet sind.</translation>
    </message>
    <message>
        <source>%1 and %2 overlap.</source>
        <translation>%1 und %2 überschneiden sich.</translation>
    </message>
    <message>
        <source>%1 and libssh have no %2 in common. The host offers %3; mydata-like offers %4.</source>
        <translation>%1 und libssh haben nichts gemeinsam bei: %2. Der Rechner bietet %3; mydata-like bietet %4.</translation>
    </message>
    <message>
        <source>%1 and libssh have no %2 in common. The host offers none; mydata-like offers %3.</source>
        <translation>%1 und libssh haben nichts gemeinsam bei: %2. Der Rechner bietet nichts; mydata-like bietet %3.</translation>
    </message>
    <message>
        <source>%1 and paramiko have no %2 in common. The host offers %3; mydata-like offers %4.</source>
        <translation>%1 und paramiko haben nichts gemeinsam bei: %2. Der Rechner bietet %3; mydata-like bietet %4.</translation>
    </message>
    <message>
        <source>%1 and paramiko have no %2 in common. The host offers none; mydata-like offers %3.</source>
        <translation>%1 und paramiko haben nichts gemeinsam bei: %2. Der Rechner bietet nichts; mydata-like bietet %3.</translation>
    </message>
    <message>
        <source>%1 and this program have no common encryption method.</source>
        <translation>%1 und dieses Programm haben kein gemeinsames Verschlüsselungsverfahren.</translation>
    </message>
    <message>
        <source>%1 are free.</source>
        <translation>%1 sind frei.</translation>
    </message>
    <message>
        <source>%1 belongs to another account, so the system does not say whether a program is writing to it.</source>
        <translation>%1 gehört einem anderen Konto, daher meldet das System nicht, ob ein Programm darin schreibt.</translation>
    </message>
    <message>
        <source>%1 can log in and manages the facility %2.</source>
        <translation>%1 kann sich anmelden und verwaltet die Einrichtung %2.</translation>
    </message>
    <message>
        <source>%1 can log in to %2, port %3.</source>
        <translation>%1 kann sich an %2, Port %3, anmelden.</translation>
    </message>
    <message>
        <source>%1 cannot be edited here because of its syntax.</source>
        <translation>%1 kann hier wegen der Syntax nicht bearbeitet werden.</translation>
    </message>
    <message>
        <source>%1 cannot be reached on port %2: %3.</source>
        <translation>%1 ist auf Port %2 nicht erreichbar: %3.</translation>
    </message>
    <message>
        <source>%1 cannot be reached on port %2: its name cannot be resolved.</source>
        <translation>%1 ist auf Port %2 nicht erreichbar: Der Name kann nicht aufgelöst werden.</translation>
    </message>
    <message>
        <source>%1 cannot be reached: %2.</source>
        <translation>%1 ist nicht erreichbar: %2.</translation>
    </message>
    <message>
        <source>%1 cannot be read or deleted: %2.</source>
        <translation>%1 kann nicht gelesen oder gelöscht werden: %2.</translation>
    </message>
    <message>
        <source>%1 cannot be read: %2.</source>
        <translation>%1 kann nicht gelesen werden: %2.</translation>
    </message>
    <message>
        <source>%1 cannot be removed: %2.</source>
        <translation>%1 kann nicht entfernt werden: %2.</translation>
    </message>
    <message>
        <source>%1 cannot be uploaded: %2.</source>
        <translation>%1 kann nicht hochgeladen werden: %2.</translation>
    </message>
    <message>
        <source>%1 cannot be used. %2</source>
        <translation>%1 kann nicht verwendet werden. %2</translation>
    </message>
    <message>
        <source>%1 cannot be written: %2.</source>
        <translation>%1 kann nicht geschrieben werden: %2.</translation>
    </message>
    <message>
        <source>%1 changed a moment ago.</source>
        <translation>%1 hat sich eben erst geändert.</translation>
    </message>
    <message>
        <source>%1 changed while it was added to the archive.</source>
        <translation>%1 hat sich geändert, während die Datei ins Archiv geschrieben wurde.</translation>
    </message>
    <message>
        <source>%1 changed while it was being read.</source>
        <translation>%1 hat sich während des Lesens geändert.</translation>
    </message>
    <message>
        <source>%1 contains a null character.</source>
        <translation>%1 enthält ein Nullzeichen.</translation>
    </message>
    <message>
        <source>%1 contains a symbolic link, which is not followed.</source>
        <translation>%1 enthält eine symbolische Verknüpfung, der nicht gefolgt wird.</translation>
    </message>
    <message>
        <source>%1 contains bytes that are not text.</source>
        <translation>%1 enthält Bytes, die kein Text sind.</translation>
    </message>
    <message>
        <source>%1 contains the data directory.</source>
        <translation>%1 enthält den Datenordner.</translation>
    </message>
    <message>
        <source>%1 could not answer (status %2).</source>
        <translation>%1 konnte nicht antworten (Status %2).</translation>
    </message>
    <message>
        <source>%1 did not accept the answers for %2.</source>
        <translation>%1 hat die Antworten für %2 nicht angenommen.</translation>
    </message>
    <message>
        <source>%1 does not accept the access key %2: %3.</source>
        <translation>%1 nimmt den Zugriffsschlüssel %2 nicht an: %3.</translation>
    </message>
    <message>
        <source>%1 does not accept the account %2 with its API key.</source>
        <translation>%1 nimmt das Konto %2 mit seinem API-Schlüssel nicht an.</translation>
    </message>
    <message>
        <source>%1 does not accept the uploader&apos;s key for %2.</source>
        <translation>%1 nimmt den Schlüssel des Uploaders für %2 nicht an.</translation>
    </message>
    <message>
        <source>%1 does not allow another channel.</source>
        <translation>%1 lässt keinen weiteren Kanal zu.</translation>
    </message>
    <message>
        <source>%1 does not contain a usable private key.</source>
        <translation>%1 enthält keinen verwendbaren privaten Schlüssel.</translation>
    </message>
    <message>
        <source>%1 does not name an experiment and a dataset.</source>
        <translation>%1 nennt nicht Experiment und Datensatz.</translation>
    </message>
    <message>
        <source>%1 does not offer SFTP.</source>
        <translation>%1 bietet kein SFTP.</translation>
    </message>
    <message>
        <source>%1 does not run commands.</source>
        <translation>%1 führt keine Befehle aus.</translation>
    </message>
    <message>
        <source>%1 does not seem to be a MyTardis server.</source>
        <translation>%1 scheint kein MyTardis-Server zu sein.</translation>
    </message>
    <message>
        <source>%1 does not set times: files there get the time of their transfer.</source>
        <translation>%1 setzt keine Zeiten: Dateien bekommen dort die Zeit ihrer Übertragung.</translation>
    </message>
    <message>
        <source>%1 does not switch it on</source>
        <translation>%1 schaltet es nicht ein</translation>
    </message>
    <message>
        <source>%1 files (%2) of interrupted transfers were removed from the staging area because they had not changed for %3 days.</source>
        <translation>%1 Dateien (%2) unterbrochener Übertragungen wurden aus dem Annahmebereich entfernt, weil sie sich seit %3 Tagen nicht geändert hatten.</translation>
    </message>
    <message>
        <source>%1 from the server is ignored: %2.</source>
        <translation>%1 vom Server wird ignoriert: %2.</translation>
    </message>
    <message>
        <source>%1 from the server is ignored: only this computer may set it to %2.</source>
        <translation>%1 vom Server wird ignoriert: Auf %2 darf nur dieser Computer das setzen.</translation>
    </message>
    <message>
        <source>%1 from the server is ignored: only this computer may set it.</source>
        <translation>%1 vom Server wird ignoriert: Nur dieser Computer darf das setzen.</translation>
    </message>
    <message>
        <source>%1 gives a weaker proof (%2) than --evidence %3 demands.</source>
        <translation>%1 gibt einen schwächeren Nachweis (%2), als --evidence %3 verlangt.</translation>
    </message>
    <message>
        <source>%1 has a prefix with empty parts, or with . or .. as a part.</source>
        <translation>%1 hat ein Präfix mit leeren Teilen oder mit . oder .. als Teil.</translation>
    </message>
    <message>
        <source>%1 has been changed or replaced.</source>
        <translation>%1 wurde geändert oder ersetzt.</translation>
    </message>
    <message>
        <source>%1 has no bucket %2.</source>
        <translation>%1 hat keinen Bucket %2.</translation>
    </message>
    <message>
        <source>%1 has no supported tar: small files are sent one by one.</source>
        <translation>%1 hat kein unterstütztes tar: Kleine Dateien werden einzeln gesendet.</translation>
    </message>
    <message>
        <source>%1 has no valid checksum or size.</source>
        <translation>%1 hat keine gültige Prüfsumme oder Größe.</translation>
    </message>
    <message>
        <source>%1 in %2 is ignored: it is locked by %3.</source>
        <translation>%1 in %2 wird ignoriert: gesperrt durch %3.</translation>
    </message>
    <message>
        <source>%1 is a %2, but the program needs a regular file.</source>
        <translation>%1 ist keine gewöhnliche Datei (%2), wie das Programm sie braucht.</translation>
    </message>
    <message>
        <source>%1 is a MyTardis server, but the MyData app, which approves uploaders, is not installed.</source>
        <translation>%1 ist ein MyTardis-Server, aber die MyData-App, die Uploader freigibt, ist nicht installiert.</translation>
    </message>
    <message>
        <source>%1 is a MyTardis server.</source>
        <translation>%1 ist ein MyTardis-Server.</translation>
    </message>
    <message>
        <source>%1 is a link to something else.</source>
        <translation>%1 ist eine Verknüpfung zu etwas anderem.</translation>
    </message>
    <message>
        <source>%1 is in the data directory. It is part of the dataset &quot;%2&quot; of the experiment &quot;%3&quot;.</source>
        <translation>%1 liegt im Datenordner. Es gehört zum Datensatz „%2“ des Experiments „%3“.</translation>
    </message>
    <message>
        <source>%1 is in the data directory. It is part of the dataset &quot;%2&quot;.</source>
        <translation>%1 liegt im Datenordner. Es gehört zum Datensatz „%2“.</translation>
    </message>
    <message>
        <source>%1 is in the data directory. It is the dataset &quot;%2&quot; of the experiment &quot;%3&quot;.</source>
        <translation>%1 liegt im Datenordner. Es ist der Datensatz „%2“ des Experiments „%3“.</translation>
    </message>
    <message>
        <source>%1 is in the data directory. It is the dataset &quot;%2&quot;.</source>
        <translation>%1 liegt im Datenordner. Es ist der Datensatz „%2“.</translation>
    </message>
    <message>
        <source>%1 is in the data directory. The layout maps its folders to datasets.</source>
        <translation>%1 liegt im Datenordner. Der Aufbau macht Ordner darin zu Datensätzen.</translation>
    </message>
    <message>
        <source>%1 is in use by another program, which lets no other read it.</source>
        <translation>%1 wird von einem anderen Programm verwendet, das niemanden sonst lesen lässt.</translation>
    </message>
    <message>
        <source>%1 is left out: %2.</source>
        <translation>%1 wird weggelassen: %2.</translation>
    </message>
    <message>
        <source>%1 is locked by %2.</source>
        <translation>%1 ist gesperrt durch %2.</translation>
    </message>
    <message>
        <source>%1 is locked by a program that may write to it.</source>
        <translation>%1 ist von einem Programm gesperrt, das darin schreiben könnte.</translation>
    </message>
    <message>
        <source>%1 is neither True nor False: %2</source>
        <translation>%1 ist weder True noch False: %2</translation>
    </message>
    <message>
        <source>%1 is neither a folder nor a regular file.</source>
        <translation>%1 ist weder ein Ordner noch eine gewöhnliche Datei.</translation>
    </message>
    <message>
        <source>%1 is no longer the file that was sent.</source>
        <translation>%1 ist nicht mehr die Datei, die gesendet wurde.</translation>
    </message>
    <message>
        <source>%1 is none of: %2</source>
        <translation>%1 ist nichts davon: %2</translation>
    </message>
    <message>
        <source>%1 is not a MyData.cfg: it has no section [MyData].</source>
        <translation>%1 ist keine MyData.cfg: Der Abschnitt [MyData] fehlt.</translation>
    </message>
    <message>
        <source>%1 is not a day of the week</source>
        <translation>%1 ist kein Wochentag</translation>
    </message>
    <message>
        <source>%1 is not a host; write user@host:port, with an IPv6 address in brackets</source>
        <translation>%1 ist kein Rechner; schreiben Sie user@host:port, eine IPv6-Adresse in Klammern</translation>
    </message>
    <message>
        <source>%1 is not a number of minutes</source>
        <translation>%1 ist keine Anzahl von Minuten</translation>
    </message>
    <message>
        <source>%1 is not a number of retries</source>
        <translation>%1 ist keine Anzahl von Versuchen</translation>
    </message>
    <message>
        <source>%1 is not a regular file.</source>
        <translation>%1 ist keine gewöhnliche Datei.</translation>
    </message>
    <message>
        <source>%1 is not a setting; did you mean %2?</source>
        <translation>%1 ist keine Einstellung; meinten Sie %2?</translation>
    </message>
    <message>
        <source>%1 is not a valid file name on this system.</source>
        <translation>%1 ist auf diesem System kein gültiger Dateiname.</translation>
    </message>
    <message>
        <source>%1 is not a valid path in the staging area.</source>
        <translation>%1 ist kein gültiger Pfad im Annahmebereich.</translation>
    </message>
    <message>
        <source>%1 is not allowed; choose from %2</source>
        <translation>%1 ist nicht erlaubt; möglich sind %2</translation>
    </message>
    <message>
        <source>%1 is not an unfinished extra source.</source>
        <translation>%1 ist keine unfertige zusätzliche Quelle.</translation>
    </message>
    <message>
        <source>%1 is not known as the folder of the storage box %2: it has no file %3.</source>
        <translation>%1 ist nicht als Ordner der Ablage %2 bekannt: Die Datei %3 fehlt darin.</translation>
    </message>
    <message>
        <source>%1 is not text in UTF-8 or in the code page %2.</source>
        <translation>%1 ist weder Text in UTF-8 noch in der Zeichentabelle %2.</translation>
    </message>
    <message>
        <source>%1 is not the file that was found there.</source>
        <translation>%1 ist nicht die Datei, die dort gefunden wurde.</translation>
    </message>
    <message>
        <source>%1 is open in a program that may write to it.</source>
        <translation>%1 ist in einem Programm geöffnet, das darin schreiben könnte.</translation>
    </message>
    <message>
        <source>%1 is open in another program.</source>
        <translation>%1 ist in einem anderen Programm geöffnet.</translation>
    </message>
    <message>
        <source>%1 is running: nothing is sent.</source>
        <translation>%1 läuft: Es wird nichts gesendet.</translation>
    </message>
    <message>
        <source>%1 is sent while open in %2.</source>
        <translation>%1 wird gesendet, obwohl die Datei in %2 geöffnet ist.</translation>
    </message>
    <message>
        <source>%1 is the folder of another storage box, not of %2 with the location %3.</source>
        <translation>%1 ist der Ordner einer anderen Ablage, nicht der von %2 mit dem Ort %3.</translation>
    </message>
    <message>
        <source>%1 is the least here</source>
        <translation>%1 ist hier der kleinste Wert</translation>
    </message>
    <message>
        <source>%1 is the most here</source>
        <translation>%1 ist hier der größte Wert</translation>
    </message>
    <message>
        <source>%1 is to be the folder of the storage box %2, whose location on the server is %3. It is on the file system that is mounted at %4.</source>
        <translation>%1 soll der Ordner der Ablage %2 sein, deren Ort auf dem Server %3 ist. Er liegt auf dem Dateisystem, das unter %4 eingehängt ist.</translation>
    </message>
    <message>
        <source>%1 is to be the folder of the storage box %2, whose location on the server is %3. It is on the same file system as %4, so it is probably not mounted now.</source>
        <translation>%1 soll der Ordner der Ablage %2 sein, deren Ort auf dem Server %3 ist. Er liegt auf demselben Dateisystem wie %4, ist also jetzt wahrscheinlich nicht eingehängt.</translation>
    </message>
    <message>
        <source>%1 is too busy: %2.</source>
        <translation>%1 ist überlastet: %2.</translation>
    </message>
    <message>
        <source>%1 is too large for a MyData.cfg (1 MiB at most).</source>
        <translation>%1 ist zu groß für eine MyData.cfg (höchstens 1 MiB).</translation>
    </message>
    <message>
        <source>%1 locks settings, but users without administrator rights can change it.</source>
        <translation>%1 sperrt Einstellungen, kann aber ohne Administratorrechte geändert werden.</translation>
    </message>
    <message>
        <source>%1 names no file</source>
        <translation>%1 nennt keine Datei</translation>
    </message>
    <message>
        <source>%1 no longer exists.</source>
        <translation>%1 gibt es nicht mehr.</translation>
    </message>
    <message>
        <source>%1 occurs several times; the last value is used.</source>
        <translation>%1 kommt mehrmals vor; der letzte Wert gilt.</translation>
    </message>
    <message>
        <source>%1 of %2 runs of the last week did not succeed; %3 files are not safe on the server yet.</source>
        <translation>%1 von %2 Läufen der letzten Woche waren nicht erfolgreich; %3 Dateien sind noch nicht sicher auf dem Server.</translation>
    </message>
    <message>
        <source>%1 of %2 runs of the last week did not succeed; %3 files are not safe on the server yet. %4</source>
        <translation>%1 von %2 Läufen der letzten Woche waren nicht erfolgreich; %3 Dateien sind noch nicht sicher auf dem Server. %4</translation>
    </message>
    <message>
        <source>%1 prints more output than expected.</source>
        <translation>%1 gibt mehr aus als erwartet.</translation>
    </message>
    <message>
        <source>%1 redirects to another address or region, which is not followed: %2.</source>
        <translation>%1 verweist auf eine andere Adresse oder Region, der nicht gefolgt wird: %2.</translation>
    </message>
    <message>
        <source>%1 redirects to another address: %2.</source>
        <translation>%1 verweist auf eine andere Adresse: %2.</translation>
    </message>
    <message>
        <source>%1 redirects to another address: none given.</source>
        <translation>%1 verweist auf eine andere Adresse, nennt aber keine.</translation>
    </message>
    <message>
        <source>%1 refused this (status %2)%3.</source>
        <translation>%1 hat dies abgelehnt (Status %2)%3.</translation>
    </message>
    <message>
        <source>%1 refused this (status %2).</source>
        <translation>%1 hat dies abgelehnt (Status %2).</translation>
    </message>
    <message>
        <source>%1 refused this (status %2): %3.</source>
        <translation>%1 hat dies abgelehnt (Status %2): %3.</translation>
    </message>
    <message>
        <source>%1 refused to connect to %2, port %3.</source>
        <translation>%1 lehnt eine Verbindung zu %2, Port %3, ab.</translation>
    </message>
    <message>
        <source>%1 refuses the account %2: %3.</source>
        <translation>%1 lehnt das Konto %2 ab: %3.</translation>
    </message>
    <message>
        <source>%1 remains %2; MyData has %3.</source>
        <translation>%1 bleibt %2; MyData hat %3.</translation>
    </message>
    <message>
        <source>%1 remains %2; MyData has (empty).</source>
        <translation>%1 bleibt %2; MyData hat keinen Wert.</translation>
    </message>
    <message>
        <source>%1 remains (empty); MyData has %2.</source>
        <translation>%1 bleibt leer; MyData hat %2.</translation>
    </message>
    <message>
        <source>%1 remains (empty); MyData has (empty).</source>
        <translation>%1 bleibt leer; MyData hat keinen Wert.</translation>
    </message>
    <message>
        <source>%1 requires a login for its API; a MyTardis server does not.</source>
        <translation>%1 verlangt für die API eine Anmeldung; ein MyTardis-Server tut das nicht.</translation>
    </message>
    <message>
        <source>%1 returned an empty file.</source>
        <translation>%1 hat eine leere Datei zurückgegeben.</translation>
    </message>
    <message>
        <source>%1 returned an invalid answer: %2</source>
        <translation>%1 hat eine ungültige Antwort gegeben: %2</translation>
    </message>
    <message>
        <source>%1 took too long to answer.</source>
        <translation>%1 hat zu lange nicht geantwortet.</translation>
    </message>
    <message>
        <source>%1 was changed by another program or user in the meantime.</source>
        <translation>%1 wurde inzwischen von einem anderen Programm oder einer anderen Person geändert.</translation>
    </message>
    <message>
        <source>%1 was changed by another program.</source>
        <translation>%1 wurde von einem anderen Programm geändert.</translation>
    </message>
    <message>
        <source>%1 was not created by this program and is left unchanged.</source>
        <translation>%1 wurde nicht von diesem Programm angelegt und bleibt unverändert.</translation>
    </message>
    <message>
        <source>%1 was not written completely by the server.</source>
        <translation>%1 wurde vom Server nicht vollständig geschrieben.</translation>
    </message>
    <message>
        <source>%1 was not written completely.</source>
        <translation>%1 wurde nicht vollständig geschrieben.</translation>
    </message>
    <message>
        <source>%1 was refused by the server, which gives no reason.</source>
        <translation>%1 wurde vom Server ohne Angabe eines Grundes abgelehnt.</translation>
    </message>
    <message>
        <source>%1 was refused by the server: %2.</source>
        <translation>%1 wurde vom Server abgelehnt: %2.</translation>
    </message>
    <message>
        <source>%1 was refused by the server: refused.</source>
        <translation>%1 wurde vom Server abgelehnt.</translation>
    </message>
    <message>
        <source>%1 was replaced or changed by another program.</source>
        <translation>%1 wurde von einem anderen Programm ersetzt oder geändert.</translation>
    </message>
    <message>
        <source>%1, port %2, has a different key than the known one: %3 (%4) instead of %5.</source>
        <translation>%1, Port %2, hat einen anderen Schlüssel als den bekannten: %3 (%4) statt %5.</translation>
    </message>
    <message>
        <source>%1, the newer key, is used</source>
        <translation>%1, der neuere Schlüssel, gilt</translation>
    </message>
    <message>
        <source>%1: No space left on device</source>
        <translation>%1: Kein Speicherplatz mehr verfügbar</translation>
    </message>
    <message>
        <source>%1:%2 is not a time of day</source>
        <translation>%1:%2 ist keine Uhrzeit</translation>
    </message>
    <message>
        <source>1 file (%1) of interrupted transfers were removed from the staging area because they had not changed for %2 days.</source>
        <translation>1 Datei (%1) unterbrochener Übertragungen wurde aus dem Annahmebereich entfernt, weil sie sich seit %2 Tagen nicht geändert hatte.</translation>
    </message>
    <message>
        <source>A channel did not respond for %1 seconds.</source>
        <translation>Ein Kanal hat %1 Sekunden lang nicht geantwortet.</translation>
    </message>
    <message>
        <source>A channel ended with %1: %2</source>
        <translation>Ein Kanal endete mit %1: %2</translation>
    </message>
    <message>
        <source>A file of %1 was sent and has the correct size; this host computes no checksums.</source>
        <translation>Eine Datei mit %1 wurde gesendet und hat die richtige Größe; dieser Rechner berechnet keine Prüfsummen.</translation>
    </message>
    <message>
        <source>A file of %1 was sent and read back: size and checksum are correct.</source>
        <translation>Eine Datei mit %1 wurde gesendet und zurückgelesen: Größe und Prüfsumme stimmen.</translation>
    </message>
    <message>
        <source>A file of %1 was sent and read back: the checksum is correct.</source>
        <translation>Eine Datei mit %1 wurde gesendet und zurückgelesen: Die Prüfsumme stimmt.</translation>
    </message>
    <message>
        <source>A file of %1 was sent, but the file on the staging host differs.</source>
        <translation>Eine Datei mit %1 wurde gesendet, aber die Datei auf dem Annahmerechner weicht ab.</translation>
    </message>
    <message>
        <source>A file of %1 was sent, but the object in the bucket differs.</source>
        <translation>Eine Datei mit %1 wurde gesendet, aber das Objekt im Bucket weicht ab.</translation>
    </message>
    <message>
        <source>A file of %1 was sent; this host cannot report whether it arrived.</source>
        <translation>Eine Datei mit %1 wurde gesendet; dieser Rechner kann nicht melden, ob sie angekommen ist.</translation>
    </message>
    <message>
        <source>A folder runs no commands: %1</source>
        <translation>Ein Ordner führt keine Befehle aus: %1</translation>
    </message>
    <message>
        <source>A folder&apos;s name must have text, and an experiment&apos;s title at most %1 characters.</source>
        <translation>Der Name eines Ordners muss Text enthalten, und der Titel eines Experiments darf höchstens %1 Zeichen haben.</translation>
    </message>
    <message>
        <source>A later archive or datafile of the same dataset contains it.</source>
        <translation>Ein späteres Archiv oder eine spätere Datei desselben Datensatzes enthält sie.</translation>
    </message>
    <message>
        <source>A later run uploads it; filters.settle_seconds sets how long it must stay unchanged.</source>
        <translation>Ein späterer Lauf lädt sie hoch; filters.settle_seconds legt fest, wie lange sie unverändert bleiben muss.</translation>
    </message>
    <message>
        <source>A listing of %1 changed repeatedly while it was read.</source>
        <translation>Eine Liste von %1 hat sich beim Lesen immer wieder geändert.</translation>
    </message>
    <message>
        <source>A login script of the staging account may print endlessly.</source>
        <translation>Vielleicht gibt ein Anmeldeskript des Kontos auf dem Annahmerechner endlos Text aus.</translation>
    </message>
    <message>
        <source>A pattern in filters.excludes is invalid: %1</source>
        <translation>Ein Muster in filters.excludes ist ungültig: %1</translation>
    </message>
    <message>
        <source>A pattern in filters.includes is invalid: %1</source>
        <translation>Ein Muster in filters.includes ist ungültig: %1</translation>
    </message>
    <message>
        <source>A quota that is used up is a common one. The server&apos;s administrator can find it.</source>
        <translation>Oft ist ein Kontingent ausgeschöpft. Die Administration des Servers kann den Grund finden.</translation>
    </message>
    <message>
        <source>A record of the server lists %1, which is no path of a file there.</source>
        <translation>Ein Eintrag des Servers nennt %1, was dort kein Pfad einer Datei ist.</translation>
    </message>
    <message>
        <source>A record with this name may already exist, or the server cannot store the name.</source>
        <translation>Vielleicht gibt es schon einen Eintrag mit diesem Namen, oder der Server kann den Namen nicht speichern.</translation>
    </message>
    <message>
        <source>A run is already in progress.</source>
        <translation>Es läuft schon ein Lauf.</translation>
    </message>
    <message>
        <source>A run over the data directory uploads it.</source>
        <translation>Ein Lauf über den Datenordner lädt sie hoch.</translation>
    </message>
    <message>
        <source>A run reads it once and compares the checksum. It is sent only if it differs.</source>
        <translation>Ein Lauf liest sie einmal und vergleicht die Prüfsumme. Gesendet wird sie nur, wenn sie abweicht.</translation>
    </message>
    <message>
        <source>A run uploads each file only once: leave out one of the two.</source>
        <translation>Ein Lauf lädt jede Datei nur einmal hoch: Lassen Sie eines von beiden weg.</translation>
    </message>
    <message>
        <source>A speed test would disturb the instrument or its network now. %1</source>
        <translation>Ein Geschwindigkeitstest würde das Instrument oder sein Netz jetzt stören. %1</translation>
    </message>
    <message>
        <source>A stream has ended.</source>
        <translation>Ein Datenstrom ist beendet.</translation>
    </message>
    <message>
        <source>A user cancelled the transfer.</source>
        <translation>Jemand hat die Übertragung abgebrochen.</translation>
    </message>
    <message>
        <source>About the file:</source>
        <translation>Zur Datei:</translation>
    </message>
    <message>
        <source>Add the key to an SSH agent (ssh-add), and switch transfer.ssh_agent on. On Windows, use a key file without a passphrase.</source>
        <translation>Fügen Sie den Schlüssel einem SSH-Agenten hinzu (ssh-add), und schalten Sie transfer.ssh_agent ein. Unter Windows verwenden Sie eine Schlüsseldatei ohne Passphrase.</translation>
    </message>
    <message>
        <source>Allow one of the AES ciphers, or use the other SSH implementation.</source>
        <translation>Erlauben Sie eine der AES-Chiffren, oder verwenden Sie die andere SSH-Implementierung.</translation>
    </message>
    <message>
        <source>An API key belongs to a server and an account, but one of them is not set.</source>
        <translation>Ein API-Schlüssel gehört zu einem Server und einem Konto, aber eines von beiden ist nicht eingestellt.</translation>
    </message>
    <message>
        <source>An answer of the server contradicts that it has this file.</source>
        <translation>Eine Antwort des Servers widerspricht dem, dass er diese Datei hat.</translation>
    </message>
    <message>
        <source>An archive that the server has not verified yet may contain this file.</source>
        <translation>Ein Archiv, das der Server noch nicht geprüft hat, könnte diese Datei enthalten.</translation>
    </message>
    <message>
        <source>An object in the bucket is not as expected, and was not replaced: %1.</source>
        <translation>Ein Objekt im Bucket ist nicht wie erwartet und wurde nicht ersetzt: %1.</translation>
    </message>
    <message>
        <source>Another computer may be impersonating the staging host. Nothing was sent to it. Ask your facility. If it has replaced the key, ask the administrator of the server to correct host_keys of the storage box, or trust the new one with: mydata-like register --accept-host-key %1</source>
        <translation>Vielleicht gibt sich ein anderer Computer als der Annahmerechner aus. An ihn wurde nichts gesendet. Fragen Sie Ihre Einrichtung. Wenn sie den Schlüssel ersetzt hat, bitten Sie die Administration des Servers, host_keys der Ablage zu berichtigen, oder vertrauen Sie dem neuen mit: mydata-like register --accept-host-key %1</translation>
    </message>
    <message>
        <source>Another computer may be impersonating the staging host. Nothing was sent to it. Ask your facility. If it has replaced the key, replace the old one in transfer.host_keys or --accept-host-key, or trust the new one with: mydata-like register --accept-host-key %1</source>
        <translation>Vielleicht gibt sich ein anderer Computer als der Annahmerechner aus. An ihn wurde nichts gesendet. Fragen Sie Ihre Einrichtung. Wenn sie den Schlüssel ersetzt hat, ersetzen Sie den alten in transfer.host_keys oder --accept-host-key, oder vertrauen Sie dem neuen mit: mydata-like register --accept-host-key %1</translation>
    </message>
    <message>
        <source>Another computer may be impersonating the staging host. Nothing was sent to it. Ask your facility. If it has replaced the key, trust the new one with: mydata-like register --accept-host-key %1</source>
        <translation>Vielleicht gibt sich ein anderer Computer als der Annahmerechner aus. An ihn wurde nichts gesendet. Fragen Sie Ihre Einrichtung. Wenn sie den Schlüssel ersetzt hat, vertrauen Sie dem neuen mit: mydata-like register --accept-host-key %1</translation>
    </message>
    <message>
        <source>Another copy from this folder to %1 has been in progress since %2</source>
        <translation>Eine andere Kopie aus diesem Ordner nach %1 läuft seit %2</translation>
    </message>
    <message>
        <source>Another file has the name %1.</source>
        <translation>Eine andere Datei hat den Namen %1.</translation>
    </message>
    <message>
        <source>Another file of the session failed.</source>
        <translation>Eine andere Datei der Sitzung ist fehlgeschlagen.</translation>
    </message>
    <message>
        <source>Another folder of this run maps to the same dataset, %1.</source>
        <translation>Ein anderer Ordner dieses Laufs wird zum selben Datensatz, %1.</translation>
    </message>
    <message>
        <source>Another program registered different content under this name during the upload.</source>
        <translation>Ein anderes Programm hat während des Uploads unter diesem Namen einen anderen Inhalt eingetragen.</translation>
    </message>
    <message>
        <source>Another run is in progress on %1.</source>
        <translation>Ein anderer Lauf arbeitet an %1.</translation>
    </message>
    <message>
        <source>Another run is in progress on shard %1 of %2.</source>
        <translation>Ein anderer Lauf arbeitet an Teil %1 von %2.</translation>
    </message>
    <message>
        <source>Another stream of the file has failed.</source>
        <translation>Ein anderer Datenstrom der Datei ist fehlgeschlagen.</translation>
    </message>
    <message>
        <source>Another upload is in progress.</source>
        <translation>Ein anderer Upload läuft.</translation>
    </message>
    <message>
        <source>Another uploader created the dataset %1 at the same time. Both use the older one (id %2); the one with the id %3 stays empty.</source>
        <translation>Ein anderer Uploader hat gleichzeitig den Datensatz %1 angelegt. Beide verwenden den älteren (Id %2); der mit der Id %3 bleibt leer.</translation>
    </message>
    <message>
        <source>Another uploader created the experiment %1 at the same time. Both use the older one (id %2); the one with the id %3 stays empty.</source>
        <translation>Ein anderer Uploader hat gleichzeitig das Experiment %1 angelegt. Beide verwenden das ältere (Id %2); das mit der Id %3 bleibt leer.</translation>
    </message>
    <message>
        <source>Another watch is already running%1.</source>
        <translation>Eine andere Beobachtung läuft schon%1.</translation>
    </message>
    <message>
        <source>Another watch is already running.</source>
        <translation>Eine andere Beobachtung läuft schon.</translation>
    </message>
    <message>
        <source>Ask the administrator of the object storage for the rights to put, get and delete objects below the prefix.</source>
        <translation>Bitten Sie die Administration des Objektspeichers um die Rechte, Objekte unter dem Präfix abzulegen, zu lesen und zu löschen.</translation>
    </message>
    <message>
        <source>Ask the administrator of the object storage to check it.</source>
        <translation>Bitten Sie die Administration des Objektspeichers, ihn zu prüfen.</translation>
    </message>
    <message>
        <source>Ask the administrator of this computer to change it there.</source>
        <translation>Bitten Sie die Administration dieses Computers, es dort zu ändern.</translation>
    </message>
    <message>
        <source>Ask the facility&apos;s administrator to add it to its group again.</source>
        <translation>Bitten Sie die Administration der Einrichtung, es wieder in seine Gruppe aufzunehmen.</translation>
    </message>
    <message>
        <source>Ask the facility&apos;s administrator to approve the key with this fingerprint again.</source>
        <translation>Bitten Sie die Administration der Einrichtung, den Schlüssel mit diesem Fingerabdruck wieder freizugeben.</translation>
    </message>
    <message>
        <source>Ask the facility&apos;s administrator to approve the key with this fingerprint and to choose a storage box for it.</source>
        <translation>Bitten Sie die Administration der Einrichtung, den Schlüssel mit diesem Fingerabdruck freizugeben und eine Ablage für ihn zu wählen.</translation>
    </message>
    <message>
        <source>Ask the facility&apos;s administrator to approve this uploader&apos;s key.</source>
        <translation>Bitten Sie die Administration der Einrichtung, den Schlüssel dieses Uploaders freizugeben.</translation>
    </message>
    <message>
        <source>Ask the facility&apos;s administrator to check the server&apos;s storage; then run again.</source>
        <translation>Bitten Sie die Administration der Einrichtung, den Speicher des Servers zu prüfen; starten Sie dann einen Lauf.</translation>
    </message>
    <message>
        <source>Ask the facility&apos;s administrator to extend it before the staging host refuses the uploader&apos;s key.</source>
        <translation>Bitten Sie die Administration der Einrichtung um Verlängerung, bevor der Annahmerechner den Schlüssel des Uploaders ablehnt.</translation>
    </message>
    <message>
        <source>Ask the facility&apos;s administrator to extend it.</source>
        <translation>Bitten Sie die Administration der Einrichtung um Verlängerung.</translation>
    </message>
    <message>
        <source>Ask the facility&apos;s administrator to replace the datafile, or rename the local file.</source>
        <translation>Bitten Sie die Administration der Einrichtung, die Datei auf dem Server zu ersetzen, oder benennen Sie die lokale Datei um.</translation>
    </message>
    <message>
        <source>Ask the facility&apos;s administrator whether this is intended, or set it here.</source>
        <translation>Fragen Sie die Administration der Einrichtung, ob das beabsichtigt ist, oder stellen Sie es hier ein.</translation>
    </message>
    <message>
        <source>Ask the facility&apos;s administrator. The dataset may also be locked.</source>
        <translation>Fragen Sie die Administration der Einrichtung. Vielleicht ist auch der Datensatz gesperrt.</translation>
    </message>
    <message>
        <source>Ask the server&apos;s administrator to approve the bucket&apos;s storage box, or set transfer.s3_bucket and transfer.s3_box.</source>
        <translation>Bitten Sie die Administration des Servers, die Ablage des Buckets freizugeben, oder setzen Sie transfer.s3_bucket und transfer.s3_box.</translation>
    </message>
    <message>
        <source>Ask the server&apos;s administrator to check the storage of the staging area.</source>
        <translation>Bitten Sie die Administration des Servers, den Speicher des Annahmebereichs zu prüfen.</translation>
    </message>
    <message>
        <source>Ask the server&apos;s administrator to correct it, or set transfer.s3_endpoint.</source>
        <translation>Bitten Sie die Administration des Servers, sie zu berichtigen, oder setzen Sie transfer.s3_endpoint.</translation>
    </message>
    <message>
        <source>Ask the server&apos;s administrator to install it, or set transfer.method to http.</source>
        <translation>Bitten Sie die Administration des Servers, sie zu installieren, oder setzen Sie transfer.method auf http.</translation>
    </message>
    <message>
        <source>Ask the server&apos;s administrator to install it.</source>
        <translation>Bitten Sie die Administration des Servers, sie zu installieren.</translation>
    </message>
    <message>
        <source>Ask the server&apos;s administrator to make it a manager of your facility.</source>
        <translation>Bitten Sie die Administration des Servers, ihm die Verwaltung Ihrer Einrichtung zu geben.</translation>
    </message>
    <message>
        <source>Ask the server&apos;s administrator to make the account a manager of the facility.</source>
        <translation>Bitten Sie die Administration des Servers, dem Konto die Verwaltung der Einrichtung zu geben.</translation>
    </message>
    <message>
        <source>Ask the server&apos;s administrator to set this in the storage box&apos;s attributes (location: in its options).</source>
        <translation>Bitten Sie die Administration des Servers, dies in den Attributen der Ablage zu setzen (location: in ihren Optionen).</translation>
    </message>
    <message>
        <source>Ask the server&apos;s administrator whether a gateway or a proxy in front of the server answers in its place.</source>
        <translation>Fragen Sie die Administration des Servers, ob ein Gateway oder ein Proxy vor dem Server an seiner Stelle antwortet.</translation>
    </message>
    <message>
        <source>Ask your facility whether this is its key; if so, trust it with --accept-host-key %1</source>
        <translation>Fragen Sie Ihre Einrichtung, ob das ihr Schlüssel ist; wenn ja, vertrauen Sie ihm mit --accept-host-key %1</translation>
    </message>
    <message>
        <source>Before the first shard starts, run once: mydata-like register. Or set instrument.uuid to the same value on all computers.</source>
        <translation>Bevor der erste Teil startet, rufen Sie einmal auf: mydata-like register. Oder setzen Sie instrument.uuid auf allen Computern auf denselben Wert.</translation>
    </message>
    <message>
        <source>Broken pipe</source>
        <translation>Unterbrochene Verbindung (broken pipe)</translation>
    </message>
    <message>
        <source>Cannot allocate memory</source>
        <translation>Nicht genügend Arbeitsspeicher</translation>
    </message>
    <message>
        <source>Change filters.symlinks to follow more links.</source>
        <translation>Ändern Sie filters.symlinks, um weiteren Verknüpfungen zu folgen.</translation>
    </message>
    <message>
        <source>Change or clear the filter to upload it.</source>
        <translation>Ändern oder leeren Sie den Filter, um ihn hochzuladen.</translation>
    </message>
    <message>
        <source>Change the patterns under filters to upload it.</source>
        <translation>Ändern Sie die Muster unter filters, um sie hochzuladen.</translation>
    </message>
    <message>
        <source>Change the setting in the file with a text editor.</source>
        <translation>Ändern Sie die Einstellung mit einem Texteditor in der Datei.</translation>
    </message>
    <message>
        <source>Check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials.</source>
        <translation>Prüfen Sie AWS_ACCESS_KEY_ID und AWS_SECRET_ACCESS_KEY oder ~/.aws/credentials.</translation>
    </message>
    <message>
        <source>Check AWS_ENDPOINT_URL, AWS_REGION and AWS_PROFILE, or ~/.aws/config.</source>
        <translation>Prüfen Sie AWS_ENDPOINT_URL, AWS_REGION und AWS_PROFILE oder ~/.aws/config.</translation>
    </message>
    <message>
        <source>Check HTTPS_PROXY and HTTP_PROXY.</source>
        <translation>Prüfen Sie HTTPS_PROXY und HTTP_PROXY.</translation>
    </message>
    <message>
        <source>Check LoadCredential= in the service&apos;s unit.</source>
        <translation>Prüfen Sie LoadCredential= in der Unit des Dienstes.</translation>
    </message>
    <message>
        <source>Check data.directory, and that its drive is connected.</source>
        <translation>Prüfen Sie data.directory, und ob das Laufwerk verbunden ist.</translation>
    </message>
    <message>
        <source>Check data.layout and instrument.name.</source>
        <translation>Prüfen Sie data.layout und instrument.name.</translation>
    </message>
    <message>
        <source>Check filters.includes_file and filters.excludes_file.</source>
        <translation>Prüfen Sie filters.includes_file und filters.excludes_file.</translation>
    </message>
    <message>
        <source>Check how it is mounted, and that the account that runs this program may write to it.</source>
        <translation>Prüfen Sie, wie er eingehängt ist und ob das Konto, unter dem dieses Programm läuft, darin schreiben darf.</translation>
    </message>
    <message>
        <source>Check instrument.name: it must match the folder&apos;s name.</source>
        <translation>Prüfen Sie instrument.name: Er muss dem Namen des Ordners entsprechen.</translation>
    </message>
    <message>
        <source>Check its permissions and its drive; the next run tries again.</source>
        <translation>Prüfen Sie die Zugriffsrechte und das Laufwerk; der nächste Lauf versucht es wieder.</translation>
    </message>
    <message>
        <source>Check its permissions, and that its disk works and no other program locks it.</source>
        <translation>Prüfen Sie die Zugriffsrechte, und ob der Datenträger funktioniert und kein anderes Programm die Datei sperrt.</translation>
    </message>
    <message>
        <source>Check its permissions, and those of its folder.</source>
        <translation>Prüfen Sie die Zugriffsrechte der Datei und ihres Ordners.</translation>
    </message>
    <message>
        <source>Check its permissions.</source>
        <translation>Prüfen Sie die Zugriffsrechte.</translation>
    </message>
    <message>
        <source>Check its permissions. It holds one uuid, which is in the log of every run.</source>
        <translation>Prüfen Sie die Zugriffsrechte. Sie enthält eine uuid, die im Protokoll jedes Laufs steht.</translation>
    </message>
    <message>
        <source>Check that its drive is connected.</source>
        <translation>Prüfen Sie, ob das Laufwerk verbunden ist.</translation>
    </message>
    <message>
        <source>Check that its drive is connected. If the files were deleted on purpose, confirm it once: mydata-like run --accept-empty</source>
        <translation>Prüfen Sie, ob das Laufwerk verbunden ist. Wenn die Dateien absichtlich gelöscht wurden, bestätigen Sie es einmal: mydata-like run --accept-empty</translation>
    </message>
    <message>
        <source>Check that the disk is not full, that the folder is writable, and that no other program uses the file; then run again.</source>
        <translation>Prüfen Sie, ob der Datenträger nicht voll ist, der Ordner beschreibbar ist und kein anderes Programm die Datei verwendet; starten Sie dann einen Lauf.</translation>
    </message>
    <message>
        <source>Check that this is the address of a MyTardis server.</source>
        <translation>Prüfen Sie, ob dies die Adresse eines MyTardis-Servers ist.</translation>
    </message>
    <message>
        <source>Check the account name and the API key in the settings.</source>
        <translation>Prüfen Sie Kontonamen und API-Schlüssel in den Einstellungen.</translation>
    </message>
    <message>
        <source>Check the address and the clock of this computer. To use your own certificate authorities, set server.ca_file.</source>
        <translation>Prüfen Sie die Adresse und die Uhr dieses Computers. Für eigene Zertifizierungsstellen setzen Sie server.ca_file.</translation>
    </message>
    <message>
        <source>Check the clocks of this computer and of the one that wrote the file.</source>
        <translation>Prüfen Sie die Uhren dieses Computers und dessen, der die Datei geschrieben hat.</translation>
    </message>
    <message>
        <source>Check the current values, and save again.</source>
        <translation>Prüfen Sie die jetzigen Werte, und speichern Sie noch einmal.</translation>
    </message>
    <message>
        <source>Check the free space of the disk for temporary files; SQLITE_TMPDIR names another folder for them.</source>
        <translation>Prüfen Sie den freien Platz auf dem Datenträger für temporäre Dateien; SQLITE_TMPDIR nennt einen anderen Ordner für sie.</translation>
    </message>
    <message>
        <source>Check the name of the bucket, AWS_ENDPOINT_URL and AWS_REGION, or ~/.aws/config.</source>
        <translation>Prüfen Sie den Namen des Buckets, AWS_ENDPOINT_URL und AWS_REGION oder ~/.aws/config.</translation>
    </message>
    <message>
        <source>Check the network and the server address.</source>
        <translation>Prüfen Sie das Netz und die Serveradresse.</translation>
    </message>
    <message>
        <source>Check the network; the staging host may be down.</source>
        <translation>Prüfen Sie das Netz; vielleicht ist der Annahmerechner ausgefallen.</translation>
    </message>
    <message>
        <source>Check the path after --config.</source>
        <translation>Prüfen Sie den Pfad nach --config.</translation>
    </message>
    <message>
        <source>Check the path of MyData.cfg.</source>
        <translation>Prüfen Sie den Pfad von MyData.cfg.</translation>
    </message>
    <message>
        <source>Check the path, and that its drive is connected.</source>
        <translation>Prüfen Sie den Pfad, und ob das Laufwerk verbunden ist.</translation>
    </message>
    <message>
        <source>Check the path, its permissions and its disk.</source>
        <translation>Prüfen Sie den Pfad, die Zugriffsrechte und den Datenträger.</translation>
    </message>
    <message>
        <source>Check the path, the layout and the filters.</source>
        <translation>Prüfen Sie den Pfad, den Aufbau und die Filter.</translation>
    </message>
    <message>
        <source>Check the permissions of the folder and the free space of the disk.</source>
        <translation>Prüfen Sie die Zugriffsrechte des Ordners und den freien Platz auf dem Datenträger.</translation>
    </message>
    <message>
        <source>Check the permissions of the parent folder.</source>
        <translation>Prüfen Sie die Zugriffsrechte des übergeordneten Ordners.</translation>
    </message>
    <message>
        <source>Check the private key in the transfer settings.</source>
        <translation>Prüfen Sie den privaten Schlüssel in den Einstellungen zur Übertragung.</translation>
    </message>
    <message>
        <source>Check the proxy in the setting server.proxy, or else in the environment variable HTTPS_PROXY. To connect directly, set server.proxy to none.</source>
        <translation>Prüfen Sie den Proxy in der Einstellung server.proxy oder sonst in der Umgebungsvariablen HTTPS_PROXY. Für eine direkte Verbindung setzen Sie server.proxy auf none.</translation>
    </message>
    <message>
        <source>Check the proxy in the setting server.proxy.</source>
        <translation>Prüfen Sie den Proxy in der Einstellung server.proxy.</translation>
    </message>
    <message>
        <source>Check the schedule: mydata-like status</source>
        <translation>Prüfen Sie den Zeitplan: mydata-like status</translation>
    </message>
    <message>
        <source>Check the server address in the settings.</source>
        <translation>Prüfen Sie die Serveradresse in den Einstellungen.</translation>
    </message>
    <message>
        <source>Check the server address.</source>
        <translation>Prüfen Sie die Serveradresse.</translation>
    </message>
    <message>
        <source>Check transfer.s3_access_key, and store its secret again with: mydata-like settings set-key --s3</source>
        <translation>Prüfen Sie transfer.s3_access_key, und legen Sie das Geheimnis des Schlüssels noch einmal ab: mydata-like settings set-key --s3</translation>
    </message>
    <message>
        <source>Check transfer.s3_bucket and transfer.s3_endpoint.</source>
        <translation>Prüfen Sie transfer.s3_bucket und transfer.s3_endpoint.</translation>
    </message>
    <message>
        <source>Check transfer.s3_bucket.</source>
        <translation>Prüfen Sie transfer.s3_bucket.</translation>
    </message>
    <message>
        <source>Check transfer.s3_endpoint and transfer.s3_region.</source>
        <translation>Prüfen Sie transfer.s3_endpoint und transfer.s3_region.</translation>
    </message>
    <message>
        <source>Check transfer.s3_endpoint.</source>
        <translation>Prüfen Sie transfer.s3_endpoint.</translation>
    </message>
    <message>
        <source>Choose a folder on a local disk in advanced.state_directory.</source>
        <translation>Wählen Sie in advanced.state_directory einen Ordner auf einem lokalen Datenträger.</translation>
    </message>
    <message>
        <source>Choose a settings file of mydata-like (.toml) or of MyData (.cfg).</source>
        <translation>Wählen Sie eine Einstellungsdatei von mydata-like (.toml) oder von MyData (.cfg).</translation>
    </message>
    <message>
        <source>Choose an empty folder on a disk with free space.</source>
        <translation>Wählen Sie einen leeren Ordner auf einem Datenträger mit freiem Platz.</translation>
    </message>
    <message>
        <source>Choose another folder as destination.address.</source>
        <translation>Setzen Sie destination.address auf einen anderen Ordner.</translation>
    </message>
    <message>
        <source>Choose another folder, and check that the disk is not full.</source>
        <translation>Wählen Sie einen anderen Ordner, und prüfen Sie, ob der Datenträger nicht voll ist.</translation>
    </message>
    <message>
        <source>Choose another folder.</source>
        <translation>Wählen Sie einen anderen Ordner.</translation>
    </message>
    <message>
        <source>Choose another name.</source>
        <translation>Wählen Sie einen anderen Namen.</translation>
    </message>
    <message>
        <source>Compare it with the server&apos;s copy: a disk fault or a program has changed it.</source>
        <translation>Vergleichen Sie sie mit der Kopie auf dem Server: Ein Fehler des Datenträgers oder ein Programm hat sie geändert.</translation>
    </message>
    <message>
        <source>Connect its drive; the next run continues. Or remove it from the list of sources.</source>
        <translation>Verbinden Sie das Laufwerk; der nächste Lauf macht weiter. Oder nehmen Sie die Quelle aus der Liste.</translation>
    </message>
    <message>
        <source>Connection refused</source>
        <translation>Verbindung abgelehnt</translation>
    </message>
    <message>
        <source>Connection reset by peer</source>
        <translation>Verbindung von der Gegenseite zurückgesetzt</translation>
    </message>
    <message>
        <source>Connection timed out</source>
        <translation>Zeitüberschreitung der Verbindung</translation>
    </message>
    <message>
        <source>Contact the administrator of the object storage.</source>
        <translation>Wenden Sie sich an die Administration des Objektspeichers.</translation>
    </message>
    <message>
        <source>Copy without --checksum, or to a host or folder.</source>
        <translation>Ohne --checksum kopieren, oder auf einen Rechner oder in einen Ordner.</translation>
    </message>
    <message>
        <source>Copy without --checksum, or to another destination.</source>
        <translation>Ohne --checksum kopieren, oder an ein anderes Ziel.</translation>
    </message>
    <message>
        <source>Correct the settings; `mydata-like settings check` checks them again.</source>
        <translation>Berichtigen Sie die Einstellungen; `mydata-like settings check` prüft sie noch einmal.</translation>
    </message>
    <message>
        <source>Correct transfer.folder or data.directory: what is written to the folder would be uploaded again.</source>
        <translation>Berichtigen Sie transfer.folder oder data.directory: Was in den Ordner geschrieben wird, würde wieder hochgeladen.</translation>
    </message>
    <message>
        <source>Correct transfer.folder, or the file %1 in the folder if the storage box was renamed or moved.</source>
        <translation>Berichtigen Sie transfer.folder, oder die Datei %1 im Ordner, wenn die Ablage umbenannt oder verschoben wurde.</translation>
    </message>
    <message>
        <source>Correct transfer.folder: it is another folder, or not the top of the location.</source>
        <translation>Berichtigen Sie transfer.folder: Es ist ein anderer Ordner oder nicht der oberste des Ortes.</translation>
    </message>
    <message>
        <source>Create one and put the experiments there, or choose another layout.</source>
        <translation>Legen Sie einen an und die Experimente hinein, oder wählen Sie einen anderen Aufbau.</translation>
    </message>
    <message>
        <source>Create them, owned by this account, and install the service again.</source>
        <translation>Legen Sie sie als Eigentum dieses Kontos an, und installieren Sie den Dienst noch einmal.</translation>
    </message>
    <message>
        <source>Data about very many files cannot be stored in a temporary file: %1.</source>
        <translation>Angaben zu sehr vielen Dateien können nicht in einer temporären Datei abgelegt werden: %1.</translation>
    </message>
    <message>
        <source>Device or resource busy</source>
        <translation>Gerät oder Ressource belegt</translation>
    </message>
    <message>
        <source>Disk quota exceeded</source>
        <translation>Kontingent des Datenträgers überschritten</translation>
    </message>
    <message>
        <source>Divide the file.</source>
        <translation>Teilen Sie die Datei.</translation>
    </message>
    <message>
        <source>Download it again from the server. Read other tar files with tar.</source>
        <translation>Laden Sie es noch einmal vom Server herunter. Andere tar-Dateien lesen Sie mit tar.</translation>
    </message>
    <message>
        <source>Download the archive again from the server.</source>
        <translation>Laden Sie das Archiv noch einmal vom Server herunter.</translation>
    </message>
    <message>
        <source>Each file that arrived is read again from the storage.</source>
        <translation>Jede angekommene Datei wird noch einmal vom Datenträger gelesen.</translation>
    </message>
    <message>
        <source>Each file that arrived is read again, possibly from memory.</source>
        <translation>Jede angekommene Datei wird noch einmal gelesen, möglicherweise aus dem Arbeitsspeicher.</translation>
    </message>
    <message>
        <source>Every session has all its channels.</source>
        <translation>Jede Sitzung hat alle ihre Kanäle.</translation>
    </message>
    <message>
        <source>Example: https://mytardis.example.org</source>
        <translation>Beispiel: https://mytardis.example.org</translation>
    </message>
    <message>
        <source>Extract the archive on another system.</source>
        <translation>Entpacken Sie das Archiv auf einem anderen System.</translation>
    </message>
    <message>
        <source>Facilities of this account: %1. Set instrument.facility to one of them.</source>
        <translation>Einrichtungen dieses Kontos: %1. Setzen Sie instrument.facility auf eine davon.</translation>
    </message>
    <message>
        <source>File exists</source>
        <translation>Datei vorhanden</translation>
    </message>
    <message>
        <source>File name too long</source>
        <translation>Dateiname zu lang</translation>
    </message>
    <message>
        <source>File too large</source>
        <translation>Datei zu groß</translation>
    </message>
    <message>
        <source>Files are sent over HTTP only, because no storage box has been approved.</source>
        <translation>Dateien werden nur über HTTP gesendet, weil keine Ablage freigegeben ist.</translation>
    </message>
    <message>
        <source>Files are sent over HTTP, as set in transfer.method; SSH was not tested.</source>
        <translation>Dateien werden über HTTP gesendet, wie in transfer.method eingestellt; SSH wurde nicht getestet.</translation>
    </message>
    <message>
        <source>Files are sent over HTTP, until its key %1 is approved; SSH was not tested.</source>
        <translation>Dateien werden über HTTP gesendet, bis der Schlüssel %1 freigegeben ist; SSH wurde nicht getestet.</translation>
    </message>
    <message>
        <source>Files at this destination are read from a cache of this computer, which does not prove that the destination has them.</source>
        <translation>Dateien an diesem Ziel werden aus einem Cache dieses Computers gelesen, was nicht beweist, dass das Ziel sie hat.</translation>
    </message>
    <message>
        <source>Files can be written to %1.</source>
        <translation>Dateien können nach %1 geschrieben werden.</translation>
    </message>
    <message>
        <source>Files cannot be sent to object storage without %1.</source>
        <translation>Ohne %1 können keine Dateien an den Objektspeicher gesendet werden.</translation>
    </message>
    <message>
        <source>Files cannot be sent to object storage: the package botocore is not installed.</source>
        <translation>Dateien können nicht an den Objektspeicher gesendet werden: Das Paket botocore ist nicht installiert.</translation>
    </message>
    <message>
        <source>Files go to the bucket %1 at %2, the storage box %3.</source>
        <translation>Dateien gehen an den Bucket %1 bei %2, die Ablage %3.</translation>
    </message>
    <message>
        <source>Files still on this computer are sent or verified again now. Notify the server&apos;s administrator: other copies may be lost as well.</source>
        <translation>Dateien, die noch auf diesem Computer sind, werden jetzt wieder gesendet oder geprüft. Melden Sie es der Administration des Servers: Vielleicht sind weitere Kopien verloren.</translation>
    </message>
    <message>
        <source>Fix or delete the link.</source>
        <translation>Berichtigen oder löschen Sie die Verknüpfung.</translation>
    </message>
    <message>
        <source>Folders whose names begin with a dot are not uploaded.</source>
        <translation>Ordner, deren Namen mit einem Punkt beginnen, werden nicht hochgeladen.</translation>
    </message>
    <message>
        <source>For %1 hours no run has succeeded.</source>
        <translation>Seit %1 Stunden war kein Lauf erfolgreich.</translation>
    </message>
    <message>
        <source>For a service of the whole computer run this as an administrator.</source>
        <translation>Für einen Dienst des ganzen Computers führen Sie dies mit Administratorrechten aus.</translation>
    </message>
    <message>
        <source>Give a folder or a file.</source>
        <translation>Geben Sie einen Ordner oder eine Datei an.</translation>
    </message>
    <message>
        <source>Give a folder outside the data directory.</source>
        <translation>Geben Sie einen Ordner außerhalb des Datenordners an.</translation>
    </message>
    <message>
        <source>Give it a shorter name.</source>
        <translation>Geben Sie ihr einen kürzeren Namen.</translation>
    </message>
    <message>
        <source>Give the account that runs this program write access to the folder.</source>
        <translation>Geben Sie dem Konto, unter dem dieses Programm läuft, Schreibzugriff auf den Ordner.</translation>
    </message>
    <message>
        <source>Give the folder that it points to.</source>
        <translation>Geben Sie den Ordner an, auf den sie zeigt.</translation>
    </message>
    <message>
        <source>Have the system keep the file on this computer (in OneDrive: Always keep on this device); the next run uploads it.</source>
        <translation>Lassen Sie das System die Datei auf diesem Computer behalten (in OneDrive: Immer auf diesem Gerät behalten); der nächste Lauf lädt sie hoch.</translation>
    </message>
    <message>
        <source>Host is down</source>
        <translation>Rechner nicht in Betrieb</translation>
    </message>
    <message>
        <source>If it was moved, the next run finds it at its new path.</source>
        <translation>Wenn sie verschoben wurde, findet der nächste Lauf sie unter ihrem neuen Pfad.</translation>
    </message>
    <message>
        <source>If its certificate was issued by a private authority, set AWS_CA_BUNDLE.</source>
        <translation>Wenn eine private Stelle das Zertifikat ausgestellt hat, setzen Sie AWS_CA_BUNDLE.</translation>
    </message>
    <message>
        <source>If its certificate was issued by a private authority, set server.ca_file.</source>
        <translation>Wenn eine private Stelle das Zertifikat ausgestellt hat, setzen Sie server.ca_file.</translation>
    </message>
    <message>
        <source>If that is right, run again with --accept-folder</source>
        <translation>Wenn das stimmt, rufen Sie den Befehl noch einmal auf mit --accept-folder</translation>
    </message>
    <message>
        <source>If the first run is refused, ask the server&apos;s administrator to add the account.</source>
        <translation>Wenn der erste Lauf abgelehnt wird, bitten Sie die Administration des Servers, das Konto aufzunehmen.</translation>
    </message>
    <message>
        <source>If the instrument produced data, check that it writes to data.directory.</source>
        <translation>Wenn das Instrument Daten erzeugt hat, prüfen Sie, ob es in data.directory schreibt.</translation>
    </message>
    <message>
        <source>If the local file changes again, this choice no longer applies.</source>
        <translation>Wenn sich die lokale Datei noch einmal ändert, gilt diese Wahl nicht mehr.</translation>
    </message>
    <message>
        <source>If this access was not intended, find out who had it: the ledger and the logs contain file names.</source>
        <translation>Wenn dieser Zugriff nicht beabsichtigt war, finden Sie heraus, wer ihn hatte: Hauptbuch und Protokolle enthalten Dateinamen.</translation>
    </message>
    <message>
        <source>If this is a copy, give it its own identity: mydata-like register --new-identity. If it replaces the one on %1: mydata-like register --keep-identity</source>
        <translation>Wenn dies eine Kopie ist, geben Sie ihr eine eigene Identität: mydata-like register --new-identity. Wenn sie die auf %1 ersetzt: mydata-like register --keep-identity</translation>
    </message>
    <message>
        <source>If this network requires a login, open any page in a browser and log in. Otherwise, check the server address.</source>
        <translation>Wenn dieses Netz eine Anmeldung verlangt, öffnen Sie irgendeine Seite in einem Browser, und melden Sie sich an. Prüfen Sie sonst die Serveradresse.</translation>
    </message>
    <message>
        <source>If this persists, ask the facility&apos;s administrator to check the storage.</source>
        <translation>Wenn das so bleibt, bitten Sie die Administration der Einrichtung, den Speicher zu prüfen.</translation>
    </message>
    <message>
        <source>If this persists, the host&apos;s administrator can check the account&apos;s login scripts and its limit of processes.</source>
        <translation>Wenn das so bleibt, kann die Administration des Hosts die Anmeldeskripte des Kontos und seine Grenze für Prozesse prüfen.</translation>
    </message>
    <message>
        <source>If your server has moved there, run: mydata-like settings set server.url %1</source>
        <translation>Wenn Ihr Server dorthin umgezogen ist, rufen Sie auf: mydata-like settings set server.url %1</translation>
    </message>
    <message>
        <source>If your server has moved, change server.url in the settings.</source>
        <translation>Wenn Ihr Server umgezogen ist, ändern Sie server.url in den Einstellungen.</translation>
    </message>
    <message>
        <source>Imported with a difference:</source>
        <translation>Mit einem Unterschied übernommen:</translation>
    </message>
    <message>
        <source>Input/output error</source>
        <translation>Ein-/Ausgabefehler</translation>
    </message>
    <message>
        <source>Install that version, or choose another folder in advanced.state_directory.</source>
        <translation>Installieren Sie jene Version, oder wählen Sie einen anderen Ordner in advanced.state_directory.</translation>
    </message>
    <message>
        <source>Install the newest version. If the file is damaged, remove it and run again with --accept-missing, which makes a new one.</source>
        <translation>Installieren Sie die neueste Version. Wenn die Datei beschädigt ist, entfernen Sie sie, und rufen Sie den Befehl noch einmal auf mit --accept-missing, was eine neue anlegt.</translation>
    </message>
    <message>
        <source>Install the package ssh-python, or set transfer.ssh to &quot;auto&quot;.</source>
        <translation>Installieren Sie das Paket ssh-python, oder setzen Sie transfer.ssh auf &quot;auto&quot;.</translation>
    </message>
    <message>
        <source>Internal error: %1.</source>
        <translation>Interner Fehler: %1.</translation>
    </message>
    <message>
        <source>Invalid argument</source>
        <translation>Ungültiges Argument</translation>
    </message>
    <message>
        <source>Is a directory</source>
        <translation>Ist ein Ordner</translation>
    </message>
    <message>
        <source>It can take a while until the staging host accepts a newly approved key. If the problem persists, contact the server&apos;s administrator.</source>
        <translation>Es kann dauern, bis der Annahmerechner einen neu freigegebenen Schlüssel annimmt. Wenn das Problem bleibt, wenden Sie sich an die Administration des Servers.</translation>
    </message>
    <message>
        <source>It cannot be asked whether it sees the file: %1 This is not needed to send files.</source>
        <translation>Er kann nicht gefragt werden, ob er die Datei sieht: %1 Zum Senden wird das nicht gebraucht.</translation>
    </message>
    <message>
        <source>It contains no settings.</source>
        <translation>Sie enthält keine Einstellungen.</translation>
    </message>
    <message>
        <source>It continues.</source>
        <translation>Er läuft weiter.</translation>
    </message>
    <message>
        <source>It does not see the file in %1, the location of the storage box.</source>
        <translation>Er sieht die Datei nicht in %1, dem Ort der Ablage.</translation>
    </message>
    <message>
        <source>It has ended or never started.</source>
        <translation>Sie ist beendet oder hat nie begonnen.</translation>
    </message>
    <message>
        <source>It is a destination of this program: earlier runs sent to it.</source>
        <translation>Es ist ein Ziel dieses Programms: Frühere Läufe haben dorthin gesendet.</translation>
    </message>
    <message>
        <source>It is a destination of this program: other computers or folders send to it.</source>
        <translation>Es ist ein Ziel dieses Programms: Andere Computer oder andere Ordner senden dorthin.</translation>
    </message>
    <message>
        <source>It is left for the next run.</source>
        <translation>Sie bleibt für den nächsten Lauf.</translation>
    </message>
    <message>
        <source>It is no longer a regular file</source>
        <translation>Es ist keine gewöhnliche Datei mehr</translation>
    </message>
    <message>
        <source>It is not in UTF-8: check that letters with accents are correct above.</source>
        <translation>Sie ist nicht in UTF-8: Prüfen Sie oben, ob Umlaute und Akzente stimmen.</translation>
    </message>
    <message>
        <source>It is not known whether the server stored the records. %1</source>
        <translation>Ob der Server die Einträge gespeichert hat, ist unbekannt. %1</translation>
    </message>
    <message>
        <source>It is on the file system that is mounted at %1.</source>
        <translation>Er liegt auf dem Dateisystem, das unter %1 eingehängt ist.</translation>
    </message>
    <message>
        <source>It is on the same file system as %1, so it is probably not mounted now.</source>
        <translation>Er liegt auf demselben Dateisystem wie %1, ist also jetzt wahrscheinlich nicht eingehängt.</translation>
    </message>
    <message>
        <source>It is sent again when that has ended, in %1 seconds at the latest; everything else continues.</source>
        <translation>Sie wird noch einmal gesendet, wenn das beendet ist, spätestens in %1 Sekunden; alles andere geht weiter.</translation>
    </message>
    <message>
        <source>It is sent once that program has closed it.</source>
        <translation>Sie wird gesendet, sobald jenes Programm sie geschlossen hat.</translation>
    </message>
    <message>
        <source>It is sent when no program writes to it any more.</source>
        <translation>Sie wird gesendet, wenn kein Programm mehr in sie schreibt.</translation>
    </message>
    <message>
        <source>It is uploaded once it is old enough.</source>
        <translation>Er wird hochgeladen, sobald er alt genug ist.</translation>
    </message>
    <message>
        <source>It may be of an earlier version or of another account. Control it where it was started.</source>
        <translation>Vielleicht ist er von einer früheren Version oder von einem anderen Konto. Steuern Sie ihn dort, wo er gestartet wurde.</translation>
    </message>
    <message>
        <source>It must be a regular file that you own.</source>
        <translation>Es muss eine gewöhnliche Datei sein, die Ihnen gehört.</translation>
    </message>
    <message>
        <source>It sees the file in %1.</source>
        <translation>Er sieht die Datei in %1.</translation>
    </message>
    <message>
        <source>Its administrator can allow an algorithm that docs/ssh.md names.</source>
        <translation>Seine Administration kann ein Verfahren erlauben, das in docs/ssh.md steht.</translation>
    </message>
    <message>
        <source>Its administrator can install one: %1, or openssl.</source>
        <translation>Seine Administration kann eines installieren: %1 oder openssl.</translation>
    </message>
    <message>
        <source>Its administrator can raise MaxSessions in sshd_config (10 is the default, 0 allows nothing), or the limits of processes for this account.</source>
        <translation>Seine Administration kann MaxSessions in sshd_config erhöhen (10 ist üblich, 0 lässt nichts zu) oder die Begrenzung der Prozesse für dieses Konto.</translation>
    </message>
    <message>
        <source>Its contents are unknown, so its files are sent again.</source>
        <translation>Der Inhalt ist unbekannt, daher werden die Dateien darin noch einmal gesendet.</translation>
    </message>
    <message>
        <source>Its files that are still on this computer are sent or verified again now. Notify the server&apos;s administrator: other copies may be lost as well.</source>
        <translation>Dateien daraus, die noch auf diesem Computer sind, werden jetzt wieder gesendet oder geprüft. Melden Sie es der Administration des Servers: Vielleicht sind weitere Kopien verloren.</translation>
    </message>
    <message>
        <source>Keep the file and try again later. If this persists, notify the server&apos;s administrator: the server&apos;s verification may be stuck.</source>
        <translation>Behalten Sie die Datei, und versuchen Sie es später wieder. Wenn das so bleibt, melden Sie es der Administration des Servers: Vielleicht hängt die Prüfung des Servers.</translation>
    </message>
    <message>
        <source>Keep the file, and ask the server&apos;s administrator what happened to the record.</source>
        <translation>Behalten Sie die Datei, und fragen Sie die Administration des Servers, was mit dem Eintrag geschehen ist.</translation>
    </message>
    <message>
        <source>Keep the file, and notify the server&apos;s administrator.</source>
        <translation>Behalten Sie die Datei, und melden Sie es der Administration des Servers.</translation>
    </message>
    <message>
        <source>Keep the file. The next run compares it again.</source>
        <translation>Behalten Sie die Datei. Der nächste Lauf vergleicht sie wieder.</translation>
    </message>
    <message>
        <source>Keep the file. The next run compares it with the server again.</source>
        <translation>Behalten Sie die Datei. Der nächste Lauf vergleicht sie wieder mit dem Server.</translation>
    </message>
    <message>
        <source>Keep the file. The next run sends it again if it is missing.</source>
        <translation>Behalten Sie die Datei. Der nächste Lauf sendet sie wieder, wenn sie fehlt.</translation>
    </message>
    <message>
        <source>Keep the file. The next run sends it again.</source>
        <translation>Behalten Sie die Datei. Der nächste Lauf sendet sie wieder.</translation>
    </message>
    <message>
        <source>Keep the file; the next run requests verification.</source>
        <translation>Behalten Sie die Datei; der nächste Lauf fordert die Prüfung an.</translation>
    </message>
    <message>
        <source>Keep the local file. The next run checks again. If this persists, contact the administrator.</source>
        <translation>Behalten Sie die lokale Datei. Der nächste Lauf fragt wieder nach. Wenn das so bleibt, wenden Sie sich an die Administration.</translation>
    </message>
    <message>
        <source>Keep the local file. The next run continues. If this persists, contact the administrator.</source>
        <translation>Behalten Sie die lokale Datei. Der nächste Lauf macht weiter. Wenn das so bleibt, wenden Sie sich an die Administration.</translation>
    </message>
    <message>
        <source>Kept as it is here:</source>
        <translation>Bleibt, wie es hier ist:</translation>
    </message>
    <message>
        <source>Keys of the types Ed25519, ECDSA and RSA are supported.</source>
        <translation>Schlüssel der Arten Ed25519, ECDSA und RSA werden unterstützt.</translation>
    </message>
    <message>
        <source>Leave some hours free in limits.quiet_hours.</source>
        <translation>Lassen Sie in limits.quiet_hours einige Stunden frei.</translation>
    </message>
    <message>
        <source>Line %1 is not a setting.</source>
        <translation>Zeile %1 ist keine Einstellung.</translation>
    </message>
    <message>
        <source>Links and their targets are never deleted.</source>
        <translation>Verknüpfungen und ihre Ziele werden nie gelöscht.</translation>
    </message>
    <message>
        <source>Login and upload work: %1.</source>
        <translation>Anmeldung und Upload funktionieren: %1.</translation>
    </message>
    <message>
        <source>Many files changed within a day. The local file (%1, changed on %2 UTC) differs from the copy on the server (%3).</source>
        <translation>Viele Dateien haben sich innerhalb eines Tages geändert. Die lokale Datei (%1, geändert am %2 UTC) weicht von der Kopie auf dem Server (%3) ab.</translation>
    </message>
    <message>
        <source>Many files changed within a day. The local file (%1, changed on %2 UTC) differs from the copy on the server (%3, verified on %4 by the server&apos;s clock).</source>
        <translation>Viele Dateien haben sich innerhalb eines Tages geändert. Die lokale Datei (%1, geändert am %2 UTC) weicht von der Kopie auf dem Server (%3, nach der Uhr des Servers geprüft am %4) ab.</translation>
    </message>
    <message>
        <source>Move it away first, or add the line &quot;Made by mydata-like, which removes it as well&quot; to a comment in it.</source>
        <translation>Verschieben Sie sie zuerst, oder fügen Sie in einem Kommentar darin diese Zeile ein: &quot;Made by mydata-like, which removes it as well&quot;</translation>
    </message>
    <message>
        <source>Move it away, or choose another place in the settings; then try again.</source>
        <translation>Verschieben Sie es, oder wählen Sie in den Einstellungen einen anderen Ort; versuchen Sie es dann wieder.</translation>
    </message>
    <message>
        <source>Move it into a dataset folder, or choose another layout.</source>
        <translation>Verschieben Sie sie in den Ordner eines Datensatzes, oder wählen Sie einen anderen Aufbau.</translation>
    </message>
    <message>
        <source>MyData has no such key</source>
        <translation>MyData hat keinen solchen Schlüssel</translation>
    </message>
    <message>
        <source>MyData has no such key; did you mean %1?</source>
        <translation>MyData hat keinen solchen Schlüssel; meinten Sie %1?</translation>
    </message>
    <message>
        <source>MyData shows this time but ignores it; here it applies</source>
        <translation>MyData zeigt diese Zeit, beachtet sie aber nicht; hier gilt sie</translation>
    </message>
    <message>
        <source>MyData takes * ? [ as wildcards; here names must contain them literally</source>
        <translation>MyData nimmt * ? [ als Platzhalter; hier müssen Namen sie wörtlich enthalten</translation>
    </message>
    <message>
        <source>MyData&apos;s file contains no API key.</source>
        <translation>Die Datei von MyData enthält keinen API-Schlüssel.</translation>
    </message>
    <message>
        <source>MyData&apos;s settings are in %1. Import them: mydata-like settings import</source>
        <translation>Die Einstellungen von MyData sind in %1. Übernehmen Sie sie: mydata-like settings import</translation>
    </message>
    <message>
        <source>MyData&apos;s settings are in %1. Import them: mydata-like settings import --config &quot;%2&quot;</source>
        <translation>Die Einstellungen von MyData sind in %1. Übernehmen Sie sie: mydata-like settings import --config &quot;%2&quot;</translation>
    </message>
    <message>
        <source>MyData&apos;s settings are in %1. Import them: mydata-like settings import%2</source>
        <translation>Die Einstellungen von MyData sind in %1. Übernehmen Sie sie: mydata-like settings import%2</translation>
    </message>
    <message>
        <source>Name the file in which MyData stores its settings.</source>
        <translation>Nennen Sie die Datei, in der MyData seine Einstellungen speichert.</translation>
    </message>
    <message>
        <source>Name the file: mydata-like settings import FILE</source>
        <translation>Nennen Sie die Datei: mydata-like settings import FILE</translation>
    </message>
    <message>
        <source>Network is unreachable</source>
        <translation>Netz nicht erreichbar</translation>
    </message>
    <message>
        <source>New files are found by a scan every schedule.minutes.</source>
        <translation>Neue Dateien werden gefunden, wenn alle schedule.minutes gesucht wird.</translation>
    </message>
    <message>
        <source>No MyData.cfg was found in the usual folders of this system.</source>
        <translation>In den üblichen Ordnern dieses Systems wurde keine MyData.cfg gefunden.</translation>
    </message>
    <message>
        <source>No action is needed: files that were not complete are sent again.</source>
        <translation>Es ist nichts zu tun: Unvollständige Dateien werden wieder gesendet.</translation>
    </message>
    <message>
        <source>No action is needed: their local files have since been changed, deleted or sent again.</source>
        <translation>Es ist nichts zu tun: Die lokalen Dateien wurden seitdem geändert, gelöscht oder wieder gesendet.</translation>
    </message>
    <message>
        <source>No data directory is set.</source>
        <translation>Es ist kein Datenordner eingestellt.</translation>
    </message>
    <message>
        <source>No data was exchanged with %1 for %2 seconds.</source>
        <translation>Mit %1 wurden %2 Sekunden lang keine Daten ausgetauscht.</translation>
    </message>
    <message>
        <source>No directories can be created in the staging area.</source>
        <translation>Im Annahmebereich können keine Ordner angelegt werden.</translation>
    </message>
    <message>
        <source>No lock can be created in %1: %2.</source>
        <translation>In %1 kann keine Sperre angelegt werden: %2.</translation>
    </message>
    <message>
        <source>No longer needed:</source>
        <translation>Nicht mehr nötig:</translation>
    </message>
    <message>
        <source>No one is there to answer during an upload. The host&apos;s administrator can exempt this account from the second factor, or renew its password if that has expired.</source>
        <translation>Während eines Uploads ist niemand da, um zu antworten. Die Administration des Rechners kann dieses Konto vom zweiten Faktor ausnehmen oder sein Passwort erneuern, wenn es abgelaufen ist.</translation>
    </message>
    <message>
        <source>No route to host</source>
        <translation>Kein Weg zum Rechner</translation>
    </message>
    <message>
        <source>No run has sent this file or found it on the server.</source>
        <translation>Kein Lauf hat diese Datei gesendet oder auf dem Server gefunden.</translation>
    </message>
    <message>
        <source>No run is in progress.</source>
        <translation>Es läuft kein Lauf.</translation>
    </message>
    <message>
        <source>No run started in the last week.</source>
        <translation>In der letzten Woche hat kein Lauf begonnen.</translation>
    </message>
    <message>
        <source>No run starts automatically, because schedule.kind is manual.</source>
        <translation>Kein Lauf beginnt automatisch, weil schedule.kind auf manual steht.</translation>
    </message>
    <message>
        <source>No space left on device</source>
        <translation>Kein Speicherplatz mehr verfügbar</translation>
    </message>
    <message>
        <source>No staging host can be asked whether it sees the file.</source>
        <translation>Kein Annahmerechner kann gefragt werden, ob er die Datei sieht.</translation>
    </message>
    <message>
        <source>No such device</source>
        <translation>Kein solches Gerät</translation>
    </message>
    <message>
        <source>No such device or address</source>
        <translation>Kein solches Gerät oder keine solche Adresse</translation>
    </message>
    <message>
        <source>No such file or directory</source>
        <translation>Datei oder Ordner nicht gefunden</translation>
    </message>
    <message>
        <source>Not a directory</source>
        <translation>Kein Ordner</translation>
    </message>
    <message>
        <source>Not a setting of MyData either:</source>
        <translation>Auch keine Einstellung von MyData:</translation>
    </message>
    <message>
        <source>Not imported; check these:</source>
        <translation>Nicht übernommen; bitte prüfen:</translation>
    </message>
    <message>
        <source>Nothing can be replaced without SSH.</source>
        <translation>Ohne SSH kann nichts ersetzt werden.</translation>
    </message>
    <message>
        <source>Nothing is deleted over http://. Use the server&apos;s https:// address.</source>
        <translation>Über http:// wird nichts gelöscht. Verwenden Sie die https://-Adresse des Servers.</translation>
    </message>
    <message>
        <source>Nothing is deleted until then: set transfer.method to auto, and ask for approval with: mydata-like register</source>
        <translation>Bis dahin wird nichts gelöscht: Setzen Sie transfer.method auf auto, und beantragen Sie die Freigabe mit: mydata-like register</translation>
    </message>
    <message>
        <source>Nothing is deleted. Choose a destination on another drive or computer.</source>
        <translation>Nichts wird gelöscht. Wählen Sie ein Ziel auf einem anderen Laufwerk oder Computer.</translation>
    </message>
    <message>
        <source>Nothing is deleted. Use the host&apos;s SSH access as destination, if it has one.</source>
        <translation>Nichts wird gelöscht. Verwenden Sie den SSH-Zugang des Rechners als Ziel, wenn er einen hat.</translation>
    </message>
    <message>
        <source>Nothing is lost. The engine restarts automatically and keeps the schedule. To continue at once, press Start. If this happens again, see the log.</source>
        <translation>Nichts ist verloren. Das Übertragungsprogramm startet automatisch neu und behält den Zeitplan. Um sofort weiterzumachen, drücken Sie „Starten“. Wenn das wieder geschieht, sehen Sie im Protokoll nach.</translation>
    </message>
    <message>
        <source>Nothing is lost: the next run continues.</source>
        <translation>Nichts ist verloren: Der nächste Lauf macht weiter.</translation>
    </message>
    <message>
        <source>Nothing is lost: this run queries the server for its files, which takes a little longer.</source>
        <translation>Nichts ist verloren: Dieser Lauf fragt den Server nach dessen Dateien, was etwas länger dauert.</translation>
    </message>
    <message>
        <source>Nothing needs to be done.</source>
        <translation>Es ist nichts zu tun.</translation>
    </message>
    <message>
        <source>Nothing needs to be done. With a server, set destination.kind to mytardis.</source>
        <translation>Es ist nichts zu tun. Mit einem Server setzen Sie destination.kind auf mytardis.</translation>
    </message>
    <message>
        <source>Nothing needs to be done: the files are uploaded once.</source>
        <translation>Es ist nichts zu tun: Die Dateien werden einmal hochgeladen.</translation>
    </message>
    <message>
        <source>Nothing was changed. Unlock the keyring, or store the key unencrypted in a file that only you can read: add --key-store file.</source>
        <translation>Nichts wurde geändert. Entsperren Sie den Schlüsselbund, oder legen Sie den Schlüssel unverschlüsselt in einer Datei ab, die nur Sie lesen können: mit --key-store file.</translation>
    </message>
    <message>
        <source>Nothing was deleted. Check the free space of the disk and the permissions of the file.</source>
        <translation>Nichts wurde gelöscht. Prüfen Sie den freien Platz auf dem Datenträger und die Zugriffsrechte der Datei.</translation>
    </message>
    <message>
        <source>Nothing was replaced. Rename or remove one of the two, or copy again with --overwrite, which keeps the other file beside it for 30 days.</source>
        <translation>Nichts wurde ersetzt. Benennen Sie eine von beiden um, entfernen Sie eine, oder kopieren Sie noch einmal mit --overwrite; die andere Datei bleibt dann 30 Tage lang daneben.</translation>
    </message>
    <message>
        <source>Nothing was sent. Choose another destination, or leave --evidence out.</source>
        <translation>Nichts wurde gesendet. Wählen Sie ein anderes Ziel, oder lassen Sie --evidence weg.</translation>
    </message>
    <message>
        <source>Object storage has no objects above %1.</source>
        <translation>Im Objektspeicher gibt es keine Objekte über %1.</translation>
    </message>
    <message>
        <source>Objects in a bucket have no %1 checksums: their ETags are MD5s.</source>
        <translation>Objekte in einem Bucket haben keine %1-Prüfsummen: Ihre ETags sind MD5-Prüfsummen.</translation>
    </message>
    <message>
        <source>Only a watch can start a run.</source>
        <translation>Nur eine Beobachtung kann einen Lauf starten.</translation>
    </message>
    <message>
        <source>Only files that the program has uploaded can be freed.</source>
        <translation>Nur von Dateien, die das Programm hochgeladen hat, kann Platz geschaffen werden.</translation>
    </message>
    <message>
        <source>Only regular files are uploaded and deleted.</source>
        <translation>Nur gewöhnliche Dateien werden hochgeladen und gelöscht.</translation>
    </message>
    <message>
        <source>Open files are sent when they have not changed for 12 hours, and again if they change.</source>
        <translation>Geöffnete Dateien werden gesendet, wenn sie sich 12 Stunden lang nicht geändert haben, und wieder, wenn sie sich ändern.</translation>
    </message>
    <message>
        <source>Open it in a text editor and save it as UTF-8.</source>
        <translation>Öffnen Sie sie in einem Texteditor, und speichern Sie sie als UTF-8.</translation>
    </message>
    <message>
        <source>Operation not permitted</source>
        <translation>Vorgang nicht erlaubt</translation>
    </message>
    <message>
        <source>Other accounts of this computer could read or change %1 and %2 more; their access was removed.</source>
        <translation>Andere Konten dieses Computers konnten %1 und %2 weitere lesen oder ändern; der Zugriff wurde ihnen entzogen.</translation>
    </message>
    <message>
        <source>Other accounts of this computer could read or change %1; their access was removed.</source>
        <translation>Andere Konten dieses Computers konnten %1 lesen oder ändern; der Zugriff wurde ihnen entzogen.</translation>
    </message>
    <message>
        <source>Other programs wait for disk or memory more than %1 % of the time. Nothing new is sent.</source>
        <translation>Andere Programme warten mehr als %1 % der Zeit auf Datenträger oder Arbeitsspeicher. Es wird nichts Neues gesendet.</translation>
    </message>
    <message>
        <source>Permission denied</source>
        <translation>Zugriff verweigert</translation>
    </message>
    <message>
        <source>Please send the log to the maintainers.</source>
        <translation>Bitte senden Sie das Protokoll an die Entwickler.</translation>
    </message>
    <message>
        <source>Quiet hours fill the whole week: nothing is ever sent.</source>
        <translation>Ruhige Stunden füllen die ganze Woche: Es wird nie etwas gesendet.</translation>
    </message>
    <message>
        <source>Quiet hours: nothing is sent until %1.</source>
        <translation>Ruhige Stunden: Bis %1 wird nichts gesendet.</translation>
    </message>
    <message>
        <source>Raise that age to upload it.</source>
        <translation>Erhöhen Sie jenes Alter, um ihn hochzuladen.</translation>
    </message>
    <message>
        <source>Read-only file system</source>
        <translation>Dateisystem nur zum Lesen</translation>
    </message>
    <message>
        <source>Remote I/O error</source>
        <translation>Ein-/Ausgabefehler der Gegenseite</translation>
    </message>
    <message>
        <source>Rename it on the disk or in the settings.</source>
        <translation>Benennen Sie es auf dem Datenträger oder in den Einstellungen um.</translation>
    </message>
    <message>
        <source>Rename it on the disk.</source>
        <translation>Benennen Sie sie auf dem Datenträger um.</translation>
    </message>
    <message>
        <source>Rename one of the two folders, or give the source another dataset name.</source>
        <translation>Benennen Sie einen der beiden Ordner um, oder geben Sie der Quelle einen anderen Datensatznamen.</translation>
    </message>
    <message>
        <source>Rename one of the two folders, so that their files stay apart.</source>
        <translation>Benennen Sie einen der beiden Ordner um, damit ihre Dateien getrennt bleiben.</translation>
    </message>
    <message>
        <source>Rename the file, using only characters that display correctly.</source>
        <translation>Benennen Sie die Datei um, und verwenden Sie nur Zeichen, die richtig angezeigt werden.</translation>
    </message>
    <message>
        <source>Rename the folder to upload it.</source>
        <translation>Benennen Sie den Ordner um, um ihn hochzuladen.</translation>
    </message>
    <message>
        <source>Rename the folder, ask the facility to add the user or group, or set data.unknown_owners to upload such folders under the facility&apos;s account.</source>
        <translation>Benennen Sie den Ordner um, bitten Sie die Einrichtung, die Person oder Gruppe hinzuzufügen, oder setzen Sie data.unknown_owners, um solche Ordner unter dem Konto der Einrichtung hochzuladen.</translation>
    </message>
    <message>
        <source>Rename the folder.</source>
        <translation>Benennen Sie den Ordner um.</translation>
    </message>
    <message>
        <source>Rename the local file.</source>
        <translation>Benennen Sie die lokale Datei um.</translation>
    </message>
    <message>
        <source>Request approval with: mydata-like register</source>
        <translation>Beantragen Sie die Freigabe mit: mydata-like register</translation>
    </message>
    <message>
        <source>Request it with: mydata-like register</source>
        <translation>Beantragen Sie sie mit: mydata-like register</translation>
    </message>
    <message>
        <source>Required key not available</source>
        <translation>Nötiger Schlüssel nicht verfügbar</translation>
    </message>
    <message>
        <source>Resource busy</source>
        <translation>Ressource belegt</translation>
    </message>
    <message>
        <source>Restore the file and run again. To return to the earlier version that the server still has, run: mydata-like changed undo PATH.</source>
        <translation>Stellen Sie die Datei wieder her, und starten Sie einen neuen Lauf. Um zur früheren Fassung zurückzukehren, die der Server noch hat, führen Sie aus: mydata-like changed undo PFAD.</translation>
    </message>
    <message>
        <source>Restrict its permissions: chmod 600 %1</source>
        <translation>Schränken Sie die Zugriffsrechte ein: chmod 600 %1</translation>
    </message>
    <message>
        <source>Resume it to continue.</source>
        <translation>Setzen Sie ihn fort.</translation>
    </message>
    <message>
        <source>Run a new one.</source>
        <translation>Führen Sie einen neuen durch.</translation>
    </message>
    <message>
        <source>Run again: the file is then compared with the server&apos;s new record.</source>
        <translation>Starten Sie einen Lauf: Er vergleicht die Datei mit dem neuen Eintrag des Servers.</translation>
    </message>
    <message>
        <source>Run it again: that also removes the files that this one left on the server.</source>
        <translation>Führen Sie ihn noch einmal durch: Das entfernt auch die Dateien, die dieser auf dem Server gelassen hat.</translation>
    </message>
    <message>
        <source>Run the command on a terminal, where the host&apos;s questions can be answered, or ask its administrator to exempt this account from them.</source>
        <translation>Rufen Sie den Befehl in einem Terminal auf, wo die Fragen des Rechners beantwortet werden können, oder bitten Sie seine Administration, dieses Konto davon auszunehmen.</translation>
    </message>
    <message>
        <source>Run the same command again.</source>
        <translation>Rufen Sie denselben Befehl noch einmal auf.</translation>
    </message>
    <message>
        <source>Run the same command again. It sends only what is missing.</source>
        <translation>Rufen Sie denselben Befehl noch einmal auf. Er sendet nur, was fehlt.</translation>
    </message>
    <message>
        <source>Run: chmod 600 &apos;%1&apos;</source>
        <translation>Rufen Sie auf: chmod 600 &apos;%1&apos;</translation>
    </message>
    <message>
        <source>SFTP takes files</source>
        <translation>SFTP nimmt Dateien an</translation>
    </message>
    <message>
        <source>SFTP takes files, but does not rename and remove them</source>
        <translation>SFTP nimmt Dateien an, benennt sie aber nicht um und entfernt sie nicht</translation>
    </message>
    <message>
        <source>SSH agents cannot be used on Windows.</source>
        <translation>SSH-Agenten können unter Windows nicht verwendet werden.</translation>
    </message>
    <message>
        <source>Sending resumes automatically then. The hours are set in limits.quiet_hours.</source>
        <translation>Dann geht das Senden automatisch weiter. Die Stunden sind in limits.quiet_hours eingestellt.</translation>
    </message>
    <message>
        <source>Sending resumes automatically when the program ends.</source>
        <translation>Das Senden geht automatisch weiter, wenn das Programm endet.</translation>
    </message>
    <message>
        <source>Sending resumes automatically when they wait less than half of that.</source>
        <translation>Das Senden geht automatisch weiter, wenn sie weniger als die Hälfte davon warten.</translation>
    </message>
    <message>
        <source>Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write ~/.aws/credentials.</source>
        <translation>Setzen Sie AWS_ACCESS_KEY_ID und AWS_SECRET_ACCESS_KEY, oder schreiben Sie ~/.aws/credentials.</translation>
    </message>
    <message>
        <source>Set each with: mydata-like settings set KEY VALUE</source>
        <translation>Setzen Sie jede mit: mydata-like settings set KEY VALUE</translation>
    </message>
    <message>
        <source>Set filters.default_ignores to false to upload them.</source>
        <translation>Setzen Sie filters.default_ignores auf false, um sie hochzuladen.</translation>
    </message>
    <message>
        <source>Set it with: mydata-like settings set data.directory FOLDER</source>
        <translation>Stellen Sie ihn ein mit: mydata-like settings set data.directory FOLDER</translation>
    </message>
    <message>
        <source>Set transfer.ssh to &quot;auto&quot;: libssh does not use keys of FIDO devices.</source>
        <translation>Setzen Sie transfer.ssh auf &quot;auto&quot;: libssh verwendet keine Schlüssel von FIDO-Geräten.</translation>
    </message>
    <message>
        <source>The bandwidth is limited to %1/s (limits.bandwidth) now, but a test sends as fast as it can.</source>
        <translation>Die Bandbreite ist jetzt auf %1/s begrenzt (limits.bandwidth), aber ein Test sendet so schnell wie möglich.</translation>
    </message>
    <message>
        <source>The bandwidth is limited to %1/s (limits.timetable: %2) now, but a test sends as fast as it can.</source>
        <translation>Die Bandbreite ist jetzt auf %1/s begrenzt (limits.timetable: %2), aber ein Test sendet so schnell wie möglich.</translation>
    </message>
    <message>
        <source>The bucket %1 cannot exist: %2.</source>
        <translation>Den Bucket %1 kann es nicht geben: %2.</translation>
    </message>
    <message>
        <source>The connection to %1 was lost: %2.</source>
        <translation>Die Verbindung zu %1 ging verloren: %2.</translation>
    </message>
    <message>
        <source>The destination %1 is in the data directory, or contains it.</source>
        <translation>Das Ziel %1 ist im Datenordner oder enthält ihn.</translation>
    </message>
    <message>
        <source>The destination is full.</source>
        <translation>Das Ziel ist voll.</translation>
    </message>
    <message>
        <source>The destination is the folder itself that is to be freed, by another name.</source>
        <translation>Das Ziel ist, unter einem anderen Namen, der Ordner selbst, in dem Platz geschaffen werden soll.</translation>
    </message>
    <message>
        <source>The destination no longer has this file.</source>
        <translation>Das Ziel hat diese Datei nicht mehr.</translation>
    </message>
    <message>
        <source>The earlier content that was kept is gone, or is not what was kept.</source>
        <translation>Der aufbewahrte frühere Inhalt ist nicht mehr da oder ist nicht das, was aufbewahrt wurde.</translation>
    </message>
    <message>
        <source>The encrypted connection to %1 fails: %2.</source>
        <translation>Die verschlüsselte Verbindung zu %1 schlägt fehl: %2.</translation>
    </message>
    <message>
        <source>The file at the destination is not the one that was proven.</source>
        <translation>Die Datei am Ziel ist nicht die, die nachgewiesen wurde.</translation>
    </message>
    <message>
        <source>The folder %1 does not exist yet: the first run makes it.</source>
        <translation>Den Ordner %1 gibt es noch nicht: Der erste Lauf legt ihn an.</translation>
    </message>
    <message>
        <source>The host computes no checksums: each file is read back, so each byte travels twice.</source>
        <translation>Der Rechner berechnet keine Prüfsummen: Jede Datei wird zurückgelesen, also wird jedes Byte zweimal übertragen.</translation>
    </message>
    <message>
        <source>The host computes the checksum of each file that arrived.</source>
        <translation>Der Rechner berechnet die Prüfsumme jeder angekommenen Datei.</translation>
    </message>
    <message>
        <source>The host has no program that computes %1 checksums.</source>
        <translation>Der Rechner hat kein Programm, das %1-Prüfsummen berechnet.</translation>
    </message>
    <message>
        <source>The key is taken.</source>
        <translation>Der Schlüssel ist schon vergeben.</translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) differs from the copy on the server (%3), which the staging area cannot keep in addition to the new content.</source>
        <translation>Die lokale Datei (%1, geändert am %2 UTC) weicht von der Kopie auf dem Server (%3) ab, die der Annahmebereich nicht zusätzlich zum neuen Inhalt aufbewahren kann.</translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) differs from the copy on the server (%3), which uploads over HTTP cannot replace.</source>
        <translation>Die lokale Datei (%1, geändert am %2 UTC) weicht von der Kopie auf dem Server (%3) ab, die über HTTP nicht ersetzt werden kann.</translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) differs from the copy on the server (%3).</source>
        <translation>Die lokale Datei (%1, geändert am %2 UTC) weicht von der Kopie auf dem Server (%3) ab.</translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) differs from the copy on the server (%3, verified on %4 by the server&apos;s clock), which the staging area cannot keep in addition to the new content.</source>
        <translation>Die lokale Datei (%1, geändert am %2 UTC) weicht von der Kopie auf dem Server (%3, nach der Uhr des Servers geprüft am %4) ab, die der Annahmebereich nicht zusätzlich zum neuen Inhalt aufbewahren kann.</translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) differs from the copy on the server (%3, verified on %4 by the server&apos;s clock), which uploads over HTTP cannot replace.</source>
        <translation>Die lokale Datei (%1, geändert am %2 UTC) weicht von der Kopie auf dem Server (%3, nach der Uhr des Servers geprüft am %4) ab, die über HTTP nicht ersetzt werden kann.</translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) differs from the copy on the server (%3, verified on %4 by the server&apos;s clock).</source>
        <translation>Die lokale Datei (%1, geändert am %2 UTC) weicht von der Kopie auf dem Server (%3, nach der Uhr des Servers geprüft am %4) ab.</translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) is much smaller than the copy on the server (%3).</source>
        <translation>Die lokale Datei (%1, geändert am %2 UTC) ist viel kleiner als die Kopie auf dem Server (%3).</translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) is much smaller than the copy on the server (%3, verified on %4 by the server&apos;s clock).</source>
        <translation>Die lokale Datei (%1, geändert am %2 UTC) ist viel kleiner als die Kopie auf dem Server (%3, geprüft am %4 nach der Uhr des Servers).</translation>
    </message>
    <message>
        <source>The local file differs from the copy on the server, and the user chose to keep the copy.</source>
        <translation>Die lokale Datei unterscheidet sich von der Kopie auf dem Server; es wurde gewählt, die Kopie zu behalten.</translation>
    </message>
    <message>
        <source>The object storage&apos;s address, %1, must begin with https://.</source>
        <translation>Die Adresse des Objektspeichers, %1, muss mit https:// beginnen.</translation>
    </message>
    <message>
        <source>The proxy for %1 fails: %2.</source>
        <translation>Der Proxy für %1 schlägt fehl: %2.</translation>
    </message>
    <message>
        <source>The user held this file back.</source>
        <translation>Der Benutzer hat diese Datei zurückgestellt.</translation>
    </message>
    <message>
        <source>Copy the key again from where it is shown.</source>
        <translation>Kopieren Sie den Schlüssel noch einmal von dort, wo er angezeigt wird.</translation>
    </message>
    <message>
        <source>%1 : interrupted transfers start again from the beginning.</source>
        <translation>%1 : Unterbrochene Übertragungen beginnen wieder von vorn.</translation>
    </message>
    <message>
        <source>%1 The run tries again automatically, %2 seconds later at most.</source>
        <translation>%1 Der Lauf versucht es automatisch wieder, spätestens nach %2 Sekunden.</translation>
    </message>
    <message>
        <source>%1 allows only scp: interrupted transfers start again from the beginning.</source>
        <translation>%1 erlaubt nur scp: Unterbrochene Übertragungen beginnen wieder von vorn.</translation>
    </message>
    <message>
        <source>%1 and %2 other files are sent with a modification time in the future.</source>
        <translation>%1 und %2 andere Dateien werden mit einer Änderungszeit in der Zukunft gesendet.</translation>
    </message>
    <message>
        <source>%1 and %2 would both be copied to %3.</source>
        <translation>%1 und %2 würden beide nach %3 kopiert.</translation>
    </message>
    <message>
        <source>%1 asks us to wait until %2.</source>
        <translation>%1 bittet darum, bis %2 zu warten.</translation>
    </message>
    <message>
        <source>%1 at the destination cannot be read: %2</source>
        <translation>%1 am Ziel kann nicht gelesen werden: %2</translation>
    </message>
    <message>
        <source>%1 at the destination cannot be read: %2.</source>
        <translation>%1 am Ziel kann nicht gelesen werden: %2.</translation>
    </message>
    <message>
        <source>%1 at the destination cannot be read: no reason was given.</source>
        <translation>%1 am Ziel kann nicht gelesen werden: Es wurde kein Grund genannt.</translation>
    </message>
    <message>
        <source>%1 at the destination is damaged, or a newer version wrote it.</source>
        <translation>%1 am Ziel ist beschädigt oder wurde von einer neueren Version geschrieben.</translation>
    </message>
    <message>
        <source>%1 cannot be copied under its own name: the destination has a folder of this name for its own list of what is there.</source>
        <translation>%1 kann nicht unter seinem Namen kopiert werden: Das Ziel hat einen Ordner dieses Namens für seine eigene Liste dessen, was dort ist.</translation>
    </message>
    <message>
        <source>%1 cannot be copied: %2.</source>
        <translation>%1 kann nicht kopiert werden: %2.</translation>
    </message>
    <message>
        <source>%1 cannot be written: no reason was given.</source>
        <translation>%1 kann nicht geschrieben werden: Es wurde kein Grund genannt.</translation>
    </message>
    <message>
        <source>%1 cannot be written: permission denied.</source>
        <translation>%1 kann nicht geschrieben werden: Zugriff verweigert.</translation>
    </message>
    <message>
        <source>%1 cannot be written: the destination is mounted read-only.</source>
        <translation>%1 kann nicht geschrieben werden: Das Ziel ist nur zum Lesen eingehängt.</translation>
    </message>
    <message>
        <source>%1 closed the connection on port %2 during the key exchange.</source>
        <translation>%1 hat die Verbindung auf Port %2 während des Schlüsselaustauschs geschlossen.</translation>
    </message>
    <message>
        <source>%1 does not name a bucket.</source>
        <translation>%1 nennt keinen Bucket.</translation>
    </message>
    <message>
        <source>%1 does not name a host.</source>
        <translation>%1 nennt keinen Rechner.</translation>
    </message>
    <message>
        <source>%1 does not name a valid host.</source>
        <translation>%1 nennt keinen gültigen Rechner.</translation>
    </message>
    <message>
        <source>%1 does not name a valid user.</source>
        <translation>%1 nennt keinen gültigen Benutzer.</translation>
    </message>
    <message>
        <source>%1 does not rename and remove files: interrupted transfers start again from the beginning.</source>
        <translation>%1 benennt keine Dateien um und entfernt keine: Unterbrochene Übertragungen beginnen wieder von vorn.</translation>
    </message>
    <message>
        <source>%1 exists already.</source>
        <translation>%1 ist schon vorhanden.</translation>
    </message>
    <message>
        <source>%1 has a port that does not exist.</source>
        <translation>%1 hat einen Port, den es nicht gibt.</translation>
    </message>
    <message>
        <source>%1 has locked the ledger %2.</source>
        <translation>%1 hat das Hauptbuch %2 gesperrt.</translation>
    </message>
    <message>
        <source>%1 has no program for checksums: interrupted transfers start again from the beginning.</source>
        <translation>%1 hat kein Programm für Prüfsummen: Unterbrochene Übertragungen beginnen wieder von vorn.</translation>
    </message>
    <message>
        <source>%1 has other bytes at the destination than the manifest lists. They were not kept.</source>
        <translation>%1 hat am Ziel andere Bytes, als im Manifest stehen. Sie wurden nicht behalten.</translation>
    </message>
    <message>
        <source>%1 has the file open and may still write to it.</source>
        <translation>%1 hat die Datei geöffnet und schreibt vielleicht noch hinein.</translation>
    </message>
    <message>
        <source>%1 is a module of an rsync daemon, which is not supported.</source>
        <translation>%1 ist ein Modul eines rsync-Dienstes, was nicht unterstützt wird.</translation>
    </message>
    <message>
        <source>%1 is in %2, which is copied as well.</source>
        <translation>%1 ist in %2, das auch kopiert wird.</translation>
    </message>
    <message>
        <source>%1 is listed, but no file of this name can be read at the destination.</source>
        <translation>%1 steht im Manifest, aber am Ziel ist keine Datei dieses Namens lesbar.</translation>
    </message>
    <message>
        <source>%1 is neither an absolute path nor clearly a host.</source>
        <translation>%1 ist weder ein absoluter Pfad noch eindeutig ein Rechner.</translation>
    </message>
    <message>
        <source>%1 is no complete receipt in text form.</source>
        <translation>%1 ist kein vollständiger Beleg in Textform.</translation>
    </message>
    <message>
        <source>%1 is not a destination of mydata-like copy, and this computer does not know that it was copied.</source>
        <translation>%1 ist kein Ziel von mydata-like copy, und auf diesem Computer ist nicht bekannt, dass es kopiert wurde.</translation>
    </message>
    <message>
        <source>%1 is not a destination of mydata-like copy: it has no marker.</source>
        <translation>%1 ist kein Ziel von mydata-like copy: Die Markierung fehlt.</translation>
    </message>
    <message>
        <source>%1 is not a folder.</source>
        <translation>%1 ist kein Ordner.</translation>
    </message>
    <message>
        <source>%1 is not a host; write HOST, HOST:PORT or [ADDRESS]:PORT</source>
        <translation>%1 ist kein Rechner; schreiben Sie HOST, HOST:PORT oder [ADRESSE]:PORT</translation>
    </message>
    <message>
        <source>%1 is not a local folder.</source>
        <translation>%1 ist kein lokaler Ordner.</translation>
    </message>
    <message>
        <source>%1 is not in the manifest of %2.</source>
        <translation>%1 steht nicht im Manifest von %2.</translation>
    </message>
    <message>
        <source>%1 is not valid UTF-8, as names in object storage are.</source>
        <translation>%1 ist kein gültiges UTF-8, wie es Namen im Objektspeicher sind.</translation>
    </message>
    <message>
        <source>%1 is open in a program (%2).</source>
        <translation>%1 ist in einem Programm geöffnet (%2).</translation>
    </message>
    <message>
        <source>%1 is reached with paramiko, which is slower: the installed libssh does not check what it receives with AES-GCM, and both sides allow no other cipher.</source>
        <translation>%1 wird mit paramiko erreicht, was langsamer ist: Die installierte libssh überprüft nicht, was sie mit AES-GCM empfängt, und beide Seiten erlauben keine andere Chiffre.</translation>
    </message>
    <message>
        <source>%1 is relative to the current folder of its drive.</source>
        <translation>%1 ist relativ zum aktuellen Ordner des Laufwerks.</translation>
    </message>
    <message>
        <source>%1 is sent with a modification time in the future.</source>
        <translation>%1 wird mit einer Änderungszeit in der Zukunft gesendet.</translation>
    </message>
    <message>
        <source>%1 leads to a folder above.</source>
        <translation>%1 führt zu einem übergeordneten Ordner.</translation>
    </message>
    <message>
        <source>%1 of %2 proven files are no longer at the destination.</source>
        <translation>%1 von %2 nachgewiesenen Dateien sind nicht mehr am Ziel.</translation>
    </message>
    <message>
        <source>%1 of %2 runs of the last week did not succeed; 1 file is not safe on the server yet.</source>
        <translation>%1 von %2 Läufen der letzten Woche waren nicht erfolgreich; 1 Datei ist noch nicht sicher auf dem Server.</translation>
    </message>
    <message>
        <source>%1 of %2 runs of the last week did not succeed; 1 file is not safe on the server yet. %3</source>
        <translation>%1 von %2 Läufen der letzten Woche waren nicht erfolgreich; 1 Datei ist noch nicht sicher auf dem Server. %3</translation>
    </message>
    <message>
        <source>%1 proven files are no longer at the destination.</source>
        <translation>%1 nachgewiesene Dateien sind nicht mehr am Ziel.</translation>
    </message>
    <message>
        <source>%1 sent no valid answer of an object storage: %2.</source>
        <translation>%1 hat nicht wie ein Objektspeicher geantwortet: %2.</translation>
    </message>
    <message>
        <source>%1 wants a new code for each session, so all channels share one. That is slower. If it breaks, run the same command again.</source>
        <translation>%1 verlangt für jede Sitzung einen neuen Code, daher teilen sich alle Kanäle eine. Das ist langsamer. Wenn sie abbricht, rufen Sie denselben Befehl noch einmal auf.</translation>
    </message>
    <message>
        <source>%1 was %2 before: its files are sent again, as another dataset.</source>
        <translation>%1 hieß zuvor %2: Die Dateien darin werden noch einmal gesendet, als anderer Datensatz.</translation>
    </message>
    <message>
        <source>%1 was replaced twice by another program; the first is now named %2.</source>
        <translation>%1 wurde zweimal von einem anderen Programm ersetzt; das erste heißt jetzt %2.</translation>
    </message>
    <message>
        <source>%1, port %2, accepts no key for %3. There is no key to try.</source>
        <translation>%1, Port %2, nimmt keinen Schlüssel für %3 an. Es gibt keinen Schlüssel zum Probieren.</translation>
    </message>
    <message>
        <source>%1, port %2, accepts no key for %3. There is no key to try. Not tried: %4.</source>
        <translation>%1, Port %2, nimmt keinen Schlüssel für %3 an. Es gibt keinen Schlüssel zum Probieren. Nicht probiert: %4.</translation>
    </message>
    <message>
        <source>%1, port %2, accepts no key for %3. Tried: %4.</source>
        <translation>%1, Port %2, nimmt keinen Schlüssel für %3 an. Probiert: %4.</translation>
    </message>
    <message>
        <source>%1, port %2, accepts no key for %3. Tried: %4. Not tried: %5.</source>
        <translation>%1, Port %2, nimmt keinen Schlüssel für %3 an. Probiert: %4. Nicht probiert: %5.</translation>
    </message>
    <message>
        <source>%1: a Match with %2 is not evaluated, so it does not apply.</source>
        <translation>%1: Ein Match mit %2 wird nicht ausgewertet, gilt also nicht.</translation>
    </message>
    <message>
        <source>1 proven file is no longer at the destination.</source>
        <translation>1 nachgewiesene Datei ist nicht mehr am Ziel.</translation>
    </message>
    <message>
        <source>A bucket cannot hold symbolic links, empty folders or permissions: these are not copied.</source>
        <translation>Ein Bucket kann keine symbolischen Verknüpfungen, leeren Ordner oder Zugriffsrechte enthalten: Sie werden nicht kopiert.</translation>
    </message>
    <message>
        <source>A copy needs at least one source, and a destination.</source>
        <translation>Eine Kopie braucht mindestens eine Quelle und ein Ziel.</translation>
    </message>
    <message>
        <source>A firewall in front of the server may object to a name. Rename the file, or ask the server&apos;s administrator.</source>
        <translation>Vielleicht lehnt eine Firewall vor dem Server einen Namen ab. Benennen Sie die Datei um, oder fragen Sie die Administration des Servers.</translation>
    </message>
    <message>
        <source>A folder of %1 is a symbolic link at the destination, which is not followed.</source>
        <translation>Ein Ordner von %1 ist am Ziel eine symbolische Verknüpfung, der nicht gefolgt wird.</translation>
    </message>
    <message>
        <source>A gateway in front of the server did not wait for the answer. The server&apos;s administrator can raise its time limit (nginx: proxy_read_timeout).</source>
        <translation>Ein Gateway vor dem Server hat nicht auf die Antwort gewartet. Die Administration des Servers kann sein Zeitlimit erhöhen (nginx: proxy_read_timeout).</translation>
    </message>
    <message>
        <source>A later run uploads it if it has not changed by then. Check the clocks of this computer and of the one that wrote the file.</source>
        <translation>Ein späterer Lauf lädt sie hoch, wenn sie sich bis dahin nicht geändert hat. Prüfen Sie die Uhren dieses Computers und dessen, der die Datei geschrieben hat.</translation>
    </message>
    <message>
        <source>A later run uploads it, once it is closed or has not changed for 12 hours.</source>
        <translation>Ein späterer Lauf lädt sie hoch, sobald sie geschlossen ist oder sich 12 Stunden lang nicht geändert hat.</translation>
    </message>
    <message>
        <source>A pattern in %1 is invalid: %2</source>
        <translation>Ein Muster in %1 ist ungültig: %2</translation>
    </message>
    <message>
        <source>A pattern in --exclude is invalid: %1</source>
        <translation>Ein Muster in --exclude ist ungültig: %1</translation>
    </message>
    <message>
        <source>A pattern in --include is invalid: %1</source>
        <translation>Ein Muster in --include ist ungültig: %1</translation>
    </message>
    <message>
        <source>A process of an earlier command still writes to %1.</source>
        <translation>Ein Prozess eines früheren Befehls schreibt noch nach %1.</translation>
    </message>
    <message>
        <source>A source is empty or contains a NUL character.</source>
        <translation>Eine Quelle ist leer oder enthält ein NUL-Zeichen.</translation>
    </message>
    <message>
        <source>A start file of the account on the host, such as .bashrc, prints text. Its administrator can let it print nothing where no terminal is used.</source>
        <translation>Eine Startdatei des Kontos auf dem Rechner, etwa .bashrc, gibt Text aus. Sein Administrator kann sie so ändern, dass sie ohne Terminal nichts ausgibt.</translation>
    </message>
    <message>
        <source>A web page answered instead of %1 (status %2)%3.</source>
        <translation>Eine Webseite antwortete anstelle von %1 (Status %2)%3.</translation>
    </message>
    <message>
        <source>A web page answered instead of %1 (status %2).</source>
        <translation>Eine Webseite antwortete anstelle von %1 (Status %2).</translation>
    </message>
    <message>
        <source>A web page of a receipt contains its text form: open it and save that.</source>
        <translation>Die Webseite eines Belegs enthält seine Textform: Öffnen Sie sie und speichern Sie diese.</translation>
    </message>
    <message>
        <source>Add the folder again, with another dataset name.</source>
        <translation>Fügen Sie den Ordner noch einmal hinzu, mit einem anderen Namen des Datensatzes.</translation>
    </message>
    <message>
        <source>Add this line to ~/.ssh/authorized_keys of %1 on %2: %3</source>
        <translation>Fügen Sie diese Zeile in ~/.ssh/authorized_keys von %1 auf %2 ein: %3</translation>
    </message>
    <message>
        <source>All is well: %1 files of the last week are safe on the server.</source>
        <translation>Alles in Ordnung: %1 Dateien der letzten Woche sind sicher auf dem Server.</translation>
    </message>
    <message>
        <source>All is well: 1 file of the last week is safe on the server.</source>
        <translation>Alles in Ordnung: 1 Datei der letzten Woche ist sicher auf dem Server.</translation>
    </message>
    <message>
        <source>All runs of the last week succeeded; %1 files are not safe on the server yet.</source>
        <translation>Alle Läufe der letzten Woche waren erfolgreich; %1 Dateien sind noch nicht sicher auf dem Server.</translation>
    </message>
    <message>
        <source>All runs of the last week succeeded; %1 files are not safe on the server yet. %2</source>
        <translation>Alle Läufe der letzten Woche waren erfolgreich; %1 Dateien sind noch nicht sicher auf dem Server. %2</translation>
    </message>
    <message>
        <source>All runs of the last week succeeded; 1 file is not safe on the server yet.</source>
        <translation>Alle Läufe der letzten Woche waren erfolgreich; 1 Datei ist noch nicht sicher auf dem Server.</translation>
    </message>
    <message>
        <source>All runs of the last week succeeded; 1 file is not safe on the server yet. %1</source>
        <translation>Alle Läufe der letzten Woche waren erfolgreich; 1 Datei ist noch nicht sicher auf dem Server. %1</translation>
    </message>
    <message>
        <source>Another command has used %1 since %2</source>
        <translation>Ein anderer Befehl benutzt %1 seit %2</translation>
    </message>
    <message>
        <source>Another computer may be impersonating the host. Nothing was sent to it. Ask its administrator. If the key was replaced, remove the old one with: ssh-keygen -R &quot;%1&quot; -f &quot;%2&quot;</source>
        <translation>Vielleicht gibt sich ein anderer Computer als der Rechner aus. An ihn wurde nichts gesendet. Fragen Sie seine Administration. Wenn der Schlüssel ersetzt wurde, entfernen Sie den alten mit: ssh-keygen -R &quot;%1&quot; -f &quot;%2&quot;</translation>
    </message>
    <message>
        <source>Another computer may be impersonating the host. Nothing was sent to it. Ask its administrator. If the key was replaced, run the same command with --accept-host-key %1</source>
        <translation>Vielleicht gibt sich ein anderer Computer als der Rechner aus. An ihn wurde nichts gesendet. Fragen Sie seine Administration. Wenn der Schlüssel ersetzt wurde, rufen Sie denselben Befehl auf mit --accept-host-key %1</translation>
    </message>
    <message>
        <source>Another process does the same work.</source>
        <translation>Ein anderer Prozess erledigt dieselbe Arbeit.</translation>
    </message>
    <message>
        <source>Another process keeps the file %1 locked.</source>
        <translation>Ein anderer Prozess hält die Datei %1 gesperrt.</translation>
    </message>
    <message>
        <source>Another program has locked the ledger %1.</source>
        <translation>Ein anderes Programm hat das Hauptbuch %1 gesperrt.</translation>
    </message>
    <message>
        <source>Another session was refused: %1</source>
        <translation>Eine weitere Sitzung wurde abgelehnt: %1</translation>
    </message>
    <message>
        <source>Another session was refused: no output</source>
        <translation>Eine weitere Sitzung wurde abgelehnt: keine Ausgabe</translation>
    </message>
    <message>
        <source>Ask for it with: mydata-like register</source>
        <translation>Er wird angefordert mit: mydata-like register</translation>
    </message>
    <message>
        <source>Ask the host&apos;s administrator whether this is its key; if so, run the same command with --accept-host-key %1</source>
        <translation>Fragen Sie die Administration des Rechners, ob das sein Schlüssel ist; wenn ja, rufen Sie denselben Befehl auf mit --accept-host-key %1</translation>
    </message>
    <message>
        <source>Ask the server&apos;s administrator.</source>
        <translation>Fragen Sie die Administration des Servers.</translation>
    </message>
    <message>
        <source>Before the first run, confirm it with: mydata-like register. If the folder is not mounted, mount it.</source>
        <translation>Bestätigen Sie ihn vor dem ersten Lauf mit: mydata-like register. Wenn der Ordner nicht eingehängt ist, hängen Sie ihn ein.</translation>
    </message>
    <message>
        <source>Both contents are unchanged. To replace the one on the server without keeping it, use mydata-like changed replace.</source>
        <translation>Beide Inhalte sind unverändert. Um den auf dem Server zu ersetzen, ohne ihn aufzubewahren, verwenden Sie mydata-like changed replace.</translation>
    </message>
    <message>
        <source>Changed files wait for a decision: their verified copies on the server were not replaced.</source>
        <translation>Geänderte Dateien warten auf eine Entscheidung: Ihre geprüften Kopien auf dem Server wurden nicht ersetzt.</translation>
    </message>
    <message>
        <source>Check its name. If it is on a disk or a share, mount it.</source>
        <translation>Prüfen Sie den Namen. Wenn es auf einem Datenträger oder einer Freigabe liegt, hängen Sie diese ein.</translation>
    </message>
    <message>
        <source>Check its server and the network.</source>
        <translation>Prüfen Sie den Server des Ordners und das Netz.</translation>
    </message>
    <message>
        <source>Check that it is mounted. If it was emptied on purpose, run again with --accept-missing.</source>
        <translation>Prüfen Sie, ob es eingehängt ist. Wenn es absichtlich geleert wurde, rufen Sie den Befehl noch einmal auf mit --accept-missing.</translation>
    </message>
    <message>
        <source>Check that its disk is mounted; then run again.</source>
        <translation>Prüfen Sie, ob der Datenträger eingehängt ist; rufen Sie den Befehl dann noch einmal auf.</translation>
    </message>
    <message>
        <source>Check that the disk is not full, and that the folder is writable.</source>
        <translation>Prüfen Sie, ob der Datenträger nicht voll und der Ordner beschreibbar ist.</translation>
    </message>
    <message>
        <source>Check the address in window.update_url and the network.</source>
        <translation>Prüfen Sie die Adresse in window.update_url und das Netz.</translation>
    </message>
    <message>
        <source>Check the destination.</source>
        <translation>Prüfen Sie das Ziel.</translation>
    </message>
    <message>
        <source>Check the host&apos;s name for typing errors, and the network.</source>
        <translation>Prüfen Sie den Namen des Rechners auf Tippfehler, und das Netzwerk.</translation>
    </message>
    <message>
        <source>Check the network and transfer.s3_endpoint.</source>
        <translation>Prüfen Sie das Netz und transfer.s3_endpoint.</translation>
    </message>
    <message>
        <source>Check the number: it is in the address of its page.</source>
        <translation>Prüfen Sie die Nummer: Sie steht in der Adresse seiner Seite.</translation>
    </message>
    <message>
        <source>Check the path, and that its disk is mounted. Destinations have a folder .mydata-like.</source>
        <translation>Prüfen Sie den Pfad und ob der Datenträger eingehängt ist. Ziele haben einen Ordner .mydata-like.</translation>
    </message>
    <message>
        <source>Check the path.</source>
        <translation>Prüfen Sie den Pfad.</translation>
    </message>
    <message>
        <source>Check the path. Only what mydata-like copy has put there is fetched.</source>
        <translation>Prüfen Sie den Pfad. Geholt wird nur, was mydata-like copy dorthin kopiert hat.</translation>
    </message>
    <message>
        <source>Check the storage of the destination; then run again.</source>
        <translation>Prüfen Sie den Speicher des Ziels; rufen Sie den Befehl dann noch einmal auf.</translation>
    </message>
    <message>
        <source>Check what is mounted there. If it was replaced on purpose, run again with --accept-missing.</source>
        <translation>Prüfen Sie, was dort eingehängt ist. Wenn es absichtlich ersetzt wurde, rufen Sie den Befehl noch einmal auf mit --accept-missing.</translation>
    </message>
    <message>
        <source>Choose a destination that is in no source and contains none.</source>
        <translation>Wählen Sie ein Ziel, das in keiner Quelle liegt und keine enthält.</translation>
    </message>
    <message>
        <source>Choose for each whether to replace its copy or to keep it. To list them, run: mydata-like changed list</source>
        <translation>Wählen Sie für jede, ob ihre Kopie ersetzt oder behalten wird. Um sie aufzuführen, rufen Sie auf: mydata-like changed list</translation>
    </message>
    <message>
        <source>Close all programs that use it, or eject it in your file manager.</source>
        <translation>Schließen Sie alle Programme, die es benutzen, oder werfen Sie es in Ihrer Dateiverwaltung aus.</translation>
    </message>
    <message>
        <source>Close that program, or exclude this folder from backups and virus scans; then run again.</source>
        <translation>Schließen Sie dieses Programm, oder nehmen Sie diesen Ordner von Sicherungen und Virenprüfungen aus; starten Sie dann einen Lauf.</translation>
    </message>
    <message>
        <source>Copy it there again from the original.</source>
        <translation>Kopieren Sie sie noch einmal vom Original dorthin.</translation>
    </message>
    <message>
        <source>Copy them to different destinations.</source>
        <translation>Kopieren Sie sie an verschiedene Ziele.</translation>
    </message>
    <message>
        <source>Correct the line. `ssh -G HOST` shows how OpenSSH reads the configuration.</source>
        <translation>Berichtigen Sie die Zeile. `ssh -G HOST` zeigt, wie OpenSSH die Konfiguration liest.</translation>
    </message>
    <message>
        <source>Correct the option HostName.</source>
        <translation>Berichtigen Sie die Option HostName.</translation>
    </message>
    <message>
        <source>Correct the option Port.</source>
        <translation>Berichtigen Sie die Option Port.</translation>
    </message>
    <message>
        <source>Destinations that begin with %1:// are not supported.</source>
        <translation>Ziele, die mit %1:// beginnen, werden nicht unterstützt.</translation>
    </message>
    <message>
        <source>Download the right one from the page of its dataset.</source>
        <translation>Laden Sie die richtige von der Seite ihres Datensatzes herunter.</translation>
    </message>
    <message>
        <source>Files that are still on this computer are sent again now.</source>
        <translation>Dateien, die noch auf diesem Computer sind, werden jetzt noch einmal gesendet.</translation>
    </message>
    <message>
        <source>Files that were added from it are not verified.</source>
        <translation>Dateien, die von ihm hinzugefügt wurden, sind nicht geprüft.</translation>
    </message>
    <message>
        <source>Files were sent in the last week, but no run over the whole data directory has finished: it is unknown whether all files are safe.</source>
        <translation>In der letzten Woche wurden Dateien gesendet, aber kein Lauf über das ganze Datenverzeichnis wurde abgeschlossen: ob alle Dateien sicher sind, ist nicht bekannt.</translation>
    </message>
    <message>
        <source>Fix its permissions, or move it away.</source>
        <translation>Berichtigen Sie die Zugriffsrechte, oder verschieben Sie die Datei.</translation>
    </message>
    <message>
        <source>For a link to a folder, name the folder, or add a slash to the link.</source>
        <translation>Nennen Sie statt einer Verknüpfung mit einem Ordner den Ordner selbst, oder setzen Sie einen Schrägstrich hinter die Verknüpfung.</translation>
    </message>
    <message>
        <source>Free space there, and the copy continues. After ten minutes without any, it ends.</source>
        <translation>Schaffen Sie dort Platz, dann geht das Kopieren weiter. Nach zehn Minuten ohne Platz endet es.</translation>
    </message>
    <message>
        <source>Free space there, or have the quota raised.</source>
        <translation>Schaffen Sie dort Platz, oder lassen Sie das Kontingent erhöhen.</translation>
    </message>
    <message>
        <source>Free space there, then run the same command again: it sends only what is missing.</source>
        <translation>Schaffen Sie dort Platz, und rufen Sie denselben Befehl noch einmal auf: Er sendet nur, was fehlt.</translation>
    </message>
    <message>
        <source>Give the account of the destination access to it.</source>
        <translation>Geben Sie dem Konto des Ziels Zugriff darauf.</translation>
    </message>
    <message>
        <source>Give the account of the destination write access.</source>
        <translation>Geben Sie dem Konto des Ziels Schreibzugriff.</translation>
    </message>
    <message>
        <source>If both are addresses of the same server, use that key: mydata-like settings set-key --from %1</source>
        <translation>Wenn beide Adressen zum selben Server gehören, verwenden Sie diesen Schlüssel: mydata-like settings set-key --from %1</translation>
    </message>
    <message>
        <source>If it is on a disk or a share, mount it on the host.</source>
        <translation>Wenn es auf einem Datenträger oder einer Freigabe liegt, hängen Sie diese auf dem Rechner ein.</translation>
    </message>
    <message>
        <source>If it is on a disk or a share, mount it.</source>
        <translation>Wenn es auf einem Datenträger oder einer Freigabe liegt, hängen Sie diese ein.</translation>
    </message>
    <message>
        <source>If the host offers aes128-ctr, add it to transfer.ciphers.</source>
        <translation>Wenn der Rechner aes128-ctr anbietet, fügen Sie es zu transfer.ciphers hinzu.</translation>
    </message>
    <message>
        <source>If they were moved or removed there on purpose, run again with --accept-missing: they are sent again. If not, look at the destination first.</source>
        <translation>Wenn sie dort absichtlich verschoben oder entfernt wurden, rufen Sie den Befehl noch einmal auf mit --accept-missing: Sie werden noch einmal gesendet. Wenn nicht, sehen Sie zuerst am Ziel nach.</translation>
    </message>
    <message>
        <source>In a bucket, earlier content cannot be brought back by this program.</source>
        <translation>In einem Bucket kann dieses Programm früheren Inhalt nicht zurückholen.</translation>
    </message>
    <message>
        <source>Install it with: pip install &quot;mydata-like[s3]&quot;</source>
        <translation>Installieren Sie es mit: pip install &quot;mydata-like[s3]&quot;</translation>
    </message>
    <message>
        <source>It is kept as %1: copy that object to where it is needed.</source>
        <translation>Er wird als %1 aufbewahrt: Kopieren Sie dieses Objekt dorthin, wo es gebraucht wird.</translation>
    </message>
    <message>
        <source>It is moved aside before the next run. Nothing is lost: that run queries the server for its files, which takes a little longer.</source>
        <translation>Es wird vor dem nächsten Lauf beiseitegelegt. Nichts ist verloren: Jener Lauf fragt den Server nach dessen Dateien, was etwas länger dauert.</translation>
    </message>
    <message>
        <source>It is sent again when that has ended, in %1 seconds at the latest; everything else continues. %2</source>
        <translation>Sie wird noch einmal gesendet, wenn das beendet ist, spätestens in %1 Sekunden; alles andere geht weiter. %2</translation>
    </message>
    <message>
        <source>It is sent again.</source>
        <translation>Sie wird noch einmal gesendet.</translation>
    </message>
    <message>
        <source>It is still in use by %1: close these programs, then eject it again.</source>
        <translation>Es wird noch benutzt von %1: Schließen Sie diese Programme und werfen Sie es dann noch einmal aus.</translation>
    </message>
    <message>
        <source>It may name keys that must not be trusted. Fix its permissions.</source>
        <translation>Vielleicht nennt sie Schlüssel, denen nicht vertraut werden darf. Berichtigen Sie die Zugriffsrechte.</translation>
    </message>
    <message>
        <source>Its administrator can allow a shell for this account.</source>
        <translation>Seine Administration kann diesem Konto eine Shell erlauben.</translation>
    </message>
    <message>
        <source>Its administrator can allow it for this account.</source>
        <translation>Sein Administrator kann es für dieses Konto erlauben.</translation>
    </message>
    <message>
        <source>Its administrator can install GNU tar. All files that are counted are complete.</source>
        <translation>Dessen Administrator kann GNU tar installieren. Alle gezählten Dateien sind vollständig.</translation>
    </message>
    <message>
        <source>Its administrator can install them (GNU findutils and coreutils).</source>
        <translation>Seine Administration kann sie installieren (GNU findutils und coreutils).</translation>
    </message>
    <message>
        <source>Its disk may be failing. The copy is as it was proven: get brings it back.</source>
        <translation>Möglicherweise ist ihr Datenträger defekt. Die Kopie ist, wie sie bewiesen wurde: get holt sie zurück.</translation>
    </message>
    <message>
        <source>Keep the file. The next run sends it, unless its copy on the server is held or kept.</source>
        <translation>Behalten Sie die Datei. Der nächste Lauf sendet sie, es sei denn, sie wird zurückgehalten oder die Kopie auf dem Server soll bleiben.</translation>
    </message>
    <message>
        <source>Keep the local file. The next run compares it with the server, and sends it again if needed.</source>
        <translation>Behalten Sie die lokale Datei. Der nächste Lauf vergleicht sie mit dem Server und sendet sie noch einmal, wenn es nötig ist.</translation>
    </message>
    <message>
        <source>Many files changed within a day. The local file (%1, changed on %2 UTC) differs from the verified copy on the server (%3).</source>
        <translation>Viele Dateien haben sich innerhalb eines Tages geändert. Die lokale Datei (%1, geändert am %2 UTC) weicht von der geprüften Kopie auf dem Server (%3) ab.</translation>
    </message>
    <message>
        <source>Many files changed within a day. The local file (%1, changed on %2 UTC) differs from the verified copy on the server (%3, verified on %4 by the server&apos;s clock).</source>
        <translation>Viele Dateien haben sich innerhalb eines Tages geändert. Die lokale Datei (%1, geändert am %2 UTC) weicht von der geprüften Kopie auf dem Server (%3, nach der Uhr des Servers geprüft am %4) ab.</translation>
    </message>
    <message>
        <source>Mount it again, or restart this computer.</source>
        <translation>Hängen Sie ihn neu ein, oder starten Sie diesen Computer neu.</translation>
    </message>
    <message>
        <source>Mount it with write access.</source>
        <translation>Hängen Sie ihn mit Schreibzugriff ein.</translation>
    </message>
    <message>
        <source>Mount it, or correct transfer.folder.</source>
        <translation>Hängen Sie ihn ein, oder berichtigen Sie transfer.folder.</translation>
    </message>
    <message>
        <source>Name a folder or file.</source>
        <translation>Nennen Sie einen Ordner oder eine Datei.</translation>
    </message>
    <message>
        <source>Name a folder, or a name that does not exist yet.</source>
        <translation>Nennen Sie einen Ordner oder einen Namen, den es noch nicht gibt.</translation>
    </message>
    <message>
        <source>Name at least one folder or file.</source>
        <translation>Nennen Sie mindestens einen Ordner oder eine Datei.</translation>
    </message>
    <message>
        <source>Name only one of them.</source>
        <translation>Nennen Sie nur eines davon.</translation>
    </message>
    <message>
        <source>Name the user: USER@%1.</source>
        <translation>Nennen Sie den Benutzer: BENUTZER@%1.</translation>
    </message>
    <message>
        <source>No changed file is held at %1.</source>
        <translation>Unter %1 wird keine geänderte Datei zurückgehalten.</translation>
    </message>
    <message>
        <source>No folder at the destination can have the name %1.</source>
        <translation>Kein Ordner am Ziel kann den Namen %1 haben.</translation>
    </message>
    <message>
        <source>No new data in the last week: no run found a new file.</source>
        <translation>Keine neuen Daten in der letzten Woche: kein Lauf hat eine neue Datei gefunden.</translation>
    </message>
    <message>
        <source>Not sent yet.</source>
        <translation>Noch nicht gesendet.</translation>
    </message>
    <message>
        <source>Nothing was replaced. Rename or delete one of the two.</source>
        <translation>Nichts wurde ersetzt. Benennen Sie eines von beiden um, oder löschen Sie eines.</translation>
    </message>
    <message>
        <source>Nothing was replaced. To replace files that differ, add --replace.</source>
        <translation>Nichts wurde ersetzt. Um abweichende Dateien zu ersetzen, ergänzen Sie --replace.</translation>
    </message>
    <message>
        <source>OpenSSH refuses it as well. Restrict its permissions: chmod 600 %1</source>
        <translation>Auch OpenSSH lehnt das ab. Schränken Sie die Zugriffsrechte ein: chmod 600 %1</translation>
    </message>
    <message>
        <source>Other accounts of this computer may change the files in %1: with them, they could make the program call files safe that are not.</source>
        <translation>Andere Konten dieses Computers dürfen die Dateien in %1 ändern: Damit könnten sie bewirken, dass das Programm Dateien sicher nennt, die es nicht sind.</translation>
    </message>
    <message>
        <source>Ports are 1 to 65535.</source>
        <translation>Ports gehen von 1 bis 65535.</translation>
    </message>
    <message>
        <source>ProxyJump does not name a host: %1</source>
        <translation>ProxyJump nennt keinen Rechner: %1</translation>
    </message>
    <message>
        <source>Remove it; mydata-like logs in with keys.</source>
        <translation>Entfernen Sie es; mydata-like meldet sich mit Schlüsseln an.</translation>
    </message>
    <message>
        <source>Rename it, or copy the folder that it is in.</source>
        <translation>Benennen Sie ihn um, oder kopieren Sie den Ordner, in dem er liegt.</translation>
    </message>
    <message>
        <source>Rename the file: a shorter name without special characters can be stored everywhere.</source>
        <translation>Benennen Sie die Datei um: Ein kürzerer Name ohne Sonderzeichen kann überall gespeichert werden.</translation>
    </message>
    <message>
        <source>Rename the folder to send it.</source>
        <translation>Benennen Sie den Ordner um, damit er übertragen wird.</translation>
    </message>
    <message>
        <source>Replace the link by a folder, or choose another destination.</source>
        <translation>Ersetzen Sie die Verknüpfung durch einen Ordner, oder wählen Sie ein anderes Ziel.</translation>
    </message>
    <message>
        <source>Report this to the server&apos;s administrator. Other files are not affected.</source>
        <translation>Melden Sie es der Administration des Servers. Andere Dateien sind nicht betroffen.</translation>
    </message>
    <message>
        <source>Run the same command again once it has.</source>
        <translation>Rufen Sie danach denselben Befehl noch einmal auf.</translation>
    </message>
    <message>
        <source>Runs over both send these files twice. Upload only one of the two directories.</source>
        <translation>Läufe über beide senden diese Dateien doppelt. Laden Sie nur einen der beiden Ordner hoch.</translation>
    </message>
    <message>
        <source>Set each with: mydata-like settings set KEY VALUE. A host, folder or bucket can take the data instead of a MyTardis server: set destination.kind and destination.address</source>
        <translation>Setzen Sie jede mit: mydata-like settings set KEY VALUE. Statt eines MyTardis-Servers kann ein Rechner, ein Ordner oder ein Bucket die Daten aufnehmen: setzen Sie destination.kind und destination.address</translation>
    </message>
    <message>
        <source>Set its owners on the server&apos;s web pages.</source>
        <translation>Legen Sie die Eigentümer auf den Webseiten des Servers fest.</translation>
    </message>
    <message>
        <source>Set server.url and server.username first.</source>
        <translation>Setzen Sie zuerst server.url und server.username.</translation>
    </message>
    <message>
        <source>Set them in the environment of this program, HTTPS_PROXY=http://NAME:PASSWORD@HOST:PORT, and leave the setting server.proxy empty. Or ask for access without a password.</source>
        <translation>Setzen Sie sie in der Umgebung dieses Programms, HTTPS_PROXY=http://NAME:PASSWORD@HOST:PORT, und lassen Sie die Einstellung server.proxy leer. Oder bitten Sie um Zugang ohne Passwort.</translation>
    </message>
    <message>
        <source>Set this computer&apos;s clock, best automatically by a time server.</source>
        <translation>Stellen Sie die Uhr dieses Computers, am besten automatisch durch einen Zeitserver.</translation>
    </message>
    <message>
        <source>Set transfer.s3_access_key to its id first.</source>
        <translation>Setzen Sie zuerst transfer.s3_access_key auf seine Kennung.</translation>
    </message>
    <message>
        <source>Set transfer.s3_endpoint and transfer.s3_region to those of the bucket.</source>
        <translation>Setzen Sie transfer.s3_endpoint und transfer.s3_region auf die Werte des Buckets.</translation>
    </message>
    <message>
        <source>Set transfer.ssh to &quot;auto&quot;, which uses paramiko then, or add aes128-ctr to transfer.ciphers, if the host offers it.</source>
        <translation>Setzen Sie transfer.ssh auf &quot;auto&quot;, was dann paramiko verwendet, oder fügen Sie aes128-ctr zu transfer.ciphers hinzu, wenn der Rechner es anbietet.</translation>
    </message>
    <message>
        <source>Set:</source>
        <translation>Eingestellt:</translation>
    </message>
    <message>
        <source>Several records on the server have the path %1, with different bytes.</source>
        <translation>Mehrere Einträge auf dem Server haben den Pfad %1, mit verschiedenen Bytes.</translation>
    </message>
    <message>
        <source>Shorten the names of the file and its folders.</source>
        <translation>Kürzen Sie die Namen der Datei und ihrer Ordner.</translation>
    </message>
    <message>
        <source>Some files were not sent; the staging host may have changed.</source>
        <translation>Einige Dateien wurden nicht gesendet; vielleicht hat der Annahmerechner gewechselt.</translation>
    </message>
    <message>
        <source>Something else has the name %1 at the destination.</source>
        <translation>Etwas anderes hat am Ziel den Namen %1.</translation>
    </message>
    <message>
        <source>Stale file handle</source>
        <translation>Veralteter Dateizugriff (stale file handle)</translation>
    </message>
    <message>
        <source>Start a run over the data directory: mydata-like run</source>
        <translation>Starten Sie einen Lauf über den Datenordner: mydata-like run</translation>
    </message>
    <message>
        <source>Start a run, then eject it.</source>
        <translation>Starten Sie einen Lauf und werfen Sie es danach aus.</translation>
    </message>
    <message>
        <source>Start a run. Files that the server has verified can then be freed.</source>
        <translation>Starten Sie einen Lauf. Danach kann von Dateien, die der Server geprüft hat, Platz geschaffen werden.</translation>
    </message>
    <message>
        <source>Start ssh-agent before mydata-like, or switch transfer.ssh_agent off.</source>
        <translation>Starten Sie ssh-agent vor mydata-like, oder schalten Sie transfer.ssh_agent aus.</translation>
    </message>
    <message>
        <source>Stop that process; then try again.</source>
        <translation>Beenden Sie diesen Prozess; versuchen Sie es dann wieder.</translation>
    </message>
    <message>
        <source>Store it with `mydata-like settings set-key --s3`, or set the environment variable %1. The administrator of the object storage provides it with the access key.</source>
        <translation>Legen Sie es mit `mydata-like settings set-key --s3` ab, oder setzen Sie die Umgebungsvariable %1. Die Administration des Objektspeichers gibt es mit dem Zugriffsschlüssel aus.</translation>
    </message>
    <message>
        <source>Store it with `mydata-like settings set-key`, or set the environment variable %1. MyTardis shows it on the account&apos;s page &apos;Manage Account&apos;.</source>
        <translation>Legen Sie ihn mit `mydata-like settings set-key` ab, oder setzen Sie die Umgebungsvariable %1. MyTardis zeigt ihn auf der Seite &apos;Manage Account&apos; des Kontos.</translation>
    </message>
    <message>
        <source>Store the keys again in a new file.</source>
        <translation>Legen Sie die Schlüssel noch einmal in einer neuen Datei ab.</translation>
    </message>
    <message>
        <source>Switch transfer.ssh_agent off, and use a key without a passphrase.</source>
        <translation>Schalten Sie transfer.ssh_agent aus, und verwenden Sie einen Schlüssel ohne Passphrase.</translation>
    </message>
    <message>
        <source>Systems and programs create such files; they are not research data.</source>
        <translation>Systeme und Programme legen solche Dateien an; es sind keine Forschungsdaten.</translation>
    </message>
    <message>
        <source>Take their permission away (chmod go-w %1), or choose another folder in advanced.state_directory.</source>
        <translation>Nehmen Sie ihnen das Recht (chmod go-w %1), oder wählen Sie einen anderen Ordner in advanced.state_directory.</translation>
    </message>
    <message>
        <source>That transfer is not in progress.</source>
        <translation>Diese Übertragung läuft nicht.</translation>
    </message>
    <message>
        <source>The API key belongs to another server or account than the one set here.</source>
        <translation>Der API-Schlüssel gehört zu einem anderen Server oder Konto als dem hier eingestellten.</translation>
    </message>
    <message>
        <source>The API key cannot be stored. %1</source>
        <translation>Der API-Schlüssel kann nicht abgelegt werden. %1</translation>
    </message>
    <message>
        <source>The API key is stored for %1. If both are addresses of the same server, use that key: mydata-like settings set-key --from %2</source>
        <translation>Der API-Schlüssel ist für %1 abgelegt. Wenn beide Adressen zum selben Server gehören, verwenden Sie diesen Schlüssel: mydata-like settings set-key --from %2</translation>
    </message>
    <message>
        <source>The MyData app, which approves uploaders, is not installed on the server.</source>
        <translation>Die MyData-App, die Uploader freigibt, ist auf dem Server nicht installiert.</translation>
    </message>
    <message>
        <source>The SSH agent at %1 does not answer: %2.</source>
        <translation>Der SSH-Agent unter %1 antwortet nicht: %2.</translation>
    </message>
    <message>
        <source>The SSH configuration %1 can be changed by other users.</source>
        <translation>Die SSH-Konfiguration %1 kann von anderen Benutzern geändert werden.</translation>
    </message>
    <message>
        <source>The SSH configuration %1 cannot be read: %2.</source>
        <translation>Die SSH-Konfiguration %1 kann nicht gelesen werden: %2.</translation>
    </message>
    <message>
        <source>The SSH configuration %1 is invalid in line %2: %3 has no value.</source>
        <translation>Die SSH-Konfiguration %1 ist in Zeile %2 ungültig: %3 hat keinen Wert.</translation>
    </message>
    <message>
        <source>The SSH configuration %1 is invalid in line %2: %3.</source>
        <translation>Die SSH-Konfiguration %1 ist in Zeile %2 ungültig: %3.</translation>
    </message>
    <message>
        <source>The SSH configuration %1 is invalid in line %2: it does not begin with the name of an option.</source>
        <translation>Die SSH-Konfiguration %1 ist in Zeile %2 ungültig: Sie beginnt nicht mit dem Namen einer Option.</translation>
    </message>
    <message>
        <source>The SSH configuration %1 is invalid in line %2: too many files include one another.</source>
        <translation>Die SSH-Konfiguration %1 ist in Zeile %2 ungültig: Zu viele Dateien schließen einander ein.</translation>
    </message>
    <message>
        <source>The SSH configuration of %1 cannot be used: ProxyJump does not name a host: %2.</source>
        <translation>Die SSH-Konfiguration von %1 kann nicht verwendet werden: ProxyJump nennt keinen Rechner: %2.</translation>
    </message>
    <message>
        <source>The SSH configuration of %1 cannot be used: it does not name a user, and this account has no name, as in a container.</source>
        <translation>Die SSH-Konfiguration von %1 kann nicht verwendet werden: Sie nennt keinen Benutzer, und dieses Konto hat keinen Namen, wie in einem Container.</translation>
    </message>
    <message>
        <source>The SSH configuration of %1 cannot be used: it is reached with a ProxyCommand, and mydata-like runs no commands of it.</source>
        <translation>Die SSH-Konfiguration von %1 kann nicht verwendet werden: Er wird mit einem ProxyCommand erreicht, und mydata-like führt deren Befehle nicht aus.</translation>
    </message>
    <message>
        <source>The SSH configuration of %1 cannot be used: its HostName is not a name.</source>
        <translation>Die SSH-Konfiguration von %1 kann nicht verwendet werden: Ihr HostName ist kein Name.</translation>
    </message>
    <message>
        <source>The SSH configuration of %1 cannot be used: its jump hosts lead in a circle: %2.</source>
        <translation>Die SSH-Konfiguration von %1 kann nicht verwendet werden: Die Zwischenrechner führen im Kreis: %2.</translation>
    </message>
    <message>
        <source>The SSH configuration of %1 cannot be used: the port %2 does not exist.</source>
        <translation>Die SSH-Konfiguration von %1 kann nicht verwendet werden: Den Port %2 gibt es nicht.</translation>
    </message>
    <message>
        <source>The SSH implementation libssh is not installed here.</source>
        <translation>Die SSH-Implementierung libssh ist hier nicht installiert.</translation>
    </message>
    <message>
        <source>The access key %1 may not do this in the bucket %2: %3.</source>
        <translation>Der Zugriffsschlüssel %1 darf dies im Bucket %2 nicht: %3.</translation>
    </message>
    <message>
        <source>The access key for object storage is not set.</source>
        <translation>Der Zugriffsschlüssel für den Objektspeicher ist nicht eingestellt.</translation>
    </message>
    <message>
        <source>The account %1 cannot create these folders: %2.</source>
        <translation>Das Konto %1 kann diese Ordner nicht anlegen: %2.</translation>
    </message>
    <message>
        <source>The account %1 does not manage any facility.</source>
        <translation>Das Konto %1 verwaltet keine Einrichtung.</translation>
    </message>
    <message>
        <source>The account %1 has lost permissions on %2.</source>
        <translation>Das Konto %1 hat Rechte auf %2 verloren.</translation>
    </message>
    <message>
        <source>The account %1 has no permission for this.</source>
        <translation>Das Konto %1 hat hierzu kein Recht.</translation>
    </message>
    <message>
        <source>The account belongs to the group mydata-default-permissions.</source>
        <translation>Das Konto gehört zur Gruppe mydata-default-permissions.</translation>
    </message>
    <message>
        <source>The account does not manage a facility named &quot;%1&quot;.</source>
        <translation>Das Konto verwaltet keine Einrichtung namens „%1“.</translation>
    </message>
    <message>
        <source>The account is not in the group mydata-default-permissions, but may have the same permissions.</source>
        <translation>Das Konto ist nicht in der Gruppe mydata-default-permissions, kann aber dieselben Rechte haben.</translation>
    </message>
    <message>
        <source>The added folders and files are uploaded after it has ended.</source>
        <translation>Die hinzugefügten Ordner und Dateien werden hochgeladen, wenn er beendet ist.</translation>
    </message>
    <message>
        <source>The address %1 answers with a web page (status %2).</source>
        <translation>Die Adresse %1 antwortet mit einer Webseite (Status %2).</translation>
    </message>
    <message>
        <source>The address %1 answers with a web page%2.</source>
        <translation>Die Adresse %1 antwortet mit einer Webseite%2.</translation>
    </message>
    <message>
        <source>The address %1 answers with a web page.</source>
        <translation>Die Adresse %1 antwortet mit einer Webseite.</translation>
    </message>
    <message>
        <source>The address %1.</source>
        <translation>Die Adresse %1.</translation>
    </message>
    <message>
        <source>The address in window.update_url must give a text that begins with a version.</source>
        <translation>Die Adresse in window.update_url muss einen Text liefern, der mit einer Version beginnt.</translation>
    </message>
    <message>
        <source>The address of the storage box&apos;s object storage, %1, %2.</source>
        <translation>Die Adresse des Objektspeichers der Ablage, %1, ist nicht verwendbar: %2.</translation>
    </message>
    <message>
        <source>The address of the storage box&apos;s object storage, %1, must begin with https://.</source>
        <translation>Die Adresse des Objektspeichers der Ablage, %1, muss mit https:// beginnen.</translation>
    </message>
    <message>
        <source>The administrator of the destination has to check its storage. If copies go there now, run the same command again.</source>
        <translation>Der Administrator des Ziels muss dessen Speicher prüfen. Wird gerade dorthin kopiert, führen Sie denselben Befehl noch einmal aus.</translation>
    </message>
    <message>
        <source>The agent or the device with the key did not sign.</source>
        <translation>Der Agent oder das Gerät mit dem Schlüssel hat nicht signiert.</translation>
    </message>
    <message>
        <source>The approval of this uploader expired on %1.</source>
        <translation>Die Freigabe dieses Uploaders ist am %1 abgelaufen.</translation>
    </message>
    <message>
        <source>The approval of this uploader expires on %1.</source>
        <translation>Die Freigabe dieses Uploaders läuft am %1 ab.</translation>
    </message>
    <message>
        <source>The approval of this uploader&apos;s key %1 expired on %2.</source>
        <translation>Die Freigabe des Schlüssels %1 dieses Uploaders ist am %2 abgelaufen.</translation>
    </message>
    <message>
        <source>The approval of this uploader&apos;s key %1 has been withdrawn.</source>
        <translation>Die Freigabe des Schlüssels %1 dieses Uploaders wurde zurückgezogen.</translation>
    </message>
    <message>
        <source>The approved storage box %1 has no usable %2.</source>
        <translation>Bei der freigegebenen Ablage %1 fehlt eine verwendbare Angabe: %2.</translation>
    </message>
    <message>
        <source>The approved storage box %1 is not that of a bucket.</source>
        <translation>Die freigegebene Ablage %1 ist nicht die eines Buckets.</translation>
    </message>
    <message>
        <source>The approved storage box %1 is not that of the bucket %2.</source>
        <translation>Die freigegebene Ablage %1 ist nicht die des Buckets %2.</translation>
    </message>
    <message>
        <source>The archive %1 on the server is ignored: %2</source>
        <translation>Das Archiv %1 auf dem Server wird ignoriert: %2</translation>
    </message>
    <message>
        <source>The archive on the server that should contain this file does not.</source>
        <translation>Das Archiv auf dem Server, das diese Datei enthalten sollte, enthält sie nicht.</translation>
    </message>
    <message>
        <source>The archive on the server that should contain this file is damaged or of another program.</source>
        <translation>Das Archiv auf dem Server, das diese Datei enthalten sollte, ist beschädigt oder von einem anderen Programm.</translation>
    </message>
    <message>
        <source>The certificate authorities in %1 cannot be read: %2.</source>
        <translation>Die Zertifizierungsstellen in %1 können nicht gelesen werden: %2.</translation>
    </message>
    <message>
        <source>The certificate of %1 is not trusted: %2.</source>
        <translation>Dem Zertifikat von %1 wird nicht vertraut: %2.</translation>
    </message>
    <message>
        <source>The channels are closed.</source>
        <translation>Die Kanäle sind geschlossen.</translation>
    </message>
    <message>
        <source>The checksum of %1 does not match.</source>
        <translation>Die Prüfsumme von %1 stimmt nicht.</translation>
    </message>
    <message>
        <source>The choice cannot be written into the state folder.</source>
        <translation>Die Entscheidung kann nicht in den Ordner des Zustands geschrieben werden.</translation>
    </message>
    <message>
        <source>The command cannot be written into the state folder.</source>
        <translation>Der Befehl kann nicht in den Zustandsordner geschrieben werden.</translation>
    </message>
    <message>
        <source>The connection broke.</source>
        <translation>Die Verbindung ist abgebrochen.</translation>
    </message>
    <message>
        <source>The connection to %1 broke.</source>
        <translation>Die Verbindung zu %1 ist abgebrochen.</translation>
    </message>
    <message>
        <source>The connection to %1 was lost%2.</source>
        <translation>Die Verbindung zu %1 ging verloren%2.</translation>
    </message>
    <message>
        <source>The connection to %1 was lost.</source>
        <translation>Die Verbindung zu %1 ging verloren.</translation>
    </message>
    <message>
        <source>The connection to %1 was lost: a packet was damaged or changed on the way.</source>
        <translation>Die Verbindung zu %1 ging verloren: Ein Paket wurde unterwegs beschädigt oder verändert.</translation>
    </message>
    <message>
        <source>The connection to the server is not encrypted, so an attacker on the network could report files as safe.</source>
        <translation>Die Verbindung zum Server ist nicht verschlüsselt, daher könnte ein Angreifer im Netz Dateien fälschlich als sicher melden.</translation>
    </message>
    <message>
        <source>The connection to the server was not measured: files are sent to object storage.</source>
        <translation>Die Verbindung zum Server wurde nicht gemessen: Dateien werden in einen Objektspeicher übertragen.</translation>
    </message>
    <message>
        <source>The connection to the server was not measured: no run has sent anything to it yet.</source>
        <translation>Die Verbindung zum Server wurde nicht gemessen: Noch kein Lauf hat etwas dorthin übertragen.</translation>
    </message>
    <message>
        <source>The content is not on this computer, but in cloud storage such as OneDrive, or on tape.</source>
        <translation>Der Inhalt ist nicht auf diesem Computer, sondern in einem Cloud-Speicher wie OneDrive oder auf Band.</translation>
    </message>
    <message>
        <source>The content on the server was not replaced, because the staging area cannot keep it. %1</source>
        <translation>Der Inhalt auf dem Server wurde nicht ersetzt, weil der Annahmebereich ihn nicht aufbewahren kann. %1</translation>
    </message>
    <message>
        <source>The content on the server was not replaced, because the staging area cannot keep it. The staging host cannot rename files.</source>
        <translation>Der Inhalt auf dem Server wurde nicht ersetzt, weil der Annahmebereich ihn nicht aufbewahren kann. Der Annahmerechner kann keine Dateien umbenennen.</translation>
    </message>
    <message>
        <source>The contents of %1 would be mixed with the other sources.</source>
        <translation>Der Inhalt von %1 würde mit den anderen Quellen vermischt.</translation>
    </message>
    <message>
        <source>The copy at the destination does not match the checksum, even after it was sent again.</source>
        <translation>Die Kopie am Ziel stimmt nicht mit der Prüfsumme überein, auch nachdem sie noch einmal gesendet wurde.</translation>
    </message>
    <message>
        <source>The copy was not replaced. To replace it, copy again with --replace-changed; the earlier content is kept beside it for 30 days.</source>
        <translation>Die Kopie wurde nicht ersetzt. Um sie zu ersetzen, kopieren Sie noch einmal mit --replace-changed; der frühere Inhalt bleibt 30 Tage lang daneben.</translation>
    </message>
    <message>
        <source>The credential %1 of the service cannot be read.</source>
        <translation>Das Credential %1 des Dienstes kann nicht gelesen werden.</translation>
    </message>
    <message>
        <source>The data directories %1 and %2 contain the same files.</source>
        <translation>Die Datenordner %1 und %2 enthalten dieselben Dateien.</translation>
    </message>
    <message>
        <source>The data directory %1 is not available: %2.</source>
        <translation>Der Datenordner %1 ist nicht verfügbar: %2.</translation>
    </message>
    <message>
        <source>The data directory contains no folders.</source>
        <translation>Der Datenordner enthält keine Ordner.</translation>
    </message>
    <message>
        <source>The data directory is not available: %1 is empty, and the %2 files that earlier runs found there are missing.</source>
        <translation>Der Datenordner ist nicht verfügbar: %1 ist leer, und die %2 Dateien, die frühere Läufe dort fanden, fehlen.</translation>
    </message>
    <message>
        <source>The data directory is not available: %1 is empty, and the file that earlier runs found there is missing.</source>
        <translation>Der Datenordner ist nicht verfügbar: %1 ist leer, und die Datei, die frühere Läufe dort fanden, fehlt.</translation>
    </message>
    <message>
        <source>The dataset folder changed more recently than filters.ignore_newer_than ago.</source>
        <translation>Der Ordner des Datensatzes hat sich innerhalb von filters.ignore_newer_than geändert.</translation>
    </message>
    <message>
        <source>The dataset folder has not changed for longer than filters.ignore_older_than.</source>
        <translation>Der Ordner des Datensatzes hat sich länger als filters.ignore_older_than nicht geändert.</translation>
    </message>
    <message>
        <source>The dataset with the earlier name stays on the server. Rename the folder back if this was not intended.</source>
        <translation>Der Datensatz mit dem früheren Namen bleibt auf dem Server. Geben Sie dem Ordner den früheren Namen zurück, wenn das nicht beabsichtigt war.</translation>
    </message>
    <message>
        <source>The dataset&apos;s name contains a null character.</source>
        <translation>Der Name des Datensatzes enthält ein Nullzeichen.</translation>
    </message>
    <message>
        <source>The dataset&apos;s name contains bytes that are not text.</source>
        <translation>Der Name des Datensatzes enthält Bytes, die kein Text sind.</translation>
    </message>
    <message>
        <source>The dataset&apos;s name has %1 characters; the server allows %2.</source>
        <translation>Der Name des Datensatzes hat %1 Zeichen; der Server erlaubt %2.</translation>
    </message>
    <message>
        <source>The dataset&apos;s name is empty.</source>
        <translation>Der Name des Datensatzes ist leer.</translation>
    </message>
    <message>
        <source>The deletion log %1 cannot be read: %2.</source>
        <translation>Das Löschprotokoll %1 kann nicht gelesen werden: %2.</translation>
    </message>
    <message>
        <source>The deletion log %1 cannot be written: %2.</source>
        <translation>Das Löschprotokoll %1 kann nicht geschrieben werden: %2.</translation>
    </message>
    <message>
        <source>The destination %1 cannot be entered.</source>
        <translation>Das Ziel %1 kann nicht betreten werden.</translation>
    </message>
    <message>
        <source>The destination %1 cannot be reached: %2.</source>
        <translation>Das Ziel %1 kann nicht erreicht werden: %2.</translation>
    </message>
    <message>
        <source>The destination %1 contains a NUL character.</source>
        <translation>Das Ziel %1 enthält ein NUL-Zeichen.</translation>
    </message>
    <message>
        <source>The destination %1 does not exist.</source>
        <translation>Das Ziel %1 gibt es nicht.</translation>
    </message>
    <message>
        <source>The destination %1 has lost its marker while it was verified.</source>
        <translation>Das Ziel %1 hat seine Markierung verloren, während es geprüft wurde.</translation>
    </message>
    <message>
        <source>The destination %1 is in a source, or a source is in it.</source>
        <translation>Das Ziel %1 ist in einer Quelle, oder eine Quelle ist darin.</translation>
    </message>
    <message>
        <source>The destination %1 is in the source %2, or the source in the destination.</source>
        <translation>Das Ziel %1 ist in der Quelle %2, oder die Quelle im Ziel.</translation>
    </message>
    <message>
        <source>The destination %1 is not a folder.</source>
        <translation>Das Ziel %1 ist kein Ordner.</translation>
    </message>
    <message>
        <source>The destination %1 was lost: %2.</source>
        <translation>Das Ziel %1 ging verloren: %2.</translation>
    </message>
    <message>
        <source>The destination cannot store the name %1.</source>
        <translation>Das Ziel kann den Namen %1 nicht speichern.</translation>
    </message>
    <message>
        <source>The destination contains a password, which is not supported.</source>
        <translation>Das Ziel enthält ein Passwort, was nicht unterstützt wird.</translation>
    </message>
    <message>
        <source>The destination could not be listed: %1</source>
        <translation>Das Ziel konnte nicht aufgelistet werden: %1</translation>
    </message>
    <message>
        <source>The destination could not be listed: %1.</source>
        <translation>Das Ziel konnte nicht aufgelistet werden: %1.</translation>
    </message>
    <message>
        <source>The destination could not be listed: no reason was given.</source>
        <translation>Das Ziel konnte nicht aufgelistet werden: Es wurde kein Grund genannt.</translation>
    </message>
    <message>
        <source>The destination has %1 checksums, which its first copy has chosen.</source>
        <translation>Das Ziel hat %1-Prüfsummen, die seine erste Kopie gewählt hat.</translation>
    </message>
    <message>
        <source>The destination has a folder of this name for its own list of what is there.</source>
        <translation>Das Ziel hat einen Ordner dieses Namens für seine eigene Liste dessen, was dort ist.</translation>
    </message>
    <message>
        <source>The destination has another file of this name, which this program has not put there.</source>
        <translation>Am Ziel ist eine andere Datei dieses Namens, die nicht von diesem Programm ist.</translation>
    </message>
    <message>
        <source>The destination has lost its marker: earlier runs had put .mydata-like there.</source>
        <translation>Das Ziel hat seine Markierung verloren: Frühere Läufe hatten dort .mydata-like angelegt.</translation>
    </message>
    <message>
        <source>The destination has no space for %1.</source>
        <translation>Am Ziel ist kein Platz für %1.</translation>
    </message>
    <message>
        <source>The destination has no space for the rest.</source>
        <translation>Das Ziel hat keinen Platz für den Rest.</translation>
    </message>
    <message>
        <source>The destination is empty.</source>
        <translation>Das Ziel ist leer.</translation>
    </message>
    <message>
        <source>The destination lost %1, which was stored temporarily.</source>
        <translation>Das Ziel hat %1 verloren, was dort vorläufig gespeichert war.</translation>
    </message>
    <message>
        <source>The directory contains a null character.</source>
        <translation>Der Ordnerpfad enthält ein Nullzeichen.</translation>
    </message>
    <message>
        <source>The directory contains bytes that are not text.</source>
        <translation>Der Ordnerpfad enthält Bytes, die kein Text sind.</translation>
    </message>
    <message>
        <source>The directory of %1 has more than the 255 characters the server allows.</source>
        <translation>Der Ordnerpfad von %1 hat mehr als die 255 Zeichen, die der Server erlaubt.</translation>
    </message>
    <message>
        <source>The engine ended unexpectedly (%1).</source>
        <translation>Das Übertragungsprogramm wurde unerwartet beendet (%1).</translation>
    </message>
    <message>
        <source>The experiment %1 could not be shared: %2</source>
        <translation>Das Experiment %1 konnte nicht geteilt werden: %2</translation>
    </message>
    <message>
        <source>The experiment&apos;s title contains a null character.</source>
        <translation>Der Titel des Experiments enthält ein Nullzeichen.</translation>
    </message>
    <message>
        <source>The experiment&apos;s title contains bytes that are not text.</source>
        <translation>Der Titel des Experiments enthält Bytes, die kein Text sind.</translation>
    </message>
    <message>
        <source>The experiment&apos;s title has %1 characters; the server allows %2.</source>
        <translation>Der Titel des Experiments hat %1 Zeichen; der Server erlaubt %2.</translation>
    </message>
    <message>
        <source>The experiment&apos;s title is empty.</source>
        <translation>Der Titel des Experiments ist leer.</translation>
    </message>
    <message>
        <source>The facility has no instrument %1 yet; registering creates it.</source>
        <translation>Die Einrichtung hat noch kein Instrument %1; das Registrieren legt es an.</translation>
    </message>
    <message>
        <source>The facility has the instrument %1.</source>
        <translation>Die Einrichtung hat das Instrument %1.</translation>
    </message>
    <message>
        <source>The file %1 cannot be written: %2.</source>
        <translation>Die Datei %1 kann nicht geschrieben werden: %2.</translation>
    </message>
    <message>
        <source>The file %1 stays in the staging area: this host does not allow us to remove files.</source>
        <translation>Die Datei %1 bleibt im Annahmebereich: Dieser Rechner lässt das Entfernen von Dateien nicht zu.</translation>
    </message>
    <message>
        <source>The file cannot be read: %1.</source>
        <translation>Die Datei kann nicht gelesen werden: %1.</translation>
    </message>
    <message>
        <source>The file changed recently and may still be written to.</source>
        <translation>Die Datei hat sich vor Kurzem geändert, und vielleicht wird noch in sie geschrieben.</translation>
    </message>
    <message>
        <source>The file changed while it was being sent.</source>
        <translation>Die Datei hat sich während des Sendens geändert.</translation>
    </message>
    <message>
        <source>The file is not in a dataset folder.</source>
        <translation>Die Datei liegt nicht im Ordner eines Datensatzes.</translation>
    </message>
    <message>
        <source>The file was kept. Close the program, and try again.</source>
        <translation>Die Datei wurde behalten. Schließen Sie das Programm, und versuchen Sie es wieder.</translation>
    </message>
    <message>
        <source>The file was kept. Free space as the account that owns it, or as administrator.</source>
        <translation>Die Datei wurde behalten. Schaffen Sie Platz unter dem Konto, dem sie gehört, oder mit Administratorrechten.</translation>
    </message>
    <message>
        <source>The file was kept. The next run checks it again.</source>
        <translation>Die Datei wurde behalten. Der nächste Lauf sieht noch einmal nach.</translation>
    </message>
    <message>
        <source>The file was known as verified, but an answer of the server contradicts that.</source>
        <translation>Die Datei galt als geprüft, aber eine Antwort des Servers widerspricht dem.</translation>
    </message>
    <message>
        <source>The file was not sent completely.</source>
        <translation>Die Datei wurde nicht vollständig gesendet.</translation>
    </message>
    <message>
        <source>The file was removed again.</source>
        <translation>Die Datei wurde wieder entfernt.</translation>
    </message>
    <message>
        <source>The file&apos;s content has changed since it was sent, although size and time have not.</source>
        <translation>Der Inhalt der Datei hat sich seit dem Senden geändert, Größe und Zeit aber nicht.</translation>
    </message>
    <message>
        <source>The file&apos;s modification time is in the future.</source>
        <translation>Die Änderungszeit der Datei liegt in der Zukunft.</translation>
    </message>
    <message>
        <source>The file&apos;s name contains a null character.</source>
        <translation>Der Name der Datei enthält ein Nullzeichen.</translation>
    </message>
    <message>
        <source>The file&apos;s name contains bytes that are not text.</source>
        <translation>Der Name der Datei enthält Bytes, die kein Text sind.</translation>
    </message>
    <message>
        <source>The file&apos;s name has %1 characters; the server allows %2.</source>
        <translation>Der Name der Datei hat %1 Zeichen; der Server erlaubt %2.</translation>
    </message>
    <message>
        <source>The file&apos;s name has more than %1 characters, more than the server can store.</source>
        <translation>Der Name der Datei hat mehr als %1 Zeichen, mehr als der Server speichern kann.</translation>
    </message>
    <message>
        <source>The file&apos;s name is empty.</source>
        <translation>Der Name der Datei ist leer.</translation>
    </message>
    <message>
        <source>The files that it lists are compared again. Keep it, and check the storage of the destination.</source>
        <translation>Die Dateien, die darin stehen, werden noch einmal verglichen. Behalten Sie es, und prüfen Sie den Speicher des Ziels.</translation>
    </message>
    <message>
        <source>The first file that the server verifies proves that the folder is the right one.</source>
        <translation>Die erste Datei, die der Server prüft, beweist, dass es der richtige Ordner ist.</translation>
    </message>
    <message>
        <source>The folder %1 cannot be created: %2.</source>
        <translation>Der Ordner %1 kann nicht angelegt werden: %2.</translation>
    </message>
    <message>
        <source>The folder %1 cannot be reached: %2.</source>
        <translation>Der Ordner %1 ist nicht erreichbar: %2.</translation>
    </message>
    <message>
        <source>The folder %1 did not respond within the time of the test.</source>
        <translation>Der Ordner %1 hat während der Zeit des Tests nicht geantwortet.</translation>
    </message>
    <message>
        <source>The folder %1 does not accept files: %2</source>
        <translation>Der Ordner %1 nimmt keine Dateien an: %2</translation>
    </message>
    <message>
        <source>The folder %1 does not respond.</source>
        <translation>Der Ordner %1 antwortet nicht.</translation>
    </message>
    <message>
        <source>The folder %1 does not respond: %2 processes wait for it and cannot be ended.</source>
        <translation>Der Ordner %1 antwortet nicht: %2 Prozesse warten auf ihn und können nicht beendet werden.</translation>
    </message>
    <message>
        <source>The folder %1 is mounted read-only.</source>
        <translation>Der Ordner %1 ist nur zum Lesen eingehängt.</translation>
    </message>
    <message>
        <source>The folder %1 was deleted.</source>
        <translation>Der Ordner %1 wurde gelöscht.</translation>
    </message>
    <message>
        <source>The folder belongs to a destination of copy, and lists what is there.</source>
        <translation>Der Ordner gehört zu einem Ziel von copy und verzeichnet, was dort ist.</translation>
    </message>
    <message>
        <source>The folder cannot be read: %1.</source>
        <translation>Der Ordner kann nicht gelesen werden: %1.</translation>
    </message>
    <message>
        <source>The folder has no sub-folder MyTardis.</source>
        <translation>Der Ordner hat keinen Unterordner MyTardis.</translation>
    </message>
    <message>
        <source>The folder has no sub-folder with this instrument&apos;s name.</source>
        <translation>Der Ordner hat keinen Unterordner mit dem Namen dieses Instruments.</translation>
    </message>
    <message>
        <source>The folder is not confirmed yet: %1</source>
        <translation>Der Ordner ist noch nicht bestätigt: %1</translation>
    </message>
    <message>
        <source>The folder of the file does not exist.</source>
        <translation>Den Ordner der Datei gibt es nicht.</translation>
    </message>
    <message>
        <source>The folder was lost: %1: %2.</source>
        <translation>Der Ordner ging verloren: %1: %2.</translation>
    </message>
    <message>
        <source>The folder&apos;s name does not contain %1.</source>
        <translation>Der Name des Ordners enthält nicht %1.</translation>
    </message>
    <message>
        <source>The home folder of another user, %1, is not looked up.</source>
        <translation>Der persönliche Ordner eines anderen Benutzers, %1, wird nicht gesucht.</translation>
    </message>
    <message>
        <source>The host allows no SFTP: %1</source>
        <translation>Der Rechner erlaubt kein SFTP: %1</translation>
    </message>
    <message>
        <source>The host allows no shell with the programs that copies need: %1.</source>
        <translation>Der Rechner erlaubt keine Shell mit den Programmen, die Kopien brauchen: %1.</translation>
    </message>
    <message>
        <source>The host answers, but it may limit logins (MaxStartups of sshd) or block this computer (fail2ban, TCP wrappers, a firewall), or the port is not that of its SSH server. Its administrator finds the reason in the log of sshd.</source>
        <translation>Der Rechner antwortet, aber vielleicht begrenzt er Anmeldungen (MaxStartups von sshd) oder sperrt diesen Computer aus (fail2ban, TCP-Wrapper, eine Firewall), oder der Port ist nicht der seines SSH-Servers. Seine Administration findet den Grund im Protokoll von sshd.</translation>
    </message>
    <message>
        <source>The host did not report which files it has placed.</source>
        <translation>Der Rechner hat nicht gemeldet, welche Dateien er an ihren Ort gebracht hat.</translation>
    </message>
    <message>
        <source>The host lacks programs that copies need: find, xargs -0 and stat.</source>
        <translation>Dem Rechner fehlen Programme, die Kopien brauchen: find, xargs -0 und stat.</translation>
    </message>
    <message>
        <source>The identity of this installation cannot be read from %1: %2.</source>
        <translation>Die Identität dieser Installation kann nicht aus %1 gelesen werden: %2.</translation>
    </message>
    <message>
        <source>The identity of this installation is not set in its own settings file.</source>
        <translation>Die Identität dieser Installation steht nicht in ihrer eigenen Einstellungsdatei.</translation>
    </message>
    <message>
        <source>The include and exclude patterns exclude this file.</source>
        <translation>Die Muster zum Ein- und Ausschließen schließen diese Datei aus.</translation>
    </message>
    <message>
        <source>The installed libssh does not check what it receives with AES-GCM (CVE-2026-59847), and transfer.ciphers and %1 have no other cipher in common.</source>
        <translation>Die installierte libssh überprüft nicht, was sie mit AES-GCM empfängt (CVE-2026-59847), und transfer.ciphers und %1 haben keine andere Chiffre gemeinsam.</translation>
    </message>
    <message>
        <source>The instrument&apos;s name contains a null character.</source>
        <translation>Der Name des Instruments enthält ein Nullzeichen.</translation>
    </message>
    <message>
        <source>The instrument&apos;s name contains bytes that are not text.</source>
        <translation>Der Name des Instruments enthält Bytes, die kein Text sind.</translation>
    </message>
    <message>
        <source>The instrument&apos;s name has %1 characters; the server allows %2.</source>
        <translation>Der Name des Instruments hat %1 Zeichen; der Server erlaubt %2.</translation>
    </message>
    <message>
        <source>The instrument&apos;s name is empty.</source>
        <translation>Der Name des Instruments ist leer.</translation>
    </message>
    <message>
        <source>The key %1 of this uploader awaits approval.</source>
        <translation>Der Schlüssel %1 dieses Uploaders wartet auf seine Freigabe.</translation>
    </message>
    <message>
        <source>The key %1 of this uploader awaits approval. The administrator wrote: %2</source>
        <translation>Der Schlüssel %1 dieses Uploaders wartet auf seine Freigabe. Die Administration schrieb: %2</translation>
    </message>
    <message>
        <source>The key exchange with %1 on port %2 failed: %3.</source>
        <translation>Der Schlüsselaustausch mit %1 auf Port %2 ist gescheitert: %3.</translation>
    </message>
    <message>
        <source>The key is approved for the storage box %1.</source>
        <translation>Der Schlüssel ist freigegeben für die Ablage %1.</translation>
    </message>
    <message>
        <source>The key of %1, port %2, is not known yet. Its fingerprint is %3 (%4).</source>
        <translation>Der Schlüssel von %1, Port %2, ist noch nicht bekannt. Sein Fingerabdruck ist %3 (%4).</translation>
    </message>
    <message>
        <source>The key of %1, port %2, was revoked: %3 (%4).</source>
        <translation>Der Schlüssel von %1, Port %2, wurde widerrufen: %3 (%4).</translation>
    </message>
    <message>
        <source>The known hosts file %1 cannot be read: %2.</source>
        <translation>Die known_hosts-Datei %1 kann nicht gelesen werden: %2.</translation>
    </message>
    <message>
        <source>The layout uses another folder of this level.</source>
        <translation>Der Aufbau verwendet einen anderen Ordner dieser Ebene.</translation>
    </message>
    <message>
        <source>The ledger %1 cannot be used: %2.</source>
        <translation>Das Hauptbuch %1 kann nicht verwendet werden: %2.</translation>
    </message>
    <message>
        <source>The ledger %1 is damaged: %2.</source>
        <translation>Das Hauptbuch %1 ist beschädigt: %2.</translation>
    </message>
    <message>
        <source>The ledger was damaged and has been moved aside as %1.</source>
        <translation>Das Hauptbuch war beschädigt und wurde als %1 beiseitegelegt.</translation>
    </message>
    <message>
        <source>The ledger was written by a newer version of this program.</source>
        <translation>Das Hauptbuch wurde von einer neueren Version dieses Programms geschrieben.</translation>
    </message>
    <message>
        <source>The ledger was written by an older version of this program.</source>
        <translation>Das Hauptbuch wurde von einer älteren Version dieses Programms geschrieben.</translation>
    </message>
    <message>
        <source>The local file %1 has other bytes than its copy, although it has the same size and time.</source>
        <translation>Die lokale Datei %1 hat andere Bytes als ihre Kopie, obwohl Größe und Zeit gleich sind.</translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) differs from the verified copy on the server (%3), which the staging area cannot keep in addition to the new content.</source>
        <translation>Die lokale Datei (%1, geändert am %2 UTC) weicht von der geprüften Kopie auf dem Server (%3) ab, die der Annahmebereich nicht zusätzlich zum neuen Inhalt aufbewahren kann.</translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) differs from the verified copy on the server (%3), which uploads over HTTP cannot replace.</source>
        <translation>Die lokale Datei (%1, geändert am %2 UTC) weicht von der geprüften Kopie auf dem Server (%3) ab, die über HTTP nicht ersetzt werden kann.</translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) differs from the verified copy on the server (%3).</source>
        <translation>Die lokale Datei (%1, geändert am %2 UTC) weicht von der geprüften Kopie auf dem Server (%3) ab.</translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) differs from the verified copy on the server (%3, verified on %4 by the server&apos;s clock), which the staging area cannot keep in addition to the new content.</source>
        <translation>Die lokale Datei (%1, geändert am %2 UTC) weicht von der geprüften Kopie auf dem Server (%3, nach der Uhr des Servers geprüft am %4) ab, die der Annahmebereich nicht zusätzlich zum neuen Inhalt aufbewahren kann.</translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) differs from the verified copy on the server (%3, verified on %4 by the server&apos;s clock), which uploads over HTTP cannot replace.</source>
        <translation>Die lokale Datei (%1, geändert am %2 UTC) weicht von der geprüften Kopie auf dem Server (%3, nach der Uhr des Servers geprüft am %4) ab, die über HTTP nicht ersetzt werden kann.</translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) differs from the verified copy on the server (%3, verified on %4 by the server&apos;s clock).</source>
        <translation>Die lokale Datei (%1, geändert am %2 UTC) weicht von der geprüften Kopie auf dem Server (%3, nach der Uhr des Servers geprüft am %4) ab.</translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) is much smaller than the verified copy on the server (%3).</source>
        <translation>Die lokale Datei (%1, geändert am %2 UTC) ist viel kleiner als die geprüfte Kopie auf dem Server (%3).</translation>
    </message>
    <message>
        <source>The local file (%1, changed on %2 UTC) is much smaller than the verified copy on the server (%3, verified on %4 by the server&apos;s clock).</source>
        <translation>Die lokale Datei (%1, geändert am %2 UTC) ist viel kleiner als die geprüfte Kopie auf dem Server (%3, nach der Uhr des Servers geprüft am %4).</translation>
    </message>
    <message>
        <source>The local file differs from the content that the server has verified.</source>
        <translation>Die lokale Datei unterscheidet sich von dem Inhalt, den der Server geprüft hat.</translation>
    </message>
    <message>
        <source>The local file differs from the server&apos;s copy, which is no longer in the staging area.</source>
        <translation>Die lokale Datei weicht von der Kopie des Servers ab, die nicht mehr im Annahmebereich liegt.</translation>
    </message>
    <message>
        <source>The local file has the same name as an archive of other files on the server.</source>
        <translation>Die lokale Datei hat denselben Namen wie ein Archiv anderer Dateien auf dem Server.</translation>
    </message>
    <message>
        <source>The log lists them with the reasons; mydata-like status shows the current state.</source>
        <translation>Das Protokoll führt sie mit den Gründen auf; mydata-like status zeigt den jetzigen Stand.</translation>
    </message>
    <message>
        <source>The log shows why; mydata-like status shows what the program is waiting for.</source>
        <translation>Das Protokoll zeigt den Grund; mydata-like status zeigt, worauf das Programm wartet.</translation>
    </message>
    <message>
        <source>The manifest lists %1, which is no path of a file there.</source>
        <translation>Im Manifest steht %1, was dort kein Pfad einer Datei ist.</translation>
    </message>
    <message>
        <source>The manifest of %1 lists no files.</source>
        <translation>Das Manifest von %1 verzeichnet keine Dateien.</translation>
    </message>
    <message>
        <source>The name %1 contains bytes that are not text.</source>
        <translation>Der Name %1 enthält Bytes, die kein Text sind.</translation>
    </message>
    <message>
        <source>The name is not valid text, so the server cannot store it.</source>
        <translation>Der Name ist kein gültiger Text, daher kann der Server ihn nicht speichern.</translation>
    </message>
    <message>
        <source>The new bytes of %1 are not in the staging area.</source>
        <translation>Die neuen Bytes von %1 sind nicht im Annahmebereich.</translation>
    </message>
    <message>
        <source>The new bytes of %1 are not there.</source>
        <translation>Die neuen Bytes von %1 sind nicht dort.</translation>
    </message>
    <message>
        <source>The newest version is not known: %1.</source>
        <translation>Die neueste Version ist nicht bekannt: %1.</translation>
    </message>
    <message>
        <source>The newest version is not known: the answer has status %1 and no version.</source>
        <translation>Die neueste Version ist nicht bekannt: Die Antwort hat den Status %1 und keine Version.</translation>
    </message>
    <message>
        <source>The next host may be down, or the one before it may not allow forwarding.</source>
        <translation>Vielleicht ist der nächste Rechner ausgefallen, oder der davor lässt keine Weiterleitung zu.</translation>
    </message>
    <message>
        <source>The next run brings it up to date.</source>
        <translation>Der nächste Lauf bringt es auf den neuen Stand.</translation>
    </message>
    <message>
        <source>The next run checks again. If this persists, contact the server&apos;s administrator.</source>
        <translation>Der nächste Lauf fragt wieder nach. Wenn das so bleibt, wenden Sie sich an die Administration des Servers.</translation>
    </message>
    <message>
        <source>The next run checks it again.</source>
        <translation>Der nächste Lauf sieht noch einmal nach.</translation>
    </message>
    <message>
        <source>The next run has it verify all files of these datasets again. Keep the local files, and notify the server&apos;s administrator.</source>
        <translation>Der nächste Lauf lässt ihn alle Dateien dieser Datensätze noch einmal prüfen. Behalten Sie die lokalen Dateien, und melden Sie es der Administration des Servers.</translation>
    </message>
    <message>
        <source>The next run sends it.</source>
        <translation>Der nächste Lauf sendet sie.</translation>
    </message>
    <message>
        <source>The next run sends it. The server&apos;s administrator can free space or raise the quota.</source>
        <translation>Der nächste Lauf sendet sie. Die Administration des Servers kann Platz schaffen oder das Kontingent erhöhen.</translation>
    </message>
    <message>
        <source>The next run sends the rest again.</source>
        <translation>Der nächste Lauf sendet den Rest wieder.</translation>
    </message>
    <message>
        <source>The next run sends them. The server&apos;s administrator can free space or raise the quota.</source>
        <translation>Der nächste Lauf sendet sie. Die Administration des Servers kann Platz schaffen oder das Kontingent erhöhen.</translation>
    </message>
    <message>
        <source>The next run updates it.</source>
        <translation>Der nächste Lauf bringt es auf den neuen Stand.</translation>
    </message>
    <message>
        <source>The next run uploads it, unless the filters or the layout exclude it.</source>
        <translation>Der nächste Lauf lädt sie hoch, wenn Filter oder Aufbau sie nicht ausschließen.</translation>
    </message>
    <message>
        <source>The next run uploads it.</source>
        <translation>Der nächste Lauf lädt sie hoch.</translation>
    </message>
    <message>
        <source>The next run uploads the rest.</source>
        <translation>Der nächste Lauf lädt den Rest hoch.</translation>
    </message>
    <message>
        <source>The next run uses it.</source>
        <translation>Der nächste Lauf verwendet ihn.</translation>
    </message>
    <message>
        <source>The next test replaces it; the server&apos;s administrator may remove it.</source>
        <translation>Der nächste Test ersetzt sie; die Administration des Servers darf sie entfernen.</translation>
    </message>
    <message>
        <source>The object storage cannot store the name: %1.</source>
        <translation>Der Objektspeicher kann den Namen nicht speichern: %1.</translation>
    </message>
    <message>
        <source>The object storage could not do this now: %1.</source>
        <translation>Der Objektspeicher konnte dies jetzt nicht tun: %1.</translation>
    </message>
    <message>
        <source>The object storage is full, or its quota is used up: %1.</source>
        <translation>Der Objektspeicher ist voll, oder sein Kontingent ist ausgeschöpft: %1.</translation>
    </message>
    <message>
        <source>The object storage received other bytes than were sent.</source>
        <translation>Der Objektspeicher hat andere Bytes empfangen, als gesendet wurden.</translation>
    </message>
    <message>
        <source>The object storage received other bytes than were sent: %1.</source>
        <translation>Der Objektspeicher hat andere Bytes empfangen, als gesendet wurden: %1.</translation>
    </message>
    <message>
        <source>The object storage refuses requests because this computer&apos;s clock differs from its own by too much: %1.</source>
        <translation>Der Objektspeicher lehnt Anfragen ab, weil die Uhr dieses Computers zu sehr von seiner eigenen abweicht: %1.</translation>
    </message>
    <message>
        <source>The object storage refuses this: %1.</source>
        <translation>Der Objektspeicher lehnt dies ab: %1.</translation>
    </message>
    <message>
        <source>The object storage&apos;s address cannot be used: %1</source>
        <translation>Die Adresse des Objektspeichers kann nicht verwendet werden: %1</translation>
    </message>
    <message>
        <source>The only run of the last week did not succeed; %1 files are not safe on the server yet.</source>
        <translation>Der einzige Lauf der letzten Woche war nicht erfolgreich; %1 Dateien sind noch nicht sicher auf dem Server.</translation>
    </message>
    <message>
        <source>The only run of the last week did not succeed; %1 files are not safe on the server yet. %2</source>
        <translation>Der einzige Lauf der letzten Woche war nicht erfolgreich; %1 Dateien sind noch nicht sicher auf dem Server. %2</translation>
    </message>
    <message>
        <source>The only run of the last week did not succeed; 1 file is not safe on the server yet.</source>
        <translation>Der einzige Lauf der letzten Woche war nicht erfolgreich; 1 Datei ist noch nicht sicher auf dem Server.</translation>
    </message>
    <message>
        <source>The only run of the last week did not succeed; 1 file is not safe on the server yet. %1</source>
        <translation>Der einzige Lauf der letzten Woche war nicht erfolgreich; 1 Datei ist noch nicht sicher auf dem Server. %1</translation>
    </message>
    <message>
        <source>The parts of %1 uploads that were interrupted a week ago or earlier were removed from the bucket.</source>
        <translation>Die Teile von %1 Uploads, die vor einer Woche oder länger unterbrochen wurden, wurden aus dem Bucket entfernt.</translation>
    </message>
    <message>
        <source>The parts of 1 upload that were interrupted a week ago or earlier were removed from the bucket.</source>
        <translation>Die Teile von 1 Upload, der vor einer Woche oder länger unterbrochen wurde, wurden aus dem Bucket entfernt.</translation>
    </message>
    <message>
        <source>The path %1 points outside its dataset on the server.</source>
        <translation>Der Pfad %1 führt auf dem Server aus seinem Datensatz heraus.</translation>
    </message>
    <message>
        <source>The path below the dataset folder has more than %1 characters, more than the server can store.</source>
        <translation>Der Pfad unter dem Ordner des Datensatzes hat mehr als %1 Zeichen, mehr als der Server speichern kann.</translation>
    </message>
    <message>
        <source>The path contains a null character.</source>
        <translation>Der Pfad enthält ein Nullzeichen.</translation>
    </message>
    <message>
        <source>The path contains bytes that are not text.</source>
        <translation>Der Pfad enthält Bytes, die kein Text sind.</translation>
    </message>
    <message>
        <source>The pattern file %1 cannot be read: %2</source>
        <translation>Die Musterdatei %1 kann nicht gelesen werden: %2</translation>
    </message>
    <message>
        <source>The payload was cancelled.</source>
        <translation>Die Übertragung wurde abgebrochen.</translation>
    </message>
    <message>
        <source>The private key %1 can be read by other users of this computer.</source>
        <translation>Der private Schlüssel %1 kann von anderen Konten dieses Computers gelesen werden.</translation>
    </message>
    <message>
        <source>The private key %1 cannot be read: %2.</source>
        <translation>Der private Schlüssel %1 kann nicht gelesen werden: %2.</translation>
    </message>
    <message>
        <source>The private key %1 is protected by a passphrase.</source>
        <translation>Der private Schlüssel %1 ist durch eine Passphrase geschützt.</translation>
    </message>
    <message>
        <source>The private key of %1 is stored on a device or in an agent.</source>
        <translation>Der private Schlüssel zu %1 liegt auf einem Gerät oder in einem Agenten.</translation>
    </message>
    <message>
        <source>The process of a channel ended during its work.</source>
        <translation>Der Prozess eines Kanals ist bei der Arbeit beendet worden.</translation>
    </message>
    <message>
        <source>The program is already open, but does not respond.</source>
        <translation>Das Programm ist schon geöffnet, antwortet aber nicht.</translation>
    </message>
    <message>
        <source>The program waits for it, for %1 seconds at most.</source>
        <translation>Das Programm wartet darauf, höchstens %1 Sekunden.</translation>
    </message>
    <message>
        <source>The proxy for %1 refuses the connection.</source>
        <translation>Der Proxy für %1 lehnt die Verbindung ab.</translation>
    </message>
    <message>
        <source>The proxy for %1 requires an account and a password.</source>
        <translation>Der Proxy für %1 verlangt ein Konto und ein Passwort.</translation>
    </message>
    <message>
        <source>The registration may have been withdrawn; ask the server&apos;s administrator.</source>
        <translation>Vielleicht wurde die Registrierung zurückgezogen; fragen Sie die Administration des Servers.</translation>
    </message>
    <message>
        <source>The response to a request was lost; the server may still be processing it.</source>
        <translation>Die Antwort auf eine Anfrage ging verloren; vielleicht bearbeitet der Server sie noch.</translation>
    </message>
    <message>
        <source>The run does not answer.</source>
        <translation>Der Lauf antwortet nicht.</translation>
    </message>
    <message>
        <source>The run ends before this file&apos;s turn.</source>
        <translation>Der Lauf endet, bevor diese Datei an der Reihe ist.</translation>
    </message>
    <message>
        <source>The run has just ended.</source>
        <translation>Der Lauf wurde gerade beendet.</translation>
    </message>
    <message>
        <source>The run in progress accepts no commands.</source>
        <translation>Der jetzige Lauf nimmt keine Befehle an.</translation>
    </message>
    <message>
        <source>The run is ending, so it cannot be paused.</source>
        <translation>Der Lauf endet gerade und kann daher nicht pausiert werden.</translation>
    </message>
    <message>
        <source>The run is ending.</source>
        <translation>Der Lauf endet gerade.</translation>
    </message>
    <message>
        <source>The run tries again automatically, %1 seconds later at most.</source>
        <translation>Der Lauf versucht es automatisch wieder, spätestens nach %1 Sekunden.</translation>
    </message>
    <message>
        <source>The run was stopped before it finished.</source>
        <translation>Der Lauf wurde angehalten, bevor er fertig war.</translation>
    </message>
    <message>
        <source>The secrets file %1 belongs to another account.</source>
        <translation>Die Datei mit Geheimnissen %1 gehört einem anderen Konto.</translation>
    </message>
    <message>
        <source>The secrets file %1 can be read by other accounts.</source>
        <translation>Die Datei mit Geheimnissen %1 kann von anderen Konten gelesen werden.</translation>
    </message>
    <message>
        <source>The secrets file %1 cannot be opened: %2.</source>
        <translation>Die Datei mit Geheimnissen %1 kann nicht geöffnet werden: %2.</translation>
    </message>
    <message>
        <source>The secrets file %1 has unexpected content.</source>
        <translation>Die Datei mit Geheimnissen %1 hat einen unerwarteten Inhalt.</translation>
    </message>
    <message>
        <source>The secrets file %1 is not TOML.</source>
        <translation>Die Datei mit Geheimnissen %1 ist kein TOML.</translation>
    </message>
    <message>
        <source>The server accepted the request for approval but does not list it.</source>
        <translation>Der Server hat den Antrag auf Freigabe angenommen, führt ihn aber nicht auf.</translation>
    </message>
    <message>
        <source>The server address %1 is not a web address.</source>
        <translation>Die Serveradresse %1 ist keine Webadresse.</translation>
    </message>
    <message>
        <source>The server address %1 is not encrypted.</source>
        <translation>Die Serveradresse %1 ist nicht verschlüsselt.</translation>
    </message>
    <message>
        <source>The server answered SFTP with: %1.</source>
        <translation>Der Server hat auf SFTP geantwortet: %1.</translation>
    </message>
    <message>
        <source>The server cannot store the name of the %1: %2 has characters that cannot be shown.</source>
        <translation>Der Server kann diesen Namen nicht speichern (%1): %2 hat Zeichen, die nicht angezeigt werden können.</translation>
    </message>
    <message>
        <source>The server cannot store the name of the %1: it has more than %2 characters.</source>
        <translation>Der Server kann diesen Namen nicht speichern (%1): Er hat mehr als %2 Zeichen.</translation>
    </message>
    <message>
        <source>The server cannot store the name of the %1: it is empty.</source>
        <translation>Der Server kann diesen Namen nicht speichern (%1): Er ist leer.</translation>
    </message>
    <message>
        <source>The server did not accept a chunk: %1</source>
        <translation>Der Server hat ein Stück nicht angenommen: %1</translation>
    </message>
    <message>
        <source>The server did not accept the records: %1</source>
        <translation>Der Server hat die Einträge nicht angenommen: %1</translation>
    </message>
    <message>
        <source>The server did not confirm %1.</source>
        <translation>Der Server hat %1 nicht bestätigt.</translation>
    </message>
    <message>
        <source>The server does not allow reading the archive %1: %2</source>
        <translation>Der Server erlaubt nicht, das Archiv %1 zu lesen: %2</translation>
    </message>
    <message>
        <source>The server does not support sharing the experiment %1.</source>
        <translation>Der Server unterstützt das Teilen des Experiments %1 nicht.</translation>
    </message>
    <message>
        <source>The server ended SFTP.</source>
        <translation>Der Server hat SFTP beendet.</translation>
    </message>
    <message>
        <source>The server has a file of this name and size. The local file must be read to compare them.</source>
        <translation>Der Server hat eine Datei mit diesem Namen und dieser Größe. Zum Vergleich muss die lokale Datei gelesen werden.</translation>
    </message>
    <message>
        <source>The server has a record of %1, but not its bytes.</source>
        <translation>Der Server hat einen Eintrag für %1, aber nicht seine Bytes.</translation>
    </message>
    <message>
        <source>The server has assigned another staging area since this run started.</source>
        <translation>Der Server hat seit dem Beginn dieses Laufs einen anderen Annahmebereich zugewiesen.</translation>
    </message>
    <message>
        <source>The server has different content for %1, which cannot be replaced without SSH.</source>
        <translation>Der Server hat einen anderen Inhalt für %1, der ohne SSH nicht ersetzt werden kann.</translation>
    </message>
    <message>
        <source>The server has moved these files away from its staging area.</source>
        <translation>Der Server hat diese Dateien aus seinem Annahmebereich verschoben.</translation>
    </message>
    <message>
        <source>The server has no %1 %2.</source>
        <translation>Auf dem Server gibt es %1 %2 nicht.</translation>
    </message>
    <message>
        <source>The server has no record of this file any more.</source>
        <translation>Der Server hat keinen Eintrag dieser Datei mehr.</translation>
    </message>
    <message>
        <source>The server has no user or group for the folder %1.</source>
        <translation>Der Server kennt keine Person oder Gruppe zum Ordner %1.</translation>
    </message>
    <message>
        <source>The server has no verified copy of this file at present.</source>
        <translation>Der Server hat zurzeit keine geprüfte Kopie dieser Datei.</translation>
    </message>
    <message>
        <source>The server has not verified %1, so it was not fetched.</source>
        <translation>Der Server hat %1 nicht geprüft, also wurde es nicht geholt.</translation>
    </message>
    <message>
        <source>The server has not verified the new content of this file yet.</source>
        <translation>Der Server hat den neuen Inhalt dieser Datei noch nicht geprüft.</translation>
    </message>
    <message>
        <source>The server has not verified this file yet.</source>
        <translation>Der Server hat diese Datei noch nicht geprüft.</translation>
    </message>
    <message>
        <source>The server has not yet verified its copy of this file again, as requested.</source>
        <translation>Der Server hat seine Kopie dieser Datei noch nicht wieder geprüft, wie angefordert.</translation>
    </message>
    <message>
        <source>The server has repeatedly confirmed the record of this file without storing it.</source>
        <translation>Der Server hat den Eintrag dieser Datei wiederholt bestätigt, ohne ihn zu speichern.</translation>
    </message>
    <message>
        <source>The server has the file, but has not verified it yet.</source>
        <translation>Der Server hat die Datei, hat sie aber noch nicht geprüft.</translation>
    </message>
    <message>
        <source>The server keeps no earlier content of %1.</source>
        <translation>Der Server bewahrt keinen früheren Inhalt von %1 auf.</translation>
    </message>
    <message>
        <source>The server must offer TLS 1.2 or later on this port.</source>
        <translation>Der Server muss auf diesem Port TLS 1.2 oder neuer anbieten.</translation>
    </message>
    <message>
        <source>The server no longer has %1 files of the dataset %2 as verified: records or copies are missing or differ.</source>
        <translation>Auf dem Server sind %1 Dateien des Datensatzes %2 nicht mehr so vorhanden, wie er sie geprüft hat: Einträge oder Kopien fehlen oder weichen ab.</translation>
    </message>
    <message>
        <source>The server no longer has 1 file of the dataset %1 as verified: records or copies are missing or differ.</source>
        <translation>Auf dem Server ist 1 Datei des Datensatzes %1 nicht mehr so vorhanden, wie er sie geprüft hat: Einträge oder Kopien fehlen oder weichen ab.</translation>
    </message>
    <message>
        <source>The server no longer has a record of this file, or this account may not see it.</source>
        <translation>Der Server hat keinen Eintrag dieser Datei mehr, oder dieses Konto darf ihn nicht sehen.</translation>
    </message>
    <message>
        <source>The server no longer has the archive %1 as verified: its record or its copy is missing or differs.</source>
        <translation>Auf dem Server ist das Archiv %1 nicht mehr so vorhanden, wie er es geprüft hat: Sein Eintrag oder seine Kopie fehlt oder weicht ab.</translation>
    </message>
    <message>
        <source>The server requires a chunk checksum that is not supported.</source>
        <translation>Der Server verlangt eine Prüfsumme für Stücke, die nicht unterstützt wird.</translation>
    </message>
    <message>
        <source>The server returned other bytes for %1 than it has verified.</source>
        <translation>Der Server hat für %1 andere Bytes zurückgegeben, als er geprüft hat.</translation>
    </message>
    <message>
        <source>The server&apos;s administrator can allow a shell, scp or SFTP for this account.</source>
        <translation>Die Administration des Servers kann diesem Konto eine Shell, scp oder SFTP erlauben.</translation>
    </message>
    <message>
        <source>The server&apos;s administrator can fix its permissions or free space.</source>
        <translation>Die Administration des Servers kann die Zugriffsrechte berichtigen oder Platz schaffen.</translation>
    </message>
    <message>
        <source>The server&apos;s administrator can fix its permissions.</source>
        <translation>Die Administration des Servers kann die Zugriffsrechte berichtigen.</translation>
    </message>
    <message>
        <source>The server&apos;s administrator can free space or raise the quota.</source>
        <translation>Die Administration des Servers kann Platz schaffen oder das Kontingent erhöhen.</translation>
    </message>
    <message>
        <source>The server&apos;s administrator may delete the empty one.</source>
        <translation>Die Administration des Servers darf das leere löschen.</translation>
    </message>
    <message>
        <source>The server&apos;s answer is too large.</source>
        <translation>Die Antwort des Servers ist zu groß.</translation>
    </message>
    <message>
        <source>The server&apos;s copy does not match the checksum, even after the file was sent again.</source>
        <translation>Die Kopie des Servers stimmt nicht mit der Prüfsumme überein, auch nachdem die Datei noch einmal gesendet wurde.</translation>
    </message>
    <message>
        <source>The server&apos;s record describes a newer version of this file that never arrived, and the local file was missing when it should have been sent again.</source>
        <translation>Der Eintrag des Servers beschreibt eine neuere Fassung dieser Datei, die nie angekommen ist, und die lokale Datei fehlte, als sie noch einmal gesendet werden sollte.</translation>
    </message>
    <message>
        <source>The server&apos;s record does not match the local file.</source>
        <translation>Der Eintrag des Servers passt nicht zur lokalen Datei.</translation>
    </message>
    <message>
        <source>The server&apos;s record of this file is invalid: %1.</source>
        <translation>Der Eintrag des Servers zu dieser Datei ist ungültig: %1.</translation>
    </message>
    <message>
        <source>The server&apos;s settings conflict with those of this computer: %1</source>
        <translation>Die Einstellungen des Servers widersprechen denen dieses Computers: %1</translation>
    </message>
    <message>
        <source>The server&apos;s settings exclude this: %1.</source>
        <translation>Die Einstellungen des Servers schließen dies aus: %1.</translation>
    </message>
    <message>
        <source>The server&apos;s settings for this uploader have changed. It now sets: %1.</source>
        <translation>Die Einstellungen des Servers für diesen Uploader haben sich geändert. Er setzt jetzt: %1.</translation>
    </message>
    <message>
        <source>The server&apos;s settings for this uploader have changed. It now sets: none.</source>
        <translation>Die Einstellungen des Servers für diesen Uploader haben sich geändert. Er setzt jetzt keine.</translation>
    </message>
    <message>
        <source>The server, or a gateway in front of it, limits the size of a request. The server&apos;s administrator can raise that limit (nginx: client_max_body_size).</source>
        <translation>Der Server oder ein Gateway davor begrenzt die Größe einer Anfrage. Die Administration des Servers kann diese Grenze erhöhen (nginx: client_max_body_size).</translation>
    </message>
    <message>
        <source>The service computes the checksum of each object that arrived.</source>
        <translation>Der Dienst berechnet die Prüfsumme jedes angekommenen Objekts.</translation>
    </message>
    <message>
        <source>The service&apos;s ETags are no checksums, as with encryption by a key management service: each object is read back, so each byte travels twice. The service may charge for this.</source>
        <translation>Die ETags des Dienstes sind keine Prüfsummen, wie bei Verschlüsselung durch einen Dienst zur Schlüsselverwaltung: Jedes Objekt wird zurückgelesen, also wird jedes Byte zweimal übertragen. Der Dienst kann dafür Gebühren verlangen.</translation>
    </message>
    <message>
        <source>The session of a channel was closed because another channel failed.</source>
        <translation>Die Sitzung eines Kanals wurde geschlossen, weil ein anderer Kanal fehlgeschlagen ist.</translation>
    </message>
    <message>
        <source>The session with %1 has ended, and the host wants a new code for another.</source>
        <translation>Die Sitzung mit %1 ist beendet, und der Rechner verlangt für eine weitere einen neuen Code.</translation>
    </message>
    <message>
        <source>The setting server.ca_file requires a PEM file.</source>
        <translation>Die Einstellung server.ca_file verlangt eine PEM-Datei.</translation>
    </message>
    <message>
        <source>The settings exclude symbolic links of this kind.</source>
        <translation>Die Einstellungen schließen symbolische Verknüpfungen dieser Art aus.</translation>
    </message>
    <message>
        <source>The settings file %1 does not exist.</source>
        <translation>Die Einstellungsdatei %1 gibt es nicht.</translation>
    </message>
    <message>
        <source>The settings file cannot be edited here because of its syntax.</source>
        <translation>Die Einstellungsdatei kann hier wegen ihrer Syntax nicht bearbeitet werden.</translation>
    </message>
    <message>
        <source>The settings were changed and are now invalid. %1</source>
        <translation>Die Einstellungen wurden geändert und sind jetzt ungültig. %1</translation>
    </message>
    <message>
        <source>The shards have no common identity yet.</source>
        <translation>Die Teile haben noch keine gemeinsame Identität.</translation>
    </message>
    <message>
        <source>The shell of %1 is not used, since it has no %2.</source>
        <translation>Die Shell von %1 wird nicht verwendet, denn ihr fehlt %2.</translation>
    </message>
    <message>
        <source>The shell of the host did not answer as expected.</source>
        <translation>Die Shell des Rechners hat nicht wie erwartet geantwortet.</translation>
    </message>
    <message>
        <source>The shell of the staging host did not answer.</source>
        <translation>Die Shell des Annahmerechners hat nicht geantwortet.</translation>
    </message>
    <message>
        <source>The signal address of monitor.signal_url could not be called: %1.</source>
        <translation>Die Signaladresse von monitor.signal_url konnte nicht aufgerufen werden: %1.</translation>
    </message>
    <message>
        <source>The signal address of monitor.signal_url could not be called: it answers with status %1.</source>
        <translation>Die Signaladresse von monitor.signal_url konnte nicht aufgerufen werden: Sie antwortet mit Status %1.</translation>
    </message>
    <message>
        <source>The signal file cannot be written: %1.</source>
        <translation>Die Signaldatei kann nicht geschrieben werden: %1.</translation>
    </message>
    <message>
        <source>The speed test ended unexpectedly (%1).</source>
        <translation>Der Geschwindigkeitstest wurde unerwartet beendet (%1).</translation>
    </message>
    <message>
        <source>The speed test has reached its limit of bytes.</source>
        <translation>Der Geschwindigkeitstest hat seine Grenze an Bytes erreicht.</translation>
    </message>
    <message>
        <source>The staging area has no host.</source>
        <translation>Der Annahmebereich hat keinen Rechner.</translation>
    </message>
    <message>
        <source>The staging area has no space for %1.</source>
        <translation>Im Annahmebereich ist kein Platz für %1.</translation>
    </message>
    <message>
        <source>The staging area has no space for some files, which wait.</source>
        <translation>Im Annahmebereich ist kein Platz für einige Dateien; sie warten.</translation>
    </message>
    <message>
        <source>The staging area is full.</source>
        <translation>Der Annahmebereich ist voll.</translation>
    </message>
    <message>
        <source>The staging area refused %1: %2.</source>
        <translation>Der Annahmebereich hat %1 abgelehnt: %2.</translation>
    </message>
    <message>
        <source>The staging area&apos;s folder %1 does not accept files: %2.</source>
        <translation>Der Ordner des Annahmebereichs, %1, nimmt keine Dateien an: %2.</translation>
    </message>
    <message>
        <source>The staging area&apos;s folder %1 does not accept files: no reason given.</source>
        <translation>Der Ordner des Annahmebereichs, %1, nimmt keine Dateien an, ohne Angabe eines Grundes.</translation>
    </message>
    <message>
        <source>The staging folder %1 and the data directory %2 contain each other.</source>
        <translation>Der Ordner des Annahmebereichs, %1, und der Datenordner %2 enthalten einander.</translation>
    </message>
    <message>
        <source>The staging host accepts the uploader&apos;s key, but allows neither commands nor transfers: %1</source>
        <translation>Der Annahmerechner nimmt den Schlüssel des Uploaders an, lässt aber weder Befehle noch Übertragungen zu: %1</translation>
    </message>
    <message>
        <source>The staging host did not execute a command.</source>
        <translation>Der Annahmerechner hat einen Befehl nicht ausgeführt.</translation>
    </message>
    <message>
        <source>The staging host did not remove the test files.</source>
        <translation>Der Annahmerechner hat die Testdateien nicht entfernt.</translation>
    </message>
    <message>
        <source>The staging host did not report how the file arrived.</source>
        <translation>Der Annahmerechner hat nicht gemeldet, wie die Datei angekommen ist.</translation>
    </message>
    <message>
        <source>The staging host did not report which files it renamed.</source>
        <translation>Der Annahmerechner hat nicht gemeldet, welche Dateien er umbenannt hat.</translation>
    </message>
    <message>
        <source>The staging host does not accept files: %1.</source>
        <translation>Der Annahmerechner nimmt keine Dateien an: %1.</translation>
    </message>
    <message>
        <source>The staging host does not follow the SFTP protocol.</source>
        <translation>Der Annahmerechner hält sich nicht an das SFTP-Protokoll.</translation>
    </message>
    <message>
        <source>The staging host does not follow the scp protocol.</source>
        <translation>Der Annahmerechner hält sich nicht an das scp-Protokoll.</translation>
    </message>
    <message>
        <source>The staging host ended scp.</source>
        <translation>Der Annahmerechner hat scp beendet.</translation>
    </message>
    <message>
        <source>The staging host printed too much output for a batch.</source>
        <translation>Der Annahmerechner hat für ein Bündel zu viel Text ausgegeben.</translation>
    </message>
    <message>
        <source>The staging host refused scp: %1.</source>
        <translation>Der Annahmerechner hat scp abgelehnt: %1.</translation>
    </message>
    <message>
        <source>The staging host&apos;s shell has ended.</source>
        <translation>Die Shell des Annahmerechners wurde beendet.</translation>
    </message>
    <message>
        <source>The support bundle %1 cannot be written: %2.</source>
        <translation>Das Support-Paket %1 kann nicht geschrieben werden: %2.</translation>
    </message>
    <message>
        <source>The symbolic link is broken.</source>
        <translation>Die symbolische Verknüpfung ist defekt.</translation>
    </message>
    <message>
        <source>The symbolic link points to a folder that this dataset folder already contains.</source>
        <translation>Die symbolische Verknüpfung zeigt auf einen Ordner, den dieser Ordner des Datensatzes schon enthält.</translation>
    </message>
    <message>
        <source>The system did not eject it: %1 was not found on this computer.</source>
        <translation>Das System hat es nicht ausgeworfen: %1 wurde auf diesem Computer nicht gefunden.</translation>
    </message>
    <message>
        <source>The system did not eject it: %1.</source>
        <translation>Das System hat es nicht ausgeworfen: %1.</translation>
    </message>
    <message>
        <source>The system did not eject it: exit code %1.</source>
        <translation>Das System hat es nicht ausgeworfen: Exit-Code %1.</translation>
    </message>
    <message>
        <source>The system does not report changes in %1: %2</source>
        <translation>Das System meldet keine Änderungen in %1: %2</translation>
    </message>
    <message>
        <source>The system&apos;s keyring did not respond within %1 seconds.</source>
        <translation>Der Schlüsselbund des Systems hat innerhalb von %1 Sekunden nicht geantwortet.</translation>
    </message>
    <message>
        <source>The system&apos;s keyring did not store the key.</source>
        <translation>Der Schlüsselbund des Systems hat den Schlüssel nicht gespeichert.</translation>
    </message>
    <message>
        <source>The system&apos;s keyring does not respond.</source>
        <translation>Der Schlüsselbund des Systems antwortet nicht.</translation>
    </message>
    <message>
        <source>The system&apos;s keyring failed (%1).</source>
        <translation>Der Schlüsselbund des Systems ist fehlgeschlagen (%1).</translation>
    </message>
    <message>
        <source>The tar of the host did not answer as expected.</source>
        <translation>tar auf dem Host antwortet nicht wie erwartet.</translation>
    </message>
    <message>
        <source>The target folder %1 is in the destination.</source>
        <translation>Der Zielordner %1 liegt im Ziel der Kopien.</translation>
    </message>
    <message>
        <source>The transfer was cancelled.</source>
        <translation>Die Übertragung wurde abgebrochen.</translation>
    </message>
    <message>
        <source>The uploader&apos;s key for %1 cannot be used: %2.</source>
        <translation>Der Schlüssel des Uploaders für %1 kann nicht verwendet werden: %2.</translation>
    </message>
    <message>
        <source>The uploader&apos;s key for %1 cannot be used: the agent does not have it.</source>
        <translation>Der Schlüssel des Uploaders für %1 kann nicht verwendet werden: Der Agent hat ihn nicht.</translation>
    </message>
    <message>
        <source>The uploader&apos;s key is not the problem. The host&apos;s administrator can renew the account or its password.</source>
        <translation>Am Schlüssel des Uploaders liegt es nicht. Die Administration des Rechners kann das Konto oder sein Passwort erneuern.</translation>
    </message>
    <message>
        <source>The user paused the run.</source>
        <translation>Der Lauf wurde von Hand pausiert.</translation>
    </message>
    <message>
        <source>There are no credentials for object storage.</source>
        <translation>Es gibt keine Zugangsdaten für den Objektspeicher.</translation>
    </message>
    <message>
        <source>There are no failed or cancelled files there that can be sent again now.</source>
        <translation>Dort gibt es keine fehlgeschlagenen oder abgebrochenen Dateien, die jetzt wieder gesendet werden können.</translation>
    </message>
    <message>
        <source>There are no files at %1, and none are known.</source>
        <translation>Unter %1 gibt es keine Dateien, und es sind keine bekannt.</translation>
    </message>
    <message>
        <source>There are no valid credentials for %1: %2.</source>
        <translation>Es gibt keine gültigen Zugangsdaten für %1: %2.</translation>
    </message>
    <message>
        <source>There is less data than announced.</source>
        <translation>Es sind weniger Daten als angekündigt.</translation>
    </message>
    <message>
        <source>There is more data than announced.</source>
        <translation>Es sind mehr Daten als angekündigt.</translation>
    </message>
    <message>
        <source>There is no %1 for %2 on %3.</source>
        <translation>Für %2 auf %3 fehlt: %1.</translation>
    </message>
    <message>
        <source>There is no API key for %1 on %2, but one is stored for %3.</source>
        <translation>Für %1 auf %2 gibt es keinen API-Schlüssel, aber für %3 ist einer abgelegt.</translation>
    </message>
    <message>
        <source>There is no API key for %1 on %2.</source>
        <translation>Für %1 auf %2 gibt es keinen API-Schlüssel.</translation>
    </message>
    <message>
        <source>There is no dataset folder at or below %1.</source>
        <translation>Bei oder unter %1 gibt es keinen Ordner eines Datensatzes.</translation>
    </message>
    <message>
        <source>There is no earlier speed test to continue from.</source>
        <translation>Es gibt keinen früheren Geschwindigkeitstest, an den angeknüpft werden könnte.</translation>
    </message>
    <message>
        <source>There is no file %1.</source>
        <translation>Es gibt keine Datei %1.</translation>
    </message>
    <message>
        <source>There is nothing to copy.</source>
        <translation>Es gibt nichts zu kopieren.</translation>
    </message>
    <message>
        <source>There is nothing to stop.</source>
        <translation>Es gibt nichts anzuhalten.</translation>
    </message>
    <message>
        <source>These settings are not set yet: %1.</source>
        <translation>Diese Einstellungen fehlen noch: %1.</translation>
    </message>
    <message>
        <source>This computer does not know that %1 was copied.</source>
        <translation>Dieser Computer weiß nichts davon, dass %1 kopiert wurde.</translation>
    </message>
    <message>
        <source>This computer has no access to the server&apos;s staging area over SSH.</source>
        <translation>Dieser Computer hat über SSH keinen Zugang zum Annahmebereich des Servers.</translation>
    </message>
    <message>
        <source>This computer has no keyring that stores secrets safely.</source>
        <translation>Dieser Computer hat keinen Schlüsselbund, der Geheimnisse sicher aufbewahrt.</translation>
    </message>
    <message>
        <source>This computer has no record of any upload from this data directory.</source>
        <translation>Auf diesem Computer ist kein Upload aus diesem Datenordner bekannt.</translation>
    </message>
    <message>
        <source>This installation on %1 has the same identity as the one on %2, which has used it since %3.</source>
        <translation>Diese Installation auf %1 hat dieselbe Identität wie die auf %2, die sie seit %3 verwendet.</translation>
    </message>
    <message>
        <source>This is a symbolic link, or is reached through one.</source>
        <translation>Dies ist eine symbolische Verknüpfung oder wird über eine erreicht.</translation>
    </message>
    <message>
        <source>This is another destination than in earlier runs: its marker has another id.</source>
        <translation>Dies ist ein anderes Ziel als in früheren Läufen: Seine Markierung hat eine andere ID.</translation>
    </message>
    <message>
        <source>This is not a regular file but a pipe, a socket or a device.</source>
        <translation>Dies ist keine gewöhnliche Datei, sondern eine Pipe, ein Socket oder ein Gerät.</translation>
    </message>
    <message>
        <source>This is not a regular file.</source>
        <translation>Dies ist keine gewöhnliche Datei.</translation>
    </message>
    <message>
        <source>This is not a valid key: it is empty, too long or has invalid characters.</source>
        <translation>Das ist kein gültiger Schlüssel: Er ist leer, zu lang oder enthält ungültige Zeichen.</translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: %1 is not a regular file.</source>
        <translation>Dies ist kein Archiv von mydata-like, oder es ist beschädigt: %1 ist keine gewöhnliche Datei.</translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: a long name and its header differ.</source>
        <translation>Dies ist kein Archiv von mydata-like, oder es ist beschädigt: Ein langer Name und sein Kopf unterscheiden sich.</translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: it ends too early.</source>
        <translation>Dies ist kein Archiv von mydata-like, oder es ist beschädigt: Es endet zu früh.</translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: it has a duplicate name.</source>
        <translation>Dies ist kein Archiv von mydata-like, oder es ist beschädigt: Es hat einen Namen doppelt.</translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: it has a header that mydata-like does not write.</source>
        <translation>Dies ist kein Archiv von mydata-like, oder es ist beschädigt: Es hat einen Kopf, den mydata-like nicht schreibt.</translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: it has a member with an unsafe path: %1.</source>
        <translation>Dies ist kein Archiv von mydata-like, oder es ist beschädigt: Es hat eine Datei mit einem unsicheren Pfad: %1.</translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: it has a name that is too long.</source>
        <translation>Dies ist kein Archiv von mydata-like, oder es ist beschädigt: Es hat einen zu langen Namen.</translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: it has no index.</source>
        <translation>Dies ist kein Archiv von mydata-like, oder es ist beschädigt: Es hat kein Verzeichnis.</translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: it has too many members.</source>
        <translation>Dies ist kein Archiv von mydata-like, oder es ist beschädigt: Es hat zu viele Dateien.</translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: its end is incomplete.</source>
        <translation>Dies ist kein Archiv von mydata-like, oder es ist beschädigt: Sein Ende ist unvollständig.</translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: its index and its headers differ.</source>
        <translation>Dies ist kein Archiv von mydata-like, oder es ist beschädigt: Sein Verzeichnis und seine Köpfe unterscheiden sich.</translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: its index has a line that is too long.</source>
        <translation>Dies ist kein Archiv von mydata-like, oder es ist beschädigt: Sein Verzeichnis hat eine zu lange Zeile.</translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: its index is invalid.</source>
        <translation>Dies ist kein Archiv von mydata-like, oder es ist beschädigt: Sein Verzeichnis ist ungültig.</translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: its index is not at its end.</source>
        <translation>Dies ist kein Archiv von mydata-like, oder es ist beschädigt: Sein Verzeichnis steht nicht an seinem Ende.</translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: its index is of another version.</source>
        <translation>Dies ist kein Archiv von mydata-like, oder es ist beschädigt: Sein Verzeichnis ist von einer anderen Version.</translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: the checksum of %1 differs from its index.</source>
        <translation>Dies ist kein Archiv von mydata-like, oder es ist beschädigt: Die Prüfsumme von %1 weicht vom Verzeichnis ab.</translation>
    </message>
    <message>
        <source>This is not an archive of mydata-like, or it is damaged: there is data after its end.</source>
        <translation>Dies ist kein Archiv von mydata-like, oder es ist beschädigt: Nach seinem Ende kommen noch Daten.</translation>
    </message>
    <message>
        <source>This is not in the data directory.</source>
        <translation>Dies liegt nicht im Datenordner.</translation>
    </message>
    <message>
        <source>This is only for MyTardis servers, and the data goes to %1.</source>
        <translation>Dies ist nur für MyTardis-Server, und die Daten gehen an %1.</translation>
    </message>
    <message>
        <source>This run has uploaded that folder already, or accepts no more.</source>
        <translation>Dieser Lauf hat jenen Ordner schon hochgeladen oder nimmt keine weiteren an.</translation>
    </message>
    <message>
        <source>This service does not obey If-None-Match: each key is looked up before an object is made, and an object that another program makes at the same moment would be replaced.</source>
        <translation>Dieser Dienst beachtet If-None-Match nicht: Jeder Schlüssel wird nachgeschlagen, bevor ein Objekt angelegt wird, und ein Objekt, das ein anderes Programm im selben Moment anlegt, würde ersetzt.</translation>
    </message>
    <message>
        <source>This system does not report how long programs wait for its disks.</source>
        <translation>Dieses System meldet nicht, wie lange Programme auf seine Datenträger warten.</translation>
    </message>
    <message>
        <source>This uploader has not requested approval yet.</source>
        <translation>Dieser Uploader hat noch keine Freigabe beantragt.</translation>
    </message>
    <message>
        <source>Times of folders, empty folders and links were not fetched: the host has no tar for that.</source>
        <translation>Zeiten von Ordnern, leere Ordner und Verknüpfungen wurden nicht geholt: Dem Host fehlt dafür tar.</translation>
    </message>
    <message>
        <source>To change it, run for example: mydata-like settings set schedule.kind watch</source>
        <translation>Um das zu ändern, rufen Sie zum Beispiel auf: mydata-like settings set schedule.kind watch</translation>
    </message>
    <message>
        <source>To find out where it is set, run: mydata-like settings explain instrument.uuid, and the same for transfer.key_file. Change it there.</source>
        <translation>Um herauszufinden, wo sie gesetzt ist, rufen Sie auf: mydata-like settings explain instrument.uuid, und dasselbe für transfer.key_file. Ändern Sie sie dort.</translation>
    </message>
    <message>
        <source>To keep the copy, run: mydata-like changed keep &quot;%1&quot;. To upload the local file as well, rename it.</source>
        <translation>Um die Kopie zu behalten, rufen Sie auf: mydata-like changed keep &quot;%1&quot;. Um auch die lokale Datei hochzuladen, benennen Sie sie um.</translation>
    </message>
    <message>
        <source>To list all of them, run: mydata-like changed list</source>
        <translation>Um alle aufzuführen, rufen Sie auf: mydata-like changed list</translation>
    </message>
    <message>
        <source>To list them, run: mydata-like sources</source>
        <translation>Um sie aufzuführen, rufen Sie auf: mydata-like sources</translation>
    </message>
    <message>
        <source>To remove this message, reset the setting or choose another value.</source>
        <translation>Damit diese Meldung verschwindet, setzen Sie die Einstellung zurück, oder wählen Sie einen anderen Wert.</translation>
    </message>
    <message>
        <source>To replace the copy, run: mydata-like changed replace &quot;%1&quot;. To keep it, run: mydata-like changed keep &quot;%2&quot;.</source>
        <translation>Um die Kopie zu ersetzen, rufen Sie auf: mydata-like changed replace &quot;%1&quot;. Um sie zu behalten, rufen Sie auf: mydata-like changed keep &quot;%2&quot;.</translation>
    </message>
    <message>
        <source>To see which value is used, run: mydata-like settings explain KEY</source>
        <translation>Um zu sehen, welcher Wert gilt, rufen Sie auf: mydata-like settings explain KEY</translation>
    </message>
    <message>
        <source>To try at once, resume the run.</source>
        <translation>Um es sofort zu versuchen, setzen Sie den Lauf fort.</translation>
    </message>
    <message>
        <source>Too many levels of symbolic links</source>
        <translation>Zu viele Ebenen symbolischer Verknüpfungen</translation>
    </message>
    <message>
        <source>Too many open files</source>
        <translation>Zu viele offene Dateien</translation>
    </message>
    <message>
        <source>Transport endpoint is not connected</source>
        <translation>Verbindung zum Dateisystem getrennt</translation>
    </message>
    <message>
        <source>Try again after a successful run.</source>
        <translation>Versuchen Sie es nach einem erfolgreichen Lauf wieder.</translation>
    </message>
    <message>
        <source>Try again later, or use --anyway to run the test regardless.</source>
        <translation>Versuchen Sie es später wieder, oder führen Sie den Test mit --anyway trotzdem durch.</translation>
    </message>
    <message>
        <source>Try again later; filters.settle_seconds sets how long it must stay unchanged.</source>
        <translation>Versuchen Sie es später wieder; filters.settle_seconds legt fest, wie lange sie unverändert bleiben muss.</translation>
    </message>
    <message>
        <source>Unexpected error in the window: %1: %2</source>
        <translation>Unerwarteter Fehler im Fenster: %1: %2</translation>
    </message>
    <message>
        <source>Unlock the keyring, or provide the key in the environment variable MYDATA_LIKE_API_KEY, or store it in an unencrypted file that only you can read: `mydata-like settings set-key --store=file`.</source>
        <translation>Entsperren Sie den Schlüsselbund, oder geben Sie den Schlüssel in der Umgebungsvariablen MYDATA_LIKE_API_KEY an, oder legen Sie ihn in einer unverschlüsselten Datei ab, die nur Sie lesen können: `mydata-like settings set-key --store=file`.</translation>
    </message>
    <message>
        <source>Until then, the previous settings apply.</source>
        <translation>Bis dahin gelten die bisherigen Einstellungen.</translation>
    </message>
    <message>
        <source>Uploads are not affected. If it happens again, send the log to your administrator.</source>
        <translation>Uploads sind nicht betroffen. Wenn das wieder geschieht, senden Sie das Protokoll an Ihre Administration.</translation>
    </message>
    <message>
        <source>Uploads continue. Check the address and the network.</source>
        <translation>Uploads gehen weiter. Prüfen Sie die Adresse und das Netz.</translation>
    </message>
    <message>
        <source>Uploads run unattended; use a key without a passphrase.</source>
        <translation>Uploads laufen unbeaufsichtigt; verwenden Sie einen Schlüssel ohne Passphrase.</translation>
    </message>
    <message>
        <source>Use `mydata-like watch --events`.</source>
        <translation>Verwenden Sie `mydata-like watch --events`.</translation>
    </message>
    <message>
        <source>Use a layout with owners or experiments, or run without --shard.</source>
        <translation>Verwenden Sie einen Aufbau mit Eigentümern oder Experimenten, oder starten Sie ohne --shard.</translation>
    </message>
    <message>
        <source>Use fewer or shorter folder names.</source>
        <translation>Verwenden Sie weniger oder kürzere Ordnernamen.</translation>
    </message>
    <message>
        <source>Use its https:// address; the setting server.allow_http permits http://.</source>
        <translation>Verwenden Sie die https://-Adresse; die Einstellung server.allow_http erlaubt http://.</translation>
    </message>
    <message>
        <source>Wait a minute and try again. If that does not help, end it in the task manager and start it again. Files that were sent are not lost.</source>
        <translation>Warten Sie eine Minute, und versuchen Sie es wieder. Wenn das nicht hilft, beenden Sie es im Task-Manager, und starten Sie es neu. Gesendete Dateien gehen nicht verloren.</translation>
    </message>
    <message>
        <source>Wait until it has ended, or stop it there.</source>
        <translation>Warten Sie, bis es beendet ist, oder halten Sie es dort an.</translation>
    </message>
    <message>
        <source>Wait until it has ended, or stop it there. The lock of a killed run expires after %1 minutes.</source>
        <translation>Warten Sie, bis er beendet ist, oder halten Sie ihn dort an. Die Sperre eines abgebrochenen Laufs erlischt nach %1 Minuten.</translation>
    </message>
    <message>
        <source>Wait until it has ended, or stop it there. The mark of a killed run expires after five minutes.</source>
        <translation>Warten Sie, bis er beendet ist, oder halten Sie ihn dort an. Die Markierung eines abgebrochenen Laufs erlischt nach fünf Minuten.</translation>
    </message>
    <message>
        <source>Wait until it has ended.</source>
        <translation>Warten Sie, bis er beendet ist.</translation>
    </message>
    <message>
        <source>Wait until it has ended. One command can copy several sources.</source>
        <translation>Warten Sie, bis sie beendet ist. Ein Befehl kann mehrere Quellen kopieren.</translation>
    </message>
    <message>
        <source>When it was asked to verify again, the server no longer had %1 files as verified.</source>
        <translation>Als der Server noch einmal prüfen sollte, waren %1 Dateien dort nicht mehr geprüft.</translation>
    </message>
    <message>
        <source>When it was asked to verify again, the server no longer had 1 file as verified.</source>
        <translation>Als der Server noch einmal prüfen sollte, war 1 Datei dort nicht mehr geprüft.</translation>
    </message>
    <message>
        <source>With the layout &quot;%1&quot; the whole data directory is one experiment, which cannot be split into shards.</source>
        <translation>Beim Aufbau „%1“ ist der ganze Datenordner ein einziges Experiment, das nicht in Teile zerlegt werden kann.</translation>
    </message>
    <message>
        <source>Write %1\%2 for a folder on drive %3, or ssh://%4/~/%5 for a host named %6.</source>
        <translation>Schreiben Sie %1\%2 für einen Ordner auf dem Laufwerk %3, oder ssh://%4/~/%5 für einen Rechner namens %6.</translation>
    </message>
    <message>
        <source>Write EXPERIMENT/DATASET, or OWNER/EXPERIMENT/DATASET.</source>
        <translation>Schreiben Sie EXPERIMENT/DATASET oder OWNER/EXPERIMENT/DATASET.</translation>
    </message>
    <message>
        <source>Write ProxyJump instead: `ProxyCommand ssh -W %h:%p GATEWAY` is `ProxyJump GATEWAY`.</source>
        <translation>Schreiben Sie stattdessen ProxyJump: `ProxyCommand ssh -W %h:%p GATEWAY` ist `ProxyJump GATEWAY`.</translation>
    </message>
    <message>
        <source>Write USER@HOST:PORT.</source>
        <translation>Schreiben Sie USER@HOST:PORT.</translation>
    </message>
    <message>
        <source>Write [USER@]HOST:PATH, ssh://[USER@]HOST[:PORT]/PATH or the path of a local folder.</source>
        <translation>Schreiben Sie [USER@]HOST:PATH, ssh://[USER@]HOST[:PORT]/PATH oder den Pfad eines lokalen Ordners.</translation>
    </message>
    <message>
        <source>Write [USER@]HOST:PATH, ssh://[USER@]HOST[:PORT]/PATH or the path of a local folder. A local folder with a colon in its name is ./%1</source>
        <translation>Schreiben Sie [USER@]HOST:PATH, ssh://[USER@]HOST[:PORT]/PATH oder den Pfad eines lokalen Ordners. Ein lokaler Ordner mit einem Doppelpunkt im Namen ist ./%1</translation>
    </message>
    <message>
        <source>Write `ProxyJump none` for the jump host that is reached directly.</source>
        <translation>Schreiben Sie `ProxyJump none` für den Zwischenrechner, der direkt erreicht wird.</translation>
    </message>
    <message>
        <source>Write a file without a slash at its end.</source>
        <translation>Schreiben Sie eine Datei ohne Schrägstrich am Ende.</translation>
    </message>
    <message>
        <source>Write an IPv6 address in brackets.</source>
        <translation>Schreiben Sie eine IPv6-Adresse in Klammern.</translation>
    </message>
    <message>
        <source>Write an absolute path, or one that is relative to the current folder.</source>
        <translation>Schreiben Sie einen absoluten Pfad oder einen, der relativ zum aktuellen Ordner ist.</translation>
    </message>
    <message>
        <source>Write its absolute path; write ./%1 for a folder of this name.</source>
        <translation>Schreiben Sie seinen absoluten Pfad; für einen Ordner dieses Namens schreiben Sie ./%1.</translation>
    </message>
    <message>
        <source>Write patterns as in a .gitignore file, such as *.tmp or /raw/**.</source>
        <translation>Schreiben Sie Muster wie in einer .gitignore-Datei, zum Beispiel *.tmp oder /raw/**.</translation>
    </message>
    <message>
        <source>Write s3://BUCKET/PREFIX.</source>
        <translation>Schreiben Sie s3://BUCKET/PREFIX.</translation>
    </message>
    <message>
        <source>Write the destination: mydata-like get USER@HOST:PATH FOLDER</source>
        <translation>Nennen Sie das Ziel: mydata-like get USER@HOST:PATH ORDNER</translation>
    </message>
    <message>
        <source>Write the folder without the slash or dot at its end, or copy it separately.</source>
        <translation>Schreiben Sie den Ordner ohne Schrägstrich oder Punkt am Ende, oder kopieren Sie ihn einzeln.</translation>
    </message>
    <message>
        <source>Write the path without `..`.</source>
        <translation>Schreiben Sie den Pfad ohne `..`.</translation>
    </message>
    <message>
        <source>Write, for example: mydata-like copy FOLDER USER@HOST:PATH</source>
        <translation>Schreiben Sie zum Beispiel: mydata-like copy ORDNER USER@HOST:PATH</translation>
    </message>
    <message>
        <source>Write, for example: mydata-like get USER@HOST:PATH FOLDER</source>
        <translation>Schreiben Sie zum Beispiel: mydata-like get USER@HOST:PATH ORDNER</translation>
    </message>
    <message>
        <source>Writing to it works: %1.</source>
        <translation>Das Schreiben funktioniert: %1.</translation>
    </message>
    <message>
        <source>Your known_hosts file names it as @revoked: somebody else may have it. Nothing was sent to the host. Ask its administrator.</source>
        <translation>Ihre known_hosts-Datei nennt ihn als @revoked: Vielleicht hat ihn jemand anderes. An den Rechner wurde nichts gesendet. Fragen Sie seine Administration.</translation>
    </message>
    <message>
        <source>a dataset must stay open for the files of later runs</source>
        <translation>ein Datensatz muss für die Dateien späterer Läufe offen bleiben</translation>
    </message>
    <message>
        <source>another folder or drive has taken its place</source>
        <translation>ein anderer Ordner oder ein anderes Laufwerk ist an seiner Stelle</translation>
    </message>
    <message>
        <source>begins with ~ but does not name a known home folder</source>
        <translation>beginnt mit ~, nennt aber keinen bekannten persönlichen Ordner</translation>
    </message>
    <message>
        <source>broken pipe</source>
        <translation>unterbrochene Verbindung (broken pipe)</translation>
    </message>
    <message>
        <source>cannot allocate memory</source>
        <translation>nicht genügend Arbeitsspeicher</translation>
    </message>
    <message>
        <source>cannot be read: %1</source>
        <translation>kann nicht gelesen werden: %1</translation>
    </message>
    <message>
        <source>case is ignored, as in MyData on Windows</source>
        <translation>Groß- und Kleinschreibung ist gleich, wie in MyData unter Windows</translation>
    </message>
    <message>
        <source>checksums are always needed for verification</source>
        <translation>Prüfsummen werden zum Prüfen immer gebraucht</translation>
    </message>
    <message>
        <source>connection refused</source>
        <translation>Verbindung abgelehnt</translation>
    </message>
    <message>
        <source>connection reset by peer</source>
        <translation>Verbindung von der Gegenseite zurückgesetzt</translation>
    </message>
    <message>
        <source>connection timed out</source>
        <translation>Zeitüberschreitung der Verbindung</translation>
    </message>
    <message>
        <source>device or resource busy</source>
        <translation>Gerät oder Ressource belegt</translation>
    </message>
    <message>
        <source>disk quota exceeded</source>
        <translation>Kontingent des Datenträgers überschritten</translation>
    </message>
    <message>
        <source>file exists</source>
        <translation>Datei vorhanden</translation>
    </message>
    <message>
        <source>file name too long</source>
        <translation>Dateiname zu lang</translation>
    </message>
    <message>
        <source>file too large</source>
        <translation>Datei zu groß</translation>
    </message>
    <message>
        <source>files known to be on the server are always remembered</source>
        <translation>welche Dateien auf dem Server sind, wird immer vermerkt</translation>
    </message>
    <message>
        <source>folders are always checked against the layout</source>
        <translation>Ordner werden immer mit dem Aufbau verglichen</translation>
    </message>
    <message>
        <source>has a pattern that matches nothing: %1</source>
        <translation>hat ein Muster, das zu nichts passt: %1</translation>
    </message>
    <message>
        <source>host is down</source>
        <translation>Rechner nicht in Betrieb</translation>
    </message>
    <message>
        <source>input/output error</source>
        <translation>Ein-/Ausgabefehler</translation>
    </message>
    <message>
        <source>invalid argument</source>
        <translation>ungültiges Argument</translation>
    </message>
    <message>
        <source>is a directory</source>
        <translation>ist ein Ordner</translation>
    </message>
    <message>
        <source>is a secret, not a setting: store it with `mydata-like settings set-key`</source>
        <translation>ist ein Geheimnis und keine Einstellung: Legen Sie es ab mit `mydata-like settings set-key`</translation>
    </message>
    <message>
        <source>is a section: write [%1] and its settings below</source>
        <translation>ist ein Abschnitt: Schreiben Sie [%1] und die Einstellungen darunter</translation>
    </message>
    <message>
        <source>is not TOML: %1</source>
        <translation>ist kein TOML: %1</translation>
    </message>
    <message>
        <source>is not TOML: nested too deeply</source>
        <translation>ist kein TOML: zu tief verschachtelt</translation>
    </message>
    <message>
        <source>is not UTF-8 text</source>
        <translation>ist kein UTF-8-Text</translation>
    </message>
    <message>
        <source>is not a setting</source>
        <translation>ist keine Einstellung</translation>
    </message>
    <message>
        <source>is not a setting; did you mean %1?</source>
        <translation>ist keine Einstellung; meinten Sie %1?</translation>
    </message>
    <message>
        <source>is not a web address</source>
        <translation>ist keine Webadresse</translation>
    </message>
    <message>
        <source>is too large for a settings file (1 MiB at most)</source>
        <translation>ist zu groß für eine Einstellungsdatei (höchstens 1 MiB)</translation>
    </message>
    <message>
        <source>is unknown: [locked] has keys and by</source>
        <translation>ist unbekannt: [locked] hat keys und by</translation>
    </message>
    <message>
        <source>it already exists</source>
        <translation>schon vorhanden</translation>
    </message>
    <message>
        <source>it does not answer</source>
        <translation>keine Antwort</translation>
    </message>
    <message>
        <source>it does not name a user, and this account has no name, as in a container</source>
        <translation>Sie nennt keinen Benutzer, und dieses Konto hat keinen Namen, wie in einem Container</translation>
    </message>
    <message>
        <source>it has no %1</source>
        <translation>ihr fehlt %1</translation>
    </message>
    <message>
        <source>it has no effect in MyData either</source>
        <translation>es hat auch in MyData keine Wirkung</translation>
    </message>
    <message>
        <source>it has no version</source>
        <translation>es hat keine Version</translation>
    </message>
    <message>
        <source>it is MyData&apos;s default, which every file has; the default here is better</source>
        <translation>es ist die Voreinstellung von MyData, die in jeder Datei steht; die hiesige ist besser</translation>
    </message>
    <message>
        <source>it is a secret, and secrets are not settings</source>
        <translation>es ist ein Geheimnis, und Geheimnisse sind keine Einstellungen</translation>
    </message>
    <message>
        <source>it is empty</source>
        <translation>es ist leer</translation>
    </message>
    <message>
        <source>it is larger than %1 bytes</source>
        <translation>sie ist größer als %1 Bytes</translation>
    </message>
    <message>
        <source>it is no longer a regular file</source>
        <translation>es ist keine gewöhnliche Datei mehr</translation>
    </message>
    <message>
        <source>it is not a folder</source>
        <translation>kein Ordner</translation>
    </message>
    <message>
        <source>it is not a ledger</source>
        <translation>es ist kein Hauptbuch</translation>
    </message>
    <message>
        <source>it is not a setting</source>
        <translation>keine Einstellung</translation>
    </message>
    <message>
        <source>it is reached with a ProxyCommand, and mydata-like runs no commands of it</source>
        <translation>er wird mit einem ProxyCommand erreicht, und mydata-like führt deren Befehle nicht aus</translation>
    </message>
    <message>
        <source>it only describes the layout in words; MyData never reads it</source>
        <translation>es beschreibt den Aufbau nur in Worten; MyData liest es nie</translation>
    </message>
    <message>
        <source>its HostName is not a name</source>
        <translation>ihr HostName ist kein Name</translation>
    </message>
    <message>
        <source>its header is damaged</source>
        <translation>sein Kopf ist beschädigt</translation>
    </message>
    <message>
        <source>its jump hosts lead in a circle: %1</source>
        <translation>die Zwischenrechner führen im Kreis: %1</translation>
    </message>
    <message>
        <source>limits.pause_under_pressure has no effect here; limits.pause_while_running has.</source>
        <translation>limits.pause_under_pressure wirkt hier nicht; limits.pause_while_running wirkt.</translation>
    </message>
    <message>
        <source>locks %1, which is not a setting</source>
        <translation>sperrt %1, was keine Einstellung ist</translation>
    </message>
    <message>
        <source>must be a date, such as 2026-12-31</source>
        <translation>muss ein Datum sein, zum Beispiel 2026-12-31</translation>
    </message>
    <message>
        <source>must be a fingerprint as `ssh-keygen -lf` prints it: SHA256:...</source>
        <translation>muss ein Fingerabdruck sein, wie `ssh-keygen -lf` ihn ausgibt: SHA256:...</translation>
    </message>
    <message>
        <source>must be a finite number</source>
        <translation>muss eine endliche Zahl sein</translation>
    </message>
    <message>
        <source>must be a list of keys, as in [&apos;server.*&apos;]</source>
        <translation>muss eine Liste von Schlüsseln sein, wie [&apos;server.*&apos;]</translation>
    </message>
    <message>
        <source>must be a list, such as [&apos;a&apos;, &apos;b&apos;]</source>
        <translation>muss eine Liste sein, zum Beispiel [&apos;a&apos;, &apos;b&apos;]</translation>
    </message>
    <message>
        <source>must be a local time without a zone, such as 18:30:00</source>
        <translation>muss eine Ortszeit ohne Zeitzone sein, zum Beispiel 18:30:00</translation>
    </message>
    <message>
        <source>must be a number</source>
        <translation>muss eine Zahl sein</translation>
    </message>
    <message>
        <source>must be a number and a unit, such as &quot;30 days&quot;, &quot;2 weeks&quot;, &quot;6 months&quot;</source>
        <translation>muss eine Zahl mit Einheit sein, zum Beispiel &quot;30 days&quot;, &quot;2 weeks&quot;, &quot;6 months&quot;</translation>
    </message>
    <message>
        <source>must be a time, such as 18:30:00</source>
        <translation>muss eine Uhrzeit sein, zum Beispiel 18:30:00</translation>
    </message>
    <message>
        <source>must be a whole number</source>
        <translation>muss eine ganze Zahl sein</translation>
    </message>
    <message>
        <source>must be an absolute path, including the drive on Windows</source>
        <translation>muss ein absoluter Pfad sein, unter Windows mit Laufwerk</translation>
    </message>
    <message>
        <source>must be an e-mail address, such as name@example.org</source>
        <translation>muss eine E-Mail-Adresse sein, zum Beispiel name@example.org</translation>
    </message>
    <message>
        <source>must be at least %1</source>
        <translation>muss mindestens %1 sein</translation>
    </message>
    <message>
        <source>must be at most %1</source>
        <translation>darf höchstens %1 sein</translation>
    </message>
    <message>
        <source>must be at most 1000 years</source>
        <translation>darf höchstens 1000 Jahre sein</translation>
    </message>
    <message>
        <source>must be like &quot;* below 100 kB&quot;, &quot;*.dcm below 1 MB from 500 files by dataset&quot;</source>
        <translation>muss aussehen wie &quot;* below 100 kB&quot;, &quot;*.dcm below 1 MB from 500 files by dataset&quot;</translation>
    </message>
    <message>
        <source>must be like &quot;monday-friday 09:00-17:00&quot; or &quot;22:00-06:00&quot;</source>
        <translation>muss aussehen wie &quot;monday-friday 09:00-17:00&quot; oder &quot;22:00-06:00&quot;</translation>
    </message>
    <message>
        <source>must be like raw/microscopes</source>
        <translation>muss aussehen wie raw/microscopes</translation>
    </message>
    <message>
        <source>must be one line without control characters</source>
        <translation>muss eine einzige Zeile ohne Steuerzeichen sein</translation>
    </message>
    <message>
        <source>must be one of: %1 or %2</source>
        <translation>muss eines davon sein: %1 oder %2</translation>
    </message>
    <message>
        <source>must be text</source>
        <translation>muss Text sein</translation>
    </message>
    <message>
        <source>must be true or false</source>
        <translation>muss true oder false sein</translation>
    </message>
    <message>
        <source>must begin with https://</source>
        <translation>muss mit https:// beginnen</translation>
    </message>
    <message>
        <source>must end in a number of MB/s, as in &quot;monday-friday 09:00-17:00 5&quot;</source>
        <translation>muss mit einer Zahl in MB/s enden, wie in &quot;monday-friday 09:00-17:00 5&quot;</translation>
    </message>
    <message>
        <source>must end with the path: no ? and no #</source>
        <translation>muss mit dem Pfad enden: kein ? und kein #</translation>
    </message>
    <message>
        <source>must end with the port: a proxy has no path</source>
        <translation>muss mit dem Port enden: Ein Proxy hat keinen Pfad</translation>
    </message>
    <message>
        <source>must have at most %1 characters</source>
        <translation>darf höchstens %1 Zeichen haben</translation>
    </message>
    <message>
        <source>must name a size from 1 byte to 64 MB, because archives are for tiny files</source>
        <translation>muss eine Größe von 1 Byte bis 64 MB nennen, denn Archive sind für winzige Dateien</translation>
    </message>
    <message>
        <source>must name at least 1 file</source>
        <translation>muss mindestens 1 Datei nennen</translation>
    </message>
    <message>
        <source>must name at least one cipher</source>
        <translation>muss mindestens eine Chiffre nennen</translation>
    </message>
    <message>
        <source>must not contain a NUL character</source>
        <translation>darf kein Nullzeichen enthalten</translation>
    </message>
    <message>
        <source>must not contain a user name or a password</source>
        <translation>darf weder Benutzernamen noch Passwort enthalten</translation>
    </message>
    <message>
        <source>mydata-like copy lists files once they are proven: run it again.</source>
        <translation>mydata-like copy verzeichnet Dateien, sobald sie nachgewiesen sind: Rufen Sie es noch einmal auf.</translation>
    </message>
    <message>
        <source>mydata-like where shows what is kept of a file.</source>
        <translation>mydata-like where zeigt, was von einer Datei aufbewahrt wird.</translation>
    </message>
    <message>
        <source>names a %1 twice</source>
        <translation>nennt etwas doppelt: %1</translation>
    </message>
    <message>
        <source>names no server</source>
        <translation>nennt keinen Server</translation>
    </message>
    <message>
        <source>needs a value: --set section.key=value</source>
        <translation>braucht einen Wert: --set section.key=value</translation>
    </message>
    <message>
        <source>network is unreachable</source>
        <translation>Netz nicht erreichbar</translation>
    </message>
    <message>
        <source>no day of the week is selected, so MyData never starts</source>
        <translation>kein Wochentag ist gewählt, daher startet MyData nie</translation>
    </message>
    <message>
        <source>no headers received</source>
        <translation>keine Kopfzeilen empfangen</translation>
    </message>
    <message>
        <source>no output</source>
        <translation>keine Ausgabe</translation>
    </message>
    <message>
        <source>no route to host</source>
        <translation>kein Weg zum Rechner</translation>
    </message>
    <message>
        <source>no space left on device</source>
        <translation>kein Speicherplatz mehr verfügbar</translation>
    </message>
    <message>
        <source>no such device</source>
        <translation>kein solches Gerät</translation>
    </message>
    <message>
        <source>no such device or address</source>
        <translation>kein solches Gerät oder keine solche Adresse</translation>
    </message>
    <message>
        <source>no such file or directory</source>
        <translation>Datei oder Ordner nicht gefunden</translation>
    </message>
    <message>
        <source>not a directory</source>
        <translation>kein Ordner</translation>
    </message>
    <message>
        <source>only a schedule of the type Once has a date</source>
        <translation>nur ein Zeitplan der Art Once hat ein Datum</translation>
    </message>
    <message>
        <source>operation not permitted</source>
        <translation>Vorgang nicht erlaubt</translation>
    </message>
    <message>
        <source>paramiko has none of the ciphers or algorithms that are allowed for %1.</source>
        <translation>paramiko hat keine der Chiffren oder Verfahren, die für %1 erlaubt sind.</translation>
    </message>
    <message>
        <source>permission denied</source>
        <translation>Zugriff verweigert</translation>
    </message>
    <message>
        <source>progress is measured here, without queries to the server</source>
        <translation>der Fortschritt wird hier gemessen, ohne Anfragen an den Server</translation>
    </message>
    <message>
        <source>read-only file system</source>
        <translation>Dateisystem nur zum Lesen</translation>
    </message>
    <message>
        <source>remote i/o error</source>
        <translation>Ein-/Ausgabefehler der Gegenseite</translation>
    </message>
    <message>
        <source>required key not available</source>
        <translation>nötiger Schlüssel nicht verfügbar</translation>
    </message>
    <message>
        <source>resource busy</source>
        <translation>Ressource belegt</translation>
    </message>
    <message>
        <source>scheduled_date has no value</source>
        <translation>scheduled_date hat keinen Wert</translation>
    </message>
    <message>
        <source>scp works</source>
        <translation>scp funktioniert</translation>
    </message>
    <message>
        <source>settings are locked by an administrator&apos;s managed file</source>
        <translation>Einstellungen werden durch eine verwaltete Datei der Administration gesperrt</translation>
    </message>
    <message>
        <source>stale file handle</source>
        <translation>veralteter Dateizugriff (stale file handle)</translation>
    </message>
    <message>
        <source>text came before its answer: %1</source>
        <translation>vor seiner Antwort kam Text: %1</translation>
    </message>
    <message>
        <source>the age is that of a folder&apos;s last change; in MyData on Windows, of its creation</source>
        <translation>das Alter ist das der letzten Änderung eines Ordners; in MyData unter Windows das seiner Entstehung</translation>
    </message>
    <message>
        <source>the agent refused</source>
        <translation>der Agent hat abgelehnt</translation>
    </message>
    <message>
        <source>the answer took too long</source>
        <translation>die Antwort hat zu lange gedauert</translation>
    </message>
    <message>
        <source>the connection was refused</source>
        <translation>die Verbindung wurde abgelehnt</translation>
    </message>
    <message>
        <source>the first attempt counts as well</source>
        <translation>der erste Versuch zählt mit</translation>
    </message>
    <message>
        <source>the folder takes files</source>
        <translation>der Ordner nimmt Dateien an</translation>
    </message>
    <message>
        <source>the path is not possible below the folder</source>
        <translation>der Pfad ist unter dem Ordner nicht möglich</translation>
    </message>
    <message>
        <source>the port %1 does not exist</source>
        <translation>den Port %1 gibt es nicht</translation>
    </message>
    <message>
        <source>the shell works,  tar extracts</source>
        <translation>die Shell funktioniert, tar entpackt</translation>
    </message>
    <message>
        <source>the shell works, %1 tar extracts</source>
        <translation>die Shell funktioniert, %1 tar entpackt</translation>
    </message>
    <message>
        <source>the shell works, but no tar extracts</source>
        <translation>die Shell funktioniert, aber kein tar entpackt</translation>
    </message>
    <message>
        <source>there is no route to it</source>
        <translation>kein Weg dorthin</translation>
    </message>
    <message>
        <source>too many levels of symbolic links</source>
        <translation>zu viele Ebenen symbolischer Verknüpfungen</translation>
    </message>
    <message>
        <source>too many open files</source>
        <translation>zu viele offene Dateien</translation>
    </message>
    <message>
        <source>transfer.ssh_agent is on, but there is no agent: SSH_AUTH_SOCK is not set.</source>
        <translation>transfer.ssh_agent ist eingeschaltet, aber es gibt keinen Agenten: SSH_AUTH_SOCK ist nicht gesetzt.</translation>
    </message>
    <message>
        <source>transport endpoint is not connected</source>
        <translation>Verbindung zum Dateisystem getrennt</translation>
    </message>
    <message>
        <source>weak or unknown, and not used: %1</source>
        <translation>schwach oder unbekannt und nicht verwendet: %1</translation>
    </message>
    <message>
        <source>weak or unknown: %1</source>
        <translation>schwach oder unbekannt: %1</translation>
    </message>
    <message>
        <source>what was written is not there</source>
        <translation>was geschrieben wurde, ist nicht dort</translation>
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
        <source>“%1” was not ejected</source>
        <translation>„%1“ wurde nicht ausgeworfen</translation>
    </message>
    <message>
        <source>“%1” is ejected</source>
        <translation>„%1“ ist ausgeworfen</translation>
    </message>
    <message>
        <source>You can unplug it.</source>
        <translation>Sie können es abziehen.</translation>
    </message>
    <message>
        <source>Look at the receipt before you eject “%1”</source>
        <translation>Sehen Sie den Beleg an, bevor Sie „%1“ auswerfen</translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) of what was added from it are not verified.</source>
        <translation>
            <numerusform>%Ln Datei von dem, was davon hinzugefügt wurde, ist nicht geprüft.</numerusform>
            <numerusform>%Ln Dateien von dem, was davon hinzugefügt wurde, sind nicht geprüft.</numerusform>
        </translation>
    </message>
    <message>
        <source>You can eject “%1”</source>
        <translation>Sie können „%1“ auswerfen</translation>
    </message>
    <message numerus="yes">
        <source>All %Ln file(s) that were added from it are safe on the server.</source>
        <translation>
            <numerusform>Die %Ln Datei, die davon hinzugefügt wurde, ist auf dem Server sicher.</numerusform>
            <numerusform>Alle %Ln Dateien, die davon hinzugefügt wurden, sind auf dem Server sicher.</numerusform>
        </translation>
    </message>
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
    <name>problems</name>
    <message>
        <source>Show</source>
        <translation>Zeigen</translation>
    </message>
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
    <message>
        <source>%1, %2 replaced</source>
        <translation>%1, %2 ersetzt</translation>
    </message>
    <message>
        <source>Replaced files had other content on the server before, which is kept for a while. “Where is my data?” shows it.</source>
        <translation>Ersetzte Dateien hatten auf dem Server zuvor einen anderen Inhalt, der eine Zeit lang aufbewahrt wird. „Wo sind meine Daten?“ zeigt ihn.</translation>
    </message>
    <message>
        <source>A further %1 did not have to be sent: holes, or left by earlier runs.</source>
        <translation>Weitere %1 mussten nicht gesendet werden: Lücken, oder von früheren Läufen da.</translation>
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
        <source>Pausing</source>
        <translation>Wird pausiert</translation>
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
    <message>
        <source>The server&apos;s storage does not answer.</source>
        <translation>Der Speicher des Servers antwortet nicht.</translation>
    </message>
    <message>
        <source>Your files are kept.</source>
        <translation>Ihre Dateien bleiben erhalten.</translation>
    </message>
    <message>
        <source>Your files are kept. Send the details to your administrator.</source>
        <translation>Ihre Dateien bleiben erhalten. Schicken Sie die Einzelheiten Ihrem Administrator.</translation>
    </message>
    <message>
        <source>The server&apos;s storage has changed its identity.</source>
        <translation>Der Speicher des Servers hat seine Identität geändert.</translation>
    </message>
    <message>
        <source>Nothing is sent until your administrator confirms it.</source>
        <translation>Es wird nichts gesendet, bis Ihr Administrator sie bestätigt.</translation>
    </message>
    <message>
        <source>The server&apos;s storage is new to this computer.</source>
        <translation>Der Speicher des Servers ist diesem Computer noch unbekannt.</translation>
    </message>
    <message>
        <source>Nothing is sent until you confirm its fingerprint.</source>
        <translation>Es wird nichts gesendet, bis Sie seinen Fingerabdruck bestätigen.</translation>
    </message>
    <message>
        <source>Waiting for your facility to let this computer in.</source>
        <translation>Ihre Einrichtung muss diesen Computer noch zulassen.</translation>
    </message>
    <message>
        <source>“Check key and approval” has a message for them, which you can copy.</source>
        <translation>Unter „Schlüssel und Freigabe prüfen“ steht eine Nachricht an sie, die Sie kopieren können.</translation>
    </message>
    <message>
        <source>Your facility has approved this computer, but the server&apos;s storage does not let it in yet.</source>
        <translation>Ihre Einrichtung hat diesen Computer zugelassen, aber der Speicher des Servers lässt ihn noch nicht hinein.</translation>
    </message>
    <message>
        <source>The program tries again automatically.</source>
        <translation>Das Programm versucht es von selbst wieder.</translation>
    </message>
    <message>
        <source>Your facility no longer lets this computer in.</source>
        <translation>Ihre Einrichtung lässt diesen Computer nicht mehr zu.</translation>
    </message>
    <message>
        <source>Your files are kept. Ask your facility to approve it.</source>
        <translation>Ihre Dateien bleiben erhalten. Bitten Sie Ihre Einrichtung, ihn wieder zuzulassen.</translation>
    </message>
    <message>
        <source>The server&apos;s storage does not let this computer in.</source>
        <translation>Der Speicher des Servers lässt diesen Computer nicht hinein.</translation>
    </message>
    <message>
        <source>The server&apos;s storage does not accept the files.</source>
        <translation>Der Speicher des Servers nimmt die Dateien nicht an.</translation>
    </message>
    <message>
        <source>The server is full.</source>
        <translation>Der Server ist voll.</translation>
    </message>
    <message>
        <source>A file did not arrive as it was sent.</source>
        <translation>Eine Datei kam nicht so an, wie sie gesendet wurde.</translation>
    </message>
    <message>
        <source>The server may have lost this file.</source>
        <translation>Der Server hat diese Datei vielleicht verloren.</translation>
    </message>
    <message>
        <source>The server&apos;s copy is damaged, although it was sent twice.</source>
        <translation>Die Kopie auf dem Server ist beschädigt, obwohl sie zweimal gesendet wurde.</translation>
    </message>
    <message>
        <source>The list of what was sent was damaged.</source>
        <translation>Die Liste dessen, was gesendet wurde, war beschädigt.</translation>
    </message>
    <message>
        <source>The next run asks the server for its files, which takes a little longer.</source>
        <translation>Der nächste Lauf fragt den Server nach seinen Dateien; das dauert etwas länger.</translation>
    </message>
    <message>
        <source>The server does not answer.</source>
        <translation>Der Server antwortet nicht.</translation>
    </message>
    <message>
        <source>Uploading ended unexpectedly.</source>
        <translation>Das Hochladen endete unerwartet.</translation>
    </message>
    <message>
        <source>Nothing is lost. Start continues it at once.</source>
        <translation>Nichts ist verloren. Start setzt es sofort fort.</translation>
    </message>
    <message>
        <source>The server does not accept this.</source>
        <translation>Der Server nimmt das nicht an.</translation>
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
    <message>
        <source>Ready to start</source>
        <translation>Bereit zum Start</translation>
    </message>
    <message>
        <source>The last run was interrupted</source>
        <translation>Der letzte Lauf brach ab</translation>
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
    <message numerus="yes">
        <source>%Ln file(s) are safe on the server</source>
        <translation>
            <numerusform>%Ln Datei ist sicher auf dem Server</numerusform>
            <numerusform>%Ln Dateien sind sicher auf dem Server</numerusform>
        </translation>
    </message>
    <message>
        <source>%1, last compared %2</source>
        <translation>%1, zuletzt verglichen: %2</translation>
    </message>
    <message>
        <source>%1 as of %2</source>
        <translation>%1, Stand %2</translation>
    </message>
    <message numerus="yes">
        <source>%1; %Ln file(s) differ from the server&apos;s copies, which you kept</source>
        <translation>
            <numerusform>%1; %Ln Datei weicht von der Kopie des Servers ab, die Sie behalten haben</numerusform>
            <numerusform>%1; %Ln Dateien weichen von den Kopien des Servers ab, die Sie behalten haben</numerusform>
        </translation>
    </message>
    <message>
        <source>Next try in %1.</source>
        <translation>Nächster Versuch in %1.</translation>
    </message>
    <message>
        <source>You may lock the screen; the computer stays awake until then.</source>
        <translation>Sie können den Bildschirm sperren; der Computer bleibt bis dahin wach.</translation>
    </message>
    <message>
        <source>What is being sent will be safe between %1 and %2.</source>
        <translation>Was gesendet wird, ist zwischen %1 und %2 sicher.</translation>
    </message>
    <message>
        <source>Everything will be safe between %1 and %2.</source>
        <translation>Alles ist zwischen %1 und %2 sicher.</translation>
    </message>
    <message>
        <source>What is being sent will be safe by about %1.</source>
        <translation>Was gesendet wird, ist voraussichtlich bis %1 sicher.</translation>
    </message>
    <message>
        <source>Everything will be safe by about %1.</source>
        <translation>Alles ist voraussichtlich bis %1 sicher.</translation>
    </message>
    <message>
        <source>Everything up to %1 is safe on the server.</source>
        <translation>Alles bis %1 ist sicher auf dem Server.</translation>
    </message>
    <message>
        <source>Everything up to %1 is safe on the server, except for what was left out.</source>
        <translation>Alles bis %1 ist sicher auf dem Server, außer was ausgelassen wurde.</translation>
    </message>
    <message>
        <source>Everything up to %1 is safe on the server, except for what was left out and the files whose copies on the server you kept.</source>
        <translation>Alles bis %1 ist sicher auf dem Server, außer was ausgelassen wurde und den Dateien, deren Kopien auf dem Server Sie behalten haben.</translation>
    </message>
    <message>
        <source>Everything up to %1 is safe on the server, except for the files whose copies on the server you kept.</source>
        <translation>Alles bis %1 ist sicher auf dem Server, außer den Dateien, deren Kopien auf dem Server Sie behalten haben.</translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) are safe</source>
        <translation>
            <numerusform>%Ln Datei ist sicher</numerusform>
            <numerusform>%Ln Dateien sind sicher</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1. %Ln file(s) (%2) are still only on this computer</source>
        <translation>
            <numerusform>%1. %Ln Datei (%2) ist noch nur auf diesem Computer</numerusform>
            <numerusform>%1. %Ln Dateien (%2) sind noch nur auf diesem Computer</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln upload(s) that you added are not finished</source>
        <translation>
            <numerusform>%Ln hinzugefügter Upload ist nicht abgeschlossen</numerusform>
            <numerusform>%Ln hinzugefügte Uploads sind nicht abgeschlossen</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln file(s) are still only on this computer</source>
        <translation>
            <numerusform>%Ln Datei ist noch nur auf diesem Computer</numerusform>
            <numerusform>%Ln Dateien sind noch nur auf diesem Computer</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 Last compared with it %2.</source>
        <translation>%1 Zuletzt mit ihm verglichen: %2.</translation>
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
        <source>The name of the instrument as shown on the server.</source>
        <translation>Der Name des Instruments, wie er auf dem Server angezeigt wird.</translation>
    </message>
    <message>
        <source>Kind of destination</source>
        <translation>Art des Ziels</translation>
    </message>
    <message>
        <source>A MyTardis server (mytardis), which the other sections describe; or destination.address: a folder on a computer with SSH (host), a folder that is mounted here (folder), or a bucket of an object storage (s3). The last three need no server: the folders of the data directory arrive as they are, with a list of their checksums beside them.</source>
        <translation>Ein MyTardis-Server (mytardis), den die anderen Abschnitte beschreiben, oder destination.address: ein Ordner auf einem Computer mit SSH (host), ein hier eingehängter Ordner (folder) oder ein Bucket eines Objektspeichers (s3). Die letzten drei brauchen keinen Server: Die Ordner im Datenordner kommen an, wie sie sind, mit einer Liste ihrer Prüfsummen daneben.</translation>
    </message>
    <message>
        <source>Address</source>
        <translation>Adresse</translation>
    </message>
    <message>
        <source>Where the data goes if it is no MyTardis server: USER@HOST:FOLDER, a local folder, or s3://BUCKET/FOLDER.</source>
        <translation>Wohin die Daten gehen, wenn nicht an einen MyTardis-Server: USER@HOST:FOLDER, ein lokaler Ordner oder s3://BUCKET/FOLDER.</translation>
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
        <source>What happens to a file that was rewritten after the server verified it: it is sent and the earlier copy is kept for a while, unless the file shrank below half its size; or it is held until you choose; or it is always sent. A file to which data was only appended is sent in any case.</source>
        <translation>Was mit einer Datei geschieht, die neu geschrieben wurde, nachdem der Server sie geprüft hatte: Sie wird gesendet und die frühere Kopie eine Zeit lang behalten, außer wenn die Datei auf weniger als die Hälfte geschrumpft ist; oder sie wird zurückgehalten, bis Sie entscheiden; oder sie wird immer gesendet. Eine Datei, an die nur etwas angehängt wurde, wird in jedem Fall gesendet.</translation>
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
        <source>Files per batch</source>
        <translation>Dateien je Bündel</translation>
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
        <source>The language of the window, from its next start on. Logs, commands and messages of the server remain in English.</source>
        <translation>Die Sprache des Fensters ab seinem nächsten Start. Protokolle, Befehle und Meldungen des Servers bleiben englisch.</translation>
    </message>
    <message>
        <source>Address of the newest version</source>
        <translation>Adresse der neuesten Version</translation>
    </message>
    <message>
        <source>A web address whose text begins with the newest version; it is asked at the start of the window. Empty never asks. It is not asked on computers with a managed file.</source>
        <translation>Eine Webadresse, deren Text mit der neuesten Version beginnt; sie wird beim Start des Fensters abgefragt. Leer fragt nie. Auf Computern mit verwalteter Datei wird sie nicht abgefragt.</translation>
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
        <source>days</source>
        <translation>Tage</translation>
    </message>
    <message>
        <source>Not used: see “%1”</source>
        <translation>Nicht verwendet: siehe „%1“</translation>
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
        <source>How long a run waits while the server is unavailable or asks it to wait, or while the staging area is full, before it ends.</source>
        <translation>Wie lange ein Lauf wartet, während der Server nicht verfügbar ist oder um Warten bittet oder der Annahmebereich voll ist, bevor er endet.</translation>
    </message>
    <message>
        <source>The number of days after which every datafile on the server is compared with the ledger again; 0 compares in every run. In between, two queries for each dataset show whether any are missing or no longer verified.</source>
        <translation>Die Anzahl der Tage, nach der jede Datei auf dem Server erneut mit dem Hauptbuch verglichen wird; 0 vergleicht bei jedem Lauf. Dazwischen zeigen zwei Abfragen je Datensatz, ob Dateien fehlen oder nicht mehr geprüft sind.</translation>
    </message>
    <message>
        <source>Where the data goes</source>
        <translation>Wohin die Daten gehen</translation>
    </message>
    <message>
        <source>Archives of tiny files</source>
        <translation>Archive winziger Dateien</translation>
    </message>
    <message>
        <source>not kept</source>
        <translation>nicht behalten</translation>
    </message>
    <message>
        <source>off</source>
        <translation>aus</translation>
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
        <source>MyTardis server</source>
        <translation>MyTardis-Server</translation>
    </message>
    <message>
        <source>Computer with SSH</source>
        <translation>Computer mit SSH</translation>
    </message>
    <message>
        <source>Folder or network drive</source>
        <translation>Ordner oder Netzlaufwerk</translation>
    </message>
    <message>
        <source>Bucket (S3)</source>
        <translation>Bucket (S3)</translation>
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
        <source>Send, and keep the earlier copy</source>
        <translation>Senden, frühere Kopie behalten</translation>
    </message>
    <message>
        <source>Hold until you choose</source>
        <translation>Zurückhalten, bis Sie entscheiden</translation>
    </message>
    <message>
        <source>Send always, hold nothing</source>
        <translation>Immer senden, nichts zurückhalten</translation>
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
        <source>How long a request that changes data on the server may take. If its response is lost, the request is not sent again before this time has passed, because the server may still be processing it, unless it is seen that the server went down.</source>
        <translation>Wie lange eine Anfrage dauern darf, die Daten auf dem Server ändert. Geht ihre Antwort verloren, wird sie vor Ablauf dieser Zeit nicht erneut gesendet, weil der Server sie noch bearbeiten kann, es sei denn, es zeigt sich, dass der Server ausgefallen ist.</translation>
    </message>
    <message>
        <source>Parallel requests</source>
        <translation>Gleichzeitige Anfragen</translation>
    </message>
    <message>
        <source>How many requests to the server may run concurrently, at most. Fewer do while the server is slow. Lower it for a small server.</source>
        <translation>Wie viele Anfragen an den Server höchstens gleichzeitig laufen dürfen. Solange der Server langsam ist, sind es weniger. Senken Sie den Wert für einen kleinen Server.</translation>
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
        <source>Keep replaced content</source>
        <translation>Ersetzte Inhalte aufbewahren</translation>
    </message>
    <message>
        <source>How many days the server&apos;s storage keeps the earlier content of a changed file; it needs as much space. With 0 it is removed once the server has verified the new content.</source>
        <translation>Wie viele Tage der Speicher des Servers den früheren Inhalt einer geänderten Datei aufbewahrt; er braucht ebenso viel Platz. Mit 0 wird er entfernt, sobald der Server den neuen Inhalt geprüft hat.</translation>
    </message>
    <message>
        <source>Changed files</source>
        <translation>Geänderte Dateien</translation>
    </message>
    <message>
        <source>Replace freely</source>
        <translation>Frei ersetzen</translation>
    </message>
    <message>
        <source>Patterns of files that programs rewrite all the time, such as *.log. They are never held and do not count for data.brake.</source>
        <translation>Muster von Dateien, die Programme ständig neu schreiben, etwa *.log. Sie werden nie zurückgehalten und zählen nicht für data.brake.</translation>
    </message>
    <message>
        <source>Brake</source>
        <translation>Bremse</translation>
    </message>
    <message>
        <source>How many files of a dataset may be rewritten or shrink within 24 hours before the rest is held, if they are more than 5 % of its files. The same applies to 25 times as many files of all datasets. 0 turns it off.</source>
        <translation>Wie viele Dateien eines Datensatzes innerhalb von 24 Stunden neu geschrieben werden oder schrumpfen dürfen, bevor der Rest zurückgehalten wird, wenn es mehr als 5 % seiner Dateien sind. Dasselbe gilt für 25-mal so viele Dateien aller Datensätze. 0 schaltet es ab.</translation>
    </message>
    <message>
        <source>files</source>
        <translation>Dateien</translation>
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
        <source>Whether to skip files and folders that systems and programs leave behind (Thumbs.db, .DS_Store, ._ files and __MACOSX of macOS, @eaDir of a NAS, lock files, unfinished downloads).</source>
        <translation>Ob Dateien und Ordner übersprungen werden, die Systeme und Programme hinterlassen (Thumbs.db, .DS_Store, ._-Dateien und __MACOSX von macOS, @eaDir eines NAS, Sperrdateien, unfertige Downloads).</translation>
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
        <source>A batch is sent when it has this size, or as much as is sent in ten seconds.</source>
        <translation>Ein Bündel wird gesendet, wenn es diese Größe hat, oder so viel enthält, wie in zehn Sekunden gesendet wird.</translation>
    </message>
    <message>
        <source>A batch is sent when it has this many files: at most 100 to a mounted folder, and 25 to object storage.</source>
        <translation>Ein Bündel wird gesendet, wenn es so viele Dateien enthält: in einen eingehängten Ordner höchstens 100, in einen Objektspeicher höchstens 25.</translation>
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
        <source>How many requests that create records run concurrently, at most. Fewer do while the server is slow.</source>
        <translation>Wie viele Anfragen, die Einträge anlegen, höchstens gleichzeitig laufen. Solange der Server langsam ist, sind es weniger.</translation>
    </message>
    <message>
        <source>Verification interval</source>
        <translation>Abstand der Prüfung</translation>
    </message>
</context>
<context>
    <name>speed</name>
    <message>
        <source>%1: %2 times as fast</source>
        <translation>%1: %2-mal so schnell</translation>
    </message>
    <message>
        <source>Locked by %1.</source>
        <translation>Gesperrt von %1.</translation>
    </message>
    <message>
        <source>%1 (%2: %3, now %4)</source>
        <translation>%1 (%2: %3, jetzt %4)</translation>
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
        <source>The staging host cannot remove files: nothing was sent, and only this computer and the API were measured.</source>
        <translation>Der Annahmerechner kann nichts entfernen: Es wurde nichts gesendet; nur dieser Computer und die API wurden gemessen.</translation>
    </message>
    <message>
        <source>%1: there was no time left to measure this.</source>
        <translation>Für diese Messung blieb keine Zeit: %1</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation>%1: %2</translation>
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
        <source>Tried, not faster twice</source>
        <translation>Versucht, nicht zweimal schneller</translation>
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
        <source>Staging host&apos;s processors</source>
        <translation>Prozessoren des Annahmerechners</translation>
    </message>
    <message>
        <source>Disk of the server</source>
        <translation>Festplatte des Servers</translation>
    </message>
    <message>
        <source>Mounted folder</source>
        <translation>Eingehängter Ordner</translation>
    </message>
    <message>
        <source>Server&apos;s API</source>
        <translation>API des Servers</translation>
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
        <source>the connection to the server&apos;s storage</source>
        <translation>die Verbindung zum Speicher des Servers</translation>
    </message>
    <message>
        <source>the disk of the server</source>
        <translation>die Festplatte des Servers</translation>
    </message>
    <message>
        <source>the mounted folder</source>
        <translation>der eingehängte Ordner</translation>
    </message>
    <message>
        <source>the server in earlier runs</source>
        <translation>der Server, in früheren Läufen</translation>
    </message>
    <message>
        <source>Large files</source>
        <translation>Große Dateien</translation>
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
        <source>Size when compressed</source>
        <translation>Größe nach der Kompression</translation>
    </message>
    <message>
        <source>Renaming a file</source>
        <translation>Umbenennen einer Datei</translation>
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
        <source>Connection to the server</source>
        <translation>Verbindung zum Server</translation>
    </message>
    <message>
        <source>The connection to the server was not measured: files are sent to object storage.</source>
        <translation>Die Verbindung zum Server wurde nicht gemessen: Dateien werden in einen Objektspeicher übertragen.</translation>
    </message>
    <message>
        <source>%1 in the folder could not be removed; the next test removes it.</source>
        <translation>%1 im Ordner konnte nicht entfernt werden; der nächste Test entfernt es.</translation>
    </message>
    <message>
        <source>%1: %2. The limit is %3 (%4).</source>
        <translation>%1: %2. Die Grenze ist %3 (%4).</translation>
    </message>
    <message>
        <source>%1: %2.</source>
        <translation>%1: %2.</translation>
    </message>
    <message>
        <source>%1: not sent. The limit is %3 (%4).</source>
        <translation>%1: nicht gesendet. Die Grenze ist %3 (%4).</translation>
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
        <source>Connection</source>
        <translation>Verbindung</translation>
    </message>
    <message>
        <source>Comparison</source>
        <translation>Vergleich</translation>
    </message>
    <message numerus="yes">
        <source>%Ln session(s)</source>
        <translation>
            <numerusform>%Ln Sitzung</numerusform>
            <numerusform>%Ln Sitzungen</numerusform>
        </translation>
    </message>
    <message>
        <source>Comparison of settings</source>
        <translation>Vergleich von Einstellungen</translation>
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
        <source>The staging host allows no shell: the connection to it and its disk could not be measured alone.</source>
        <translation>Der Annahmerechner erlaubt keine Shell: die Verbindung zu ihm und seine Festplatte lassen sich nicht einzeln messen.</translation>
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
        <source>Nothing could be measured.</source>
        <translation>Es konnte nichts gemessen werden.</translation>
    </message>
    <message>
        <source> (the slowest)</source>
        <translation> (am langsamsten)</translation>
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
        <source>Last compared with the server: %1.</source>
        <translation>Zuletzt mit dem Server verglichen: %1.</translation>
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
        <source>No: the server contradicts that it is safe</source>
        <translation>Nein: Der Server widerspricht dem, dass es sicher ist</translation>
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
    <message>
        <source>Today</source>
        <translation>Heute</translation>
    </message>
    <message>
        <source>Yesterday</source>
        <translation>Gestern</translation>
    </message>
</context>
</TS>
