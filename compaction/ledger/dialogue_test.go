package ledger_test

import (
	"fmt"
	"regexp"
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
	has(t, part(text, "Spoken of, in order"), "- m1 to m6 Anna, ", "\n  → m1 Anna: ", "\n  → m2 Ben Li: Why did the harbour office—Kattegat House—agree to that")
	has(t, s.agent("I can draft a letter to Nordhavn.").render(2000), "## Goal")
	again := readBack(t, s.render(2000))
	has(t, again, "## Goal\n- First request, m1: ")
	lacks(t, readBack(t, meeting().render(2000)), "## Goal")
}

// TestBraces shows that only a note of who wrote a talk down is left out: a brace in a path is part of what was said.
func TestBraces(t *testing.T) {
	t.Parallel()
	has(t, (&story{}).user("The path is /users/{id}/orders, and { name } is in {format} braces.").render(2000), "/users/{id}/orders", "{format}")
	talk := part((&story{}).user("Anna: The path is /users/{id}/orders.").user("Ben: The harbour is closed {vocalsound} until Friday evening.").render(2000), "The user said")
	has(t, talk, "/users/{id}/orders", "until Friday evening")
	lacks(t, talk, "{vocalsound}")
}

// TestAmounts shows a number with what makes it a fact: a whole unit, also a short one or a sign behind it, and a name in front of it
// that is not the word which opens a sentence.
func TestAmounts(t *testing.T) {
	t.Parallel()
	s := &story{}
	for _, line := range []string{
		"Anna: Welcome to ‘Kattegat’, where we closed 21 Straßen, and the Hafen pays 22 EUR for it.", "Ben: It takes 23 km, ok. The 24 of them, but 25 to us, or 26 the same.",
		"Carla: Well, it costs 27 € by then, and 28€ on May 29 in ‘Kattegat’.", "Anna: I see, fine. But 31 in all.", "Ben: It is 32 GB now.", "Carla: Is ‘Kattegat’ yours?",
	} {
		s.user(line)
	}
	lists := ""
	for budget := 400; budget <= 1000; budget += 50 {
		text := s.render(budget)
		lists += strings.ReplaceAll(listsOf(text), "\n", " ") + " "
	}
	has(t, lists, "21 Straßen ", "22 EUR ", "23 km ", "27 € ", "28€ ", "May 29 ", "32 GB ", " Kattegat ")
	lacks(t, lists, "The 24", "24 of", "25 to", "26 the", "But 31", "31 in", "Kattegat’")
}

// listsOf are the lists of a page, without what was said word for word.
func listsOf(text string) string {
	said := regexp.MustCompile(`(?m)^ {2}→ .*\n?`)
	return said.ReplaceAllString(part(text, "Named most")+part(text, "Spoken of, in order")+part(text, "Other names"), "")
}

// TestListsOfNames shows that what a list holds means something by itself: numbers with their units, names without the word
// behind a dash, neither contractions nor words for numbers.
func TestListsOfNames(t *testing.T) {
	t.Parallel()
	text := meeting().render(560)
	lists := listsOf(text)
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
	for _, text := range []string{"Thank you for your help! Cancel the booking.", "Thanks for that, cancel the booking.", "Thank you so much:\ncancel the booking", "I appreciate it if you cancel the booking"} {
		has(t, part((&story{}).user("Book it.").call("look", map[string]any{"user_id": "u1"}, `{"user_id":"u1","plan":"gold"}`).user(text).render(3000), "Goal"), "ancel the booking")
	}
	lacks(t, (&story{}).user("Go.").call("calculate", map[string]any{"expression": "1"}, "---").call("look", map[string]any{"user_id": "u1"}, `{"user_id":"u1","plan":"gold"}`).render(3000), "“---”")
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
	paste := "=== Step 11 ===\n" + strings.Repeat("a line of output\n", 40)
	lacks(t, (&story{}).user("Fix the queue.").user(paste+"\nShould that have the attribution?").render(4000), "at its end") // the talk has it
	// What is pasted at the end is no fact of the next rendering.
	text := (&story{}).user("Fix the queue.").edit("/w/a.go").user(paste + "\nNow fix it; changed go.mod; stopped at m3; committed 1a2b3c4").edit("/w/b.go").render(4000)
	has(t, text, "→ at its end: “Now fix it; changed go.mod; stopped at m3; committed 1a2b3c4”")
	again := readBack(t, text)
	lacks(t, part(again, "Requests and what became of them")+part(again, "Open"), "go.mod", "1a2b3c4", "stopped at m3")
	// A rule is not said twice, and a long end leaves room for the rest.
	twice := (&story{}).user("Fix the queue.").edit("/w/a.go").user(paste + paste + "\nThen leave the customers out.").edit("/w/b.go").render(4000)
	if n := strings.Count(twice, "leave the customers out"); n != 1 {
		t.Errorf("said %d times:\n%s", n, twice)
	}
	end := "The end " + strings.Repeat("is long and ", 30)
	goal := part((&story{}).user(paste+end).edit("/w/a.go").user(paste+end+"x").edit("/w/b.go").render(1300), "Goal")
	has(t, goal, "at its end: “The end is long")
	if _, end, _ = strings.Cut(goal, "at its end: "); strings.IndexByte(end, '\n') > 1300/5 {
		t.Errorf("an end has a fifth of the page:\n%s", goal)
	}
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
	numbers := part((&story{}).user("Fix it.\n2 retries at most, never more.\n100% must pass always.\n12:01 never said it\n7 | never said it\n12\tnever said it\n1a2b3c4 Never said it").edit("/w/a.go").render(20000), "What the user wants kept in mind")
	has(t, numbers, "“2 retries at most, never more.”", "“100% must pass always.”")
	lacks(t, numbers, "said it")
	tasks := (&story{}).user("Fix it.").edit("/w/a.go").agent("Shall I push it?").user("/terminal-setup").user("Yes.").edit("/w/b.go").user("/fix-ci").edit("/w/c.go").render(20000)
	has(t, tasks, "- Latest request, m9: “/fix-ci”", "the agent had asked at m4: “Shall I push it?”")
	lacks(t, tasks, "“/terminal", "stopped at m5")
	lacks(t, rules, "artifacts", "the lock must")
	has(t, text, "→ the agent at m5: “Good question. The lock is released too early.”")
	lacks(t, text, "“/model”")
}

// TestMeetingHasAStatementOfEachPart shows that a part without names and numbers is quoted, too, by what says most of its topics.
func TestMeetingHasAStatementOfEachPart(t *testing.T) {
	t.Parallel()
	s := &story{}
	for i := range 40 {
		s.user(fmt.Sprintf("%s: Berth %d of Nordhavn costs £%d million since March %d, says Kattegat House.", []string{"Anna", "Ben", "Carla"}[i%3], 20+i, 30+i, i%28))
	}
	for i := range 40 {
		s.user(fmt.Sprintf("%s: %s", []string{"Anna", "Ben", "Carla"}[i%3], []string{
			"The lantern should hang over the stairs where everybody walks in the evening.", "A lantern needs somebody who lights it when the evening comes.",
		}[i%2]))
	}
	text := part(s.render(2600), "Spoken of, in order")
	parts := strings.Split(text, "\n- ")
	for _, p := range parts {
		has(t, p, "\n  → m")
	}
	has(t, parts[len(parts)-1], "antern")
	head, _, _ := strings.Cut(parts[len(parts)-1], "\n")
	if strings.Count(head, "lantern") != 1 {
		t.Errorf("a word is there twice: %s", head)
	}
	if len(parts) < 2 {
		t.Errorf("%d parts:\n%s", len(parts), text)
	}
}
