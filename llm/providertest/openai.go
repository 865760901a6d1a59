package providertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// namePattern is what names of functions and the like must be.
const namePattern = "^[a-zA-Z0-9_-]+$"

func oaAuthorize(h http.Header, key string) *failure {
	f := &failure{status: http.StatusUnauthorized}
	switch got, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer "); {
	case !ok || got == "":
		f.message = "Missing bearer or basic authentication in header"
	case got != key:
		f.code = "invalid_api_key"
		f.message = "Incorrect API key provided: " + masked(got) + ". You can find your API key at https://platform.openai.com/account/api-keys."
	default:
		return nil
	}
	return f
}

// masked is a key as OpenAI's errors show it.
func masked(key string) string {
	if len(key) < 12 {
		return strings.Repeat("*", len(key))
	}
	return key[:4] + strings.Repeat("*", len(key)-8) + key[len(key)-4:]
}

// oaError is the object of an error.
func oaError(f *failure) object {
	kind, code := f.kind, f.code
	if kind == "" {
		kind = "invalid_request_error"
		switch {
		case f.status == http.StatusTooManyRequests:
			kind, code = "requests", "rate_limit_exceeded"
		case f.status >= http.StatusInternalServerError:
			kind, code = "server_error", "server_error"
		}
	}
	out := object{"message": f.message, "type": kind, "param": nil, "code": nil}
	if f.param != "" {
		out["param"] = f.param
	}
	if code != "" {
		out["code"] = code
	}
	return out
}

func oaFailed(f *failure, _ string) any { return object{"error": oaError(f)} }

func oaModels(models map[string]ModelSpec) any {
	var data []object
	for _, name := range slices.Sorted(maps.Keys(models)) {
		data = append(data, object{"id": name, "object": "model", "created": 1754425777, "owned_by": "system"})
	}
	return object{"object": "list", "data": data}
}

// wrong is a bad request with its code and parameter.
func wrong(code, param, format string, args ...any) *failure {
	return &failure{status: http.StatusBadRequest, code: code, param: param, message: fmt.Sprintf(format, args...)}
}

// oaPath writes a path as OpenAI does.
func oaPath(path []any) string {
	var b strings.Builder
	for _, e := range path {
		switch e := e.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", e)
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(e)
		}
	}
	return b.String()
}

// oaProblem is a shape's problem in OpenAI's words.
func oaProblem(p *problem) *failure {
	where := oaPath(p.path)
	switch p.kind {
	case "syntax":
		return invalid("We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. " +
			"The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)")
	case "missing":
		return wrong("missing_required_parameter", where, "Missing required parameter: '%s'.", where)
	case "unknown":
		return wrong("unknown_parameter", where, "Unknown parameter: '%s'.", where)
	case "value":
		return wrong("invalid_value", where, "Invalid value: '%s'. Supported values are: '%s'.", p.got, strings.Join(p.want, "', '"))
	default:
		return wrong("invalid_type", where, "Invalid type for '%s': expected %s, but got %s instead.", where, p.want[0], p.got)
	}
}

// oaTool is a function of either API.
type oaTool struct {
	Name, Description string
	Parameters        json.RawMessage
	Strict            *bool
	// Tools are those of a namespace, Namespace the one of a tool.
	Tools     []oaTool
	Namespace string `json:"-"`
}

// namespaceSeparator is between a namespace and the name of its tool, in a [Query] and its [Answer].
const namespaceSeparator = "__"

// flattened replaces namespaces by their tools.
func flattened(tools []oaTool) []oaTool {
	var out []oaTool
	for _, t := range tools {
		if t.Tools == nil {
			out = append(out, t)
			continue
		}
		for _, inner := range t.Tools {
			inner.Namespace = t.Name
			inner.Name = t.Name + namespaceSeparator + inner.Name
			out = append(out, inner)
		}
	}
	return out
}

// checkTools checks functions; field is where the function is in a tool.
func checkTools(tools []oaTool, field string) *failure {
	if len(tools) > 128 {
		return wrong("array_above_max_length", "tools", "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length %d instead.", len(tools))
	}
	for i, t := range tools {
		where := fmt.Sprintf("tools[%d].%s", i, field)
		if f := checkName(where+"name", t.Name, 64); f != nil {
			return f
		}
		if len(t.Parameters) == 0 || string(t.Parameters) == "null" {
			continue
		}
		var schema object
		if json.Unmarshal(t.Parameters, &schema) != nil {
			continue // the shape is an object
		}
		var why string
		if kind := schema["type"]; kind != "object" {
			if kind == nil {
				kind = "None"
			}
			why = fmt.Sprintf("schema must be a JSON Schema of 'type: \"object\"', got 'type: \"%v\"'.", kind)
		} else {
			why = checkSchema(schema, nil, t.Strict != nil && *t.Strict)
		}
		if why != "" {
			return wrong("invalid_function_parameters", where+"parameters", "Invalid schema for function '%s': %s", t.Name, why)
		}
	}
	return nil
}

