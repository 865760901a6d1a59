package ledger_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/compaction/ledger"
)

const vendorSummary = "This session is being continued from a previous conversation that ran out of context. The conversation is summarized below:\n" +
	"1. Primary Request and Intent:\n   The user asked to rewrite vendor_words.go and must never be quoted."

func TestWhatIsNotTheUsersWords(t *testing.T) {
	t.Parallel()
	s := (&story{}).user(vendorSummary).
		user("<command-name>/clear</command-name>").
		user("<command-message>plan is running</command-message>\n<command-name>/plan</command-name>").
		user("<system-reminder>You must always obey reminder_words</system-reminder>").
		user("<command-message>fix</command-message>\n<command-name>/fix</command-name>\n<command-args>the flaky test in queue_test.go</command-args>").
		user("[Request interrupted by user]").
		user("<task-notification>task_words must be kept</task-notification>").
		user("Real words.<system-reminder>Never mention trailing_words</system-reminder>")
	text := s.render(9000)
	for _, r := range s.state().Talk.Requests {
		lacks(t, r.Text, "vendor", "command", "reminder", "interrupted", "task_words", "trailing_words")
	}
	has(t, part(text, "Goal"), "“the flaky test in queue_test.go”", "“Real words.”")
	has(t, text, "vendor_words.go")
	has(t, part(text, "From a summary of what came before the log"), "The user asked to rewrite")
	lacks(t, part(text, "What the user wants kept in mind"), "never be quoted", "reminder_words", "task_words", "trailing_words")
}

func TestFirstAndLatestRequestStandVerbatim(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Please rewrite the retry loop of the queue so that it waits. ", 170)
	lines := strings.Repeat("a line of a request\n", 60)
	for _, budget := range []int{2000, 3000, 5000, 20000} {
		for _, tc := range [][2]string{{long, lines}, {lines, long}, {lines, lines + "x"}} {
			s := (&story{}).user(tc[0]).agent("Yes.").user(tc[1])
			s.edit("/w/a.go")
			goal := strings.ReplaceAll(part(s.render(budget), "Goal"), "\n    ", "\n")
			has(t, goal, strings.TrimSpace(tc[0][:300]), strings.TrimSpace(tc[1][:300]))
		}
	}
}

func TestShortAnswerCarriesItsQuestion(t *testing.T) {
	t.Parallel()
	s := (&story{}).user("Rework the store.").agent("There are two ways.\n\nWhich approach do you prefer?").user("let's try 2").edit("/w/a.go").agent("Done with the second way.").user("fine")
	text := s.render(9000)
	has(t, part(text, "Requests and what became of them"), "- m3 “let's try 2”\n  → the agent had asked at m2: “Which approach do you prefer?”\n  → changed a.go\n  → the agent at m6: “Done with the second way.”")
	has(t, (&story{}).user("Rework the store.").agent("Which approach do you prefer?").user("2").edit("/w/a.go").render(3000), "Which approach do you prefer?")
	open := part((&story{}).user("Rework it.").edit("/w/a.go").agent("Shall I also rename it?").render(9000), "Open")
	has(t, open, "- the agent asked at m4: “Shall I also rename it?”")
}

func TestStoppedRequests(t *testing.T) {
	t.Parallel()
	s := &story{}
	for _, text := range []string{"Rename the queue.", "Wait, first fix the lock.", "And the lint errors."} {
		s.user(text).edit("/w/a.go")
	}
	s.agent("All fixed.").user("Good.")
	open := part(s.render(9000), "Open")
	has(t, open, "stopped at m4: request m1 “Rename the queue.”", "stopped at m7: request m4 “Wait, first fix the lock.”")
	lacks(t, open, "And the lint errors.")
	many := &story{}
	for i := range 30 {
		many.user("Request number " + strings.Repeat("x", i+1)).edit("/w/a.go")
	}
	// The last is not stopped yet; each other one is there, by its number at least.
	open = part(many.render(9000), "Open")
	for i := range 29 {
		has(t, strings.ReplaceAll(open, "\n", " ")+" ", " m"+itoa(3*i+1)+" ")
	}
}

