package plugins_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	logcap "github.com/mortise-dev/mortise/host/capability/log"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/internal/guest"
	"github.com/mortise-dev/mortise/plugins"
)

// binaryOf reads a module and replaces texts in it by others of the same length.
func binaryOf(t *testing.T, path string, replace ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(replace); i += 2 {
		if len(replace[i]) != len(replace[i+1]) || !bytes.Contains(b, []byte(replace[i])) {
			t.Fatalf("%s: %q cannot be replaced by %q", path, replace[i], replace[i+1])
		}
		b = bytes.ReplaceAll(b, []byte(replace[i]), []byte(replace[i+1]))
	}
	return b
}

// describedAs appends a custom section that describes the module.
func describedAs(wasm []byte, description string) []byte {
	body := append([]byte{byte(len(abi.ManifestSection))}, abi.ManifestSection...)
	body = append(body, description...)
	out := binary.AppendUvarint(append(bytes.Clone(wasm), 0), uint64(len(body)))
	return append(out, body...)
}

// as describes a JSON guest of the name, with more fields.
func as(name, more string) string {
	return `{"name":"` + name + `","version":"2.0.0","abi":{"min":1,"max":1}` + more + `}`
}

const gateHook = `,"hooks":[{"phase":"tool_gate","mode":"gate"}]`

func testdata(name string) string { return filepath.Join("testdata", name+".wasm") }

// onEngines runs a test on both engines.
func onEngines(t *testing.T, test func(t *testing.T, h *host.Host)) {
	t.Helper()
	for _, e := range []string{hosttest.Native, hosttest.Extism} {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			h, err := host.New(host.Config{Engine: hosttest.Engine(e)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := h.Close(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			})
			test(t, h)
		})
	}
}

func gateEvent() *abi.Event {
	return &abi.Event{Phase: abi.ToolGate, Call: &abi.ToolCall{ID: "c1", Name: "bash", Arguments: map[string]any{"command": "sudo rm -rf /"}}}
}

// TestSwapUnderCalls swaps between two binaries while calls are in flight: none fails,
// and each is answered by one of the two.
func TestSwapUnderCalls(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, h *host.Host) {
		t.Helper()
		path := testdata("json")
		versions := [][]byte{binaryOf(t, path), binaryOf(t, path, "said in JSON", "said in new1", "1.0.0", "1.0.1")}
		set, err := load(t, h, plugins.Entry{Module: host.Spec{Wasm: versions[0], Name: "gate"}})
		if err != nil {
			t.Fatal(err)
		}
		p := set.Plugins()[0]
		var stop atomic.Bool
		var calls atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for !stop.Load() {
					reply, err := p.OnPhase(t.Context(), gateEvent())
					if err != nil || (reply.Gate.Reason != "said in JSON" && reply.Gate.Reason != "said in new1") {
						t.Errorf("reply %+v, error %v", reply, err)
						return
					}
					calls.Add(1)
				}
			})
		}
		for n := range 9 {
			before := calls.Load()
			if err := set.Swap(t.Context(), "json-guard", host.Spec{Wasm: versions[(n+1)%2]}, host.SwapOptions{}); err != nil {
				t.Error(err)
			}
			for calls.Load() < before+20 && !t.Failed() {
				if _, err := p.OnPhase(t.Context(), gateEvent()); err != nil {
					t.Error(err)
				}
			}
		}
		stop.Store(true)
		wg.Wait()
		reply, err := p.OnPhase(t.Context(), gateEvent())
		if err != nil || reply.Gate.Reason != "said in new1" {
			t.Errorf("after an odd number of swaps: %+v, %v", reply, err)
		}
		status := set.Status()[0]
		if status.Version != "1.0.1" || status.Module.Generation != 10 || p.Describe().Version != "1.0.1" {
			t.Errorf("status %+v", status)
		}
	})
}

