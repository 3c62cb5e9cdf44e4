package algo

// What a limit is, in numbers: for those that explain or draw one. A decision
// needs none of this.

// PerPeriod is the limit as the expression has it, in units per period; 0 for
// CL.THROTTLE's, which has no expression.
func (l Limit) PerPeriod() int64 {
	if l.expr == nil {
		return 0
	}
	return l.expr.limit
}

// PeriodLength is the period in ns; 0 for a calendar window, whose length depends
// on the date, and for CL.THROTTLE's.
func (l Limit) PeriodLength() int64 {
	if l.expr == nil {
		return 0
	}
	return l.expr.period
}

// CalendarWindow is the calendar window that date (ns since 1970) lies in, from
// start to before end; false for a limit that has none.
func (l Limit) CalendarWindow(date int64) (start, end int64, ok bool) {
	if l.expr == nil || l.calendar == nil {
		return 0, 0, false
	}
	w := l.calendar.window(date)
	return w.start, w.end, true
}

// StateSize is the size of a record's state in bytes, at most: a log has
// [LogEntry] for each admitted call of the last period, which is the limit of them
// if each takes one unit. (A log of limits too high to count is as large as that.)
func (l Limit) StateSize() int64 {
	switch l.Algorithm {
	case Fixed:
		return fixedSize
	case Sliding:
		return slidingSize
	case Log:
		return min(l.Burst, maxSpan/LogEntry) * LogEntry
	}
	return tatSize
}
