package replaycmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/blob"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/store/memstore"
)

// taskDesk is the background work of a conversation: the tasks, their notifications, and large outputs.
type taskDesk struct {
	*background.Manager

	inbox *inbox.Inbox
	store program.InboxStore
	blobs *blob.Store
}

// openTasks opens what the config names, with what the process before left of it.
func openTasks(ctx context.Context, cfg *program.Setup, logger *slog.Logger) (*taskDesk, error) {
	d := &taskDesk{}
	if err := d.open(ctx, cfg, logger); err != nil {
		return nil, exit.With(exit.Config, errors.Join(err, d.close(ctx)))
	}
	return d, nil
}

func (d *taskDesk) open(ctx context.Context, cfg *program.Setup, logger *slog.Logger) (err error) {
	if cfg.Tasks.Dir != "" {
		if d.store, err = program.OpenInbox(ctx, cfg, logger); err != nil {
			return fmt.Errorf("config: %w", err)
		}
	} else {
		d.store.Store = memstore.New()
	}
	outputs := cfg.Outputs()
	if outputs.Store, outputs.Logger = d.store.Store, logger; cfg.Home != nil {
		outputs.Store = cfg.Home.Store
	}
	if d.blobs, err = blob.New(outputs); err != nil {
		return fmt.Errorf("config: tasks: %w", err)
	}
	d.inbox, err = inbox.New(ctx, inbox.Config{
		Store: d.store.Store, Shared: d.store.Shared, Logger: logger,
		Acknowledged: func(ctx context.Context, thread string, tasks ...string) { d.Acknowledge(ctx, thread, tasks...) },
		Expired: func(ctx context.Context) {
			if err := d.Recover(ctx); err != nil {
				logger.WarnContext(ctx, "background tasks of another process cannot be recovered", "error", err)
			}
		},
	})
	if err != nil {
		return err
	}
	if d.Manager, err = background.New(background.Config{Ledger: d.inbox, Shorten: d.blobs.Shorten, Logger: logger}); err != nil {
		return err
	}
	return d.Recover(ctx)
}

// close ends the tasks. Notifications that were not acknowledged stay in the store.
func (d *taskDesk) close(ctx context.Context) error {
	var errs []error
	if d.Manager != nil {
		errs = append(errs, d.Close(ctx))
	}
	if d.inbox != nil {
		errs = append(errs, d.inbox.Close(ctx))
	}
	errs = append(errs, d.store.End(ctx))
	return errors.Join(errs...)
}

// take is for agent.Config.
func (d *taskDesk) take(ctx context.Context, thread string) (agent.Delivery, error) {
	return d.inbox.Take(ctx, thread)
}

// tools adds to those of a thread the ones with which a model manages tasks, as long
// as the thread has tasks that a model may know of. Stop ends a run that cancels itself.
func (d *taskDesk) tools(thread string, own agent.Tools, stop func(runID string)) (agent.Tools, error) {
	tasks, err := d.Tools(background.ToolsConfig{Thread: thread, Stop: stop})
	if err != nil {
		return nil, err
	}
	joined, err := agent.JoinTools(tasks, d.blobs.Tools(thread))
	if err != nil {
		return nil, err
	}
	known := func() bool {
		return slices.ContainsFunc(d.List(thread), func(i background.Info) bool { return i.Class != background.Housekeeping })
	}
	return agent.LayerTools(own, agent.ToolsWhile(joined, known)), nil
}
