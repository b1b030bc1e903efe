package host

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/schema"
)

// folder follows one folder. All but facts belongs to the goroutine of follow.
type folder struct {
	config  FolderConfig
	runner  *Runner
	repo    *gitrepo.Repo
	log     *slog.Logger
	command string // the apply command's digest

	// due is when a failed apply may be tried again.
	due time.Time

	mu    sync.Mutex
	state state
}

// newFolder makes a folder as the last agent left it.
func newFolder(r *Runner, c FolderConfig, repo *gitrepo.Repo) (*folder, error) {
	f := &folder{config: c, runner: r, repo: repo, log: r.opts.Logger.With("folder", c.Name), command: c.Apply.digest()}
	st, err := r.store.load(c.Name)
	if errors.Is(err, errDamaged) {
		f.log.Error("what is applied is not known any more; it is applied again", "error", err)
		err = nil
	}
	if err != nil {
		return nil, err
	}
	if st.Outcome == running {
		if n := endLeftovers(st.Run); n > 0 {
			f.log.Warn("an apply that was cut off had left processes running, which were ended", "processes", n)
		}
		st.Reason, st.Message = reasonInterrupted, "the agent ended while the apply command ran; it is run again"
	}
	if st.Source != c.source() {
		st = state{Source: c.source()} // what was applied from elsewhere says nothing of this
	}
	f.state = st
	return f, nil
}

// facts returns what is to be reported.
func (f *folder) facts() schema.Reconciler {
	f.mu.Lock()
	defer f.mu.Unlock()
	return facts(&f.config, &f.state)
}

// change changes what is known, and tells it.
func (f *folder) change(to Sink, change func(*state)) {
	f.mu.Lock()
	change(&f.state)
	rec := facts(&f.config, &f.state)
	f.mu.Unlock()
	to.Put(rec)
}

// follow works until ctx ends.
func (f *folder) follow(ctx context.Context, to Sink) {
	to.Put(f.facts())
	if f.config.Suspend {
		<-ctx.Done()
		return
	}
	for {
		select {
		case f.runner.turns <- struct{}{}:
		case <-ctx.Done():
			return
		}
		began := f.runner.opts.Now()
		f.round(ctx, to)
		<-f.runner.turns
		select {
		case <-f.runner.opts.After(f.pause(began)):
		case <-ctx.Done():
			return
		}
	}
}

// pause is how long to rest after a round that began then: until the interval
// is over, or a retry is due.
func (f *folder) pause(began time.Time) time.Duration {
	interval := time.Duration(f.config.Interval)
	next := began.Add(interval - interval/10 + time.Duration(f.runner.opts.Random()*float64(interval/5)))
	if f.state.Outcome == failed && f.due.After(began) && f.due.Before(next) {
		next = f.due
	}
	return max(next.Sub(f.runner.opts.Now()), 0)
}

// A failed apply is tried again after firstRetry, then after ever longer times.
const (
	firstRetry = 15 * time.Second
	lastRetry  = 10 * time.Minute
)

func (f *folder) backoff(failures int) time.Duration {
	pause := firstRetry
	for range failures - 1 {
		pause = min(2*pause, lastRetry)
	}
	return pause - pause/5 + time.Duration(f.runner.opts.Random()*float64(pause*2/5))
}

// round looks for the newest commit, and applies it where that is called for.
func (f *folder) round(ctx context.Context, to Sink) {
	commit, err := f.repo.Fetch(ctx, f.config.Ref)
	tree := ""
	if err == nil {
		tree, err = f.repo.Tree(commit, f.config.Path)
	}
	if ctx.Err() != nil {
		return
	}
	missing := errors.Is(err, gitrepo.ErrPathMissing)
	if err != nil && !missing {
		f.runner.metrics.fetches.WithLabelValues("error").Inc()
		f.log.Warn("the repository cannot be read; what is applied stays", "error", err)
		f.change(to, func(s *state) { s.sourceError = err.Error() })
		return
	}
	f.runner.metrics.fetches.WithLabelValues("ok").Inc()
	if f.state.sourceError != "" {
		f.change(to, func(s *state) { s.sourceError = "" })
	}
	if missing {
		f.missing(to, commit)
		return
	}
	due := !f.runner.opts.Now().Before(f.due)
	switch f.state.next(commit, tree, f.command, due) {
	case move:
		defer debug.FreeOSMemory() // see below
		f.log.Info("the commit changes nothing in the folder", "commit", commit)
		f.change(to, func(s *state) {
			s.Applied, s.Attempted, s.Reason = commit, commit, reasonUnchanged
			s.Message = "the commit changes nothing in the folder; it needed no apply"
		})
		f.save()
	case apply:
		// A download takes tens of megabytes for a moment. Nothing after it makes
		// an idle agent clean up, and it would sit on them for minutes.
		defer debug.FreeOSMemory()
		f.apply(ctx, to, commit, tree)
	case stay, wait:
	}
}

