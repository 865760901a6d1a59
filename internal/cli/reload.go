package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/plugins"
	"github.com/mortise-dev/mortise/summarizers"
)

// reloader swaps modules whose files have changed, at each SIGHUP, while a run uses them.
type reloader struct {
	parts   *parts
	hangups <-chan os.Signal // nil on a terminal
	out     *progress
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
			r.out.say("reload: no module was swapped, because the runs are over")
		default:
		}
	}
}

// reload swaps each module whose file is another one now. The grants and limits are
// those of the config that the program started with.
func (r *reloader) reload(ctx context.Context) {
	swapped := 0
	for i, s := range r.parts.set.Status() {
		if s.State != plugins.StateLoaded {
			continue
		}
		spec := r.parts.entries[i].Module
		swapped += r.one(ctx, s.Name, spec, s.Module, func() (host.Info, error) {
			err := r.parts.set.Swap(ctx, s.Name, spec, host.SwapOptions{})
			return r.parts.set.Status()[i].Module, err
		})
	}
	for _, p := range r.parts.policies {
		if p.spec.Wasm != nil {
			continue // bundled: there is no file
		}
		swapped += r.one(ctx, p.name, p.spec, p.policy.Info(), func() (host.Info, error) {
			_, err := p.policy.Swap(ctx, p.spec, summarizers.SwapOptions{})
			return p.policy.Info(), err
		})
	}
	if swapped == 0 && ctx.Err() == nil {
		r.out.say("reload: no module was swapped")
	}
}

// one swaps a module if its file has changed, and returns how many were swapped.
func (r *reloader) one(ctx context.Context, name string, spec host.Spec, was host.Info, swap func() (host.Info, error)) int {
	b, err := os.ReadFile(spec.Path)
	sum := sha256.Sum256(b)
	if err == nil && hex.EncodeToString(sum[:]) == was.SHA256 {
		return 0
	}
	// What cannot be read is left to the swap, which returns the reason.
	is, err := swap()
	switch {
	case err != nil && ctx.Err() != nil:
		r.out.say("reload: %s was not swapped, because the runs are over", name)
		return 0
	case err != nil:
		r.out.say("reload: %s", worded(err))
		r.note(ReloadReport{Module: name, From: was.SHA256, Error: worded(err)})
		return 0
	}
	r.out.say("reload: %s was swapped: sha256 %s -> %s", name, clip(was.SHA256, 13), clip(is.SHA256, 13))
	r.note(ReloadReport{Module: name, From: was.SHA256, To: is.SHA256})
	return 1
}

// rolledBack reports a swap that was taken back.
func rolledBack(p *progress, note func(ReloadReport)) func(host.SwapEvent) {
	return func(e host.SwapEvent) {
		if e.Kind != host.SwapRolledBack {
			return
		}
		reason := fmt.Sprintf("rolled back after %d failures in %d calls: %s", e.Failures, e.Calls, cmp.Or(e.Reason, "it gives no reason"))
		p.say("reload: %s was rolled back: sha256 %s -> %s: %s", e.Module, clip(e.SHA256, 13), clip(e.CurrentSHA256, 13),
			strings.TrimPrefix(reason, "rolled back "))
		note(ReloadReport{Module: e.Module, From: e.SHA256, RolledBackTo: e.CurrentSHA256, Error: reason})
	}
}
