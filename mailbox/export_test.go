package mailbox

import "context"

// What tests use of the transitions, to be where a process or a clock would have to be broken.
type (
	Entry            = entry
	ClaimRequest     = claimRequest
	InterruptRequest = interruptRequest
	Settlement       = settlement
)

const (
	EndReleased     = endReleased
	PriorityDefault = priorityDefault
	Ack             = verdictAck
)

// ConflictText is the text of an error.
func ConflictText(expected, actual uint64) string {
	return (&conflictError{expected: expected, actual: actual}).Error()
}

func (q *queue) Enqueue(ctx context.Context, e Entry) (state, error) { return q.enqueueEntry(ctx, e) }

func (q *queue) Claim(ctx context.Context, thread string, r ClaimRequest) (state, bool, error) {
	return q.claim(ctx, thread, r)
}

func (q *queue) Settle(ctx context.Context, h hold, s Settlement) (state, error) {
	return q.settle(ctx, h, s)
}

func (q *queue) InterruptThread(ctx context.Context, thread string, i InterruptRequest) (Interruption, error) {
	return q.interruptThread(ctx, thread, i)
}

func (s state) Hold() hold { return s.hold() }

func (q *queue) Expire(ctx context.Context, thread string) (state, bool, error) {
	return q.expire(ctx, thread)
}
