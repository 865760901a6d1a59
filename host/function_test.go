package host_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// nothing is a function without parameters.
func nothing(call func(ctx context.Context, c *host.Caller, stack []uint64) error) host.Function {
	return host.Function{Module: "main_1", Name: "nothing", Call: call}
}

func fine(context.Context, *host.Caller, []uint64) error { return nil }

// mine are the functions that the guest functions imports.
func mine() []host.Function {
	all := []host.ValueType{host.I32, host.I64, host.F32, host.F64}
	return []host.Function{
		{Module: "mine", Name: "types", Params: all, Results: all, Call: func(_ context.Context, _ *host.Caller, stack []uint64) error {
			stack[0] = uint64(uint32(int32(uint32(stack[0])) * 2))
			stack[1] *= 2
			stack[2] = uint64(math.Float32bits(math.Float32frombits(uint32(stack[2])) * 2))
			stack[3] = math.Float64bits(math.Float64frombits(stack[3]) * 2)
			return nil
		}},
		{Module: "mine", Name: "block", Params: all[1:2], Results: all[1:2], Call: func(_ context.Context, c *host.Caller, stack []uint64) error {
			text, err := c.Read(stack[0])
			if err != nil {
				return err
			}
			stack[0], err = c.Write(bytes.ToUpper(text))
			return err
		}},
		{Module: "mine", Name: "memory", Params: []host.ValueType{host.I32, host.I32}, Call: func(_ context.Context, c *host.Caller, stack []uint64) error {
			text, err := c.ReadMemory(uint32(stack[0]), uint32(stack[1]))
			if err != nil {
				return err
			}
			return c.WriteMemory(uint32(stack[0]), bytes.ToUpper(text))
		}},
	}
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := load(t, e, host.Spec{Path: wat("functions"), Grants: host.Grants{Functions: append(mine(), nothing(fine))}})
		out, err := m.Call(t.Context(), "types", nil)
		want := binary.LittleEndian.AppendUint32(nil, uint32(0xfffffff2))
		want = binary.LittleEndian.AppendUint64(want, uint64(0xfffffffffffffff0))
		want = binary.LittleEndian.AppendUint32(want, math.Float32bits(3))
		want = binary.LittleEndian.AppendUint64(want, math.Float64bits(-4.5))
		if err != nil || !bytes.Equal(out, want) {
			t.Errorf("% x, %v\nwant % x", out, err, want)
		}
		call(t, m, "block", "", "HI")
		call(t, m, "no_block", "", "")
		call(t, m, "memory_in", "", "TEXT IN MEMORY")
		call(t, m, "nothing", "", "")
		for export, detail := range map[string]string{
			"bogus_block": "mine.block: host: mine.block: there is no block at 900000",
			"far_block":   "there is no block at 4294968336",
			"memory_out":  "14 bytes at 65530 are outside the memory of 65536 bytes",
			"memory_wrap": "4294967295 bytes at 4294967295 are outside",
		} {
			_, err := m.Call(t.Context(), export, nil)
			wantFault(t, err, host.TrapFault, detail)
		}
		if s := m.Stats(); s.Uses["functions"] != 9 {
			t.Errorf("%+v", s)
		}
	})
}

