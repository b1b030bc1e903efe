package record

import "github.com/landfall-hub/landfall/hub/compliance"

// Landing is what is stored about a question: who reads the endpoint, and what
// stands in the way on their clusters.
type Landing struct {
	// Subscribers have their Reporter set, as far as Clusters goes, and their
	// Destination not.
	Subscribers []compliance.Subscriber
	// Clusters are the reporting ones by name: only Name, UnlistedKinds and
	// Blocked are set.
	Clusters map[string]*compliance.Cluster
}
