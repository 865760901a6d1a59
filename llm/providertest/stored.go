package providertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// stored is an answer of Responses that the server keeps.
type stored struct {
	// items are the conversation up to the end of the answer.
	items      rsItems
	background bool
	cancel     context.CancelFunc
	// ended is closed when nothing changes any more.
	ended chan struct{}

	status string
	object object
	events []event
}

// storedShape has what only requests have whose conversation or answer the server keeps.
func storedShape() fields {
	return fields{"store": is("boolean"), "background": is("boolean"), "conversation": conversationShape()}
}

func conversationShape() rule {
	ref := obj(fields{"id!": is("string")})
	return func(path []any, v any) *problem {
		if _, ok := v.(string); ok || v == nil {
			return nil
		}
		return ref(path, v)
	}
}

// conversationRef is the id of a conversation, or an object that has it.
type conversationRef string

// UnmarshalJSON reads both forms.
func (c *conversationRef) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, (*string)(c))
	}
	var o struct{ ID string }
	err := json.Unmarshal(data, &o)
	*c = conversationRef(o.ID)
	return err
}

// history returns the items that a request continues.
func (r *rsRequest) history(s *Server) (rsItems, *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Previous != "" && r.Conversation != "":
		return nil, wrong("mutually_exclusive_parameters", "", "Mutually exclusive parameters: Ensure you are only providing one of: 'previous_response_id' or 'conversation'.")
	case r.Background && r.Store != nil && !*r.Store:
		return nil, wrong("unsupported_parameter", "background", "Background mode requires 'store' to be true.")
	case r.Previous != "":
		k := s.stored[r.Previous]
		if k == nil || k.status != "completed" && k.status != "incomplete" {
			return nil, wrong("previous_response_not_found", "previous_response_id", "Previous response with id '%s' not found.", r.Previous)
		}
		return k.items, nil
	case r.Conversation != "":
		items, ok := s.conversations[string(r.Conversation)]
		if !ok {
			return nil, &failure{status: http.StatusNotFound, param: "conversation", message: fmt.Sprintf("Conversation with id '%s' not found.", r.Conversation)}
		}
		return items, nil
	}
	return nil, nil
}

// keep stores an answer, as a whole or as one that is being made.
func (s *Server) keep(a *ask, whole object, events []event, status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.stored[a.id]
	if k == nil {
		k = &stored{background: a.background, ended: make(chan struct{})}
		s.stored[a.id] = k
	}
	if k.status == "cancelled" {
		return
	}
	k.status, k.object, k.events = status, whole, events
	if status == "queued" || status == "in_progress" {
		return
	}
	k.items = append(slices.Clip(a.items), outputItems(a.output)...)
	if a.conversation != "" && status != "failed" {
		s.conversations[a.conversation] = k.items
	}
	close(k.ended)
}

// finished stores an answer that has come to its end.
func (s *Server) finished(a *ask, whole any, events []event) {
	if o, ok := whole.(object); ok {
		status, _ := o["status"].(string)
		s.keep(a, o, events, status)
	}
}

// unkeep forgets an answer that did not come to its end.
func (s *Server) unkeep(a *ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.stored, a.id)
}

// outputItems are items of an answer as a request has them.
func outputItems(output []any) (out rsItems) {
	raw, err := json.Marshal(output)
	if err != nil || json.Unmarshal(raw, &out) != nil {
		return nil
	}
	for i := range out {
		out[i].stored = true
	}
	return out
}

// discard is a response that is not read.
type discard struct{ header http.Header }

// Header implements http.ResponseWriter.
func (d discard) Header() http.Header { return d.header }

// Write implements http.ResponseWriter.
func (d discard) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader implements http.ResponseWriter.
func (d discard) WriteHeader(int) {}

// begin answers in the background: at once with an answer that is queued, or with its events once they are there.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, p *protocol, a *ask, body []byte) {
	queued := rsObject(a, "queued", []any{})
	first, err := json.Marshal(queued)
	if err != nil {
		return
	}
	s.keep(a, queued, nil, "queued")
	ctx, cancel := context.WithCancel(s.base)
	s.mu.Lock()
	k := s.stored[a.id]
	k.cancel = cancel
	s.mu.Unlock()
	s.done.Go(func() {
		defer cancel()
		s.keep(a, rsObject(a, "in_progress", []any{}), nil, "in_progress")
		func() {
			defer func() {
				if v := recover(); v != nil && v != http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
					panic(v)
				}
			}()
			s.play(discard{http.Header{}}, r.Clone(ctx), p, a, body)
		}()
		s.mu.Lock()
		open := k.status == "in_progress"
		s.mu.Unlock()
		if open { // a fault
			failed := rsObject(a, "failed", []any{})
			failed["error"] = object{"code": "server_error", "message": "An error occurred while processing your request."}
			s.keep(a, failed, []event{{name: "response.failed", data: object{"type": "response.failed", "sequence_number": 0, "response": failed}}}, "failed")
		}
	})
	if a.stream {
		s.replay(w, r, k, -1)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(first)
}

// replay streams the events of an answer behind a number, once it has ended.
func (s *Server) replay(w http.ResponseWriter, r *http.Request, k *stored, after int) {
	select {
	case <-k.ended:
	case <-r.Context().Done():
		return
	}
	out := player{w: w}
	var rest []event
	for i, e := range k.events {
		if i > after {
			rest = append(rest, e)
		}
	}
	out.stream(r.Context(), rest)
}

// responsesPath begins the paths of answers that are stored.
const responsesPath = "/v1/responses/"

// resource serves what is stored, and reports whether the path is that of something stored.
func (s *Server) resource(w http.ResponseWriter, r *http.Request, p *protocol) bool {
	if r.Method == http.MethodPost && r.URL.Path == "/v1/conversations" {
		id := newID("conv_")
		s.mu.Lock()
		s.conversations[id] = rsItems{}
		s.mu.Unlock()
		writeJSON(w, object{"id": id, "object": "conversation", "created_at": 1754425777, "metadata": object{}})
		return true
	}
	id, ok := strings.CutPrefix(r.URL.Path, responsesPath)
	id, cancels := strings.CutSuffix(id, "/cancel")
	if !ok || strings.Contains(id, "/") || id == "input_tokens" || cancels && r.Method != http.MethodPost || !cancels && r.Method != http.MethodGet {
		return false
	}
	s.mu.Lock()
	k := s.stored[id]
	s.mu.Unlock()
	switch {
	case k == nil:
		p.reject(w, &failure{status: http.StatusNotFound, message: fmt.Sprintf("Response with id '%s' not found.", id)})
	case cancels && !k.background:
		p.reject(w, invalid("Cannot cancel a synchronous response."))
	case cancels:
		s.cancelled(k)
		s.shown(w, k)
	case r.URL.Query().Get("stream") == "true" && !k.background:
		p.reject(w, invalid("Cannot stream a response that was not created in the background."))
	case r.URL.Query().Get("stream") == "true":
		after, err := strconv.Atoi(r.URL.Query().Get("starting_after"))
		if err != nil {
			after = -1
		}
		s.replay(w, r, k, after)
	default:
		s.shown(w, k)
	}
	return true
}

func (s *Server) shown(w http.ResponseWriter, k *stored) {
	s.mu.Lock()
	raw, err := json.Marshal(k.object)
	s.mu.Unlock()
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(raw)
}

// cancelled ends an answer that is being made; the second time changes nothing.
func (s *Server) cancelled(k *stored) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.status != "queued" && k.status != "in_progress" {
		return
	}
	k.cancel()
	k.status, k.object["status"], k.events = "cancelled", "cancelled", nil
	close(k.ended)
}