// checkSchema returns what the API does not take in a schema.
func checkSchema(schema object, path []string, strict bool) string {
	where := "In context=(), "
	if len(path) > 0 {
		where = "In context=('" + strings.Join(path, "', '") + "'), "
	}
	properties, has := schema["properties"].(object)
	switch {
	case schema["type"] == "array" && schema["items"] == nil:
		return where + "array schema missing items."
	case schema["type"] == "object" && !has && len(path) == 0:
		return where + "object schema missing properties."
	case schema["type"] == "object" && strict && schema["additionalProperties"] != false:
		return where + "'additionalProperties' is required to be supplied and to be false."
	}
	required, _ := schema["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if strict && !slices.Contains(required, any(name)) {
			return where + "'required' is required to be supplied and to be an array including every key in properties. Missing '" + name + "'."
		}
		if child, ok := properties[name].(object); ok {
			if why := checkSchema(child, append(slices.Clip(path), "properties", name), strict); why != "" {
				return why
			}
		}
	}
	if child, ok := schema["items"].(object); ok {
		return checkSchema(child, append(slices.Clip(path), "items"), strict)
	}
	return ""
}

func checkName(where, name string, longest int) *failure {
	switch {
	case len(name) > longest:
		return tooLong(where, name, longest)
	case name == "":
		return wrong("empty_string", where, "Invalid '%s': empty string. Expected a string with minimum length 1, but got an empty string instead.", where)
	case !regexp.MustCompile(namePattern).MatchString(name):
		return wrong("invalid_value", where, "Invalid '%s': string does not match pattern. Expected a string that matches the pattern '%s'.", where, namePattern)
	}
	return nil
}

func tooLong(where, value string, longest int) *failure {
	return wrong("string_above_max_length", where, "Invalid '%s': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", where, longest, len(value))
}

func emptyArray(where string) *failure {
	return wrong("empty_array", where, "Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", where)
}

// checkImageURL checks an image of either API.
func checkImageURL(where, url string) *failure {
	if strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://") {
		return nil
	}
	mediaType, data, ok := dataURL(url)
	if !ok {
		return wrong("invalid_value", where, "Invalid '%s'. Expected a valid URL, but got a value with an invalid format.", where)
	}
	switch why := checkImage(mediaType, data); {
	case strings.Contains(why, "base64"):
		return wrong("invalid_base64", where, "Invalid base64 image_url.")
	case strings.Contains(why, "exceeds"):
		return nil // OpenAI takes up to 50 MB a request
	case why != "" && !strings.Contains(why, "appears to be"):
		return wrong("invalid_image_format", "", "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].")
	}
	return nil
}

// checkFile checks a document of either API.
func checkFile(where, name, data string) *failure {
	mediaType, content, ok := dataURL(data)
	switch {
	case data == "":
		return nil
	case !ok:
		return wrong("invalid_value", where+".file_data", "Invalid '%s.file_data'. Expected a base64-encoded data URL with a MIME type (e.g. 'data:application/pdf;base64,...'), but got a value without the 'data:' prefix.", where)
	case name == "":
		return wrong("missing_required_parameter", where+".filename", "Missing required parameter: '%s.filename'.", where)
	case mediaType == "application/pdf" && checkPDF(content) != "":
		return wrong("invalid_file", where+".file_data", "The file could not be parsed as a PDF.")
	}
	return nil
}

// sampling are the parameters that reasoning models do not take.
type sampling struct {
	Temperature *float64
	TopP        *float64 `json:"top_p"`
}

func (s *sampling) check(spec ModelSpec, format string) *failure {
	for name, v := range map[string]*float64{"temperature": s.Temperature, "top_p": s.TopP} {
		switch most := map[string]float64{"temperature": 2, "top_p": 1}[name]; {
		case v == nil:
		case *v < 0 || *v > most:
			return wrong("decimal_above_max_value", name, "Invalid '%s': decimal above maximum value. Expected a value <= %v, but got %v instead.", name, most, *v)
		case spec.Thinking != ThinkingNone && *v != 1:
			return wrong("unsupported_parameter", name, format, name)
		}
	}
	return nil
}
