package sqlitestore_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/mailbox"
)

// TestStore_liveBetweenTwo holds that a command reaches the listener of another process.
func TestStore_liveBetweenTwo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mailbox.db")
	here, there := open(t, path), open(t, path)
	target := mailbox.Target{Thread: "t", Run: "r", Dispatch: "d"}
	var heard []mailbox.Command
	stop, err := there.Listen(t.Context(), target, func(_ context.Context, c mailbox.Command) bool {
		heard = append(heard, c)
		return c.ID == "good"
	})
	must(t, err)
	send := func(id string, to mailbox.Target) bool {
		ok, err := here.Deliver(t.Context(), to, mailbox.Command{Kind: mailbox.CommandCancel, ID: id, Payload: []byte("why")})
		must(t, err)
		return ok
	}
	// On a busy machine the listener may be late: it is asked again then, as by a mailbox that falls back.
	for range 20 {
		if send("good", target) {
			break
		}
	}
	if send("bad", target) {
		t.Error("what was refused was delivered")
	}
	if send("good", mailbox.Target{Thread: "t"}) {
		t.Error("delivered to another target")
	}
	stop()
	if send("late", target) {
		t.Error("delivered after the end")
	}
	if len(heard) < 1 || heard[0].ID != "good" || heard[0].Kind != mailbox.CommandCancel || string(heard[0].Payload) != "why" {
		t.Errorf("heard %+v", heard)
	}
	for _, c := range heard {
		if c.ID == "late" {
			t.Error("heard after the end")
		}
	}
}
