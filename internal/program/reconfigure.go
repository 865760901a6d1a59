package program

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/serve"
)

// unchangedHint ends the refusal of a reload.
const unchangedHint = "nothing was changed"

// reload reads the config again and applies what has changed in it, and in the files that it names: all of
// it, or nothing after an error.
func (p *Program) reload(ctx context.Context) ([]string, error) {
	p.reloading.Lock()
	defer p.reloading.Unlock()
	changed, err := p.reconfigure(ctx)
	if err != nil {
		p.logger.WarnContext(ctx, "reload refused", "error", exit.Text(err))
		return nil, &serve.Refused{Reason: term.Clip(exit.Text(err), 1000), Hint: unchangedHint}
	}
	p.logger.InfoContext(ctx, "reloaded", "changed", strings.Join(changed, ", "))
	return changed, nil
}

func (p *Program) reconfigure(ctx context.Context) ([]string, error) {
	cfg, err := p.Read()
	if err == nil {
		err = p.now.Load().cfg.NeedsRestart(cfg.Config)
	}
	if err != nil {
		return nil, err
	}
	next, err := p.now.Load().next(ctx, cfg, p.logger)
	var changed []string
	if err == nil {
		changed, err = p.apply(ctx, next)
	}
	if err != nil {
		next.closeExcept(context.WithoutCancel(ctx), p.now.Load(), p.logger)
	}
	return changed, err
}

// apply makes next the live one.
func (p *Program) apply(ctx context.Context, next *current) ([]string, error) {
	runtime, err := next.runtime()
	access, accessErr := next.access()
	forward, proxyErr := p.proxy.with(next, p) //nolint:contextcheck // records are written in the background
	if err := cmp.Or(errors.Join(err, accessErr, proxyErr), access.CheckAccess()); err != nil {
		return nil, err
	}
	swapped, undo, err := p.modules.refresh(ctx, next.parts)
	if err != nil {
		return nil, err
	}
	idle, err := p.Runtime.Reconfigure(runtime) //nolint:contextcheck // threads that are compacted outlive the request
	if err != nil {
		undo()
		return nil, err
	}
	if err := p.server.Reconfigure(access); err != nil { // it was checked above
		return nil, err
	}
	p.modules.adopt(next.parts)
	was := p.now.Swap(next)
	p.retiring.add(was, next, p.logger, idle, p.proxy.replace(forward)) //nolint:contextcheck // it outlives the request
	return was.cfg.Changes(next.cfg.Config, swapped), nil
}