// TestSwapToAnotherEncoding puts a guest that speaks JSON in the place of one that
// speaks MessagePack, and goes back.
func TestSwapToAnotherEncoding(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	set, err := load(t, h, plugins.Entry{Module: module("guard")})
	if err != nil {
		t.Fatal(err)
	}
	p := set.Plugins()[0]
	hook := `,"hooks":[{"phase":"tool_gate","mode":"gate","messages":"none","priority":-100,"on_failure":"fail"}]`
	speaksJSON := host.Spec{Wasm: describedAs(binaryOf(t, testdata("json")), as("guard", hook))}
	for _, tc := range []struct {
		spec host.Spec
		want string
	}{{speaksJSON, "said in JSON"}, {module("guard"), "sudo"}, {speaksJSON, "said in JSON"}} {
		if err := set.Swap(t.Context(), "guard", tc.spec, host.SwapOptions{}); err != nil {
			t.Fatal(err)
		}
		reply, err := p.OnPhase(t.Context(), gateEvent())
		if err != nil || reply.Gate == nil || !strings.Contains(reply.Gate.Reason, tc.want) {
			t.Fatalf("reply %+v, error %v; want %q", reply, err, tc.want)
		}
	}
}

func TestSwapRefuses(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	set, err := load(t, h, plugins.Entry{Module: small("json"), Config: map[string]any{"depth": int64(3)}})
	if err != nil {
		t.Fatal(err)
	}
	json := binaryOf(t, testdata("json"))
	described := func(d string) host.Spec { return host.Spec{Wasm: describedAs(json, d)} }
	own := errors.New("not today")
	for says, tc := range map[string]struct {
		spec host.Spec
		opts host.SwapOptions
		is   error
	}{
		`it calls itself "other", the plugin in use is "json-guard"`: {spec: described(as("other", gateHook)), is: plugins.ErrShape},
		`hook at "step_end" is new`:                                  {spec: described(as("json-guard", gateHook[:len(gateHook)-1]+`,{"phase":"step_end","mode":"observe"}]`)), is: plugins.ErrShape},
		`hook at "tool_gate" is gone`:                                {spec: described(as("json-guard", `,"hooks":[{"phase":"run_end","mode":"observe"}]`)), is: plugins.ErrShape},
		`"tool_gate" is (mode observe,`:                              {spec: described(as("json-guard", `,"hooks":[{"phase":"tool_gate","mode":"observe"}]`)), is: plugins.ErrShape},
		`state key "count" is new`:                                   {spec: described(as("json-guard", gateHook+`,"state":[{"name":"count"}]`)), is: plugins.ErrShape},
		`tool "look" is new`:                                         {spec: described(as("json-guard", gateHook+`,"tools":[{"name":"look"}]`)), is: plugins.ErrShape},
		"speaks ABI 7 to 9":                                          {spec: described(`{"name":"json-guard","version":"9","abi":{"min":7,"max":9}` + gateHook + `}`), is: guest.ErrVersion},
		"additional properties 'depth' not allowed":                  {spec: described(as("json-guard", gateHook+`,"config_schema":{"type":"object","additionalProperties":false}`)), is: guest.ErrConfig},
		`plugin "json-guard" asks for random (it says: "Dice.")`:     {spec: described(as("json-guard", gateHook+`,"capabilities":[{"name":"random","reason":"Dice."}]`)), is: guest.ErrNotGranted},
		"describes no hooks":                                         {spec: described(as("json-guard", ""))},
		`plugin "needs" asks for kv (it says: "To remember ans`:      {spec: small("needs"), is: host.ErrImport},
		"is WebAssembly in text, not a binary":                       {spec: host.Spec{Wasm: []byte("(module)")}, is: host.ErrNotCore},
		"not today":                                                  {spec: host.Spec{Wasm: json}, opts: host.SwapOptions{Check: func(context.Context, *host.Generation) error { return own }}, is: own},
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			err := set.Swap(t.Context(), "json-guard", tc.spec, tc.opts)
			if err == nil || !strings.Contains(err.Error(), says) || (tc.is != nil && !errors.Is(err, tc.is)) {
				t.Errorf("error %v does not say %q", err, says)
			}
			reply, err := set.Plugins()[0].OnPhase(t.Context(), gateEvent())
			if err != nil || reply.Gate.Reason != "said in JSON" || set.Status()[0].Version != "1.0.0" {
				t.Errorf("the one in use does not continue: %+v, %v", reply, err)
			}
		})
	}
	err = set.Swap(t.Context(), "gone", small("json"), host.SwapOptions{})
	if err == nil || !strings.Contains(err.Error(), `swap "gone": there is no plugin of that name; there are: json-guard`) {
		t.Errorf("error %v", err)
	}
}

