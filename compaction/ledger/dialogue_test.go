package ledger_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/compaction/ledger"
)

// meeting is a talk of three people.
func meeting() *story {
	s := &story{}
	for _, line := range []string{
		"Anna: Welcome to the board of Nordhavn. The rent went up to £24 million in March, I'll explain why.",
		"Ben Li: Why did the harbour office—Kattegat House—agree to that {laughter} before we saw the contract?",
		"Carla: We've seen the contract on March 31, and Nordhavn's lawyers said that fifty per cent is due in May.",
		"Anna: The roof costs 300 euros for each berth, and two berths are empty.",
		"Carla: Nordhavn has seen worse.",
		"Ben Li: Kattegat House has 41 berths, and Nordhavn has 12 of them.",
	} {
		s.user(line)
	}
	return s
}

// TestMeetingHasNoRequest shows that what people say to each other is quoted as that, not as a request to the agent.
func TestMeetingHasNoRequest(t *testing.T) {
	t.Parallel()
	s := meeting()
	text := s.render(2000)
	lacks(t, text, "## Goal", "{laughter}")
	has(t, part(text, "Said, word for word"), "- m1 Anna: ", "- m2 Ben Li: Why did the harbour office—Kattegat House—agree to that")
	has(t, s.agent("I can draft a letter to Nordhavn.").render(2000), "## Goal")
}

// TestListsOfNames shows that what a list holds means something by itself: numbers with their units, names without the word
// behind a dash, neither contractions nor words for numbers.
func TestListsOfNames(t *testing.T) {
	t.Parallel()
	text := meeting().render(560)
	lists := part(text, "Named most") + part(text, "Who spoke of what") + part(text, "Other names")
	has(t, lists, "Nordhavn", "Kattegat", "£24 million", "March 31", "300 euros")
	lacks(t, lists, "office—", "House—", "I'll", "We've", " fifty", " two", "Nordhavn's")
}

// TestTinyPageOfNotes shows that a page with room for a sentence or two names what came up most, too.
func TestTinyPageOfNotes(t *testing.T) {
	t.Parallel()
	s := &story{}
	for _, line := range []string{"Send the draft to Finance by Friday.", "The call with Jacob moved to Friday at 10 AM.", "Pay the daycare by Friday.", "Orientation at the school is next Thursday.", "Wash the car, and vacuum it on Sunday."} {
		s.user(line)
	}
	text := s.render(150)
	has(t, text, "## The user said\n- m", "Friday")
	has(t, part(text, "Other names"), "Named: ")
}

// TestToolDialogueTellsWhatBecameOfRequests shows each request with the answer of the agent, once, and that thanks are no request.
func TestToolDialogueTellsWhatBecameOfRequests(t *testing.T) {
	t.Parallel()
	s := (&story{}).user("Move my trip JG7FMM to Monday, please.").
		call("get_reservation", map[string]any{"reservation_id": "JG7FMM"}, `{"reservation_id":"JG7FMM","user_id":"mia_li_3668","payment_methods":{"gift_card_1111111":{"amount":31},"credit_card_4421486":{"last_four":"7334"}},"created_at":"2024-05-14T10:44:24"}`).
		call("calculate", map[string]any{"expression": "6594 + 3925"}, "10519.0").
		agent("Moving it costs $10,519. Shall I go ahead?").user("No, that is too much. Cancel it.").
		call("cancel_reservation", map[string]any{"reservation_id": "JG7FMM"}, `{"reservation_id":"JG7FMM","status":"cancelled"}`).
		agent("JG7FMM is cancelled.").user("Thank you for your help!")
	text := s.render(3000)
	goal := part(text, "Goal")
	has(t, goal, "First request, m1: “Move my trip JG7FMM to Monday, please.”\n  → the agent at m6: “Moving it costs $10,519.”", "Latest request, m7: “No, that is too much. Cancel it.”", "→ the agent at m10: “JG7FMM is cancelled.”")
	lacks(t, goal, "Thank you")
	requests := part(text, "Requests and what became of them")
	has(t, requests, "- m11 “Thank you for your help!”")
	lacks(t, requests, "Cancel it", "Move my trip")
	has(t, part(text, "Last steps"), "- m4 calculate expression=6594 + 3925 → “10519.0”")
	has(t, part(text, "Records"), "; gift_card_1111111 amount 31")
	lacks(t, part(text, "Other names"), "10:44:24", "gift_card ", "credit_card ")
	if again := readBack(t, text); !strings.Contains(again, "→ the agent at m10: “JG7FMM is cancelled.”") || !strings.Contains(again, "→ “10519.0”") {
		t.Errorf("read back as\n%s", again)
	}
	has(t, part((&story{}).user("Book it.").call("look", map[string]any{"user_id": "u1"}, `{"user_id":"u1","plan":"gold"}`).user("Thanks, but cancel the second one.").render(3000), "Goal"), "Latest request, m4: “Thanks, but cancel the second one.”")
}

// readBack renders what a text restores.
func readBack(t *testing.T, text string) string {
	t.Helper()
	s, ok := ledger.ReadBack(text)
	if !ok {
		t.Fatal("it is no rendering")
	}
	return ledger.Render(&s, 2*len(text))
}

// TestRequestBehindAPaste shows the end of a request of which only the pasted beginning fits.
func TestRequestBehindAPaste(t *testing.T) {
	t.Parallel()
	s := (&story{}).user("Fix the queue.").edit("/w/a.go").user("=== Step 11 ===\n" + strings.Repeat("a line of output\n", 40) + "\nShould that have the attribution?").edit("/w/b.go")
	has(t, part(s.render(4000), "Goal"), "- Latest request, m4: “=== Step 11 ===", " characters)\n  → at its end: “Should that have the attribution?”")
	lacks(t, (&story{}).user("Fix the queue.").edit("/w/a.go").render(4000), "at its end")
}

// TestWhatIsNoRequestAndNoRule shows that commands to the agent's program are no requests, that lines of a paste are no rules of the user, and that
// a courtesy is not all that is shown of an answer.
func TestWhatIsNoRequestAndNoRule(t *testing.T) {
	t.Parallel()
	s := (&story{}).user("/model").user("Fix the queue:\n86 +        // Full clear on resize to avoid artifacts\n2026-02-12T10:29:15+01:00 the lock must be gone\n1. Never block.").
		edit("/w/a.go").agent("Good question. The lock is released too early.").user("/w/a.go is still wrong").edit("/w/a.go")
	text := s.render(20000)
	has(t, part(text, "Goal"), "- First request, m2: “Fix the queue:", "- Latest request, m6: “/w/a.go is still wrong”")
	rules := part(text, "What the user wants kept in mind")
	has(t, rules, "“1. Never block.”")
	lacks(t, rules, "artifacts", "the lock must")
	has(t, text, "→ the agent at m5: “Good question. The lock is released too early.”")
	lacks(t, text, "“/model”")
}
