package egress_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/egress"
)

const (
	token    = "s3cr3t/Tok+en=\"42"
	password = "pass word&<more>"
	// plainToken needs no escapes in a URL.
	plainToken = "abcdefgh12345678"
)

// withSecrets is a broker with a token and a user:password.
func withSecrets(tb testing.TB, change func(c *egress.Config)) *egress.Broker {
	tb.Helper()
	return broker(tb, func(c *egress.Config) {
		c.Secrets = map[string]egress.Secret{
			"token": {Value: secret(token), Hosts: []string{"a.example.com:*", "b.example.com:*"}, Headers: []string{"Authorization", "x-key"}},
			"login": {Value: secret("user:" + password), Hosts: []string{"a.example.com:*"}},
		}
		if change != nil {
			change(c)
		}
	})
}

func bearer() http.Header { return http.Header{"Authorization": {"Bearer {{secret.token}}"}} }

func TestSecretsAreSentAndNotSeen(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []string
	url := serve(t, "https", "a.example.com", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.Header.Get("Authorization")+"|"+r.Header.Get("X-Key"))
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, r.Header.Get("Authorization")+" and "+r.Header.Get("X-Key"))
	})
	b := withSecrets(t, nil)
	resp := get(t, b, egress.Request{URL: url, Header: http.Header{
		"Authorization": {"Bearer {{secret.token}}"}, "X-Key": {"a{{secret.token}}b{{secret.token}}"},
	}})
	if want := "Bearer " + token + "|a" + token + "b" + token; got[0] != want {
		t.Errorf("sent %q, want %q", got[0], want)
	}
	if want := "Bearer {{secret.token}} and a{{secret.token}}b{{secret.token}}"; string(resp.Body) != want {
		t.Errorf("body %q, want %q", resp.Body, want)
	}
	if resp.Header.Get("X-Echo") != "Bearer {{secret.token}}" || resp.Header.Get("Content-Length") != "" {
		t.Errorf("header %v", resp.Header)
	}
	resp = get(t, b, egress.Request{URL: url, Header: http.Header{"Authorization": {"Basic {{basic.login}}"}}})
	if want := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+password)) + "|"; got[1] != want {
		t.Errorf("sent %q, want %q", got[1], want)
	}
	if string(resp.Body) != "Basic {{secret.login}} and " {
		t.Errorf("body %q", resp.Body)
	}
	if n := b.Stats().Redacted; n != 6 {
		t.Errorf("%d pieces were replaced, want 6", n)
	}
}

func TestSecretsThatAreRefused(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	count := func(http.ResponseWriter, *http.Request) { requests.Add(1) }
	a, plain, c := serve(t, "https", "a.example.com", count), serve(t, "http", "a.example.com", count), serve(t, "https", "c.example.com", count)
	value := func(v string) egress.Secret {
		return egress.Secret{Value: secret(v), Hosts: []string{"*.example.com:*"}}
	}
	b := withSecrets(t, func(cfg *egress.Config) {
		cfg.Policy.HeaderBytes = 2000
		cfg.Secrets["short"], cfg.Secrets["long"] = value("1234567"), value(strings.Repeat("x", 5000))
		cfg.Secrets["line"], cfg.Secrets["inject"] = value("hush-hush\n"), value("hush-hush\r\nX-Evil: 1")
		cfg.Secrets["empty"], cfg.Secrets["nocolon"], cfg.Secrets["shortpass"] = value(""), value("hush-hush"), value("username:pass")
		cfg.Secrets["escapes"] = value("%41%42%43")
		cfg.Secrets["broken"] = egress.Secret{
			Value: func(context.Context) (string, error) { return "hush-hush", errors.New("cannot decrypt hush-hush") },
			Hosts: []string{"*.example.com:*"},
		}
	})
	for _, x := range []struct{ url, name, value string }{
		{a, "Authorization", "{{secret.unknown}}"},
		{a, "Authorization", "{{secret.}}"},
		{a, "Authorization", "{{secret.token"},
		{a, "Authorization", "{{secret.to ken}}"},
		{a, "Authorization", "{{secret.{{secret.token}}}}"},
		{a, "X-Other", "{{secret.token}}"},
		{a, "Authorization", "{{basic.token}}"},
		{a, "Authorization", "{{basic.nocolon}}"},
		{a, "Authorization", "{{basic.shortpass}}"},
		{a, "X-Key", "{{basic.login}}"},
		{c, "Authorization", "{{secret.token}}"},
		{plain, "Authorization", "{{secret.token}}"},
		{a, "Authorization", "{{secret.short}}"},
		{a, "Authorization", "{{secret.long}}"},
		{a, "Authorization", "{{secret.empty}}"},
		{a, "Authorization", "{{secret.line}}"},
		{a, "Authorization", "{{secret.escapes}}"},
		{a, "Authorization", "{{secret.inject}}"},
		{a, "Authorization", "{{secret.broken}}"},
	} {
		r := refused(t, b, egress.Request{URL: x.url, Header: http.Header{x.name: {x.value}}}, egress.ReasonSecret)
		hidden(t, r.Error(), "hush", token, "decrypt")
	}
	_ = refused(t, b, egress.Request{URL: a, Header: http.Header{
		"Authorization": {"{{secret.token}}"}, "Range": {"bytes=0-3"},
	}}, egress.ReasonSecret)
	_ = refused(t, b, egress.Request{URL: a, Header: http.Header{
		"X-Key": {strings.Repeat("{{secret.token}}", 122)},
	}}, egress.ReasonHeadersTooLarge)
	if requests.Load() != 0 {
		t.Errorf("%d requests were sent", requests.Load())
	}
}

