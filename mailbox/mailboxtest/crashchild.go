package mailboxtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/killtest"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
)

// crashKind is the kind of the children of [TestCrash].
const crashKind = "MAILBOX"

// What a child does, at most: a run has crashSteps commits, and the last one ends it.
const (
	crashThreads    = 6
	crashSubmitters = 3
	crashSubmits    = 5
	crashSteps      = 3
	crashLease      = time.Second
)

// CrashVariable makes a process a child of [TestCrash] on the store of a name, for its environment: of a test that starts processes in
// its own way.
func CrashVariable(name string) string {
	return killtest.Variable(crashKind, killtest.Life{Name: name})
}

// CrashChild makes this process a child of [TestCrash], if it was started as one, and does not
// return then. Call it first in TestMain.
func CrashChild(open OpenFunc) {
	killtest.Child(crashKind, func(ctx context.Context, l killtest.Life, say func(words ...any)) error {
		return crashChild(ctx, open, l.Name, say)
	})
}

func crashChild(ctx context.Context, open OpenFunc, name string, say func(words ...any)) error {
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
					say("wrong submit:", err)
					continue
				}
				say("submitted", sub.Dispatch)
			}
		})
	}
	wg.Wait()
	select {} // until it is killed
}

// crashConfig has short leases, so that what the dead held is soon free, and more attempts than a
// child is killed.
func crashConfig(s store.Store, say func(words ...any)) mailbox.Config {
	return mailbox.Config{
		Store: s, Runtime: crashRuntime{say: say},
		Lease:     mailbox.Lease{Duration: crashLease, Renew: 200 * time.Millisecond, Skew: 50 * time.Millisecond},
		Poll:      20 * time.Millisecond,
		Retry:     mailbox.Retry{Attempts: 10_000, Delay: time.Millisecond, MaxDelay: 10 * time.Millisecond},
		Retention: mailbox.Retention{Interval: -1},
	}
}

// crashRuntime writes a few messages with the claim by which they were written. The last
// one comes with the end of the run.
type crashRuntime struct {
	say func(words ...any)
}

// Run implements mailbox.Runtime.
func (r crashRuntime) Run(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
	r.say("began", j.Dispatch.Thread, j.Fence)
	done := mailbox.Result{Status: mailbox.RunDone, Termination: "natural", Response: "done"}
	for step := range crashSteps {
		id := fmt.Sprintf("%s %d %d", j.Dispatch.ID, j.Fence, step)
		c := mailbox.Commit{ID: id, From: j.Messages + step, Append: []mailbox.Message{{ID: id, Run: j.Run.ID}}, Image: []byte(id)}
		if step == crashSteps-1 {
			c.Result = done
		}
		err := j.Commit(ctx, c)
		if err != nil && !errors.Is(err, mailbox.ErrConflict) && ctx.Err() == nil {
			r.say("wrong commit", id, err)
		}
		if err != nil {
			return mailbox.Result{}, err
		}
	}
	return done, nil
}
