package providertest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

func anthropic() *protocol {
	return &protocol{
		api: AnthropicMessages, idHeader: "Request-Id",
		authorize: anAuthorize, parse: (*Server).anParse, overflow: anOverflow,
		models: anModels, count: func(n int64) any { return object{"input_tokens": n} },
		whole: (*Server).anWhole, events: (*Server).anEvents,
		failed: anFailed,
		errorEvents: func(f *failure) []event {
			return []event{{name: "error", data: anFailed(f, "")}}
		},
	}
}

func anAuthorize(h http.Header, key string) *failure {
	switch got := h.Get("X-Api-Key"); {
	case got == "":
		return &failure{status: http.StatusUnauthorized, message: "x-api-key header is required"}
	case got != key:
		return &failure{status: http.StatusUnauthorized, message: "invalid x-api-key"}
	}
	switch v := h.Get("Anthropic-Version"); v {
	case "2023-06-01":
		return nil
	case "":
		return invalid("anthropic-version: header is required")
	default:
		return invalid(fmt.Sprintf("anthropic-version: %q is not a valid version", v))
	}
}

// anFailed is the body of an error.
func anFailed(f *failure, id string) any {
	kind := f.kind
	if kind == "" {
		kind = map[int]string{
			http.StatusBadRequest: "invalid_request_error", http.StatusUnauthorized: "authentication_error",
			http.StatusPaymentRequired: "billing_error", http.StatusForbidden: "permission_error",
			http.StatusNotFound: "not_found_error", http.StatusRequestEntityTooLarge: "request_too_large",
			http.StatusTooManyRequests: "rate_limit_error", http.StatusGatewayTimeout: "timeout_error",
			statusOverloaded: "overloaded_error", http.StatusMethodNotAllowed: "invalid_request_error",
		}[f.status]
	}
	if kind == "" {
		kind = "api_error"
	}
	out := object{"type": "error", "error": object{"type": kind, "message": f.message}}
	if id != "" {
		out["request_id"] = id
	}
	return out
}

func anModels(models map[string]ModelSpec) any {
	var data []object
	for _, name := range slices.Sorted(maps.Keys(models)) {
		data = append(data, object{
			"type": "model", "id": name, "display_name": name, "created_at": "2025-09-29T00:00:00Z",
			"max_input_tokens": models[name].Window, "max_tokens": models[name].MaxOutput,
		})
	}
	return object{"data": data, "has_more": false, "first_id": data[0]["id"], "last_id": data[len(data)-1]["id"]}
}

func anOverflow(a *ask) *failure {
	n := a.prompt.tokens()
	if n > a.spec.Window {
		return invalid(fmt.Sprintf("prompt is too long: %d tokens > %d maximum", n, a.spec.Window))
	}
	if n+a.limit > a.spec.Window {
		return invalid(fmt.Sprintf("input length and `max_tokens` exceed context limit: %d + %d > %d, decrease input length or `max_tokens` and try again",
			n, a.limit, a.spec.Window))
	}
	return nil
}

// shortLife is how long a prefix is cached when the request does not say.
const shortLife = 5 * time.Minute

type cacheControl struct {
	TTL string `json:"ttl"`
}

func (c *cacheControl) lifetime() time.Duration {
	if c.TTL == "1h" {
		return time.Hour
	}
	return shortLife
}

// anProblem is a shape's problem in Anthropic's words.
func anProblem(p *problem) *failure {
	parts := make([]string, 0, len(p.path))
	for _, e := range p.path {
		parts = append(parts, fmt.Sprint(e))
	}
	where := strings.Join(parts, ".") + ": "
	switch p.kind {
	case "syntax":
		return invalid("The request body is not valid JSON: " + p.got)
	case "missing":
		return invalid(where + "Field required")
	case "unknown":
		return invalid(where + "Extra inputs are not permitted")
	case "value":
		if parts[len(parts)-1] == "type" {
			where = strings.TrimSuffix(where, ".type: ") + ": "
			return invalid(fmt.Sprintf("%sInput tag '%s' found using 'type' does not match any of the expected tags: '%s'", where, p.got, strings.Join(p.want, "', '")))
		}
		return invalid(where + "Input should be '" + strings.Join(p.want, "' or '") + "'")
	}
	word := map[string]string{"integer": "integer", "number": "number", "boolean": "boolean", "string": "string", "array": "array"}[p.want[0]]
	if word == "" {
		word = "dictionary or object"
	}
	return invalid(where + "Input should be a valid " + word)
}

func anShape(counts bool) fields {
	cache := obj(fields{"type!": one("ephemeral"), "ttl": one("5m", "1h")})
	text := fields{"text!": is("string"), "cache_control": cache, "citations": nil}
	base64 := fields{"media_type!": is("string"), "data!": is("string")}
	url := fields{"url!": is("string")}
	image := fields{"source!": variants(map[string]fields{"base64": base64, "url": url}, ""), "cache_control": cache}
	document := fields{
		"source!": variants(map[string]fields{"base64": base64, "url": url, "text": base64}, ""),
		"title":   is("string"), "context": is("string"), "citations": nil, "cache_control": cache,
	}
	content := variants(map[string]fields{
		"text": text, "image": image, "document": document,
		"thinking":          {"thinking!": is("string"), "signature!": is("string")},
		"redacted_thinking": {"data!": is("string")},
		"tool_use":          {"id!": is("string"), "name!": is("string"), "input!": is("object"), "cache_control": cache, "caller": nil},
		"tool_result": {
			"tool_use_id!": is("string"), "is_error": is("boolean"), "cache_control": cache,
			"content": textOr(list(variants(map[string]fields{"text": text, "image": image, "document": document}, ""))),
		},
	}, "")
	named := fields{"name!": is("string"), "disable_parallel_tool_use": is("boolean")}
	choice := fields{"disable_parallel_tool_use": is("boolean")}
	f := fields{
		"model!": is("string"), "system": textOr(list(variants(map[string]fields{"text": text}, ""))),
		"messages!":   list(obj(fields{"role!": is("string"), "content!": textOr(list(content))})),
		"tools":       list(variants(map[string]fields{"custom": {"name!": is("string"), "description": is("string"), "input_schema!": is("object"), "cache_control": cache, "strict": is("boolean"), "eager_input_streaming": is("boolean"), "input_examples": nil}}, "custom")),
		"tool_choice": variants(map[string]fields{"auto": choice, "any": choice, "tool": named, "none": {}}, ""),
		"thinking": variants(map[string]fields{
			"enabled": {"budget_tokens!": is("integer"), "display": is("string")}, "adaptive": {"display": is("string")}, "disabled": {},
		}, ""),
		"output_config": obj(fields{"effort": one("low", "medium", "high", "xhigh", "max"), "format": nil}),
		"cache_control": cache,
	}
	if counts {
		return f
	}
	maps.Copy(f, fields{
		"max_tokens!": is("integer"), "temperature": is("number"), "top_p": is("number"), "top_k": is("integer"), "stream": is("boolean"),
		"stop_sequences": list(is("string")), "metadata": obj(fields{"user_id": is("string")}), "service_tier": one("auto", "standard_only"),
	})
	return f
}
