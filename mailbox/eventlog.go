package mailbox

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
)

// EventLog is a [Store] that keeps the latest events of dispatches for readers in other processes: see [Mailbox.Attach].
// Events are not the truth about a run, which is in its thread's log: those of the last moments before a crash may be
// lost. What is kept is in order, and nothing of it comes twice.
type EventLog interface {
	// AppendEvents adds batches, of a dispatch each, as [EventBatch.Follows] says. Refused are the dispatches whose batch
	// does not follow. The same batch may come twice. An error may come although some of them were added.
	AppendEvents(ctx context.Context, list ...EventBatch) (refused []string, err error)
	// ReadEvents returns the batches of a dispatch with Last after a number, in order, limit at most. When there are
	// none it waits for one, until wait is over.
	ReadEvents(ctx context.Context, dispatch string, after uint64, limit int, wait time.Duration) ([]EventBatch, error)
	// PurgeEvents drops batches that were added before a moment. A store may do that by itself.
	PurgeEvents(ctx context.Context, before time.Time) error
}

// EventBatch is some events of a dispatch that follow on each other. The store does not read them.
type EventBatch struct {
	Dispatch string
	// Fence is that of the claim under which they were sent.
	Fence uint64
	// First and Last are the numbers of the first and the last one.
	First, Last uint64
	// Keep is the number below which earlier batches may be dropped.
	Keep uint64
	// At is when it was added.
	At   time.Time
	Data []byte
}

// Follows says whether a batch is to be added to a log whose last batch is that one, zero if there is none; or refused,
// because it is of a former holder, or because what it has is there already. A batch that came before is
// neither.
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

// Bounds of what is shared: events and bytes of a batch, batches that are added at once, and bytes of an
// event's data and of its type. NATS takes no message of more than 1 MiB.
const (
	batchEvents  = 256
	batchBytes   = 512 << 10
	batchesOnce  = 64
	maxEventData = 256 << 10
	maxEventType = 256
)

// bounded is the event, or what stands in its place if it is too large to be shared.
func (e Event) bounded() Event {
	if len(e.Data) <= maxEventData && len(e.Type) <= maxEventType {
		return e
	}
	return e.skipped()
}

// skipped is what stands in the place of an event.
func (e Event) skipped() Event {
	kind := strings.ToValidUTF8(e.Type[:min(len(e.Type), maxEventType)], "")
	return Event{Seq: e.Seq, Type: EventSkipped, Data: []byte(kind)}
}

// turnBits are the low bits of a number, which count the events of a turn. Another holder of the dispatch begins
// a turn, whose numbers are above all of those before, also those that were lost.
const turnBits = 32

// maxSeq is the greatest number that an event may have, and that stores keep.
const maxSeq = math.MaxInt64 - 1

// turnBase is the number before the first event of a turn.
func turnBase(fence uint64) uint64 { return fence << turnBits }

// beginsTurn says whether an event is the first one of its turn, so that nothing is missing before it.
func beginsTurn(seq uint64) bool { return seq&(1<<turnBits-1) == 1 }

// sharedEvent is an event in a batch.
type sharedEvent struct {
	Type string `json:"t"`
	Data []byte `json:"d,omitempty"`
}

// encodeEvents makes the data of a batch.
func encodeEvents(list []Event) ([]byte, error) {
	out := make([]sharedEvent, 0, len(list))
	for _, e := range list {
		out = append(out, sharedEvent{Type: e.Type, Data: e.Data})
	}
	return json.Marshal(out)
}

// decodeEvents reads the events of a batch that come after a number.
func decodeEvents(b EventBatch, after uint64) ([]Event, error) {
	var list []sharedEvent
	if err := json.Unmarshal(b.Data, &list); err != nil {
		return nil, fmt.Errorf("mailbox: events of dispatch %.80q: %w", b.Dispatch, err)
	}
	var out []Event
	for i, e := range list {
		if seq := b.First + uint64(i); seq > after { //nolint:gosec // an index
			out = append(out, Event{Seq: seq, Type: e.Type, Data: e.Data})
		}
	}
	return out, nil
}
