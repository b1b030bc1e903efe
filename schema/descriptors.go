package schema

// PushedDescriptors answers POST /descriptors.
type PushedDescriptors struct {
	// Items are the deployment targets whose descriptors are stored, in the order
	// of the body.
	Items []PushedDescriptor `json:"items"`
	// Placed says that the commit is known to be on the ref; a version counts from
	// then on.
	Placed bool `json:"placed"`
}

// PushedDescriptor is what a descriptor says of a deployment target.
type PushedDescriptor struct {
	Target
	// Path is the folder of its manifests.
	Path string `json:"path"`
	// Version is the workload version.
	Version string `json:"version"`
}

// FileError is a complaint about a place in a file.
type FileError struct {
	// File is "body" for what was sent.
	File string `json:"file"`
	// Line counts from 1; 0 is the file as a whole.
	Line int `json:"line"`
	// Reason says what is wrong and the remedy.
	Reason string `json:"reason"`
}
