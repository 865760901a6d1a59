package scrub_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/examples/plugins/redact/scrub"
)

// tok builds a made-up token, so that no scanner takes this file for a leak.
func tok(prefix string, n int) string {
	const abc = "a8Kd03mZpQ7sTr1VxYb5NcW2eLfG4hJ6uR9t"
	return prefix + strings.Repeat(abc, n/len(abc)+1)[:n]
}

func pem(kind string) string {
	return "-----BEGIN " + kind + "PRIVATE KEY-----\n" + strings.Repeat(tok("", 64)+"\n", 6) + "-----END " + kind + "PRIVATE KEY-----"
}

func TestHides(t *testing.T) {
	t.Parallel()
	aws := tok("AKIA", 16)
	aws = strings.ToUpper(aws)
	for name, tc := range map[string]struct{ text, secret, rule string }{
		"pem":                 {"cat id_rsa\n" + pem("RSA ") + "\n$", tok("", 64), scrub.RulePrivateKey},
		"openssh":             {pem("OPENSSH "), tok("", 64), scrub.RulePrivateKey},
		"pem cut off":         {"-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(tok("", 64)+"\n", 3), tok("", 64), scrub.RulePrivateKey},
		"pem in json":         {`{"private_key": "-----BEGIN PRIVATE KEY-----\n` + tok("", 64) + `\n-----END PRIVATE KEY-----\n"}`, tok("", 64), scrub.RulePrivateKey},
		"aws id":              {"id " + aws + " ok", aws, scrub.RuleAWSKey},
		"aws secret":          {"aws_secret_access_key = " + tok("", 40), tok("", 40), scrub.RuleAWSSecret},
		"aws secret by place": {aws + "," + tok("", 40) + "\n", tok("", 40), scrub.RuleAWSSecret},
		"github":              {"token " + tok("ghp_", 36) + ".", tok("ghp_", 36), scrub.RuleGitHub},
		"github fine":         {tok("github_pat_", 82), tok("github_pat_", 82), scrub.RuleGitHub},
		"gitlab":              {"glpat " + tok("glpat-", 20), tok("glpat-", 20), scrub.RuleGitLab},
		"slack":               {tok("xoxb-123456789012-", 24), tok("xoxb-123456789012-", 24), scrub.RuleSlack},
		"slack hook":          {"https://hooks.slack.com/services/T0AAAA111/B0BBBB222/" + tok("", 24), tok("", 24), scrub.RuleSlack},
		"stripe":              {tok("sk_live_", 24), tok("sk_live_", 24), scrub.RuleStripe},
		"google":              {tok("AIza", 35), tok("AIza", 35), scrub.RuleGoogle},
		"openai":              {tok("sk-proj-", 48), tok("sk-proj-", 48), scrub.RuleOpenAI},
		"openai old":          {tok("sk-", 48), tok("sk-", 48), scrub.RuleOpenAI},
		"anthropic":           {tok("sk-ant-api03-", 93), tok("sk-ant-api03-", 93), scrub.RuleAnthropic},
		"npm":                 {"//registry.npmjs.org/:_authToken=" + tok("npm_", 36), tok("npm_", 36), ""},
		"pypi":                {tok("pypi-", 60), tok("pypi-", 60), scrub.RulePyPI},
		"hf":                  {tok("hf_", 34), tok("hf_", 34), scrub.RuleHuggingFace},
		"jwt":                 {"set eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + tok("", 43), tok("", 43), scrub.RuleJWT},
		"bearer":              {"> Authorization: Bearer " + tok("", 30) + "\r\n", tok("", 30), scrub.RuleAuthorization},
		"basic":               {`-H "authorization: Basic dXNlcjpodW50ZXIyMg=="`, "dXNlcjpodW50ZXIyMg==", scrub.RuleAuthorization},
		"api header":          {"X-Api-Key: " + tok("", 32), tok("", 32), scrub.RuleAuthorization},
		"url":                 {"DATABASE_URL=postgres://app:s3cr3tpw@db:5432/x", "s3cr3tpw", scrub.RuleURLPassword},
		"url at sign":         {"mongodb+srv://root:p@ssw0rd@cluster0.mongodb.net", "p@ssw0rd", scrub.RuleURLPassword},
		"redis":               {"redis://:hunter2hunter2@cache:6379", "hunter2hunter2", scrub.RuleURLPassword},
		"env":                 {"PORT=1\nDB_PASSWORD=correcthorse\nX=1", "correcthorse", scrub.RuleAssignment},
		"env export":          {"export API_KEY=" + tok("", 24), tok("", 24), scrub.RuleAssignment},
		"yaml":                {"db:\n  password: hunter2!\n", "hunter2!", scrub.RuleAssignment},
		"json":                {`{"client_secret": "` + tok("", 32) + `"}`, tok("", 32), scrub.RuleAssignment},
		"json in json":        {`{"body":"{\"password\":\"hunter22\"}"}`, "hunter22", scrub.RuleAssignment},
		"toml":                {`secret_key = "` + tok("", 32) + `"`, tok("", 32), scrub.RuleAssignment},
		"camel":               {`apiKey: '` + tok("", 28) + `',`, tok("", 28), scrub.RuleAssignment},
		"connection":          {"Server=db;User Id=sa;Password=Str0ng!Pass;Encrypt=true", "Str0ng!Pass", scrub.RuleAssignment},
		"azure":               {"AccountName=x;AccountKey=" + tok("", 86) + "==;", tok("", 86), scrub.RuleAssignment},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counts := map[string]int{}
			got := scrub.New(scrub.Config{}).Text(tc.text, counts)
			if strings.Contains(got, tc.secret) || !strings.Contains(got, "[REDACTED:") {
				t.Errorf("kept: %q", got)
			}
			if tc.rule != "" && counts[tc.rule] == 0 {
				t.Errorf("rule %s not counted: %v", tc.rule, counts)
			}
			again := scrub.New(scrub.Config{}).Text(got, map[string]int{})
			if again != got {
				t.Errorf("a second pass changes %q to %q", got, again)
			}
		})
	}
}

