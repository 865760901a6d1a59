package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	messagescap "github.com/mortise-dev/mortise/host/capability/messages"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/internal/guest"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/internal/wire"
	"github.com/mortise-dev/mortise/plugins"
)

// conversation is n messages of 600 bytes, user and assistant in turn.
func conversation(n int) []abi.Message {
	roles := []abi.Role{abi.RoleUser, abi.RoleAssistant}
	messages := make([]abi.Message, n)
	for i := range messages {
		text := fmt.Sprintf("message %d ", i)
		text += strings.Repeat("All work and no play makes a dull day. ", 16)
		messages[i] = abi.Message{ID: fmt.Sprintf("m%d", i), Role: roles[i%2], Content: []abi.ContentBlock{abi.Text(text[:600])}}
	}
	return messages
}

// event shows the 40 messages from from on.
func event(messages []abi.Message, from int) *abi.Event { return eventOf(messages, from, 40) }

func eventOf(messages []abi.Message, from, n int) *abi.Event {
	return &abi.Event{
		ABI: abi.Version, Phase: abi.BeforeInference, Run: abi.RunIdentity{ThreadID: "t1", RunID: "r1"}, Step: from + 1,
		Messages: messages[from : from+n], MessagesFrom: from, MessagesTotal: len(messages),
	}
}

// hook is a phase hook of some host: an event in, a reply out.
type hook func(e *abi.Event) (*abi.Reply, error)

// sdkHook is a hook as a user of go-sdk writes it: JSON, with the plugin kit in the
// guest. Without a timeout nothing can stop it; it never gets fresh memory.
func sdkHook(tb testing.TB, timeout time.Duration) hook {
	tb.Helper()
	ctx := tb.Context()
	manifest := extism.Manifest{
		Wasm:    []extism.Wasm{extism.WasmData{Data: built(tb, pdkGuest)}},
		Timeout: uint64(timeout.Milliseconds()),
	}
	cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(sharedCache, "go-sdk"))
	if err != nil {
		tb.Fatal(err)
	}
	p, err := extism.NewPlugin(ctx, manifest, extism.PluginConfig{EnableWasi: true, RuntimeConfig: wazero.NewRuntimeConfig().WithCompilationCache(cache)}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = errors.Join(p.Close(context.WithoutCancel(ctx)), cache.Close(context.WithoutCancel(ctx))) })
	return func(e *abi.Event) (*abi.Reply, error) {
		input, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		code, output, err := p.CallWithContext(ctx, "hook_json", input)
		if err != nil || code != 0 {
			return nil, fmt.Errorf("code %d: %w", code, err)
		}
		reply := new(abi.Reply)
		return reply, json.Unmarshal(output, reply)
	}
}

// pluginHook is a hook of this project with everything on: deadline, fuel, limits,
// fresh memory for each call.
func pluginHook(tb testing.TB, wasm []byte) hook {
	tb.Helper()
	return pluginHookOn(tb, hosttest.Native, wasm)
}

func pluginHookOn(tb testing.TB, engine string, wasm []byte) hook {
	tb.Helper()
	ctx := tb.Context()
	set, err := plugins.Load(ctx, newHost(tb, host.Config{Engine: hosttest.Engine(engine)}), []plugins.Entry{{Module: host.Spec{Name: "bench", Wasm: wasm}}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := set.Close(context.WithoutCancel(ctx)); err != nil {
			tb.Error(err)
		}
	})
	p := set.Plugins()[0]
	return func(e *abi.Event) (*abi.Reply, error) { return p.OnPhase(ctx, e) }
}

// TestBenchHooks: what is compared does the same.
func TestBenchHooks(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]hook{
		"go-sdk": sdkHook(t, 0), "go-sdk with a timeout": sdkHook(t, 10*time.Second),
		"go": pluginHook(t, built(t, hookGuest)), "c": pluginHook(t, cGuest(t)),
		"go on the reference": pluginHookOn(t, hosttest.Extism, built(t, hookGuest)), "c on the reference": pluginHookOn(t, hosttest.Extism, cGuest(t)),
	} {
		benchHookAnswers(t, name, call, event(conversation(41), 1), map[string]any{"assistant": 20.0, "user": 20.0, "system": 0.0, "tool": 0.0, "last": "m40", "size": 600.0})
		benchHookAnswers(t, name, call, eventOf(conversation(900), 0, 900), map[string]any{"assistant": 450.0, "user": 450.0, "system": 0.0, "tool": 0.0, "last": "m898", "size": 600.0})
		benchHookAnswers(t, name, call, &abi.Event{ABI: abi.Version, Phase: abi.BeforeInference}, map[string]any{
			"assistant": 0.0, "user": 0.0, "system": 0.0, "tool": 0.0, "last": "", "size": 0.0,
		})
	}
}

