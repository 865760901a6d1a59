package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

const doctorLong = `Check the machine on which mortise serve is to run: the config as mortise validate does, and then
the store, the providers, the MCP servers, the ports and the folders.

The store is opened to be read and is never made or migrated. A provider gets one GET for its
list of models, with the key, which costs nothing; no model is asked. MCP servers are started
as mortise serve starts them, list their tools, and are ended. Nothing listens after it.
Each check ends at --timeout.

Exit codes: 0 nothing failed, 1 a check failed, 2 wrong command line, 3 wrong config.`

// States of a check.
const (
	checkOK   = "ok"
	checkWarn = "warn"
	checkFail = "fail"
)

// finding is what a check came to.
type finding struct {
	Check  string `json:"check"`
	State  string `json:"state"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
}

func fine(format string, args ...any) finding {
	return finding{State: checkOK, Detail: fmt.Sprintf(format, args...)}
}

func warned(hint, format string, args ...any) finding {
	return finding{State: checkWarn, Detail: fmt.Sprintf(format, args...), Hint: hint}
}

func failed(hint string, err error) finding {
	return finding{State: checkFail, Detail: worded(err), Hint: hint}
}

// check is one thing that is looked at.
type check struct {
	name string
	look func(ctx context.Context) finding
}

type doctorOptions struct {
	serveOptions

	asJSON  bool
	timeout time.Duration
}

func newDoctor(s Streams) *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Check the machine, the store and the services that a config needs",
		Long:    doctorLong,
		Example: "  mortise doctor --config mortise.yaml",
		Args:    takesNone,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), s, &o) },
	}
	f := cmd.Flags()
	configFlag(f, &o.config, "")
	f.StringVar(&o.store, "store", "", "store (overrides MORTISE_STORE and store of the config)")
	f.StringVar(&o.listen, "listen", "", "HOST:PORT of the API (overrides MORTISE_LISTEN and serve.listen)")
	f.StringVar(&o.admin, "admin", "", "HOST:PORT of the operator's API (overrides MORTISE_ADMIN and serve.admin)")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	f.DurationVar(&o.timeout, "timeout", 15*time.Second, "how long a check may take")
	return cmd
}

// doctorSchema names the format of what mortise doctor prints.
const doctorSchema = "mortise.doctor.v1"

func runDoctor(ctx context.Context, s Streams, o *doctorOptions) error {
	file := configFile(o.config)
	data, err := readConfig(file)
	if err != nil {
		return with(ExitConfig, err)
	}
	cfg, problems := s.links.problemsOf(data)
	var found []finding
	if len(problems) == 0 {
		cfg.dir = filepath.Dir(file)
		cfg.Store = o.storeOf(cfg)
		if err := cfg.Serve.override(o.listen, o.admin, 0); err != nil {
			return with(ExitConfig, err)
		}
		problems = cfg.resolve(ctx, data, newProgress(s.Err, o.asJSON))
		if len(cfg.Agents) == 0 {
			problems = append(problems, Problem{Problem: "agents: is empty, and mortise serve needs one", code: ExitConfig})
		}
		found = lookAt(ctx, cfg.checks(), o.timeout)
	}
	found = append(configFindings(file, problems), found...)
	if o.asJSON {
		err = writeJSON(s.Out, map[string]any{"schema": doctorSchema, "file": file, "checks": found})
	} else {
		err = printFindings(s.Out, found)
	}
	bad := 0
	for _, f := range found {
		if f.State == checkFail {
			bad++
		}
	}
	switch {
	case err != nil || bad == 0:
		return err
	case len(problems) > 0:
		return with(ExitConfig, fmt.Errorf("%s: %s", file, counted(len(problems), "problem")))
	}
	return with(ExitRun, fmt.Errorf("%s failed", counted(bad, "check")))
}

func configFindings(file string, problems []Problem) []finding {
	if len(problems) == 0 {
		return []finding{{Check: "config", State: checkOK, Detail: file}}
	}
	var out []finding
	for _, p := range problems {
		f := finding{Check: "config", State: checkFail, Detail: p.Problem}
		if p.Line > 0 {
			f.Detail = fmt.Sprintf("%s:%d: %s", file, p.Line, p.Problem)
		}
		out = append(out, f)
	}
	return out
}

// lookAt makes all checks at once, each with a deadline.
func lookAt(ctx context.Context, checks []check, timeout time.Duration) []finding {
	out := make([]finding, len(checks))
	var wg sync.WaitGroup
	for i, c := range checks {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			out[i] = c.look(ctx)
			if ctx.Err() != nil && out[i].State == checkFail {
				out[i].Detail = fmt.Sprintf("no result within %s: %s", timeout, out[i].Detail)
			}
			out[i].Check = c.name
		})
	}
	wg.Wait()
	return out
}

func printFindings(out io.Writer, found []finding) error {
	t := newTable(out)
	for _, f := range found {
		t.row("%s\t%s\t%s", f.State, plain(f.Check, 60), whole(f.Detail))
		if f.Hint != "" {
			t.row("\t\t%s", whole(f.Hint))
		}
	}
	return t.end()
}

// checks are those of what the config names.
func (c *Config) checks() []check {
	out := []check{
		{"store", c.checkStore},
		{"serve.listen", func(ctx context.Context) finding { return checkPort(ctx, c.Serve.Listen) }},
		{"serve.admin", func(ctx context.Context) finding { return checkPort(ctx, c.Serve.Admin) }},
		{"file descriptors", func(context.Context) finding { return checkFiles() }},
	}
	out = append(out, c.checkFolders()...)
	out = append(out, c.checkModels()...)
	return append(out, c.checkServers()...)
}

// checkPort listens for a moment.
func checkPort(ctx context.Context, address string) finding {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		return failed("another mortise serve may run here: mortise status asks it", err)
	}
	return fine("%s is free", address)
}
