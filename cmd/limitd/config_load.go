package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// LoadConfig reads and checks a configuration file. What is wrong comes back as
// a KeyErrors that names each key with its line.
func LoadConfig(file string) (Config, error) {
	doc, err := os.ReadFile(file)
	if err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	return parseConfig(file, doc)
}

func parseConfig(file string, doc []byte) (Config, error) {
	c := DefaultConfig()
	dec := toml.NewDecoder(bytes.NewReader(doc))
	dec.DisallowUnknownFields()
	lines := keyLines(doc)
	if err := dec.Decode(&c); err != nil {
		return Config{}, decodeErrors(file, lines, err)
	}
	for i := range c.Nodes {
		if c.Nodes[i].Data == "" {
			c.Nodes[i].Data = filepath.Join("limitd-data", c.Nodes[i].ID)
		}
	}
	err := c.Validate()
	var es KeyErrors
	if errors.As(err, &es) {
		for _, e := range es {
			e.Where = where(file, lines, e.Key)
		}
		return Config{}, es
	}
	return c, nil
}

// decodeErrors turns the decoder's errors into ours.
func decodeErrors(file string, lines map[string]int, err error) error {
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) {
		var es KeyErrors
		for i := range unknown.Errors {
			e := &unknown.Errors[i]
			line, _ := e.Position()
			key := strings.Join(e.Key(), ".")
			es = append(es, &KeyError{Key: key, Where: fmt.Sprintf("%s:%d", file, line), Msg: unknownKey(key)})
		}
		return es
	}
	var bad *toml.DecodeError
	if errors.As(err, &bad) {
		line, column := bad.Position()
		msg := strings.TrimPrefix(bad.Error(), "toml: ")
		for key, l := range lines {
			if l == line {
				return KeyErrors{{Key: key, Where: fmt.Sprintf("%s:%d", file, line), Msg: msg}}
			}
		}
		return fmt.Errorf("%s:%d:%d: %s", file, line, column, msg)
	}
	return fmt.Errorf("%s: %w", file, err)
}

// unknownKey says of keys that other versions know that it is not a spelling mistake.
func unknownKey(key string) string {
	switch key {
	case "node.http":
		return "HTTP is not supported by this version yet"
	}
	return "unknown key: cluster.example.toml shows all there are"
}

// where is the line of a key, or of the closest thing above it that was written.
func where(file string, lines map[string]int, key string) string {
	for key != "" {
		if line, ok := lines[key]; ok {
			return fmt.Sprintf("%s:%d", file, line)
		}
		key = key[:max(strings.LastIndexByte(key, '.'), 0)]
	}
	return file
}

// keyLines maps each key of a document to its line; tables of an array carry
// their index: node[0].id. It reads as far as the document can be parsed.
func keyLines(doc []byte) map[string]int {
	lines, tables := map[string]int{}, map[string]int{}
	var p unstable.Parser
	p.Reset(doc)
	prefix := ""
	for p.NextExpression() {
		n := p.Expression()
		switch n.Kind {
		case unstable.Table, unstable.ArrayTable:
			name, line := keyOf(&p, n)
			if n.Kind == unstable.ArrayTable {
				index := tables[name]
				tables[name]++
				name = fmt.Sprintf("%s[%d]", name, index)
			}
			lines[name], prefix = line, name+"."
		case unstable.KeyValue:
			name, line := keyOf(&p, n)
			lines[prefix+name] = line
		}
	}
	return lines
}

func keyOf(p *unstable.Parser, n *unstable.Node) (name string, line int) {
	var parts []string
	for it := n.Key(); it.Next(); {
		if line == 0 {
			line = p.Shape(it.Node().Raw).Start.Line
		}
		parts = append(parts, string(it.Node().Data))
	}
	return strings.Join(parts, "."), line
}
