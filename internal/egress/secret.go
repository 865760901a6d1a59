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
	// What looks like an escape counts as the one character that it stands for. It is
	// called once for each call of Do that needs it, and for a first response, to know
	// what to look for; possibly concurrently. It must return when its context ends. The
	// text of its error reaches nobody.
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
	// learning has room for the one that reads what was not sent yet.
	learning chan struct{}

	mu sync.Mutex
	// failed is when a secret could not be read that was not sent yet.
	failed map[string]time.Time
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
		now: time.Now, learning: make(chan struct{}, 1), failed: map[string]time.Time{},
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
	mend := "ask the operator to look at the secret"
	value, err := k.Value(ctx)
	switch {
	case err != nil:
		return "", refuse(ReasonSecret, mend, "the secret %q cannot be read", name)
	case recognisable(value) < leastSecret || len(value) > mostSecret:
		return "", refuse(ReasonSecret, mend, "the secret %q is not between %d and %d bytes long", name, leastSecret, mostSecret)
	case !isFieldValue(value) || strings.TrimSpace(value) != value:
		return "", refuse(ReasonSecret, mend, "the secret %q has a line break, a control character or space around it", name)
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
	v.index = newIndex(all, false)
}

// How long a response waits for secrets that it does not need, and after which time one that
// could not be read is asked for again: a source that is down must not hold up all requests.
const (
	learnTime  = 2 * time.Second
	learnAgain = 5 * time.Second
)

// learn reads the secrets that this broker has not sent yet. Another one may have, in
// a process before this or for a binary before this, and a server may have kept them.
// Responses that come meanwhile wait, so that none is looked through without them. One
// that cannot be read is left for later responses.
func (v *vault) learn(ctx context.Context) {
	if len(v.unknown()) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, learnTime)
	defer cancel()
	select {
	case v.learning <- struct{}{}:
		defer func() { <-v.learning }()
	case <-ctx.Done():
		return
	}
	var reads sync.WaitGroup
	for _, name := range v.unknown() {
		reads.Go(func() {
			value, r := v.secrets[name].value(ctx, name)
			if r == nil {
				v.remember(name, value)
				return
			}
			v.mu.Lock()
			defer v.mu.Unlock()
			v.failed[name] = v.now()
		})
	}
	reads.Wait()
}

// unknown are the secrets of which no value is known, and which may be asked for now.
func (v *vault) unknown() []string {
	now := v.now()
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []string
	for name := range v.secrets {
		failed, before := v.failed[name]
		if len(v.sent[name]) == 0 && (!before || !now.Before(failed.Add(learnAgain))) {
			out = append(out, name)
		}
	}
	return out
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
