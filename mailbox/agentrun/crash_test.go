package agentrun_test

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// dying is a store that a process loses after some updates, the last of which fails as
// given. With heals set it comes back after that time.
func dying(mem store.Store, after int32, last mailboxtest.Fault, heals time.Duration) (_ store.Store, died *atomic.Bool) {
	died = &atomic.Bool{}
	var updates atomic.Int32
	var end atomic.Int64
	plan := func(_ context.Context, operation string) mailboxtest.Fault {
		if died.Load() {
			if heals > 0 && time.Now().UnixNano() > end.Load() {
				return mailboxtest.FaultNone
			}
			return mailboxtest.FaultBefore
		}
		if operation != "apply" || updates.Add(1) < after {
			return mailboxtest.FaultNone
		}
		end.Store(time.Now().Add(heals).UnixNano())
		died.Store(true)
		return last
	}
	return &mailboxtest.Faulty{Store: mem, Plan: plan}, died
}

// TestKilledBetween: wherever a process loses its store, another one continues the run when the lease is over,
// from what was kept, and executes no call under two keys; when the first one comes back it writes nothing more.
func TestKilledBetween(t *testing.T) {
	t.Parallel()
	for _, heals := range []time.Duration{0, 45 * time.Second} {
		for _, fault := range []mailboxtest.Fault{mailboxtest.FaultBefore, mailboxtest.FaultAfter} {
			t.Run(fmt.Sprintf("%s, back after %v", fault, heals), func(t *testing.T) {
				t.Parallel()
				deaths := 0
				for after := int32(2); after <= 16; after++ {
					synctest.Test(t, func(t *testing.T) {
						if killedBetween(t, after, fault, heals) {
							deaths++
						}
					})
				}
				if deaths < 8 {
					t.Errorf("only %d processes lost their store", deaths)
				}
			})
		}
	}
}

// killedBetween reports whether the process lost its store at all.
func killedBetween(t *testing.T, after int32, fault mailboxtest.Fault, heals time.Duration) bool {
	t.Helper()
	mem := memstore.New()
	frail, died := dying(mem, after, fault, heals)
	s := &tools{}
	one := newProcess(t, frail, "one", &counter{rounds: 2}, s, counts{})
	r := request(t, "t", user("go"))
	r.Key = "the only one"
	if _, err := one.box.SubmitBackground(t.Context(), r); err != nil && !died.Load() {
		t.Fatal(err)
	}
	synctest.Wait()
	two := newProcess(t, mem, "two", &counter{rounds: 2}, s, counts{})
	sub := two.submit(t, r) // a client without an answer asks again
	d := two.await(t, sub)
	time.Sleep(2 * time.Minute) // a former process has its say
	if d.Status != mailbox.Acked || d.Response != "counted to 2" {
		t.Errorf("killed at update %d: dispatch is %+v", after, d)
	}
	if run := two.runOf(t, sub.Run); run.Status != mailbox.RunDone || run.Response != "counted to 2" {
		t.Errorf("killed at update %d: run is %+v", after, run)
	}
	keys := map[string]string{}
	for _, key := range s.keys {
		call := path.Base(key)
		if keys[call] != "" && keys[call] != key {
			t.Errorf("killed at update %d: the call %s was executed under the keys %q and %q", after, call, keys[call], key)
		}
		keys[call] = key
	}
	got := log(t, mem, "t")
	calls := 0
	for i, text := range got {
		if strings.HasPrefix(text, "tool: ") {
			calls++
			if text != "tool: ok" && !strings.Contains(text, "interrupted") {
				t.Errorf("killed at update %d: message %d is %q", after, i, text)
			}
		}
	}
	if n := len(got); n < 2 || got[0] != "user: go" || got[n-1] != "assistant: counted to 2" || calls != 2 || slices.Index(got[1:], "user: go") >= 0 {
		t.Errorf("killed at update %d: log is %q", after, got)
	}
	return died.Load()
}

// TestHandOver: a process that closes gives its run back, and another one continues it at once.
func TestHandOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New()
		s := &slow{}
		one := newProcess(t, mem, "one", &counter{rounds: 2}, s)
		sub := one.submit(t, request(t, "t", user("go")))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		must(t, one.box.Close(ctx))
		two := newProcess(t, mem, "two", &counter{rounds: 2}, &tools{})
		begin := time.Now()
		if d := two.await(t, sub); d.Status != mailbox.Acked || d.Attempts != 0 || d.Owner != "two" {
			t.Errorf("dispatch is %+v", d)
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("it took %v", took)
		}
		got := log(t, mem, "t")
		if len(got) != 6 || got[5] != "assistant: counted to 2" {
			t.Errorf("log is %q", got)
		}
	})
}
