package sqlitestore_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
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
