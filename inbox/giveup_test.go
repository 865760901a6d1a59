package inbox_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/mortise-dev/mortise/inbox"
)

// TestFullIsNoRefusal shows what a sender that gave up learns: that there was no room, and why it stopped waiting.
func TestFullIsNoRefusal(t *testing.T) {
	t.Parallel()
	b := inbox.NewBox(1, nil)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Send(done, notice(0)); err != nil {
		t.Fatalf("there was room: %v", err)
	}
	err := b.Send(done, notice(1))
	if !errors.Is(err, inbox.ErrFull) || !errors.Is(err, context.Canceled) {
		t.Fatalf("send to a full box: %v", err)
	}
	b.Close()
	if err := b.Send(done, notice(2)); errors.Is(err, inbox.ErrFull) {
		t.Fatalf("send to a closed box: %v", err)
	}
}

// TestSendersThatGiveUpAreForgotten tries again and again to send to a box that is
// full. It is not parallel, as it reads how much memory the process has.
func TestSendersThatGiveUpAreForgotten(t *testing.T) { //nolint:paralleltest // see above
	b := inbox.NewBox(1, nil)
	if err := b.Send(t.Context(), notice(0)); err != nil {
		t.Fatal(err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	const tries = 100_000
	before := heap()
	for range tries {
		if err := b.Send(done, notice(2)); !errors.Is(err, inbox.ErrFull) {
			t.Fatalf("send to a full box: %v", err)
		}
	}
	if grown := int64(heap()) - int64(before); grown > 2<<20 {
		t.Errorf("%d senders that gave up left %d bytes", tries, grown)
	}
	if got := b.Drain(); len(got) != 1 || b.Len() != 0 {
		t.Errorf("read %+v, %d are left", got, b.Len())
	}
}

func heap() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}
