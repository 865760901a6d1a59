package mortise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/blob"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/thread"
)

// Runtime runs agents. Make one with [New], and then call [Runtime.Start].
type Runtime struct {
	cfg       Config
	tasks     *background.Manager
	inbox     *inbox.Inbox
	outputs   *blob.Store
	compactor *compaction.Compactor // nil compacts nothing
	runs      *agentrun.Runtime
	box       *mailbox.Mailbox

	observers observers

	upkeep  sync.WaitGroup // of outputs
	endKeep context.CancelFunc

	mu    sync.Mutex
	setup *setup
	// live are the executions in this process, by thread.
	live map[string]*execution
}

// New checks the config and connects the parts. Nothing runs before [Runtime.Start].
func New(ctx context.Context, cfg Config) (*Runtime, error) {
	cfg, err := cfg.checked()
	if err != nil {
		return nil, fmt.Errorf("mortise: %w", err)
	}
	r := &Runtime{
		cfg: cfg, setup: setupOf(&cfg), observers: append(slices.Clone(cfg.Observers), story(cfg.Logger)), live: make(map[string]*execution),
	}
	if err := r.connect(ctx); err != nil {
		return nil, fmt.Errorf("mortise: %w", errors.Join(err, r.Close(ctx)))
	}
	return r, nil
}

func (r *Runtime) connect(ctx context.Context) (err error) {
	r.inbox, err = inbox.New(ctx, inbox.Config{
		Store: r.cfg.Inbox, Shared: r.cfg.Shared, Logger: r.cfg.Logger, Debounce: r.cfg.WakeDelay,
		Acknowledged: func(ctx context.Context, thread string, tasks ...string) { r.tasks.Acknowledge(ctx, thread, tasks...) },
		Expired:      r.recover,
	})
	if err != nil {
		return err
	}
	outputs := r.cfg.Outputs
	outputs.Store, outputs.Logger = r.cfg.Store, cmp.Or(outputs.Logger, r.cfg.Logger)
	if r.outputs, err = blob.New(outputs); err != nil {
		return err
	}
	tasks := r.cfg.Tasks
	tasks.Shorten = r.outputs.Shorten
	tasks.Ledger, tasks.Logger = r.inbox, cmp.Or(tasks.Logger, r.cfg.Logger)
	observe := tasks.Observe
	tasks.Observe = func(e background.Event) {
		r.observers.task(e)
		if observe != nil {
			observe(e)
		}
	}
	if r.tasks, err = background.New(tasks); err != nil {
		return err
	}
	requeue := func(ctx context.Context, req mailbox.Request) (mailbox.Submission, error) {
		return r.box.SubmitBackground(ctx, req)
	}
	if r.runs, err = agentrun.New(agentrun.Config{Agent: r.agentOf, Requeue: requeue, Patience: r.cfg.Patience}); err != nil {
		return err
	}
	if err := r.connectCompaction(ctx); err != nil {
		return err
	}
	box := r.cfg.Mailbox
	box.Store, box.Runtime, box.Wake, box.Logger = r.cfg.Store, runs{r.runs, r}, agentrun.Wake, cmp.Or(box.Logger, r.cfg.Logger)
	box.Observers = append(slices.Clone(box.Observers), setups{r})
	r.box, err = mailbox.New(ctx, box)
	return err
}

func (r *Runtime) connectCompaction(ctx context.Context) (err error) {
	if r.cfg.Compaction == nil {
		return nil
	}
	c := *r.cfg.Compaction
	c.Spawn, c.LiveTasks, c.Logger = r.tasks.Housekeep, r.tasks.LiveTasks, cmp.Or(c.Logger, r.cfg.Logger)
	if c.Store == nil {
		c.Store = r.runs.Compactions(thread.On(r.cfg.Store))
	}
	observe, idle := c.Observe, context.WithoutCancel(ctx)
	c.Keep = r.keeps(&c) //nolint:contextcheck // the policy has no context
	c.Observe = func(e compaction.Event) {
		r.compacted(idle, e)
		if observe != nil {
			observe(e)
		}
	}
	r.compactor, err = compaction.New(c)
	return err
}

// keeps stores what a compaction replaces by a handle; nil if it replaces nothing.
func (r *Runtime) keeps(c *compaction.Config) func(thread, label, text string) (string, error) {
	if c.Policy.MaskTokens == 0 {
		return nil
	}
	return func(thread, label, text string) (string, error) {
		return r.outputs.Put(context.Background(), thread, label, text) //nolint:forbidigo // the policy has no context
	}
}

// Start takes over what an earlier process left: background tasks, dispatches, notifications.
// Then it executes what is queued.
func (r *Runtime) Start(ctx context.Context) error {
	if err := r.tasks.Recover(ctx); err != nil {
		return fmt.Errorf("mortise: background tasks: %w", err)
	}
	if err := r.box.Start(ctx); err != nil {
		return fmt.Errorf("mortise: mailbox: %w", err)
	}
	r.inbox.Start(agentrun.Waker(r.box))
	r.maintain(ctx)
	return nil
}

// maintain deletes old outputs until the Runtime is closed.
func (r *Runtime) maintain(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.endKeep != nil {
		return
	}
	ctx, r.endKeep = context.WithCancel(context.WithoutCancel(ctx))
	r.upkeep.Go(func() { r.outputs.Maintain(ctx) })
}

// recover takes over the tasks of a process that has ended.
func (r *Runtime) recover(ctx context.Context) {
	if err := r.tasks.Recover(ctx); err != nil {
		r.cfg.Logger.WarnContext(ctx, "background tasks of another process cannot be recovered", "error", err)
	}
}

// Mailbox takes requests for runs. It is closed by [Runtime.Close].
func (r *Runtime) Mailbox() *mailbox.Mailbox { return r.box }

// Tasks runs background tasks. It is closed by [Runtime.Close].
func (r *Runtime) Tasks() *background.Manager { return r.tasks }

// Outputs has the large texts of background tasks and tools.
func (r *Runtime) Outputs() *blob.Store { return r.outputs }

// Compactor returns nil when Config.Compaction is nil.
func (r *Runtime) Compactor() *compaction.Compactor { return r.compactor }

// Close stops claiming, asks runs under way to end at their next checkpoint, and waits for
// them until ctx is done. It is idempotent.
func (r *Runtime) Close(ctx context.Context) error {
	var errs []error
	if r.box != nil {
		errs = append(errs, r.box.Close(ctx))
	}
	if r.tasks != nil {
		errs = append(errs, r.tasks.Close(ctx))
	}
	if r.inbox != nil {
		errs = append(errs, r.inbox.Close(ctx))
	}
	r.mu.Lock()
	if r.endKeep != nil {
		r.endKeep()
	}
	r.mu.Unlock()
	r.upkeep.Wait()
	return errors.Join(errs...)
}
