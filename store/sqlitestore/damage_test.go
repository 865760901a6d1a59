package sqlitestore_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

// quick is a runtime whose runs are done at once.
type quick struct{}

func (quick) Run(context.Context, *mailbox.Job) (mailbox.Result, error) {
	return mailbox.Result{Termination: "natural"}, nil
}

// TestStore_damagedRow holds that a row that cannot be read keeps only its own thread back, and that the thread can be dropped.
func TestStore_damagedRow(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "mailbox.db"))
	m, err := mailbox.New(t.Context(), mailbox.Config{Store: s, Runtime: quick{}, Workers: 1, Poll: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	submit := func(thread string) mailbox.Submission {
		t.Helper()
		sub, err := m.SubmitBackground(t.Context(), mailbox.Request{Thread: thread, Messages: []mailbox.Input{{Data: []byte("x")}}})
		if err != nil {
			t.Fatal(err)
		}
		return sub
	}
	bad, good := submit("bad"), submit("good")
	err = s.File().Write(t.Context(), func(c *engine.Conn) error {
		_, err := c.Exec("UPDATE run SET input = '{' WHERE id = ?", bad.Run)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if d, err := m.Await(ctx, good.Dispatch); err != nil || d.Status != mailbox.Acked {
		t.Fatalf("the other thread's dispatch is %s: %v", d.Status, err)
	}
	if err := m.Queue().Drop(t.Context(), "bad"); err != nil {
		t.Errorf("drop of the damaged thread: %v", err)
	}
	if _, found, err := m.Queue().Dispatch(t.Context(), bad.Dispatch); found || err != nil {
		t.Errorf("the dropped dispatch is there: %v, %v", found, err)
	}
}

// TestStore_damaged holds that a thread with values that cannot be read can be dropped, and when.
func TestStore_damaged(t *testing.T) {
	t.Parallel()
	sql := func(texts ...string) func(*testing.T, mailbox.Store, mailbox.Taken) {
		return func(t *testing.T, store mailbox.Store, k mailbox.Taken) {
			t.Helper()
			s, ok := store.(*sqlitestore.Store)
			if !ok {
				t.Fatalf("the store is a %T", store)
			}
			for _, text := range texts {
				err := s.File().Write(t.Context(), func(c *engine.Conn) error {
					n, err := c.Exec(text, k.Dispatch.Thread)
					if err == nil && n == 0 {
						t.Errorf("nothing was damaged: %s", text)
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	thread := func(set string) func(*testing.T, mailbox.Store, mailbox.Taken) {
		return sql("UPDATE thread SET " + set + " WHERE id = ?")
	}
	mailboxtest.TestDamage(t, func(t *testing.T) mailbox.Store {
		t.Helper()
		return open(t, filepath.Join(t.TempDir(), "mailbox.db"))
	},
		mailboxtest.Damage{Name: "runs", Do: sql("UPDATE run SET input = '{' WHERE thread = ?")},
		mailboxtest.Damage{Name: "claim_of_nothing", Do: thread("claim_dispatch = NULL"), Claim: true},
		mailboxtest.Damage{Name: "claim_without_token", Do: thread("claim_token = NULL"), Claim: true},
		mailboxtest.Damage{Name: "claim_without_end", Do: thread("claim_until = 'soon'"), Claim: true},
		mailboxtest.Damage{Name: "claim_without_an_end_in_sight", Do: thread("claim_until = 9223372036854"), Claim: true},
		mailboxtest.Damage{Name: "claim_of_another_kind", Do: thread("claim_dispatch = 1, claim_token = 1, claim_fence = 'x', claim_owner = 1, claim_until = 'x', claim_stop = 1"), Claim: true},
		mailboxtest.Damage{Name: "fence", Do: thread("fence = 'x', claim_fence = 'y'"), Claim: true},
		mailboxtest.Damage{Name: "time", Do: thread("updated_at = 'x', claim_until = 'y', tenant = 3, queued = 'many'"), Claim: true},
		mailboxtest.Damage{
			Name: "all_of_it", Claim: true,
			Do: sql("UPDATE run SET input = '{' WHERE thread = ?", "UPDATE dispatch SET priority = 'x' WHERE thread = ?", "UPDATE thread SET claim_until = NULL, queued = 'x', open_run = 7 WHERE id = ?"),
		},
	)
}
