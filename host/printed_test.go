package host_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/log"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// printing loads prints.wat.
func printing(t *testing.T, e string, grants host.Grants, limits host.Limits) (*host.Module, *logBuffer) {
	t.Helper()
	lines := new(logBuffer)
	h := newHost(t, host.Config{Engine: hosttest.Engine(e), Logger: logger(lines, slog.LevelDebug)})
	m, err := h.Load(t.Context(), host.Spec{Path: wat("prints"), Grants: grants, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	return m, lines
}

// prints is an input of prints.wat.
func prints(fd, times byte, text string) []byte { return append([]byte{fd, times}, text...) }

// TestPrinted_logged: with the log grant, what a guest prints is logged line by line.
func TestPrinted_logged(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m, lines := printing(t, e, host.Grants{Capabilities: []host.Capability{log.Grant{}}}, host.Limits{Instances: 1})
		for _, in := range [][]byte{
			prints(1, 1, "one\ntwo\n"), prints(2, 1, "to stderr"), prints(1, 3, "half "), prints(1, 1, "\n\n"),
			prints(1, 1, "\x1b[31mred\x1b[0m\xff\n"), prints(1, 2, strings.Repeat("x", 3000)),
		} {
			call(t, m, "print", string(in), "")
		}
		_, err := m.Call(t.Context(), "trap", prints(2, 1, "panic: no line end"))
		if trap := wantTrap(t, err, host.TrapFault); !strings.Contains(trap.Detail, "stderr: panic: no line end") {
			t.Errorf("%v", err)
		}
		line := func(stream, text string) string {
			return fmt.Sprintf("level=INFO msg=\"guest output\" module=prints export=%s stream=%s text=%s\n", map[bool]string{true: "trap", false: "print"}[text == `"panic: no line end"`], stream, text)
		}
		want := line("stdout", "one") + line("stdout", "two") + line("stderr", `"to stderr"`) + line("stdout", `"half half half "`) +
			line("stdout", `""`) + line("stdout", `""`) + line("stdout", `\x1b[31mred\x1b[0m\xff`) +
			line("stdout", strings.Repeat("x", 4096)) + line("stderr", `"panic: no line end"`)
		if got := lines.String(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if s := m.Stats(); s.Printed != 0 || s.LogsDropped != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestPrinted_bounded: printed lines count against the same limit and level as log messages.
func TestPrinted_bounded(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m, lines := printing(t, e, host.Grants{Capabilities: []host.Capability{log.Grant{}}}, host.Limits{LogBytes: 1000})
		for range 2 {
			call(t, m, "print", string(prints(1, 100, "\n")), "")
		}
		if got := strings.Count(lines.String(), `msg="guest output"`); got != 2*(1000/64) {
			t.Errorf("%d lines", got)
		}
		if s := m.Stats(); s.LogsDropped != 2*(100-1000/64) {
			t.Errorf("%+v", s)
		}
		m, lines = printing(t, e, host.Grants{Capabilities: []host.Capability{log.Grant{Level: slog.LevelWarn}}}, host.Limits{})
		call(t, m, "print", string(prints(1, 100, "\n")), "")
		if s := m.Stats(); lines.String() != "" || s.LogsDropped != 0 || s.Printed != 0 {
			t.Errorf("%s, %+v", lines.String(), s)
		}
	})
}

// TestPrinted_counted: without the grant, lines are counted, and nothing of them is kept or shown.
func TestPrinted_counted(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m, lines := printing(t, e, host.Grants{}, host.Limits{Instances: 1})
		call(t, m, "print", string(prints(1, 1, "")), "")
		if s := m.Stats(); s.Printed != 0 {
			t.Errorf("nothing was printed: %+v", s)
		}
		call(t, m, "print", string(prints(1, 1, "one\ntwo\nthree")), "")
		call(t, m, "print", string(prints(2, 2, "a line\n")), "")
		call(t, m, "print", string(bytes.Repeat([]byte("\x01"), 100_000)), "")
		_, _ = m.Call(t.Context(), "trap", prints(2, 1, "panic"))
		if s := m.Stats(); s.Printed != 3+2+1+1 || s.LogsDropped != 0 || lines.String() != "" {
			t.Errorf("%+v\n%s", s, lines.String())
		}
	})
}