func TestSecretOverPlainWhereItSaysSo(t *testing.T) {
	t.Parallel()
	url := serve(t, "http", "a.example.com", mirror)
	b := withSecrets(t, func(c *egress.Config) {
		s := c.Secrets["token"]
		s.Plain = true
		c.Secrets["token"] = s
	})
	h := seen(t, get(t, b, egress.Request{URL: url, Header: bearer()}))
	if h.Get("Authorization") != "Bearer {{secret.token}}" {
		t.Errorf("got %v", h)
	}
}

func TestHandlesInBodiesAndValuesStay(t *testing.T) {
	t.Parallel()
	url := serve(t, "https", "a.example.com", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %t", body, r.Header.Get("Authorization") == "{{secret.token}}")
	})
	b := withSecrets(t, func(c *egress.Config) {
		c.Secrets["nested"] = egress.Secret{Value: secret("{{secret.token}}"), Hosts: []string{"a.example.com:*"}}
	})
	resp := get(t, b, egress.Request{
		Method: "POST", URL: url, Header: http.Header{"Authorization": {"{{secret.nested}}"}}, Body: []byte("keep {{secret.token}}"),
	})
	// The value of nested is the text of a handle, which the broker does not fill in
	// again, and which it then finds in the body as that value.
	if string(resp.Body) != "keep {{secret.nested}} true" {
		t.Errorf("got %q", resp.Body)
	}
}

func TestSecretsAndRedirects(t *testing.T) {
	t.Parallel()
	c := serve(t, "https", "c.example.com", mirror)
	b := serve(t, "https", "b.example.com", mirror)
	plain := serve(t, "http", "a.example.com", mirror)
	a := serve(t, "https", "a.example.com", forward)
	for _, x := range []struct {
		to   string
		want string
	}{
		{b, "Bearer {{secret.token}}"}, // its own Hosts allow it
		{c, ""},
		{plain, ""},
	} {
		h := seen(t, get(t, withSecrets(t, nil), egress.Request{URL: a + "/307?to=" + x.to, Header: bearer()}))
		if h.Get("Authorization") != x.want {
			t.Errorf("to %s: %v", x.to, h)
		}
	}
}

// A server that redirects to a URL with the secret in it tells the plugin nothing.
func TestSecretInARedirect(t *testing.T) {
	t.Parallel()
	to := "/end/" + plainToken + "?k=" + plainToken
	a := serve(t, "https", "a.example.com", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/end/"):
			_, _ = io.WriteString(w, r.RequestURI)
		case r.URL.Path == "/refused":
			w.Header().Set("Location", "https://"+plainToken+".test/"+plainToken)
			w.WriteHeader(http.StatusFound)
		default:
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
		}
	})
	for _, redirects := range []int{3, -1} {
		b := withSecrets(t, func(c *egress.Config) {
			c.Policy.Redirects = redirects
			c.Secrets["token"] = egress.Secret{Value: secret(plainToken), Hosts: []string{"a.example.com:*"}}
		})
		resp := get(t, b, egress.Request{URL: a, Header: bearer()})
		hidden(t, fmt.Sprint(resp.URL, resp.Header, string(resp.Body)), plainToken)
		if redirects > 0 {
			r := refused(t, b, egress.Request{URL: a + "/refused", Header: bearer()}, egress.ReasonHost)
			hidden(t, fmt.Sprintf("%s %+v", r.Error(), *r), plainToken)
		}
	}
}

