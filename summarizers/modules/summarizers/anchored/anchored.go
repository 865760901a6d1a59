package anchored

import (
	"errors"
	"strconv"
	"strings"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/model"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/talk"
)

// Policy is the name under which a module offers this package.
const Policy = "anchored"

// DefaultRole is the model that is asked when the config names no other.
const DefaultRole = "summarizer"

// Errors of [Summarize].
var (
	ErrNoBudget  = errors.New("anchored: budget_tokens: too small for a summary")
	ErrNoContent = errors.New("anchored: messages: nothing to summarize")
)

const (
	minLimit = 240
	// defaultProse and defaultOutput are how much is read of a message, in bytes.
	defaultProse  = 48 << 10
	defaultOutput = 6 << 10
	// maxPart bounds a part of the transcript whatever the window, in bytes.
	maxPart = 512 << 10
	minPart = 2 << 10
	// hostBytes is how many bytes the host counts as a token, and overhead the tokens that it
	// adds for a question.
	hostBytes = 3
	overhead  = 64
	// hostShare is the part of the budget that is left for what the host adds from its ledger.
	hostShare = 6
)

// Role is the role that a config names.
func Role(config any) string { return mortise.StringOr(config, "role", DefaultRole) }

// Summarize asks the model. The text is never longer than the budget.
func Summarize(req *mortise.SummarizeRequest) (*mortise.Summary, error) {
	limit := talk.Limit(req)
	if limit < minLimit {
		return nil, ErrNoBudget
	}
	if req.Ledger != nil {
		limit -= limit / hostShare
	}
	info, err := model.Info(Role(req.Config))
	if err != nil {
		return nil, err
	}
	memory := outline{}
	if req.PreviousSummary != nil {
		memory = read(*req.PreviousSummary)
	}
	f := &frame{req: req, words: limit / 7, ledger: rendering(req, limit), instructions: talk.Line(mortise.StringOr(req.Config, "instructions", ""), maxInstructions)}
	answerTokens := min(info.AnswerTokens, req.BudgetTokens+req.BudgetTokens/3+128)
	parts, err := plan(f, info, answerTokens, limit)
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		return nil, ErrNoContent
	}
	for i, part := range parts {
		memory.fit(limit)
		text, err := model.Chat(model.Question{
			Role: Role(req.Config), System: system, AnswerTokens: answerTokens,
			Prompt: f.prompt(memory.text(), part, i+1, len(parts)),
		})
		if err != nil {
			return nil, err
		}
		a, err := parse(text)
		if err != nil {
			return nil, err
		}
		memory.merge(a)
	}
	if memory.empty() {
		return nil, ErrEmptyAnswer
	}
	memory.known(req, limit)
	memory.fit(limit)
	s := &mortise.Summary{Text: talk.Cut(memory.text(), limit), Policy: Policy, Unverified: true}
	s.FromID, s.ToID = talk.Span(req.Messages)
	return s, nil
}

// plan cuts the transcript into parts that fit the window, and as many as the budgets allow.
func plan(f *frame, info model.RoleInfo, answerTokens int64, limit int) ([]string, error) {
	around := f.around() + limit + limit/8 // the memory, some of it escaped
	room := int((info.WindowTokens-answerTokens-overhead)*hostBytes) - around
	if room < minPart {
		return nil, &windowError{tokens: info.WindowTokens, needs: info.WindowTokens + int64(minPart-room)/hostBytes + 1}
	}
	c := caps{prose: capOf(f.req.Config, "prose_cap", defaultProse), output: capOf(f.req.Config, "result_cap", defaultOutput)}
	for {
		parts := chunks(transcript(f.req.Messages, c), min(room, maxPart))
		bytes := 0
		for _, p := range parts {
			bytes += len(p) + around
		}
		n := int64(len(parts))
		tokens := int64(bytes)/hostBytes + n*(answerTokens+overhead)
		if n <= info.LeftQuestions && tokens <= info.LeftTokens {
			return parts, nil
		}
		var ok bool
		if c, ok = c.tighter(); !ok {
			return nil, &budgetError{questions: n, tokens: tokens, info: info}
		}
	}
}

func capOf(config any, key string, def int64) int {
	n := mortise.IntOr(config, key, def)
	if n < 256 || n > 1<<20 {
		n = def
	}
	return int(n)
}

// known puts what the host knows into the summary where the model left it out: files, in at
// most a quarter of the limit, and tasks.
func (o *outline) known(req *mortise.SummarizeRequest, limit int) {
	text := strings.Join(o.lines[files], "\n")
	room := limit / 4
	for _, l := range []struct {
		start string
		list  []string
	}{{"- modified: ", req.ModifiedFiles}, {"- read: ", req.ReadFiles}} {
		var missing []string
		for _, name := range l.list {
			if name = talk.Line(name, 300); !strings.Contains(text, name) && room > len(name)+len(l.start) {
				missing = append(missing, name)
				room -= len(name) + 2
			}
		}
		if len(missing) > 0 {
			o.lines[files] = append(o.lines[files], l.start+strings.Join(missing, ", "))
		}
	}
	for _, task := range req.LiveTasks {
		o.lines[open] = append(o.lines[open], taskPrefix+talk.Line(task, 200))
	}
}

// windowError reports that no summary fits besides its question.
type windowError struct{ tokens, needs int64 }

func (e *windowError) Error() string {
	return "anchored: the model's window of " + strconv.FormatInt(e.tokens, 10) + " tokens is too small for this summary; give the role a model with " +
		strconv.FormatInt(e.needs, 10) + ", or lower summary_tokens"
}

// budgetError reports that the budgets do not suffice even for a shortened transcript.
type budgetError struct {
	questions, tokens int64
	info              model.RoleInfo
}

func (e *budgetError) Error() string {
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	return "anchored: the transcript needs " + n(e.questions) + " questions and about " + n(e.tokens) + " tokens, and " +
		n(e.info.LeftQuestions) + " and " + n(e.info.LeftTokens) + " are left; raise the role's budgets"
}
