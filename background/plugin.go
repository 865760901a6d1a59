package background

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// PluginName is the name of the [Plugin].
const PluginName = "background_tasks"

// ViewKey is the state key of the [Plugin], with the live tasks of the thread.
const ViewKey = "background_tasks"

// Bounds of what the plugin shows to the model.
const (
	maxLiveListed = 32
	maxLiveText   = 160
	// refreshSteps is how many steps pass before an unchanged list of live tasks is
	// shown again.
	refreshSteps = 8
)

// Plugin is a phases.Plugin that shows the model which tasks of the thread are live, so that
// a compaction cannot make it forget them. It is safe for concurrent use.
type Plugin struct{ m *Manager }

// Plugin makes the plugin.
func (m *Manager) Plugin() *Plugin { return &Plugin{m: m} }

// Describe lists what the plugin subscribes to.
func (*Plugin) Describe() abi.Description {
	return abi.Description{
		Name: PluginName, Version: "1.0.0", ABI: abi.VersionRange{Min: abi.Version, Max: abi.Version},
		Summary: "shows the live background tasks to the model",
		Hooks:   []abi.Hook{{Phase: abi.BeforeInference, Mode: abi.ModeTransform, OnFailure: abi.FailIgnore}},
		Tools:   listed(),
		State:   []abi.StateKey{{Name: ViewKey, Scope: abi.ScopeRun}},
	}
}

// OnPhase puts the list of live tasks before the model when it has changed, and
// again every few steps. It is called again with the same event without harm.
func (p *Plugin) OnPhase(_ context.Context, e *abi.Event) (*abi.Reply, error) {
	if e.Phase != abi.BeforeInference {
		return nil, nil
	}
	all := p.m.List(e.Run.ThreadID)
	text := LiveTasks(all)
	reply := &abi.Reply{}
	if view := view(all); !reflect.DeepEqual(view, e.State[ViewKey]) && (text != "" || e.State[ViewKey] != nil) {
		reply.Updates = []abi.Update{{Key: ViewKey, Op: abi.OpSet, Value: view}}
	}
	if text != "" {
		reply.Effects = []abi.Effect{{
			Type: abi.EffectAddContext, Note: "live background tasks",
			Context: &abi.ContextMessage{
				Key: PluginName, Role: abi.RoleUser, Target: abi.TargetConversation,
				Content: []abi.ContentBlock{abi.Text(text)}, CooldownTurns: refreshSteps,
			},
		}}
	}
	if len(reply.Updates)+len(reply.Effects) == 0 {
		return nil, nil
	}
	return reply, nil
}

// view is the live tasks as a value of the ABI, by id.
func view(all []Info) any {
	tasks := map[string]any{}
	for _, i := range live(all) {
		tasks[i.ID] = map[string]any{"task_type": i.Type, "description": i.Description, "status": string(i.Status)}
	}
	return map[string]any{"tasks": tasks}
}

func live(all []Info) []Info {
	var out []Info
	for _, i := range all {
		if !i.Status.Terminal() && i.Class != Housekeeping {
			out = append(out, i)
		}
	}
	return out
}

// LiveTasks words the tasks that have not ended for the model: each on a line of
// its own, bounded and escaped. It returns "" when there are none. Show it after a
// compaction, which may have taken the messages in which they were started.
func LiveTasks(all []Info) string {
	lines := liveLines(all)
	if len(lines) == 0 {
		return ""
	}
	if more := len(live(all)) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more; see %s", more, ToolListTasks))
	}
	return "<background-tasks>\nThese background tasks of yours have not ended. You are notified when they do.\n" +
		strings.Join(lines, "\n") + "\n</background-tasks>"
}

// LiveTasks returns the lines of [LiveTasks] for a thread, as many as are listed
// there. It has the form of compaction.Config's LiveTasks: a summary must name them.
func (m *Manager) LiveTasks(thread string) []string { return liveLines(m.List(thread)) }

// liveLines describes the first live tasks, maxLiveListed of them.
func liveLines(all []Info) (lines []string) {
	running := live(all)
	for _, i := range running[:min(len(running), maxLiveListed)] {
		name := ""
		if i.Name != "" {
			name = ", named " + line(i.Name)
		}
		lines = append(lines, fmt.Sprintf("[task %s] %s, %s%s: %s", line(i.ID), i.Status, line(i.Type), name, line(i.Description)))
	}
	return lines
}

// line keeps text on one line, short, and out of tags.
func line(s string) string {
	s = strings.ToValidUTF8(s, "")
	if runes := []rune(s); len(runes) > maxLiveText {
		s = string(runes[:maxLiveText]) + "…"
	}
	s = strings.Join(strings.Fields(s), " ")
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
