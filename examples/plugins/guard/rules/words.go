package rules

import "strings"

// unwrap drops what stands before a program's name: sudo, env, nohup and so on,
// with their options.
func unwrap(w []string) []string {
	for range 16 {
		if len(w) == 0 {
			return nil
		}
		takes := ""
		switch base(w[0]) {
		case "sudo", "doas":
			takes = "ugCpThrUD"
		case "env":
			takes = "uCS"
		case "nice", "ionice":
			takes = "ncp"
		case "timeout":
			takes = "ks"
		case "exec":
			takes = "a"
		case "stdbuf":
			takes = "ioe"
		case "command", "nohup", "builtin", "busybox", "time", "setsid", "then", "do":
		default:
			return w
		}
		w = afterOptions(w, takes)
	}
	return w
}

// afterOptions skips a wrapper, its options and their values, assignments, and a
// duration of timeout.
func afterOptions(w []string, takes string) []string {
	timeout := base(w[0]) == "timeout"
	i := 1
	for i < len(w) {
		a := w[i]
		switch {
		case a == "--":
			return w[i+1:]
		case strings.HasPrefix(a, "-") && len(a) > 1:
			if len(a) == 2 && strings.IndexByte(takes, a[1]) >= 0 {
				i++
			}
		case strings.IndexByte(a, '=') > 0 && !strings.HasPrefix(a, "/"):
		case timeout:
			timeout = false
		default:
			return w[i:]
		}
		i++
	}
	return nil
}

func base(s string) string {
	return s[strings.LastIndexByte(s, '/')+1:]
}

func interpreter(name string) bool {
	switch name {
	case "sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "python", "python3", "perl", "ruby", "node", "source", ".", "su":
		return true
	}
	return false
}

func downloader(name string) bool {
	switch name {
	case "curl", "wget", "fetch", "aria2c", "http":
		return true
	}
	return false
}

func network(name string) bool {
	switch name {
	case "curl", "wget", "nc", "ncat", "netcat", "socat", "telnet", "scp", "rsync", "http", "ftp", "sftp", "ssh":
		return true
	}
	return false
}

// builtin applies the rules that look at one command alone.
func builtin(name string, args []string) string {
	switch name {
	case "rm":
		if has(args, "rR", "--recursive") && anyProtected(args) || contains(args, "--no-preserve-root") {
			return RuleDelete
		}
	case "shred", "wipefs":
		if anyDevice(args) {
			return RuleDisk
		}
	case "dd":
		for _, a := range args {
			if strings.HasPrefix(a, "of=") && device(a[3:]) {
				return RuleDisk
			}
		}
	case "tee", "cp":
		if anyDevice(args) {
			return RuleDisk
		}
	case "chmod", "chown", "chgrp":
		if has(args, "R", "--recursive") && anyProtected(args) {
			return RulePerms
		}
	case "shutdown", "reboot", "halt", "poweroff":
		return RulePower
	case "init", "telinit":
		if contains(args, "0") || contains(args, "6") {
			return RulePower
		}
	case "systemctl":
		if contains(args, "poweroff") || contains(args, "reboot") || contains(args, "halt") {
			return RulePower
		}
	case "kill":
		if len(args) > 1 && args[len(args)-1] == "-1" {
			return RuleKillAll
		}
	case "iptables", "ip6tables":
		if has(args, "F", "--flush") {
			return RuleFirewall
		}
	case "nft":
		if len(args) > 1 && args[0] == "flush" {
			return RuleFirewall
		}
	case "ufw":
		if contains(args, "disable") {
			return RuleFirewall
		}
	}
	if name == "mkfs" || strings.HasPrefix(name, "mkfs.") || name == "mkswap" {
		return RuleDisk
	}
	return publish(name, args)
}

