package mailbox

import (
	"context"
	"time"
)

// Signals is a [Store] that tells its processes of changes with Signal set. Each goes to
// one of them, at least once, until it is acknowledged; it may come before Head.DueAt. Several of
// one thread may come as one. A store that only can say that there is something new has receipts that do nothing:
// the due index tells the rest.
type Signals interface {
	// Pull returns signals, limit at most, as soon as there is one; none when wait is over.
	Pull(ctx context.Context, limit int, wait time.Duration) ([]Signal, error)
}

// Signal says that something of a thread is due.
type Signal struct {
	Thread   string
	Dispatch string
	// Deliveries counts how often the signal came, from 1; 0 is unknown.
	Deliveries int
	Receipt    Receipt
}

// Receipt answers a signal.
type Receipt interface {
	Ack(ctx context.Context) error
	// Nack asks for the signal again, not before delay is over.
	Nack(ctx context.Context, delay time.Duration) error
}

// Live is a [Store] that carries commands to runs under way, in whatever process.
// Nothing of it is kept.
type Live interface {
	// Deliver hands a command to whoever listens for the target, and says whether it
	// was accepted. False, and any error, mean that it probably was not: nobody listens,
	// the listener refused, or no receipt came until ctx was done.
	Deliver(ctx context.Context, t Target, c Command) (bool, error)
	// Listen calls accept for each command to exactly the target until stop is called, one at a time. A second
	// listener takes the place of the first. When stop returns, accept runs no more.
	Listen(ctx context.Context, t Target, accept func(context.Context, Command) bool) (stop func(), err error)
}

// Target is a run under way. Run and Dispatch may be empty; who listens for a
// thread does not hear what is for one of its runs.
type Target struct{ Thread, Run, Dispatch string }

// CommandKind is what a command asks.
type CommandKind string

// Kinds of commands. Others are refused by whoever gets them.
const (
	CommandMessages CommandKind = "messages"
	CommandCancel   CommandKind = "cancel"
	CommandDecision CommandKind = "decision"
)

// Command steers a run under way.
type Command struct {
	Kind CommandKind
	// ID names the command, so that it can be told when it came twice.
	ID      string
	Payload []byte
}
