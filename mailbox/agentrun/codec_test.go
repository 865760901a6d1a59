package agentrun_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/internal/wire"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
)

// TestTicketSurvives: another process has every field of a ticket, also one that is added later.
func TestTicketSurvives(t *testing.T) {
	t.Parallel()
	in := agent.Ticket{
		SuspendTicket: abi.SuspendTicket{ID: "ask", Action: "confirm", Message: "really?", Parameters: map[string]any{"n": int64(1)}, Mode: abi.ResumeReplay},
		Status:        agent.TicketResuming, Call: abi.ToolCall{ID: "c", Name: "pay", Arguments: map[string]any{"sum": 1.0, "raw": []byte("x")}},
		MessageID: "m", Key: "k", Reason: "why", RewrittenBy: []string{"plugin"}, Malformed: true, By: "gate", Rounds: 2,
		Decision:  &agent.Decision{ID: "d", Target: "ask", Action: agent.ActionResume, Result: int64(3), Reason: "yes", About: &agent.Question{MessageID: "m", Rounds: 1}},
		UpdatedAt: time.Unix(5, 6).UTC(),
	}
	for v := range reflect.ValueOf(in).NumField() {
		if f := reflect.ValueOf(in); f.Field(v).IsZero() {
			t.Errorf("the test has no %s", f.Type().Field(v).Name)
		}
	}
	out, err := agentrun.Reread(in)
	must(t, err)
	if !reflect.DeepEqual(out, in) {
		t.Errorf("the ticket is\n%+v, and was\n%+v", out, in)
	}
}

// TestOldImage: a thread of an older version is refused with what to do.
func TestOldImage(t *testing.T) {
	t.Parallel()
	old, err := wire.MessagePack.Marshal(map[string]any{"record": []byte(`{"run_id":"r"}`), "revision": int64(3)})
	must(t, err)
	if _, err := agentrun.DecodeRun(old); err == nil || !strings.Contains(err.Error(), "cannot be continued; use a new thread or a new store") {
		t.Error(err)
	}
}
