package mailboxtest_test

import (
	"testing"

	"github.com/mortise-dev/mortise/internal/queue"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

func opened(*testing.T) store.Store { return memstore.New() }

func TestQueue(t *testing.T) {
	t.Parallel()
	mailboxtest.TestQueue(t, opened)
}

// TestModel holds also that what one process remembers does not count when another one has written since.
func TestModel(t *testing.T) {
	t.Parallel()
	mailboxtest.TestModel(t, func(*testing.T) (one, other store.Store) {
		s := memstore.New()
		return s, s
	}, 1000)
}

// TestDamage holds that a thread with a cell that cannot be read can be dropped when its claim must be over, and not before.
func TestDamage(t *testing.T) {
	t.Parallel()
	damage := func(kind string, key func(k queue.State) string) func(*testing.T, store.Store, queue.State) {
		return func(t *testing.T, s store.Store, k queue.State) {
			t.Helper()
			_, err := s.Apply(t.Context(), store.Batch{
				Thread: "bad", Base: store.AnyRevision, Put: []store.Cell{{Kind: kind, Key: key(k), Value: []byte("{damaged")}},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	mailboxtest.TestDamage(t, opened,
		mailboxtest.Damage{Name: "thread", Claim: true, Do: damage("thread", func(queue.State) string { return "" })},
		mailboxtest.Damage{Name: "dispatch", Do: damage("dispatch", func(k queue.State) string { return k.Dispatch.ID })},
		mailboxtest.Damage{Name: "run", Do: damage("run", func(k queue.State) string { return k.Run.ID })},
		mailboxtest.Damage{Name: "queue", Do: damage("queue", func(queue.State) string { return "\x80somewhere" })},
	)
}
