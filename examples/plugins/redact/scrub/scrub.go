package scrub

import (
	"slices"
	"strings"
)

// Rule identifiers. They name the placeholder and the counters.
const (
	RulePrivateKey    = "private_key"
	RuleAWSKey        = "aws_access_key"
	RuleAWSSecret     = "aws_secret_key"
	RuleGitHub        = "github_token"
	RuleGitLab        = "gitlab_token"
	RuleSlack         = "slack_token"
	RuleStripe        = "stripe_key"
	RuleGoogle        = "google_api_key"
	RuleOpenAI        = "openai_key"
	RuleAnthropic     = "anthropic_key"
	RuleNPM           = "npm_token"
	RulePyPI          = "pypi_token"
	RuleHuggingFace   = "huggingface_token"
	RuleJWT           = "jwt"
	RuleAuthorization = "authorization"
	RuleURLPassword   = "url_password"
	RuleAssignment    = "assignment"
	RuleWord          = "word"
)

// Rules returns the identifiers of all rules.
func Rules() []string {
	return []string{
		RulePrivateKey, RuleAWSKey, RuleAWSSecret, RuleGitHub, RuleGitLab, RuleSlack, RuleStripe, RuleGoogle,
		RuleOpenAI, RuleAnthropic, RuleNPM, RulePyPI, RuleHuggingFace, RuleJWT, RuleAuthorization,
		RuleURLPassword, RuleAssignment, RuleWord,
	}
}

const (
	maxWords   = 200
	minWord    = 4
	maxHeader  = 2048
	awsContext = 200
	minToken   = 9   // no name of a header is shorter, but for the host of a webhook
	maxToken   = 640 // no known token is longer
)

// Config is what an operator may set.
type Config struct {
	// Words are literal secrets to hide, at least 4 bytes each, at most 200.
	Words []string
	// Allow lists values that are never hidden.
	Allow []string
	// Disable lists rules that are off.
	Disable []string
	// Mask replaces a credential; "{rule}" in it is replaced by the rule. The default
	// is "[REDACTED:{rule}]".
	Mask string
}

// Scrubber replaces credentials by placeholders.
type Scrubber struct {
	words map[byte][]string // by first byte
	class *[256]uint8       // as in tables; words have their own
	allow map[string]bool
	off   map[string]bool
	mask  string
}

// New takes a config. Words that are too short, and those beyond the limit, are
// left out: hiding every "a" would destroy the text.
func New(c Config) *Scrubber {
	s := &Scrubber{class: &bytewise.class, allow: map[string]bool{}, off: map[string]bool{}, mask: c.Mask}
	if s.mask == "" {
		s.mask = "[REDACTED:{rule}]"
	}
	for _, a := range c.Allow {
		s.allow[a] = true
	}
	for _, d := range c.Disable {
		s.off[d] = true
	}
	if len(c.Words) > 0 {
		class := bytewise.class
		s.words, s.class = map[byte][]string{}, &class
	}
	for i, w := range c.Words {
		if len(w) >= minWord && len(w) <= 4096 && i < maxWords {
			s.words[w[0]] = append(s.words[w[0]], w)
			s.class[w[0]] |= classSign
		}
	}
	return s
}

// match is a stretch of text to hide.
type match struct {
	from, to int
	rule     string
}

// Text returns s without credentials and counts what it hid by rule. Without
// any, it returns s itself.
func (s *Scrubber) Text(text string, counts map[string]int) string {
	sc := scanner{s: s, text: text, pemEnd: -1}
	var out []byte
	done := 0
	for i := sc.next(0); i < len(text); i = sc.next(i) {
		m, ok := sc.at(i)
		if !ok || s.off[m.rule] || m.from < done || s.allow[text[m.from:m.to]] {
			i++
			continue
		}
		out = append(out, text[done:m.from]...)
		out = append(out, strings.ReplaceAll(s.mask, "{rule}", m.rule)...)
		counts[m.rule]++
		done = m.to
		i = m.to
	}
	if done == 0 {
		return text
	}
	return string(append(out, text[done:]...))
}

