package algo

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The identity of a record: what of its limit, with the key, tells it from other
// records of the key. Another limit, burst or queue is the same record under other
// numbers.
//
//	algorithm                                        1 byte; alone: CL.THROTTLE's
//	period in ns                                     uvarint; 0: a calendar window
//	  unit, first day of a week (0 is Sunday), hour  1 byte each, of a calendar window
//	  time zone                                      to the end
func (l Limit) identity() []byte {
	id := []byte{byte(l.Algorithm)}
	id = binary.AppendUvarint(id, uint64(l.expr.period))
	if c := l.calendar; c != nil {
		id = append(id, byte(c.unit), byte(c.start), byte(c.hour))
		id = append(id, c.zone...)
	}
	return id
}

// Identity is an identity, read.
type Identity struct {
	Algorithm Algorithm
	Period    string // as an expression writes it: 1h30m, day; "": CL.THROTTLE's
	Zone      string // of a calendar window, else ""
	Start     string // of calendar weeks that do not start on Monday, else ""
	Hour      int    // of a calendar window

	period int64
}

// String is the period with the options of a calendar window, as an expression
// writes them behind the limit: 1h30m, week,tz=Asia/Dhaka,start=sun.
func (id Identity) String() string {
	s := id.Period
	if id.Zone != "" && id.Zone != "UTC" {
		s += ",tz=" + id.Zone
	}
	if id.Start != "" {
		s += ",start=" + id.Start
	}
	if id.Hour > 0 {
		s += ",hour=" + strconv.Itoa(id.Hour)
	}
	return s
}

// ReadIdent reads what [Limit.Ident] returned.
func ReadIdent(ident []byte) (Identity, error) {
	bad := fmt.Errorf("record of unknown identity %x", ident)
	if len(ident) == 0 {
		return Identity{}, bad
	}
	id := Identity{Algorithm: Algorithm(ident[0])}
	if id.Algorithm == Throttle && len(ident) == 1 {
		return id, nil
	}
	period, n := binary.Uvarint(ident[1:])
	if id.Algorithm < GCRA || id.Algorithm > Log || n <= 0 || period > maxSpan || period%uint64(time.Millisecond) != 0 {
		return Identity{}, bad
	}
	rest := ident[1+n:]
	made := Limit{Algorithm: id.Algorithm, expr: &expr{period: int64(period)}}
	if made.expr.period > made.longest() {
		return Identity{}, bad
	}
	if period == 0 {
		if made.calendar = readCalendar(rest); made.calendar == nil || id.Algorithm != Fixed {
			return Identity{}, bad
		}
		id.Zone, id.Hour = made.calendar.zone, made.calendar.hour
		if made.calendar.start != time.Monday {
			id.Start = weekdays[made.calendar.start]
		}
	}
	if !bytes.Equal(made.identity(), ident) { // something behind it, or a period not in its shortest form
		return Identity{}, bad
	}
	id.Period, id.period = made.Period(), made.expr.period
	return id, nil
}

// readCalendar reads what identity wrote of a calendar; nil: it did not. Whether the
// zone is known here is not asked.
func readCalendar(b []byte) *calendar {
	if len(b) < 4 || len(b) > 3+maxZone {
		return nil
	}
	c := &calendar{unit: calendarUnit(b[0]), start: time.Weekday(b[1]), hour: int(b[2]), zone: string(b[3:])}
	strange := func(r rune) bool { return r <= ' ' || r > '~' || r == ',' } // in no zone's name
	if strings.ContainsFunc(c.zone, strange) {
		return nil
	}
	if c.unit < unitDay || c.unit > unitYear || c.start > time.Saturday || c.hour > 23 ||
		c.unit != unitWeek && c.start != time.Monday {
		return nil
	}
	return c
}
