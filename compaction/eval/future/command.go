package future

import (
	"regexp"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// outcomes are what the runs of a command came to.
type outcomes struct{ passed, failed, ended int }

// commands are the outcomes of the commands of a conversation, by what was typed.
type commands map[string]*outcomes

// minCommand is how long a command is at least that a text is searched for.
const minCommand = 6

func commandsOf(messages []abi.Message) commands {
	out := commands{}
	results := make(map[string]*abi.Message)
	for i := range messages {
		if messages[i].Role == abi.RoleTool {
			results[messages[i].ToolCallID] = &messages[i]
		}
	}
	failing := failingLine()
	for i := range messages {
		for _, c := range messages[i].ToolCalls {
			command := shellCommand(c.Name, c.Arguments)
			result := results[c.ID]
			if command == "" || result == nil {
				continue
			}
			o := outcome(command, result, failing)
			for _, key := range keys(command) {
				if out[key] == nil {
					out[key] = &outcomes{}
				}
				out[key].add(o)
			}
		}
	}
	return out
}

func (o *outcomes) add(other outcomes) {
	o.passed += other.passed
	o.failed += other.failed
	o.ended += other.ended
}

// keys are what a command may be called: its first line without a change of
// folder, variables and what only shortens its output, and the parts of a chain.
func keys(command string) []string {
	line, _, _ := strings.Cut(strings.TrimSpace(command), "\n")
	var out []string
	for part := range strings.SplitSeq(line, "&&") {
		part, _, _ = strings.Cut(part, "|")
		part, _, _ = strings.Cut(part, "2>")
		part = strings.TrimSpace(part)
		if !strings.HasPrefix(part, "cd ") && len(part) >= minCommand && strings.Contains(part, " ") {
			out = append(out, part)
		}
	}
	return out
}

// failingLine matches lines that only a failure prints.
func failingLine() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(?:--- FAIL|FAIL\b|panic:|fatal:|error(?:\[\w+\])?:|E  |make: \*\*\*|npm ERR!|Traceback|.*: command not found)|[1-9]\d* (?:failed|failing)\b|[1-9]\d* errors?\b`)
}

// outcome reads the result of one run. A pipe hides the exit status, so that a
// result without an error mark may be a failure.
func outcome(command string, result *abi.Message, failing *regexp.Regexp) outcomes {
	text := result.Text()
	switch {
	case refused(text):
		return outcomes{}
	case failed(result):
		return outcomes{failed: 1}
	case failing.MatchString(text):
		return outcomes{failed: 1, ended: 1} // it may be what was looked for
	case strings.ContainsAny(command, "|;"):
		return outcomes{ended: 1}
	}
	return outcomes{passed: 1}
}

// claimedOutcomes checks what a text states of commands that were run: a line that
// holds the command and a word for one outcome. It returns the statements that no
// run bears out, and how many were checked.
func (c commands) claimedOutcomes(text string) (wrong []string, checked int) {
	p := newOutcomeWords()
	for line := range strings.SplitSeq(text, "\n") {
		key := ""
		for k := range c {
			if len(k) > len(key) && strings.Contains(line, k) {
				key = k
			}
		}
		if key == "" {
			continue
		}
		_, rest, _ := strings.Cut(line, key)
		rest = p.none.ReplaceAllString(headOf(rest, 80), " passes ")
		passes, fails := p.passes.MatchString(rest), p.fails.MatchString(rest)
		if passes == fails {
			continue
		}
		checked++
		o := c[key]
		if passes && o.passed+o.ended == 0 && o.failed > 0 || fails && o.failed+o.ended == 0 && o.passed > 0 {
			wrong = append(wrong, line)
		}
	}
	return wrong, checked
}

type outcomeWords struct{ none, passes, fails *regexp.Regexp }

func newOutcomeWords() outcomeWords {
	return outcomeWords{
		none:   regexp.MustCompile(`(?i)\b(?:no|without|0) (?:\w+ )?(?:errors?|failures?|issues|failed)\b`),
		passes: regexp.MustCompile(`(?i)\b(?:ok|pass(?:ed|es|ing)?|succeed(?:ed|s)?|success(?:ful(?:ly)?)?)\b`),
		fails:  regexp.MustCompile(`(?i)\b(?:fail(?:ed|s|ing|ure)?|errors?|did not pass|not passing|broken)\b|exit (?:code|status) [1-9]`),
	}
}
