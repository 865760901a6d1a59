package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/model"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/internal/engine"
)

// head is the first block of a question.
func head(role string, answer int) string {
	return fmt.Sprintf(`{"role":%q,"system":"sys","answer_tokens":%d,"later":1}`, role, answer)
}

// echo answers with what it was asked.
func echo(_ context.Context, q model.Question) (model.Answer, error) {
	return model.Answer{Text: fmt.Sprintf("%s %s %s %d", q.Role, q.System, q.Prompt, q.AnswerTokens)}, nil
}

// withRoles loads the guest that asks by role.
func withRoles(t *testing.T, e string, m model.Grant) *host.Module {
	t.Helper()
	return load(t, e, host.Spec{Path: wat("chat"), Grants: host.Grants{Capabilities: []host.Capability{&m}}})
}

func TestRole(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := withRoles(t, e, model.Grant{RequestBytes: 2000, ReplyBytes: 1000, Roles: map[string]model.Role{
			"small": {Answer: echo, WindowTokens: 400},
			"says": {WindowTokens: 10_000, Answer: func(_ context.Context, q model.Question) (model.Answer, error) {
				switch q.Prompt {
				case "refuse":
					return model.Answer{Text: "no", Refused: true}, nil
				case "fail":
					return model.Answer{}, errors.New("key sk-123 is wrong")
				case "panic":
					panic("model")
				case "quota":
					return model.Answer{}, fmt.Errorf("today: %w", host.ErrQuota)
				case "slow":
					return model.Answer{}, context.DeadlineExceeded
				case "long":
					return model.Answer{Text: strings.Repeat("x", 1001)}, nil
				}
				return model.Answer{}, nil
			}},
		}})
		wantAnswer(t, m, "chat", first(head("small", 0), "hello"), 1, "small sys hello 100")
		wantAnswer(t, m, "chat", first(head("small", 7), "hel\xfflo"), 1, "small sys hel\ufffdlo 7")
		wantAnswer(t, m, "chat", first(head("small", 999), "hello"), 1, "small sys hello 100")
		wantAnswer(t, m, "chat", first(head("large", 0), "hello"), int64(engine.CodeDenied), `denied: model_chat: the role "large" is not granted`)
		wantAnswer(t, m, "chat", first("nonsense", "hello"), int64(engine.CodeDenied), `denied: model_chat: the role "" is not granted`)
		wantAnswer(t, m, "chat", first(head("small", 0)+"!", "hello"), int64(engine.CodeDenied), `denied: model_chat: the role "" is not granted`)
		wantAnswer(t, m, "chat", first(head("small", 0), ""), int64(engine.CodeInvalid), "invalid: model_chat: the prompt is empty, or answer_tokens is negative")
		wantAnswer(t, m, "chat", first(head("small", -1), "x"), int64(engine.CodeInvalid), "invalid: model_chat: the prompt is empty, or answer_tokens is negative")
		wantAnswer(t, m, "chat", first(`{"role":"small","system":7}`, "x"), int64(engine.CodeInvalid), "invalid: model_chat: the first block is not JSON of the form {role, system, answer_tokens}")
		wantAnswer(t, m, "chat", first(head("small", 0), strings.Repeat("x", 1998)), int64(engine.CodeTooLarge), "too large: model_chat: the question has 2001 bytes, 2000 are allowed")
		// 16 + 1 + 283 + 100 are 400; one byte more is a token more.
		wantAnswer(t, m, "chat", first(head("small", 0), strings.Repeat("x", 849)), 1, "small sys "+strings.Repeat("x", 849)+" 100")
		wantAnswer(t, m, "chat", first(head("small", 0), strings.Repeat("x", 850)), int64(engine.CodeTooLarge),
			`too large: model_chat: the question has about 301 tokens and the answer may have 100; the model of the role "small" takes 400 together`)
		for prompt, want := range map[string]struct {
			code engine.ErrorCode
			text string
		}{
			"refuse": {engine.CodeFailed, "failed: model_chat: the model refused to answer"},
			"fail":   {engine.CodeFailed, "failed: model_chat: it did not work"},
			"panic":  {engine.CodeFailed, "failed: model_chat: it did not work"},
			"quota":  {engine.CodeQuota, "quota: model_chat: the quota is used up"},
			"slow":   {engine.CodeTimeout, "timeout: model_chat: it took too long"},
			"long":   {engine.CodeTooLarge, "too large: model_chat: the answer has 1001 bytes, 1000 are allowed"},
			"empty":  {0, ""},
		} {
			wantAnswer(t, m, "chat", first(head("says", 0), prompt), int64(want.code), want.text)
		}
		wantAnswer(t, m, "info", "small", 1, `{"window_tokens":400,"answer_tokens":100,"left_tokens":1000000,"left_questions":32}`)
		wantAnswer(t, m, "info", "large", int64(engine.CodeDenied), `denied: model_info: the role "large" is not granted`)
	})
}