func publish(name string, args []string) string {
	if contains(args, "--dry-run") || contains(args, "-n") && name == "cargo" || len(args) == 0 {
		return ""
	}
	first := ""
	for _, a := range args {
		if !strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "+") {
			first = a
			break
		}
	}
	switch name {
	case "npm", "pnpm", "yarn", "cargo", "poetry", "flit", "uv", "bun":
		if first == "publish" || name == "yarn" && first == "npm" && contains(args, "publish") {
			return RulePublish
		}
	case "twine":
		if first == "upload" {
			return RulePublish
		}
	case "gem":
		if first == "push" {
			return RulePublish
		}
	}
	return ""
}

// has reports a short flag, alone or in a bundle such as -rf, or the long one. It
// stops at "--".
func has(args []string, short, long string) bool {
	for _, a := range args {
		switch {
		case a == "--":
			return false
		case a == long, len(long) > 5 && len(a) > 4 && strings.HasPrefix(a, "--") && strings.HasPrefix(long, a):
			return true
		case len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.ContainsAny(a[1:], short):
			return true
		}
	}
	return false
}

func contains(args []string, s string) bool {
	for _, a := range args {
		if a == s {
			return true
		}
	}
	return false
}

func anyProtected(args []string) bool {
	for _, a := range args {
		if (a == "" || a[0] != '-') && protected(a) {
			return true
		}
	}
	return false
}

func anyDevice(args []string) bool {
	for _, a := range args {
		if device(a) {
			return true
		}
	}
	return false
}

// device reports disks. /dev/null and friends are none.
func device(p string) bool {
	rest, ok := strings.CutPrefix(clean(p), "/dev/")
	if !ok {
		return false
	}
	for _, d := range []string{"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "mapper/", "dm-", "md", "loop", "mem", "kmem", "rdisk"} {
		if strings.HasPrefix(rest, d) {
			return true
		}
	}
	return false
}

// protected reports paths whose loss is a disaster: the root, home directories,
// what is above the working directory, and system directories, also with /* at
// the end.
func protected(p string) bool {
	p = clean(p)
	for strings.HasSuffix(p, "/*") || strings.HasSuffix(p, "/.*") || strings.HasSuffix(p, "/.") {
		p = clean(p[:strings.LastIndexByte(p, '/')] + "/")
	}
	switch p {
	case "/", "", "~", "$HOME", "${HOME}", "..", ".", "*", ".*", "$PWD", "${PWD}":
		return p != ""
	}
	if strings.HasPrefix(p, "~") && !strings.Contains(p, "/") {
		return true
	}
	if strings.Trim(p, "./") == "" {
		return true
	}
	if strings.HasPrefix(p, "$") && strings.HasSuffix(p, "/") {
		return true
	}
	dir := strings.TrimPrefix(p, "/")
	if dir == p {
		return false
	}
	if rest, ok := strings.CutPrefix(dir, "home/"); ok {
		return !strings.Contains(rest, "/")
	}
	switch dir {
	case "bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "media", "mnt", "opt", "proc", "root", "run", "sbin", "srv",
		"sys", "usr", "var", "usr/bin", "usr/lib", "usr/local", "usr/share", "var/lib", "var/log", "Users", "System", "Library", "Applications":
		return true
	}
	return false
}

// clean resolves //, /./ and /x/.. in a path without touching the disk, and drops
// a slash at the end.
func clean(p string) string {
	if p == "" {
		return ""
	}
	abs := p[0] == '/'
	var parts []string
	for s := range strings.SplitSeq(p, "/") {
		switch {
		case s == "" || s == ".":
		case s == ".." && len(parts) > 0 && parts[len(parts)-1] != ".." && !strings.HasPrefix(parts[len(parts)-1], "$") && parts[len(parts)-1] != "~":
			parts = parts[:len(parts)-1]
		case s == ".." && abs && len(parts) == 0:
		default:
			parts = append(parts, s)
		}
	}
	out := strings.Join(parts, "/")
	switch {
	case abs:
		return "/" + out
	case out == "":
		return "."
	}
	return out
}
