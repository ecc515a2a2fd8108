package cms

import (
	"database/sql"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// placeholder is a column in a model's Path.
var placeholder = regexp.MustCompile(`\{([A-Za-z0-9_]{1,64})\}`)

var columnName = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)

// PathColumns are the columns that a model's Path names, in their order.
func (m Model) PathColumns() (columns []string) {
	for _, found := range placeholder.FindAllStringSubmatch(m.Path, -1) {
		columns = append(columns, found[1])
	}
	return columns
}

// mapped says whether the model's addresses come from columns of its table.
func (m Model) mapped() bool { return m.Path != "" }

func (m Model) validatePath() error {
	rest := placeholder.ReplaceAllString(m.Path, "")
	switch {
	case len(m.PathColumns()) == 0:
		return fmt.Errorf("the path %q of the model %s names no column: write it like blog/{slug}", m.Path, m.Name)
	case strings.ContainsAny(rest, "{}?#"):
		return fmt.Errorf("the path %q of the model %s: {column} is all that may stand in braces", m.Path, m.Name)
	}
	for column := range m.Where {
		if !columnName.MatchString(column) {
			return fmt.Errorf("the model %s names the column %q, which is no column's name", m.Name, column)
		}
	}
	if m.VisibleColumn != "" && !columnName.MatchString(m.VisibleColumn) {
		return fmt.Errorf("the model %s names the column %q, which is no column's name", m.Name, m.VisibleColumn)
	}
	return nil
}

// columnsThere says which columns of a mapped model the table does not have.
func (r *reader) columnsThere() error {
	m := r.model
	need := append(m.PathColumns(), slices.Sorted(maps.Keys(m.Where))...)
	if m.VisibleColumn != "" {
		need = append(need, m.VisibleColumn)
	}
	for _, column := range append(need, "id") {
		if _, there := r.columns[strings.ToLower(column)]; !there {
			return fmt.Errorf("the table %s has no column %s, which the model %s names", r.site.Table(m.Table), column,
				m.Name)
		}
	}
	return nil
}

// mappedPublic is the condition of a mapped model: its own, and Laravel's for rows
// that are deleted softly.
func (r *reader) mappedPublic() (where string, args []any) {
	for _, column := range slices.Sorted(maps.Keys(r.model.Where)) {
		where += " AND c." + r.site.quote(column) + " = ?"
		args = append(args, r.model.Where[column])
	}
	if _, there := r.columns["deleted_at"]; there {
		where += " AND c.deleted_at IS NULL"
	}
	if column := r.model.VisibleColumn; column != "" && !r.query.Now.IsZero() {
		where += " AND c." + r.site.quote(column) + " <= ?"
		args = append(args, WallClock(r.query.Now, r.zone))
	}
	return where, args
}

// mappedKey is the path of a row, made of the values of PathColumns; "" where one
// of them is empty.
func mappedKey(path string, values []sql.RawBytes) string {
	i, whole := 0, true
	key := placeholder.ReplaceAllStringFunc(path, func(string) string {
		value := string(values[i])
		i++
		whole = whole && value != ""
		return value
	})
	if !whole {
		return ""
	}
	return key
}
