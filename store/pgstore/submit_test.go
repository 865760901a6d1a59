package pgstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/mailbox"
)

// runtime executes anything.
type runtime struct{ ran chan string }

func (r runtime) Run(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
	r.ran <- string(j.Request.Messages[0].Data)
	return mailbox.Result{Termination: "natural"}, nil
}

// TestSubmitWithin: a request that is submitted in a transaction of the caller is executed after the commit, soon and once; one whose
// transaction is rolled back never was.
func TestSubmitWithin(t *testing.T) {
	t.Parallel()
	c := config(t)
	s := open(t, c)
	r := runtime{ran: make(chan string, 10)}
	m, err := mailbox.New(t.Context(), mailbox.Config{Store: s, Runtime: r, Poll: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close(context.WithoutCancel(t.Context())) }()
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	submit := func(text string) (mailbox.Submission, func(context.Context) error, func(context.Context) error) {
		tx := begun(t, c)
		sub, err := m.SubmitWithin(t.Context(), s.Within(tx), mailbox.Request{
			Thread: "t", Key: text, Messages: []mailbox.Input{{Data: []byte(text)}},
		})
		if err != nil || sub.Running {
			t.Fatalf("submission %+v, error %v", sub, err)
		}
		return sub, tx.Commit, tx.Rollback
	}
	lost, _, rollback := submit("lost")
	if err := rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	kept, commit, _ := submit("kept")
	if _, found, err := m.Dispatch(t.Context(), kept.Dispatch); found || err != nil {
		t.Errorf("before the commit the request is there: %v, %v", found, err)
	}
	if err := commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case text := <-r.ran:
		if text != "kept" {
			t.Errorf("executed was %q", text)
		}
	case <-time.After(10 * time.Second): // a poll is a minute away: the commit notifies
		t.Fatal("nothing was executed")
	}
	if _, err := m.Await(t.Context(), kept.Dispatch); err != nil {
		t.Fatal(err)
	}
	if _, found, err := m.Dispatch(t.Context(), lost.Dispatch); found || err != nil {
		t.Errorf("after the rollback the request is there: %v, %v", found, err)
	}
	again, err := m.SubmitBackground(t.Context(), mailbox.Request{Thread: "t", Key: "kept", Messages: []mailbox.Input{{Data: []byte("kept")}}})
	if err != nil || !again.Repeated || len(r.ran) != 0 {
		t.Errorf("submitted again: %+v, %v, %d executions", again, err, len(r.ran))
	}
}

// TestSubmitWithin_ended: a request in a transaction that has ended is not queued, and the error does not leave that open.
func TestSubmitWithin_ended(t *testing.T) {
	t.Parallel()
	c := config(t)
	s := open(t, c)
	m, err := mailbox.New(t.Context(), mailbox.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close(context.WithoutCancel(t.Context())) }()
	for name, end := range map[string]func(pgx.Tx) error{
		"commit":   func(tx pgx.Tx) error { return tx.Commit(t.Context()) },
		"rollback": func(tx pgx.Tx) error { return tx.Rollback(t.Context()) },
		"lost":     func(tx pgx.Tx) error { return tx.Conn().Close(t.Context()) },
	} {
		tx := begun(t, c)
		if err := end(tx); err != nil {
			t.Fatal(err)
		}
		_, err := m.SubmitWithin(t.Context(), s.Within(tx), mailbox.Request{Thread: "t", Messages: []mailbox.Input{{Data: []byte("late")}}})
		if err == nil || errors.Is(err, mailbox.ErrUnknownOutcome) {
			t.Errorf("%s: a submission after the end of its transaction: %v", name, err)
		}
	}
	if list, err := m.Dispatches(t.Context(), mailbox.DispatchQuery{Thread: "t", Limit: 10}); err != nil || len(list) != 0 {
		t.Errorf("dispatches are %+v, %v", list, err)
	}
}