func TestTasks(t *testing.T) {
	t.Parallel()
	todo := func(a, b string) map[string]any {
		return map[string]any{"todos": []any{map[string]any{"content": "first thing", "status": a}, map[string]any{"content": "second thing", "status": b}}}
	}
	open := part((&story{}).user("go").call("TodoWrite", todo("in_progress", "pending"), "ok").call("TodoWrite", todo("completed", "in_progress"), "ok").render(6000), "Open")
	has(t, open, "[doing] second thing")
	lacks(t, open, "first thing", "[to do]")
	s := (&story{}).user("go").call("TaskCreate", map[string]any{"subject": "write tests"}, "Task #1 created successfully: write tests").
		call("TaskCreate", map[string]any{"subject": "run lint"}, "Task #2 created successfully: run lint").
		call("TaskUpdate", map[string]any{"taskId": "1", "status": "completed"}, "Updated task #1").
		call("TaskUpdate", map[string]any{"taskId": "2", "status": "in_progress"}, "Updated task #2")
	open = part(s.render(6000), "Open")
	has(t, open, "- [doing] #2 run lint")
	lacks(t, open, "write tests")
	open = part((&story{}).user("go").call("update_plan", map[string]any{"plan": []any{map[string]any{"step": "read", "status": "completed"}, map[string]any{"step": "write", "status": "pending"}}}, "Plan updated").render(6000), "Open")
	has(t, open, "- [to do] write")
	has(t, part((&story{}).user("go").call("ExitPlanMode", map[string]any{"plan": "# Plan\nSplit the store."}, "ok").render(6000), "Plan"), "Split the store.")
}

func TestRulesAndFindings(t *testing.T) {
	t.Parallel()
	s := (&story{}).user("Never commit to main. Should we use a queue? The sky is blue today.").
		agent("Let me look at the code.\nThe root cause is that the lock is released too early in queue.go.\nShall I fix it?").user("Never commit to main.").edit("/w/a.go")
	text := s.render(8000)
	rules := part(text, "What the user wants kept in mind")
	has(t, rules, "- m3 “Never commit to main.”")
	lacks(t, rules, "Should we", "sky", "m1 ")
	findings := part(text, "Findings, in the agent's words")
	has(t, findings, "- m2 “The root cause is that the lock is released too early in queue.go.”")
	lacks(t, findings, "Let me look", "Shall I")
}

func TestSpeakersAndWhenItChanged(t *testing.T) {
	t.Parallel()
	s := &story{}
	s.user("Anna: I prefer the morning train to Bergen. We decided on 14 March for the offsite.").
		user("Ben: I'll send the budget of 3,200 euros by Friday.").
		user("Anna: Actually, the morning train to Bergen no longer suits me, I take the night train.")
	said := part(s.render(1200), "Said, word for word")
	has(t, said, "- m1 Anna: I prefer the morning train to Bergen.", "14 March", "- m2 Ben: I'll send the budget of 3,200 euros by Friday.", "(earlier: m1)")
	kinds := map[string]bool{}
	for _, st := range s.state().Talk.Statements {
		kinds[st.Kind] = true
	}
	for _, k := range []string{"preference", "decision", "promise", "change"} {
		if !kinds[k] {
			t.Errorf("no %s in %v", k, kinds)
		}
	}
	for text, by := range map[string]string{"Now I'm curious: what is it?": "user", "Note this: x": "user", "Dr David Blaney: Yes we do that here.": "Dr David Blaney", "PROFESSOR C: Right, that is what I meant.": "PROFESSOR C"} {
		if got := (&story{}).user(text + " There are 12 of them.").state().Talk.Statements[0].By; got != by {
			t.Errorf("%q: by %q, want %q", text, got, by)
		}
	}
}

func TestRecordsHaveTheirOwners(t *testing.T) {
	t.Parallel()
	s := (&story{}).user("Cancel my order W123.").
		call("get_order", map[string]any{"order_id": "W123"}, `{"order_id": "W123", "user_id": "mia_1", "status": "pending", "items": [{"item_id": "I77", "price": 12.5}], "address": {"city": "Austin"}}`).
		call("get_order", map[string]any{"order_id": "W999"}, `{"order_id": "W999", "status": "delivered"}`).
		call("cancel_order", map[string]any{"order_id": "W123", "reason": "no longer needed"}, `{"order_id": "W123", "status": "cancelled"}`).
		agent("Your order is cancelled.")
	text := s.render(4000)
	has(t, part(text, "Records"), "- order W123 (m7): status cancelled (was pending)", "user_id mia_1", "address city Austin", "- order W999 (m5): status delivered", "items item_id I77, price 12.5")
	has(t, part(text, "Last steps"), "- m6 cancel_order order_id=W123 reason=no longer needed")
}

func itoa(n int) string {
	var b []byte
	for ; n > 0; n /= 10 {
		b = append([]byte{byte('0' + n%10)}, b...)
	}
	return string(b)
}

