package ledger

import (
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// talkLexicon numbers the words of statements, and returns those of each.
func talkLexicon(list []abi.LedgerText) (x *lexicon, words [][]int) {
	size := 0
	for i := range list {
		size += len(list[i].Text)
	}
	x, words = newLexicon(size), make([][]int, len(list))
	for i := range list {
		words[i] = x.words(list[i].Text)
	}
	kinds := make([]byte, len(x.weight))
	for i := range kinds {
		kinds[i] = x.kind(i)
	}
	x.kinds = string(kinds)
	return x, words
}

// kind is the kind of a word.
func (x *lexicon) kind(id int) byte {
	form := x.form[id]
	switch {
	case x.weight[id] == plainWeight:
		return abi.WordPlain
	case isCardinal(strings.ToLower(form)), isDigitByte(form[0]) && len(x.label[id]) <= 2:
		return abi.WordBareNumber
	case x.weight[id] == properWeight:
		return abi.WordName
	case letter(form[0]) && isDigitByte(form[len(form)-1]) && isID(form):
		return abi.WordID
	}
	return abi.WordNumber
}

// talkWords are the words of statements as a ledger has them: a rendering need not find them again.
func talkWords(list []abi.LedgerText) *abi.LedgerWords {
	x, words := talkLexicon(list)
	out := &abi.LedgerWords{Labels: x.label, Kinds: x.kinds, Runs: make([]int, 0, len(x.runs)+len(list))}
	for _, run := range words {
		out.Runs = append(append(out.Runs, len(run)), run...)
	}
	return out
}

// readWords is talkLexicon of words that a ledger has. It reports false if they are not those of so many statements.
func readWords(w *abi.LedgerWords, statements int) (x *lexicon, words [][]int, ok bool) {
	if w == nil || len(w.Kinds) != len(w.Labels) {
		return nil, nil, false
	}
	words = make([][]int, statements)
	at := 0
	for i := range words {
		if at >= len(w.Runs) || w.Runs[at] < 0 || w.Runs[at] >= len(w.Runs)-at {
			return nil, nil, false
		}
		end := at + 1 + w.Runs[at]
		words[i] = w.Runs[at+1 : end : end]
		for _, id := range words[i] {
			if id < 0 || id >= len(w.Labels) {
				return nil, nil, false
			}
		}
		at = end
	}
	x = &lexicon{label: w.Labels, kinds: w.Kinds, weight: make([]float64, len(w.Labels))}
	for i := range x.weight {
		x.weight[i] = weightOf(w.Kinds[i])
	}
	return x, words, at == len(w.Runs)
}

// weightOf is the weight of a word of a kind.
func weightOf(kind byte) float64 {
	switch kind {
	case abi.WordName:
		return properWeight
	case abi.WordBareNumber, abi.WordNumber, abi.WordID:
		return numberWeight
	}
	return plainWeight
}

// listed reports a name or a number that means something by itself, in a list.
func (x *lexicon) listed(id int) bool {
	return x.kinds[id] != abi.WordPlain && x.kinds[id] != abi.WordBareNumber
}
