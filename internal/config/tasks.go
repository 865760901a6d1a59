package config

import (
	"cmp"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
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

// Words is the wording that the config chose.
func (c *TasksConfig) Words(list []abi.Notice) (string, int) {
	return wordings()[cmp.Or(c.Wording, "events")](list, c.NotificationBytes)
}
