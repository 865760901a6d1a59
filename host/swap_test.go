package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// generation returns a binary that answers version and works, traps ("!") or
// refuses ("?").
func generation(tb testing.TB, version, work byte) []byte {
	tb.Helper()
	b := watBytes(tb, "generation")
	mark := bytes.Index(b, []byte("MARK1."))
	if mark < 0 {
		tb.Fatal("the guest has no mark")
	}
	b[mark+4], b[mark+5] = version, work
	return b
}

// withSection appends a custom section.
func withSection(wasm []byte, name, content string) []byte {
	body := append([]byte{byte(len(name))}, name...)
	body = append(body, content...)
	return append(append(bytes.Clone(wasm), 0, byte(len(body)&0x7f|0x80), byte(len(body)>>7)), body...)
}

// swapping loads the first generation and keeps the events of the swaps.
type swapping struct {
	*host.Module

	mu     sync.Mutex
	events []host.SwapEvent
	logs   logBuffer
}

func startSwapping(t *testing.T, e string, limits host.Limits) *swapping {
	t.Helper()
	s := &swapping{}
	h := newHost(t, host.Config{Engine: hosttest.Engine(e), Logger: logger(&s.logs, slog.LevelInfo), OnSwap: func(e host.SwapEvent) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, e)
	}})
	m, err := h.Load(t.Context(), host.Spec{Name: "policy", Wasm: generation(t, '1', '.'), Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	s.Module = m
	return s
}

func (s *swapping) kinds() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, e := range s.events {
		out = append(out, fmt.Sprintf("%s %d>%d", e.Kind, e.Generation, e.Current))
	}
	return strings.Join(out, ", ")
}

func TestModule_Swap(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := startSwapping(t, e, host.Limits{})
		call(t, m.Module, "work", "", "1")
		old := m.Current()
		g, err := m.Swap(t.Context(), host.Spec{Wasm: generation(t, '2', '.')}, host.SwapOptions{Watch: host.Watch{Calls: 3, MinCalls: 1}})
		if err != nil || g.Number() != 2 || m.Current() != g || m.Info().Generation != 2 || m.Info().SHA256 == old.Info().SHA256 {
			t.Fatalf("%v, %+v", err, m.Info())
		}
		if _, err := old.Call(t.Context(), "work", nil); !errors.Is(err, host.ErrRetired) {
			t.Errorf("the old generation: %v", err)
		}
		for range 4 {
			call(t, m.Module, "work", "", "2")
		}
		if got, want := m.kinds(), "live 2>2, settled 2>2"; got != want {
			t.Errorf("events %s, want %s", got, want)
		}
		if s := m.Stats(); s.Swaps != 1 || s.Rollbacks != 0 || s.Calls != 5 || s.Instances != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestModule_Swap_rollsBack(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		for work, reason := range map[byte]string{'!': "unreachable", '?': "refused with code 1"} {
			m := startSwapping(t, e, host.Limits{})
			opts := host.SwapOptions{Watch: host.Watch{Calls: 50, MinCalls: 4, MaxFailures: 0.5}}
			if _, err := m.Swap(t.Context(), host.Spec{Wasm: generation(t, '2', work)}, opts); err != nil {
				t.Fatal(err)
			}
			// A caller that gave up says nothing about the generation.
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			for range 10 {
				_, _ = m.Call(gone, "work", nil)
			}
			call(t, m.Module, "ok", "", "")
			call(t, m.Module, "ok", "", "")
			failures := 0
			for ; failures < 10 && m.Current().Number() == 2; failures++ {
				if _, err := m.Call(t.Context(), "work", nil); err == nil {
					t.Fatal("the bad generation works")
				}
			}
			if failures != 3 { // 3 of 5 is the first rate above a half
				t.Errorf("rolled back after %d failures", failures)
			}
			call(t, m.Module, "work", "", "1")
			if got, want := m.kinds(), "live 2>2, rolled_back 2>1"; got != want {
				t.Errorf("events %s, want %s", got, want)
			}
			last := m.events[len(m.events)-1]
			if last.Calls != 5 || last.Failures != 3 || !strings.Contains(last.Reason, reason) || last.Module != "policy" {
				t.Errorf("%+v", last)
			}
			if s := m.Stats(); s.Rollbacks != 1 || s.Instances != 1 {
				t.Errorf("%+v", s)
			}
			if !strings.Contains(m.logs.String(), `msg="generation rolled back" module=policy generation=2 calls=5 failures=3`) {
				t.Errorf("log: %s", m.logs.String())
			}
		}
	})
}

