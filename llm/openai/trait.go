package openai

import "strings"

// trait is what a model takes, as far as its name shows. The API does not say.
type trait struct {
	// sampling: it takes temperature and top_p. OpenAI's reasoning models do not.
	sampling bool
	// reasoning: it takes an effort, and has reasoning items. Models of other vendors
	// count as both, since their servers leave out what they do not know.
	reasoning bool
}

func traitOf(model string) trait {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	name = strings.TrimPrefix(name, "ft:")
	digit := func(prefix string, from, to byte) bool {
		rest, ok := strings.CutPrefix(name, prefix)
		return ok && rest != "" && from <= rest[0] && rest[0] <= to
	}
	switch {
	case digit("gpt-", '3', '4'), strings.HasPrefix(name, "chatgpt"), digit("gpt-", '5', '9') && strings.Contains(name, "-chat"):
		return trait{sampling: true}
	case digit("gpt-", '5', '9'), digit("o", '1', '9'), strings.HasPrefix(name, "codex"):
		return trait{reasoning: true}
	default:
		return trait{sampling: true, reasoning: true}
	}
}
