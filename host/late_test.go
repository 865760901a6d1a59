package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/kv"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// dawdle is a guest whose export run calls a function of the embedder, extism:host/user.dawdle,
// and then returns.
func dawdle() []byte {
	return wasmOf(
		sec(sType, fn(nil, nil), fn(nil, enc(i32))),
		sec(sImport, enc(sized("extism:host/user"), sized("dawdle"), 0, 0)),
		sec(sFunc, leb(1)),
		sec(sExport, export("run", 0, 1)),
		sec(sCode, body(opCall, 0, konst, 0)),
	)
}

// dawdler loads the guest with a function of the embedder.
func dawdler(t *testing.T, e string, limits host.Limits, logs *logBuffer, f func(ctx context.Context) error) *host.Module {
	t.Helper()
	h := newHost(t, host.Config{Engine: hosttest.Engine(e), Limits: limits, Logger: logger(logs, 0)})
	m, err := h.Load(t.Context(), host.Spec{Name: "dawdler", Wasm: dawdle(), Grants: host.Grants{Functions: []host.Function{{
		Name: "dawdle", Call: func(ctx context.Context, _ *host.Caller, _ []uint64) error { return f(ctx) },
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// pass lets fake time pass.
func pass(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
}

// TestModule_late counts host calls that come back long after their call had to end, and
// closes the module when they took more than they may.
func TestModule_late(t *testing.T) {
	t.Parallel()
	for _, e := range engines() {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { lateCalls(t, e) })
		})
	}
}

func lateCalls(t *testing.T, e string) {
	t.Helper()
	logs := &logBuffer{}
	var late time.Duration
	m := dawdler(t, e, host.Limits{Timeout: time.Second, LateTime: 3 * time.Second}, logs, func(ctx context.Context) error {
		<-ctx.Done()
		pass(late)
		return nil
	})
	const name = "extism:host/user.dawdle"
	for _, step := range []struct {
		late      time.Duration
		cancelled time.Duration // after this time, not at all if 0
		count     int64
		sum       time.Duration
	}{
		{0, 0, 0, 0},
		{90 * time.Millisecond, 0, 0, 0}, // a busy machine takes as long
		{time.Second, 0, 1, time.Second},
		{1500 * time.Millisecond, 300 * time.Millisecond, 2, 2500 * time.Millisecond},
	} {
		late = step.late
		ctx, cancel := context.WithCancel(t.Context())
		if step.cancelled > 0 {
			time.AfterFunc(step.cancelled, cancel)
		}
		_, err := m.Call(ctx, "run", nil)
		cancel()
		trap, ok := errors.AsType[*host.TrapError](err)
		if kind := trapKind(step.cancelled > 0); !ok || trap.Kind != kind {
			t.Fatalf("%v late: %v, want %s", step.late, err, kind)
		}
		s := m.Stats()
		if s.Late != step.count || s.LateTime != step.sum || s.LateImports[name] != step.count {
			t.Errorf("%v late: %d, %v, %v", step.late, s.Late, s.LateTime, s.LateImports)
		}
	}
	late = 501 * time.Millisecond
	_, err := m.Call(t.Context(), "run", nil)
	_ = wantTrap(t, err, host.TrapDeadline)
	_, err = m.Call(t.Context(), "run", nil)
	want := `host: module "dawdler" export "run": waiting for an instance: closed: within an hour its host calls continued for 3.001s ` +
		"after their calls were out of time or cancelled, and 3s are allowed; see Stats.LateImports for which, or raise Limits.LateTime"
	if !errors.Is(err, host.ErrClosed) || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if s := m.Stats(); s.Instances != 0 || s.Late != 3 {
		t.Errorf("%+v", s)
	}
	if text := logs.String(); strings.Count(text, `msg="module closed" module=dawdler reason="closed: within an hour its host calls continued for 3.001s`) != 1 {
		t.Errorf("logs: %s", text)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := m.Call(t.Context(), "run", nil); err == nil || err.Error() != want {
		t.Errorf("after Close: %v", err)
	}
}

func trapKind(cancelled bool) host.Reason {
	if cancelled {
		return host.TrapCancelled
	}
	return host.TrapDeadline
}

// TestModule_late_session closes a module by a session's late calls, and ends its sessions.
func TestModule_late_session(t *testing.T) {
	t.Parallel()
	for _, e := range engines() {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t, host.Config{Engine: hosttest.Engine(e), Limits: host.Limits{Timeout: time.Second, LateTime: time.Second}})
				m, err := h.Load(t.Context(), host.Spec{Name: "dawdler", Wasm: dawdle(), Grants: host.Grants{Sticky: true, Functions: []host.Function{{
					Name: "dawdle", Call: func(context.Context, *host.Caller, []uint64) error { pass(3 * time.Second); return nil },
				}}}})
				if err != nil {
					t.Fatal(err)
				}
				a, err := m.Session(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				b, err := m.Session(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				_, err = a.Call(t.Context(), "run", nil)
				_ = wantTrap(t, err, host.TrapDeadline)
				for _, s := range []*host.Session{a, b} {
					if _, err := s.Call(t.Context(), "run", nil); !errors.Is(err, host.ErrClosed) || !strings.Contains(err.Error(), "host calls continued for 2s") {
						t.Errorf("%v", err)
					}
					if err := s.Close(t.Context()); err != nil {
						t.Error(err)
					}
				}
				if s := m.Stats(); s.Instances != 0 || s.Late != 1 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// TestModule_late_prompt does not count what waits and ends with its call: a function of the
// embedder, and a sleep.
func TestModule_late_prompt(t *testing.T) {
	t.Parallel()
	for _, e := range engines() {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := dawdler(t, e, host.Limits{Timeout: time.Minute}, &logBuffer{}, func(ctx context.Context) error {
					<-ctx.Done()
					return ctx.Err()
				})
				sleeper := load(t, e, host.Spec{Path: wat("sleeper"), Grants: host.Grants{Clock: true}, Limits: host.Limits{Timeout: time.Hour}})
				for module, name := range map[*host.Module]string{m: "run", sleeper: "sleep"} {
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(30*time.Second, cancel)
					_, err := module.Call(ctx, name, nil)
					_ = wantTrap(t, err, host.TrapCancelled)
					if s := module.Stats(); s.Late != 0 || s.LateImports != nil {
						t.Errorf("%s: %+v", module.Name(), s)
					}
				}
			})
		})
	}
}

// TestModule_Close_abandons closes a module and its host while a host call does not come
// back when it is asked to.
func TestModule_Close_abandons(t *testing.T) {
	t.Parallel()
	for _, e := range engines() {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				done, release := make(chan error, 1), make(chan struct{})
				m := dawdler(t, e, host.Limits{Timeout: time.Hour}, &logBuffer{}, func(context.Context) error { <-release; return nil })
				h := host.Of(m)
				go func() {
					_, err := m.Call(context.WithoutCancel(t.Context()), "run", nil)
					done <- err
				}()
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				want := `host: close module "dawdler": 1 calls in flight were abandoned, which did not come back when they were interrupted: context deadline exceeded`
				if err := m.Close(ctx); err == nil || err.Error() != want {
					t.Errorf("got %v\nwant %s", err, want)
				}
				if err := h.Close(ctx); err == nil || err.Error() != want {
					t.Errorf("got %v\nwant %s", err, want)
				}
				close(release)
				err := <-done
				if _ = wantTrap(t, err, host.TrapCancelled); !errors.Is(err, host.ErrClosed) {
					t.Errorf("the call: %v", err)
				}
				synctest.Wait()
				if s := m.Stats(); s.Instances != 0 || s.Late != 1 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// TestModule_Close_wakes interrupts a guest that sleeps.
func TestModule_Close_wakes(t *testing.T) {
	t.Parallel()
	for _, e := range engines() {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := load(t, e, host.Spec{Path: wat("sleeper"), Grants: host.Grants{Clock: true}, Limits: host.Limits{Timeout: time.Hour}})
				done := make(chan error, 1)
				go func() {
					_, err := m.Call(t.Context(), "sleep", nil)
					done <- err
				}()
				synctest.Wait()
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				want := `host: close module "sleeper": 1 calls in flight were interrupted: context canceled`
				if err := m.Close(ctx); err == nil || err.Error() != want {
					t.Errorf("got %v\nwant %s", err, want)
				}
				if err := <-done; !errors.Is(err, host.ErrClosed) {
					t.Errorf("the call: %v", err)
				}
			})
		})
	}
}

// TestModule_late_window leaves a module open whose host calls are late now and then.
func TestModule_late_window(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := dawdler(t, hosttest.Native, host.Limits{Timeout: time.Second, LateTime: 3 * time.Second}, &logBuffer{}, func(context.Context) error {
			pass(3 * time.Second)
			return nil
		})
		for range 4 {
			_, err := m.Call(t.Context(), "run", nil)
			_ = wantTrap(t, err, host.TrapDeadline)
			pass(61 * time.Minute)
		}
		if s := m.Stats(); s.Late != 4 || s.LateTime != 8*time.Second {
			t.Errorf("%+v", s)
		}
	})
}

