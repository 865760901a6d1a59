package abi

// LedgerFile is a file that the agent touched. Numbers are those of the latest message of that
// kind, 0 for none.
type LedgerFile struct {
	Path    string `json:"path"`
	Read    int    `json:"read,omitempty"`
	Reads   int    `json:"reads,omitempty"`
	Changed int    `json:"changed,omitempty"`
	Changes int    `json:"changes,omitempty"`
	Created int    `json:"created,omitempty"`
	// Verb is the shell command that changed it, when no file tool did.
	Verb string `json:"verb,omitempty"`
	// State is one of the file states, At the message that led to it.
	State string `json:"state,omitempty"`
	At    int    `json:"at,omitempty"`
	// Names are defined in the parts that were changed, newest first.
	Names []string `json:"names,omitempty"`
}

// States of a file. A file without one is as the last change left it.
const (
	FileDeleted  = "deleted"
	FileRestored = "restored"
)

// LedgerCommand is a shell command, the latest run of it.
type LedgerCommand struct {
	// Key is the command without what differs between runs of the same.
	Key     string `json:"key"`
	Text    string `json:"text"`
	Message int    `json:"m"`
	Runs    int    `json:"runs"`
	// Outcome is one of the outcomes of a command, Line the line of its output that shows it.
	Outcome string `json:"outcome"`
	Line    string `json:"line,omitempty"`
	// Check reports a command that builds, tests or lints, Reads one that only shows what is there.
	Check bool `json:"check,omitempty"`
	Reads bool `json:"reads,omitempty"`
}

// Outcomes of a command.
const (
	CommandOK     = "ok"
	CommandFailed = "failed"
	// CommandEnded means that the log does not show whether it succeeded.
	CommandEnded = "ended"
)

// LedgerError is a failure, open until the same command succeeds, or one that includes it.
type LedgerError struct {
	Message int    `json:"m"`
	Key     string `json:"key"`
	Line    string `json:"line"`
	// Edits are files that were changed since.
	Edits []string `json:"edits,omitempty"`
	// Passed is the message that shows the command succeed, or PassedBy, which includes it; 0 for none.
	Passed   int    `json:"passed,omitempty"`
	PassedBy string `json:"passed_by,omitempty"`
	Runs     int    `json:"runs,omitempty"`
	Check    bool   `json:"check,omitempty"`
}

// LedgerCommit is a commit that the log shows.
type LedgerCommit struct {
	Message int    `json:"m"`
	Hash    string `json:"hash"`
	Branch  string `json:"branch,omitempty"`
	Text    string `json:"text,omitempty"`
}

// LedgerLookup is a search in the web, a call of an MCP server or a question to a sub-agent.
type LedgerLookup struct {
	Message int    `json:"m"`
	Tool    string `json:"tool"`
	Query   string `json:"query"`
	// Line is the first line of the result.
	Line string `json:"line,omitempty"`
}

// LedgerValue is a field of a record.
type LedgerValue struct {
	Message int `json:"m"`
	// Owner is the record, as "kind id".
	Owner string `json:"owner"`
	Key   string `json:"key"`
	Value string `json:"value"`
	// Before is the value that this one replaced.
	Before string `json:"before,omitempty"`
}

// LedgerCall is a tool call whose result has not been read.
type LedgerCall struct {
	Message int    `json:"m"`
	ID      string `json:"id"`
	Tool    string `json:"tool"`
	// Kind is what the tool does, in the words of the keeper.
	Kind string `json:"kind"`
	// Paths are files that it names. Text is its command, query, plan or content of a list.
	Paths []string `json:"paths,omitempty"`
	Text  string   `json:"text,omitempty"`
	// Names are defined in the text that it writes.
	Names []string     `json:"names,omitempty"`
	Tasks []LedgerTask `json:"tasks,omitempty"`
	// Owner is the record that its arguments name.
	Owner string `json:"owner,omitempty"`
}
