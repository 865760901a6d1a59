package inbox_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

// TestUnreadableEntry has an entry in the store that is no notice: it is delivered
// as what it is, and can be acknowledged.
func TestUnreadableEntry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := memstore.New()
		broken := newInbox(t, inbox.Config{Store: kept})
		deliver(t, broken, completed("t", "x"))
		closeInbox(t, broken)
		breakEntries(t, kept, "a")
		woken := make(chan string, 1)
		o := newInbox(t, inbox.Config{Store: kept})
		o.Start(func(_ context.Context, thread string) error { woken <- thread; return nil })
		<-woken
		d := take(t, o)
		if list := d.Notifications(); len(list) != 1 || list[0].EventType != "unreadable_entry" {
			t.Fatalf("notifications are %+v", list)
		}
		if err := ack(t.Context(), d, 1); err != nil || o.Waiting("a") != 0 {
			t.Fatalf("%d wait, %v", o.Waiting("a"), err)
		}
		closeInbox(t, o)
	})
}