func TestKeeps(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"git log":      "commit 3f786850e387550fdab836ed7e6dc881de23001b\nAuthor: A <a@example.org>\n\n    token: parse twice\n",
		"uuid":         "id: 123e4567-e89b-12d3-a456-426614174000",
		"lock":         `"integrity": "sha512-` + tok("", 86) + `==",` + "\n" + `"resolved": "https://registry.npmjs.org/a/-/a-1.0.0.tgz"`,
		"go.sum":       "github.com/a/b v1.0.0 h1:" + tok("", 43) + "=",
		"data uri":     "data:image/png;base64," + tok("iVBORw0KGgo", 300) + "/sk-" + tok("", 60) + "==",
		"digest":       "image@sha256:" + strings.Repeat("0a1b2c3d", 8),
		"minified":     `function a(t,e){var n=t.token;return e.password=n.value,{secret:t.secret,apiKey:e.apiKey||null}}`,
		"env lookups":  "password = os.environ[\"DB_PASSWORD\"]\ntoken = get_token()\nsecret: ${SECRET}\napi_key=$API_KEY\npassword: {{ vault.pw }}",
		"placeholders": "password=changeme\nAPI_KEY=<your-key>\ntoken: xxxxxxxxxxxx\nsecret: \"your_secret_here\"\nPASSWORD=********",
		"types":        "interface A { password: string; token: CancellationToken; apiKey?: string }\ntype B struct { Password string `json:\"password\"` }",
		"python":       "def login(self, password: str, token=None): self.password = password\n    self.api_key = config.api_key",
		"go":           "cfg.Token = opts.Token\nif password == \"\" { return errNoPassword }\nsecret := makeSecret(n)",
		"counts":       "max_tokens: 4096, tokens=12345678, token_count: 99999999, next_page_token: abcdefgh12345678",
		"prose":        "The password: it must be long. Token: see the docs. Set password to something.",
		"urls":         "https://example.org:8080/a@b http://[::1]:80/ ssh://git@github.com/x git@github.com:a/b.git https://user:${PW}@host/",
		"public key":   "-----BEGIN PUBLIC KEY-----\n" + tok("", 64) + "\n-----END PUBLIC KEY-----\nssh-ed25519 " + tok("AAAA", 64),
		"css":          ".sk-loading-indicator-with-a-very-long-class-name-here { color: #ff00aa }",
		"file":         "password_file: /run/secrets/db\nsecret: /run/secrets/x\nsecretName: my-secret-1",
		"message":      `{"error":"invalid password","password":"required"}`,
		"header code":  `req.Header.Set("Authorization", "Bearer "+token) // Authorization: Bearer <token>`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counts := map[string]int{}
			if got := scrub.New(scrub.Config{}).Text(text, counts); got != text {
				t.Errorf("changed %v:\n%s\n%s", counts, text, got)
			}
		})
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	secret := tok("ghp_", 36)
	for name, tc := range map[string]struct {
		cfg        scrub.Config
		text, want string
	}{
		"word":    {scrub.Config{Words: []string{"Project Heron", "a"}}, "on Project Heron, a b", "on [REDACTED:word], a b"},
		"allow":   {scrub.Config{Allow: []string{secret}}, secret, secret},
		"disable": {scrub.Config{Disable: []string{scrub.RuleGitHub}}, secret, secret},
		"mask":    {scrub.Config{Mask: "<{rule}>"}, secret, "<github_token>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := scrub.New(tc.cfg).Text(tc.text, map[string]int{}); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestHostile gives text that makes careless scanners slow: 1 MB each.
func TestHostile(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"-----BEGIN PRIVATE KEY-----", "eyJ.", "eyJaaaaaaa.eyaaaaaaaa", "password=", "://a:", "sk-", "sk-a", "npm_", "\"password\": \"", "AKIA", "authorization: ", "a", "-----END ", "token=\\\""} {
		text := strings.Repeat(part, 1<<20/len(part))
		start := time.Now()
		scrub.New(scrub.Config{}).Text(text, map[string]int{})
		if d := time.Since(start); d > 10*time.Second { // a careless one takes minutes
			t.Errorf("%q: %s", part, d)
		} else {
			t.Logf("%q: %s", part, d)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("password=hunter2 " + pem("RSA ") + "\\\"")
	f.Add("https://a:b@c \"token\": \"")
	f.Add("Authorization: Bearer x")
	f.Fuzz(func(t *testing.T, text string) {
		counts := map[string]int{}
		got := scrub.New(scrub.Config{}).Text(text, counts)
		if (got == text) != (len(counts) == 0) {
			t.Errorf("counts %v, text %q, got %q", counts, text, got)
		}
	})
}