// TestModule_Swap_rollsBackAtSuccess: the call with which the rate begins to count went well, in a call and in a
// session.
func TestModule_Swap_rollsBackAtSuccess(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		for name, call := range map[string]func(m *host.Module, export string) error{
			"call": func(m *host.Module, export string) error {
				_, err := m.Call(t.Context(), export, nil)
				return err
			},
			"session": func(m *host.Module, export string) error {
				s, err := m.Session(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				_, err = s.Call(t.Context(), export, nil)
				return errors.Join(err, s.Close(t.Context()))
			},
		} {
			m := startSwapping(t, e, host.Limits{})
			if _, err := m.Swap(t.Context(), host.Spec{Wasm: generation(t, '2', '?'), Grants: host.Grants{Sticky: true}}, host.SwapOptions{}); err != nil {
				t.Fatal(err)
			}
			for range 4 {
				if err := call(m.Module, "work"); err == nil {
					t.Errorf("%s: the bad generation works", name)
				}
			}
			if err := call(m.Module, "ok"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			last := m.events[len(m.events)-1]
			if last.Kind != host.SwapRolledBack || last.Calls != 5 || last.Failures != 4 || !strings.Contains(last.Reason, "refused with code 1") {
				t.Errorf("%s: %+v", name, last)
			}
		}
	})
}

// TestModule_Swap_rollsBackHanging: callers who wait for less time than Limits.Timeout get rid of a generation
// that hangs, and those who cancel say nothing about it.
func TestModule_Swap_rollsBackHanging(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		began := make(chan struct{}, 1)
		hang := func(ctx context.Context, _ *host.Caller, _ []uint64) error {
			began <- struct{}{}
			<-ctx.Done()
			return nil
		}
		spec := func(f func(context.Context, *host.Caller, []uint64) error) host.Spec {
			return host.Spec{Path: wat("functions"), Limits: host.Limits{Timeout: time.Minute}, Grants: host.Grants{Functions: append(mine(), nothing(f))}}
		}
		m := load(t, e, spec(fine))
		if _, err := m.Swap(t.Context(), spec(hang), host.SwapOptions{}); err != nil {
			t.Fatal(err)
		}
		for range 6 {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := m.Call(ctx, "nothing", nil)
				ended <- err
			}()
			<-began
			cancel()
			_ = wantTrap(t, <-ended, host.TrapCancelled)
		}
		missed := 0
		for m.Current().Number() == 2 && missed < 10 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			_, err := m.Call(ctx, "nothing", nil)
			cancel()
			// A caller whose time was over before the guest ran says nothing either.
			if trap, ok := errors.AsType[*host.TrapError](err); ok && trap.Kind == host.TrapDeadline {
				missed++
			}
			select {
			case <-began:
			default:
			}
		}
		if missed != 5 || m.Stats().Rollbacks != 1 {
			t.Errorf("%d calls missed their deadline, %+v", missed, m.Stats())
		}
		call(t, m, "nothing", "", "")
	})
}

func TestModule_Swap_refused(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := startSwapping(t, e, host.Limits{})
		two := generation(t, '2', '.')
		vectors := func(text string) host.Spec { return host.Spec{Wasm: withSection(two, host.SectionVectors, text)} }
		const stays = `host: swap module "policy": the generation in use stays: `
		for _, c := range []struct {
			name string
			spec host.Spec
			opts host.SwapOptions
			want string
		}{
			{"not a module", host.Spec{Wasm: []byte("no")}, host.SwapOptions{}, `host: module "policy" is not WebAssembly`},
			{"another name", host.Spec{Name: "other", Wasm: two}, host.SwapOptions{}, `host: swap module "policy": Spec.Name is "other"; leave it empty`},
			{"an export is missing", host.Spec{Wasm: two, Require: []string{"summarize"}}, host.SwapOptions{}, `host: module "policy" does not export "summarize"`},
			{"own vector", vectors(`[{"name":"says 1","export":"work","output":"1"}]`), host.SwapOptions{}, stays + `probe "says 1": got 1 bytes ("2"), want 1 ("1")`},
			{"own vector of bytes", vectors(`[{"export":"work","output_base64":"MQ=="}]`), host.SwapOptions{}, stays + `probe "work": got 1 bytes ("2"), want 1 ("1")`},
			{"own vector refuses", vectors(`[{"export":"work","refused":true}]`), host.SwapOptions{}, stays + `probe "work": the guest accepted what it should refuse`},
			{"own vectors are no JSON", vectors(`[{"export":"work","no":1}]`), host.SwapOptions{}, stays + `section mortise:vectors: json: unknown field "no"`},
			{"own vectors and more", vectors(`[] [{"export":"work","output":"1"}]`), host.SwapOptions{}, stays + `section mortise:vectors: there is more behind its array`},
			{"too many vectors", vectors("[" + strings.Repeat("{},", 64) + "{}]"), host.SwapOptions{}, stays + `section mortise:vectors has 65 vectors, 64 are allowed`},
			{"no such export", vectors(`[{"name":"p","export":"nope"}]`), host.SwapOptions{}, stays + `probe "p": host: module "policy" export "nope": no such export`},
			{"traps", host.Spec{Wasm: withSection(generation(t, '2', '!'), host.SectionVectors, `[{"export":"work"}]`)}, host.SwapOptions{}, stays + `probe "work": host: module "policy" export "work": trap: unreachable`},
			{"check", host.Spec{Wasm: two}, host.SwapOptions{Check: func(ctx context.Context, g *host.Generation) error {
				out, err := g.Call(ctx, "work", nil)
				return fmt.Errorf("says %s, %w", out, errors.Join(err, errors.ErrUnsupported))
			}}, stays + `says 2, unsupported operation`},
			{"watch", host.Spec{Wasm: two}, host.SwapOptions{Watch: host.Watch{MaxFailures: 2}}, `host: swap module "policy": Watch.MaxFailures 2 is not between 0 and 1`},
			{"watch calls", host.Spec{Wasm: two}, host.SwapOptions{Watch: host.Watch{Calls: 3, MinCalls: 5}}, `host: swap module "policy": Watch.MinCalls 5 is not between 0 and Watch.Calls (3)`},
		} {
			g, err := m.Swap(t.Context(), c.spec, c.opts)
			if err == nil || g != nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%s: got %v\nwant %s", c.name, err, c.want)
			}
		}
		// A module without code that starts is no generation either.
		_, err := m.Swap(t.Context(), host.Spec{Path: wat("trap_start")}, host.SwapOptions{})
		if _, ok := errors.AsType[*host.LoadError](err); !ok {
			t.Errorf("trap_start: %v", err)
		}
		if s := m.Stats(); m.kinds() != "" || s.Swaps != 0 || s.Instances != 1 || m.Current().Number() != 1 {
			t.Errorf("%s, %+v", m.kinds(), s)
		}
		call(t, m.Module, "work", "", "1")
		good := vectors(`[{"export":"work","output":"2"},{"export":"ok","input_base64":"AAA="}]`)
		if _, err := m.Swap(t.Context(), good, host.SwapOptions{}); err != nil {
			t.Error(err)
		}
		call(t, m.Module, "work", "", "2")
	})
}

// TestModule_Swap_inFlight swaps while one call runs on the only instance and
// others wait for it.
func TestModule_Swap_inFlight(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := startSwapping(t, e, host.Limits{Instances: 1, Timeout: time.Minute})
		ctx, stop := context.WithCancel(t.Context())
		ended := occupy(ctx, t, m.Module)
		waiting := make(chan string, 3)
		for range 3 {
			go func() {
				out, err := m.Call(t.Context(), "work", nil)
				waiting <- fmt.Sprint(string(out), err)
			}()
		}
		if _, err := m.Swap(t.Context(), host.Spec{Wasm: generation(t, '2', '.')}, host.SwapOptions{Watch: host.Watch{Calls: 1}}); err != nil {
			t.Fatal(err)
		}
		for range 3 { // they do not wait for the spinning one
			if got := <-waiting; got != "2<nil>" {
				t.Errorf("a waiting call: %s", got)
			}
		}
		select {
		case err := <-ended:
			t.Fatalf("the call in flight ended: %v", err)
		default:
		}
		stop()
		_ = wantTrap(t, <-ended, host.TrapCancelled)
	})
}

// TestModule_Swap_concurrent swaps again and again during calls, and closes
// in the middle of it.
func TestModule_Swap_concurrent(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := startSwapping(t, e, host.Limits{Instances: 2})
		var wg sync.WaitGroup
		var stop atomic.Bool
		for range 4 {
			wg.Go(func() {
				for last := byte('1'); !stop.Load(); {
					out, err := m.Call(t.Context(), "work", nil)
					if errors.Is(err, host.ErrClosed) && stop.Load() {
						return
					}
					if err != nil || len(out) != 1 || out[0] < last {
						t.Errorf("%q after %c, %v", out, last, err)
						return
					}
					last = out[0]
				}
			})
		}
		for v := byte('2'); v <= '9'; v++ {
			g, err := m.Swap(t.Context(), host.Spec{Wasm: generation(t, v, '.')}, host.SwapOptions{Watch: host.Watch{Calls: int(v-'0') * 10}})
			if err != nil {
				t.Fatal(err)
			}
			for range 20 {
				if out, err := g.Call(t.Context(), "work", nil); err != nil || out[0] != v {
					t.Errorf("%c: %q, %v", v, out, err)
				}
			}
		}
		stop.Store(true)
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if _, err := m.Swap(t.Context(), host.Spec{Wasm: generation(t, '1', '.')}, host.SwapOptions{}); !errors.Is(err, host.ErrClosed) {
			t.Errorf("a swap after Close: %v", err)
		}
		if s := m.Stats(); s.Instances != 0 || s.Swaps != 8 || s.Failures != 0 {
			t.Errorf("%+v", s)
		}
	})
}
