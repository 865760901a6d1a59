package cli

import (
	"context"
	"log/slog"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
)

// OpenTasks opens the tasks of a folder and returns their manager, the tools of a
// thread, and how to close it.
func OpenTasks(ctx context.Context, dir, thread string, own agent.Tools) (*background.Manager, agent.Tools, func(context.Context) error, error) {
	d, err := openTasks(ctx, &Config{Tasks: TasksConfig{Dir: dir}}, slog.New(slog.DiscardHandler), func(context.Context, string, abi.Notice) error { return nil })
	if err != nil {
		return nil, nil, nil, err
	}
	tools, err := d.tools(thread, own, func(string) {})
	return d.Manager, tools, d.close, err
}
