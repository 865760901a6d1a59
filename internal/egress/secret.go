package egress

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Sizes of secrets, in bytes. A short value would turn up in responses by chance,
// and a guard that replaces it would tell a plugin what it is.
const (
	leastSecret     = 8
	mostSecret      = 4 << 10
	mostSecretName  = 64
	rememberedSlots = 8
)

// Secret is a credential that a plugin may use by its handle, and never sees.
type Secret struct {
	// Value returns the current value, of 8 bytes to 4 KiB, without line breaks.
	// What looks like an escape counts as the one character that it encodes. It is
	// called once for each call of Do that needs it, and for a first response, to know
	// what to look for; possibly concurrently. It must return when its context ends. The
	// text of its error is dropped.
	Value func(ctx context.Context) (string, error)
	// Hosts are where it may be sent, written as in Policy.Hosts, but without "*".
	// The policy must grant them as well. Required.
	Hosts []string
	// Headers are where its handle may stand. Default Authorization. "*" means any
	// header but those of the broker.
	Headers []string
	// Plain lets it be sent over http, where the policy grants that.
	Plain bool
}

// vault holds the secrets of a broker, and the values that it has sent or knows of.
type vault struct {
	secrets map[string]*keptSecret
	now     func() time.Time

	mu     sync.Mutex
	closed bool
	// readings are the last ones of secrets that were not sent yet.
	readings map[string]*reading
	// sent are the latest values of each secret that left the broker, or that it has
	// learnt.
	sent map[string][]sentValue
	// index finds them. It is replaced, never changed.
	index *index
}

type keptSecret struct {
	Secret

	hosts hostSet
}

type sentValue struct {
	value   string
	needles []needle
}

func newVault(secrets map[string]Secret) (*vault, error) {
	v := &vault{
		secrets: map[string]*keptSecret{}, sent: map[string][]sentValue{},
		now: time.Now, readings: map[string]*reading{},
	}
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		k, err := keep(secrets[name])
		switch {
		case !isSecretName(name):
			return nil, fmt.Errorf("Config.Secrets %s is not a name; use up to %d letters, digits, dots, hyphens and underscores",
				quote(name), mostSecretName)
		case err != nil:
			return nil, fmt.Errorf("Config.Secrets[%q]: %w", name, err)
		}
		v.secrets[name] = k
	}
	return v, nil
}

func keep(s Secret) (*keptSecret, error) {
	if s.Value == nil {
		return nil, errors.New("its Value is nil; give a function that returns the secret")
	}
	if len(s.Hosts) == 0 {
		return nil, errors.New("its Hosts are empty; name at least one host that the secret may be sent to")
	}
	hosts, err := parseHosts("its Hosts", s.Hosts)
	if err != nil {
		return nil, err
	}
	for i, h := range hosts {
		if h.any {
			return nil, fmt.Errorf(`its Hosts[%d] "*" would send the secret anywhere; name the hosts`, i)
		}
	}
	headers := []string{"Authorization"}
	if len(s.Headers) > 0 {
		headers = nil
	}
	for i, name := range s.Headers {
		canonical := http.CanonicalHeaderKey(name)
		if !isToken(name) || isReserved(canonical) || canonical == "Host" || canonical == "Content-Length" || canonical == "Accept-Encoding" {
			return nil, fmt.Errorf("its Headers[%d] %s cannot hold a secret; name another header", i, quote(name))
		}
		headers = append(headers, canonical)
	}
	s.Headers = headers
	return &keptSecret{Secret: s, hosts: hosts}, nil
}

