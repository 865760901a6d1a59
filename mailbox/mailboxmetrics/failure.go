package mailboxmetrics

import (
	"errors"

	"github.com/mortise-dev/mortise/mailbox"
)

// class is what kind of error an execution ended with: why it had to end, or whether another attempt may fix it.
func class(err error) string {
	switch {
	case errors.Is(err, mailbox.ErrLeaseLost), errors.Is(err, mailbox.ErrConflict):
		return "lease_lost"
	case errors.Is(err, mailbox.ErrShutdown):
		return "shutdown"
	case errors.Is(err, mailbox.ErrStopped):
		return "stopped"
	case mailbox.Classify(err) == "permanent_error":
		return "permanent"
	default:
		return "transient"
	}
}
