// Package render turns templates into the files of an assignment: Go
// text/templates with sprig's hermetic functions, as Kalypso writes them.
//
// A template is somebody else's program. It is run on a budget of work, counted
// in what it does and not in time, so that it ends on every machine after the
// same step: parsing adds a toll to the tree of the template, at each turn of a
// loop, each call of a template, each value that is printed or compared; and
// every function says what it took and gave, or is going to give. What would
// cost more than the budget, or is larger than the output may be, is an error of
// that template alone. Functions by which two runs could differ (clock, chance,
// environment, order of a map's keys) are not there or are put right.
//
// Everything here is a function of its arguments.
package render
