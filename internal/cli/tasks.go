package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/blob"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

// TasksConfig is about background tasks and their notifications.
type TasksConfig struct {
	// Dir is a folder for tasks and their notifications. Without it they last as long as the process. With Config.Store, the
	// store has them.
	Dir string `yaml:"dir"`
	// Wording of notifications for the model: events, follow_up or reminder.
	Wording string `yaml:"wording" jsonschema:"enum=events,enum=follow_up,enum=reminder"`
	// NotificationBytes bounds the notifications in one message. OutputBytes is the size from which an
	// output is stored under a handle, QuotaMiB what all of them may have.
	NotificationBytes int `yaml:"notification_bytes"`
	OutputBytes       int `yaml:"output_bytes"`
	QuotaMiB          int `yaml:"quota_mib"`
}

// wordings are those of package inbox, by their names in the config.
func wordings() map[string]func(list []abi.Notice, budget int) (string, int) {
	return map[string]func([]abi.Notice, int) (string, int){
		"events": inbox.Events, "follow_up": inbox.FollowUp, "reminder": inbox.Reminder,
	}
}

func (c *TasksConfig) validate() error {
	if c.Wording != "" && wordings()[c.Wording] == nil {
		return fmt.Errorf("tasks.wording: is %.40q, must be events, follow_up or reminder", c.Wording)
	}
	for name, value := range map[string]int{"notification_bytes": c.NotificationBytes, "output_bytes": c.OutputBytes, "quota_mib": c.QuotaMiB} {
		if value < 0 {
			return fmt.Errorf("tasks.%s: is negative", name)
		}
	}
	return nil
}

// outputs bounds large outputs.
func (c *Config) outputs() blob.Config {
	return blob.Config{
		InlineBytes: c.Tasks.OutputBytes, MaxBytes: int64(c.Tasks.QuotaMiB) << 20,
		MaxAge: time.Duration(c.Serve.Retention.Outputs), MaxCount: c.Serve.Retention.MaxOutputs,
	}
}

// words is the wording that the config chose.
func (c *TasksConfig) words(list []abi.Notice) (string, int) {
	return wordings()[cmp.Or(c.Wording, "events")](list, c.NotificationBytes)
}

// taskDesk is the background work of a conversation: the tasks, their notifications, and large outputs.
type taskDesk struct {
	*background.Manager

	inbox *inbox.Inbox
	store inboxStore
	blobs *blob.Store
}

// openTasks opens what the config names, with what the process before left of it.
func openTasks(ctx context.Context, cfg *Config, logger *slog.Logger) (*taskDesk, error) {
	d := &taskDesk{}
	if err := d.open(ctx, cfg, logger); err != nil {
		return nil, with(ExitConfig, errors.Join(err, d.close(ctx)))
	}
	return d, nil
}

func (d *taskDesk) open(ctx context.Context, cfg *Config, logger *slog.Logger) (err error) {
	if cfg.Tasks.Dir != "" {
		if d.store, err = openInbox(ctx, cfg, logger); err != nil {
			return fmt.Errorf("config: %w", err)
		}
	} else {
		d.store.store = memstore.New()
	}
	outputs := cfg.outputs()
	if outputs.Store, outputs.Logger = d.store.store, logger; cfg.home != nil {
		outputs.Store = cfg.home.store
	}
	if d.blobs, err = blob.New(outputs); err != nil {
		return fmt.Errorf("config: tasks: %w", err)
	}
	d.inbox, err = inbox.New(ctx, inbox.Config{
		Store: d.store.store, Shared: d.store.shared, Logger: logger,
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
	errs = append(errs, d.store.end(ctx))
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
