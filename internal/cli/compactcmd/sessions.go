package compactcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/compaction/eval"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/llm/transcript"
)

// maxSessions bounds what a folder is searched for.
const maxSessions = 10_000

// sets reads sessions and probes. Each file of probes is a set; without any each
// session is, with probes made from it.
func (o *evalOptions) sets(ctx context.Context, paths []string, in io.Reader, report *EvalReport, p *evalProgress) ([]eval.Set, error) {
	var files []eval.Recording
	for _, path := range paths {
		got, err := o.recordings(ctx, path, in, report, p)
		if err != nil {
			return nil, err
		}
		files = append(files, got...)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("sessions: %s: holds no recording; name a file, or a folder with files that mortise run reads", strings.Join(paths, ", "))
	}
	if len(o.probes) > 0 {
		return o.probed(files, report, p)
	}
	var out []eval.Set
	for _, f := range files {
		s := eval.Whole(f.Name, []eval.Recording{f})
		if len(s.Probes) == 0 {
			report.leftOut(p, "%s: nothing in it that a probe could be made of", f.Name)
			continue
		}
		out = append(out, s)
		report.set(&s, true)
	}
	if len(out) == 0 {
		return nil, errors.New("sessions: no probe could be made of them; name files with --probes")
	}
	return out, nil
}

// probed makes a set of each file of probes.
func (o *evalOptions) probed(files []eval.Recording, report *EvalReport, p *evalProgress) ([]eval.Set, error) {
	var out []eval.Set
	names := make(map[string]bool)
	for _, path := range o.probes {
		list, err := filesOf(path, ".jsonl")
		if err != nil {
			return nil, fmt.Errorf("probes: %w", err)
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("probes: %s: holds no .jsonl file", path)
		}
		for _, file := range list {
			name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
			if names[name] {
				name = file
			}
			names[name] = true
			s, err := probeSet(name, file, files, report, p)
			if err != nil {
				return nil, err
			}
			if len(s.Probes) > 0 {
				out = append(out, s)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("probes: nothing to measure: %s", several(report.LeftOut))
	}
	return out, nil
}

// probeSet makes a set of a file of probes, without those that leak.
func probeSet(name, file string, files []eval.Recording, report *EvalReport, p *evalProgress) (eval.Set, error) {
	probes, err := eval.OpenProbes(file)
	if err != nil {
		return eval.Set{}, err
	}
	s, err := eval.NewSet(name, files, probes)
	if err != nil {
		return s, err
	}
	if n := len(eval.Withdraw(&s)); n > 0 {
		report.leftOut(p, "%s: %d of %d probes are withdrawn: the last message of their conversation, which no agent saw, gives them away", name, n, len(probes))
	}
	if len(s.Probes) > 0 {
		report.set(&s, false)
	}
	return s, nil
}

// several lists some of many.
func several(list []string) string {
	const most = 5
	if n := len(list) - most; n > 0 {
		list = append(slices.Clone(list[:most]), fmt.Sprintf("and %d others", n))
	}
	return strings.Join(list, "; ")
}

// recordings reads a session, all in a folder, or the threads of a store.
func (o *evalOptions) recordings(ctx context.Context, path string, in io.Reader, report *EvalReport, p *evalProgress) ([]eval.Recording, error) {
	if file, err := program.IsSQLite(path); config.IsURL(path) || file && err == nil {
		return storedSessions(ctx, o.links, path)
	}
	logs, err := o.logs(path, in, &report.Measured, p)
	var out []eval.Recording
	for _, l := range logs {
		out = append(out, recorded(l.name, l.file))
	}
	return out, err
}

// sessionLog is a file that was read.
type sessionLog struct {
	name string
	file *transcript.File
}

// logs reads a session, or all in a folder. What is in a folder and is no recording is left out; with --lenient, what is broken, too.
func (o *evalOptions) logs(path string, in io.Reader, report *Measured, p *evalProgress) ([]sessionLog, error) {
	options := transcript.Options{Lenient: o.lenient}
	if path == "-" {
		f, err := transcript.Read(in, options)
		if err != nil {
			return nil, fmt.Errorf("session -: %w", err)
		}
		return []sessionLog{{"stdin", f}}, nil
	}
	list, err := filesOf(path, ".json", ".jsonl", ".traj")
	if err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	named := len(list) == 1 && list[0] == path
	var out []sessionLog
	for _, file := range list {
		f, err := transcript.Open(file, options)
		switch {
		case err == nil:
			out = append(out, sessionLog{filepath.Base(file), f})
		case named || !o.lenient && !noRecording(err):
			return nil, fmt.Errorf("session %s: %w%s", file, err, lenientMend(err, o.lenient))
		default:
			report.leftOut(p, "%s: %v", file, err)
		}
	}
	if o.future && len(list) == 0 {
		report.leftOut(p, "%s: holds no .json, .jsonl or .traj file", path)
	}
	return out, nil
}

// storedSessions reads the threads of a store, those of a proxy and of mortise serve among them.
func storedSessions(ctx context.Context, links program.Links, path string) ([]eval.Recording, error) {
	k, err := links.OpenThreads(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	defer k.Home.Close(ctx)
	threads, err := k.Pick(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	var out []eval.Recording
	for _, id := range threads {
		messages, err := k.Threads.Messages(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("sessions: %w", err)
		}
		out = append(out, eval.Recording{Name: id, Conversations: []eval.Conversation{{ID: id, Messages: messages}}})
	}
	return out, nil
}

// noRecording reports whether a file is something else than a session.
func noRecording(err error) bool {
	return errors.Is(err, transcript.ErrUnknownFormat) || errors.Is(err, transcript.ErrNoMessages) || errors.Is(err, transcript.ErrEmpty)
}

// lenientMend is the hint for a broken line.
func lenientMend(err error, lenient bool) string {
	var line *transcript.LineError
	if errors.As(err, &line) && !lenient {
		return "; --lenient leaves broken lines out"
	}
	return ""
}

func recorded(name string, f *transcript.File) eval.Recording {
	out := eval.Recording{Name: name}
	for i := range f.Conversations {
		c := &f.Conversations[i]
		out.Conversations = append(out.Conversations, eval.Conversation{ID: c.ID, Messages: c.Messages()})
	}
	return out
}

// filesOf is a file, or the files of a folder and of the folders in it that end in
// one of the ways, sorted. Hidden ones are left out.
func filesOf(path string, endings ...string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var out []string
	err = filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case file != path && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.Type().IsRegular() && slices.Contains(endings, filepath.Ext(file)):
			out = append(out, file)
		}
		if len(out) > maxSessions {
			return fmt.Errorf("%s: there are more than %d files; name a smaller folder", path, maxSessions)
		}
		return nil
	})
	return out, err
}
