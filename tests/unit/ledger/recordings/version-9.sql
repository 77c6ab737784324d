BEGIN TRANSACTION;
CREATE TABLE archives (
    root INTEGER NOT NULL,
    dataset INTEGER NOT NULL,
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    state TEXT NOT NULL,
    checksum TEXT NOT NULL,
    remote TEXT NOT NULL,
    datafile INTEGER,
    PRIMARY KEY (root, dataset, path)
) WITHOUT ROWID;
INSERT INTO "archives" VALUES(1,7,'b.tar',4096,-5,'registered','11111111111111111111111111111111','d-7/raw/a.tar',401);
INSERT INTO "archives" VALUES(1,7,'raw/a.tar',4096,-5,'verified','11111111111111111111111111111111','d-7/raw/a.tar',400);
CREATE TABLE batches (
    id INTEGER PRIMARY KEY,
    root INTEGER NOT NULL,
    keys BLOB NOT NULL
);
INSERT INTO "batches" VALUES(1,1,X'642F666F756E6400642FFFFE20726177');
CREATE TABLE changed_files (
    root INTEGER NOT NULL,
    key BLOB NOT NULL,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    dataset INTEGER NOT NULL,
    copy_size INTEGER NOT NULL,
    copy_checksum TEXT NOT NULL,
    copy_verified_at TEXT NOT NULL,
    hold TEXT NOT NULL,
    choice TEXT NOT NULL,
    counted_at INTEGER,
    PRIMARY KEY (root, key)
) WITHOUT ROWID;
INSERT INTO "changed_files" VALUES(1,X'642F68656C64',1,8,6,-3,7,3,'cccccccccccccccccccccccccccccccc','2020','shrunk','',NULL);
INSERT INTO "changed_files" VALUES(1,X'642F6B657074',1,8,6,-3,7,3,'cccccccccccccccccccccccccccccccc','2020','brake','keep',1700000000);
CREATE TABLE datasets (
    root INTEGER NOT NULL,
    dataset INTEGER NOT NULL,
    total INTEGER NOT NULL,
    newest INTEGER NOT NULL,
    listed_at INTEGER NOT NULL, verified INTEGER,
    PRIMARY KEY (root, dataset)
) WITHOUT ROWID;
INSERT INTO "datasets" VALUES(1,7,9,400,1767603640,5);
CREATE TABLE entries (
    root INTEGER NOT NULL,
    key BLOB NOT NULL,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    state TEXT NOT NULL,
    dataset INTEGER NOT NULL,
    checksum TEXT NOT NULL,
    remote TEXT NOT NULL,
    datafile INTEGER,
    problem TEXT NOT NULL, archive TEXT NOT NULL DEFAULT '', staged_at INTEGER, registered_at INTEGER, verified_at INTEGER, changed_at INTEGER, ctime_ns INTEGER, inode INTEGER,
    PRIMARY KEY (root, key)
) WITHOUT ROWID;
INSERT INTO "entries" VALUES(1,X'642F4CC3A46E67652E746966',3,1700000000000000007,'verified',7,'cccccccccccccccccccccccccccccccc','d-7/12',300,'','',NULL,NULL,1767603640,1767603640,5,9223372036854775805);
INSERT INTO "entries" VALUES(1,X'642F646F7562746564',3,1700000000000000007,'repaired',7,'cccccccccccccccccccccccccccccccc','d-7/9',104,'','',NULL,NULL,NULL,1767603640,5,9223372036854775805);
INSERT INTO "entries" VALUES(1,X'642F6661696C6564',3,1700000000000000007,'failed',7,'cccccccccccccccccccccccccccccccc','d-7/8',202,'server.lost','',NULL,NULL,NULL,1767603630,5,9223372036854775805);
INSERT INTO "entries" VALUES(1,X'642F676F6E65',3,1700000000000000007,'verified',8,'cccccccccccccccccccccccccccccccc','d-7/6',90,'','',NULL,NULL,1767603600,1767603600,5,9223372036854775805);
INSERT INTO "entries" VALUES(1,X'642F676F6E65207768696C652073656E74',3,1700000000000000007,'staged',7,'cccccccccccccccccccccccccccccccc','d-7/17',NULL,'','',1767603600,NULL,NULL,1767603600,5,9223372036854775805);
INSERT INTO "entries" VALUES(1,X'642F68656C64',3,1700000000000000007,'verified',7,'cccccccccccccccccccccccccccccccc','d-7/6',103,'','',NULL,NULL,1767603600,1767603600,5,9223372036854775805);
INSERT INTO "entries" VALUES(1,X'642F696E20612E746172',3,1700000000000000007,'verified',7,'eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee','d-7/raw/a.tar',400,'','raw/a.tar',1767603640,NULL,1767603640,1767603640,5,9223372036854775805);
INSERT INTO "entries" VALUES(1,X'642F6B657074',3,1700000000000000007,'verified',7,'cccccccccccccccccccccccccccccccc','d-7/6',105,'','',NULL,NULL,1767603600,1767603600,5,9223372036854775805);
INSERT INTO "entries" VALUES(1,X'642F6E6576657220636F6D7061726564',3,1700000000000000007,'staged',7,'eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee','d-7/raw/a.tar',NULL,'','raw/a.tar',1767603640,NULL,NULL,1767603640,0,0);
INSERT INTO "entries" VALUES(1,X'642F6E65770A6C696E65',3,1700000000000000007,'verified',7,'cccccccccccccccccccccccccccccccc','d-7/10',302,'','',NULL,NULL,1767603640,1767603640,5,9223372036854775805);
INSERT INTO "entries" VALUES(1,X'642F6E6F7420696E20612E746172',3,1700000000000000007,'failed',7,'eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee','d-7/raw/a.tar',NULL,'server.lost','',1767603640,NULL,NULL,1767603640,5,9223372036854775805);
INSERT INTO "entries" VALUES(1,X'642F6F6C64',3,1700000000000000007,'verified',7,'cccccccccccccccccccccccccccccccc','d-7/5',NULL,'','',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "entries" VALUES(1,X'642F71756F74652722255F',3,1700000000000000007,'verified',7,'cccccccccccccccccccccccccccccccc','d-7/11',303,'','',NULL,NULL,1767603640,1767603640,5,9223372036854775805);
INSERT INTO "entries" VALUES(1,X'642F72656675736564',3,1700000000000000007,'staged',7,'cccccccccccccccccccccccccccccccc','d-7/9',NULL,'','',1767603620,NULL,NULL,1767603620,5,9223372036854775805);
INSERT INTO "entries" VALUES(1,X'642F72656769737465726564',3,1700000000000000007,'registered',7,'cccccccccccccccccccccccccccccccc','d-7/12',200,'','',1767603620,1767603630,NULL,1767603630,5,9223372036854775805);
INSERT INTO "entries" VALUES(1,X'642F7265706169726564',3,1700000000000000007,'repaired',7,'cccccccccccccccccccccccccccccccc','d-7/10',201,'','',NULL,1767603630,NULL,1767603630,5,9223372036854775805);
INSERT INTO "entries" VALUES(1,X'642F72657772697474656E',3,1700000000000000007,'changed',7,'cccccccccccccccccccccccccccccccc','d-7/11',101,'','',NULL,NULL,NULL,1767603630,5,9223372036854775805);
INSERT INTO "entries" VALUES(1,X'642F73656E74',3,1700000000000000007,'staged',7,'cccccccccccccccccccccccccccccccc','d-7/6',NULL,'','',1767603620,NULL,NULL,1767603620,5,9223372036854775805);
INSERT INTO "entries" VALUES(1,X'642F73656E742C207468656E206368616E676564',3,1700000000000000007,'staged',7,'cccccccccccccccccccccccccccccccc','d-7/20',NULL,'','',1767603620,NULL,NULL,1767603620,5,9223372036854775805);
INSERT INTO "entries" VALUES(1,X'642F736B6970706564',3,1700000000000000007,'verified',7,'cccccccccccccccccccccccccccccccc','d-7/9',102,'','',NULL,NULL,1767603600,1767603600,5,9223372036854775805);
INSERT INTO "entries" VALUES(1,X'642F746F7563686564',3,1700000000000000007,'verified',7,'cccccccccccccccccccccccccccccccc','d-7/9',100,'','',NULL,NULL,1767603600,1767603600,5,9223372036854775805);
INSERT INTO "entries" VALUES(1,X'642F7665726966696564',3,1700000000000000007,'verified',7,'cccccccccccccccccccccccccccccccc','d-7/10',203,'','',1767603620,1767603630,1767603640,1767603640,5,9223372036854775805);
INSERT INTO "entries" VALUES(1,X'642F7761697473',3,1700000000000000007,'registered',7,'cccccccccccccccccccccccccccccccc','d-7/7',200,'','',1767603620,1767603630,NULL,1767603630,5,9223372036854775805);
INSERT INTO "entries" VALUES(1,X'642FFFFE20726177',3,1700000000000000007,'verified',7,'cccccccccccccccccccccccccccccccc','d-7/8',301,'','',NULL,NULL,1767603640,1767603640,5,9223372036854775805);
INSERT INTO "entries" VALUES(2,X'642F666F756E64',3,1700000000000000007,'verified',7,'cccccccccccccccccccccccccccccccc','d-7/7',7,'','',NULL,NULL,1767603640,1767603640,5,9223372036854775805);
INSERT INTO "entries" VALUES(2,X'6F6E6C79207468657265',3,1700000000000000007,'staged',7,'cccccccccccccccccccccccccccccccc','d-7/10',NULL,'','',1767603640,NULL,NULL,1767603640,5,9223372036854775805);
CREATE TABLE folders (
    root INTEGER NOT NULL,
    path BLOB NOT NULL,
    dataset TEXT NOT NULL,
    title TEXT,
    owner TEXT NOT NULL,
    grp TEXT NOT NULL,
    found INTEGER NOT NULL,
    found_bytes INTEGER NOT NULL,
    verified INTEGER NOT NULL,
    verified_bytes INTEGER NOT NULL,
    waiting INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (root, path)
) WITHOUT ROWID;
INSERT INTO "folders" VALUES(1,X'64','set','mice','ada','',30,90,10,30,3,2,2,1767603640);
CREATE TABLE kept (
    root INTEGER NOT NULL,
    key BLOB NOT NULL,
    dataset INTEGER NOT NULL,
    datafile INTEGER NOT NULL,
    remote TEXT NOT NULL,
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    checksum TEXT NOT NULL,
    modified TEXT NOT NULL,
    verified_at TEXT NOT NULL,
    at INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (root, key, path)
) WITHOUT ROWID;
INSERT INTO "kept" VALUES(1,X'642F7265706169726564',7,201,'d/x','d/.kept',2,'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','2020','2021',1,2);
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
INSERT INTO "meta" VALUES('uuid','u-1');
CREATE TABLE outcomes (
    root INTEGER NOT NULL,
    path BLOB NOT NULL,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    code TEXT NOT NULL,
    message TEXT NOT NULL,
    hint TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (root, path)
) WITHOUT ROWID;
INSERT INTO "outcomes" VALUES(1,X'2F7573622F612F78',3,1700000000000000007,'found','waiting.unsent','The file was found and is not verified yet.','The next run sends it.',1767603610);
INSERT INTO "outcomes" VALUES(1,X'433A5C782F79',3,1700000000000000007,'found','waiting.unsent','The file was found and is not verified yet.','The next run sends it.',1767603610);
INSERT INTO "outcomes" VALUES(1,X'64',0,0,'folder-failed','file.unreadable','It cannot be read.','Look.',1767603640);
INSERT INTO "outcomes" VALUES(1,X'642F646F7562746564',3,1700000000000000007,'waiting','waiting.recheck','The file was known as verified, but an answer of the server contradicts that.','Keep the local file. The next run compares it with the server, and sends it again if needed.',1767603640);
INSERT INTO "outcomes" VALUES(1,X'642F6661696C6564',3,1700000000000000007,'failed','file.unreadable','It cannot be read.','Look.',1767603640);
INSERT INTO "outcomes" VALUES(1,X'642F666F756E64',3,1700000000000000007,'found','waiting.unsent','The file was found and is not verified yet.','The next run sends it.',1767603610);
INSERT INTO "outcomes" VALUES(1,X'642F68656C64',1,8,'waiting','waiting.changed','Changed files wait for a decision: their verified copies on the server were not replaced.','Choose for each whether to replace its copy or to keep it. To list them, run: mydata-like changed list',1767603640);
INSERT INTO "outcomes" VALUES(1,X'642F6B657074',1,8,'skipped','skipped.changed','Kept.','',1767603640);
INSERT INTO "outcomes" VALUES(1,X'642F6E657665722073656E74',12,0,'skipped','skipped.pattern','A pattern leaves it out.','Change it.',1767603640);
INSERT INTO "outcomes" VALUES(1,X'642F6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E6E',3,1700000000000000007,'found','waiting.unsent','The file was found and is not verified yet.','The next run sends it.',1767603610);
INSERT INTO "outcomes" VALUES(1,X'642F6E6F7420696E20612E746172',3,1700000000000000007,'waiting','waiting.recheck','The file was known as verified, but an answer of the server contradicts that.','Keep the local file. The next run compares it with the server, and sends it again if needed.',1767603640);
INSERT INTO "outcomes" VALUES(1,X'642F72656675736564',3,0,'failed','file.unreadable','It cannot be read.','Look.',1767603640);
INSERT INTO "outcomes" VALUES(1,X'642F72656769737465726564',3,1700000000000000007,'found','waiting.unsent','The file was found and is not verified yet.','The next run sends it.',1767603610);
INSERT INTO "outcomes" VALUES(1,X'642F7265706169726564',3,1700000000000000007,'found','waiting.unsent','The file was found and is not verified yet.','The next run sends it.',1767603610);
INSERT INTO "outcomes" VALUES(1,X'642F72657772697474656E',9,8,'found','waiting.unsent','The file was found and is not verified yet.','The next run sends it.',1767603610);
INSERT INTO "outcomes" VALUES(1,X'642F73656E74',3,1700000000000000007,'found','waiting.unsent','The file was found and is not verified yet.','The next run sends it.',1767603610);
INSERT INTO "outcomes" VALUES(1,X'642F73656E742C207468656E206368616E676564',2,1700000000000000007,'found','waiting.unsent','The file was found and is not verified yet.','The next run sends it.',1767603610);
INSERT INTO "outcomes" VALUES(1,X'642F736574746C696E67',1,2,'waiting','waiting.settling','It may still be written.','Later.',1767603640);
INSERT INTO "outcomes" VALUES(1,X'642F736B6970706564',3,0,'skipped','skipped.pattern','A pattern leaves it out.','Change it.',1767603640);
INSERT INTO "outcomes" VALUES(1,X'642F746F7563686564',3,1700000000000000007,'found','waiting.unsent','The file was found and is not verified yet.','The next run sends it.',1767603610);
INSERT INTO "outcomes" VALUES(1,X'642F7761697473',3,1700000000000000007,'waiting','waiting.verification','The server has not verified it yet.','Wait.',1767603640);
INSERT INTO "outcomes" VALUES(1,X'642FE697A5E69CAC2E646174',3,1700000000000000007,'found','waiting.unsent','The file was found and is not verified yet.','The next run sends it.',1767603610);
INSERT INTO "outcomes" VALUES(1,X'642FFE',1,1,'failed','file.unreadable','It cannot be read.','Look.',1767603640);
INSERT INTO "outcomes" VALUES(1,X'656D707479',0,0,'folder-skipped','skipped.owner','The server knows no such user.','',1767603640);
INSERT INTO "outcomes" VALUES(2,X'642F7665726966696564',1,1,'failed','file.unreadable','It cannot be read.','Look.',1767603640);
CREATE TABLE replacements (
    root INTEGER NOT NULL,
    key BLOB NOT NULL,
    dataset INTEGER NOT NULL,
    datafile INTEGER NOT NULL,
    remote TEXT NOT NULL,
    staged TEXT NOT NULL,
    size INTEGER NOT NULL,
    checksum TEXT NOT NULL,
    at INTEGER NOT NULL, modified_ns INTEGER NOT NULL DEFAULT -1, kept TEXT NOT NULL DEFAULT '', kept_size INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (root, key)
) WITHOUT ROWID;
INSERT INTO "replacements" VALUES(1,X'642F7265706169726564',7,201,'d/x','d/.new',3,'cccccccccccccccccccccccccccccccc',1700000000,-1,'',0);
CREATE TABLE roots (
    id INTEGER PRIMARY KEY,
    directory BLOB NOT NULL UNIQUE
);
INSERT INTO "roots" VALUES(1,X'2F64617461');
INSERT INTO "roots" VALUES(2,X'2F6F74686572FF');
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    root INTEGER NOT NULL,
    started TEXT NOT NULL,
    finished TEXT,
    summary TEXT NOT NULL
);
INSERT INTO "runs" VALUES('r1',1,'2026-01-05T09:00:00+00:00','2026-01-05T09:00:40+00:00','{"found": 30, "verified": 10, "reason": ""}');
CREATE TABLE sources (
    root INTEGER NOT NULL,
    path BLOB NOT NULL,
    owner TEXT NOT NULL,
    experiment TEXT NOT NULL,
    dataset TEXT NOT NULL,
    added_at INTEGER NOT NULL,
    finished_at INTEGER,
    PRIMARY KEY (root, path)
) WITHOUT ROWID;
INSERT INTO "sources" VALUES(1,X'2F7573622F61','ada','mice','day 1',1767603640,NULL);
CREATE TABLE spot_checks (
    root INTEGER NOT NULL,
    datafile INTEGER NOT NULL,
    key BLOB NOT NULL,
    PRIMARY KEY (root, datafile)
) WITHOUT ROWID;
INSERT INTO "spot_checks" VALUES(1,203,X'642F7665726966696564');
CREATE TABLE writes (
    root INTEGER NOT NULL,
    dataset INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (root, dataset)
) WITHOUT ROWID;
INSERT INTO "writes" VALUES(1,7,1767603900);
CREATE INDEX entries_by_archive ON entries (root, dataset, archive, state) WHERE archive != '';
CREATE INDEX entries_by_time ON entries (root, changed_at);
CREATE INDEX outcomes_by_code ON outcomes (root, outcome, code);
CREATE INDEX entries_by_dataset ON entries (root, dataset, state, datafile);
COMMIT;
PRAGMA application_id = 1299792972;
PRAGMA user_version = 9;
