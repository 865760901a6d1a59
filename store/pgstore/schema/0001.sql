-- Times are milliseconds since 1970 in UTC, and NULL is none. Names are compared byte by byte.

-- A thread. ready says that due_at had come when somebody looked last.
CREATE TABLE @.thread (
    id                text COLLATE "C" PRIMARY KEY,
    tenant            text COLLATE "C" NOT NULL,
    epoch             bigint NOT NULL,
    fence             bigint NOT NULL,
    seq               bigint NOT NULL,
    queued            bigint NOT NULL,
    messages          bigint NOT NULL,
    claim_dispatch    text COLLATE "C",
    claim_token       text NOT NULL,
    claim_fence       bigint NOT NULL,
    claim_owner       text NOT NULL,
    claim_until       bigint,
    claim_stop        text NOT NULL,
    latest_run        text COLLATE "C" NOT NULL,
    latest_agent      text NOT NULL,
    latest_status     text NOT NULL,
    latest_wait       text NOT NULL,
    latest_wait_until bigint,
    open_run          text COLLATE "C" NOT NULL,
    open_agent        text NOT NULL,
    open_status       text NOT NULL,
    open_wait         text COLLATE "C" NOT NULL,
    open_wait_until   bigint,
    commit_id         text NOT NULL,
    interrupt_id      text NOT NULL,
    reserved_until    bigint,
    due_at            bigint,
    rank              bigint NOT NULL,
    updated_at        bigint,
    ready             boolean NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);

CREATE INDEX thread_due ON @.thread (ready, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX thread_rank ON @.thread (rank, id) WHERE ready;
CREATE INDEX thread_tenant_rank ON @.thread (tenant, rank, id) WHERE ready;
CREATE INDEX thread_tenant ON @.thread (tenant, id);
CREATE INDEX thread_wait ON @.thread (open_wait, id) WHERE open_wait <> '';

-- The thread's image is apart, so that a transition does not copy it.
CREATE TABLE @.image (
    thread text COLLATE "C" PRIMARY KEY,
    data   bytea NOT NULL
);

CREATE TABLE @.dispatch (
    id           text COLLATE "C" PRIMARY KEY,
    thread       text COLLATE "C" NOT NULL,
    run       text COLLATE "C" NOT NULL,
    seq          bigint NOT NULL,
    priority     smallint NOT NULL,
    epoch        bigint NOT NULL,
    dedupe       text COLLATE "C" NOT NULL,
    origin       text NOT NULL,
    status       text COLLATE "C" NOT NULL,
    available_at bigint,
    attempts     bigint NOT NULL,
    max_attempts bigint NOT NULL,
    last_error   text NOT NULL,
    holding      boolean NOT NULL,
    token        text NOT NULL,
    fence        bigint NOT NULL,
    owner        text NOT NULL,
    claim_end    text NOT NULL,
    instance     text NOT NULL,
    run_status   text NOT NULL,
    termination  text NOT NULL,
    response     text NOT NULL,
    run_error    text NOT NULL,
    created_at   bigint,
    updated_at   bigint NOT NULL,
    completed_at bigint,
    digest       text NOT NULL,
    request      bytea NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);

-- A thread has one claim, and a dedupe key one dispatch that is not terminal: the engine sees to it.
CREATE UNIQUE INDEX dispatch_claimed ON @.dispatch (thread) WHERE status = 'claimed';
CREATE UNIQUE INDEX dispatch_dedupe ON @.dispatch (thread, dedupe) WHERE dedupe <> '' AND status IN ('queued', 'claimed');
CREATE INDEX dispatch_thread ON @.dispatch (thread, status, priority, seq);
CREATE INDEX dispatch_later ON @.dispatch (thread, available_at) WHERE status = 'queued';
CREATE INDEX dispatch_holder ON @.dispatch (thread, priority, seq) WHERE status = 'queued' AND holding;
CREATE INDEX dispatch_history ON @.dispatch (status, updated_at, id);

CREATE TABLE @.run (
    id          text COLLATE "C" PRIMARY KEY,
    thread      text COLLATE "C" NOT NULL,
    agent       text NOT NULL,
    parent      text NOT NULL,
    status      text NOT NULL,
    termination text NOT NULL,
    wait        text NOT NULL,
    wait_until  bigint,
    output      text NOT NULL,
    error       text NOT NULL,
    dispatch    text NOT NULL,
    session     text NOT NULL,
    input       text[] NOT NULL,
    data        bytea NOT NULL,
    created_at  bigint,
    started_at  bigint,
    finished_at bigint,
    updated_at  bigint
) WITH (fillfactor = 80);

CREATE INDEX run_thread ON @.run (thread);

CREATE TABLE @.message (
    thread text COLLATE "C" NOT NULL,
    seq    bigint NOT NULL,
    id     text COLLATE "C" NOT NULL,
    run    text NOT NULL,
    data   bytea NOT NULL,
    at     bigint,
    PRIMARY KEY (thread, seq),
    UNIQUE (thread, id)
);

-- Who listens for a run under way, and commands on their way there. Nothing of it outlives a crash of
-- the server, nor has to.
CREATE UNLOGGED TABLE @.listener (
    target text COLLATE "C" PRIMARY KEY,
    node   bigint NOT NULL,
    turn   bigint NOT NULL
);

CREATE UNLOGGED TABLE @.command (
    id      text PRIMARY KEY,
    target  text NOT NULL,
    kind    text NOT NULL,
    name    text NOT NULL,
    payload bytea NOT NULL,
    sent_at timestamptz NOT NULL DEFAULT now()
);
