package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/mortise-dev/mortise/internal/egress"
)

// httpRequestCost is the fuel for a request, beside that for its bytes.
const httpRequestCost = 100_000

// maxRequestJSON bounds the JSON of a request, which holds its headers.
const maxRequestJSON = 256 << 10

// httpResponse is what the guest may ask about its last response.
type httpResponse struct {
	status int
	header http.Header
}

// httpFetch is the import http_fetch: a block with the body, 0 for an empty one. No
// refusal and no failure ends the call.
func httpFetch(g guest, stack []uint64) {
	body, code, text := fetch(g, "http_fetch", stack[0], stack[1])
	if code != 0 {
		_, s := g.enter("http_fetch")
		stack[0] = s.refuse(code, "http_fetch: "+clean(text, maxMessage))
		return
	}
	stack[0] = httpBody(g, "http_fetch", body)
}

// httpRequest is the import http_request of Extism, which cannot say that a request
// was refused: it ends the call.
func httpRequest(g guest, stack []uint64) {
	body, code, text := fetch(g, "http_request", stack[0], stack[1])
	switch code {
	case 0:
		stack[0] = httpBody(g, "http_request", body)
		return
	case CodeDenied, CodeQuota, CodeTooLarge:
		_, s := g.enter("http_request")
		s.caps.use.denied.Add(1)
		g.fail(&fault{kind: TrapDenied, detail: "http_request: " + clean(text, maxDetail)})
	default:
		g.fail(&fault{kind: TrapFault, detail: "http_request: " + clean(text, maxDetail)})
	}
}

func httpBody(g guest, name string, body []byte) uint64 {
	if len(body) == 0 {
		return 0
	}
	return g.store(name, body)
}

// fetch makes a request. Without a response it returns a code and a text.
func fetch(g guest, name string, request, body uint64) ([]byte, ErrorCode, string) {
	ctx, s := g.enter(name)
	s.caps.use.http.Add(1)
	g.spend(httpRequestCost)
	s.response = httpResponse{}
	req, code, text := readRequest(g, name, request)
	if code != 0 {
		return nil, code, text
	}
	if body != 0 && body != emptyBlock {
		req.Body = bytes.Clone(g.block(name, body))
	}
	resp, err := s.caps.broker.Do(ctx, req)
	g.leave()
	if err != nil {
		code, text := httpFailure(err)
		return nil, code, text
	}
	s.response = httpResponse{status: resp.Status, header: resp.Header}
	return resp.Body, 0, ""
}

// readRequest decodes the JSON that the Extism PDKs write.
func readRequest(g guest, name string, offset uint64) (req egress.Request, code ErrorCode, text string) {
	var in struct {
		URL     string            `json:"url"`
		Method  string            `json:"method"`
		Headers map[string]string `json:"headers"`
	}
	if offset == 0 {
		return req, CodeInvalid, "there is no request"
	}
	raw := g.block(name, offset)
	if len(raw) > maxRequestJSON {
		return req, CodeTooLarge, fmt.Sprintf("the request without its body has %d bytes, %d are allowed", len(raw), maxRequestJSON)
	}
	g.spend(10 * len(raw))
	if err := json.Unmarshal(raw, &in); err != nil {
		return req, CodeInvalid, `the request is not JSON of the form {"url", "method", "headers"}`
	}
	req = egress.Request{URL: in.URL, Method: in.Method, Header: http.Header{}}
	for key, value := range in.Headers {
		req.Header[key] = append(req.Header[key], value)
	}
	return req, 0, ""
}

// httpStatusCode is the import http_status_code: that of the last response in this
// call, 0 without one.
func httpStatusCode(g guest, stack []uint64) {
	_, s := g.enter("http_status_code")
	stack[0] = uint64(s.response.status) //nolint:gosec // three digits
}

// httpHeaders is the import http_headers: a JSON object with the headers of the last
// response, 0 when they are not granted.
func httpHeaders(g guest, stack []uint64) {
	_, s := g.enter("http_headers")
	stack[0] = 0
	if grant := g.allowed().HTTP; grant == nil || !grant.ResponseHeaders {
		return
	}
	out := make(map[string]string, len(s.response.header))
	for name, values := range s.response.header {
		out[strings.ToLower(name)] = strings.Join(values, ",")
	}
	text, err := json.Marshal(out)
	if err != nil { // strings always can
		g.fail(&fault{kind: TrapFault, detail: "http_headers: " + err.Error()})
	}
	stack[0] = g.store("http_headers", text)
}