// TestFunctions_ending holds what an error, a panic and a wait of a function do.
func TestFunctions_ending(t *testing.T) {
	t.Parallel()
	errMine := errors.New("mine")
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		run := func(export string, limits host.Limits, f func(ctx context.Context, c *host.Caller, stack []uint64) error) error {
			m := load(t, e, host.Spec{Path: wat("functions"), Limits: limits, Grants: host.Grants{Functions: append(mine(), nothing(f))}})
			_, err := m.Call(t.Context(), export, nil)
			return err
		}
		err := run("nothing", host.Limits{}, func(context.Context, *host.Caller, []uint64) error { return errMine })
		wantFault(t, err, host.TrapFault, "main_1.nothing: mine")
		if !errors.Is(err, errMine) {
			t.Errorf("the error is lost: %v", err)
		}
		err = run("nothing", host.Limits{}, func(context.Context, *host.Caller, []uint64) error { panic("mine") })
		wantFault(t, err, host.TrapFault, "main_1.nothing: engine fault: panicked: mine")
		if !errors.Is(err, host.ErrEngine) {
			t.Errorf("a panic: %v", err)
		}
		err = run("nothing", host.Limits{}, func(_ context.Context, _ *host.Caller, stack []uint64) error { stack[9] = 1; return nil })
		wantFault(t, err, host.TrapFault, "index out of range")
		err = run("nothing", host.Limits{Timeout: 50 * time.Millisecond}, func(ctx context.Context, _ *host.Caller, _ []uint64) error {
			<-ctx.Done()
			return nil
		})
		wantDeadline(t, err)
		err = run("forever", host.Limits{Timeout: 50 * time.Millisecond}, fine)
		wantDeadline(t, err)
	})
}

// TestFunctions_goexit: a function that ends the goroutine leaves an instance in the middle of a
// call. It is not used again, and its place is free.
func TestFunctions_goexit(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		leave, found := true, ""
		m := load(t, e, host.Spec{
			Path: wat("functions"), Limits: host.Limits{Instances: 1}, Grants: host.Grants{Sticky: true, Functions: append(mine(), nothing(
				func(_ context.Context, c *host.Caller, _ []uint64) error {
					if leave {
						_ = c.WriteMemory(64, []byte("left")) // before the goroutine ends
						runtime.Goexit()
					}
					text, err := c.ReadMemory(64, 4)
					found = string(text)
					return err
				}))},
		})
		apart := func(call func()) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				call()
			}()
			<-done
		}
		for _, call := range []func() ([]byte, error){
			func() ([]byte, error) { return m.Call(t.Context(), "nothing", nil) },
			func() ([]byte, error) { return m.Call(t.Context(), "nothing") },
		} {
			leave, found = true, ""
			before := m.Stats().Replaced
			apart(func() { _, _ = call() })
			leave = false
			if _, err := call(); err != nil || found != "text" {
				t.Errorf("the next call finds %q (%v)", found, err)
			}
			if n := m.Stats().Replaced - before; n != 1 {
				t.Errorf("%d instances were replaced", n)
			}
		}
		s, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leave = true
		apart(func() { _, _ = s.Call(t.Context(), "nothing", nil) })
		if _, err := s.Call(t.Context(), "nothing", nil); !errors.Is(err, host.ErrSessionLost) {
			t.Errorf("the session continues: %v", err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestFunctions_others: a function that calls another module and hands on its error does not
// make the host take it for an error of the module that is called. With [host.ErrRetired] it would
// run the guest again, for ever.
func TestFunctions_others(t *testing.T) {
	t.Parallel()
	errMine := errors.New("mine")
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		for _, own := range []error{host.ErrRetired, host.ErrClosed} {
			runs := 0
			m := load(t, e, host.Spec{Path: wat("functions"), Grants: host.Grants{Functions: append(mine(), nothing(func(context.Context, *host.Caller, []uint64) error {
				runs++
				if runs > 1 {
					return errors.New("again")
				}
				return fmt.Errorf("other module: %w: %w", own, errMine)
			}))}})
			_, err := m.Call(t.Context(), "nothing", nil)
			wantFault(t, err, host.TrapFault, "main_1.nothing: other module: "+own.Error())
			if runs != 1 || errors.Is(err, own) || !errors.Is(err, errMine) {
				t.Errorf("%d runs: %v", runs, err)
			}
		}
	})
}

