package scrub

import (
	"math"
	"strings"
)

const (
	keyMax   = 64
	valueMax = 512
)

// keyKind is what the name of a value says about it.
type keyKind uint8

const (
	keyNone keyKind = iota
	keyPassword
	keyToken
	keyAWS
)

// assignment matches the value in key=value, key: value and "key": "value"; i is
// where the sign stands.
func (sc *scanner) assignment(i int) (match, bool) {
	t := sc.text
	from, to, lineStart := keyBefore(t, i)
	if !telling(t[from:to]) {
		return match{}, false
	}
	kind := kindOfKey(t[from:to])
	if kind == keyNone || i+1 >= len(t) || strings.IndexByte("=:~>", t[i+1]) >= 0 {
		return match{}, false
	}
	j := i + 1
	for j < len(t) && (t[j] == ' ' || t[j] == '\t') && j < i+9 {
		j++
	}
	spaced := j > i+1 || i > 0 && t[i-1] == ' '
	a, b, quoted := value(t, j)
	v := t[a:b]
	if !secretValue(v, kind, quoted, !spaced && (lineStart || t[i] == '='), t[from:to]) {
		return match{}, false
	}
	if !quoted && b < len(t) && strings.IndexByte("([{", t[b]) >= 0 {
		return match{}, false
	}
	if kind == keyAWS {
		return match{a, b, RuleAWSSecret}, true
	}
	return match{a, b, RuleAssignment}, true
}

// keyBefore finds the name that ends before the sign at i, without quotes.
func keyBefore(t string, i int) (from, to int, lineStart bool) {
	to = i
	for n := 0; to > 0 && n < 4 && strings.IndexByte(" \"'\\", t[to-1]) >= 0; n++ {
		to--
	}
	from = to
	for from > 0 && to-from < keyMax && (wordByte(t[from-1]) || t[from-1] == '-' || t[from-1] == '.') {
		from--
	}
	j := from
	for n := 0; j > 0 && n < 40 && (t[j-1] == ' ' || t[j-1] == '\t'); n++ {
		j--
	}
	return from, to, j == 0 || t[j-1] == '\n' || strings.HasSuffix(t[:j], "export")
}

// value finds the value that begins at i, and whether it is quoted. JSON within a
// string, \"value\", counts as quoted.
func value(t string, i int) (from, to int, quoted bool) {
	if i >= len(t) {
		return i, i, false
	}
	escaped := t[i] == '\\' && i+1 < len(t) && t[i+1] == '"'
	if escaped {
		i++
	}
	q := t[i]
	if q == '"' || q == '\'' || q == '`' {
		for j := i + 1; j < len(t) && j < i+valueMax; j++ {
			switch {
			case t[j] == '\n':
				return i, i, true
			case t[j] == '\\' && escaped && j+1 < len(t) && t[j+1] == q:
				return i + 1, j, true
			case t[j] == '\\':
				j++
			case t[j] == q:
				return i + 1, j, true
			}
		}
		return i, i, true
	}
	j := i
	for j < len(t) && j < i+valueMax && t[j] > ' ' && strings.IndexByte("\"'`,;&|<>(){}[]\\", t[j]) < 0 {
		j++
	}
	return i, j, false
}

// telling reports whether a name ends like one that kindOfKey knows. Most names do not.
func telling(key string) bool {
	key = strings.TrimRight(key, "_-.") // as split does
	if key == "" {
		return false
	}
	switch key[len(key)-1] | 0x20 {
	case 'd':
		return ends(key, "password") || ends(key, "passwd") || ends(key, "pwd")
	case 'e':
		return ends(key, "passphrase")
	case 's':
		return ends(key, "pass")
	case 't':
		return ends(key, "secret")
	case 'y':
		return ends(key, "key")
	case 'n':
		return ends(key, "token")
	case 'l':
		return ends(key, "credential")
	}
	return false
}

func ends(key, end string) bool {
	return len(key) >= len(end) && strings.EqualFold(key[len(key)-len(end):], end)
}

// kindOfKey reads a name such as DB_PASSWORD, apiKey or client-secret.
func kindOfKey(key string) keyKind {
	words := split(key)
	if len(words) == 0 {
		return keyNone
	}
	last := words[len(words)-1]
	prev := ""
	if len(words) > 1 {
		prev = words[len(words)-2]
	}
	switch last {
	case "password", "passwd", "pwd", "passphrase", "pass":
		return keyPassword
	case "secret", "apikey", "accountkey", "secretkey", "authtoken", "credential":
		return keyToken
	case "token":
		switch prev {
		case "next", "page", "continuation", "cancel", "cancellation", "sync", "unk", "pad", "eos", "bos", "special", "stop", "max", "idempotency", "sep":
			return keyNone
		}
		return keyToken
	case "key":
		switch prev {
		case "api", "secret", "private", "encryption", "signing", "account", "auth", "master", "shared", "webhook":
			return keyToken
		case "access":
			for _, w := range words {
				if w == "secret" {
					return keyAWS
				}
			}
			return keyToken
		}
	}
	return keyNone
}

