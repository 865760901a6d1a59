package host_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// growing is grows.wat in one instance, reset in some way.
func growing(t *testing.T, grants host.Grants, prepare func(*host.Host), pages int) *host.Module {
	t.Helper()
	h := newHost(t, host.Config{Engine: hosttest.Engine(hosttest.Native)})
	prepare(h)
	m, err := h.Load(t.Context(), host.Spec{Path: wat("grows"), Grants: grants, Limits: host.Limits{Instances: 1, MemoryPages: pages, Timeout: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func growModes() map[string]func(*host.Host) {
	return map[string]func(*host.Host){
		"native": func(*host.Host) {}, "blind": host.UseBlindMemory,
		"portable": func(h *host.Host) { _ = host.UsePortableMemory(h) },
	}
}

// grow makes the guest add pages, and fill bytes at their end and at their start. It returns what
// the call found.
func grow(t *testing.T, m *host.Module, pages, end, start int) string {
	t.Helper()
	var in []byte
	for _, v := range []int{pages, end, start} {
		in = binary.LittleEndian.AppendUint32(in, uint32(v))
	}
	out, err := m.Call(t.Context(), "grow", in)
	if err != nil {
		t.Fatalf("%d pages: %v", pages, err)
	}
	return fmt.Sprintf("% x", out)
}

// TestNative_grow: a guest that adds memory in each call keeps its instance, and each call finds a
// memory that is as large as in the first, with the same bytes in it and zeros in what it adds.
func TestNative_grow(t *testing.T) {
	t.Parallel()
	for name, prepare := range growModes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := growing(t, host.Grants{}, prepare, 512)
			want := grow(t, m, 0, 0, 0)
			for round := range 300 {
				pages := []int{1, 1, 1, 3, 0, 1, 17, 60, 1, 2}[round%10]
				end := min(pages<<16, []int{8, 100, 70_000, 1 << 20}[round/10%4])
				if got := grow(t, m, pages, end, min(pages<<16, 3000)); got != want {
					t.Fatalf("round %d, %d pages: %s, want %s", round, pages, got, want)
				}
			}
			if s := m.Stats(); s.Replaced != 0 || len(s.ReplacedBy) != 0 || s.Instances != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestNative_growFar: a call that adds all that there is, or more than is given back, costs the
// instance, and the statistics say so.
func TestNative_growFar(t *testing.T) {
	t.Parallel()
	for name, prepare := range growModes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, far := range []struct {
				pages int
				run   func(m *host.Module)
			}{
				{100, func(m *host.Module) { call(t, m, "all", "", "") }},
				{2000, func(m *host.Module) { grow(t, m, 1100, 10, 10) }},
			} {
				m := growing(t, host.Grants{}, prepare, far.pages)
				want := grow(t, m, 1, 9, 9)
				for n := range int64(3) {
					far.run(m)
					if got := grow(t, m, 1, 9, 9); got != want { // it waits until the instance is gone
						t.Errorf("limit %d: %s, want %s", far.pages, got, want)
					}
					if s := m.Stats(); s.Replaced != n+1 || s.ReplacedBy[host.ReplacedMemory] != n+1 {
						t.Errorf("limit %d: %+v", far.pages, s)
					}
				}
			}
		})
	}
}

// TestNative_growSession: a session keeps what it has added.
func TestNative_growSession(t *testing.T) {
	t.Parallel()
	m := growing(t, host.Grants{Sticky: true}, func(*host.Host) {}, 512)
	fresh := grow(t, m, 2, 9, 9)
	s, err := m.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	in := []byte{1, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0}
	for n := range uint64(5) {
		out, err := s.Call(t.Context(), "grow", in)
		if err != nil || binary.LittleEndian.Uint64(out) != 4+n || binary.LittleEndian.Uint64(out[16:]) != n+1 {
			t.Errorf("call %d: % x, %v", n, out, err)
		}
	}
	if got := grow(t, m, 2, 9, 9); got != fresh {
		t.Errorf("a call alongside the session finds %s, want %s", got, fresh)
	}
}

// TestStats_replacedBy counts each reason apart.
func TestStats_replacedBy(t *testing.T) {
	t.Parallel()
	m := load(t, hosttest.Native, host.Spec{Path: wat("secrets")})
	for range 2 {
		if _, err := m.Call(t.Context(), "write_close", nil); err != nil {
			t.Fatal(err)
		}
	}
	_, err := m.Call(t.Context(), "header_top", nil)
	_ = wantTrap(t, err, host.TrapFault)
	spin := load(t, hosttest.Native, host.Spec{Path: wat("spin"), Limits: host.Limits{Fuel: 1 << 20}})
	_, err = spin.Call(t.Context(), spin.Info().Exports[0], nil)
	_ = wantTrap(t, err, host.TrapFuel)
	exit := load(t, hosttest.Native, host.Spec{Path: wat("proc_exit")})
	call(t, exit, "zero", "", "")
	_, err = exit.Call(t.Context(), "three", nil)
	_ = wantTrap(t, err, host.TrapExit)
	table := load(t, hosttest.Native, host.Spec{Path: wat("table_grow")})
	if _, err := table.Call(t.Context(), "size", nil); err == nil {
		t.Error("the table is empty")
	}
	for _, c := range []struct {
		m    *host.Module
		want map[host.Reason]int64
	}{
		{m, map[host.Reason]int64{host.ReplacedFiles: 2, "trap": 1}},
		{spin, map[host.Reason]int64{"fuel": 1}},
		{exit, map[host.Reason]int64{host.ReplacedExit: 2}},
		{table, map[host.Reason]int64{host.ReplacedState: 1}},
	} {
		if s := c.m.Stats(); fmt.Sprint(s.ReplacedBy) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", c.m.Name(), s.ReplacedBy, c.want)
		}
	}
}
