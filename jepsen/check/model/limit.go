package model

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Algorithms, numbered as in the identity of a record.
const (
	Throttle = 1 // CL.THROTTLE
	GCRA     = 2
	Token    = 3
	Leaky    = 4
	Fixed    = 5
	Sliding  = 6
	Log      = 7
	ofID     = 255 // what was charged under an ID
)

var names = map[string]uint8{"gcra": GCRA, "token": Token, "leaky": Leaky, "fixed": Fixed, "sliding": Sliding, "log": Log}

// Identity is what tells the records of a key apart: limits of one algorithm and period
// share their state, whatever their numbers are.
type Identity struct {
	Algorithm uint8
	Period    int64 // ns; 0: CL.THROTTLE's, an ID's, or a calendar's
	Calendar  Calendar
}

// ofThrottle is the identity of CL.THROTTLE's record.
var ofThrottle = Identity{Algorithm: Throttle}

// IDs is the identity of what is remembered of a call with an ID.
var IDs = Identity{Algorithm: ofID}

// ReadIdentity reads an identity as traces have it, in hex.
func ReadIdentity(text string) (id Identity, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) == 0 {
		return id, fmt.Errorf("%q is no identity", text)
	}
	id.Algorithm = b[0]
	if id == ofThrottle || id == IDs {
		if len(b) > 1 {
			return id, fmt.Errorf("identity %q has more than one byte", text)
		}
		return id, nil
	}
	period, n := binary.Uvarint(b[1:])
	if id.Algorithm == Fixed && n == 1 && period == 0 {
		id.Calendar, err = readCalendar(b[2:])
		return id, err
	}
	if id.Algorithm < GCRA || id.Algorithm > Log || n != len(b)-1 || period == 0 || period > 1<<62 {
		return id, fmt.Errorf("identity %q is of no limit that this model knows", text)
	}
	id.Period = int64(period)
	return id, nil
}

// bucket says that the state of such a record is a time.
func (id Identity) bucket() bool { return id.Algorithm >= Throttle && id.Algorithm <= Leaky }

// Limit is a limit under which a record is charged.
type Limit struct {
	Identity
	Burst    int64 // units: of a bucket the capacity, of a counter the limit
	Interval int64 // of a bucket: ns for one unit
}

// ThrottleLimit is the one of a CL.THROTTLE.
func ThrottleLimit(interval, burst int64) Limit {
	return Limit{Identity: ofThrottle, Interval: interval, Burst: burst}
}

// units of durations, in ns.
var units = map[string]int64{"ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9, "d": 86400e9, "w": 7 * 86400e9}

// String is the algorithm and the period.
func (id Identity) String() string {
	if id.Calendar.Unit > 0 {
		return fmt.Sprintf("algorithm %d, period %s", id.Algorithm, id.Calendar.text())
	}
	return fmt.Sprintf("algorithm %d, period %d ns", id.Algorithm, id.Period)
}

// ParseLimit reads [algorithm:]count/period[,burst=n][,queue=n], and of calendar windows
// fixed:count/unit[,tz=zone][,start=weekday][,hour=n].
func ParseLimit(text string) (l Limit, err error) {
	bad := func(what string) (Limit, error) { return Limit{}, fmt.Errorf("limit %q: %s", text, what) }
	l.Algorithm = GCRA
	rest := text
	if name, after, ok := strings.Cut(rest, ":"); ok {
		if l.Algorithm, ok = names[name]; !ok {
			return bad("no such algorithm")
		}
		rest = after
	}
	words := strings.Split(rest, ",")
	count, period, ok := strings.Cut(words[0], "/")
	n, err := strconv.ParseInt(count, 10, 64)
	if !ok || err != nil || n < 1 {
		return bad("no count and period")
	}
	l.Burst = n
	if l.Calendar, ok = calendarOf(period); ok && l.Algorithm == Fixed {
		for _, w := range words[1:] {
			if name, value, _ := strings.Cut(w, "="); !l.Calendar.set(name, value) {
				return bad("no such option of a calendar")
			}
		}
		return l, nil
	}
	l.Calendar = Calendar{}
	if l.Period = duration(period); l.Period == 0 {
		return bad("no period that this model knows")
	}
	if l.bucket() { // rounded up, so that the rate is never more than was asked for
		l.Interval = new(big.Int).Div(big.NewInt(l.Period+n-1), big.NewInt(n)).Int64()
	}
	if l.Algorithm == Leaky {
		l.Burst = 1
	}
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		v, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil:
			return bad("an option without a number")
		case name == "burst" && (l.Algorithm == GCRA || l.Algorithm == Token):
			l.Burst = v
		case name == "queue" && l.Algorithm == Leaky:
			l.Burst = v + 1
		default:
			return bad("no such option")
		}
	}
	return l, nil
}

// duration reads numbers with units, as 1m30s; 0: it is none.
func duration(text string) (sum int64) {
	for text != "" {
		digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
		n, err := strconv.ParseInt(text[:digits], 10, 64)
		text = text[digits:]
		letters := len(text) - len(strings.TrimLeft(text, "abcdefghijklmnopqrstuvwxyz"))
		unit := units[text[:letters]]
		text = text[letters:]
		if err != nil || unit == 0 || n > (1<<62)/unit {
			return 0
		}
		sum += n * unit
	}
	return sum
}