// TestNotesOfOneUser shows that a word in front of a note is no speaker: lines have no names, and no line says who "spoke of" something.
func TestNotesOfOneUser(t *testing.T) {
	t.Parallel()
	s := (&story{}).user("Monday: The budget of 4,200 euros is due on Friday.").user("Kids: Orientation is at 9 AM. The co-ordinator is well-known.").user("Car: Check the tires on Sunday.").
		user("Dr. Weber moved the check-up to 14 March.")
	text := s.render(1500)
	has(t, part(text, "The user said"), "- m1 Monday: The budget of 4,200 euros", "- m4 Dr. Weber moved the check-up to 14 March.")
	lacks(t, text, "Who spoke", "user:", "well-known\n")
	old, ok := ledger.ReadBack(text)
	if !ok || len(old.Talk.Statements) != 5 || old.Talk.Statements[4].By != "user" || old.Talk.Statements[4].Text != "Dr. Weber moved the check-up to 14 March." {
		t.Errorf("read back as %+v", old.Talk.Statements)
	}
}

// TestToolDialogue shows a call with its rows under their fields, and that an id which a call used comes before one that only
// results held, also where it is the key of a value.
func TestToolDialogue(t *testing.T) {
	t.Parallel()
	s := (&story{}).user("Move my trip, please. I am mia_li_3668.").
		call("get_user_details", map[string]any{"user_id": "mia_li_3668"}, `{"user_id":"mia_li_3668","payment_methods":{"gift_card_1111111":{"amount":31},"credit_card_4421486":{"last_four":"7334"}},"created_at":"2024-05-14T10:44:24"}`).
		call("update_reservation_flights", map[string]any{
			"reservation_id": "JG7FMM", "payment_id": "credit_card_4421486",
			"flights": []any{map[string]any{"date": "2024-05-28", "flight_number": "HAT080"}, map[string]any{"date": "2024-05-30", "flight_number": "HAT255"}},
		}, `{"reservation_id":"JG7FMM","cabin":"economy"}`).agent("Your trip was moved.")
	has(t, s.render(2000), "- m4 update_reservation_flights flights(date,flight_number)=2024-05-28 HAT080, 2024-05-30 HAT255 payment_id=credit_card_4421486 reservation_id=JG7FMM")
	for i := range 40 {
		s.call("get_flight", map[string]any{"flight_number": "HAT" + strings.Repeat("1", i%3)}, `{"flight_number":"HAT`+strings.Repeat("2", 3+i%5)+`","date":"2024-06-01"}`)
	}
	has(t, s.render(420), "credit_card_4421486")
	keyed := (&story{}).user("Which trips do I have?").call("get_trips", map[string]any{"user_id": "mia_li_3668"}, `{"user_id":"mia_li_3668","trips":{"JG7FMM":{"address1":"Elm Street","cabin":"`+strings.Repeat("economy ", 60)+`"},"XQZPA77":{"cabin":"`+strings.Repeat("economy ", 60)+`"}}}`)
	names := part(keyed.render(200), "Other names")
	has(t, names, "JG7FMM", "XQZPA77")
	lacks(t, names, "address1")
}

// TestOtherLanguages shows that what the user wants always is found in other languages, and behind a long text that was pasted.
func TestOtherLanguages(t *testing.T) {
	t.Parallel()
	for text, rule := range map[string]string{
		"Исправь очередь. Не меняй публичный API.":                             "Не меняй публичный API.",
		"修复队列。绝不能阻塞。":                                                          "绝不能阻塞。",
		"Räum auf. Die API darf nicht anders werden, z.B. keine neuen Felder.": "Die API darf nicht anders werden, z.B. keine neuen Felder.",
		"Corrige la cola. Nunca cambies la API.":                               "Nunca cambies la API.",
	} {
		has(t, part((&story{}).user(text).edit("/w/a.go").render(2000), "What the user wants kept in mind"), "- m1 “"+rule+"”")
	}
	pasted := (&story{}).user("Look at this:\n" + strings.Repeat("12:00 INFO nothing\n", 200) + "Then write out.md and leave the customers out.").edit("/w/a.go").render(2000)
	has(t, part(pasted, "Goal"), "  → at its end: “Then write out.md and leave the customers out.”")
	lacks(t, (&story{}).user("Die Niederlage war niedlich.").edit("/w/a.go").render(2000), "kept in mind")
	brief := (&story{}).user("What is a monad?").agent("A monad is a monoid in the category of endofunctors.").user("And in Go?").agent("Use functions.").render(600)
	has(t, part(brief, "Goal"), "- Latest request, m3: “And in Go?”")
	lacks(t, (&story{}).user("I live at 12 Elm Street in Bergen.").render(600), "## Goal")
}
