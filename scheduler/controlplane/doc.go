// Package controlplane reads a control plane: the YAML documents of a few
// folders become a typed model of one environment, in which every complaint
// names the file and line it is about.
//
// Folders and file names carry no meaning, and the order of reading does not
// matter: everything that leaves the package is sorted. A document that cannot
// be used costs nobody else anything. Where what it describes is known all the
// same, it stays in the model with a reason in its field Broken, so that what
// depends on it can stop instead of changing; where it is not known, the
// Problem says so in Hides.
//
// Everything here is a function of its arguments.
package controlplane
