package egress

import (
	"context"
	"net/http"
	"slices"
	"strings"
)

const (
	handleSecret = "{{secret."
	handleBasic  = "{{basic."
	handleEnd    = "}}"
)

// hasHandle reports whether a text holds a handle.
func hasHandle(text string) bool {
	return strings.Contains(text, handleSecret) || strings.Contains(text, handleBasic)
}

// handle is the first handle in a value, and what is around it.
type handle struct {
	before, name, after string
	// basic means {{basic.NAME}}.
	basic bool
}

// nextHandle finds the first handle in a value, nil when there is none. It
// reports !ok for one that is cut off or whose name is none.
func nextHandle(value string) (h *handle, ok bool) {
	at, open := strings.Index(value, handleSecret), handleSecret
	if b := strings.Index(value, handleBasic); b >= 0 && (at < 0 || b < at) {
		at, open = b, handleBasic
	}
	if at < 0 {
		return nil, true
	}
	name, after, ok := strings.Cut(value[at+len(open):], handleEnd)
	return &handle{value[:at], name, after, open == handleBasic}, ok && isSecretName(name)
}

// filler fills secrets into the headers of one call of Do.
type filler struct {
	vault *vault
	// values holds what was read in this call, so that all hops send the same.
	values map[string]string
	limit  int
}

// dropForeign takes out the headers whose secrets may not go to t, which is
// where a redirect leads.
func (v *vault) dropForeign(h http.Header, t target) {
	for name, values := range h {
		for _, value := range values {
			if !v.maySend(value, name, t) {
				delete(h, name)
				break
			}
		}
	}
}

func (v *vault) maySend(value, header string, t target) bool {
	for {
		h, ok := nextHandle(value)
		if h == nil {
			return true
		}
		if !ok || v.check(h.name, header, t) != nil {
			return false
		}
		value = h.after
	}
}

// check says why a secret may not stand in a header to t.
func (v *vault) check(name, header string, t target) *Refusal {
	k := v.secrets[name]
	if k == nil {
		return refuse(ReasonSecret, "use a name that the operator granted", "there is no secret %q", name)
	}
	if !slices.Contains(k.Headers, header) && !slices.Contains(k.Headers, "*") {
		return refuse(ReasonSecret, "use "+strings.Join(k.Headers, " or "), "the secret %q may not stand in the header %s", name, quote(header))
	}
	if ok, _ := k.hosts.match(t); !ok {
		return refuse(ReasonSecret, "send it only to its own hosts, or ask the operator to add this one to its Hosts",
			"the secret %q may not be sent to %s", name, t.hostPort())
	}
	if t.scheme != "https" && !k.Plain {
		return refuse(ReasonSecret, "use https", "the secret %q may not be sent over http", name)
	}
	return nil
}

// fill returns the headers with the values in place of the handles.
func (f *filler) fill(ctx context.Context, h http.Header, t target) (http.Header, *Refusal) {
	out := make(http.Header, len(h))
	size := 0
	for name, values := range h {
		for _, value := range values {
			filled, r := f.fillValue(ctx, value, name, t)
			if r != nil {
				return nil, r
			}
			size += len(name) + len(filled) + len(": \r\n")
			if size > f.limit {
				return nil, f.tooLarge()
			}
			out[name] = append(out[name], filled)
		}
	}
	if len(f.values) > 0 && out.Get("Range") != "" {
		return nil, refuse(ReasonSecret, "leave out the header Range, or the secret",
			"a response in pieces cannot be searched for secrets")
	}
	return out, nil
}

func (f *filler) tooLarge() *Refusal {
	return refuse(ReasonHeadersTooLarge, "send less", "the request's headers are larger than %d bytes", f.limit)
}

func (f *filler) fillValue(ctx context.Context, value, header string, t target) (string, *Refusal) {
	var out strings.Builder
	for {
		h, ok := nextHandle(value)
		if !ok {
			return "", refuse(ReasonSecret, "write {{secret.NAME}} or {{basic.NAME}}", "the header %s holds a broken handle", quote(header))
		}
		if h == nil {
			out.WriteString(value)
			return out.String(), nil
		}
		out.WriteString(h.before)
		text, r := f.lookup(ctx, h, header, t)
		if r != nil {
			return "", r
		}
		out.WriteString(text)
		if out.Len() > f.limit {
			return "", f.tooLarge()
		}
		value = h.after
	}
}

// lookup returns what stands for a handle, and remembers the value first.
func (f *filler) lookup(ctx context.Context, h *handle, header string, t target) (string, *Refusal) {
	name := h.name
	if r := f.vault.check(name, header, t); r != nil {
		return "", r
	}
	value, ok := f.values[name]
	if !ok {
		var r *Refusal
		if value, r = f.vault.secrets[name].value(ctx, name); r != nil {
			return "", r
		}
		f.values[name] = value
		f.vault.remember(name, value)
	}
	if h.basic {
		return basic(name, value)
	}
	return value, nil
}
