package scrub

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Where next does not stop, there is nothing to find: all rules, in all neighbourhoods.
func TestNext(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	parts := []string{
		"-----BEGIN RSA PRIVATE KEY-----", "-----END ", "eyJ", ".ey", "hooks.slack.com/services/T", "://", "@", ": ", "=", "\"", "'", "\\\"", " ", "\n", "/", "+",
		"_", "-", ".", "Authorization", "X-API-Key", "PROXY-authorization", "password", "API_KEY", "aws_secret_access_key", "nextToken", "sesame", "é",
	}
	for _, s := range shapes {
		parts = append(parts, s.prefix)
	}
	s := New(Config{Words: []string{"sesame"}})
	const letters = "a8Kd03mZpQ7sTr1VxYb5NcW2eLfG4hJ6uR9tABCDEF0123"
	seen := map[string]int{}
	for range 50_000 {
		var b strings.Builder
		for range 1 + r.IntN(10) {
			b.WriteString(parts[r.IntN(len(parts))])
			from := r.IntN(len(letters))
			b.WriteString(strings.Repeat(letters, 3)[from : from+r.IntN(45)*r.IntN(2)])
		}
		text := b.String()
		skips, looks := scanner{s: s, text: text, pemEnd: -1}, scanner{s: s, text: text, pemEnd: -1}
		next := skips.next(0)
		for i := range len(text) {
			m, found := looks.at(i)
			if found {
				seen[m.rule]++
			}
			if i < next {
				if found {
					t.Fatalf("%s at %d is passed in %q", m.rule, i, text)
				}
				continue
			}
			if got, ok := skips.at(i); got != m || ok != found {
				t.Fatalf("at %d is %v, want %v in %q", i, got, m, text)
			}
			next = skips.next(i + 1)
		}
	}
	for _, rule := range Rules() {
		if seen[rule] == 0 {
			t.Errorf("no text has a credential of %s", rule)
		}
	}
}