// benchHookAnswers: a hook answers an event with a payload.
func benchHookAnswers(t *testing.T, name string, call hook, e *abi.Event, want map[string]any) {
	t.Helper()
	for range 3 { // anew, and on what is kept
		reply, err := call(e)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if len(reply.Effects) != 1 || reply.Effects[0].Type != abi.EffectEmit || reply.Effects[0].EventType != "roles" {
			t.Errorf("%s: %+v", name, reply)
			return
		}
		payload, ok := reply.Effects[0].Payload.(map[string]any)
		if !ok {
			t.Errorf("%s: payload %v", name, reply.Effects[0].Payload)
		}
		got := map[string]any{}
		for key, v := range payload {
			if n, ok := v.(int64); ok {
				v = float64(n)
			}
			got[key] = v
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// runner is a contestant that takes its turns in blocks.
type runner struct {
	call  contestant
	block int
	wall  []float64
	cpu   []float64
}

func (r *runner) turn() {
	r.call() // the one before has emptied the caches
	wall, cpu := time.Now(), cpuTime()
	for range r.block {
		r.call()
	}
	r.cpu = append(r.cpu, float64((cpuTime()-cpu).Nanoseconds())/float64(r.block))
	r.wall = append(r.wall, float64(time.Since(wall).Nanoseconds())/float64(r.block))
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}

// raceBoth lets runners take turns and measures wall and processor time.
func raceBoth(b *testing.B, runners ...*runner) {
	b.Helper()
	for _, r := range runners {
		for range 3 {
			r.call() // caches fill, pages are learned
		}
	}
	for b.Loop() {
		for _, r := range runners {
			r.turn()
		}
	}
}

// hookRunner calls a hook with one event again and again, or, when it moves, as a
// run does it: each time one message more.
func hookRunner(b *testing.B, call hook, block int, moves bool) *runner {
	b.Helper()
	const long = 4000
	messages, from := conversation(long), 0
	still := event(messages, 0)
	return eventRunner(b, call, block, func() *abi.Event {
		if !moves {
			return still
		}
		e := event(messages, from)
		from = (from + 1) % (long - 40)
		return e
	})
}

// longRunner calls a hook with all 900 messages of a thread. It has instances of its own,
// since what a call has changed is reset after later ones, too.
func longRunner(b *testing.B, call hook, block int) *runner {
	b.Helper()
	e := eventOf(conversation(900), 0, 900)
	e.Run.ThreadID = "long"
	return eventRunner(b, call, block, func() *abi.Event { return e })
}

func eventRunner(b *testing.B, call hook, block int, next func() *abi.Event) *runner {
	b.Helper()
	return &runner{block: block, call: func() {
		if reply, err := call(next()); err != nil || len(reply.Effects) != 1 {
			b.Fatal(reply, err)
		}
	}}
}

// BenchmarkHook compares a phase hook with 40 messages of 600 bytes, from the event
// to the reply: go-sdk with JSON, without and with a timeout, and this project with a
// guest in Go and one in C, which also get one new message in each call, and threads of
// 900 messages. An iteration is a block of calls of each, so ns/op says
// nothing; the metrics are medians of the blocks.
func BenchmarkHook(b *testing.B) {
	inGo, inC := pluginHook(b, built(b, hookGuest)), pluginHook(b, cGuest(b))
	runners := map[string]*runner{
		"gosdk":         hookRunner(b, sdkHook(b, 0), 2, false),
		"gosdk_timeout": hookRunner(b, sdkHook(b, 2*time.Second), 1, false),
		"go":            hookRunner(b, inGo, 200, false),
		"c":             hookRunner(b, inC, 1000, false),
		"go_moving":     hookRunner(b, inGo, 200, true),
		"c_moving":      hookRunner(b, inC, 1000, true),
		"go_long":       longRunner(b, pluginHook(b, built(b, hookGuest)), 50),
		"c_long":        longRunner(b, pluginHook(b, cGuest(b)), 50),
	}
	order := []*runner{
		runners["gosdk"], runners["go"], runners["gosdk_timeout"], runners["c"], runners["go_moving"], runners["c_moving"], runners["go_long"], runners["c_long"],
	}
	raceBoth(b, order...)
	for name, r := range runners {
		b.ReportMetric(median(r.cpu)/1e3, name+"-cpu-us")
		b.ReportMetric(median(r.wall)/1e3, name+"-wall-us")
	}
	for _, name := range []string{"go", "c", "go_moving", "c_moving"} {
		b.ReportMetric(median(runners["gosdk"].cpu)/median(runners[name].cpu), "gosdk/"+name)
		b.ReportMetric(median(runners["gosdk_timeout"].cpu)/median(runners[name].cpu), "gosdk_timeout/"+name)
	}
}

// unsent is an event as the benchmarks' guests get it, and its messages, encoded.
func unsent(t *testing.T, e *abi.Event) (lazy []byte, messages texts) {
	t.Helper()
	d := abi.Description{Name: "lazy", ABI: abi.VersionRange{Min: 1, Max: 1}, Hooks: []abi.Hook{{Phase: e.Phase, LazyMessages: true}}}
	section, err := wire.MessagePack.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	seen := &seenInput{section: section}
	g, err := guest.Open(t.Context(), seen)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Call(t.Context(), abi.ExportOnPhase, e, new(abi.Reply)); err != nil {
		t.Fatal(err)
	}
	for i := range e.Messages {
		one, err := wire.MessagePack.Marshal(&e.Messages[i])
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, string(one))
	}
	return seen.input, messages
}

// seenInput is a module that keeps what it is called with.
type seenInput struct{ section, input []byte }

func (s *seenInput) Name() string                { return "seen" }
func (s *seenInput) HasExport(string) bool       { return true }
func (s *seenInput) Imports(string, string) bool { return false }
func (s *seenInput) Section(string) []byte       { return s.section }

func (s *seenInput) Call(_ context.Context, _ string, input ...[]byte) ([]byte, error) {
	if len(input) > 0 {
		s.input = bytes.Join(input, nil)
	}
	return nil, nil
}

// TestBenchGuestsHostile gives the guests broken events. They may refuse them, and
// must not break: a trap would show a reader that looks where nothing is.
func TestBenchGuestsHostile(t *testing.T) {
	t.Parallel()
	testskip.Long(t)
	testskip.Plain(t)
	bad, err := filepath.Glob(filepath.Join("..", "testdata", "abi", "bad", "*.msgpack"))
	if err != nil || len(bad) < 30 {
		t.Fatalf("%d vectors, error %v", len(bad), err)
	}
	good, err := wire.MessagePack.Marshal(event(conversation(40), 0))
	if err != nil {
		t.Fatal(err)
	}
	m := load(t, hosttest.Native, host.Spec{Wasm: cGuest(t), Name: "encoder"})
	g, err := guest.Open(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	indexed, err := g.Encode(event(conversation(40), 0))
	if err != nil || !bytes.Contains(indexed, []byte(abi.FieldMessageIndex)) {
		t.Fatalf("no index, error %v", err)
	}
	lazy, messages := unsent(t, event(conversation(40), 0))
	var inputs [][]byte
	for _, path := range bad {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, data, append([]byte("\x81\xa8messages\x91"), data...))
	}
	for _, whole := range [][]byte{good, indexed, lazy} {
		for cut := range whole[:min(1500, len(whole))] {
			broken := bytes.Clone(whole[:min(1500, len(whole))])
			broken[cut] ^= 0x5d
			inputs = append(inputs, whole[:cut], broken)
		}
	}
	for at := range indexed[:500] { // the index and what stands before
		broken := bytes.Clone(indexed)
		broken[at] ^= 0x5d
		inputs = append(inputs, broken)
	}
	for name, wasm := range map[string][]byte{"go": built(t, hookGuest), "c": cGuest(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, refused := load(t, hosttest.Native, host.Spec{Name: name, Wasm: wasm, Grants: reads()}), 0
			call := func(input []byte, messages texts) {
				_, err := m.Call(messagescap.With(t.Context(), messages), "on_phase", input)
				if said := (*host.GuestError)(nil); errors.As(err, &said) {
					refused++
				} else if err != nil {
					t.Fatalf("%.80q: %v", input, err)
				}
			}
			for _, input := range inputs {
				call(input, messages)
			}
			for at := range messages[38] { // the last of the user, which is read
				broken := slices.Clone(messages)
				spoilt := []byte(broken[38])
				spoilt[at] ^= 0x5d
				broken[38] = string(spoilt)
				call(lazy, broken)
			}
			if refused < 2*1500 { // every event that is cut off, for a start
				t.Errorf("%d of %d inputs were refused", refused, len(inputs))
			}
			for _, whole := range [][]byte{good, indexed, lazy} {
				if _, err := m.Call(messagescap.With(t.Context(), messages), "on_phase", whole); err != nil {
					t.Error(err)
				}
			}
			if n := m.Stats().Replaced; n > 0 {
				t.Errorf("%d instances had to be replaced: a call made memory grow", n)
			}
		})
	}
}
