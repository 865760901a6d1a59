package background

import "maps"

// StateKey and ViewKey are the state keys of the [Plugin].
const (
	StateKey = "background_task_state"
	ViewKey  = "background_tasks"
)

// Snapshot is what is kept of a thread's tasks, by id. It is a plain value: its
// methods return a new one.
type Snapshot struct {
	Tasks map[string]Info `json:"tasks"`
}

// Upsert returns a snapshot that also has the task, in place of one with its id.
func (s Snapshot) Upsert(i Info) Snapshot {
	tasks := maps.Clone(s.Tasks)
	if tasks == nil {
		tasks = make(map[string]Info, 1)
	}
	tasks[i.ID] = i
	return Snapshot{Tasks: tasks}
}

// ReplaceAll returns a snapshot of these tasks and no others.
func (s Snapshot) ReplaceAll(tasks []Info) Snapshot {
	s.Tasks = make(map[string]Info, len(tasks))
	for _, i := range tasks {
		s.Tasks[i.ID] = i
	}
	return s
}

// View is what a prompt has of a thread's tasks, by id.
type View struct {
	Tasks map[string]ViewEntry `json:"tasks"`
}

// ViewEntry is one task of a [View].
type ViewEntry struct {
	Type        string `json:"task_type"`
	Description string `json:"description"`
	Status      Status `json:"status"`
}

// Replace returns a view of these tasks. Housekeeping is left out.
func (v View) Replace(tasks []Info) View {
	v.Tasks = make(map[string]ViewEntry, len(tasks))
	for _, i := range tasks {
		if i.Class != Housekeeping {
			v.Tasks[i.ID] = ViewEntry{Type: i.Type, Description: i.Description, Status: i.Status}
		}
	}
	return v
}

// Clear returns an empty view.
func (View) Clear() View { return View{Tasks: map[string]ViewEntry{}} }
