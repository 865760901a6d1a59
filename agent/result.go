package agent

// Termination is why a run ended.
type Termination struct {
	Type TerminationType `json:"type"`
	// Code belongs to stopped; Detail says more in words.
	Code   string `json:"code,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// TerminationType is the kind of a termination.
type TerminationType string

// Kinds of terminations.
const (
	// NaturalEnd: the model stopped asking for tools.
	NaturalEnd TerminationType = "natural_end"
	// Stopped by a limit or a plugin; Code says which.
	Stopped TerminationType = "stopped"
	// Blocked: a gate refused a tool call.
	Blocked TerminationType = "blocked"
	// Suspended: a tool call waits for a decision.
	Suspended TerminationType = "suspended"
	// Cancelled from outside.
	Cancelled TerminationType = "cancelled"
	// Failed with an error.
	Failed TerminationType = "error"
)

// StopMaxRounds is the code of a run that reached Config.MaxRounds.
const StopMaxRounds = "max_rounds"

// Result is what a run came to.
type Result struct {
	RunID string `json:"run_id"`
	// Response is the last text that the model gave in this run.
	Response    string      `json:"response,omitempty"`
	Termination Termination `json:"termination"`
	Steps       int         `json:"steps"`
}
