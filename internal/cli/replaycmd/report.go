package replaycmd

import (
	"time"

	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/plugins"
)

// reportSchema names the format of the JSON report.
const reportSchema = "mortise.report.v1"

// Report is what mortise run prints at the end. Times are in milliseconds,
// tokens are estimates unless they are called billed.
type Report struct {
	Schema string `json:"schema"`
	// Verdict sums the others up.
	Verdict VerdictReport `json:"verdict"`
	Session SessionReport `json:"session"`
	// Modules has the status of each module: loaded, skipped or failed, with the reason.
	Modules []plugins.Status `json:"modules"`
	// Guests has what the loaded modules used.
	Guests []GuestReport `json:"guests"`
	// Tools are those that plugins register.
	Tools []ToolReport `json:"tools,omitempty"`
	// Reloads are the modules that were swapped during the runs, or were not.
	Reloads []ReloadReport `json:"reloads,omitempty"`
	// ReloadRequests counts the signals that asked for that.
	ReloadRequests int            `json:"reload_requests,omitempty"`
	Runs           RunsReport     `json:"runs"`
	Threads        []ThreadReport `json:"threads"`
	Hooks          []HookReport   `json:"hooks"`
	Changes        []ChangeReport `json:"changes"`
	Gates          []GateReport   `json:"gates"`
	// Admissions and Compactions are in the order in which they happened. An
	// admission that repeated the one before is counted there.
	Admissions  []AdmissionReport  `json:"admissions"`
	Compactions []compaction.Event `json:"compactions"`
	// Evidence sums the admissions up, with how long the steps took meanwhile.
	Evidence *compaction.AdmissionEvidence `json:"evidence,omitempty"`
	WallMS   int64                         `json:"wall_ms"`
	// RecordStore is where mortise explain finds the decisions of the runs.
	RecordStore string `json:"record_store,omitempty"`
	// Interrupted means that the report is partial.
	Interrupted bool   `json:"interrupted"`
	Error       string `json:"error,omitempty"`
}

// SessionReport describes what was read.
type SessionReport struct {
	Path          string         `json:"path"`
	Format        string         `json:"format"`
	Conversations int            `json:"conversations"`
	Messages      int            `json:"messages"`
	Skipped       map[string]int `json:"skipped,omitempty"`
	// Broken lines were left out, with --lenient.
	Broken []string `json:"broken,omitempty"`
	// Notes list what was repaired.
	Notes []string `json:"notes,omitempty"`
}

// RunsReport sums up the runs.
type RunsReport struct {
	Count     int `json:"count"`
	Steps     int `json:"steps"`
	ToolCalls int `json:"tool_calls"`
	// Rewritten calls got other arguments from plugins. A recorded result is that of the
	// arguments in the recording.
	Rewritten    int                           `json:"rewritten_calls,omitempty"`
	Terminations map[agent.TerminationType]int `json:"terminations"`
	// List has the newest runs, bounded.
	List []RunReport `json:"list,omitempty"`
	// Blocked is why the last run that a plugin blocked was.
	Blocked string `json:"blocked,omitempty"`
	// Failures are the errors of runs that failed, in order, bounded.
	Failures         []string `json:"failures,omitempty"`
	BilledPrompt     int64    `json:"billed_prompt_tokens,omitempty"`
	BilledCompletion int64    `json:"billed_completion_tokens,omitempty"`
}

// ToolReport is a tool that a plugin registers, and how often it was called.
type ToolReport struct {
	Plugin string `json:"plugin"`
	Tool   string `json:"tool"`
	Calls  int    `json:"calls"`
	Failed int    `json:"failed"`
}

// RunReport is one run, as mortise explain knows it.
type RunReport struct {
	ID          string                `json:"id"`
	Thread      string                `json:"thread"`
	Termination agent.TerminationType `json:"termination"`
	Steps       int                   `json:"steps"`
}

