package agent

import (
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// RunStatus is the state of a run.
type RunStatus string

// Statuses of a run. Done is terminal; a waiting run can continue, in this process or
// in another one.
const (
	StatusCreated RunStatus = "created"
	StatusRunning RunStatus = "running"
	StatusWaiting RunStatus = "waiting"
	StatusDone    RunStatus = "done"
)

// To reports whether a run may change from one status to another.
func (s RunStatus) To(next RunStatus) bool {
	switch {
	case s == next:
		return true
	case s == StatusDone:
		return false
	case next == StatusRunning || next == StatusDone:
		return true
	default:
		return next == StatusWaiting && s == StatusRunning
	}
}

// WaitReason is what a waiting run waits for.
type WaitReason string

// Reasons to wait. A call that is suspended names its reason as the action of its ticket; any other action asks for permission.
const (
	// WaitTasks waits for tasks in the background, WaitPermission for the decision about a call.
	WaitTasks      WaitReason = "background_tasks"
	WaitPermission WaitReason = "tool_permission"
	// WaitInput waits for an answer of the user, WaitEvent for something outside of the program, such as a payment or a tool
	// that the client executes. The answer comes as a decision.
	WaitInput WaitReason = "user_input"
	WaitEvent WaitReason = "external_event"
	// WaitRate waits until a provider accepts requests again, WaitPause until an operator resumes the thread.
	WaitRate  WaitReason = "rate_limit"
	WaitPause WaitReason = "manual_pause"
)

// Decided reports whether decisions end the wait.
func (w WaitReason) Decided() bool {
	return w != "" && w != WaitTasks && w != WaitRate && w != WaitPause
}

// clientTool begins the action of a call of a tool that the client executes.
const clientTool = "tool:"

// Wait returns what the call waits for, by the action.
func (t *Ticket) Wait() WaitReason {
	switch {
	case slices.Contains([]string{"user_input", "input_required", "user_input_required"}, t.Action):
		return WaitInput
	case t.Action == "external_event", strings.HasPrefix(t.Action, clientTool):
		return WaitEvent
	default:
		return WaitPermission
	}
}

// waitOfAll returns what a run with tickets waits for: permission if one of them asks for it, else input, else an event.
func waitOfAll(tickets []Ticket) WaitReason {
	reasons := map[WaitReason]bool{}
	for i := range tickets {
		reasons[tickets[i].Wait()] = true
	}
	for _, w := range []WaitReason{WaitPermission, WaitInput, WaitEvent} {
		if reasons[w] {
			return w
		}
	}
	return WaitPermission
}

// Words for the status of a waiting run, as run_finish has them.
const (
	awaitingTasks = "awaiting_tasks"
	suspendedText = "suspended"
)

// Waiting is what a waiting run waits for.
type Waiting struct {
	Reason WaitReason `json:"reason"`
	// Tickets are the calls that wait for a decision, by call id and then by id.
	Tickets []Ticket `json:"tickets,omitempty"`
	// DispatchID is that of the request with which the run came to wait.
	DispatchID string    `json:"since_dispatch_id,omitempty"`
	Since      time.Time `json:"since"`
	Message    string    `json:"message,omitempty"`
}

// Record is what is known of a run. Its counters continue when a waiting run does.
type Record struct {
	RunID       string      `json:"run_id"`
	ThreadID    string      `json:"thread_id"`
	AgentID     string      `json:"agent_id,omitempty"`
	ParentRunID string      `json:"parent_run_id,omitempty"`
	DispatchID  string      `json:"dispatch_id,omitempty"`
	SessionID   string      `json:"session_id,omitempty"`
	Mode        abi.RunMode `json:"mode,omitempty"`
	Status      RunStatus   `json:"status"`
	// Reason is how the run was done, see [Termination.Reason], or in a word what it
	// waits for.
	Reason      string      `json:"status_reason,omitempty"`
	Termination Termination `json:"termination,omitzero"`
	Waiting     *Waiting    `json:"waiting,omitempty"`

	// Steps, Usage and Cost are totals, and Active is how long the run was at work:
	// what it waited does not count. Times are those of all activations.
	Steps       int           `json:"steps"`
	Activations int           `json:"activations"`
	Usage       abi.Usage     `json:"usage"`
	Cost        float64       `json:"cost,omitempty"`
	Active      time.Duration `json:"active_ns"`
	// Failures are the tool calls that failed, in a row up to now; Recent are the
	// fingerprints of the last calls. Both are for stop policies.
	Failures int      `json:"failures,omitempty"`
	Recent   []uint64 `json:"recent,omitempty"`

	// Input and Output are ranges of the log: messages that the request brought, and
	// the first to the last one that the run wrote. Indices from 0, the end is not
	// included.
	Input  [2]int `json:"input"`
	Output [2]int `json:"output"`
	// Final is the last text of the run, Error why it failed.
	Final string `json:"final_output,omitempty"`
	Error string `json:"error,omitempty"`

	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// move changes the status, if it may.
func (r *Record) move(next RunStatus, reason string) {
	if r.Status.To(next) {
		r.Status, r.Reason = next, reason
	}
}

// open reports whether the run can continue: it waits, or the process that ran it ended.
func (r *Record) open() bool {
	return r.RunID != "" && (r.Status == StatusWaiting || r.Status == StatusRunning)
}

// Reason is the termination in one word, or two: natural, cancelled, error,
// blocked:<reason> or stopped:<code>.
func (t Termination) Reason() string {
	switch t.Type {
	case NaturalEnd:
		return "natural"
	case Stopped:
		return "stopped:" + t.Code
	case Blocked:
		return "blocked:" + t.Detail
	case Suspended:
		return suspendedText
	case Cancelled:
		return "cancelled"
	case Failed:
		return "error"
	default:
		return string(t.Type)
	}
}
