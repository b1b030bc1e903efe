// Package object is what the readers of all kinds share: fields of unstructured
// objects read strictly, texts made fit to be sent, and the rule that a parent
// waits for the children its inventory names. It is pure: objects in, facts out.
package object