// scanner walks one text. Its fields remember the ends of runs, so that no run is
// measured twice.
type scanner struct {
	s      *Scrubber
	text   string
	run    int // end of the token run that was measured last
	runAt  int // where that run was entered
	pemEnd int // next end marker of a key block; len(text) when there is none
	awsEnd int // up to here, an AWS access key has been seen near by
}

// What may begin with a byte. Most bytes of a text begin nothing, and next passes them in a short loop: calls and
// branches are what a guest spends most of its time on.
const (
	classSign  uint8 = 1 << iota // a configured word, or the sign after the name of a credential
	classBlock                   // a key block, if the next byte fits
	classToken                   // a token or the name of a header, if the next byte fits and a word begins here
	classWord                    // any word
)

// tables are about bytes.
type tables struct {
	// class is what may begin with each, without configured words.
	class [256]uint8
	// after is what may begin after it: usually, and near an AWS access key, where any word may be the secret.
	after, near [256]uint8
	// Two bytes begin a token or a block if first of one and second of the other have a bit in common.
	first, second [256]uint32
}

var bytewise = newTables()

func newTables() (t tables) {
	for i := range t.class {
		t.after[i], t.near[i] = classSign|classBlock|classToken, classSign|classBlock|classToken|classWord
		if wordByte(byte(i)) {
			t.class[i], t.after[i], t.near[i] = classWord, classSign|classBlock, classSign|classBlock
		}
	}
	t.class[':'], t.class['='] = classSign, classSign
	for _, begin := range begins() {
		t.class[begin[0]] |= classToken
		t.begin(begin[0], begin[1])
	}
	t.class['-'] = classBlock
	t.begin('-', '-')
	return t
}

// begin notes two bytes that something begins with. Of first bytes there are at most 32.
func (t *tables) begin(one, two byte) {
	if t.first[one] == 0 {
		used := uint32(0)
		for _, bit := range &t.first {
			used |= bit
		}
		t.first[one] = used + 1
	}
	t.second[two] |= t.first[one]
}

// next is the first place from i on that is worth a look, or the end.
func (sc *scanner) next(i int) int {
	t, class, after := sc.text, sc.s.class, &bytewise.after
	if i < sc.awsEnd {
		after = &bytewise.near
	}
	counts := after[' ']
	if i > 0 {
		counts = after[t[i-1]]
	}
	for ; i < len(t); i++ {
		c := t[i]
		if k := class[c] & counts; k != 0 {
			if k&(classSign|classWord) != 0 || i+1 < len(t) && bytewise.first[c]&bytewise.second[t[i+1]] != 0 {
				break
			}
		}
		counts = after[c]
	}
	return i
}

// at looks for a credential that begins, or whose name ends, at i.
func (sc *scanner) at(i int) (match, bool) {
	t := sc.text
	c := t[i]
	for _, w := range sc.s.words[c] {
		if strings.HasPrefix(t[i:], w) {
			return match{i, i + len(w), RuleWord}, true
		}
	}
	switch c {
	case '-':
		if strings.HasPrefix(t[i:], "-----BEGIN ") {
			return sc.pem(i)
		}
	case ':', '=':
		if strings.HasPrefix(t[i:], "://") {
			return sc.userinfo(i + 3)
		}
		return sc.assignment(i)
	}
	if !wordByte(c) || i > 0 && (wordByte(t[i-1]) || inBase64(t, i)) {
		return match{}, false
	}
	return sc.token(i)
}

// inBase64 reports a position inside a longer run of base64, where a prefix is a
// coincidence.
func inBase64(t string, i int) bool {
	if i < 2 || t[i-1] != '+' && t[i-1] != '/' {
		return false
	}
	n := 0
	for j := i - 2; j >= 0 && n < 24 && (alnum(t[j]) || t[j] == '+'); j-- {
		n++
	}
	return n >= 24
}

