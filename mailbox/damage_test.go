package mailbox_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

func TestDamagedThread(t *testing.T) {
	t.Parallel()
	cases(t, map[string]func(*testing.T){
		"is_left_alone_longer_each_time":            damagedBacksOff,
		"keeps_no_other_back":                       damagedRecovery,
		"is_woken_when_it_is_well":                  damagedWakes,
		"is_not_woken_when_it_went_on":              damagedWentOn,
		"many_of_them_are_a_store_that_fails":       damagedStore,
		"keeps_no_stream_of_another_dispatch_alive": damagedStream,
	})
}

// breakable is a store of which some threads fail, and that counts how often they are asked for.
type breakable struct {
	mem    *memstore.Store
	broken atomic.Bool
	asked  atomic.Int64
}

func (b *breakable) open() store.Store {
	f := &mailboxtest.Faulty{Store: b.mem, Damaged: func(thread string) bool {
		if thread != "bad" || !b.broken.Load() {
			return false
		}
		b.asked.Add(1)
		return true
	}}
	return f
}

func damagedBacksOff(t *testing.T) {
	b := &breakable{mem: memstore.New()}
	former := open(t, mailbox.Config{Runtime: &script{}, Store: b.mem})
	bad := queued(t, former, request("bad", "bad"))
	b.broken.Store(true)
	w, s := &witness{}, &script{}
	m := started(t, mailbox.Config{Runtime: s, Store: b.open(), Limits: mailbox.Limits{Workers: 1}, Observers: []mailbox.Observer{w}})
	background(t, m, request("good", "good"))
	sleep(0)
	s.wantRan(t, "good")
	sleep(10 * time.Minute)
	// Half a second, doubled up to half a minute: 25 times. Each claim is tried three times.
	if n := b.asked.Load(); n < 20 || n > 100 {
		t.Errorf("asked %d times in 10 minutes", n)
	}
	if n := w.count("set_aside error"); n < 20 || n > 30 {
		t.Errorf("set aside %d times", n)
	}
	b.broken.Store(false)
	sleep(30 * time.Second)
	wantStatus(t, m, bad.Dispatch, mailbox.Acked)
}

// damagedRecovery holds that a process starts and executes what it can when a thread fails whose holder is gone, and takes it over when it
// is well.
func damagedRecovery(t *testing.T) {
	b := &breakable{mem: memstore.New()}
	release := make(chan struct{})
	former := started(t, mailbox.Config{Runtime: deafRun(release), Store: b.mem, Waits: mailbox.Waits{Close: time.Millisecond}})
	bad := background(t, former, request("bad", "bad"))
	sleep(0)
	_, err := closed(t, former)
	if err == nil {
		t.Fatal("closed with a run that is deaf")
	}
	sleep(time.Minute)
	b.broken.Store(true)
	s := &script{}
	m := open(t, mailbox.Config{Runtime: s, Store: b.open()})
	if _, err := m.Recover(t.Context()); !errors.Is(err, mailboxtest.ErrInjected) {
		t.Errorf("the error of the thread that failed is not returned: %v", err)
	}
	must(t, m.Start(t.Context()))
	background(t, m, request("good", "good"))
	sleep(time.Minute)
	s.wantRan(t, "good")
	b.broken.Store(false)
	sleep(time.Minute)
	s.wantRan(t, "good", "bad")
	equal(t, "attempts", wantStatus(t, m, bad.Dispatch, mailbox.Acked).Attempts, 1)
	close(release)
	must(t, former.Close(t.Context()))
}

// waitingBad makes a run of the thread that waits for tasks of a process that is gone.
func waitingBad(t *testing.T, mem *memstore.Store) mailbox.Submission {
	t.Helper()
	former := started(t, mailbox.Config{Runtime: &script{do: waitsOnce("background_tasks")}, Store: mem})
	sub := background(t, former, request("bad", "x"))
	background(t, former, request("good", "x"))
	sleep(0)
	must(t, former.Close(t.Context()))
	return sub
}

func wakeUp(mailbox.Run) (mailbox.Request, bool) {
	return mailbox.Request{Messages: []mailbox.Input{{Data: []byte("wake")}}}, true
}

func damagedWakes(t *testing.T) {
	b := &breakable{mem: memstore.New()}
	sub := waitingBad(t, b.mem)
	b.broken.Store(true)
	s := &script{}
	m := started(t, mailbox.Config{Runtime: s, Store: b.open(), Wake: wakeUp})
	sleep(10 * time.Minute)
	s.wantRan(t, "wake")
	b.broken.Store(false)
	sleep(time.Minute)
	s.wantRan(t, "wake", "wake")
	wantRun(t, m, sub.Run, mailbox.RunDone, "natural")
	sleep(time.Hour)
	s.wantRan(t, "wake", "wake")
}

func damagedWentOn(t *testing.T) {
	b := &breakable{mem: memstore.New()}
	sub := waitingBad(t, b.mem)
	b.broken.Store(true)
	waits := func(context.Context, *mailbox.Job) (mailbox.Result, error) {
		return mailbox.Result{Status: mailbox.RunWaiting, Wait: "background_tasks"}, nil
	}
	s := &script{do: waits}
	m := started(t, mailbox.Config{Runtime: s, Store: b.open(), Wake: wakeUp})
	sleep(time.Second)
	b.broken.Store(false)
	background(t, m, request("bad", "more")) // it continues, and waits for tasks of this process
	sleep(time.Hour)
	s.wantRan(t, "wake", "more")
	wantRun(t, m, sub.Run, mailbox.RunWaiting, "")
}

// damagedStore holds that a store that takes no update is tried at a bounded rate, and that everything continues when it answers again.
func damagedStore(t *testing.T) {
	const threads = 1100
	mem := memstore.New()
	former := open(t, mailbox.Config{Runtime: &script{}, Store: mem})
	for i := range threads {
		queued(t, former, request(string(rune('a'+i)), "x"))
	}
	var down atomic.Bool
	var asked atomic.Int64
	down.Store(true)
	w := &witness{}
	m := started(t, mailbox.Config{Runtime: &script{}, Observers: []mailbox.Observer{w}, Store: plain{&mailboxtest.Faulty{
		Store: mem, Plan: func(_ context.Context, operation string) mailboxtest.Fault {
			if operation != "apply" || !down.Load() {
				return mailboxtest.FaultNone
			}
			asked.Add(1)
			return mailboxtest.FaultBefore
		},
	}}})
	sleep(20 * time.Second)
	if n := asked.Load(); n < 3*threads || n > 30_000 {
		t.Errorf("asked %d times in 20 s", n)
	}
	down.Store(false)
	sleep(30*time.Second + time.Second)
	c, err := m.Count(t.Context())
	must(t, err)
	equal(t, "executed", c[mailbox.Acked], threads)
	equal(t, "executing", len(m.Executing()), 0)
}

// damagedStream holds that the streams of other dispatches end, of which another process carries on.
func damagedStream(t *testing.T) {
	b := &breakable{mem: memstore.New()}
	m := started(t, mailbox.Config{Runtime: fails(context.DeadlineExceeded), Store: plain{b.open()}, Retry: mailbox.Retry{Delay: time.Hour, MaxDelay: time.Hour}, Lease: mailbox.Lease{Duration: time.Minute}})
	bad, good := background(t, m, request("bad", "x")), background(t, m, request("good", "x"))
	sleep(time.Second)
	b.broken.Store(true)
	other := open(t, mailbox.Config{Runtime: &script{}, Store: b.mem})
	_, err := other.Cancel(t.Context(), good.Dispatch)
	must(t, err)
	sleep(2 * time.Second)
	if got := events(t, good.Events); len(got) != 2 || got[1] != "2:mailbox_settled:cancelled" {
		t.Errorf("events %q", got)
	}
	b.broken.Store(false)
	wantStatus(t, m, bad.Dispatch, mailbox.Queued)
}