// TestRoleWithoutGrant: the guest loads, and is refused when it asks.
func TestRoleWithoutGrant(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		opaque := model.Grant{Ask: func(context.Context, []byte) ([]byte, error) { return []byte("a"), nil }}
		for uses, m := range []*host.Module{load(t, e, host.Spec{Path: wat("chat")}), withRoles(t, e, opaque)} { // without a grant none is used
			wantAnswer(t, m, "info", "any", int64(engine.CodeDenied), "denied: model_info: no role of a model is granted")
			wantAnswer(t, m, "chat", first(head("any", 0), "x"), int64(engine.CodeDenied), "denied: model_chat: no role of a model is granted")
			if s := m.Stats(); s.Denied != 2 || int(s.Uses["model"]) != uses || s.Uses["model_tokens"] != 0 {
				t.Errorf("%+v", s)
			}
		}
		// Roles do not count as bytes of the question.
		grant := host.Grants{Capabilities: []host.Capability{&model.Grant{Roles: map[string]model.Role{"any": {Answer: echo, WindowTokens: 100}}}}}
		if _, err := newHost(t, host.Config{Engine: hosttest.Engine(e)}).Load(t.Context(), host.Spec{Path: wat("model"), Grants: grant}); !errors.Is(err, host.ErrImport) {
			t.Errorf("error %v", err)
		}
	})
}

// TestRoleBudgets: tokens and cost are bounded for a call and in all, and what is booked is
// what was billed.
func TestRoleBudgets(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		var asked atomic.Int64
		// A question of 3 bytes and "sys" is 18 tokens, and 10 are kept for the answer.
		bill := func(_ context.Context, q model.Question) (model.Answer, error) {
			asked.Add(1)
			if q.Prompt == "bad" {
				return model.Answer{InputTokens: 5}, errors.New("broke in the middle")
			}
			return model.Answer{Text: "ok", InputTokens: 20, OutputTokens: 5}, nil
		}
		ask := func(role model.Role) *host.Module {
			role.Answer, role.WindowTokens, role.AnswerTokens = bill, 1000, 10
			return withRoles(t, e, model.Grant{Roles: map[string]model.Role{"r": role}})
		}
		q := first(head("r", 0), "abc")

		m := ask(model.Role{CallTokens: 52})
		wantAnswer(t, m, "chat", q, 1, "ok")
		wantAnswer(t, m, "chat_twice", q, int64(engine.CodeQuota),
			`quota: model_chat: the role "r" has used 25 of its 52 tokens of this call, and the question may come to 28`)
		if s := m.Stats(); s.Uses["model_tokens"] != 50 || s.Uses["model_cost"] != 0 || s.Denied != 1 {
			t.Errorf("%+v", s)
		}
		m = ask(model.Role{TotalTokens: 53})
		wantAnswer(t, m, "chat_twice", q, 1, "ok")
		wantAnswer(t, m, "chat", q, int64(engine.CodeQuota), `quota: model_chat: the role "r" has used 50 of its 53 tokens, and the question may come to 28`)
		wantAnswer(t, m, "info", "r", 1, `{"window_tokens":1000,"answer_tokens":10,"left_tokens":3,"left_questions":32}`)

		// 18 tokens at 0.1 and 10 at 2 millionths are 2 and 20, rounded up; 20 and 5 are 2 and 10.
		prices := model.Role{InputPrice: 100_000, OutputPrice: 2_000_000}
		prices.CallCost = 33
		m = ask(prices)
		wantAnswer(t, m, "chat_twice", q, int64(engine.CodeQuota),
			`quota: model_chat: the role "r" has used 12 of its 33 millionths of money of this call, and the question may come to 22`)
		prices.CallCost, prices.TotalCost = 0, 34
		m = ask(prices)
		wantAnswer(t, m, "chat", q, 1, "ok")
		wantAnswer(t, m, "chat", q, 1, "ok")
		wantAnswer(t, m, "chat", q, int64(engine.CodeQuota),
			`quota: model_chat: the role "r" has used 24 of its 34 millionths of money, and the question may come to 22`)
		if s := m.Stats(); s.Uses["model_tokens"] != 50 || s.Uses["model_cost"] != 24 {
			t.Errorf("%+v", s)
		}
		// What was billed with an error counts; a swap gives no new budget.
		m = ask(model.Role{TotalTokens: 53})
		wantAnswer(t, m, "chat", first(head("r", 0), "bad"), int64(engine.CodeFailed), "failed: model_chat: it did not work")
		if s := m.Stats(); s.Uses["model_tokens"] != 5 {
			t.Errorf("%+v", s)
		}
		wantAnswer(t, m, "chat", q, 1, "ok")
		role := model.Role{Answer: bill, WindowTokens: 1000, AnswerTokens: 10, TotalTokens: 53}
		again := host.Spec{Path: wat("chat"), Grants: host.Grants{Capabilities: []host.Capability{&model.Grant{Roles: map[string]model.Role{"r": role}}}}}
		if _, err := m.Swap(t.Context(), again, host.SwapOptions{}); err != nil {
			t.Fatal(err)
		}
		before := asked.Load()
		wantAnswer(t, m, "chat", q, int64(engine.CodeQuota), `quota: model_chat: the role "r" has used 30 of its 53 tokens, and the question may come to 28`)
		if asked.Load() != before {
			t.Error("the model was asked over its budget")
		}
	})
}

