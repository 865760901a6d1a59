package program

import (
	"cmp"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// leaseOfRun is how long the thread of a live run that was killed stays claimed.
const leaseOfRun = 10 * time.Second

// stopWait is how long a run on the same thread has to yield.
const stopWait = 5 * time.Second

// liveMailbox configures the mailbox of one run. Its loop is not started: the requests of others that the store has are not
// this process's to execute.
func liveMailbox(c *mailbox.Config) {
	const events, eventBytes = 1 << 20, 64 << 20
	c.Lease.Duration = cmp.Or(c.Lease.Duration, leaseOfRun)
	c.Lease.Renew = c.Lease.Duration / renewals
	c.Waits.Stop = c.Lease.Duration + stopWait // for one that was killed on the same thread
	c.Events.Count, c.Events.Bytes = events, eventBytes
}
