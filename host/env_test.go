package host_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/host"
	logcap "github.com/mortise-dev/mortise/host/capability/log"
	"github.com/mortise-dev/mortise/host/hosttest"
)

func TestGrants_LogLevel(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		for level, want := range map[slog.Leveler][]string{
			nil:             {"DEBUG", "INFO", "WARN", "ERROR"},
			slog.LevelInfo:  {"INFO", "WARN", "ERROR"},
			slog.LevelWarn:  {"WARN", "ERROR"},
			slog.LevelError: {"ERROR"},
		} {
			var lines logBuffer
			h := newHost(t, host.Config{Engine: hosttest.Engine(e), Logger: logger(&lines, slog.LevelDebug)})
			m, err := h.Load(t.Context(), host.Spec{Path: peer(t, "log"), Grants: host.Grants{Capabilities: []host.Capability{logcap.Grant{Level: level}}}})
			if err != nil {
				t.Fatal(err)
			}
			call(t, m, "run_test", "", "")
			for _, name := range []string{"DEBUG", "INFO", "WARN", "ERROR"} {
				wanted := strings.Contains(strings.Join(want, " "), name)
				if got := strings.Contains(lines.String(), "level="+name+` msg="guest log" module=log export=run_test`); got != wanted {
					t.Errorf("level %v: %s is there: %t\n%s", level, name, got, lines.String())
				}
			}
			if m.Stats().LogsDropped != 0 {
				t.Errorf("messages below the level were counted as dropped: %+v", m.Stats())
			}
		}
	})
}

// TestGrants_getLogLevel holds that both engines report what is logged, in the numbers
// of Extism.
func TestGrants_getLogLevel(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		for want, g := range map[string]host.Grants{
			"\xff\xff\xff\x7f": {},
			"\x01\x00\x00\x00": {Capabilities: []host.Capability{logcap.Grant{}}},
			"\x02\x00\x00\x00": {Capabilities: []host.Capability{logcap.Grant{Level: slog.LevelInfo}}},
			"\x03\x00\x00\x00": {Capabilities: []host.Capability{logcap.Grant{Level: slog.LevelWarn}}},
			"\x04\x00\x00\x00": {Capabilities: []host.Capability{logcap.Grant{Level: slog.LevelError}}},
		} {
			call(t, load(t, e, host.Spec{Path: wat("log_level"), Grants: g}), "level", "", want)
		}
	})
}
