package scheduler

import (
	"bytes"
	"fmt"
	"strings"
)

// Mark begins the README.md of every folder that is the scheduler's. A folder
// without it is somebody else's.
const Mark = "<!-- landfall scheduler:"

// folder makes the folder of a cluster type.
func folder(environment, clusterType string, assignments []Planned) ClusterTypeFolder {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s this line makes the folder its own; do not change it -->\n", Mark)
	fmt.Fprintf(&b, "# %s\n\n", clusterType)
	fmt.Fprintf(&b, "What is assigned to the cluster type `%s` of environment `%s`, a folder for each deployment target. "+
		"The scheduler writes these folders and deletes those that are not wanted any more: change the control plane, not them.\n",
		clusterType, environment)
	if len(assignments) == 0 {
		b.WriteString("\nNothing is assigned.\n")
		return ClusterTypeFolder{Name: clusterType, Readme: b.Bytes()}
	}
	b.WriteString("\n| deployment target | assigned by policy |\n|---|---|\n")
	for i := range assignments {
		a := &assignments[i]
		b.WriteString("| ")
		cell(&b, a.DeploymentTarget)
		b.WriteString(" | ")
		for n, policy := range a.Policies {
			if n > 0 {
				b.WriteString(", ")
			}
			cell(&b, policy)
		}
		b.WriteString(" |\n")
	}
	return ClusterTypeFolder{Name: clusterType, Readme: b.Bytes()}
}

var escaped = strings.NewReplacer("|", `\|`, "\n", " ", "\r", " ")

func cell(b *bytes.Buffer, text string) { b.WriteString(escaped.Replace(text)) }
