package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// object is a flat reply as a JSON object that keeps the order of its fields.
type object []pair

func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(p.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(p.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printPairs prints one name and value per line.
func printPairs(w io.Writer, ps []pair) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, p := range ps {
		fmt.Fprintf(t, "%s\t%v\n", p.name, p.value)
	}
	return t.Flush()
}

// printTable prints rows of the same fields under one header.
func printTable(w io.Writer, rows []object) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, row := range rows {
		if i == 0 {
			printRow(t, row, func(p pair) any { return p.name })
		}
		printRow(t, row, func(p pair) any { return p.value })
	}
	return t.Flush()
}

func printRow(w io.Writer, row object, cell func(pair) any) {
	for i, p := range row {
		if i > 0 {
			fmt.Fprint(w, "\t")
		}
		fmt.Fprint(w, cell(p))
	}
	fmt.Fprintln(w)
}