func isSecretName(name string) bool {
	if name == "" || len(name) > mostSecretName {
		return false
	}
	for _, c := range []byte(name) {
		if !isAlphanumeric(c) && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// value reads a secret and checks it. No error tells anything of it.
func (k *keptSecret) value(ctx context.Context, name string) (string, *Refusal) {
	hint := "ask the operator to look at the secret"
	value, err := k.Value(ctx)
	switch {
	case err != nil:
		return "", refuse(ReasonSecret, hint, "the secret %q cannot be read", name)
	case recognisable(value) < leastSecret || len(value) > mostSecret:
		return "", refuse(ReasonSecret, hint, "the secret %q is not between %d and %d bytes long", name, leastSecret, mostSecret)
	case !isFieldValue(value) || strings.TrimSpace(value) != value:
		return "", refuse(ReasonSecret, hint, "the secret %q has a line break, a control character or space around it", name)
	}
	return value, nil
}

// basic checks a value of the form user:password. The part that is secret must be
// long enough to be recognised.
func basic(name, value string) (string, *Refusal) {
	user, password, ok := strings.Cut(value, ":")
	if secret := max(recognisable(password), recognisable(user)*btoi(password == "")); !ok || secret < leastSecret {
		return "", refuse(ReasonSecret, "ask the operator to look at the secret",
			"the secret %q is not user:password with a password of at least %d bytes", name, leastSecret)
	}
	return base64.StdEncoding.EncodeToString([]byte(value)), nil
}

// recognisable is the length of a value when all that looks like an escape is
// undone, as it is before a response is searched.
func recognisable(value string) int {
	v := view{text: []byte(value)}
	for range layers {
		v = unescape(v)
	}
	return len(v.text)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// remember adds a value to what is looked for in responses.
func (v *vault) remember(name, value string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	kept := v.sent[name]
	at := slices.IndexFunc(kept, func(s sentValue) bool { return s.value == value })
	if at == len(kept)-1 && at >= 0 {
		return
	}
	if at >= 0 {
		latest := kept[at]
		kept = append(slices.Delete(kept, at, at+1), latest)
	} else {
		kept = append(kept, sentValue{value, needlesOf(name, value)})
	}
	v.sent[name] = kept[max(0, len(kept)-rememberedSlots):]
	var all []needle
	for _, n := range slices.Sorted(maps.Keys(v.sent)) {
		for _, s := range v.sent[n] {
			all = append(all, s.needles...)
		}
	}
	v.index = newIndex(all)
}

// How long responses wait for a secret that they do not need, from when it was asked for, and how long it has,
// after which it is asked for again: a source that is down must not hold up all requests.
const (
	learnTime  = 2 * time.Second
	learnAgain = 10 * time.Second
)

// reading is how a secret is read that was not sent yet.
type reading struct {
	began  time.Time
	cancel context.CancelFunc
	done   chan struct{}
	told   bool
}

// learn reads the secrets that this broker has not sent yet. Another one may have, in
// a process before this or for a binary before this, and a server may have kept them. A read does not end with
// the request, whose time the guest has in its hands. It returns the names of those without which a response
// has to be looked through, each once.
func (v *vault) learn(ctx context.Context) (missing []string) {
	reads := v.read(ctx)
	for _, r := range reads {
		select {
		case <-r.done:
			continue
		default:
		}
		wait := time.NewTimer(learnTime - v.now().Sub(r.began))
		select {
		case <-r.done:
		case <-wait.C:
		case <-ctx.Done():
		}
		wait.Stop()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for name, r := range reads {
		if len(v.sent[name]) == 0 && !r.told {
			r.told = true
			missing = append(missing, name)
		}
	}
	return missing
}

// read returns how the secrets are read of which no value is known, and begins with those that may be asked for now.
func (v *vault) read(ctx context.Context) map[string]*reading {
	now := v.now()
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.sent) == len(v.secrets) {
		return nil
	}
	out := map[string]*reading{}
	for name, k := range v.secrets {
		if len(v.sent[name]) > 0 {
			continue
		}
		r := v.readings[name]
		if r == nil || !now.Before(r.began.Add(learnAgain)) {
			r = v.begin(ctx, name, k, now, r)
		}
		out[name] = r
	}
	return out
}

// begin reads a secret, in the place of a read that came to nothing.
func (v *vault) begin(ctx context.Context, name string, k *keptSecret, now time.Time, before *reading) *reading {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), learnAgain)
	r := &reading{began: now, cancel: cancel, done: make(chan struct{})}
	if before != nil {
		before.cancel()
		r.told = before.told
	}
	if v.closed {
		cancel()
	}
	v.readings[name] = r
	go func() {
		defer close(r.done)
		defer cancel()
		defer func() { _ = recover() }() // of a function of the embedder: it cannot be read
		if value, refused := k.value(ctx, name); refused == nil {
			v.remember(name, value)
		}
	}()
	return r
}

// close ends what is being read.
func (v *vault) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	for _, r := range v.readings {
		r.cancel()
	}
}

// find returns what to look for, nil when there is nothing.
func (v *vault) find() *index {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.index
}

// redact replaces every value that was sent by its handle, within a text of the
// broker or of a server.
func (v *vault) redact(text string) string {
	out, _, ok := redact([]byte(text), v.find(), 16*len(text)+1024)
	if !ok {
		return ""
	}
	return string(out)
}