// GuestReport is what a module used from its loading to the end.
type GuestReport struct {
	Name   string `json:"name"`
	Engine string `json:"engine"`
	Calls  int64  `json:"calls"`
	Failed int64  `json:"failed"`
	Traps  int64  `json:"traps"`
	// Replaced counts instances that were not used again, ReplacedBy by reason.
	Replaced   int64                 `json:"replaced"`
	ReplacedBy map[host.Reason]int64 `json:"replaced_by,omitempty"`
	// Printed counts lines of standard output and error that were not logged for want of the grant.
	Printed int64 `json:"printed,omitempty"`
	// Late counts host calls that continued after their call was out of time.
	Late int64 `json:"late,omitempty"`
	// Fuel is 0 on the Extism engine, which does not count it.
	Fuel int64 `json:"fuel"`
	// Denied counts requests that a grant or a quota did not allow; HTTP, KV and Files
	// what was asked of those capabilities, LogsDropped messages above a limit or
	// without the grant.
	Denied      int64 `json:"denied"`
	HTTP        int64 `json:"http"`
	KV          int64 `json:"kv"`
	Files       int64 `json:"files"`
	LogsDropped int64 `json:"logs_dropped"`
	Swaps       int64 `json:"swaps"`
	Rollbacks   int64 `json:"rollbacks"`
}

// ReloadReport is a module that was swapped, or was to be swapped and was not.
type ReloadReport struct {
	Module string `json:"module"`
	// From and To are checksums. To is empty when the module in use stays, and
	// when From was rolled back to RolledBackTo.
	From         string `json:"from"`
	To           string `json:"to,omitempty"`
	RolledBackTo string `json:"rolled_back_to,omitempty"`
	Error        string `json:"error,omitempty"`
}

// ThreadReport is a conversation at its end.
type ThreadReport struct {
	ID string `json:"id"`
	// Messages and Tokens are those of the log, which keeps everything; View is
	// what the model would see next.
	Messages     int   `json:"messages"`
	Tokens       int64 `json:"tokens"`
	ViewMessages int   `json:"view_messages"`
	ViewTokens   int64 `json:"view_tokens"`
	Compactions  int   `json:"compactions"`
	// Complete means that the recording was played to its end.
	Complete bool `json:"complete"`
	// Ended is the reason why it was not, if a run that was stopped or failed is the reason.
	Ended string `json:"ended,omitempty"`
}

// HookReport sums up the calls of one plugin at one phase.
type HookReport struct {
	Plugin      string  `json:"plugin"`
	Phase       string  `json:"phase"`
	Calls       int     `json:"calls"`
	Failures    int     `json:"failures"`
	Refused     int     `json:"refused"`
	Deferred    int     `json:"deferred"`
	Quarantined int     `json:"quarantined"`
	TotalMS     float64 `json:"total_ms"`
	MaxMS       float64 `json:"max_ms"`
	// LimitMS is the time limit of one call. Fuel is counted by module, see Guests.
	LimitMS   int64  `json:"limit_ms"`
	LastError string `json:"last_error,omitempty"`
}

// ChangeReport counts what a plugin changed.
type ChangeReport struct {
	Plugin string `json:"plugin"`
	What   string `json:"what"`
	Note   string `json:"note,omitempty"`
	Count  int    `json:"count"`
	// Example is one of the targets.
	Example string `json:"example,omitempty"`
}

// GateReport is tool calls that a gate did not let through as they were, for one reason. CallID is the first of them. Of more
// than 200 kinds the rest have no reason.
type GateReport struct {
	Plugin string `json:"plugin"`
	Action string `json:"action"`
	Tool   string `json:"tool"`
	CallID string `json:"call_id"`
	Count  int    `json:"count"`
	Reason string `json:"reason"`
}

// AdmissionReport is a decision about starting a compaction.
type AdmissionReport struct {
	Thread   string                        `json:"thread"`
	At       time.Time                     `json:"at"`
	Decision *compaction.AdmissionDecision `json:"decision"`
	Detail   string                        `json:"detail,omitempty"`
	Count    int                           `json:"count"`
}
