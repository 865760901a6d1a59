package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/notice"
	"github.com/mortise-dev/mortise/outbox"
	"github.com/mortise-dev/mortise/relay"
)

// TasksConfig is about background tasks and their news.
type TasksConfig struct {
	// Dir keeps tasks, news that nobody has used, and large outputs. Without it they
	// last as long as the process, and large outputs are cut. Beside Config.Store it keeps large
	// outputs, and the store the others.
	Dir string `yaml:"dir"`
	// Wording of news for the model: events, follow_up or reminder.
	Wording string `yaml:"wording" jsonschema:"enum=events,enum=follow_up,enum=reminder"`
	// NewsBytes bounds the news in one message. OutputBytes is the size from which an
	// output is kept in the folder, QuotaMiB what the folder may hold of them.
	NewsBytes   int `yaml:"news_bytes"`
	OutputBytes int `yaml:"output_bytes"`
	QuotaMiB    int `yaml:"quota_mib"`
}

// wordings are those of package notice, by their names in the config.
func wordings() map[string]func(news []abi.Notice, budget int) (string, int) {
	return map[string]func([]abi.Notice, int) (string, int){
		"events": notice.Events, "follow_up": notice.FollowUp, "reminder": notice.Reminder,
	}
}

func (c *TasksConfig) validate() error {
	if c.Wording != "" && wordings()[c.Wording] == nil {
		return fmt.Errorf("tasks.wording: is %.40q, must be events, follow_up or reminder", c.Wording)
	}
	for _, f := range []struct {
		name  string
		value int
		folds bool // needs the folder
	}{{"news_bytes", c.NewsBytes, false}, {"output_bytes", c.OutputBytes, true}, {"quota_mib", c.QuotaMiB, true}} {
		switch {
		case f.value < 0:
			return fmt.Errorf("tasks.%s: is negative", f.name)
		case f.value > 0 && f.folds && c.Dir == "":
			return fmt.Errorf("tasks.%s: says what to keep in a folder, and tasks.dir names none", f.name)
		}
	}
	return nil
}

// words is the wording that the config chose.
func (c *TasksConfig) words(news []abi.Notice) (string, int) {
	return wordings()[cmp.Or(c.Wording, "events")](news, c.NewsBytes)
}

// taskDesk is the background work of a conversation: the tasks, what they reported and
// nobody has used yet, and large outputs.
type taskDesk struct {
	*background.Manager

	out   *outbox.Outbox
	file  io.Closer    // of the outbox, nil in memory
	relay *relay.Relay // nil without a folder
}

// openTasks opens what the config names, with what the process before left of it.
// Deliver gets the news of the runtime's own tasks.
func openTasks(
	ctx context.Context, cfg *Config, logger *slog.Logger, deliver func(ctx context.Context, thread string, n abi.Notice) error,
) (*taskDesk, error) {
	d := &taskDesk{}
	err := d.open(ctx, cfg, logger, deliver)
	if err != nil {
		return nil, with(ExitConfig, errors.Join(err, d.close(ctx)))
	}
	return d, nil
}

func (d *taskDesk) open(
	ctx context.Context, cfg *Config, logger *slog.Logger, deliver func(ctx context.Context, thread string, n abi.Notice) error,
) (err error) {
	config := background.Config{Logger: logger, Deliver: deliver}
	news := outbox.Config{Logger: logger, Acknowledged: func(ctx context.Context, thread string, tasks ...string) {
		d.Acknowledge(ctx, thread, tasks...)
	}}
	if dir := cfg.path(cfg.Tasks.Dir); dir != "" {
		if news.Store, err = d.openOutbox(cfg.home, filepath.Join(dir, "outbox")); err != nil {
			if errors.Is(err, outbox.ErrLocked) {
				err = fmt.Errorf("%w; end the process that uses it, or give this one another %s", err, place(cfg.home))
			}
			return fmt.Errorf("config: tasks.dir: %w", err)
		}
		d.relay, err = relay.New(relay.Config{
			Folder: filepath.Join(dir, "relay"), MaxBytes: cfg.Tasks.OutputBytes, Quota: int64(cfg.Tasks.QuotaMiB) << 20, Logger: logger,
		})
		if err != nil {
			return fmt.Errorf("config: tasks.dir: %w", err)
		}
		config.Shorten = d.relay.Shorten
	}
	if d.out, err = outbox.New(ctx, news); err != nil {
		return err
	}
	config.Ledger = d.out
	if d.Manager, err = background.New(config); err != nil {
		return err
	}
	return d.Recover(ctx)
}

func place(h *home) string {
	if h != nil {
		return "store"
	}
	return "folder"
}

// openOutbox opens the outbox in the store, or the file at path if there is none.
func (d *taskDesk) openOutbox(h *home, path string) (outbox.Store, error) {
	if h == nil {
		file, err := outbox.OpenFile(outbox.FileConfig{Path: path})
		if err == nil {
			d.file = file
		}
		return file, err
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil, cmp.Or(err, fmt.Errorf("%s is an outbox, and the store %s has another; use up its news without the store, or remove it", path, h.name))
	}
	store, lock, err := h.outbox(filepath.Dir(path))
	d.file = lock
	return store, err
}

// close ends the tasks. What they reported and nobody used stays in the folder.
func (d *taskDesk) close(ctx context.Context) error {
	var errs []error
	if d.Manager != nil {
		errs = append(errs, d.Close(ctx))
	}
	if d.out != nil {
		errs = append(errs, d.out.Close(ctx))
	}
	if d.file != nil {
		errs = append(errs, d.file.Close())
	}
	if d.relay != nil {
		errs = append(errs, d.relay.Close())
	}
	return errors.Join(errs...)
}

// take is for agent.Config.
func (d *taskDesk) take(ctx context.Context, thread string) (agent.Delivery, error) {
	return d.out.Take(ctx, thread)
}

// tools adds to those of a thread the ones with which a model manages tasks, as long
// as the thread has tasks that a model may know of. Stop ends a run that cancels itself.
func (d *taskDesk) tools(thread string, own agent.Tools, stop func(runID string)) (agent.Tools, error) {
	tasks, err := d.Tools(background.ToolsConfig{Thread: thread, Stop: stop})
	if err != nil {
		return nil, err
	}
	more := []agent.Tools{tasks}
	if d.relay != nil {
		more = append(more, d.relay)
	}
	joined, err := agent.JoinTools(more...)
	if err != nil {
		return nil, err
	}
	known := func() bool {
		return slices.ContainsFunc(d.List(thread), func(i background.Info) bool { return i.Class != background.Housekeeping })
	}
	return agent.LayerTools(own, agent.ToolsWhile(joined, known)), nil
}
