package store

import (
	"context"
	"time"
)

// Events is a [Store] that keeps the latest events of streams for a while, for readers in other processes. They belong to no thread's
// revision, and those of the last moments before a crash may be lost. What is kept is in order, and nothing of it comes twice.
type Events interface {
	// AppendEvents adds batches, of a stream each, as [EventBatch.Follows] says. Refused are the streams whose batch does not follow. The
	// same batch may come twice. An error may come although some of them were added.
	AppendEvents(ctx context.Context, list ...EventBatch) (refused []string, err error)
	// ReadEvents returns the batches of a stream with Last after a number, in order, limit at most. When there are none it waits for one,
	// until wait is over.
	ReadEvents(ctx context.Context, stream string, after uint64, limit int, wait time.Duration) ([]EventBatch, error)
	// PurgeEvents deletes batches that were added before a moment. A store may do that by itself.
	PurgeEvents(ctx context.Context, before time.Time) error
	// DropEvents deletes all batches of streams, which may be unknown.
	DropEvents(ctx context.Context, streams ...string) error
}

// EventBatch is some events of a stream that follow on each other. The store does not read them.
type EventBatch struct {
	Stream string
	// Fence grows with each writer of the stream: batches with a smaller one than the latest are refused.
	Fence uint64
	// First and Last are the numbers of the first and the last event.
	First, Last uint64
	// Keep is the number below which earlier batches may be deleted.
	Keep uint64
	// At is when it was added.
	At   time.Time
	Data []byte
}

// Follows decides whether a batch is added to a stream whose last batch is that one, zero if there is none; or refused, because it is of
// a former writer, or because its numbers are there already. A batch that came before is neither.
func (b *EventBatch) Follows(last EventBatch) (add, refused bool) {
	switch {
	case last.Last == 0:
		return true, false
	case last.Fence == b.Fence && last.First == b.First:
		return false, false
	case last.Fence > b.Fence, last.Last >= b.First:
		return false, true
	default:
		return true, false
	}
}
