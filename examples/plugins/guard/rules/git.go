package rules

import (
	"strings"

	"github.com/mortise-dev/mortise/examples/plugins/guard/shell"
)

// git judges a git command: a forced push to a protected branch, a hard reset.
func (j *Judge) git(args []string) string {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		n := 1
		if args[0] == "-C" || args[0] == "-c" || args[0] == "--git-dir" || args[0] == "--work-tree" {
			n = 2
		}
		args = args[min(n, len(args)):]
	}
	if len(args) == 0 {
		return ""
	}
	switch args[0] {
	case "push":
		if j.forced(args[1:]) {
			return RuleForcePush
		}
	case "reset":
		if contains(args, "--hard") {
			return RuleReset
		}
	}
	return ""
}

// forced reports a push that rewrites or deletes a protected branch. A forced push
// that names no branch may be one, and counts. --force-with-lease counts too.
func (j *Judge) forced(args []string) bool {
	force := has(args, "f", "") || contains(args, "--mirror")
	del := has(args, "d", "--delete")
	var names []string
	for _, a := range args {
		switch {
		case strings.HasPrefix(a, "--force"):
			force = true
		case !strings.HasPrefix(a, "-"):
			names = append(names, a)
		}
	}
	if len(names) < 2 {
		return force
	}
	for _, ref := range names[1:] {
		plus := strings.HasPrefix(ref, "+")
		ref = strings.TrimPrefix(ref, "+")
		src, dst, ok := strings.Cut(ref, ":")
		if !ok {
			dst = src
		}
		dst = strings.TrimPrefix(dst, "refs/heads/")
		if (force || plus || del || ok && src == "") && (j.branches[dst] || dst == "HEAD") {
			return true
		}
	}
	return false
}

// leaks reports credentials that a network program is given: by a pipe, a
// substitution, a file argument or a redirection.
func (j *Judge) leaks(s *shell.Script, c *shell.Command, w []string) bool {
	upload := base(w[0]) != "curl" && base(w[0]) != "wget" && base(w[0]) != "ssh"
	for i, a := range w[1:] {
		flag := w[i]
		if credentialFile(strings.TrimLeft(a, "@")) && (upload && flag != "-i" && !strings.HasPrefix(a, "-") || strings.HasPrefix(a, "@") || flag == "-T" || flag == "--upload-file") {
			return true
		}
		if n := strings.Index(a, "@"); n >= 0 && credentialFile(a[n+1:]) {
			return true
		}
	}
	for _, r := range c.Redirects {
		if r.Op == "<" && credentialFile(r.Target) {
			return true
		}
	}
	for i := range s.Commands {
		o := &s.Commands[i]
		inner := false
		for _, p := range c.Procs {
			inner = inner || o.Pipe >= p[0] && o.Pipe < p[1]
		}
		if (inner || o.Pipe == c.Pipe && o.Stage < c.Stage) && readsSecrets(unwrap(o.Words), len(o.Words) > 0) {
			return true
		}
	}
	return false
}

// readsSecrets reports commands that print credentials. env without a command
// prints the environment.
func readsSecrets(w []string, wrapped bool) bool {
	if len(w) == 0 {
		return wrapped
	}
	switch base(w[0]) {
	case "printenv", "history":
		return true
	case "export", "set":
		return len(w) == 1
	case "gpg":
		return contains(w, "--export-secret-keys")
	}
	for _, a := range w[1:] {
		if credentialFile(a) {
			return true
		}
	}
	return false
}

// credentialFile reports paths of keys, tokens and histories.
func credentialFile(p string) bool {
	if strings.HasSuffix(p, ".pub") || strings.HasSuffix(p, ".example") {
		return false
	}
	for _, s := range []string{
		".ssh/id_", ".ssh/*", ".aws/credentials", ".netrc", ".npmrc", ".pypirc", ".docker/config.json", ".kube/config",
		".gnupg/", ".git-credentials", "_history", "/etc/shadow", "/proc/self/environ", ".config/gh/hosts", "gcloud/credentials",
		"application_default_credentials",
	} {
		if strings.Contains(p, s) {
			return true
		}
	}
	b := base(p)
	return b == ".env" || strings.HasPrefix(b, ".env.") || b == ".ssh" || b == "id_rsa" || b == "id_ed25519"
}

// bomb reports name() { name | name & }.
func bomb(s *shell.Script) bool {
	defs := map[string]bool{}
	for i := range s.Commands {
		w := s.Commands[i].Words
		if len(w) == 0 {
			continue
		}
		if n, ok := strings.CutSuffix(w[0], "()"); ok && n != "" {
			defs[n] = true
			continue
		}
		if w[0] == "function" && len(w) > 1 {
			defs[strings.TrimSuffix(w[1], "()")] = true
			continue
		}
		if !defs[w[0]] || s.Commands[i].Stage == 0 {
			continue
		}
		for k := range i {
			o := &s.Commands[k]
			if o.Pipe == s.Commands[i].Pipe && len(o.Words) > 0 && o.Words[0] == w[0] {
				return true
			}
		}
	}
	return false
}
