package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/examples/plugins/redact/scrub"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// onPhase answers after_tool_execute with the result's content, scrubbed, when
// that changed anything. The counters and the note name rules, never values.
func onPhase(e *mortise.Event) (*mortise.Reply, error) {
	if e.Phase != mortise.AfterToolExecute || e.Result == nil || e.ResultMessageID == "" {
		return nil, nil
	}
	s := scrub.New(scrub.Config{
		Words:   mortise.StringsOr(e.Config, "words", nil),
		Allow:   mortise.StringsOr(e.Config, "allow", nil),
		Disable: mortise.StringsOr(e.Config, "disable", nil),
		Mask:    mortise.StringOr(e.Config, "mask", ""),
	})
	counts := map[string]int{}
	content := scrubResult(s, e.Result, counts)
	if len(counts) == 0 {
		return nil, nil
	}
	r := &mortise.Reply{Effects: []mortise.Effect{{
		Type: mortise.EffectReplaceMessage, MessageID: e.ResultMessageID, Content: content, Note: note(counts),
	}}}
	for _, rule := range scrub.Rules() {
		if n := counts[rule]; n > 0 {
			r.Updates = append(r.Updates, mortise.Update{Key: rule, Op: mortise.OpAdd, Value: int64(n)})
		}
	}
	return r, nil
}

// scrubResult returns what the model is to read in place of the result. A result
// without content is read from its message, or from its data as JSON.
func scrubResult(s *scrub.Scrubber, r *mortise.ToolResult, counts map[string]int) []mortise.ContentBlock {
	if len(r.Content) > 0 {
		out := slices.Clone(r.Content)
		for i := range out {
			if out[i].Type == mortise.BlockText {
				out[i].Text = s.Text(out[i].Text, counts)
			}
		}
		return out
	}
	text := r.Message
	if text == "" {
		text = string(appendJSON(nil, r.Data, 0))
	}
	return []mortise.ContentBlock{mortise.Text(s.Text(text, counts))}
}

// note is "3 credentials: assignment 2, github_token 1".
func note(counts map[string]int) string {
	total := 0
	parts := make([]string, 0, len(counts))
	for rule, n := range counts {
		total += n
		parts = append(parts, rule+" "+strconv.Itoa(n))
	}
	slices.Sort(parts)
	word := " credentials: "
	if total == 1 {
		word = " credential: "
	}
	return strconv.Itoa(total) + word + strings.Join(parts, ", ")
}
