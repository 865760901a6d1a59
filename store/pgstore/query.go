package pgstore

import (
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/mailbox"
)

// query is a statement in the making.
type query struct {
	sql  strings.Builder
	args []any
}

func (q *query) add(parts ...string) {
	for _, p := range parts {
		q.sql.WriteString(p)
	}
}

// arg adds a parameter and says what it is called.
func (q *query) arg(v any) string {
	q.args = append(q.args, v)
	return "$" + strconv.Itoa(len(q.args))
}

// picked adds the ids of the dispatches of a thread that a need names. Its thread is $1.
func (q *query) picked(need mailbox.Need) {
	q.add(`SELECT unnest(`, q.arg(names(need.Dispatches)), `::text[]) AS id`)
	if need.Claimed {
		q.add(` UNION ALL SELECT claim_dispatch FROM @.thread WHERE id = $1`)
	}
	if need.Dedupe != "" {
		q.add(` UNION ALL SELECT id FROM @.dispatch WHERE thread = $1 AND dedupe = `, q.arg(name(need.Dedupe)), ` AND dedupe <> '' AND status IN ('queued', 'claimed')`)
	}
	if need.Next {
		now := q.arg(need.Now.UnixMilli())
		q.add(` UNION ALL (SELECT id FROM @.dispatch WHERE thread = $1 AND status = 'queued' AND (available_at IS NULL OR available_at <= `, now, `::bigint)
			ORDER BY priority, seq LIMIT 1)`)
		q.add(` UNION ALL (SELECT id FROM @.dispatch WHERE thread = $1 AND status = 'queued' AND holding ORDER BY priority, seq LIMIT 1)`)
	}
	if need.Queued {
		q.add(` UNION ALL SELECT id FROM @.dispatch WHERE thread = $1 AND status = 'queued'`)
	}
}

// some says whether a need names dispatches at all.
func some(need mailbox.Need) bool {
	return len(need.Dispatches) > 0 || need.Claimed || need.Dedupe != "" || need.Next || need.Queued
}

// dispatchQuery reads the dispatches of a need. Each is looked up by its id: a join would be planned
// by how many the thread has today.
func dispatchQuery(thread string, need mailbox.Need) *query {
	q := &query{}
	q.arg(name(thread))
	q.add(`SELECT d.* FROM (`)
	q.picked(need)
	request := `''::bytea`
	if need.Requests {
		request = `request`
	}
	q.add(`) p CROSS JOIN LATERAL (SELECT `, dispatchColumns, `, `, request, ` FROM @.dispatch WHERE id = p.id AND thread = $1 LIMIT 1) d`)
	return q
}

// runQuery reads the runs of a need.
func runQuery(thread string, need mailbox.Need) *query {
	q := &query{}
	q.arg(name(thread))
	q.add(`SELECT r.* FROM (SELECT DISTINCT id FROM (SELECT unnest(`, q.arg(names(need.Runs)), `::text[]) AS id`)
	if need.RunsOf {
		q.add(` UNION ALL SELECT unnest(ARRAY[open_run, latest_run]) FROM @.thread WHERE id = $1`)
		if some(need) {
			q.add(` UNION ALL SELECT d.run FROM (`)
			q.picked(need)
			q.add(`) p CROSS JOIN LATERAL (SELECT run FROM @.dispatch WHERE id = p.id AND thread = $1 LIMIT 1) d`)
		}
	}
	q.add(`) ids) p CROSS JOIN LATERAL (SELECT `, runColumns, ` FROM @.run WHERE id = p.id AND thread = $1 LIMIT 1) r`)
	return q
}

// laterQuery reads when the next queued dispatch is due that is not yet.
func laterQuery(thread string, need mailbox.Need) *query {
	q := &query{}
	q.add(`SELECT min(available_at) FROM @.dispatch WHERE thread = `, q.arg(name(thread)), ` AND status = 'queued' AND available_at > `, q.arg(need.Now.UnixMilli()))
	return q
}