// TestRoleEndsWithTheCall: what was sent when the time was over counts as billed.
func TestRoleEndsWithTheCall(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) { endsWithTheCall(t, e) }) // in whose time the guest comes to its question at once
	})
}

func endsWithTheCall(t *testing.T, e string) {
	t.Helper()
	wait := func(ctx context.Context, _ model.Question) (model.Answer, error) {
		<-ctx.Done()
		return model.Answer{}, ctx.Err()
	}
	m := load(t, e, host.Spec{
		Path: wat("chat"), Limits: host.Limits{Timeout: time.Second},
		Grants: host.Grants{Capabilities: []host.Capability{&model.Grant{Roles: map[string]model.Role{"r": {Answer: wait, WindowTokens: 1000}}}}},
	})
	_, err := m.Call(t.Context(), "chat", []byte(first(head("r", 0), "abc")))
	wantDeadline(t, err)
	if s := m.Stats(); s.Uses["model_tokens"] != 18 {
		t.Errorf("%+v", s)
	}
}

func TestRoleConfig(t *testing.T) {
	t.Parallel()
	many := map[string]model.Role{}
	for i := range 17 {
		many[fmt.Sprint(i)] = model.Role{Answer: echo, WindowTokens: 100}
	}
	one := func(name string, r model.Role) map[string]model.Role {
		return map[string]model.Role{name: r}
	}
	for want, roles := range map[string]map[string]model.Role{
		`model.Grant.Roles["r"].Answer is nil`:                                      one("r", model.Role{}),
		`model.Grant.Roles["r"].WindowTokens is missing`:                            one("r", model.Role{Answer: echo}),
		`model.Grant.Roles["r"].WindowTokens -1 is negative`:                        one("r", model.Role{Answer: echo, WindowTokens: -1}),
		`model.Grant.Roles["r"].CallTokens is 2000000000000, must not be more`:      one("r", model.Role{Answer: echo, WindowTokens: 9, CallTokens: 2e12}),
		`model.Grant.Roles["r"].AnswerTokens is 9, must be below WindowTokens (9)`:  one("r", model.Role{Answer: echo, WindowTokens: 9, AnswerTokens: 9}),
		`model.Grant.Roles["r"]: a budget of cost needs InputPrice and OutputPrice`: one("r", model.Role{Answer: echo, WindowTokens: 9, CallCost: 1}),
		`model.Grant.Roles[""]: a name has 1 to 64 bytes`:                           one("", model.Role{Answer: echo, WindowTokens: 9}),
		`model.Grant.Roles: 17 are more than the 16 that are allowed`:               many,
	} {
		grant := host.Grants{Capabilities: []host.Capability{&model.Grant{Roles: roles}}}
		_, err := newHost(t, host.Config{}).Load(t.Context(), host.Spec{Path: wat("chat"), Grants: grant})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

// A guest asks a model by the name of its role. The second question of a call is over
// its budget, and the model is not asked.
func Example_models() {
	ctx := context.Background()
	h, err := host.New(host.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close(ctx)
	m := loadExample(h, "chat", host.Grants{Capabilities: []host.Capability{&model.Grant{Roles: map[string]model.Role{
		"summarizer": {
			WindowTokens: 8000, AnswerTokens: 100, CallTokens: 130,
			Answer: func(_ context.Context, q model.Question) (model.Answer, error) {
				return model.Answer{Text: "Short: " + q.Prompt, InputTokens: 9, OutputTokens: 4}, nil
			},
		},
	}}}})
	question := []byte("\x15" + `{"role":"summarizer"}` + "A long story.")
	for _, export := range []string{"chat", "chat_twice"} {
		out, err := m.Call(ctx, export, question)
		fmt.Println(string(out[8:]), err)
	}
	fmt.Println(m.Stats().Uses["model_tokens"])
	// Output:
	// Short: A long story. <nil>
	// quota: model_chat: the role "summarizer" has used 13 of its 130 tokens of this call, and the question may come to 121 <nil>
	// 26
}