// TestSwapRollsBack: a binary that breaks too often goes, and the plugin's calls go to
// the one before, in its encoding.
func TestSwapRollsBack(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, h *host.Host) {
		t.Helper()
		spec := small("json")
		spec.Grants = host.Grants{Clock: true}
		set, err := load(t, h, plugins.Entry{Module: spec})
		if err != nil {
			t.Fatal(err)
		}
		p := set.Plugins()[0]
		broken := describedAs(binaryOf(t, testdata("trap")), as("json-guard", gateHook))
		opts := host.SwapOptions{Watch: host.Watch{Calls: 20, MinCalls: 3}}
		if err := set.Swap(t.Context(), "json-guard", host.Spec{Wasm: broken, Grants: host.Grants{Capabilities: []host.Capability{logcap.Grant{}}}}, opts); err != nil {
			t.Fatal(err)
		}
		if s := set.Status()[0]; s.Version != "2.0.0" || s.Granted[0] != "log" {
			t.Errorf("status %+v", s)
		}
		for n := range 3 {
			var trap *host.TrapError
			if _, err := p.OnPhase(t.Context(), gateEvent()); !errors.As(err, &trap) {
				t.Fatalf("call %d: error %v", n, err)
			}
		}
		reply, err := p.OnPhase(t.Context(), gateEvent())
		if err != nil || reply.Gate.Reason != "said in JSON" {
			t.Errorf("reply %+v, error %v", reply, err)
		}
		s := set.Status()[0]
		if s.Version != "1.0.0" || s.Granted[0] != "clock" || s.Module.Generation != 1 || set.Stats()["json"].Rollbacks != 1 {
			t.Errorf("status %+v", s)
		}
	})
}

// TestRollBackUnderCalls: while a broken binary comes and goes, a caller sees what the
// binary in use says, or the trap of the broken one, and nothing in between. The two
// speak different encodings.
func TestRollBackUnderCalls(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	set, err := load(t, h, plugins.Entry{Module: module("guard")})
	if err != nil {
		t.Fatal(err)
	}
	p := set.Plugins()[0]
	hook := `,"hooks":[{"phase":"tool_gate","mode":"gate","messages":"none","priority":-100,"on_failure":"fail"}]`
	broken := describedAs(binaryOf(t, testdata("trap")), as("guard", hook))
	var stop atomic.Bool
	var answered, trapped atomic.Int64
	var wg sync.WaitGroup
	under := make(chan struct{}, 8)
	for range 4 {
		wg.Go(func() {
			defer func() { under <- struct{}{} }() // also when it gives up
			for first := true; first || !stop.Load(); first = false {
				reply, err := p.OnPhase(t.Context(), gateEvent())
				var trap *host.TrapError
				switch {
				case errors.As(err, &trap) && strings.Contains(err.Error(), "unreachable"):
					trapped.Add(1)
				case err == nil && reply.Gate != nil && reply.Gate.Action == abi.GateBlock:
					answered.Add(1)
				default:
					t.Errorf("reply %+v, error %v", reply, err)
					return
				}
				if first {
					under <- struct{}{}
				}
			}
		})
	}
	for range 4 {
		<-under // the callers are at it
	}
	for n := range 5 {
		if err := set.Swap(t.Context(), "guard", host.Spec{Wasm: broken}, host.SwapOptions{Watch: host.Watch{MinCalls: 2}}); err != nil {
			t.Error(err)
		}
		for set.Stats()["guard"].Rollbacks <= int64(n) && !t.Failed() {
			_, _ = p.OnPhase(t.Context(), gateEvent()) // the others look at what it says
		}
	}
	stop.Store(true)
	wg.Wait()
	if reply, err := p.OnPhase(t.Context(), gateEvent()); err != nil || reply.Gate.Action != abi.GateBlock {
		t.Errorf("reply %+v, error %v", reply, err)
	}
	if answered.Load()+trapped.Load() == 0 || set.Status()[0].Version != "0.1.0" {
		t.Errorf("%d answers, %d traps, status %+v", answered.Load(), trapped.Load(), set.Status()[0])
	}
}
