package cli

import "github.com/landfall-hub/landfall/schema"

// colour is an ANSI colour, the same everywhere Landfall shows a status.
type colour string

const (
	noColour colour = ""
	green    colour = "32"
	red      colour = "31"
	blue     colour = "34"
	grey     colour = "90"
	purple   colour = "35"
	orange   colour = "38;5;208"
)

// style says how to write to one stream.
type style struct {
	// colours says that escape sequences for colours may be written.
	colours bool
}

func (s style) paint(c colour, text string) string {
	if !s.colours || c == noColour || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// smart reports whether the terminal, where there is one, can move its cursor.
func (a *app) smart() bool {
	t := a.env("TERM")
	return t != "" && t != "dumb"
}

func (a *app) styleOf(terminal bool) style {
	return style{colours: terminal && a.smart() && a.env("NO_COLOR") == ""}
}

func outcomeColour(o schema.Outcome) colour {
	switch o {
	case schema.OutcomeCompliant:
		return green
	case schema.OutcomeFailed:
		return red
	case schema.OutcomeInProgress:
		return blue
	case schema.OutcomePending:
		return grey
	case schema.OutcomeSuspended:
		return purple
	case schema.OutcomeUnknown, schema.OutcomeUnknownLineage:
		return orange
	}
	return orange
}

func statusColour(s schema.Status) colour {
	switch s {
	case schema.StatusSuccess:
		return green
	case schema.StatusFailure:
		return red
	case schema.StatusInProgress:
		return blue
	case schema.StatusPending:
		return grey
	case schema.StatusSuspended:
		return purple
	case schema.StatusUnknown:
		return orange
	}
	return orange
}

func stateColour(s schema.State) colour {
	switch s {
	case schema.Passed:
		return green
	case schema.Failed:
		return red
	case schema.Waiting:
		return blue
	}
	return orange
}
