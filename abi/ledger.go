package abi

// LedgerVersion is the version of [Ledger] that this package describes.
const LedgerVersion = 1

// Ledger is the state of a conversation: what was asked, what was done, what is open, and the
// names that occur in it. The host keeps it while the conversation grows. A summary is a rendering
// of it under a budget. Messages are referred to by number, which is their position in the log,
// from 1. All lists are bounded; texts are those of the log, byte for byte. A text with a Size is cut:
// that is the length of the whole in bytes, or negative when it is not known.
type Ledger struct {
	Version int `json:"version"`
	// Messages and Bytes count what was read.
	Messages int   `json:"messages"`
	Bytes    int64 `json:"bytes"`
	// Folder is the working directory and Branch the branch, where they are known.
	Folder string     `json:"folder,omitempty"`
	Branch string     `json:"branch,omitempty"`
	Talk   LedgerTalk `json:"talk"`
	Work   LedgerWork `json:"work"`
	// Steps are the latest events, oldest first.
	Steps []LedgerStep `json:"steps,omitempty"`
	Names []LedgerName `json:"names,omitempty"`
	// Calls wait for their results.
	Calls []LedgerCall `json:"calls,omitempty"`
}

// LedgerTalk is what was said.
type LedgerTalk struct {
	// Requests are the messages of the user, the first and the latest whole.
	Requests []LedgerRequest `json:"requests,omitempty"`
	// Rules are sentences of the user about what must or must not be done. Findings are
	// sentences of the agent about a cause, a decision or a result.
	Rules    []LedgerText `json:"rules,omitempty"`
	Findings []LedgerText `json:"findings,omitempty"`
	// Plan is the latest plan, Question the latest question of the agent without an answer, Last
	// the agent's latest text.
	Plan     *LedgerText  `json:"plan,omitempty"`
	Question *LedgerText  `json:"question,omitempty"`
	Last     *LedgerText  `json:"last,omitempty"`
	Tasks    []LedgerTask `json:"tasks,omitempty"`
	// Before is a summary by another program of what came before the log.
	Before *LedgerText `json:"before,omitempty"`
	// Statements are sentences of a dialogue that hold facts, with their speakers.
	Statements []LedgerText `json:"statements,omitempty"`
	// Words are those of the statements. A ledger that is sent to a summarizer may have them.
	Words *LedgerWords `json:"words,omitempty"`
}

// LedgerWords are the words of statements that may carry a fact, numbered from 0 as they occur first.
type LedgerWords struct {
	// Labels are the words as a list shows them: numbers with their units. Kinds has a letter for each of them,
	// one of the kinds of words.
	Labels []string `json:"labels"`
	Kinds  string   `json:"kinds"`
	// Runs has for each statement how many words it holds, and then their numbers.
	Runs []int `json:"runs"`
}

// Kinds of words. A bare number means nothing without what it counts, an id has letters and digits.
const (
	WordPlain      = 'p'
	WordName       = 'n'
	WordBareNumber = 'b'
	WordNumber     = 'd'
	WordID         = 'i'
)

// LedgerWork is what was done with tools.
type LedgerWork struct {
	Files    []LedgerFile    `json:"files,omitempty"`
	Commands []LedgerCommand `json:"commands,omitempty"`
	Errors   []LedgerError   `json:"errors,omitempty"`
	Commits  []LedgerCommit  `json:"commits,omitempty"`
	Lookups  []LedgerLookup  `json:"lookups,omitempty"`
	// Values are fields of records that tools returned, with the record that owns them.
	Values []LedgerValue `json:"values,omitempty"`
}

// LedgerText is a quotation.
type LedgerText struct {
	Message int `json:"m"`
	// By is the speaker: a role, or a name that the message gives.
	By   string `json:"by,omitempty"`
	Text string `json:"text"`
	// Size is 0 when Text is whole.
	Size int `json:"size,omitempty"`
	// Kind is the reason why the text is kept, such as "decision".
	Kind string `json:"kind,omitempty"`
	// Replaces is the message of an earlier statement on the same subject.
	Replaces int `json:"replaces,omitempty"`
}

// LedgerRequest is a message of the user and what became of it.
type LedgerRequest struct {
	Message int    `json:"m"`
	Text    string `json:"text"`
	Size    int    `json:"size,omitempty"`
	// End is the last sentence of a long text, where what is wanted often is.
	End string `json:"end,omitempty"`
	// Question is what the agent had asked before.
	Question *LedgerText `json:"question,omitempty"`
	// Files were changed and Commits made until the next request. Outcome is of the agent's last
	// text before it: sentences and items, each on a line of its own.
	Files   []string    `json:"files,omitempty"`
	Commits []string    `json:"commits,omitempty"`
	Outcome *LedgerText `json:"outcome,omitempty"`
	// Stopped is the message with which the user stopped the work, 0 for none.
	Stopped int `json:"stopped,omitempty"`
}

// LedgerTask is an item of a todo list.
type LedgerTask struct {
	ID      string `json:"id,omitempty"`
	Message int    `json:"m"`
	Text    string `json:"text"`
	// Status is one of the task states.
	Status string `json:"status,omitempty"`
}

// States of a task.
const (
	TaskOpen  = "to do"
	TaskDoing = "doing"
	TaskDone  = "done"
)

// LedgerStep is one event.
type LedgerStep struct {
	Message int    `json:"m"`
	By      Role   `json:"by"`
	Text    string `json:"text"`
	Size    int    `json:"size,omitempty"`
	// Result is what became of a call, where that is known.
	Result string `json:"result,omitempty"`
}

// LedgerName is a path, identifier, address or number, and who used it.
type LedgerName struct {
	Text  string `json:"t"`
	Count int    `json:"n"`
	// Call, User and Agent report who wrote it: the agent in a tool call, the user, the agent in
	// a text. None of them means that it only occurred in results.
	Call  bool `json:"call,omitempty"`
	User  bool `json:"user,omitempty"`
	Agent bool `json:"agent,omitempty"`
	// Last is the latest message that holds it, Own the latest of the agent or user.
	Last int `json:"last"`
	Own  int `json:"own,omitempty"`
	// Home is the file in whose reading or editing it occurred first.
	Home string `json:"home,omitempty"`
}
