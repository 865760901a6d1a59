package agent

import "github.com/mortise-dev/mortise/abi"

// Termination is why a run ended.
type Termination struct {
	Type TerminationType `json:"type"`
	// Code belongs to stopped, and is [Continued] if the run is cancelled here alone; Detail says more in words.
	Code   string `json:"code,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// TerminationType is the kind of a termination.
type TerminationType string

// Kinds of terminations.
const (
	// NaturalEnd: the model stopped asking for tools.
	NaturalEnd TerminationType = "natural_end"
	// Stopped by a limit or a plugin; Code names it.
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

// Continued is the code of a run that is cancelled because another process continues it, see [ErrContinued].
const Continued = "continued"

// Result is what a run came to.
type Result struct {
	RunID string `json:"run_id"`
	// Response is the last text that the model gave in this run.
	Response    string      `json:"response,omitempty"`
	Termination Termination `json:"termination"`
	// Status is done or waiting, and StatusReason how it was done or what it waits for.
	Status       RunStatus `json:"status"`
	StatusReason string    `json:"status_reason,omitempty"`
	// Wait is what a waiting run waits for, Tickets are its calls that wait for a decision.
	Wait    WaitReason `json:"wait,omitempty"`
	Tickets []Ticket   `json:"tickets,omitempty"`
	// Steps and Usage are totals of the run, also of the times before it waited.
	Steps int       `json:"steps"`
	Usage abi.Usage `json:"usage,omitzero"`
}
