package plugins_test

import (
	"testing"

	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/phasestest"
	"github.com/mortise-dev/mortise/plugins"
)

// TestGuestIsTheSameAsNative: one extension, written for a guest and as native code,
// is the same to a run, and both keep the contract of a plugin.
func TestGuestIsTheSameAsNative(t *testing.T) {
	t.Parallel()
	set, err := load(t, newHost(t), plugins.Entry{Module: module("ledger")})
	if err != nil {
		t.Fatal(err)
	}
	ledger := func() phases.Plugin { return native{} }
	guest := func() phases.Plugin { return set.Plugins()[0] }
	phasestest.TestSame(t, ledger, guest)

	// And what they do is something: the run is not empty.
	recorder := &phasestest.Recorder{}
	r, err := phases.New(phases.Config{Plugins: set.Plugins(), Record: recorder.Record})
	if err != nil {
		t.Fatal(err)
	}
	st := r.NewState(nil)
	for _, p := range []phases.Frame{phasestest.Frame("before_inference"), phasestest.Frame("step_end")} {
		if _, err := r.Fire(t.Context(), st, p); err != nil {
			t.Fatal(err)
		}
	}
	total, _ := st.Read("ledger/total")
	steps, _ := st.Read("ledger/steps")
	letters, _ := st.DeadLetters()
	if total != int64(6) || steps != int64(1) || len(letters) != 3 {
		t.Errorf("total %v, steps %v, dead letters %+v, records %+v", total, steps, letters, recorder.Records())
	}
}
