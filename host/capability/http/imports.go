package http

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/mortise-dev/mortise/internal/egress"
	"github.com/mortise-dev/mortise/internal/engine"
)

// httpRequestCost is the fuel for a request, in addition to that for its bytes.
const httpRequestCost = 100_000

// maxRequestJSON bounds the JSON of a request, which holds its headers.
const maxRequestJSON = 256 << 10

// httpResponse is what the guest may ask about its last response.
type httpResponse struct {
	status int
	header http.Header
}

// httpOpened is an open grant.
type httpOpened struct {
	broker       *egress.Broker
	uses         *atomic.Int64
	readsHeaders bool
}

// Capability implements host.Capability.
func (*Grant) Capability() string { return "http" }

// Checked implements host.Capability.
func (h *Grant) Checked(string) (engine.Capability, error) {
	out := *h
	out.Hosts, out.Private, out.Methods, out.Secrets = slices.Clone(h.Hosts), slices.Clone(h.Private), slices.Clone(h.Methods), maps.Clone(h.Secrets)
	for name, secret := range out.Secrets {
		secret.Hosts, secret.Headers = slices.Clone(secret.Hosts), slices.Clone(secret.Headers)
		out.Secrets[name] = secret
	}
	return &out, nil
}

// Open implements host.Capability.
func (h *Grant) Open(env *engine.Env) (*engine.Opened, error) {
	broker, err := h.openBroker(engine.Keep(env.Use, "http budget", func() *egress.Budget { return new(egress.Budget) }), env.Logger.With("module", env.Module))
	if err != nil {
		return nil, err
	}
	o := &httpOpened{broker, env.Use.Counter("http"), h.ResponseHeaders}
	return &engine.Opened{
		Blocking: true,
		Functions: []engine.HostFunc{
			engine.Function("http_fetch", o.fetchBlock), engine.Function("http_request", o.request),
			engine.Function("http_status_code", o.statusCode), engine.Function("http_headers", o.headers),
		},
		Close: func() error { broker.Close(); return nil },
	}, nil
}

// fetchBlock is the import http_fetch: a block with the body, 0 for an empty one. No
// refusal and no failure ends the call.
func (o *httpOpened) fetchBlock(g engine.Guest, stack []uint64) {
	body, code, text := o.fetch(g, "http_fetch", stack[0], stack[1])
	if code != 0 {
		_, s := g.Enter("http_fetch")
		stack[0] = s.Refuse(code, "http_fetch: "+engine.Clean(text, engine.MaxMessage))
		return
	}
	stack[0] = httpBody(g, "http_fetch", body)
}

// request is the import http_request of Extism, which cannot report that a request
// was refused: it ends the call.
func (o *httpOpened) request(g engine.Guest, stack []uint64) {
	body, code, text := o.fetch(g, "http_request", stack[0], stack[1])
	switch code {
	case 0:
		stack[0] = httpBody(g, "http_request", body)
		return
	case engine.CodeDenied, engine.CodeQuota, engine.CodeTooLarge:
		_, s := g.Enter("http_request")
		s.Env.Use.Denied.Add(1)
		g.Fail(&engine.Fault{Kind: engine.TrapDenied, Detail: "http_request: " + engine.Clean(text, engine.MaxDetail)})
	default:
		g.Fail(&engine.Fault{Kind: engine.TrapFault, Detail: "http_request: " + engine.Clean(text, engine.MaxDetail)})
	}
}

func httpBody(g engine.Guest, name string, body []byte) uint64 {
	if len(body) == 0 {
		return 0
	}
	return g.Store(name, body)
}

// fetch makes a request. Without a response it returns a code and a text.
func (o *httpOpened) fetch(g engine.Guest, name string, request, body uint64) ([]byte, engine.ErrorCode, string) {
	ctx, s := g.Enter(name)
	o.uses.Add(1)
	g.Spend(httpRequestCost)
	response := engine.InCall[httpResponse](s, o)
	*response = httpResponse{}
	req, code, text := readRequest(g, name, request)
	if code != 0 {
		return nil, code, text
	}
	if body != 0 && body != engine.EmptyBlock {
		req.Body = bytes.Clone(g.Block(name, body))
	}
	resp, err := o.broker.Do(ctx, req)
	g.Leave()
	if err != nil {
		code, text := httpFailure(err)
		return nil, code, text
	}
	*response = httpResponse{status: resp.Status, header: resp.Header}
	return resp.Body, 0, ""
}

// readRequest decodes the JSON that the Extism PDKs write.
func readRequest(g engine.Guest, name string, offset uint64) (req egress.Request, code engine.ErrorCode, text string) {
	var in struct {
		URL     string            `json:"url"`
		Method  string            `json:"method"`
		Headers map[string]string `json:"headers"`
	}
	if offset == 0 {
		return req, engine.CodeInvalid, "there is no request"
	}
	raw := g.Block(name, offset)
	if len(raw) > maxRequestJSON {
		return req, engine.CodeTooLarge, fmt.Sprintf("the request without its body has %d bytes, %d are allowed", len(raw), maxRequestJSON)
	}
	g.Spend(10 * len(raw))
	if err := json.Unmarshal(raw, &in); err != nil {
		return req, engine.CodeInvalid, `the request is not JSON of the form {"url", "method", "headers"}`
	}
	req = egress.Request{URL: in.URL, Method: in.Method, Header: http.Header{}}
	for key, value := range in.Headers {
		req.Header[key] = append(req.Header[key], value)
	}
	return req, 0, ""
}

// statusCode is the import http_status_code: that of the last response in this
// call, 0 without one.
func (o *httpOpened) statusCode(g engine.Guest, stack []uint64) {
	_, s := g.Enter("http_status_code")
	stack[0] = uint64(engine.InCall[httpResponse](s, o).status) //nolint:gosec // three digits
}

// headers is the import http_headers: a JSON object with the headers of the last
// response, 0 when they are not granted.
func (o *httpOpened) headers(g engine.Guest, stack []uint64) {
	_, s := g.Enter("http_headers")
	stack[0] = 0
	if !o.readsHeaders {
		return
	}
	response := engine.InCall[httpResponse](s, o)
	out := make(map[string]string, len(response.header))
	for name, values := range response.header {
		out[strings.ToLower(name)] = strings.Join(values, ",")
	}
	text, err := json.Marshal(out)
	if err != nil { // strings always can
		g.Fail(&engine.Fault{Kind: engine.TrapFault, Detail: "http_headers: " + err.Error()})
	}
	stack[0] = g.Store("http_headers", text)
}
