package phasestest

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// sameSteps is how many steps TestSame plays.
const sameSteps = 4

// TestSame checks that two plugins, say the same extension as native code and as a
// guest, are the same to a run: it plays a small run at each and compares outcomes,
// state, dead letters and records. Of errors only the fact counts, since they name
// what a plugin is made of. Both must have the same description.
func TestSame(t *testing.T, one, other func() phases.Plugin) {
	t.Helper()
	a, b := playSame(t, one()), playSame(t, other())
	if len(a.fired) != len(b.fired) {
		t.Fatalf("%d phases were fired at one, %d at the other", len(a.fired), len(b.fired))
	}
	for i := range a.fired {
		if !reflect.DeepEqual(a.fired[i], b.fired[i]) {
			t.Errorf("%s:\n%+v\n%+v", a.fired[i].at, a.fired[i], b.fired[i])
		}
	}
	for _, pair := range [][2]any{{a.state, b.state}, {a.letters, b.letters}, {a.hooks, b.hooks}} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("one has\n%+v\nthe other\n%+v", pair[0], pair[1])
		}
	}
	compareRecords(t, a.records, b.records)
}

// play is everything that a run came to.
type play struct {
	hooks   []abi.Hook
	fired   []fired
	state   map[string]any
	letters []phases.DeadLetter
	records []phases.Record
}

// fired is one phase of it.
type fired struct {
	at      string
	outcome phases.Outcome
	failed  bool
}

func playSame(t *testing.T, p phases.Plugin) play {
	t.Helper()
	recorder, n := &Recorder{}, 0
	r, err := phases.New(phases.Config{
		Plugins: []phases.Plugin{p}, HookTimeout: deadline, Record: recorder.Record,
		NewID: func() string { n++; return fmt.Sprint("new", n) },
	})
	if err != nil {
		t.Fatal(err)
	}
	out := play{hooks: p.Describe().Hooks}
	st := r.NewState(map[string]any{"elsewhere/key": "kept"})
	appended := []abi.Message(nil)
	for step := 1; step <= sameSteps; step++ {
		for _, phase := range abi.Phases() {
			f := sameFrame(phase, step, appended)
			outcome, err := r.Fire(t.Context(), st, f)
			appended = append(appended, outcome.Appended...)
			out.fired = append(out.fired, fired{at: fmt.Sprintf("step %d, %s", step, phase), outcome: outcome, failed: err != nil})
		}
	}
	out.state, out.records = st.Store().Export().Values, recorder.Records()
	out.letters, _ = st.DeadLetters()
	for i := range out.letters {
		out.letters[i].Err = ""
	}
	delete(out.state, "_runtime/dead_letters")
	return out
}

// sameFrame is a frame of a conversation that grows.
func sameFrame(phase abi.Phase, step int, appended []abi.Message) phases.Frame {
	f := Frame(phase)
	f.Step = step
	before := append([]abi.Message{{ID: "m0", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Hello.")}}}, appended...)
	f.Messages = append(before, f.Messages...)
	return f
}

func compareRecords(t *testing.T, a, b []phases.Record) {
	t.Helper()
	if len(a) != len(b) {
		t.Errorf("%d records of one, %d of the other", len(a), len(b))
		return
	}
	for i := range a {
		x, y := a[i], b[i]
		if (x.Err == "") != (y.Err == "") {
			t.Errorf("%s %s: one failed with %q, the other with %q", x.Phase, x.Handler, x.Err, y.Err)
		}
		if x.Gate != nil && y.Gate != nil && x.Err != "" {
			x.Gate, y.Gate = nil, nil // The reason is the error.
		}
		x.At, y.At, x.Duration, y.Duration, x.Err, y.Err = time.Time{}, time.Time{}, 0, 0, "", ""
		if !reflect.DeepEqual(x, y) {
			t.Errorf("record %d:\n%+v\n%+v", i, x, y)
		}
	}
}

// askHandlers asks the handlers that a description declares, with a payload that
// they need not like.
func askHandlers(t *testing.T, p phases.Plugin, payload any) {
	t.Helper()
	d := p.Describe()
	for _, h := range d.Actions {
		_, _ = ask(context.WithoutCancel(t.Context()), t, p, &abi.Event{
			ABI: abi.Version, Phase: abi.StepEnd, Action: &abi.Action{ID: 1, Phase: abi.StepEnd, Key: h.Name, Payload: payload},
		})
	}
	for _, h := range d.Effects {
		reply, err := ask(context.WithoutCancel(t.Context()), t, p, &abi.Event{
			ABI: abi.Version, Phase: abi.StepEnd, Effect: &abi.Effect{Type: abi.EffectCustom, Key: h.Name, Payload: payload},
		})
		if err == nil && !sameReply(reply, nil) {
			t.Errorf("effect %s: there is a reply, and it will be refused: %+v", h.Name, reply)
		}
	}
}
