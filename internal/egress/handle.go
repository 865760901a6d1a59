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
		if v.screen(name, values, t) != nil {
			delete(h, name)
		}
	}
}

// screen checks the handles in a header without reading a secret.
func (v *vault) screen(header string, values []string, t target) *Refusal {
	for _, value := range values {
		for {
			h, ok := nextHandle(value)
			if !ok {
				return refuse(ReasonSecret, "write {{secret.NAME}} or {{basic.NAME}}", "the header %s holds a broken handle", quote(header))
			}
			if h == nil {
				break
			}
			if r := v.check(h.name, header, t); r != nil {
				return r
			}
			value = h.after
		}
	}
	return nil
}

// check explains why a secret may not be in a header to t.
func (v *vault) check(name, header string, t target) *Refusal {
	k := v.secrets[name]
	if k == nil {
		return refuse(ReasonSecret, "use a name that the operator granted", "there is no secret %q", name)
	}
	if !slices.Contains(k.Headers, header) && !slices.Contains(k.Headers, "*") {
		return refuse(ReasonSecret, "use "+strings.Join(k.Headers, " or "), "the secret %q must not be in the header %s", name, quote(header))
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

// screenAll checks all that a plugin asks of its secrets.
func (v *vault) screenAll(h http.Header, t target) *Refusal {
	secrets := false
	for name, values := range h {
		if r := v.screen(name, values, t); r != nil {
			return r
		}
		secrets = secrets || slices.ContainsFunc(values, hasHandle)
	}
	if secrets && h.Get("Range") != "" {
		return refuse(ReasonSecret, "leave out the header Range, or the secret",
			"a response in pieces cannot be searched for secrets")
	}
	return nil
}

// fill returns the headers with the values in place of the handles. They were
// screened before.
func (f *filler) fill(ctx context.Context, h http.Header, t target) (http.Header, *Refusal) {
	out := make(http.Header, len(h))
	size := 0
	for name, values := range h {
		if r := f.vault.screen(name, values, t); r != nil {
			return nil, r // holds however a hop came here
		}
		for _, value := range values {
			filled, r := f.fillValue(ctx, value)
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
	return out, nil
}

func (f *filler) tooLarge() *Refusal {
	return refuse(ReasonHeadersTooLarge, "send less", "the request's headers are larger than %d bytes", f.limit)
}

func (f *filler) fillValue(ctx context.Context, value string) (string, *Refusal) {
	var out strings.Builder
	for {
		h, _ := nextHandle(value)
		if h == nil {
			out.WriteString(value)
			return out.String(), nil
		}
		out.WriteString(h.before)
		text, r := f.lookup(ctx, h)
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

// lookup returns the value of a handle, and remembers the value first.
func (f *filler) lookup(ctx context.Context, h *handle) (string, *Refusal) {
	value, ok := f.values[h.name]
	if !ok {
		var r *Refusal
		if value, r = f.vault.secrets[h.name].value(ctx, h.name); r != nil {
			return "", r
		}
		f.values[h.name] = value
		f.vault.remember(h.name, value)
	}
	if h.basic {
		return basic(h.name, value)
	}
	return value, nil
}
