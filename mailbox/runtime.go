package mailbox

import "context"

// Runtime executes runs.
type Runtime interface {
	// Run executes a dispatch once. It ends soon when ctx does; context.Cause is [ErrStopped], [ErrLeaseLost] or [ErrShutdown] then. An
	// error counts as in [Classify]. What it writes it writes with the job, which no other execution can then.
	Run(ctx context.Context, j *Job) (Result, error)
}

// Steerer is a [Runtime] whose runs take messages and decisions under way.
type Steerer interface {
	// Steer hands what a request brings to a run under way: messages, or decisions. True means that the run has it and will not lose it. The
	// same may come twice, under one id. A panic refuses it.
	Steer(ctx context.Context, run, id string, r Request) bool
}

// Judge is a [Runtime] that knows what decisions are about before they are queued.
type Judge interface {
	// Judge binds decisions about a run to what it waits for, so that none is taken for an answer to a later question. It reads the
	// thread's image alone, and is quick. With an [ErrRefused] one of them is about nothing that waits; the others come back bound all the
	// same, and that one too as far as it is known what it was about.
	Judge(run string, image []byte, list []Decision) ([]Decision, error)
}
