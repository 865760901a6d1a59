package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/model"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/internal/engine"
)

func TestModel(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		var asked atomic.Int64
		ask := func(_ context.Context, request []byte) ([]byte, error) {
			asked.Add(1)
			switch string(request) {
			case "fail":
				return nil, errors.New("key sk-123 is wrong")
			case "panic":
				panic("model")
			case "quota":
				return nil, fmt.Errorf("tokens: %w", host.ErrQuota)
			case "slow":
				return nil, context.DeadlineExceeded
			case "long":
				return make([]byte, 101), nil
			case "nothing":
				return nil, nil
			}
			return bytes.ToUpper(request), nil
		}
		m := load(t, e, host.Spec{Path: wat("model"), Grants: host.Grants{Capabilities: []host.Capability{&model.Grant{Ask: ask, Calls: 3, RequestBytes: 50, ReplyBytes: 100}}}})
		wantAnswer(t, m, "ask", "question", 1, "QUESTION")
		wantAnswer(t, m, "ask", "nothing", 0, "")
		wantAnswer(t, m, "ask", "", int64(engine.CodeInvalid), "invalid: model_ask: the request is empty")
		wantAnswer(t, m, "ask", strings.Repeat("x", 51), int64(engine.CodeTooLarge), "too large: model_ask: the request has 51 bytes, 50 are allowed")
		wantAnswer(t, m, "ask", "long", int64(engine.CodeTooLarge), "too large: model_ask: the answer has 101 bytes, 100 are allowed")
		wantAnswer(t, m, "ask", "fail", int64(engine.CodeFailed), "failed: model_ask: it did not work")
		wantAnswer(t, m, "ask", "panic", int64(engine.CodeFailed), "failed: model_ask: it did not work")
		wantAnswer(t, m, "ask", "quota", int64(engine.CodeQuota), "quota: model_ask: the quota is used up")
		wantAnswer(t, m, "ask", "slow", int64(engine.CodeTimeout), "timeout: model_ask: it took too long")
		before := asked.Load()
		for range 2 { // the count starts again with each call
			wantAnswer(t, m, "ask_on", "again", int64(engine.CodeQuota), "quota: model_ask: 3 questions are allowed in a call")
		}
		if got := asked.Load() - before; got != 6 {
			t.Errorf("the model was asked %d times", got)
		}
		_, err := m.Call(t.Context(), "bogus", nil)
		wantFault(t, err, host.TrapFault, "there is no block at 900000")
		if s := m.Stats(); s.Uses["model"] != 9+8+1 || s.Denied != 5 {
			t.Errorf("%+v", s)
		}

		wait := func(ctx context.Context, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		m = load(t, e, host.Spec{Path: wat("model"), Limits: host.Limits{Timeout: 50 * time.Millisecond}, Grants: host.Grants{Capabilities: []host.Capability{&model.Grant{Ask: wait}}}})
		_, err = m.Call(t.Context(), "ask", []byte("x"))
		wantDeadline(t, err)

		_, err = newHost(t, host.Config{Engine: hosttest.Engine(e)}).Load(t.Context(), host.Spec{Path: wat("model")})
		if !errors.Is(err, host.ErrImport) || !strings.Contains(err.Error(), "needs the capability model; grant it (host/capability/model) with") {
			t.Errorf("%v", err)
		}
	})
	ask := func(context.Context, []byte) ([]byte, error) { return nil, nil }
	for want, grant := range map[string]model.Grant{
		"model.Grant.Ask is nil":                  {},
		"model.Grant.Calls -1 is negative":        {Ask: ask, Calls: -1},
		"model.Grant.RequestBytes -1 is negative": {Ask: ask, RequestBytes: -1},
		"model.Grant.ReplyBytes -1 is negative":   {Ask: ask, ReplyBytes: -1},
	} {
		_, err := newHost(t, host.Config{}).Load(t.Context(), host.Spec{Path: wat("model"), Grants: host.Grants{Capabilities: []host.Capability{&grant}}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
