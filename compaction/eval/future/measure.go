package future

import (
	"maps"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/compaction/eval"
)

// subject is a window with what is found out once.
type subject struct {
	Window
	bytes    int
	facts    *eval.Facts
	touched  *touched
	commands commands
	said     string
	open     *open
}

func newSubject(w Window) *subject {
	probes := make([]eval.Probe, len(w.Needed))
	for i, f := range w.Needed {
		probes[i] = eval.Probe{ID: f.Text, Answers: []string{f.Text}}
	}
	return &subject{
		Window: w, bytes: len(eval.Flatten(w.Before)),
		facts:   eval.Prepare(eval.Conversation{Messages: w.Before}, probes),
		touched: touchedBy(w.Before), commands: commandsOf(w.Before), said: spoken(w.Before), open: openOf(w.Before),
	}
}

// Recall counts the needed facts of a window that a text holds.
type Recall struct{ Needed, Strict, Lenient, Groundable, Grounded int }

func (s *subject) recall(text string) Recall {
	r := Recall{Needed: len(s.Needed)}
	verdicts := s.facts.Score(text)
	for i := range s.Needed {
		f := &s.Needed[i]
		strict := f.Strict(text)
		if strict {
			r.Strict++
		}
		if f.Lenient(text) {
			r.Lenient++
		}
		if verdicts[i].Groundable {
			r.Groundable++
			if strict && verdicts[i].Grounded > 0 {
				r.Grounded++
			}
		}
	}
	return r
}

// Files holds what a text states of files of one kind against the calls.
type Files struct {
	// Listed are the files that the text lists, Right those among them that the
	// calls touched in that way.
	Listed int `json:"listed"`
	Right  int `json:"right"`
	// Touched are the files that the calls touched, Found those among them that
	// are listed, Named those that the text names anywhere.
	Touched int `json:"touched"`
	Found   int `json:"found"`
	Named   int `json:"named"`
}

// Checked counts statements.
type Checked struct {
	Checked int `json:"checked"`
	Wrong   int `json:"wrong"`
}

// Statements is what a text states, held against the log.
type Statements struct {
	Read     Files `json:"read"`
	Modified Files `json:"modified"`
	Created  Files `json:"created"`
	// FirstRequest and LatestRequest count the texts that hold it word for word, up to
	// 300 characters.
	FirstRequest  int `json:"first_request"`
	LatestRequest int `json:"latest_request"`
	// Requests, Stopped and Tasks count those of which the text holds the first 60
	// characters.
	Requests Kept `json:"requests"`
	Stopped  Kept `json:"stopped"`
	Tasks    Kept `json:"tasks"`
	// FalseFiles are listed as modified, FalseOutcomes are of commands, FalseWords
	// are given as the user's.
	FalseFiles    Checked `json:"false_files"`
	FalseOutcomes Checked `json:"false_outcomes"`
	FalseWords    Checked `json:"false_words"`
	// Examples are some of the false statements.
	Examples []string `json:"examples,omitempty"`
}

// Kept is how many of some a text holds.
type Kept struct {
	Kept  int `json:"kept"`
	Total int `json:"total"`
}

// maxExamples bounds the false statements that a report quotes.
const maxExamples = 5

// State holds what a text states against a conversation.
func State(before []abi.Message, text string) Statements {
	s := &subject{Window: Window{Before: before}, touched: touchedBy(before), commands: commandsOf(before), said: spoken(before), open: openOf(before)}
	return s.state(text)
}

func (s *subject) state(text string) Statements {
	var out Statements
	list := statedFiles(text)
	changed := maps.Clone(list.modified)
	maps.Copy(changed, list.created)
	out.Read = against(list.read, s.touched.read, text, s.touched.saw)
	out.Modified = against(changed, s.touched.modified, text, s.touched.wrote)
	out.Created = against(list.created, s.touched.created, text, func(f string) bool {
		return s.touched.created.has(f) || s.touched.shell.has(f)
	})
	for _, f := range slices.Sorted(maps.Keys(changed)) {
		out.FalseFiles.Checked++
		if !s.touched.wrote(f) {
			out.FalseFiles.Wrong++
			out.example("modified: " + f)
		}
	}
	wrong, checked := s.commands.claimedOutcomes(text)
	out.FalseOutcomes = Checked{Checked: checked, Wrong: len(wrong)}
	for _, w := range wrong {
		out.example("outcome: " + w)
	}
	wrong, checked = claimedWords(text, s.said)
	out.FalseWords = Checked{Checked: checked, Wrong: len(wrong)}
	for _, w := range wrong {
		out.example("words: " + w)
	}
	flat := flow(text)
	if n := len(s.open.requests); n > 0 {
		out.FirstRequest, out.LatestRequest = one(verbatimIn(flat, s.open.requests[0])), one(verbatimIn(flat, s.open.requests[n-1]))
	}
	out.Requests = Kept{mentioned(flat, s.open.requests), len(s.open.requests)}
	out.Stopped = Kept{mentioned(flat, s.open.stopped), len(s.open.stopped)}
	out.Tasks = Kept{mentioned(flat, s.open.tasks), len(s.open.tasks)}
	return out
}

func one(ok bool) int {
	if ok {
		return 1
	}
	return 0
}

func (t *Statements) example(s string) {
	if len(t.Examples) < maxExamples {
		t.Examples = append(t.Examples, headOf(flow(s), 160))
	}
}

// against compares what is listed with what was touched.
func against(list, touched paths, text string, right func(string) bool) Files {
	f := Files{Listed: len(list), Touched: len(touched)}
	for file := range list {
		if right(file) {
			f.Right++
		}
	}
	for file := range touched {
		if list.has(file) {
			f.Found++
		}
		short := newFact(file)
		if short.Lenient(text) {
			f.Named++
		}
	}
	return f
}

// tokensOf is how long a text is in a context.
func tokensOf(text string) int64 {
	return compaction.Estimate([]abi.Message{{Role: abi.RoleSystem, Content: []abi.ContentBlock{abi.Text(text)}}})
}

// add sums statements up.
func (t *Statements) add(o *Statements) {
	for _, p := range [][2]*Files{{&t.Read, &o.Read}, {&t.Modified, &o.Modified}, {&t.Created, &o.Created}} {
		p[0].Listed += p[1].Listed
		p[0].Right += p[1].Right
		p[0].Touched += p[1].Touched
		p[0].Found += p[1].Found
		p[0].Named += p[1].Named
	}
	for _, p := range [][2]*Kept{{&t.Requests, &o.Requests}, {&t.Stopped, &o.Stopped}, {&t.Tasks, &o.Tasks}} {
		p[0].Kept += p[1].Kept
		p[0].Total += p[1].Total
	}
	for _, p := range [][2]*Checked{{&t.FalseFiles, &o.FalseFiles}, {&t.FalseOutcomes, &o.FalseOutcomes}, {&t.FalseWords, &o.FalseWords}} {
		p[0].Checked += p[1].Checked
		p[0].Wrong += p[1].Wrong
	}
	t.FirstRequest += o.FirstRequest
	t.LatestRequest += o.LatestRequest
	for _, e := range o.Examples {
		t.example(strings.TrimSpace(e))
	}
}