// split cuts a name at _ - . and at inner capitals, in lower case.
func split(key string) []string {
	var words []string
	start := 0
	flush := func(end int) {
		if end > start {
			words = append(words, fold(key[start:end]))
		}
	}
	for i := range len(key) {
		c := key[i]
		switch {
		case c == '_' || c == '-' || c == '.':
			flush(i)
			start = i + 1
		case c >= 'A' && c <= 'Z' && i > start && key[i-1] >= 'a' && key[i-1] <= 'z':
			flush(i)
			start = i
		}
	}
	flush(len(key))
	return words
}

// secretValue reports whether a value under a telling name is a credential: long
// enough, no placeholder, no code, no prose. tight is key=value without spaces,
// where even a plain word counts as a password.
func secretValue(v string, kind keyKind, quoted, tight bool, key string) bool {
	if len(v) < 4 || kind != keyPassword && len(v) < 8 || placeholder(v) || strings.ContainsAny(v, " \t") || strings.Contains(v, "[REDACTED") {
		return false
	}
	if v[0] == '/' || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "../") || strings.Contains(v, "://") || fold(v) == fold(key) {
		return false
	}
	if kind == keyAWS {
		return len(v) >= 30
	}
	digit, symbol, name := look(v)
	switch {
	case quoted && kind == keyPassword:
		return !typeWord(v)
	case quoted:
		return !typeWord(v) && (digit || symbol || len(v) >= 16) && (entropy(v) >= 2.5) && !(name && !digit)
	case name && !digit:
		// A bare word: a variable, a type, a field. A shell assignment in capitals
		// is the exception.
		return tight && kind == keyPassword && fold(key) != key && strings.IndexByte(v, '.') < 0 && fold(v) == v && !typeWord(v) && len(v) >= 6
	case kind == keyPassword:
		return digit || symbol
	}
	return digit && entropy(v) >= 2.8 && !dotted(v)
}

// look reports digits, symbols that names do not have, and whether v could be an
// identifier or a path of identifiers in code.
func look(v string) (digit, symbol, name bool) {
	name = v[0] < '0' || v[0] > '9'
	for i := range len(v) {
		c := v[i]
		switch {
		case c >= '0' && c <= '9':
			digit = true
		case c >= 0x80 || wordByte(c) || c == '.' || c == '-' && i > 0:
		default:
			symbol = true
			name = false
		}
	}
	return digit, symbol, name
}

// dotted reports a path of identifiers such as cfg.Auth2.Token.
func dotted(v string) bool {
	n := strings.IndexByte(v, '.')
	return n > 0 && n < len(v)-1 && v[0] > '9' && len(v) < 60 && entropy(v) < 4
}

// placeholder reports values that refer to a credential and are none.
func placeholder(v string) bool {
	l := fold(strings.Trim(v, "\"' "))
	if l == "" || strings.ContainsAny(l, "<>{}$%*…") && (l[0] == '<' || l[0] == '{' || l[0] == '$' || l[0] == '%' || l[0] == '*' || strings.Contains(l, "${") || strings.Contains(l, "***") || strings.Contains(l, "}}")) {
		return true
	}
	for _, p := range []string{"xxxx", "changeme", "change_me", "change-me", "placeholder", "redacted", "example", "your_", "your-", "yourpassword", "insert_", "dummy", "replace_me", "replaceme", "not-a-real", "...", "todo"} {
		if strings.Contains(l, p) {
			return true
		}
	}
	switch l {
	case "password", "secret", "token", "passwd", "test", "testing", "foo", "bar", "foobar", "none", "null", "nil", "true", "false", "undefined", "required", "optional", "hidden", "masked", "user", "pass", "pwd", "xxx", "key":
		return true
	}
	for i := range len(l) {
		if l[i] != l[0] {
			return false
		}
	}
	return true
}

// typeWord reports words of type declarations and forms.
func typeWord(v string) bool {
	switch fold(v) {
	case "string", "str", "text", "bytes", "boolean", "bool", "number", "integer", "int", "float", "any", "object", "array", "varchar",
		"char", "secretstr", "self", "this", "input", "prompt", "request", "props", "config", "settings", "env", "args", "data", "value", "type",
		"field", "invalid", "missing", "incorrect", "changed", "expired", "updated", "reset", "disabled", "enabled", "default", "unset", "empty", "options":
		return true
	}
	return false
}

// entropy is bits per byte of v, over what it holds itself.
func entropy(v string) float64 {
	var count [256]int
	for i := range len(v) {
		count[v[i]]++
	}
	e := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(v))
			e -= p * math.Log2(p)
		}
	}
	return e
}
