package replaycmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/llm/transcript"
)

// Run is mortise run SESSION.
func Run(ctx context.Context, s command.Streams, o Options) error {
	start, path := time.Now(), o.Session
	cfg, err := s.Links.LoadOr(o.Config, config.Bundled)
	if err != nil {
		return exit.With(exit.Config, err)
	}
	if err := chooseStore(cfg.Config, o); err != nil {
		return err
	}
	if o.PaceSet {
		cfg.Replay.Pace = config.Duration(o.Pace)
	}
	file, err := readSession(s.In, path, o)
	if err != nil {
		return exit.With(exit.Session, err)
	}
	p := newReplayProgress(term.NewProgress(s.Err, o.Quiet))
	c := newCollector()
	c.session(path, file)
	logger := slog.New(slog.NewTextHandler(o.logWriter(p, s.Err), &slog.HandlerOptions{Level: o.LogLevel}))
	if cfg.Home, err = cfg.OpenHome(ctx, logger); err != nil {
		return exit.With(exit.Config, err)
	}
	c.records, err = newRecorder(ctx, o, cfg, logger, func(err error) { p.Say("the decision record is not complete: %v", err) })
	if err != nil {
		return exit.With(exit.Config, errors.Join(err, cfg.Home.Close(ctx)))
	}
	failure := replayFile(ctx, cfg, file, logger, p, c, s.Hangups)
	c.records.note(errors.Join(c.records.close(ctx), cfg.Home.Close(ctx)))
	p.Close()
	return finish(ctx, s, o, c.done(), start, failure)
}

// finish writes the report, and returns the error with which the command ends.
func finish(ctx context.Context, s command.Streams, o Options, report *Report, start time.Time, failure error) error {
	report.WallMS = time.Since(start).Milliseconds()
	report.Interrupted = ctx.Err() != nil
	if failure != nil {
		report.Error = exit.Text(failure)
	}
	report.judge()
	if n := report.Verdict.Faults; failure == nil && o.Strict && n > 0 {
		failure = exit.With(exit.Run, fmt.Errorf("--strict: %s of plugins or policies, the first: %s", term.Counted(n, "fault"), report.firstFault()))
	}
	if n := report.blocked(); failure == nil && o.Strict && n > 0 {
		failure = exit.With(exit.Run, fmt.Errorf("--strict: %s blocked, the last one: %s", term.Counted(n, "run was", "runs were"), report.Runs.Blocked))
	}
	if report.Interrupted {
		failure = exit.Always(exit.Interrupted, errors.New("interrupted; the report is partial"))
	}
	report.Verdict.end(exit.Of(failure))
	if err := report.write(s.Out, o.Output); err != nil {
		return exit.With(exit.Run, fmt.Errorf("report: %w", err))
	}
	return failure
}

// logWriter is where the log goes: past the progress, when that is quiet and the level was asked for.
func (o Options) logWriter(p *replayProgress, stderr io.Writer) io.Writer {
	if o.Quiet && o.LogSet {
		return stderr
	}
	return p
}

// readSession reads the recording and picks a conversation if one is named.
func readSession(in io.Reader, path string, o Options) (*transcript.File, error) {
	options := transcript.Options{Lenient: o.Lenient}
	var file *transcript.File
	var err error
	if path == "-" {
		file, err = transcript.Read(in, options)
	} else {
		file, err = transcript.Open(path, options)
	}
	if err != nil {
		hint := ""
		var line *transcript.LineError
		switch info, failed := os.Stat(path); {
		case errors.As(err, &line) && !o.Lenient:
			hint = "; --lenient leaves broken lines out"
		case errors.Is(err, os.ErrNotExist):
			hint = "; check the path; a prompt that looks like one can come from standard input: mortise run -"
		case failed == nil && info.IsDir():
			hint = "; name a file in this folder"
		}
		err = fmt.Errorf("session %s: %w%s", path, err, hint)
		if errors.Is(err, os.ErrNotExist) {
			return nil, exit.NotFound(err)
		}
		return nil, err
	}
	if o.Conversation == "" {
		return file, nil
	}
	var ids []string
	for i := range file.Conversations {
		if file.Conversations[i].ID == o.Conversation {
			file.Conversations = file.Conversations[i : i+1]
			return file, nil
		}
		ids = append(ids, file.Conversations[i].ID)
	}
	return nil, exit.NotFound(fmt.Errorf("session %s: holds no conversation %q; it holds %s",
		path, o.Conversation, term.Clip(strings.Join(ids, ", "), 400)))
}

// replayFile loads what the config names and replays every conversation. Modules are
// swapped at hangups.
func replayFile(
	ctx context.Context, cfg *program.Setup, file *transcript.File, logger *slog.Logger, p *replayProgress, c *collector, hangups <-chan os.Signal,
) error {
	parts, err := program.Assemble(ctx, cfg, logger, program.Observer{Say: p.Say, Swapped: c.rolledBack})
	var failures []error
	if err == nil {
		c.loaded(parts)
		reloads := &reloader{parts: parts, hangups: hangups, out: p.Progress, note: c.reloaded, asked: c.reloadAsked}
		stop := reloads.watch(ctx)
		for i := range file.Conversations {
			if ctx.Err() != nil {
				break
			}
			failures = append(failures, replayConversation(ctx, parts, file.Conversations[i], logger, p, c))
		}
		stop()
		err = exit.With(exit.Run, errors.Join(failures...))
	}
	c.modules(parts.Status())
	c.guests(guestsOf(parts))
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), program.CloseTimeout)
	defer cancel()
	if closeErr := parts.Close(closing); closeErr != nil {
		logger.WarnContext(ctx, "modules did not close in time", "error", closeErr)
	}
	return err
}
