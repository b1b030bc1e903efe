package publish

import "github.com/landfall-hub/landfall/scheduler"

// Of returns what a plan wants a branch to hold. What could not be rendered
// stays as it is, and a plan that is not complete deletes nothing.
func Of(p *scheduler.Plan) *Desired {
	want := &Desired{Mark: scheduler.Mark, PromotedCommit: p.PromotedCommit, KeepAll: !p.Complete()}
	next := 0
	for _, f := range p.Folders {
		t := ClusterType{Name: f.Name, Readme: f.Readme}
		for ; next < len(p.Assignments) && p.Assignments[next].ClusterType == f.Name; next++ {
			a := &p.Assignments[next]
			made := Assignment{Name: a.DeploymentTarget, Keep: a.Err != "", Version: a.Version, Files: make([]File, len(a.Files))}
			for i, file := range a.Files {
				made.Files[i] = File{Name: file.Name, Text: file.Text}
			}
			t.Assignments = append(t.Assignments, made)
		}
		want.ClusterTypes = append(want.ClusterTypes, t)
	}
	return want
}
