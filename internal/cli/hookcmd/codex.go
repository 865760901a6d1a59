package hookcmd

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"

	"github.com/mortise-dev/mortise/hook/install"
	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/term"
)

// codexTrust reports whether Codex runs the hooks, and has it trust them if the user asked for that.
func (o *installOptions) codexTrust(ctx context.Context, s command.Streams) error {
	path, err := exec.LookPath(o.agent.Command)
	if err != nil {
		_, err = fmt.Fprintln(s.Out, "  note: codex is not in PATH, so its trust could not be checked; Codex skips hooks that are not trusted")
		return err
	}
	// No line that is merely like ours: another one could come from the project's folder.
	registered := func(command string) bool { return slices.Contains(o.lines, command) }
	hooks, err := install.CodexHooks(ctx, path, o.project, registered, nil, false)
	if err != nil {
		return exit.With(exit.Run, err)
	}
	if len(hooks) == 0 {
		return exit.With(exit.Run, errors.New("codex does not see the hooks; a project's hooks need a folder that Codex trusts"))
	}
	missing := untrusted(hooks)
	if missing > 0 && o.trust {
		fmt.Fprintln(s.Out, "to be trusted by Codex:")
		for _, h := range hooks {
			fmt.Fprintf(s.Out, "  %s: %s\n", h.Event, h.Command)
		}
		if hooks, err = install.CodexHooks(ctx, path, o.project, registered, nil, true); err != nil {
			return exit.With(exit.Run, err)
		}
		missing = untrusted(hooks)
	}
	switch {
	case missing == 0:
		fmt.Fprintf(s.Out, "  trusted: Codex runs all %s\n", term.Counted(len(hooks), "hook"))
		return nil
	case o.trust:
		return exit.With(exit.Run, fmt.Errorf("codex does not trust %s", term.Counted(missing, "hook")))
	default:
		fmt.Fprintf(s.Out, "  NOT TRUSTED: Codex skips %s in silence until you trust them: mortise hook install codex --trust, or /hooks in Codex\n", term.Counted(missing, "hook"))
		return nil
	}
}

func untrusted(hooks []install.TrustedHook) int {
	n := 0
	for i := range hooks {
		if !hooks[i].Runs() {
			n++
		}
	}
	return n
}

// codexStatus is one line about Codex's trust.
func (o *installOptions) codexStatus(ctx context.Context) string {
	path, err := exec.LookPath(o.agent.Command)
	if err != nil {
		return "unknown: codex is not in PATH"
	}
	hooks, err := install.CodexHooks(ctx, path, o.project, o.mark().MatchString, nil, false)
	switch n := untrusted(hooks); {
	case err != nil:
		return "unknown: " + exit.Text(err)
	case n > 0:
		return fmt.Sprintf("NOT TRUSTED: %d of %d hooks are skipped in silence; mortise hook install codex --trust", n, len(hooks))
	case len(hooks) == 0:
		return "Codex does not see the hooks"
	default:
		return fmt.Sprintf("trusted: %s", term.Counted(len(hooks), "hook"))
	}
}
