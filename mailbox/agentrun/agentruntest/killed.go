package agentruntest

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/internal/killtest"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
)

// kind is that of the children. A child holds its thread for lease after its death, and the run is
// over within patience.
const (
	kind     = "AGENTRUN"
	lease    = 2 * time.Second
	patience = 2 * time.Minute
)

// kill is how a child is killed: inside the tool of a call, before or after the effect of the tool.
type kill struct {
	Store   string
	Witness witness
	Mode    agent.ToolMode
	Call    string
	Moment  string
}

// killed is what a child prints where it is killed.
func (k kill) killed() string { return k.Call + " " + k.Moment }

// Child makes this process a child of [TestKilled], if it was started as one, and does not return then.
// Call it first in TestMain.
func Child(open mailboxtest.OpenFunc) {
	killtest.Child(kind, func(ctx context.Context, l killtest.Life, say func(words ...any)) error {
		var k kill
		if err := json.Unmarshal([]byte(l.Name), &k); err != nil {
			return err
		}
		store, _, err := open(ctx, k.Store)
		if err != nil {
			return err
		}
		_, _, err = start(ctx, store, k, func(call, moment string) {
			if call+" "+moment == k.killed() {
				say(k.killed())
				select {}
			}
		})
		if err != nil {
			return err
		}
		select {}
	})
}

// TestKilled kills a process inside the first, the second and the last tool of a step, before and
// after the effect of the tool, and lets this process finish the run: the model is not asked again,
// no call is executed under two keys, the log has each call once, with its result or as interrupted,
// and the usage is what was billed. The children are the test binary itself: its TestMain calls
// [Child] first. Name makes the name of a new store, which open opens in both processes.
func TestKilled(t *testing.T, open mailboxtest.OpenFunc, name func(t *testing.T) string) {
	t.Helper()
	var kills []kill
	for _, call := range []string{"c1", "c2", "c3"} {
		for _, moment := range []string{"before", "after"} {
			kills = append(kills, kill{Mode: agent.Sequential, Call: call, Moment: moment})
		}
	}
	kills = append(kills, kill{Mode: agent.ParallelBatch, Call: "c2", Moment: "after"})
	for _, k := range kills {
		t.Run(fmt.Sprintf("%s in %s %s its effect", k.Mode, k.Call, k.Moment), func(t *testing.T) {
			t.Parallel()
			k.Store, k.Witness = name(t), witness(filepath.Join(t.TempDir(), "witness"))
			text, err := json.Marshal(k)
			must(t, err)
			killtest.Once(t, kind, string(text), k.killed())
			k.check(t, open)
		})
	}
}

// check finishes the run and holds it against what the witness saw.
func (k kill) check(t *testing.T, open mailboxtest.OpenFunc) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	store, closeStore, err := open(ctx, k.Store)
	must(t, err)
	defer func() { must(t, closeStore(context.WithoutCancel(ctx))) }()
	box, sub, err := start(ctx, store, k, func(string, string) {})
	must(t, err)
	defer func() { must(t, box.Close(ctx)) }()
	d, err := box.Await(ctx, sub.Dispatch)
	must(t, err)
	run, found, err := box.Run(ctx, sub.Run)
	must(t, err)
	if d.Status != mailbox.Acked || !found || run.Status != mailbox.RunDone || run.Response != "done" {
		t.Errorf("dispatch is %+v, run is %+v", d, run)
	}
	inferences, keys := k.seen(t)
	var record agent.Record
	must(t, json.Unmarshal(run.Data, &record))
	if inferences != 2 || record.Usage.TotalTokens != int64(inferences)*tokens || record.Steps != inferences {
		t.Errorf("%d inferences were billed; the run counts %+v in %d steps", inferences, record.Usage, record.Steps)
	}
	k.checkLog(t, box, sub.Run, keys)
}

// seen is how many inferences the witness saw, and by call under which key it was executed. A call that
// was executed twice had one key.
func (k kill) seen(t *testing.T) (inferences int, keys map[string]string) {
	t.Helper()
	lines, err := k.Witness.lines()
	must(t, err)
	keys = map[string]string{}
	for _, line := range lines {
		call, key, tool := strings.Cut(line, " ")
		switch {
		case !tool:
			inferences++
		case key == "" || keys[call] != "" && keys[call] != key:
			t.Errorf("%s was executed under the keys %q and %q", call, keys[call], key)
		default:
			keys[call] = key
		}
	}
	return inferences, keys
}

func (k kill) checkLog(t *testing.T, box *mailbox.Mailbox, run string, keys map[string]string) {
	t.Helper()
	list, err := box.Messages(t.Context(), thread, 1, 100)
	must(t, err)
	var log []abi.Message
	for _, m := range list {
		v, err := agentrun.DecodeMessage(m)
		must(t, err)
		log = append(log, v)
	}
	if len(log) != 6 || len(log[1].ToolCalls) != 3 || log[5].Text() != "done" {
		t.Fatalf("log is %+v", log)
	}
	for i, m := range log[2:5] {
		call := fmt.Sprint("c", i+1)
		kept := k.Mode == agent.Sequential && call < k.Call
		if m.ToolCallID != call || kept != (m.Text() == "paid") || !kept && !strings.Contains(m.Text(), "interrupted") {
			t.Errorf("the result of %s is %q of %s", call, m.Text(), m.ToolCallID)
		}
		if key := keys[call]; key != "" && key != strings.Join([]string{run, "1", log[1].ID, call}, "/") {
			t.Errorf("%s was executed under the key %q; its message is %q of run %q", call, key, log[1].ID, run)
		}
		executed := call < k.Call || call == k.Call && k.Moment == "after"
		if k.Mode == agent.Sequential && executed != (keys[call] != "") {
			t.Errorf("%s was executed: %v, want %v", call, !executed, executed)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
