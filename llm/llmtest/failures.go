package llmtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/providertest"
)

func failureCases() []testCase {
	return []testCase{
		{name: "kinds_of_errors", run: kinds},
		{name: "retry_after", run: retryAfter},
		{name: "context_overflow", run: overflow},
		{name: "unknown_model", run: unknownModel},
		{name: "refusal", run: refusal},
		{name: "key_in_no_error", run: keyInNoError},
		{name: "long_message", run: longMessage},
		{name: "broken_stream", run: brokenStream},
		{name: "error_event", run: errorEvent},
		{name: "cancel", run: cancel},
		{name: "cancel_stream", run: cancelStream},
		{name: "stop_of_the_listener", run: stopListening},
	}
}

// fails asks once with Infer and once with Stream and returns both errors.
func (w *world) fails(r llm.Request) []*llm.Error {
	w.t.Helper()
	_, err := w.m.Infer(w.ctx(), r)
	_, streamErr := w.stream(r)
	return []*llm.Error{w.failed(err), w.failed(streamErr)}
}

func kinds(w *world) {
	for status, want := range map[int]llm.Kind{
		400: llm.KindInvalidRequest, 401: llm.KindUnauthorized, 403: llm.KindUnauthorized, 404: llm.KindModelNotFound,
		429: llm.KindRateLimited, 500: llm.KindProvider, 503: llm.KindOverloaded, 529: llm.KindOverloaded,
	} {
		w.answers(providertest.Answer{Fault: &providertest.Fault{Status: status, Message: fmt.Sprint("words of ", status)}})
		for _, got := range w.fails(w.request(user("Hi"))) {
			if got.Kind != want || !strings.Contains(got.Error(), fmt.Sprint("words of ", status)) {
				w.t.Errorf("status %d: the error is %+v, want kind %s", status, got, want)
			}
		}
	}
}

func retryAfter(w *world) {
	for _, want := range []time.Duration{7 * time.Second, 250 * time.Millisecond} {
		w.answers(providertest.Answer{Fault: &providertest.Fault{Status: 429, RetryAfter: want}})
		for _, got := range w.fails(w.request(user("Hi"))) {
			if got.RetryAfter != want {
				w.t.Errorf("RetryAfter is %v, want %v", got.RetryAfter, want)
			}
		}
	}
}

func overflow(w *world) {
	for _, got := range w.fails(w.request(user(strings.Repeat("word ", 1_000_000)))) {
		if got.Kind != llm.KindContextOverflow {
			w.t.Errorf("the error is %v", got)
		}
	}
}

func unknownModel(w *world) {
	r := w.request(user("Hi"))
	r.Model = "no-such-model"
	for _, got := range w.fails(r) {
		if got.Kind != llm.KindModelNotFound {
			w.t.Errorf("the error is %+v", got)
		}
	}
}

func refusal(w *world) {
	w.answers(providertest.Answer{Fault: &providertest.Fault{Refusal: true, Message: "I can't help with that."}})
	_, err := w.m.Infer(w.ctx(), w.request(user("Hi")))
	if got := w.failed(err); got.Kind != llm.KindContentFiltered {
		w.t.Errorf("the error is %+v", got)
	}
	o := &order{t: w.t}
	err = w.m.(llm.Streamer).Stream(w.ctx(), w.request(user("Hi")), o.emit) //nolint:errcheck,forcetypeassert // a case of its own
	if got := w.failed(err); got.Kind != llm.KindContentFiltered {
		w.t.Errorf("the error of the stream is %+v", got)
	}
}

func keyInNoError(w *world) {
	key := w.s.Key()
	for _, status := range []int{400, 401, 429, 500} {
		w.answers(providertest.Answer{Fault: &providertest.Fault{Status: status, Message: "the key " + key + " with Bearer " + key + " is wrong"}})
		for _, got := range w.fails(w.request(user("Hi"))) {
			if strings.Contains(fmt.Sprintf("%v %+v", got, got), key) || strings.Contains(got.Error(), key) {
				w.t.Errorf("status %d: the key is in the error: %v", status, got)
			}
		}
	}
}

