package checkcmd

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/cli/check"
	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/internal/term"
)

const doctorLong = `Check the machine on which mortise serve is to run: the config as mortise validate does, and then
the store, the providers, the MCP servers, the ports and the folders.

The store is opened to be read and is never made or migrated. A provider gets one GET for its
list of models, with the key, which costs nothing; no model is asked. MCP servers are started
as mortise serve starts them, list their tools, and are ended. Nothing listens after it.
Each check ends at --timeout.

Exit codes: 0 nothing failed, 1 a check failed, 2 wrong command line, 3 wrong config.`

type doctorOptions struct {
	config, store, listen, admin string

	asJSON  bool
	timeout time.Duration
}

// NewDoctor makes mortise doctor.
func NewDoctor(s command.Streams) *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Check the machine, the store and the services that a config needs",
		Long:    doctorLong,
		Example: "  mortise doctor --config mortise.yaml",
		Args:    command.TakesNone,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), s, &o) },
	}
	f := cmd.Flags()
	command.ConfigFlag(f, &o.config, "")
	f.StringVar(&o.store, "store", "", "store (overrides MORTISE_STORE and store of the config)")
	f.StringVar(&o.listen, "listen", "", "HOST:PORT of the API (overrides MORTISE_LISTEN and serve.listen)")
	f.StringVar(&o.admin, "admin", "", "HOST:PORT of the operator's API (overrides MORTISE_ADMIN and serve.admin)")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	f.DurationVar(&o.timeout, "timeout", 15*time.Second, "how long a check may take")
	return cmd
}

// doctorSchema names the format of what mortise doctor prints.
const doctorSchema = "mortise.doctor.v1"

func runDoctor(ctx context.Context, s command.Streams, o *doctorOptions) error {
	file := config.FileOf(o.config)
	data, err := config.Read(file)
	if err != nil {
		return exit.With(exit.Config, err)
	}
	cfg, problems := s.Links.Problems(data)
	var found []check.Finding
	if len(problems) == 0 {
		cfg.In(filepath.Dir(file))
		cfg.Store = cfg.StoreOf(o.store)
		if err := cfg.Serve.Override(o.listen, o.admin, 0); err != nil {
			return exit.With(exit.Config, err)
		}
		problems = cfg.Resolve(ctx, data, term.NewProgress(s.Err, o.asJSON).Say)
		if len(cfg.Agents) == 0 {
			problems = append(problems, config.Problem{Problem: "agents: is empty, and mortise serve needs one", Code: exit.Config})
		}
		found = check.Run(ctx, checks(cfg), o.timeout)
	}
	found = append(configFindings(file, problems), found...)
	if o.asJSON {
		err = term.WriteJSON(s.Out, map[string]any{"schema": doctorSchema, "file": file, "checks": found})
	} else {
		err = check.Print(s.Out, found)
	}
	bad := 0
	for _, f := range found {
		if f.State == check.Fail {
			bad++
		}
	}
	switch {
	case err != nil || bad == 0:
		return err
	case len(problems) > 0:
		return exit.With(exit.Config, fmt.Errorf("%s: %s", file, term.Counted(len(problems), "problem")))
	}
	return exit.With(exit.Run, fmt.Errorf("%s failed", term.Counted(bad, "check")))
}

func configFindings(file string, problems []config.Problem) []check.Finding {
	if len(problems) == 0 {
		return []check.Finding{{Check: "config", State: check.OK, Detail: file}}
	}
	var out []check.Finding
	for _, p := range problems {
		f := check.Finding{Check: "config", State: check.Fail, Detail: p.Problem}
		if p.Line > 0 {
			f.Detail = fmt.Sprintf("%s:%d: %s", file, p.Line, p.Problem)
		}
		out = append(out, f)
	}
	return out
}

// checks are those of what the config names.
func checks(c *program.Setup) []check.Probe {
	out := []check.Probe{
		{Name: "store", Do: func(ctx context.Context) check.Finding { return checkStore(ctx, c) }},
		{Name: "serve.listen", Do: func(ctx context.Context) check.Finding { return checkPort(ctx, c.Serve.Listen) }},
		{Name: "serve.admin", Do: func(ctx context.Context) check.Finding { return checkPort(ctx, c.Serve.Admin) }},
		{Name: "file descriptors", Do: func(context.Context) check.Finding { return checkFiles() }},
	}
	out = append(out, checkFolders(c)...)
	out = append(out, checkModels(c)...)
	return append(out, checkServers(c)...)
}

// checkPort listens for a moment.
func checkPort(ctx context.Context, address string) check.Finding {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		return check.Failed("another mortise serve may run here: mortise status asks it", err)
	}
	return check.Fine("%s is free", address)
}
