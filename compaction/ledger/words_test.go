package ledger_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/ledger"
)

// talkOf is a meeting of three people.
func talkOf(turns int) *story {
	s := &story{}
	for i := range turns {
		who := []string{"Anna Berg", "Bo Li", "Cem Aydin"}[i%3]
		s.user(fmt.Sprintf("%s: We need %d per cent of the budget for Project%d in Vienna, and HAT%d ships on Monday. Seven of us agreed with Mr. Novak.", who, i, i%7, 170+i))
	}
	return s
}

// TestWords shows that the words that a trimmed ledger has of a dialogue change no rendering, and that words that do not belong to the
// statements are not used.
func TestWords(t *testing.T) {
	t.Parallel()
	state := talkOf(40).state()
	for _, budget := range []int{200, 900, 3000, 9000} {
		trimmed, want := ledger.Trim(state, budget), ledger.Render(&state, budget)
		w := trimmed.Talk.Words
		if w == nil || len(w.Kinds) != len(w.Labels) || len(w.Runs) < 2*len(trimmed.Talk.Statements) {
			t.Fatalf("words: %+v", w)
		}
		if got := ledger.Render(&trimmed, budget); got != want {
			t.Errorf("%d bytes: %s\nwant %s", budget, got, want)
		}
		for name, wrong := range map[string]abi.LedgerWords{
			"no runs":            {Labels: w.Labels, Kinds: w.Kinds},
			"more labels":        {Labels: append(slices.Clone(w.Labels), "x"), Kinds: w.Kinds, Runs: w.Runs},
			"a run is missing":   {Labels: w.Labels, Kinds: w.Kinds, Runs: w.Runs[w.Runs[0]+1:]},
			"runs are left over": {Labels: w.Labels, Kinds: w.Kinds, Runs: append(slices.Clone(w.Runs), 0)},
			"a run is too long":  {Labels: w.Labels, Kinds: w.Kinds, Runs: w.Runs[:len(w.Runs)-1]},
			"an unknown word":    {Labels: w.Labels[:2], Kinds: w.Kinds[:2], Runs: w.Runs},
			"negative":           {Labels: w.Labels, Kinds: w.Kinds, Runs: append([]int{-1}, w.Runs...)},
		} {
			trimmed.Talk.Words = &wrong
			if got := ledger.Render(&trimmed, budget); got != want {
				t.Errorf("%s, %d bytes: %s", name, budget, got)
			}
		}
	}
	trimmed := ledger.Trim(state, 900)
	l := ledger.From(trimmed)
	l.Add(talkOf(41).log[40])
	if l.State().Talk.Words != nil {
		t.Error("a ledger that continues has the words of fewer statements")
	}
}

// TestKindsOfWords shows what is listed as what.
func TestKindsOfWords(t *testing.T) {
	t.Parallel()
	trimmed := ledger.Trim(talkOf(3).state(), 900)
	got := map[string]byte{}
	for i, label := range trimmed.Talk.Words.Labels {
		got[label] = trimmed.Talk.Words.Kinds[i]
	}
	for label, want := range map[string]byte{
		"Vienna": abi.WordName, "HAT170": abi.WordID, "Monday": abi.WordNumber, "2 per cent": abi.WordNumber, "Seven": abi.WordBareNumber, "agreed": abi.WordPlain,
	} {
		if got[label] != want {
			t.Errorf("%q is %q, want %q, in %q", label, got[label], want, trimmed.Talk.Words.Labels)
		}
	}
}
