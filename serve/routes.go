package serve

import (
	"net/http"
	"path"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// schemaName names a type in the OpenAPI document. Those of other packages have the name of
// theirs, so that no two are the same.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if pkg := path.Base(t.PkgPath()); t.PkgPath() != "" && pkg != "serve" {
		name = huma.DefaultSchemaNamer(reflect.TypeFor[struct{}](), pkg) + name
	}
	return name
}

// operation describes a route.
func (s *Server) operation(method, route, id, scope, summary string) huma.Operation {
	return huma.Operation{
		Method: method, Path: route, OperationID: id, Summary: summary, Security: scoped(scope),
		MaxBodyBytes: s.cfg.Limits.Body, BodyReadTimeout: s.cfg.Limits.Read,
	}
}

// streams adds the event stream to the responses of an operation.
func streams(op huma.Operation, r huma.Registry, accepted any) huma.Operation {
	op.Responses = map[string]*huma.Response{"200": {
		Description: "The events of the run, until it has settled. docs/http.md lists them.",
		Content: map[string]*huma.MediaType{"text/event-stream": {
			Schema:  &huma.Schema{Type: huma.TypeString},
			Example: "id: 1-1\nevent: run_started\ndata: {\"type\":\"run_started\",\"id\":\"1-1\",\"seq\":1}\n\n",
		}},
	}}
	if accepted != nil {
		op.Responses["202"] = &huma.Response{
			Description: "The run is queued, or under way.",
			Headers:     map[string]*huma.Param{"Location": {Schema: &huma.Schema{Type: huma.TypeString}}},
			Content:     map[string]*huma.MediaType{"application/json": {Schema: r.Schema(reflect.TypeOf(accepted), true, "")}},
		}
	} else {
		op.Responses["204"] = &huma.Response{Description: "The run has settled, and the client has all its events."}
	}
	return op
}

func (s *Server) runRoutes(api huma.API) {
	r := api.OpenAPI().Components.Schemas
	submit := s.operation(http.MethodPost, "/v1/runs", "new-run", ScopeRun, "Submit a run to a new thread")
	register(api, streams(bodies(submit, runExamples()), r, submitted{}), s.newThread)
	submit = s.operation(http.MethodPost, "/v1/threads/{thread}/runs", "submit-run", ScopeRun, "Submit a run to a thread")
	register(api, streams(bodies(submit, runExamples()), r, submitted{}), s.submit)
	batch := s.operation(http.MethodPost, "/v1/runs/batch", "submit-runs", ScopeRun, "Queue many runs")
	batch.DefaultStatus = http.StatusAccepted
	register(api, batch, s.submitBatch)
	find(api.OpenAPI(), batch).RequestBody.Content["application/json"].Schema = r.Schema(reflect.TypeFor[batchRuns](), true, "")
	agui := s.operation(http.MethodPost, "/v1/ag-ui", "ag-ui", ScopeRun, "Run an agent as a client of the AG-UI protocol asks for")
	register(api, streams(agui, r, nil), s.runAGUI)
	register(api, s.operation(http.MethodGet, "/v1/runs", "list-runs", ScopeRead, "Runs, the newest first"), s.listRuns)
	register(api, s.operation(http.MethodGet, "/v1/runs/{run}", "get-run", ScopeRead, "A run"), s.getRun)
	events := s.operation(http.MethodGet, "/v1/runs/{run}/events", "run-events", ScopeRead, "The events of a run, as server-sent events")
	register(api, streams(events, r, nil), s.events)
	decide := s.operation(http.MethodPost, "/v1/runs/{run}/decisions", "decide", ScopeRun, "Answer what a run waits for")
	register(api, bodies(decide, decisionExamples()), s.decide)
	register(api, s.operation(http.MethodPost, "/v1/runs/{run}/cancel", "cancel-run", ScopeRun, "Cancel a run"), s.cancel)
	register(api, s.operation(http.MethodPost, "/v1/runs/{run}/interrupt", "interrupt-run", ScopeRun, "Interrupt a run and what is queued behind it"), s.interrupt)
}

