package mailboxtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
)

// crashEnv has the name of the store for a child of [TestCrash].
const crashEnv = "MORTISE_TEST_MAILBOX_CRASH"

// What a child does, at most: a run has crashSteps commits, and the last one ends it.
const (
	crashThreads    = 6
	crashSubmitters = 3
	crashSubmits    = 5
	crashSteps      = 3
	crashLease      = time.Second
)

// CrashChild makes this process a child of [TestCrash], if it was started as one, and does not
// return then. Call it first in TestMain.
func CrashChild(open OpenFunc) {
	name := os.Getenv(crashEnv)
	if name == "" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // the parent has gone
	}()
	err := crashChild(context.Background(), open, name)
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func crashChild(ctx context.Context, open OpenFunc, name string) error {
	say := crashVoice(os.Stdout)
	s, _, err := open(ctx, name)
	if err != nil {
		return err
	}
	box, err := mailbox.New(ctx, crashConfig(s, say))
	if err != nil {
		return err
	}
	say("open")
	if err := box.Start(ctx); err != nil {
		return err
	}
	var wg sync.WaitGroup
	for w := range crashSubmitters {
		wg.Go(func() {
			for i := range crashSubmits {
				sub, err := box.SubmitBackground(ctx, mailbox.Request{
					Thread: fmt.Sprint("t", (os.Getpid()+w+i)%crashThreads), Messages: []mailbox.Input{{Data: []byte("hello")}},
				})
				if err != nil {
					say("wrong submit: %v", err)
					continue
				}
				say("submitted %s", sub.Dispatch)
			}
		})
	}
	wg.Wait()
	select {} // until it is killed
}

// crashConfig has short leases, so that what the dead held is soon free, and more attempts than a
// child is killed.
func crashConfig(s store.Store, say func(format string, args ...any)) mailbox.Config {
	return mailbox.Config{
		Store: s, Runtime: crashRuntime{say: say},
		Lease:     mailbox.Lease{Duration: crashLease, Renew: 200 * time.Millisecond, Skew: 50 * time.Millisecond},
		Poll:      20 * time.Millisecond,
		Retry:     mailbox.Retry{Attempts: 10_000, Delay: time.Millisecond, MaxDelay: 10 * time.Millisecond},
		Retention: mailbox.Retention{Interval: -1},
	}
}

// crashVoice writes lines, one write each.
func crashVoice(w io.Writer) func(format string, args ...any) {
	var mu sync.Mutex
	return func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(w, format+"\n", args...)
	}
}

// crashRuntime writes a few messages with the claim by which they were written. The last
// one comes with the end of the run.
type crashRuntime struct {
	say func(format string, args ...any)
}

// Run implements mailbox.Runtime.
func (r crashRuntime) Run(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
	r.say("began %s %d", j.Dispatch.Thread, j.Fence)
	done := mailbox.Result{Status: mailbox.RunDone, Termination: "natural", Response: "done"}
	for step := range crashSteps {
		id := fmt.Sprintf("%s %d %d", j.Dispatch.ID, j.Fence, step)
		c := mailbox.Commit{ID: id, From: j.Messages + step, Append: []mailbox.Message{{ID: id, Run: j.Run.ID}}, Image: []byte(id)}
		if step == crashSteps-1 {
			c.Result = done
		}
		err := j.Commit(ctx, c)
		if err != nil && !errors.Is(err, mailbox.ErrConflict) && ctx.Err() == nil {
			r.say("wrong commit %s: %v", id, err)
		}
		if err != nil {
			return mailbox.Result{}, err
		}
	}
	return done, nil
}
