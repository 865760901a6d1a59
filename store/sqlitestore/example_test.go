package sqlitestore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

// echo is a runtime that answers at once.
type echo struct{ done chan string }

func (e echo) Run(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
	e.done <- string(j.Request.Messages[0].Data)
	return mailbox.Result{Status: mailbox.RunDone, Termination: "natural"}, nil
}

// What was queued before the process ended is carried out by the next one.
func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	runtime := echo{done: make(chan string, 1)}
	process := func(work func(*mailbox.Mailbox) error) {
		store, err := sqlitestore.Open(ctx, sqlitestore.Config{Path: filepath.Join(dir, "mailbox.db")})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer store.Close(ctx)
		box, err := mailbox.New(ctx, mailbox.Config{Store: store, Runtime: runtime})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer box.Close(ctx)
		if err := work(box); err != nil {
			fmt.Println(err)
		}
	}
	process(func(box *mailbox.Mailbox) error {
		_, err := box.SubmitBackground(ctx, mailbox.Request{Thread: "inbox", Messages: []mailbox.Input{{Data: []byte("hello")}}})
		return err
	})
	process(func(box *mailbox.Mailbox) error {
		if err := box.Start(ctx); err != nil {
			return err
		}
		fmt.Println("ran", <-runtime.done)
		return nil
	})
	// Output: ran hello
}
