-- The mailbox, version 2. A list of four is a table that SQLite makes for each row that is written; two comparisons are not.
DROP INDEX dispatch_history;
CREATE INDEX dispatch_history ON dispatch (status, updated_at, id) WHERE status <> 'queued' AND status <> 'claimed';