// What was sent once is looked for in every later response.
func TestSecretThatWasStored(t *testing.T) {
	t.Parallel()
	var stored atomic.Value
	a := serve(t, "https", "a.example.com", func(_ http.ResponseWriter, r *http.Request) {
		stored.Store(r.Header.Get("Authorization"))
	})
	c := serve(t, "https", "c.example.com", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, stored.Load().(string)) //nolint:errcheck // a string
	})
	b := withSecrets(t, nil)
	get(t, b, egress.Request{URL: a, Header: bearer()})
	if resp := get(t, b, egress.Request{URL: c}); string(resp.Body) != "Bearer {{secret.token}}" {
		t.Errorf("got %q", resp.Body)
	}
}

// So is what an earlier process, or the broker of an earlier binary, has sent: before
// anything was sent here, in a redirect too.
func TestSecretThatWasStoredBefore(t *testing.T) {
	t.Parallel()
	url := serve(t, "https", "a.example.com", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/redirect" {
			w.Header().Set("Location", "https://c.example.com/"+plainToken)
			w.WriteHeader(http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, "Bearer "+plainToken)
	})
	var reads atomic.Int64
	plain := func(c *egress.Config) {
		s := c.Secrets["token"]
		s.Value = func(context.Context) (string, error) { reads.Add(1); return plainToken, nil }
		c.Secrets["token"] = s
	}
	b := withSecrets(t, plain)
	for range 3 {
		if resp := get(t, b, egress.Request{URL: url}); string(resp.Body) != "Bearer {{secret.token}}" {
			t.Errorf("got %q", resp.Body)
		}
	}
	if reads.Load() != 1 {
		t.Errorf("the secret was read %d times", reads.Load())
	}
	b = withSecrets(t, func(c *egress.Config) { plain(c); c.Policy.Hosts = []string{"a.example.com:*"} })
	r := refused(t, b, egress.Request{URL: url + "/redirect"}, egress.ReasonHost)
	hidden(t, fmt.Sprintf("%s %+v", r.Error(), *r), plainToken)
	failing := withSecrets(t, func(c *egress.Config) {
		plain(c)
		s := c.Secrets["login"]
		s.Value = func(context.Context) (string, error) { return "", errors.New("no file") }
		c.Secrets["login"] = s
	})
	if resp := get(t, failing, egress.Request{URL: url}); string(resp.Body) != "Bearer {{secret.token}}" {
		t.Errorf("with a secret that cannot be read: %q", resp.Body)
	}
}

// A source of secrets that is down holds requests up that need none of them for a moment, not each for as long as it may take, and is
// asked again later.
func TestSecretWhoseSourceIsDown(t *testing.T) {
	t.Parallel()
	url := serve(t, "https", "a.example.com", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "Bearer "+plainToken) })
	var reads atomic.Int64
	var up atomic.Bool
	var c clock
	b := withSecrets(t, func(cfg *egress.Config) {
		cfg.Now = c.now
		s := cfg.Secrets["token"]
		s.Value = func(ctx context.Context) (string, error) {
			reads.Add(1)
			if up.Load() {
				return plainToken, nil
			}
			<-ctx.Done()
			return "", ctx.Err()
		}
		cfg.Secrets["token"] = s
	})
	for range 3 {
		if resp := get(t, b, egress.Request{URL: url}); resp.Status != http.StatusOK {
			t.Errorf("got %d", resp.Status)
		}
	}
	if n := reads.Load(); n != 1 {
		t.Errorf("it was asked %d times for three responses at one moment", n)
	}
	up.Store(true)
	c.move(time.Minute)
	if resp := get(t, b, egress.Request{URL: url}); string(resp.Body) != "Bearer {{secret.token}}" {
		t.Errorf("once it is up: %q", resp.Body)
	}
}

