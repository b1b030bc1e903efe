package catalog

import (
	"slices"
	"strings"

	"github.com/landfall-hub/landfall/schema"
)

// oracle is a chain, by plain git and without thought.
type oracle struct {
	r     *trial
	chain []string
	place map[string]int
	// claims are what each commit's files say of the targets, each with the position
	// at which its file changed.
	claims []map[string]claimed
}

type claimed struct {
	blob    string
	changed int
	says    []said
}

func newOracle(r *trial, head string) *oracle {
	o := &oracle{r: r, chain: strings.Fields(git(r.t, r.dir, "rev-list", "--first-parent", "--reverse", head)), place: map[string]int{}}
	for i, commit := range o.chain {
		for _, id := range strings.Fields(r.plain("rev-list", commit)) {
			if _, ok := o.place[id]; !ok {
				o.place[id] = i
			}
		}
		files := map[string]claimed{}
		for _, line := range strings.Split(r.plain("ls-tree", "-r", commit), "\n") {
			meta, name, ok := strings.Cut(line, "\t")
			f := strings.Fields(meta)
			if !ok || f[0] == "120000" {
				continue
			}
			c := claimed{blob: f[2], changed: i}
			if i > 0 {
				if before, ok := o.claims[i-1][name]; ok && before.blob == c.blob {
					c = before
				}
			}
			if c.says == nil {
				c.says = r.says[r.plain("cat-file", "blob", c.blob)+"\n"]
			}
			files[name] = c
		}
		o.claims = append(o.claims, files)
	}
	return o
}

// plain asks git once for what is so for good: what an id stands for.
func (r *trial) plain(args ...string) string {
	key := strings.Join(args, " ")
	answer, ok := r.answers[key]
	if !ok {
		answer = git(r.t, r.dir, args...)
		r.answers[key] = answer
	}
	return answer
}

func (o *oracle) head() string { return o.chain[len(o.chain)-1] }

func (o *oracle) own(s said) bool { return s.branch == "main" && !strings.HasSuffix(s.repo, "/other") }

// named reports whether something of the newest commit or of what was pushed
// names a target at its endpoint.
func (o *oracle) named(t schema.Target) bool {
	for _, c := range o.claims[len(o.claims)-1] {
		for _, s := range c.says {
			if s.target == t && o.own(s) {
				return true
			}
		}
	}
	return slices.ContainsFunc(o.r.pushes, func(p pushed) bool { return p.target == t })
}

// best is the version that a target carries at a position.
func (o *oracle) best(t schema.Target, position int) *said {
	type candidate struct {
		said
		changed int
		file    string
	}
	var all []candidate
	for name, c := range o.claims[position] {
		for _, s := range c.says {
			if s.target == t && o.own(s) {
				all = append(all, candidate{s, c.changed, "1" + name})
			}
		}
	}
	for _, p := range o.r.pushes {
		if at, ok := o.place[p.commit]; ok && at <= position && p.target == t {
			all = append(all, candidate{p.said, at, "0"})
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		if a.changed != b.changed {
			return b.changed - a.changed
		}
		if !a.built.Equal(b.built) {
			return b.built.Compare(a.built)
		}
		return strings.Compare(a.file, b.file)
	})
	return &all[0].said
}

func sameSaid(a, b *said) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.version == b.version && a.built.Equal(b.built)
}

// version is best, with the position since when it is so.
func (o *oracle) version(t schema.Target, position int) (v *said, since int) {
	v = o.best(t, position)
	for since = position; since > 0 && sameSaid(o.best(t, since-1), v); {
		since--
	}
	return v, since
}

// pending is the first position after one at which the target gets a version, -1
// for none.
func (o *oracle) pending(t schema.Target, position int) int {
	for i := position + 1; i < len(o.chain); i++ {
		if v := o.best(t, i); v != nil && !sameSaid(v, o.best(t, i-1)) {
			return i
		}
	}
	return -1
}