// missing: the commit is there, and has no such folder.
func (f *folder) missing(to Sink, commit string) {
	if s := &f.state; s.Outcome == failed && s.Reason == reasonPath && s.Attempted == commit {
		return
	}
	f.fail(to, commit, "", result{reasonPath, "the commit has no folder " + f.config.Path})
}

// apply makes the machine what the commit says.
func (f *folder) apply(ctx context.Context, to Sink, commit, tree string) {
	previous, run := f.state.Applied, rand.Text()
	f.change(to, func(s *state) {
		s.Attempted, s.Tree, s.Command, s.Outcome, s.Run = commit, tree, f.command, running, run
		s.Reason, s.Message, s.Since = reasonApplying, "the apply command runs", f.runner.opts.Now().UTC()
	})
	// First: an apply that nobody knows of would not be run again when it is cut
	// off.
	if err := f.runner.store.save(f.config.Name, &f.state); err != nil {
		f.fail(to, commit, tree, result{reasonNotStarted, err.Error()})
		return
	}
	f.log.Info("applying", "commit", commit, "previous", previous)
	res := f.run(ctx, commit, previous, run)
	if ctx.Err() != nil && res != (result{}) {
		return // it is run again
	}
	if res != (result{}) {
		f.fail(to, commit, tree, res)
		return
	}
	f.runner.metrics.applies.WithLabelValues("success").Inc()
	f.log.Info("applied", "commit", commit)
	f.change(to, func(s *state) {
		s.Applied, s.Outcome, s.Failures, s.Run = commit, succeeded, 0, ""
		s.Reason, s.Message, s.Since = reasonApplied, "the apply command succeeded", f.runner.opts.Now().UTC()
	})
	f.save()
}

// fail notes that a commit could not be applied.
func (f *folder) fail(to Sink, commit, tree string, res result) {
	f.runner.metrics.applies.WithLabelValues("failure").Inc()
	f.log.Warn("a commit could not be applied", "commit", commit, "reason", res.reason)
	f.change(to, func(s *state) {
		s.Attempted, s.Tree, s.Command, s.Outcome, s.Run = commit, tree, f.command, failed, ""
		s.Reason, s.Message, s.Since = res.reason, res.message, f.runner.opts.Now().UTC()
		s.Failures++
	})
	f.due = f.runner.opts.Now().Add(f.backoff(f.state.Failures))
	f.save()
}

// save keeps what is known. Where it cannot, the worst is one apply too many
// after a restart.
func (f *folder) save() {
	if err := f.runner.store.save(f.config.Name, &f.state); err != nil {
		f.log.Error("what is applied cannot be written down; after a restart it is applied again", "error", err)
	}
}

// run writes the folder and runs the command there.
func (f *folder) run(ctx context.Context, commit, previous, run string) result {
	opts, work := &f.runner.opts, f.runner.store.work(f.config.Name)
	if err := f.repo.Materialize(ctx, commit, f.config.Path, work); err != nil {
		return result{reasonNotWritten, err.Error()}
	}
	out, err := newOutput(f.runner.store.log(f.config.Name))
	if err != nil {
		return result{reasonNotStarted, "making the log of the output: " + err.Error()}
	}
	argv := f.config.Apply.Argv
	if f.config.Apply.Shell != "" {
		argv = []string{"/bin/sh", "-c", f.config.Apply.Shell}
	}
	dir := f.config.Apply.Dir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(work, dir)
	}
	c := &command{
		argv: argv, dir: dir, timeout: time.Duration(f.config.Apply.Timeout), grace: opts.Grace, settle: opts.Settle, output: out,
		env: f.environment(map[string]string{
			"COMMIT": commit, "REF": f.config.Ref, "PATH": f.config.Path, "REPO": schema.StripUserInfo(f.config.Repo), "DIR": work,
			"CLUSTER": opts.Cluster, "NAME": f.config.Name, "PREVIOUS_COMMIT": previous, "RUN": run,
		}),
	}
	res := c.run(ctx)
	if err := out.close(); err != nil {
		f.log.Warn("the log of the output is not complete", "error", err)
	}
	return res
}

// environment is what the command gets, and nothing else of the agent's: its
// token is no business of the command.
func (f *folder) environment(own map[string]string) []string {
	all := map[string]string{}
	for _, name := range append([]string{"PATH", "HOME"}, f.config.Apply.PassEnv...) {
		if value := f.runner.opts.Env(name); value != "" {
			all[name] = value
		}
	}
	maps.Copy(all, f.config.Apply.Env)
	for name, value := range own {
		all[reserved+name] = value
	}
	env := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		env = append(env, name+"="+all[name])
	}
	return env
}
