CREATE TABLE IF NOT EXISTS stored_events (originator_id TEXT, originator_version INTEGER, topic TEXT, state BLOB, PRIMARY KEY (originator_id, originator_version));

CREATE TABLE store_control (
        one INTEGER PRIMARY KEY CHECK (one = 1), store_id TEXT NOT NULL,
        generation INTEGER NOT NULL CHECK (generation >= 1),
        device TEXT NOT NULL, inode TEXT NOT NULL, boot_id TEXT, checksum TEXT);

CREATE TABLE commits (counter INTEGER PRIMARY KEY, digest TEXT NOT NULL);

CREATE TABLE adoptions (
        generation INTEGER PRIMARY KEY, adopted_by TEXT NOT NULL, note TEXT NOT NULL, adopted_at TEXT NOT NULL,
        found TEXT NOT NULL, checksum TEXT);

CREATE TABLE unique_ids (
        id TEXT NOT NULL, kind TEXT NOT NULL, event INTEGER NOT NULL, PRIMARY KEY (id, kind)) WITHOUT ROWID;

CREATE TABLE admissions (
        run_id TEXT PRIMARY KEY, session_id TEXT NOT NULL, generation INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE sealed_streams (
        stream TEXT NOT NULL, sealed_by TEXT NOT NULL, PRIMARY KEY (stream, sealed_by)) WITHOUT ROWID;

CREATE TABLE incarnations (
        incarnation_id TEXT PRIMARY KEY, pid INTEGER NOT NULL, process_start_time INTEGER NOT NULL, host TEXT NOT NULL,
        boot_id TEXT NOT NULL, pid_namespace TEXT NOT NULL, checksum TEXT) WITHOUT ROWID;

CREATE TABLE session_owners (
        session_id TEXT PRIMARY KEY, incarnation_id TEXT REFERENCES incarnations (incarnation_id),
        epoch INTEGER NOT NULL CHECK (epoch >= 1), checksum TEXT) WITHOUT ROWID;

CREATE TRIGGER stored_events_insert BEFORE INSERT ON stored_events BEGIN SELECT CASE
        WHEN NEW.rowid <> -1 THEN RAISE(ABORT, 'the row of an event cannot be chosen')
        WHEN typeof(NEW.originator_id) <> 'text' OR typeof(NEW.originator_version) <> 'integer'
            OR typeof(NEW.topic) <> 'text' OR typeof(NEW.state) <> 'blob' THEN RAISE(ABORT, 'this is not an event')
        WHEN NEW.originator_version <> 1 + COALESCE((SELECT MAX(originator_version) FROM stored_events
            WHERE originator_id = NEW.originator_id), 0) THEN RAISE(ABORT, 'the version is not the next one of its stream')
        WHEN EXISTS (SELECT 1 FROM sealed_streams WHERE stream = NEW.originator_id
            AND (sealed_by = 'run.claimed.v1' OR NEW.topic NOT IN ('background.settled.v1', 'permission.decided.v1', 'run.claimed.v1', 'tool.attested.v1', 'tool.reconciled.v1', 'tool.recovery_decided.v1', 'tool.redelivery_started.v1', 'tool.responded.v1', 'workspace.checkpoint_accepted.v1', 'workspace.rebaselined.v1', 'workspace.renewed.v1', 'workspace.transitioned.v1')))
            THEN RAISE(ABORT, 'the stream is sealed: only facts that may follow a terminal event may be added, and none after a claim')
        END; END;

CREATE TRIGGER stored_events_known AFTER INSERT ON stored_events WHEN NEW.topic <> 'tool.dispatched.v1' AND NEW.topic <> 'run.claimed.v1' AND NEW.topic <> 'session.run_admitted.v1' AND NEW.topic <> 'run.ended.v1' BEGIN
        INSERT INTO unique_ids VALUES (json_extract(CAST(NEW.state AS TEXT), '$.event_id'), 'event', NEW.rowid); END;

CREATE TRIGGER stored_events_known_dispatched AFTER INSERT ON stored_events WHEN NEW.topic = 'tool.dispatched.v1' BEGIN
        INSERT INTO unique_ids VALUES (json_extract(CAST(NEW.state AS TEXT), '$.event_id'), 'event', NEW.rowid); INSERT INTO unique_ids VALUES (json_extract(CAST(NEW.state AS TEXT), '$.operation_id'), 'operation', NEW.rowid); END;

CREATE TRIGGER stored_events_known_claimed AFTER INSERT ON stored_events WHEN NEW.topic = 'run.claimed.v1' BEGIN
        INSERT INTO unique_ids VALUES (json_extract(CAST(NEW.state AS TEXT), '$.event_id'), 'event', NEW.rowid); INSERT INTO unique_ids VALUES (json_extract(CAST(NEW.state AS TEXT), '$.claim_id'), 'claim', NEW.rowid); INSERT INTO sealed_streams VALUES (NEW.originator_id, NEW.topic); END;

CREATE TRIGGER stored_events_known_run_admitted AFTER INSERT ON stored_events WHEN NEW.topic = 'session.run_admitted.v1' BEGIN
        INSERT INTO unique_ids VALUES (json_extract(CAST(NEW.state AS TEXT), '$.event_id'), 'event', NEW.rowid); INSERT INTO admissions SELECT json_extract(CAST(NEW.state AS TEXT), '$.run_id'), json_extract(CAST(NEW.state AS TEXT), '$.session_id'), generation FROM store_control; END;

CREATE TRIGGER stored_events_known_ended AFTER INSERT ON stored_events WHEN NEW.topic = 'run.ended.v1' BEGIN
        INSERT INTO unique_ids VALUES (json_extract(CAST(NEW.state AS TEXT), '$.event_id'), 'event', NEW.rowid); INSERT INTO sealed_streams VALUES (NEW.originator_id, NEW.topic); END;

CREATE TRIGGER unique_ids_insert BEFORE INSERT ON unique_ids
        WHEN typeof(NEW.id) <> 'text' OR EXISTS (SELECT 1 FROM unique_ids WHERE id = NEW.id AND kind = NEW.kind) BEGIN
        SELECT RAISE(ABORT, 'an id is missing, or is used already'); END;

CREATE TRIGGER admissions_insert BEFORE INSERT ON admissions
        WHEN typeof(NEW.run_id) <> 'text' OR typeof(NEW.session_id) <> 'text'
        OR EXISTS (SELECT 1 FROM admissions WHERE run_id = NEW.run_id) BEGIN
        SELECT RAISE(ABORT, 'an id is missing, or is used already'); END;

CREATE TRIGGER admissions_update BEFORE UPDATE ON admissions
        WHEN NEW.run_id <> OLD.run_id OR NEW.session_id <> OLD.session_id OR NEW.generation <> 0 BEGIN
        SELECT RAISE(ABORT, 'an admission can only become foreign'); END;

CREATE TRIGGER stored_events_update BEFORE UPDATE ON stored_events BEGIN
        SELECT RAISE(ABORT, 'facts are never changed'); END;

CREATE TRIGGER unique_ids_update BEFORE UPDATE ON unique_ids BEGIN
        SELECT RAISE(ABORT, 'facts are never changed'); END;

CREATE TRIGGER sealed_streams_update BEFORE UPDATE ON sealed_streams BEGIN
        SELECT RAISE(ABORT, 'facts are never changed'); END;

CREATE TRIGGER stored_events_delete BEFORE DELETE ON stored_events BEGIN
        SELECT RAISE(ABORT, 'facts are never deleted'); END;

CREATE TRIGGER unique_ids_delete BEFORE DELETE ON unique_ids BEGIN
        SELECT RAISE(ABORT, 'facts are never deleted'); END;

CREATE TRIGGER sealed_streams_delete BEFORE DELETE ON sealed_streams BEGIN
        SELECT RAISE(ABORT, 'facts are never deleted'); END;

CREATE TRIGGER admissions_delete BEFORE DELETE ON admissions BEGIN
        SELECT RAISE(ABORT, 'facts are never deleted'); END;
