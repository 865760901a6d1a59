package inbox_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/internal/killtest"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

// crashes is how often the child is killed.
const crashes = 100

// crashChild runs tasks on a file until it is killed, and prints what was accepted, delivered and acknowledged.
func crashChild(ctx context.Context, l killtest.Life, say func(words ...any)) error {
	store, err := sqlitestore.Open(ctx, sqlitestore.Config{Path: l.Name})
	if err != nil {
		return err
	}
	var m *background.Manager
	box, err := inbox.New(ctx, inbox.Config{Store: store, Acknowledged: func(ctx context.Context, thread string, ids ...string) { m.Acknowledge(ctx, thread, ids...) }})
	if err == nil {
		m, err = background.New(background.Config{
			Ledger: box, Limits: background.Limits{Keep: 4, MaxRunning: 4},
			Resume: func(info background.Info) background.Body {
				if info.Type == "resumable" {
					return crashBody(say, fmt.Sprint("attempt", info.Attempt))
				}
				return nil
			},
		})
	}
	if err == nil {
		err = m.Recover(ctx)
	}
	if err != nil {
		return err
	}
	go crashReader(ctx, box, say)
	for i := 0; ; i++ {
		kind := []string{"plain", "resumable"}[i%2]
		id, err := m.Spawn(ctx, background.Spec{Thread: "a", Type: kind, Body: crashBody(say, "attempt0")})
		if err != nil {
			continue // as many as may wait
		}
		say("spawned", id)
		_, _ = m.WaitTask(ctx, id)
	}
}

// crashBody emits a few events and ends.
func crashBody(say func(words ...any), attempt string) background.Body {
	return func(_ context.Context, task *background.Task) (any, error) {
		for i := range 3 {
			id := fmt.Sprint(task.ID(), "/", attempt, "/", i)
			say("tried", id)
			if task.Emit("tick", id) {
				say("accepted", id)
			}
		}
		return "done", nil
	}
}

// crashReader takes and acknowledges, and sometimes gives back.
func crashReader(ctx context.Context, box *inbox.Inbox, say func(words ...any)) {
	for {
		d, err := box.Take(ctx, "a")
		if err != nil {
			continue
		}
		list := d.Notifications()
		for i := range list {
			say("delivered", newsID(&list[i]))
		}
		if rand.IntN(4) == 0 {
			d.Release()
			continue
		}
		if ack(ctx, d, len(list)) == nil {
			for i := range list {
				say("acked", newsID(&list[i]))
			}
		}
		d.Release()
	}
}

func newsID(n *inbox.Notification) string {
	if n.EventType == "tick" {
		id, _ := n.Payload.(string)
		return id
	}
	return n.TaskID + "/end"
}

// TestCrash kills a child at random moments, again and again on one journal. What
// was accepted is delivered, what was acknowledged is never delivered again, and
// each task that was spawned ends exactly once.
func TestCrash(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		testskip.Skip(t, "the crash test kills 200 processes; run without -short")
	}
	path := filepath.Join(t.TempDir(), "outbox")
	l := &crashLedger{said: map[string]map[string]int{}}
	for range crashes {
		l.run(t, "INBOX", path, time.Duration(rand.IntN(50)+5)*time.Millisecond)
	}
	l.drain(t, path)
	l.check(t)
}

// crashLedger is what all children said, in all their lives.
type crashLedger struct {
	said  map[string]map[string]int // what, id, how often
	again []string                  // delivered after it was acknowledged
}

func (l *crashLedger) note(what, id string) {
	if l.said[what] == nil {
		l.said[what] = map[string]int{}
	}
	l.said[what][id]++
	if what == "delivered" && l.said["acked"][id] > 0 {
		l.again = append(l.again, id)
	}
}

// drain recovers once more, without resuming, and takes all that is left.
func (l *crashLedger) drain(t *testing.T, path string) {
	t.Helper()
	store := openFile(t, path)
	var m *background.Manager
	box, err := inbox.New(t.Context(), inbox.Config{Store: store, Acknowledged: func(ctx context.Context, thread string, ids ...string) { m.Acknowledge(ctx, thread, ids...) }})
	if err != nil {
		t.Fatal(err)
	}
	if m, err = background.New(background.Config{Ledger: box, Limits: background.Limits{Keep: 4}}); err != nil {
		t.Fatal(err)
	}
	if err := m.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.Wait(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for box.Waiting("a") > 0 {
		d, err := box.Take(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		list := d.Notifications()
		for i := range list {
			l.note("delivered", newsID(&list[i]))
		}
		if err := ack(t.Context(), d, len(list)); err != nil {
			t.Fatal(err)
		}
		for i := range list {
			l.note("acked", newsID(&list[i]))
		}
	}
	if records, err := box.Records(t.Context(), "a"); err != nil || len(records) > 4 {
		t.Errorf("%d records are left of all those lives, want 4 at most, %v", len(records), err)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := box.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (l *crashLedger) check(t *testing.T) {
	t.Helper()
	if len(l.said["accepted"]) < crashes/10 || len(l.said["acked"]) < crashes/10 {
		t.Fatalf("only %d events were accepted and %d acknowledged: the test shows nothing", len(l.said["accepted"]), len(l.said["acked"]))
	}
	if len(l.again) > 0 {
		t.Errorf("%d were delivered after they were acknowledged, %q for one", len(l.again), l.again[0])
	}
	for id := range l.said["accepted"] {
		if l.said["delivered"][id] == 0 {
			t.Errorf("event %s was accepted and never delivered", id)
		}
	}
	// What a process was killed over may be kept although it never said so.
	for _, id := range slices.Sorted(maps.Keys(l.said["delivered"])) {
		end := strings.HasSuffix(id, "/end")
		if !end && l.said["tried"][id] == 0 {
			t.Errorf("event %s was delivered and never tried", id)
		}
	}
	for id := range l.said["spawned"] {
		if l.said["delivered"][id+"/end"] == 0 || l.said["acked"][id+"/end"] > 1 {
			t.Errorf("the end of task %s was delivered %d times and acknowledged %d times", id, l.said["delivered"][id+"/end"], l.said["acked"][id+"/end"])
		}
	}
	t.Logf("%d crashes: %d tasks, %d events accepted, %d notices delivered, %d acknowledged", crashes, len(l.said["spawned"]), len(l.said["accepted"]), len(l.said["delivered"]), len(l.said["acked"]))
}
