package main

import (
	"fmt"
	"strings"
)

// tally counts the answers that a client got for one key.
type tally struct {
	allowed, denied int
	refused         int // errors that say that nothing was charged
	unsure          int // INDOUBT and broken connections: perhaps charged
	last            string
}

func (t *tally) answered() int { return t.allowed + t.denied }

func (t tally) String() string {
	s := fmt.Sprintf("allowed %d, denied %d, refused without a charge %d, perhaps charged %d", t.allowed, t.denied, t.refused, t.unsure)
	if t.last != "" {
		s += fmt.Sprintf("; the last error was %q", t.last)
	}
	return s
}

// fail counts an error by its text.
func (t *tally) fail(text string) {
	t.last = text
	if certain(text) {
		t.refused++
	} else {
		t.unsure++
	}
}

// certain says that a call which ended in this error has not been charged:
// limitd says so in its text, and where there was no connection nothing was sent.
// eredis says no_connection then.
func certain(text string) bool {
	return strings.Contains(text, "not charged") || strings.Contains(strings.ToLower(text), "refused") || text == "no_connection"
}

// exactly is the rule without a fault, and for calls that are repeated under
// their ID until they are answered: they are charged once, whatever happened.
func (t *tally) exactly(limit int) error {
	if t.allowed != limit {
		return fmt.Errorf("a limit of %d must allow exactly %d: %s", limit, limit, t)
	}
	return nil
}

// mostUnsure is the share of a limit that may be charged unseen: with more, the
// rule says nothing any more. A fault breaks a few calls, not many.
const mostUnsure = 4

// within is the rule of plain calls across a fault: none too many, and none lost
// of which the client was not told. hidden is how many the client may have repeated without telling.
func (t *tally) within(limit, hidden int) error {
	switch least := limit - t.unsure - hidden; {
	case t.unsure > limit/mostUnsure:
		return fmt.Errorf("too many of a limit of %d may have been charged for a judgement: %s", limit, t)
	case t.allowed > limit:
		return fmt.Errorf("a limit of %d must never allow more: %s", limit, t)
	case t.allowed < least:
		return fmt.Errorf("a limit of %d must allow at least %d here (%d may have been charged unseen, %d repeated by the client itself): %s",
			limit, least, t.unsure, hidden, t)
	}
	return nil
}
