package pgstore_test

import (
	"testing"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/pgstore"
)

// TestStore_damaged holds that a thread with values that cannot be read can be dropped, and when. The types of the columns leave few.
func TestStore_damaged(t *testing.T) {
	t.Parallel()
	sql := func(texts ...string) func(*testing.T, mailbox.Store, mailbox.Taken) {
		return func(t *testing.T, store mailbox.Store, _ mailbox.Taken) {
			t.Helper()
			s, ok := store.(*pgstore.Store)
			if !ok {
				t.Fatalf("the store is a %T", store)
			}
			for _, text := range texts {
				if err := s.Exec(t.Context(), text); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	thread := func(set string) func(*testing.T, mailbox.Store, mailbox.Taken) {
		return sql("UPDATE @.thread SET " + set + " WHERE id = 'bad'")
	}
	mailboxtest.TestDamage(t, func(t *testing.T) mailbox.Store {
		t.Helper()
		return open(t, config(t))
	},
		mailboxtest.Damage{Name: "counters", Do: thread("epoch = -1, seq = -1, queued = -1")},
		mailboxtest.Damage{Name: "claim_of_nothing", Do: thread("claim_dispatch = NULL"), Claim: true},
		mailboxtest.Damage{Name: "claim_without_token", Do: thread("claim_token = ''"), Claim: true},
		mailboxtest.Damage{Name: "claim_without_end", Do: thread("claim_until = NULL"), Claim: true},
		mailboxtest.Damage{Name: "claim_without_an_end_in_sight", Do: thread("claim_until = 9223372036854"), Claim: true},
		mailboxtest.Damage{Name: "fence", Do: thread("fence = -7, claim_fence = -7"), Claim: true},
		mailboxtest.Damage{Name: "time", Do: thread("updated_at = NULL, claim_until = NULL, epoch = -1"), Claim: true},
		mailboxtest.Damage{
			Name: "all_of_it", Claim: true,
			Do: sql("UPDATE @.dispatch SET epoch = -1, attempts = -1 WHERE thread = 'bad'", "UPDATE @.thread SET claim_until = NULL, claim_dispatch = 'nobody', seq = -3 WHERE id = 'bad'"),
		},
	)
}
