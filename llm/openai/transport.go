package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/mortise-dev/mortise/llm"
)

// maxBody bounds an answer that is not streamed, in bytes.
const maxBody = 64 << 20

// reader reads one API.
type reader interface {
	// event takes the data of one event of a stream.
	event(data []byte) error
	// whole takes an answer that is not streamed.
	whole(data []byte) error
	// end is called when no more will come.
	end() error
}

// exchange sends a request and has its answer read.
func (m *Model) exchange(ctx context.Context, model, path string, params any, stream bool, a *answer, r reader) error {
	var options []option.RequestOption
	if stream {
		options = append(options, option.WithJSONSet("stream", true), option.WithHeader("Accept", "text/event-stream"))
	}
	response, err := m.post(ctx, model, path, params, options...)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if !stream || media == "application/json" {
		var body []byte
		if body, err = m.body(ctx, model, response); err == nil {
			err = m.whole(model, body, r)
		}
	} else {
		err = m.events(ctx, model, response, a, r)
	}
	a.bill()
	if err == nil {
		err = r.end()
	}
	if failure, ok := errors.AsType[*llm.Error](err); ok && failure.Model == "" {
		failure.Model = model
	}
	return err
}

// post sends a request and returns the response if it is one of success.
func (m *Model) post(ctx context.Context, model, path string, params any, options ...option.RequestOption) (*http.Response, error) {
	var response *http.Response
	err := m.client.Post(ctx, path, params, &response, options...)
	switch {
	case response != nil && response.StatusCode >= http.StatusBadRequest:
		return nil, m.refusal(model, response)
	case err != nil:
		return nil, m.broken(ctx, model, llm.KindProvider, err)
	default:
		return response, nil
	}
}

func (m *Model) body(ctx context.Context, model string, response *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil {
		return nil, m.broken(ctx, model, llm.KindStreamInterrupted, err)
	}
	if len(body) > maxBody {
		return nil, &llm.Error{Kind: llm.KindInvalidRequest, Model: model, Message: fmt.Sprintf("the answer has more than %d bytes", maxBody)}
	}
	return body, nil
}

func (m *Model) whole(model string, body []byte, r reader) error {
	if err := m.errorIn(model, body); err != nil {
		return err
	}
	if err := r.whole(body); err != nil {
		return unreadable(model, err)
	}
	return nil
}

// events reads a stream until its end, or until the answer is not wanted any more.
func (m *Model) events(ctx context.Context, model string, response *http.Response, a *answer, r reader) error {
	decoder := ssestream.NewDecoder(response)
	for decoder.Next() {
		data := bytes.TrimSpace(decoder.Event().Data)
		if len(data) == 0 {
			continue // a comment, by which servers keep the connection alive
		}
		if bytes.HasPrefix(data, []byte("[DONE]")) {
			a.over = true
			return nil
		}
		if err := m.errorIn(model, data); err != nil {
			return err
		}
		if err := r.event(data); err != nil {
			return unreadable(model, err)
		}
		if a.final {
			return nil
		}
		if a.gone {
			return &llm.Error{Kind: llm.KindCancelled, Model: model, Message: "the receiver wants no more"}
		}
	}
	if err := decoder.Err(); err != nil && (!a.over || ctx.Err() != nil) {
		return m.broken(ctx, model, llm.KindStreamInterrupted, err)
	}
	if !a.over {
		return &llm.Error{Kind: llm.KindStreamInterrupted, Model: model, Message: "the stream ended before the answer did"}
	}
	return nil
}

// unreadable is an answer that is not what the API promises. Errors of the API itself pass.
func unreadable(model string, err error) error {
	if _, known := errors.AsType[*llm.Error](err); known {
		return err
	}
	if _, syntax := errors.AsType[*json.SyntaxError](err); syntax {
		return &llm.Error{Kind: llm.KindStreamInterrupted, Model: model, Message: "the answer is not JSON", Err: err}
	}
	return &llm.Error{Kind: llm.KindProvider, Model: model, Message: "the answer cannot be read", Err: err}
}
