// Package watch knows what the API server holds of a few kinds now: it finds out
// which of them are served and in which version, lists and watches them, keeps
// each object trimmed and packed, and says which key changed. It knows nothing of
// what the objects mean.
//
// What cannot be looked at is Unlisted, never absent: the objects last seen stay
// until the kind was listed again.
package watch