// token looks for a credential known by its prefix.
func (sc *scanner) token(i int) (match, bool) {
	end := sc.runEnd(i)
	if end-i < minToken && i >= sc.awsEnd && sc.text[i] != 'h' {
		return match{}, false
	}
	if m, ok := sc.jwt(i, end); ok {
		return m, true
	}
	w := sc.text[i:min(end, i+maxToken)]
	if rule, n := known(w); n > 0 {
		if rule == RuleAWSKey {
			sc.awsEnd = end + awsContext
		}
		return match{i, i + n, rule}, true
	}
	if i < sc.awsEnd && awsSecret(sc.text, i) {
		return match{i, i + 40, RuleAWSSecret}, true
	}
	if len(w) <= 20 && slices.Contains(headers(), fold(w)) {
		return sc.authorization(end)
	}
	if slackHook(sc.text[i:min(len(sc.text), i+160)]) {
		from := i + len("hooks.slack.com/services/")
		return match{from, sc.runEndPath(from), RuleSlack}, true
	}
	return match{}, false
}

// runEnd is the end of the run of token bytes at i.
func (sc *scanner) runEnd(i int) int {
	if i >= sc.runAt && i < sc.run {
		return sc.run
	}
	j := i
	for j < len(sc.text) && (wordByte(sc.text[j]) || sc.text[j] == '-') {
		j++
	}
	sc.runAt, sc.run = i, j
	return j
}

func (sc *scanner) runEndPath(i int) int {
	j := i
	for j < len(sc.text) && j < i+120 && (wordByte(sc.text[j]) || sc.text[j] == '/') {
		j++
	}
	return j
}

func slackHook(s string) bool {
	rest, ok := strings.CutPrefix(s, "hooks.slack.com/services/")
	return ok && len(rest) > 30 && rest[0] == 'T'
}

// jwt matches three base64url segments, the first of which is a JSON object.
func (sc *scanner) jwt(i, end int) (match, bool) {
	t := sc.text
	if end-i < 10 || !strings.HasPrefix(t[i:], "eyJ") || end >= len(t) || t[end] != '.' || !strings.HasPrefix(t[end+1:], "ey") {
		return match{}, false
	}
	second := sc.runEnd(end + 1)
	if second-end < 10 || second >= len(t) || t[second] != '.' {
		return match{}, false
	}
	third := sc.runEnd(second + 1)
	if third-second < 10 {
		return match{}, false
	}
	return match{i, third, RuleJWT}, true
}

// pem matches a private key block, or what is left of one that is cut off.
func (sc *scanner) pem(i int) (match, bool) {
	t := sc.text
	head := t[i:min(len(t), i+80)]
	n := strings.Index(head, "PRIVATE KEY")
	if n < 0 || strings.Trim(head[len("-----BEGIN "):n], "ABCDEFGHIJKLMNOPQRSTUVWXYZ ") != "" {
		return match{}, false
	}
	if sc.pemEnd < i {
		sc.pemEnd = len(t)
		if e := strings.Index(t[i:], "-----END "); e >= 0 {
			sc.pemEnd = i + e
		}
	}
	start := i + n
	if sc.pemEnd < len(t) && sc.pemEnd-i <= 32<<10 && !strings.Contains(t[start:sc.pemEnd], "-----BEGIN ") {
		end := sc.pemEnd + len("-----END ")
		tail := t[end:min(len(t), end+60)]
		if k := strings.Index(tail, "-----"); k >= 0 {
			return match{i, end + k + 5, RulePrivateKey}, true
		}
		return match{i, end, RulePrivateKey}, true
	}
	return sc.cutKey(i, start+len("PRIVATE KEY"))
}

// cutKey takes the base64 lines after a header that has no end marker.
func (sc *scanner) cutKey(from, i int) (match, bool) {
	t := sc.text
	for i < len(t) && (alnum(t[i]) || strings.IndexByte("+/=\n\r\\- \"", t[i]) >= 0) {
		if strings.HasPrefix(t[i:], "-----BEGIN") {
			break
		}
		i++
	}
	if i-from < 80 {
		return match{}, false
	}
	return match{from, i, RulePrivateKey}, true
}

func wordByte(c byte) bool { return alnum(c) || c == '_' }

func alnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
