package sqlitestore

import (
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

// tally is by how much a change moves the counts of dispatches by status, in the order of
// mailbox.Statuses, which is that of the columns.
type tally [6]int

// add counts; no status counts nothing.
func (t *tally) add(s mailbox.Status, n int) {
	for i, status := range mailbox.Statuses() {
		if status == s {
			t[i] += n
		}
	}
}

func (t *tally) write(c *engine.Conn) error {
	if *t == (tally{}) {
		return nil
	}
	_, err := c.Exec(`UPDATE tally SET queued = queued + ?, claimed = claimed + ?, acked = acked + ?,
		cancelled = cancelled + ?, superseded = superseded + ?, dead_letter = dead_letter + ?`, t[0], t[1], t[2], t[3], t[4], t[5])
	return err
}

func readTally(c *engine.Conn) (map[mailbox.Status]int, error) {
	counts := map[mailbox.Status]int{}
	err := c.Query(func(r *engine.Row) {
		for _, status := range mailbox.Statuses() {
			counts[status] = int(r.Int())
		}
	}, "SELECT queued, claimed, acked, cancelled, superseded, dead_letter FROM tally")
	return counts, err
}
