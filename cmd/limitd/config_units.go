package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a time.Duration written as Go writes it ("200ms", "1m30s"), or
// "off" for 0.
type Duration time.Duration

// UnmarshalText reads a duration.
func (d *Duration) UnmarshalText(text []byte) error {
	if string(text) == "off" {
		*d = 0
		return nil
	}
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf(`%q is no duration: write it like "200ms", "5s" or "1m30s"`, text)
	}
	*d = Duration(v)
	return nil
}

func (d Duration) String() string { return time.Duration(d).String() }

// Count is a number that may be switched off: 0 or "off".
type Count int

// UnmarshalText reads "off" or a number.
func (c *Count) UnmarshalText(text []byte) error {
	if string(text) == "off" {
		*c = 0
		return nil
	}
	v, err := strconv.Atoi(string(text))
	if err != nil {
		return fmt.Errorf(`%q is no count: write a number, or "off"`, text)
	}
	*c = Count(v)
	return nil
}

// Size is a number of bytes, written as an integer or with a unit: B, KiB, MiB, GiB.
type Size int64

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(text []byte) error {
	v, err := parseSize(string(text))
	if err != nil {
		return err
	}
	*s = Size(v)
	return nil
}

// String writes the size with the largest unit that divides it.
func (s Size) String() string {
	for _, u := range sizeUnits() {
		if s != 0 && int64(s)%u.bytes == 0 {
			return fmt.Sprintf("%d%s", int64(s)/u.bytes, u.name)
		}
	}
	return fmt.Sprintf("%dB", int64(s))
}

// Memory is a bound on memory: bytes, or a share of the machine's.
type Memory struct {
	Bytes   int64
	Percent int // when not 0, counts instead of Bytes
}

// UnmarshalText reads "50%" or a size.
func (m *Memory) UnmarshalText(text []byte) error {
	if p, ok := strings.CutSuffix(string(text), "%"); ok {
		v, err := strconv.Atoi(p)
		if err != nil || v < 1 || v > 100 {
			return fmt.Errorf("%q is no share of memory: write 1%% to 100%%", text)
		}
		*m = Memory{Percent: v}
		return nil
	}
	v, err := parseSize(string(text))
	if err != nil {
		return err
	}
	*m = Memory{Bytes: v}
	return nil
}

func (m Memory) String() string {
	if m.Percent != 0 {
		return fmt.Sprintf("%d%%", m.Percent)
	}
	return Size(m.Bytes).String()
}

type sizeUnit struct {
	name  string
	bytes int64
}

// sizeUnits are the units of sizes, largest first.
func sizeUnits() []sizeUnit {
	return []sizeUnit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}
}

func parseSize(s string) (int64, error) {
	number, unit := s, int64(1)
	for _, u := range sizeUnits() {
		if n, ok := strings.CutSuffix(s, u.name); ok {
			number, unit = n, u.bytes
			break
		}
	}
	v, err := strconv.ParseInt(number, 10, 64)
	if errors.Is(err, strconv.ErrRange) || err == nil && (v > math.MaxInt64/unit || v < math.MinInt64/unit) {
		return 0, fmt.Errorf("%q is too large for a size", s)
	}
	if err != nil {
		return 0, fmt.Errorf(`%q is no size: write bytes, or a whole number with KiB, MiB or GiB`, s)
	}
	return v * unit, nil
}
