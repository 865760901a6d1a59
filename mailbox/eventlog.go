package mailbox

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/mortise-dev/mortise/store"
)

// Bounds of what is shared: events and bytes of a batch, batches that are added at once, and bytes of an
// event's data and of its type. NATS takes no message of more than 1 MiB.
const (
	batchEvents  = 256
	batchBytes   = 512 << 10
	batchesOnce  = 64
	maxEventData = 256 << 10
	maxEventType = 256
)

// bounded is the event, or what replaces it if it is too large to be shared.
func (e Event) bounded() Event {
	if len(e.Data) <= maxEventData && len(e.Type) <= maxEventType {
		return e
	}
	return e.skipped()
}

// skipped is what replaces an event.
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

// beginsTurn reports whether an event is the first one of its turn, so that nothing is missing before it.
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
func decodeEvents(b store.EventBatch, after uint64) ([]Event, error) {
	var list []sharedEvent
	if err := json.Unmarshal(b.Data, &list); err != nil {
		return nil, fmt.Errorf("mailbox: events of dispatch %.80q: %w", b.Stream, err)
	}
	var out []Event
	for i, e := range list {
		if seq := b.First + uint64(i); seq > after { //nolint:gosec // an index
			out = append(out, Event{Seq: seq, Type: e.Type, Data: e.Data})
		}
	}
	return out, nil
}
