-- The mailbox, version 1. Times are milliseconds since 1970, NULL is none. An empty text is none.
-- The columns are those of other SQL engines too; BLOB is BYTEA, and TEXT orders by bytes.

-- What a thread comes down to: mailbox.Head.
CREATE TABLE thread (
	id                TEXT NOT NULL PRIMARY KEY,
	tenant            TEXT NOT NULL,
	epoch             BIGINT NOT NULL,
	fence             BIGINT NOT NULL,
	seq               BIGINT NOT NULL,
	queued            BIGINT NOT NULL,
	messages          BIGINT NOT NULL,
	claim_dispatch    TEXT, -- NULL without a claim
	claim_token       TEXT,
	claim_fence       BIGINT,
	claim_owner       TEXT,
	claim_until       BIGINT,
	claim_stop        TEXT,
	latest_run        TEXT NOT NULL,
	latest_agent      TEXT NOT NULL,
	latest_status     TEXT NOT NULL,
	latest_wait       TEXT NOT NULL,
	latest_wait_until BIGINT,
	open_run          TEXT NOT NULL,
	open_agent        TEXT NOT NULL,
	open_status       TEXT NOT NULL,
	open_wait         TEXT NOT NULL,
	open_wait_until   BIGINT,
	commit_id         TEXT NOT NULL,
	interrupt_id      TEXT NOT NULL,
	reserved_until    BIGINT,
	due_at            BIGINT,
	rank              BIGINT NOT NULL,
	updated_at        BIGINT,
	-- Whether it was due already when it was written, or was found to be late since. Those are looked
	-- for by rank, the others by time; a look costs the same however many there are of either.
	ready             BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX thread_ready ON thread (rank, id) WHERE ready = 1;
CREATE INDEX thread_ready_tenant ON thread (tenant, rank, id) WHERE ready = 1;
CREATE INDEX thread_pending ON thread (due_at) WHERE ready = 0 AND due_at IS NOT NULL;
CREATE INDEX thread_tenant ON thread (tenant, id);
CREATE INDEX thread_wait ON thread (open_wait, id) WHERE open_wait <> '';

-- mailbox.Dispatch, without its request.
CREATE TABLE dispatch (
	id           TEXT NOT NULL PRIMARY KEY,
	thread       TEXT NOT NULL,
	run          TEXT NOT NULL,
	seq          BIGINT NOT NULL,
	priority     BIGINT NOT NULL,
	epoch        BIGINT NOT NULL,
	dedupe       TEXT NOT NULL,
	origin       TEXT NOT NULL,
	status       TEXT NOT NULL,
	available_at BIGINT,
	attempts     BIGINT NOT NULL,
	max_attempts BIGINT NOT NULL,
	last_error   TEXT NOT NULL,
	holding      BIGINT NOT NULL,
	token        TEXT NOT NULL,
	fence        BIGINT NOT NULL,
	owner        TEXT NOT NULL,
	claim_end    TEXT NOT NULL,
	instance     TEXT NOT NULL,
	run_status   TEXT NOT NULL,
	termination  TEXT NOT NULL,
	response     TEXT NOT NULL,
	run_error    TEXT NOT NULL,
	created_at   BIGINT,
	updated_at   BIGINT NOT NULL,
	completed_at BIGINT,
	digest       TEXT NOT NULL
) WITHOUT ROWID;
-- No thread has two claims, and no dedupe key two live dispatches, whatever the program does.
CREATE UNIQUE INDEX dispatch_claimed ON dispatch (thread) WHERE status = 'claimed';
CREATE UNIQUE INDEX dispatch_dedupe ON dispatch (thread, dedupe) WHERE dedupe <> '' AND status IN ('queued', 'claimed');
CREATE INDEX dispatch_queue ON dispatch (thread, priority, seq, available_at) WHERE status = 'queued';
CREATE INDEX dispatch_time ON dispatch (thread, available_at) WHERE status = 'queued';
CREATE INDEX dispatch_holding ON dispatch (thread, priority, seq) WHERE status = 'queued' AND holding = 1;
CREATE INDEX dispatch_thread ON dispatch (thread, priority, seq);
CREATE INDEX dispatch_history ON dispatch (status, updated_at, id) WHERE status IN ('acked', 'cancelled', 'superseded', 'dead_letter');

-- Payloads are apart from what changes: a row is written whole.
CREATE TABLE request (
	dispatch TEXT NOT NULL PRIMARY KEY,
	data     BLOB NOT NULL
) WITHOUT ROWID;

-- How many dispatches there are: one row.
CREATE TABLE tally (
	queued      BIGINT NOT NULL,
	claimed     BIGINT NOT NULL,
	acked       BIGINT NOT NULL,
	cancelled   BIGINT NOT NULL,
	superseded  BIGINT NOT NULL,
	dead_letter BIGINT NOT NULL
);
INSERT INTO tally VALUES (0, 0, 0, 0, 0, 0);

-- mailbox.Run, without its data. Input is a JSON list.
CREATE TABLE run (
	id          TEXT NOT NULL PRIMARY KEY,
	thread      TEXT NOT NULL,
	agent       TEXT NOT NULL,
	parent      TEXT NOT NULL,
	status      TEXT NOT NULL,
	termination TEXT NOT NULL,
	wait        TEXT NOT NULL,
	wait_until  BIGINT,
	output      TEXT NOT NULL,
	error       TEXT NOT NULL,
	dispatch    TEXT NOT NULL,
	session     TEXT NOT NULL,
	input       TEXT NOT NULL,
	created_at  BIGINT,
	started_at  BIGINT,
	finished_at BIGINT,
	updated_at  BIGINT
) WITHOUT ROWID;
CREATE INDEX run_thread ON run (thread);

CREATE TABLE run_data (
	run  TEXT NOT NULL PRIMARY KEY,
	data BLOB NOT NULL
) WITHOUT ROWID;

-- mailbox.Message.
CREATE TABLE message (
	thread TEXT NOT NULL,
	seq    BIGINT NOT NULL,
	id     TEXT NOT NULL,
	run    TEXT NOT NULL,
	data   BLOB,
	at     BIGINT,
	PRIMARY KEY (thread, seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX message_id ON message (thread, id);

CREATE TABLE image (
	thread TEXT NOT NULL PRIMARY KEY,
	data   BLOB NOT NULL
) WITHOUT ROWID;

-- Commands to runs under way, from one process to another. Nearly always empty.
CREATE TABLE live_command (
	id       INTEGER PRIMARY KEY AUTOINCREMENT,
	thread   TEXT NOT NULL,
	run      TEXT NOT NULL,
	dispatch TEXT NOT NULL,
	kind     TEXT NOT NULL,
	command  TEXT NOT NULL,
	payload  BLOB,
	sent_at  BIGINT NOT NULL,
	taken    BIGINT NOT NULL,
	accepted BIGINT -- NULL without an answer
);