func longMessage(w *world) {
	w.answers(providertest.Answer{Fault: &providertest.Fault{Status: 400, Message: strings.Repeat("many words\nin lines ", 500)}})
	for _, got := range w.fails(w.request(user("Hi"))) {
		if len(got.Message) > 300 || strings.Contains(got.Error(), "\n") || len(got.Error()) > 1000 {
			w.t.Errorf("the message is %d bytes: %q", len(got.Error()), got.Error())
		}
	}
}

const longText = "A text of many chunks that is cut in its midst."

func brokenStream(w *world) {
	broken := text(longText)
	broken.Fault = &providertest.Fault{CutAfter: 2}
	w.answers(broken)
	o, err := w.stream(w.request(user("Hi")))
	if got := w.failed(err); got.Kind != llm.KindStreamInterrupted {
		w.t.Errorf("the error is %+v", got)
	}
	if o.text == "" || !strings.HasPrefix(longText, o.text) {
		w.t.Errorf("the text before the break is %q", o.text)
	}
	_, err = w.m.Infer(w.ctx(), w.request(user("Hi")))
	if got := w.failed(err); !got.Retryable() {
		w.t.Errorf("the error of Infer is %+v", got)
	}
}

func errorEvent(w *world) {
	broken := text(longText)
	broken.Fault = &providertest.Fault{ErrorEventAfter: 2, Message: "words of the event"}
	w.answers(broken)
	o, err := w.stream(w.request(user("Hi")))
	if got := w.failed(err); !got.Retryable() || !strings.Contains(got.Error(), "words of the event") {
		w.t.Errorf("the error is %+v", got)
	}
	if o.text == "" {
		w.t.Error("there is no text before the event")
	}
}

// soon runs f and fails when it does not return.
func (w *world) soon(f func() error) error {
	w.t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		w.t.Fatalf("does not return after %v", patience)
		return nil
	}
}

// cancelled holds that an error is that of the context.
func (w *world) cancelled(err error) {
	w.t.Helper()
	if failure, ok := errors.AsType[*llm.Error](err); !errors.Is(err, context.Canceled) && (!ok || failure.Kind != llm.KindCancelled) {
		w.t.Errorf("the error is %v", err)
	}
}

func cancel(w *world) {
	ctx, stop := context.WithCancel(w.ctx())
	defer stop()
	w.mu.Lock()
	w.reply = func(providertest.Query) providertest.Answer {
		stop()
		return providertest.Answer{Fault: &providertest.Fault{Hang: true}}
	}
	w.mu.Unlock()
	w.cancelled(w.soon(func() error {
		_, err := w.m.Infer(ctx, w.request(user("Hi")))
		return err
	}))
}

func cancelStream(w *world) {
	ctx, stop := context.WithCancel(w.ctx())
	defer stop()
	hung := text(longText)
	hung.Fault = &providertest.Fault{CutAfter: 2, Hang: true}
	w.answers(hung)
	w.cancelled(w.soon(func() error {
		return w.m.(llm.Streamer).Stream(ctx, w.request(user("Hi")), func(d llm.Delta) bool { //nolint:errcheck,forcetypeassert // a case of its own
			if d.Type == llm.DeltaText {
				stop()
			}
			return true
		})
	}))
}

// stopListening holds that a stream ends when emit returns false, and that nothing comes after.
func stopListening(w *world) {
	endless := text(strings.Repeat(longText, 1000))
	endless.Pace = 10 * time.Millisecond
	w.answers(endless)
	calls := 0
	_ = w.soon(func() error {
		return w.m.(llm.Streamer).Stream(w.ctx(), w.request(user("Hi")), func(llm.Delta) bool { //nolint:errcheck,forcetypeassert // a case of its own
			calls++
			return false
		})
	})
	if calls != 1 {
		w.t.Errorf("emit was called %d times", calls)
	}
}
