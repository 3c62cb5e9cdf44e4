// Package report makes of a run's files one page for people: what was promised,
// whether it was kept, and if not, what happened around it.
//
// The page is a single HTML file, with its plots as SVG in it. It loads nothing and
// runs nothing, so it can be mailed, archived and printed. [Write] makes it from
// whatever a run left behind: a run that crashed has a page too, which says what is
// missing. [WriteIndex] makes the page of a soak from its ledger.
//
// The colours are those of Okabe and Ito, which people with any of the usual colour
// vision tell apart; nothing is told by colour alone.
//
// The report judges nothing. It reads what the nemeses did, which no check does.
package report

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"strings"
)

// File is the name of the page in a run directory.
const File = "report.html"

//go:embed style.css page.html panel.html index.html
var files embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"show":    show,
	"long":    long,
	"count":   count,
	"px":      pixel,
	"join":    func(all []string) string { return show(strings.Join(all, ", ")) },
	"promise": promise,
	"style":   style,
}).ParseFS(files, "*.html"))

func style() (template.CSS, error) {
	b, err := files.ReadFile("style.css")
	return template.CSS(b), err
}

// Write makes the page of the run in dir. Files that are missing or damaged are named
// on the page and are no error.
func Write(dir string) error {
	return write(filepath.Join(dir, File), "page.html", newPage(load(dir)))
}

// write fills a template into a file, whole or not at all.
func write(file, name string, data any) error {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, data); err != nil {
		return fmt.Errorf("report %s: %w", file, err)
	}
	beside := file + ".new"
	err := os.WriteFile(beside, b.Bytes(), 0o644)
	if err == nil {
		err = os.Rename(beside, file)
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}
