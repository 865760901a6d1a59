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
		Tools:   tools(),
		State:   []abi.StateKey{{Name: ViewKey, Scope: abi.ScopeRun}},
	}
}

// OnPhase answers one event. It is called again with the same event without harm.
func (p *Plugin) OnPhase(_ context.Context, e *abi.Event) (*abi.Reply, error) {
	if e.Phase != abi.BeforeInference {
		return nil, nil
	}
	return p.show(e), nil
}

// show puts the list of live tasks before the model when it has changed, and
// again every few steps.
func (p *Plugin) show(e *abi.Event) *abi.Reply {
	all := p.m.List(e.Run.ThreadID)
	reply := &abi.Reply{}
	if view := view(all); !reflect.DeepEqual(view, e.State[ViewKey]) && (len(live(all)) > 0 || e.State[ViewKey] != nil) {
		reply.Updates = []abi.Update{{Key: ViewKey, Op: abi.OpSet, Value: view}}
	}
	if text := LiveTasks(all); text != "" {
		reply.Effects = []abi.Effect{{
			Type: abi.EffectAddContext, Note: "live background tasks",
			Context: &abi.ContextMessage{
				Key: PluginName, Role: abi.RoleUser, Target: abi.TargetConversation,
				Content: []abi.ContentBlock{abi.Text(text)}, CooldownTurns: refreshSteps,
			},
		}}
	}
	if len(reply.Updates)+len(reply.Effects) == 0 {
		return nil
	}
	return reply
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
	running := live(all)
	if len(running) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("<background-tasks>\nThese background tasks of yours have not ended. You are told when they do.\n")
	for n, i := range running {
		if n == maxLiveListed {
			fmt.Fprintf(&b, "and %d more; see %s\n", len(running)-n, ToolListTasks)
			break
		}
		b.WriteString(liveLine(i) + "\n")
	}
	b.WriteString("</background-tasks>")
	return b.String()
}

// LiveTasks returns the lines of [LiveTasks] for a thread, as many as are listed
// there. It has the form of compaction.Config's LiveTasks: a summary must name them.
func (m *Manager) LiveTasks(thread string) []string {
	running := live(m.List(thread))
	var out []string
	for _, i := range running[:min(len(running), maxLiveListed)] {
		out = append(out, liveLine(i))
	}
	return out
}

func liveLine(i Info) string {
	name := ""
	if i.Name != "" {
		name = ", named " + line(i.Name)
	}
	return fmt.Sprintf("[task %s] %s, %s%s: %s", line(i.ID), i.Status, line(i.Type), name, line(i.Description))
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
