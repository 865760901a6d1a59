package mailbox_test

import (
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

func TestRecords(t *testing.T) {
	t.Parallel()
	mailboxtest.TestStore(t, func(*testing.T) store.Store { return memstore.New() })
}

// TestRecords_model holds also that what one process remembers does not count when another one has written since.
func TestRecords_model(t *testing.T) {
	t.Parallel()
	mailboxtest.TestModel(t, func(*testing.T) store.Store {
		s := memstore.New()
		return mailboxtest.InTurns(s, s)
	}, 2000)
}

// TestRecords_damaged holds that a thread with a cell that cannot be read can be dropped when its claim must be over, and not before.
func TestRecords_damaged(t *testing.T) {
	t.Parallel()
	var raw sync.Map // the store below each view
	open := func(*testing.T) store.Store {
		s := memstore.New()
		r := s
		raw.Store(store.Store(r), s)
		return r
	}
	damage := func(kind string, key func(k mailbox.Taken) string) func(*testing.T, store.Store, mailbox.Taken) {
		return func(t *testing.T, r store.Store, k mailbox.Taken) {
			t.Helper()
			below, _ := raw.Load(r)
			s, ok := below.(*memstore.Store)
			if !ok {
				t.Fatal("no store")
			}
			_, err := s.Apply(t.Context(), store.Batch{
				Thread: "bad", Base: store.AnyRevision, Put: []store.Cell{{Kind: kind, Key: key(k), Value: []byte("{damaged")}},
			})
			must(t, err)
		}
	}
	dispatch := func(k mailbox.Taken) string { return k.Dispatch.ID }
	mailboxtest.TestDamage(t, open,
		mailboxtest.Damage{Name: "head", Claim: true, Do: damage("head", func(mailbox.Taken) string { return "" })},
		mailboxtest.Damage{Name: "dispatch", Do: damage("dispatch", dispatch)},
		mailboxtest.Damage{Name: "run", Do: damage("run", func(k mailbox.Taken) string { return k.Run.ID })},
		mailboxtest.Damage{Name: "queue", Do: damage("queue", func(mailbox.Taken) string { return "\x80somewhere" })},
	)
}
