package outbox_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/notice"
	"github.com/mortise-dev/mortise/outbox"
)

// A task ends while nobody listens. Its thread is woken, the next run reads the
// news, and acknowledges it when the conversation is kept.
func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "outbox")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	store, err := outbox.OpenFile(outbox.FileConfig{Path: filepath.Join(folder, "outbox")})
	if err != nil {
		panic(err)
	}
	woken := make(chan string, 1)
	var tasks *background.Manager
	box, err := outbox.New(ctx, outbox.Config{
		Store: store,
		Acknowledged: func(ctx context.Context, thread string, ids ...string) {
			tasks.Acknowledge(ctx, thread, ids...)
		},
	})
	if err != nil {
		panic(err)
	}
	tasks, err = background.New(background.Config{Ledger: box, NewID: func() string { return "bg_0" }})
	if err != nil {
		panic(err)
	}
	if err := tasks.Recover(ctx); err != nil { // what the process before left behind
		panic(err)
	}
	box.Start(func(_ context.Context, thread string) error { woken <- thread; return nil })
	_, err = tasks.Spawn(ctx, background.Spec{
		Thread: "thread-1", Type: "build",
		Body: func(context.Context, *background.Task) (any, error) { return "42 pages, 1 <broken> link", nil },
	})
	if err != nil {
		panic(err)
	}

	thread := <-woken
	delivery, err := box.Take(ctx, thread)
	if err != nil {
		panic(err)
	}
	defer delivery.Release() // whatever was not acknowledged is news again
	prompt, used := notice.Prepend(delivery.Notices(), notice.ResumePrompt, 0)
	fmt.Println(prompt) // the run answers, and the conversation is kept
	if err := delivery.Ack(ctx, used); err != nil {
		panic(err)
	}
	fmt.Println("not acknowledged:", box.Waiting(thread))

	_ = tasks.Close(ctx)
	_ = box.Close(ctx)
	_ = store.Close()
	// Output:
	// <system-reminder>
	// The following background tasks finished since your last turn:
	//
	// Task bg_0 (completed):
	// 42 pages, 1 &lt;broken&gt; link
	// </system-reminder>
	//
	// Continue based on the background task results above.
	// not acknowledged: 0
}