// A source that is slower than responses wait is learnt all the same, and a guest whose time is up does not stop that.
func TestSecretWhoseSourceIsSlow(t *testing.T) {
	t.Parallel()
	url := serve(t, "https", "a.example.com", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "Bearer "+plainToken) })
	var reads atomic.Int64
	answer, read := make(chan struct{}), make(chan struct{})
	b := withSecrets(t, func(cfg *egress.Config) {
		s := cfg.Secrets["token"]
		s.Value = func(ctx context.Context) (string, error) {
			defer close(read)
			reads.Add(1)
			select {
			case <-answer:
				return plainToken, nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
		cfg.Secrets["token"] = s
	})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if resp, err := b.Do(ctx, egress.Request{URL: url}); err == nil {
		t.Errorf("got %q of a request whose time was up", resp.Body)
	}
	if resp := get(t, b, egress.Request{URL: url}); resp.Status != http.StatusOK { // waits for two seconds
		t.Errorf("got %d", resp.Status)
	}
	close(answer)
	<-read
	if resp := get(t, b, egress.Request{URL: url}); string(resp.Body) != "Bearer {{secret.token}}" {
		t.Errorf("once it was read: %q", resp.Body)
	}
	if n := reads.Load(); n != 1 {
		t.Errorf("it was read %d times", n)
	}
}

// A source that panics, or ends its goroutine, is one that cannot be read. The operator gets one warning.
func TestSecretWhoseSourceBreaks(t *testing.T) {
	t.Parallel()
	url := serve(t, "https", "a.example.com", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	for name, breaks := range map[string]func(){"panic": func() { panic(plainToken) }, "goexit": runtime.Goexit} {
		var log bytes.Buffer
		b := withSecrets(t, func(cfg *egress.Config) {
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			s := cfg.Secrets["token"]
			s.Value = func(context.Context) (string, error) { breaks(); return plainToken, nil }
			cfg.Secrets["token"] = s
		})
		for range 3 {
			if resp := get(t, b, egress.Request{URL: url}); string(resp.Body) != "hello" {
				t.Errorf("%s: got %q", name, resp.Body)
			}
		}
		if text := log.String(); strings.Count(text, "cannot be read") != 1 || !strings.Contains(text, "secret=token") || strings.Contains(text, plainToken) {
			t.Errorf("%s: the log says %q", name, text)
		}
	}
}

// A stored secret cannot be had in pieces either.
func TestSecretThatWasStoredInPieces(t *testing.T) {
	t.Parallel()
	stored := []byte("Bearer " + token)
	url := serve(t, "https", "a.example.com", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/lies" {
			w.Header().Set("Content-Range", "bytes 0-3/20")
			_, _ = w.Write(stored[:4])
			return
		}
		http.ServeContent(w, r, "stored", time.Time{}, bytes.NewReader(stored))
	})
	b := withSecrets(t, nil)
	for _, pieces := range []string{"bytes=7-10", "bytes=0-9", "bytes=-4", "bytes=0-3,9-12"} {
		_ = refused(t, b, egress.Request{URL: url, Header: http.Header{"Range": {pieces}}}, egress.ReasonSecret)
	}
	_ = refused(t, b, egress.Request{URL: url + "/lies"}, egress.ReasonSecret)
	if resp := get(t, b, egress.Request{URL: url}); string(resp.Body) != "Bearer {{secret.token}}" {
		t.Errorf("got %q", resp.Body)
	}
	without := broker(t, nil)
	if resp := get(t, without, egress.Request{URL: url, Header: http.Header{"Range": {"bytes=0-5"}}}); resp.Status != http.StatusPartialContent || string(resp.Body) != "Bearer" {
		t.Errorf("without secrets: %d, %q", resp.Status, resp.Body)
	}
}

func TestCompressedResponses(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(token))
	_ = z.Close()
	url := serve(t, "https", "a.example.com", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	})
	resp := get(t, broker(t, nil), egress.Request{URL: url})
	if !bytes.Equal(resp.Body, packed.Bytes()) || resp.Header.Get("Content-Encoding") != "gzip" {
		t.Error("a compressed response was touched")
	}
	b := withSecrets(t, nil)
	_ = refused(t, b, egress.Request{URL: url}, egress.ReasonSecret)
	_ = refused(t, b, egress.Request{URL: url, Header: bearer()}, egress.ReasonSecret)
}