// lateKV is a store that does not end with its context.
type lateKV struct{ kv.Store }

func (lateKV) Delete(context.Context, string, string) (bool, error) {
	pass(2 * time.Second)
	return false, nil
}

// TestModule_late_kv names an import that pays, and is looked at, before it waits.
func TestModule_late_kv(t *testing.T) {
	t.Parallel()
	guest := wasmOf(
		sec(sType, fn(enc(i64), enc(i32)), fn(enc(i64), enc(i64)), fn(nil, enc(i32))),
		sec(sImport, enc(sized("mortise:host/1"), sized("kv_delete"), 0, 0), enc(sized("extism:host/env"), sized("alloc"), 0, 1)),
		sec(sFunc, leb(2)),
		sec(sExport, export("run", 0, 2)),
		sec(sCode, body(opI64Const, 1, opCall, 1, opCall, 0)),
	)
	for _, e := range engines() {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := load(t, e, host.Spec{
					Name: "kv", Wasm: guest, Limits: host.Limits{Timeout: time.Second},
					Grants: host.Grants{Capabilities: []host.Capability{&kv.Grant{Store: lateKV{kv.NewMemory()}}}},
				})
				_, err := m.Call(t.Context(), "run", nil)
				_ = wantTrap(t, err, host.TrapDeadline)
				if s := m.Stats(); s.Late != 1 || s.LateTime != time.Second || s.LateImports["kv_delete"] != 1 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}
