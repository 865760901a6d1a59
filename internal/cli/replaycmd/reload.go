package replaycmd

import (
	"context"
	"os"
	"sync"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/plugins"
	"github.com/mortise-dev/mortise/summarizers"
)

// reloader swaps modules whose files have changed, at each SIGHUP, while a run uses them.
type reloader struct {
	parts   *program.Parts
	hangups <-chan os.Signal // nil on a terminal
	out     *term.Progress
	// asked is called at each signal, note for each module that a signal changed or did not.
	asked func()
	note  func(ReloadReport)
}

// watch reloads at each signal, one that came before included, until the function that it
// returns was called.
func (r *reloader) watch(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-r.hangups:
				r.asked()
				r.reload(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
		select {
		case <-r.hangups:
			r.asked()
			r.out.Say("reload: no module was swapped, because the runs are over")
		default:
		}
	}
}

// reload swaps each module whose file is another one now. The grants and limits are
// those of the config that the program started with.
func (r *reloader) reload(ctx context.Context) {
	swapped := 0
	for i, s := range r.parts.Set.Status() {
		if s.State != plugins.StateLoaded {
			continue
		}
		spec := r.parts.Entries[i].Module
		swapped += r.one(ctx, s.Name, spec, s.Module, func() (host.Info, error) {
			err := r.parts.Set.Swap(ctx, s.Name, spec, host.SwapOptions{})
			return r.parts.Set.Status()[i].Module, err
		})
	}
	for _, p := range r.parts.Policies {
		if p.Spec.Wasm != nil {
			continue // bundled: there is no file
		}
		swapped += r.one(ctx, p.Name, p.Spec, p.Policy.Info(), func() (host.Info, error) {
			_, err := p.Policy.Swap(ctx, p.Spec, summarizers.SwapOptions{})
			return p.Policy.Info(), err
		})
	}
	if swapped == 0 && ctx.Err() == nil {
		r.out.Say("reload: no module was swapped")
	}
}

// one swaps a module if its file has changed, and returns how many were swapped.
func (r *reloader) one(ctx context.Context, name string, spec host.Spec, was host.Info, swap func() (host.Info, error)) int {
	b, err := os.ReadFile(spec.Path)
	if err == nil && program.HexSum(b) == was.SHA256 {
		return 0
	}
	// What cannot be read is left to the swap, which returns the reason.
	is, err := swap()
	switch {
	case err != nil && ctx.Err() != nil:
		r.out.Say("reload: %s was not swapped, because the runs are over", name)
		return 0
	case err != nil:
		r.out.Say("reload: %s", exit.Text(err))
		r.note(ReloadReport{Module: name, From: was.SHA256, Error: exit.Text(err)})
		return 0
	}
	r.out.Say("reload: %s was swapped: sha256 %s -> %s", name, term.Clip(was.SHA256, 13), term.Clip(is.SHA256, 13))
	r.note(ReloadReport{Module: name, From: was.SHA256, To: is.SHA256})
	return 1
}

// rolledBack notes a swap that was taken back.
func (c *collector) rolledBack(e host.SwapEvent) {
	if e.Kind == host.SwapRolledBack {
		c.reloaded(ReloadReport{Module: e.Module, From: e.SHA256, RolledBackTo: e.CurrentSHA256, Error: program.RollBackReason(e)})
	}
}
