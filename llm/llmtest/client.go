package llmtest

import (
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm/providertest"
)

func clientCases() []testCase {
	return []testCase{
		{name: "client_retries", run: clientRetries},
		{name: "client_resumes", run: clientResumes},
		{name: "client_begins_anew", run: clientBeginsAnew},
	}
}

func clientRetries(w *world) {
	for _, status := range []int{503, 529} {
		w.mu.Lock()
		failed := false
		w.reply = func(providertest.Query) providertest.Answer {
			if !failed {
				failed = true
				return providertest.Answer{Fault: &providertest.Fault{Status: status}}
			}
			return text("Hello.")
		}
		w.mu.Unlock()
		if a := w.ask(w.request(user("Hi"))); a.Requests != 2 || a.Response.Message.Text() != "Hello." {
			w.t.Errorf("after %d: %d requests, %+v", status, a.Requests, a.Response)
		}
	}
}

// clientResumes holds that what came before a break is sent back, accepted and continued.
func clientResumes(w *world) {
	broken := text(longText)
	broken.Fault = &providertest.Fault{CutAfter: 2}
	w.answers(broken, text(" And on."))
	a := w.ask(w.request(user("Hi")))
	got := a.Response.Message.Text()
	begin, ok := strings.CutSuffix(got, " And on.")
	if !ok || begin == "" || !strings.HasPrefix(longText, begin) || a.Requests != 2 {
		w.t.Errorf("%d requests, the text is %q", a.Requests, got)
	}
	sent := ""
	for _, m := range w.lastQuery().Messages {
		if m.Role == abi.RoleAssistant {
			sent += m.Text()
		}
	}
	if strings.TrimSpace(sent) != strings.TrimSpace(begin) {
		w.t.Errorf("%q was sent back, want %q", sent, begin)
	}
}

// clientBeginsAnew holds that a break within a call, before which there is no text, is asked again.
func clientBeginsAnew(w *world) {
	whole := providertest.Answer{Calls: calls()[:1]}
	broken := whole
	broken.Fault = &providertest.Fault{ErrorEventAfter: 1}
	w.answers(broken, whole)
	r := w.request(user("Add"))
	r.Tools = tools()
	a := w.ask(r)
	if c := a.Response.Message.ToolCalls; len(c) != 1 || !sameCall(c[0], calls()[0]) || len(a.Lost) != 0 {
		w.t.Errorf("the calls are %+v, lost %+v", c, a.Lost)
	}
}
