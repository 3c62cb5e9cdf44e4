package algo

import (
	"encoding/binary"
	"fmt"
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
	if id.Algorithm < GCRA || id.Algorithm > Log || n <= 0 || period > maxSpan {
		return Identity{}, bad
	}
	rest := ident[1+n:]
	if period > 0 {
		if len(rest) > 0 {
			return Identity{}, bad
		}
		id.period, id.Period = int64(period), printDuration(int64(period))
		return id, nil
	}
	if id.Algorithm != Fixed || len(rest) < 4 || rest[0] < byte(unitDay) || rest[0] > byte(unitYear) || rest[1] > 6 || rest[2] > 23 {
		return Identity{}, bad
	}
	id.Period, id.Hour, id.Zone = unitNames[rest[0]], int(rest[2]), string(rest[3:])
	if day := time.Weekday(rest[1]); day != time.Monday {
		id.Start = weekdays[day]
	}
	return id, nil
}
