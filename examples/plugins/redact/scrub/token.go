package scrub

import "strings"

// shape is a credential that is known by its prefix.
type shape struct {
	rule, prefix string
	min, max     int  // of what follows the prefix
	dash         bool // "-" may be part of it
	mixed        bool // it needs letters and digits
}

// known finds the rule whose prefix and shape w has, and how long the match is.
func known(w string) (rule string, n int) {
	if len(w) < 16 {
		return "", 0
	}
	for i := range shapes {
		s := &shapes[i]
		if s.prefix[0] != w[0] {
			continue
		}
		rest, ok := strings.CutPrefix(w, s.prefix)
		if !ok {
			continue
		}
		k := 0
		for k < len(rest) && (wordByte(rest[k]) || s.dash && rest[k] == '-') {
			k++
		}
		if k < s.min || k > s.max || s.mixed && !mixed(rest[:k]) || placeholder(rest[:k]) {
			continue
		}
		return s.rule, len(s.prefix) + k
	}
	return "", 0
}

// begins lists what two bytes a token or the name of a header may begin with.
func begins() []string {
	list := []string{"ey", "ho"} // a JWT, the host of a webhook
	for _, s := range shapes {
		list = append(list, s.prefix[:2])
	}
	for _, name := range headers() {
		up := strings.ToUpper(name)
		list = append(list, name[:2], up[:2], name[:1]+up[1:2], up[:1]+name[1:2])
	}
	return list
}

// shapes lists the known tokens. Of those with one first byte the more telling prefixes come first.
var shapes = []shape{
	{RuleAWSKey, "AKIA", 16, 16, false, true},
	{RuleAWSKey, "ASIA", 16, 16, false, true},
	{RuleGoogle, "AIza", 35, 35, true, true},
	{RuleGitHub, "ghp_", 36, 255, false, true},
	{RuleGitHub, "gho_", 36, 255, false, true},
	{RuleGitHub, "ghu_", 36, 255, false, true},
	{RuleGitHub, "ghs_", 36, 600, true, true},
	{RuleGitHub, "ghr_", 36, 255, false, true},
	{RuleGitHub, "github_pat_", 36, 255, false, true},
	{RuleGitLab, "glpat-", 20, 300, true, false},
	{RuleGitLab, "gldt-", 20, 300, true, false},
	{RuleGitLab, "glrt-", 20, 300, true, false},
	{RuleGitLab, "glptt-", 20, 300, true, false},
	{RuleSlack, "xoxb-", 20, 255, true, true},
	{RuleSlack, "xoxp-", 20, 255, true, true},
	{RuleSlack, "xoxa-", 20, 255, true, true},
	{RuleSlack, "xoxr-", 20, 255, true, true},
	{RuleSlack, "xoxs-", 20, 255, true, true},
	{RuleSlack, "xoxe-", 20, 300, true, true},
	{RuleSlack, "xapp-", 20, 255, true, true},
	{RuleAnthropic, "sk-ant-", 20, 255, true, true},
	{RuleOpenAI, "sk-proj-", 20, 255, true, true},
	{RuleOpenAI, "sk-svcacct-", 20, 255, true, true},
	{RuleStripe, "sk_live_", 16, 255, false, false},
	{RuleStripe, "sk_test_", 16, 255, false, false},
	{RuleOpenAI, "sk-", 32, 255, false, true},
	{RuleStripe, "rk_live_", 16, 255, false, false},
	{RuleStripe, "rk_test_", 16, 255, false, false},
	{RuleStripe, "whsec_", 24, 255, false, true},
	{RuleNPM, "npm_", 36, 36, false, true},
	{RulePyPI, "pypi-", 50, 400, true, true},
	{RuleHuggingFace, "hf_", 30, 60, false, true},
	{RuleGoogle, "GOCSPX-", 24, 40, true, false},
	{RuleGoogle, "ya29_", 40, 400, true, true},
}

// mixed reports letters together with digits, and no long stretch of one byte.
func mixed(s string) bool {
	letters, digits, run := false, false, 0
	for i := range len(s) {
		letters = letters || s[i] >= 'A' && s[i] != '_'
		digits = digits || s[i] >= '0' && s[i] <= '9'
		if i > 0 && s[i] == s[i-1] {
			run++
		} else {
			run = 0
		}
		if run >= 7 {
			return false
		}
	}
	return letters && digits
}

// awsSecret matches 40 base64 bytes with upper case, lower case and digits, that
// are no hexadecimal digest.
func awsSecret(t string, i int) bool {
	if i+40 > len(t) || i+40 < len(t) && (alnum(t[i+40]) || t[i+40] == '/' || t[i+40] == '+') {
		return false
	}
	upper, lower, digit := false, false, false
	for _, c := range []byte(t[i : i+40]) {
		switch {
		case c >= 'A' && c <= 'Z':
			upper = true
		case c >= 'a' && c <= 'z':
			lower = true
		case c >= '0' && c <= '9':
			digit = true
		case c != '/' && c != '+':
			return false
		}
	}
	return upper && lower && digit
}

// headers are the names of HTTP headers that carry credentials.
func headers() []string {
	return []string{"authorization", "proxy-authorization", "x-api-key", "x-auth-token", "private-token", "x-gitlab-token", "x-vault-token"}
}

// authorization matches the credential of a header whose name ends at i.
func (sc *scanner) authorization(i int) (match, bool) {
	t := sc.text
	i = skip(t, i, "\"' ")
	if i >= len(t) || t[i] != ':' && t[i] != '=' {
		return match{}, false
	}
	i = skip(t, i+1, "\"' ")
	for _, scheme := range []string{"bearer ", "basic ", "token ", "digest ", "apikey ", "negotiate "} {
		if len(t)-i > len(scheme) && fold(t[i:i+len(scheme)]) == scheme {
			i += len(scheme)
			break
		}
	}
	j := i
	for j < len(t) && j < i+maxHeader && (alnum(t[j]) || strings.IndexByte("-._~+/=", t[j]) >= 0) {
		j++
	}
	v := t[i:j]
	if len(v) < 8 || placeholder(v) || j < len(t) && strings.IndexByte("({[<$", t[j]) >= 0 || !hasDigit(v) && len(v) < 20 {
		return match{}, false
	}
	return match{i, j, RuleAuthorization}, true
}

func skip(t string, i int, set string) int {
	for n := 0; i < len(t) && n < 8 && strings.IndexByte(set, t[i]) >= 0; n++ {
		i++
	}
	return i
}

// userinfo matches the password of scheme://user:password@host; i is where the
// authority begins.
func (sc *scanner) userinfo(i int) (match, bool) {
	t := sc.text
	colon, at := -1, -1
	for j := i; j < len(t) && j < i+300; j++ {
		c := t[j]
		if c <= ' ' || c == '"' || c == '\'' || c == '<' || c == '>' || c == '`' || c == '\\' || c == '/' && at < 0 && colon < 0 {
			break
		}
		if c == '/' && at >= 0 || c == '?' && at >= 0 || c == '#' && at >= 0 {
			break
		}
		if c == ':' && colon < 0 && at < 0 {
			colon = j
		}
		if c == '@' && (at < 0 || j-at < 100) {
			at = j
		}
	}
	if colon < 0 || at <= colon+1 {
		return match{}, false
	}
	v := t[colon+1 : at]
	if strings.IndexByte(v, '/') >= 0 && strings.IndexByte(t[i:colon], '.') >= 0 || placeholder(v) {
		return match{}, false
	}
	return match{colon + 1, at, RuleURLPassword}, true
}

func fold(s string) string { return strings.ToLower(s) }

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }
