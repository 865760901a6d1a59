package background

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// PluginName is the name of the [Plugin].
const PluginName = "background_tasks"

// Bounds of what the plugin keeps in the state of a thread and shows to the model.
const (
	maxStateBytes  = 128 << 10
	maxStateResult = 4 << 10
	maxLiveListed  = 32
	maxLiveText    = 160
	// refreshSteps is how many steps pass before an unchanged list of live tasks is
	// shown again.
	refreshSteps = 8
)

// Plugin is a phases.Plugin that keeps a thread's tasks with the thread's state,
// takes them over at run_start, and shows the model which tasks are live, so that
// a compaction cannot make it forget them. With a Ledger the Manager keeps tasks
// itself, and the plugin leaves the state alone. It is safe for concurrent use.
type Plugin struct{ m *Manager }

// Plugin makes the plugin.
func (m *Manager) Plugin() *Plugin { return &Plugin{m: m} }

// Describe lists what the plugin subscribes to.
func (*Plugin) Describe() abi.Description {
	return abi.Description{
		Name: PluginName, Version: "1.0.0", ABI: abi.VersionRange{Min: abi.Version, Max: abi.Version},
		Summary: "keeps background tasks with the thread and shows the live ones to the model",
		Hooks: []abi.Hook{
			{Phase: abi.RunStart, Mode: abi.ModeObserve, OnFailure: abi.FailIgnore},
			{Phase: abi.BeforeInference, Mode: abi.ModeTransform, OnFailure: abi.FailIgnore},
			{Phase: abi.StepEnd, Mode: abi.ModeObserve, OnFailure: abi.FailIgnore},
			{Phase: abi.RunEnd, Mode: abi.ModeObserve, OnFailure: abi.FailIgnore},
		},
		Tools: tools(),
		State: []abi.StateKey{
			{Name: StateKey, Scope: abi.ScopeThread},
			{Name: ViewKey, Scope: abi.ScopeRun},
		},
	}
}

// OnPhase answers one event. It is called again with the same event without harm.
func (p *Plugin) OnPhase(ctx context.Context, e *abi.Event) (*abi.Reply, error) {
	switch e.Phase {
	case abi.RunStart:
		p.m.noteRun(e.Run.ThreadID, e.Run.RunID)
		return nil, p.restore(ctx, e)
	case abi.BeforeInference:
		return p.show(e), nil
	case abi.RunEnd:
		p.m.noteRun(e.Run.ThreadID, "")
		return p.persist(e), nil
	default:
		return p.persist(e), nil
	}
}

// noteRun remembers which run a thread has, for tools whose context has none.
func (m *Manager) noteRun(thread, run string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if run == "" {
		delete(m.runs, thread)
		return
	}
	m.runs[thread] = run
}

// restore takes over what the thread's state holds.
func (p *Plugin) restore(ctx context.Context, e *abi.Event) error {
	kept, ok := e.State[StateKey]
	if !ok || p.m.cfg.Ledger != nil {
		return nil
	}
	data, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("background: state %s: %w", StateKey, err)
	}
	var s Snapshot
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("background: state %s: %w", StateKey, err)
	}
	return p.m.Restore(ctx, e.Run.ThreadID, s)
}

// persist writes what has changed since it was last written.
func (p *Plugin) persist(e *abi.Event) *abi.Reply {
	if p.m.cfg.Ledger != nil {
		return nil
	}
	state := plain(bounded(p.m.List(e.Run.ThreadID)))
	if reflect.DeepEqual(state, e.State[StateKey]) {
		return nil
	}
	return &abi.Reply{Updates: []abi.Update{{Key: StateKey, Op: abi.OpSet, Value: state}}}
}

// bounded is a snapshot of the live tasks and of as many ended ones, the newest,
// as the state has room for. Long results stay in the Manager.
func bounded(all []Info) Snapshot {
	var s Snapshot
	room := maxStateBytes
	for pass, live := range []bool{true, false} {
		for _, info := range slices.Backward(all) {
			if info.Status.Terminal() == live {
				continue
			}
			if size(info.Result) > maxStateResult {
				info.Result = cut(ResultText(info.Result), maxStateResult, "result truncated in the thread's state")
			}
			if room -= size(info.Result) + len(info.Error) + len(info.Description) + 512; room < 0 && pass > 0 {
				return s
			}
			s = s.Upsert(info)
		}
	}
	return s
}

// show puts the list of live tasks before the model when it has changed, and
// again every few steps.
func (p *Plugin) show(e *abi.Event) *abi.Reply {
	all := p.m.List(e.Run.ThreadID)
	reply := &abi.Reply{}
	if view := plain(View{}.Replace(live(all))); !reflect.DeepEqual(view, e.State[ViewKey]) {
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