// TestFunctions_stopped holds that a function cannot keep a guest alive that has
// used up its fuel, even by swallowing the panic that ends it.
func TestFunctions_stopped(t *testing.T) {
	t.Parallel()
	greedy := func(_ context.Context, c *host.Caller, _ []uint64) error {
		defer func() { _ = recover() }()
		for {
			if _, err := c.Write(make([]byte, 1000)); err != nil {
				return err
			}
		}
	}
	m := load(t, hosttest.Native, host.Spec{
		Path: wat("functions"), Limits: host.Limits{Fuel: 20_000}, Grants: host.Grants{Functions: append(mine(), nothing(greedy))},
	})
	_, err := m.Call(t.Context(), "nothing", nil)
	wantFault(t, err, host.TrapFuel, "used up its 20000 units of fuel")
}

// TestFunctions_kept holds that a Caller is of no use after its function.
func TestFunctions_kept(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		var kept *host.Caller
		keep := func(_ context.Context, c *host.Caller, _ []uint64) error { kept = c; return nil }
		m := load(t, e, host.Spec{Path: wat("functions"), Grants: host.Grants{Functions: append(mine(), nothing(keep))}})
		call(t, m, "nothing", "", "")
		_, read := kept.Read(1100)
		_, write := kept.Write([]byte("x"))
		_, peek := kept.ReadMemory(0, 1)
		for name, err := range map[string]error{"read": read, "write": write, "peek": peek, "poke": kept.WriteMemory(0, []byte("x"))} {
			if err == nil {
				t.Errorf("%s after the function has returned", name)
			}
		}
	})
}

func TestFunctions_refused(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		h := newHost(t, host.Config{Engine: hosttest.Engine(e)})
		wrong := append(mine(), nothing(fine))
		wrong[1].Params = nil
		for want, grants := range map[string][]host.Function{
			"imports mine.types, which is not offered":                nil,
			"imports main_1.nothing, which is not offered":            mine(),
			"imports mine.block as (i64) -> i64, but it is () -> i64": wrong,
		} {
			_, err := h.Load(t.Context(), host.Spec{Path: wat("functions"), Grants: host.Grants{Functions: grants}})
			bad, ok := errors.AsType[*host.LoadError](err)
			if !ok || !errors.Is(err, host.ErrImport) || bad.Problem != want || bad.Hint == "" {
				t.Errorf("%v; want %s", err, want)
			}
		}
		_, err := h.Load(t.Context(), host.Spec{Path: wat("function_start"), Grants: host.Grants{Functions: []host.Function{{Module: "mine", Name: "nothing", Call: fine}}}})
		if err == nil || !strings.Contains(err.Error(), "did not start") {
			t.Errorf("a function was called while an instance was made: %v", err)
		}
	})
	many := make([]host.ValueType, 33)
	for want, functions := range map[string][]host.Function{
		"Grants.Functions[0].Name is empty":                      {{Call: fine}},
		"Grants.Functions[0].Call is nil":                        {{Name: "f"}},
		"Grants.Functions[0]: 0x7b is not a type":                {{Name: "f", Call: fine, Params: []host.ValueType{0x7b}}},
		"Grants.Functions[0]: 0x00 is not a type":                {{Name: "f", Call: fine, Results: []host.ValueType{0}}},
		"Grants.Functions[0]: more than 32":                      {{Name: "f", Call: fine, Results: many}},
		"Grants.Functions[1]: extism:host/user.f is there twice": {{Name: "f", Call: fine}, {Module: "extism:host/user", Name: "f", Call: fine}},
		`Module "extism:host/env" is not for functions`:          {{Name: "alloc", Module: "extism:host/env", Call: fine}},
		`Module "mortise:host/1" is not for functions`:           {{Name: "f", Module: "mortise:host/1", Call: fine}},
		`Module "mortise:native" is not for functions`:           {{Name: "f", Module: "mortise:native", Call: fine}},
		`Module "wasi_snapshot_preview1" is not for functions`:   {{Name: "f", Module: "wasi_snapshot_preview1", Call: fine}},
		"Grants.Functions: 257, at most 256":                     make([]host.Function, 257),
	} {
		_, err := newHost(t, host.Config{}).Load(t.Context(), host.Spec{Path: wat("echo"), Grants: host.Grants{Functions: functions}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
