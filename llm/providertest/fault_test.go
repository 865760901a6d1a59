package providertest_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm/providertest"
)

const long = "An answer of many chunks, which is long enough to break within it."

// bodies are a request of each API, streamed.
func bodies() map[string]string {
	return map[string]string{
		messagesPath:  `{"model":"claude-sonnet-4-5","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"hi"}]}`,
		responsesPath: `{"model":"gpt-5","stream":true,"input":"hi"}`,
		chatPath:      `{"model":"gpt-5","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`,
	}
}

func faulty(f providertest.Fault) func(providertest.Query) providertest.Answer {
	return func(providertest.Query) providertest.Answer {
		return providertest.Answer{Content: []abi.ContentBlock{abi.Text(long)}, Fault: &f}
	}
}

func TestFaultStatus(t *testing.T) {
	t.Parallel()
	w := open(t, providertest.Config{Reply: faulty(providertest.Fault{Status: 429, RetryAfter: 1500 * time.Millisecond, Message: "slowly"})})
	for path, body := range bodies() {
		status, answer, h := w.post(path, body)
		text, kind, _ := message(t, answer)
		if status != 429 || text != "slowly" || h.Get("Retry-After") != "2" || h.Get("Retry-After-Ms") != "1500" {
			t.Errorf("%s: %d %v %s", path, status, h, answer)
		}
		if want := map[bool]string{true: "rate_limit_error", false: "requests"}[path == messagesPath]; kind != want {
			t.Errorf("%s: the type is %s, want %s", path, kind, want)
		}
	}
	for _, b := range w.Bills() {
		if !b.Failed || b.Cost != 0 {
			t.Errorf("the bill is %+v", b)
		}
	}
}

// read reads a stream until it ends or breaks, or the reader has enough.
func (w *world) read(ctx context.Context, path, body string, enough func(line string) bool) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL()+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Anthropic-Version", "2023-06-01")
	r.Header.Set("X-Api-Key", w.Key())
	r.Header.Set("Authorization", "Bearer "+w.Key())
	answered, err := w.client.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = answered.Body.Close() }()
	var all strings.Builder
	in := bufio.NewReader(answered.Body)
	for {
		line, err := in.ReadString('\n')
		all.WriteString(line)
		if err == io.EOF {
			return all.String(), nil
		}
		if err != nil || enough != nil && enough(line) {
			return all.String(), err
		}
	}
}

func TestFaultsOfStreams(t *testing.T) {
	t.Parallel()
	for path, body := range bodies() {
		cut := open(t, providertest.Config{Reply: faulty(providertest.Fault{CutAfter: 2})})
		got, err := cut.read(t.Context(), path, body, nil)
		if err == nil || !strings.Contains(got, "An answer of") || strings.Contains(got, "break within") {
			t.Errorf("%s: a cut stream: %v %s", path, err, got)
		}
		event := open(t, providertest.Config{Reply: faulty(providertest.Fault{ErrorEventAfter: 2, Message: "broken"})})
		got, err = event.read(t.Context(), path, body, nil)
		if err != nil || !strings.Contains(got, "An answer of") || !strings.Contains(got, `"message":"broken"`) || strings.Contains(got, "break within") {
			t.Errorf("%s: an error event: %v %s", path, err, got)
		}
		for _, w := range []*world{cut, event} {
			if err := w.Close(); err != nil { // waits for the bill
				t.Error(err)
			}
			if b := w.Bills()[0]; !b.Failed || b.Usage.CompletionTokens != 6 || b.Usage.PromptTokens == 0 || b.Cost == 0 {
				t.Errorf("%s: the bill is %+v", path, b)
			}
		}
	}
}

// TestClientCuts holds that a stream which its client left is billed as far as it had come.
func TestClientCuts(t *testing.T) {
	t.Parallel()
	for path, body := range bodies() {
		w := open(t, providertest.Config{Reply: faulty(providertest.Fault{CutAfter: 2, Hang: true})})
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := w.read(ctx, path, body, func(line string) bool {
			if strings.Contains(line, " many chunks") {
				cancel()
			}
			return false
		}); err == nil {
			t.Errorf("%s: the stream ended", path)
		}
		cancel()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if b := w.Bills(); len(b) != 1 || !b[0].Failed || b[0].Usage.CompletionTokens != 6 {
			t.Errorf("%s: the bills are %+v", path, b)
		}
	}
}

// TestClientCuts_told holds that a token which the first event states is billed, also when nothing followed.
func TestClientCuts_told(t *testing.T) {
	t.Parallel()
	w := open(t, providertest.Config{Reply: func(providertest.Query) providertest.Answer {
		return providertest.Answer{Content: []abi.ContentBlock{abi.Text("many words")}, Pace: time.Hour}
	}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := w.read(ctx, messagesPath, bodies()[messagesPath], func(line string) bool {
		if strings.Contains(line, `"message_start"`) && strings.Contains(line, `"output_tokens":1,`) {
			cancel()
		}
		return false
	}); err == nil {
		t.Error("the stream ended")
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if b := w.Bills(); len(b) != 1 || !b[0].Failed || b[0].Usage.CompletionTokens != 1 {
		t.Errorf("the bills are %+v", b)
	}
}

func TestRefusal(t *testing.T) {
	t.Parallel()
	w := open(t, providertest.Config{Reply: faulty(providertest.Fault{Refusal: true, Message: "No."})})
	for path, want := range map[string]string{messagesPath: `"stop_reason":"refusal"`, responsesPath: `"type":"refusal"`, chatPath: `"refusal":"No."`} {
		if got, err := w.read(t.Context(), path, bodies()[path], nil); err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %v %s", path, err, got)
		}
	}
}

// TestCloseEndsRequests holds that Close ends what hangs, waits for it, and may be called often.
func TestCloseEndsRequests(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 3)
	w := open(t, providertest.Config{Reply: func(providertest.Query) providertest.Answer {
		begun <- struct{}{}
		return providertest.Answer{Fault: &providertest.Fault{Hang: true}}
	}})
	var wg sync.WaitGroup
	for path, body := range bodies() {
		wg.Go(func() { _, _ = w.read(t.Context(), path, body, nil) })
	}
	for range 3 {
		<-begun
	}
	for range 2 {
		wg.Go(func() {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(w.Bills()); n != 3 {
		t.Errorf("%d bills, want 3", n)
	}
}
