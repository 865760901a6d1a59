package plugins_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/log"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/phasestest"
	"github.com/mortise-dev/mortise/plugins"
)

// answering is the guest of testdata/json.wat with another reply.
func answering(t *testing.T, reply string) host.Spec {
	t.Helper()
	wasm, err := os.ReadFile("testdata/json.wasm")
	if err != nil {
		t.Fatal(err)
	}
	const was = `{"gate":{"action":"block","reason":"said in JSON"}}`
	if len(reply) > len(was) || bytes.Count(wasm, []byte(was)) != 1 {
		t.Fatalf("the guest has no room for %q", reply)
	}
	padded := reply + strings.Repeat(" ", len(was)-len(reply))
	return host.Spec{Name: "bad", Wasm: bytes.Replace(wasm, []byte(was), []byte(padded), 1)}
}

// ran is what became of a run.
type ran struct {
	end     agent.Termination
	records []phases.Record
	state   map[string]any
}

// runWith takes a run of one call through a plugin.
func runWith(t *testing.T, p phases.Plugin, hookTimeout time.Duration) (ran, error) {
	t.Helper()
	recorder := &phasestest.Recorder{}
	rt, err := phases.New(phases.Config{Plugins: []phases.Plugin{p}, Record: recorder.Record, HookTimeout: hookTimeout})
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(agent.Config{Profile: agent.Profile{Model: &asks{commands: []string{"ls"}}, Tools: answers{}, Phases: rt}})
	if err != nil {
		t.Fatal(err)
	}
	result, err := a.Run(t.Context(), agent.Request{ThreadID: "t", Messages: question()})
	if structure := phases.CheckStructure(a.Thread("t").Messages()); structure != nil {
		t.Error(structure)
	}
	return ran{result.Termination, recorder.Records(), a.Thread("t").State()}, err
}

// TestBadRepliesOfAGuest: whatever a guest answers, the run continues or its call is
// blocked, as the policy says, the reason is in the record, and nothing is half applied.
func TestBadRepliesOfAGuest(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for reply, says := range map[string]string{
		`this is no JSON`:          "cannot be decoded",
		`[1,2]`:                    "cannot be decoded",
		`{"updates":7}`:            "cannot be decoded",
		`{"gate":{"action":true}}`: "cannot be decoded",
		`{"updates":[{"key":"no","op":"set","value":1}]}`: "does not declare this state key",
		`{"effects":[{"type":"explode"}]}`:                "type of effect is not known",
		`{"effects":[{"type":"stop"}]}`:                   "code is missing",
		`{"actions":[{"phase":"run_end","key":"x"}]}`:     "no scheduled action handler registered for x",
		`{"gate":{"action":"perhaps"}}`:                   `action "perhaps"`,
		`{"gate":{"action":"suspend"}}`:                   "suspend needs a ticket",
	} {
		for _, policy := range []abi.FailurePolicy{abi.FailRun, abi.FailIgnore} {
			t.Run(reply+" "+string(policy), func(t *testing.T) {
				t.Parallel()
				set, err := load(t, h, plugins.Entry{Name: "bad", Module: answering(t, reply), OnFailure: policy})
				if err != nil {
					t.Fatal(err)
				}
				r, err := runWith(t, set.Plugins()[0], time.Minute)
				want := agent.NaturalEnd
				if policy == abi.FailRun {
					want = agent.Blocked
				}
				if err != nil || r.end.Type != want || len(r.state) != 0 {
					t.Errorf("%+v, error %v, state %v", r.end, err, r.state)
				}
				if len(r.records) != 1 || !strings.Contains(r.records[0].Err, says) || len(r.records[0].Applied) != 0 {
					t.Errorf("records %+v, want %q", r.records, says)
				}
				if policy == abi.FailRun && !strings.Contains(r.end.Detail, says) {
					t.Errorf("the call is blocked because %q", r.end.Detail)
				}
			})
		}
	}
}

// TestGuestThatNeverComesBack is ended at its deadline, by the policy, on whatever
// goroutine it was called.
func TestGuestThatNeverComesBack(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{hosttest.Native, hosttest.Extism} {
		for _, granted := range []bool{false, true} {
			for _, policy := range []abi.FailurePolicy{abi.FailRun, abi.FailIgnore} {
				t.Run(fmt.Sprint(engine, " ", granted, " ", policy), func(t *testing.T) {
					t.Parallel()
					neverComesBack(t, engine, granted, policy)
				})
			}
		}
	}
}

func neverComesBack(t *testing.T, engine string, granted bool, policy abi.FailurePolicy) {
	t.Helper()
	h, err := host.New(host.Config{Engine: hosttest.Engine(engine)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	spec := small("spin")
	if granted {
		spec.Grants.Capabilities = []host.Capability{log.Grant{}}
	}
	set, err := load(t, h, plugins.Entry{Module: spec, OnFailure: policy})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runWith(t, set.Plugins()[0], 20*time.Millisecond)
	if fails := policy == abi.FailRun; (err != nil) != fails || fails != (r.end.Type == agent.Failed) {
		t.Errorf("%+v, error %v", r.end, err)
	}
	if len(r.records) == 0 || !strings.Contains(r.records[0].Err, "missed its deadline") {
		t.Errorf("records %+v", r.records)
	}
}