func (s *Server) threadRoutes(api huma.API) {
	register(api, s.operation(http.MethodGet, "/v1/threads", "list-threads", ScopeRead, "Threads, by their ids"), s.listThreads)
	register(api, s.operation(http.MethodGet, "/v1/threads/{thread}", "get-thread", ScopeRead, "A thread"), s.getThread)
	register(api, s.operation(http.MethodPatch, "/v1/threads/{thread}", "describe-thread", ScopeRun, "Change the title and the metadata of a thread"), s.describe)
	register(api, s.operation(http.MethodDelete, "/v1/threads/{thread}", "delete-thread", ScopeRun, "Delete a thread and those below it"), s.deleteThread)
	register(api, s.operation(http.MethodPost, "/v1/threads/{thread}/pause", "pause-thread", ScopeRun, "Pause a thread at the next step of its run"), s.pauseThread)
	register(api, s.operation(http.MethodPost, "/v1/threads/{thread}/resume", "resume-thread", ScopeRun, "Continue a thread that is paused"), s.resumeThread)
	register(api, s.operation(http.MethodGet, "/v1/threads/{thread}/messages", "list-messages", ScopeRead, "Messages of a thread, the newest page first"), s.messages)
	register(api, s.operation(http.MethodGet, "/v1/threads/{thread}/outputs/{handle}", "read-output", ScopeRead, "Part of a large output of a tool or a background task"), s.output)
	if s.cfg.Sessions != nil {
		register(api, s.operation(http.MethodGet, "/v1/threads/{thread}/compactions", "list-compactions", ScopeRead, "Compactions of a thread"), s.compactions)
	}
	if s.cfg.Runtime.Compactor() != nil {
		request := s.operation(http.MethodPost, "/v1/threads/{thread}/compactions", "request-compaction", ScopeRun, "Compact a thread at its next step")
		request.DefaultStatus = http.StatusAccepted
		register(api, bodies(request, compactExamples()), s.compact)
		register(api, s.operation(http.MethodDelete, "/v1/threads/{thread}/compactions/latest", "undo-compaction", ScopeRun, "Undo the latest compaction"), s.undo)
	}
	if s.cfg.Records != nil {
		register(api, s.operation(http.MethodGet, "/v1/threads/{thread}/decisions", "list-decisions", ScopeRead, "What plugins and policies decided in a run"), s.decided)
	}
}

func (s *Server) operatorRoutes(api huma.API) {
	register(api, s.operation(http.MethodGet, "/v1/dead-letters", "list-dead-letters", ScopeAdmin, "Requests that failed for good, oldest first"), s.deadLetters)
	register(api, s.operation(http.MethodPost, "/v1/dead-letters/{dispatch}/replay", "replay-dead-letter", ScopeAdmin, "Queue a dead letter again, for a new run"), s.replay)
	register(api, s.operation(http.MethodDelete, "/v1/dead-letters/{dispatch}", "discard-dead-letter", ScopeAdmin, "Discard a dead letter"), s.discard)
	if s.cfg.Modules != nil {
		s.moduleRoutes(api, "/v1/plugins", "plugin", false)
		s.moduleRoutes(api, "/v1/policies", "policy", true)
	}
	if s.cfg.Reload != nil {
		register(api, s.operation(http.MethodPost, "/v1/reload", "reload", ScopeAdmin, "Read the configuration again"), s.reload)
	}
	register(api, s.operation(http.MethodPost, "/v1/pause", "pause", ScopeAdmin, "Begin no runs, of a tenant or at all, until that is resumed"), s.pause)
	register(api, s.operation(http.MethodPost, "/v1/resume", "resume", ScopeAdmin, "End a pause"), s.resume)
	drain := s.operation(http.MethodPost, "/v1/drain", "drain", ScopeAdmin, "Take no runs any more, and end the streams")
	drain.DefaultStatus = http.StatusAccepted
	register(api, drain, s.drain)
	register(api, s.operation(http.MethodGet, "/v1/status", "get-status", ScopeAdmin, "What the server does"), s.status)
}
