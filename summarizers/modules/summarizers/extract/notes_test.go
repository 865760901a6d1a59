package extract_test

import (
	"strings"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/extract"
)

// chatter is a long talk of which little is a fact.
func chatter() []mortise.Message {
	list := make([]mortise.Message, 0, 90)
	for range 30 {
		list = append(list,
			say(mortise.RoleUser, "Well, I was really hoping that we could maybe talk a little more about all of this, because I think it would be great."),
			say(mortise.RoleAssistant, "Of course, I would be glad to help you with whatever you want to know about it."),
			say(mortise.RoleUser, "I’m not sure whether it is something that you would usually do, but thanks again for everything so far."))
	}
	list[10] = say(mortise.RoleUser, "Oh, and the strawberry matcha goes into the copper kettle—I told you that the handle was bent, right?")
	list[40] = say(mortise.RoleUser, "My daughter Ingrid (she is allergic to walnuts) will visit us in Trondheim on the ninth.")
	return list
}

// TestNotes cuts chatter to 3 %: what names things stays, each within reach of
// the words that it belongs to.
func TestNotes(t *testing.T) {
	t.Parallel()
	text := summarize(t, &mortise.SummarizeRequest{Messages: chatter(), BudgetTokens: 75})
	for fact, near := range map[string]string{
		"strawberry matcha": "kettle", "bent": "handle", "Ingrid": "walnuts", "Trondheim": "visit", "allergic": "walnuts",
	} {
		at := strings.Index(text, fact)
		if at < 0 || !strings.Contains(text[max(0, at-200):min(len(text), at+200)], near) {
			t.Errorf("lost %q near %q in\n%s", fact, near, text)
		}
	}
	if strings.Contains(text, "##") {
		t.Errorf("headings in %d bytes:\n%s", len(text), text)
	}
}

// TestNoNotesWithRoom keeps whole sentences where there is room, and says each
// thing once.
func TestNoNotesWithRoom(t *testing.T) {
	t.Parallel()
	text := summarize(t, &mortise.SummarizeRequest{Messages: chatter(), BudgetTokens: 4000})
	if !strings.Contains(text, "My daughter Ingrid (she is allergic to walnuts) will visit us in Trondheim on the ninth.") ||
		strings.Count(text, "Ingrid") != 1 || strings.Contains(text, "## Notes") {
		t.Errorf("got\n%s", text)
	}
}

// TestAgain summarizes a summary with next to nothing new: it stays.
func TestAgain(t *testing.T) {
	t.Parallel()
	for _, budget := range []int64{75, 250, 4000} {
		first := summarize(t, &mortise.SummarizeRequest{Messages: chatter(), BudgetTokens: budget})
		text := first
		for range 8 {
			text = summarize(t, &mortise.SummarizeRequest{
				Messages: []mortise.Message{say(mortise.RoleUser, "Okay, thanks.")}, PreviousSummary: &text, BudgetTokens: budget,
			})
		}
		for _, fact := range []string{"matcha", "bent", "Ingrid", "walnuts", "Trondheim"} {
			if strings.Contains(first, fact) && !strings.Contains(text, fact) {
				t.Errorf("%d tokens: lost %q:\n%s\nafter\n%s", budget, fact, text, first)
			}
		}
	}
}

// TestValues lists what tells things apart in results of tools, grouped by key.
func TestValues(t *testing.T) {
	t.Parallel()
	var rows []string
	for _, id := range []string{"HAT136", "HAT039", "HAT218", "HAT069"} {
		rows = append(rows, `{"flight_number": "`+id+`", "origin": "JFK", "note": "a seat by the window is what most people ask for on this one", "price": 152}`)
	}
	list := []mortise.Message{
		say(mortise.RoleUser, "Which flights are there?"),
		say(mortise.RoleTool, "["+strings.Join(rows, ", ")+"]"),
		say(mortise.RoleAssistant, "There are four, as far as I can see."),
	}
	text, want := summarize(t, &mortise.SummarizeRequest{Messages: list, BudgetTokens: 60}), "flight number: HAT136, HAT039, HAT218, HAT069"
	if !strings.Contains(text, want) {
		t.Errorf("no %q in\n%s", want, text)
	}
	if _, err := extract.Summarize(&mortise.SummarizeRequest{Messages: list[1:2], BudgetTokens: 60}); err != nil {
		t.Error(err)
	}
}
