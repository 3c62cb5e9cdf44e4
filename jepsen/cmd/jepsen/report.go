package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"limitd/jepsen/history"
	"limitd/jepsen/report"
)

// reportVerb makes the page of a run, or of a soak if its ledger lies in the directory.
func reportVerb(args []string) (int, error) {
	if len(args) != 1 || strings.HasPrefix(args[0], "-") {
		return unknown, errors.New("usage: jepsen report DIR")
	}
	file, err := filepath.Join(args[0], report.File), error(nil)
	if _, none := os.Stat(filepath.Join(args[0], history.LedgerFile)); none == nil {
		file, err = filepath.Join(args[0], report.IndexFile), report.WriteIndex(args[0])
	} else {
		err = report.Write(args[0])
	}
	if err != nil {
		return unknown, err
	}
	fmt.Println(file)
	return valid, nil
}
