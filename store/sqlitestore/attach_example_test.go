package sqlitestore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

// speaker is a runtime that says what it does.
type speaker struct{}

func (speaker) Run(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
	j.Emit("text", []byte("you said: "+string(j.Request.Messages[0].Data)))
	return mailbox.Result{Termination: "natural"}, nil
}

// Another process, with the file open for itself, follows a run from its first event on.
func Example_attach() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	open := func() (*mailbox.Mailbox, func(), error) {
		store, err := sqlitestore.Open(ctx, sqlitestore.Config{Path: filepath.Join(dir, "mailbox.db")})
		if err != nil {
			return nil, nil, err
		}
		box, err := mailbox.New(ctx, mailbox.Config{Store: store, Runtime: speaker{}})
		if err != nil {
			return nil, nil, errors.Join(err, store.Close(ctx))
		}
		return box, func() {
			if err := errors.Join(box.Close(ctx), store.Close(ctx)); err != nil {
				fmt.Println(err)
			}
		}, nil
	}
	worker, closeWorker, err := open()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer closeWorker()
	front, closeFront, err := open()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer closeFront()
	sub, err := worker.Submit(ctx, mailbox.Request{Thread: "t", Messages: []mailbox.Input{{Data: []byte("hello")}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	feed, err := front.Attach(ctx, sub.Dispatch)
	if err != nil {
		fmt.Println(err)
		return
	}
	for seq := uint64(0); ; {
		e, err := feed.Next(ctx, seq)
		if errors.Is(err, mailbox.ErrEnd) {
			return
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		seq = e.Seq
		fmt.Println(e.Seq, e.Type, string(e.Data))
	}
	// Output:
	// 1 text you said: hello
	// 2 mailbox_settled acked
}
