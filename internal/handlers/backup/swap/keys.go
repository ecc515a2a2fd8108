package swap

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// KeepKeys takes the foreign keys of tables that stay into the set, where they refer to
// tables that are exchanged: a key follows the table that it refers to when that is renamed.
func (m *MySQL) KeepKeys(ctx context.Context, s *Set) error {
	keys, err := m.references(ctx, "%")
	if err != nil {
		return err
	}
	texts := map[string][]string{}
	for _, k := range keys {
		if !slices.Contains(s.Tables, k.to) || slices.Contains(s.Tables, k.table) || Temporary(k.table) {
			continue
		}
		if texts[k.table] == nil {
			var name, create string
			if err := m.conn.QueryRowContext(ctx, "SHOW CREATE TABLE "+quoted(k.table)).Scan(&name,
				&create); err != nil {
				return fmt.Errorf("reading how the table %s is made: %w", k.table, err)
			}
			texts[k.table] = strings.Split(create, "\n")
		}
		for _, line := range texts[k.table] {
			if f := foreignKey.FindStringSubmatch(line); f != nil && unquoted(f[1]) == k.name {
				s.Keys = append(s.Keys, Key{Table: k.table, Name: k.name, Clause: clause(line), Kept: true})
			}
		}
	}
	return nil
}

// reference is a foreign key of the database.
type reference struct{ table, name, to string }

// references are the foreign keys that refer to tables that fit a LIKE pattern.
func (m *MySQL) references(ctx context.Context, like string) (all []reference, err error) {
	rows, err := m.conn.QueryContext(ctx, "SELECT TABLE_NAME, CONSTRAINT_NAME, REFERENCED_TABLE_NAME FROM "+
		"information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = DATABASE() AND "+
		"UNIQUE_CONSTRAINT_SCHEMA = DATABASE() AND REFERENCED_TABLE_NAME LIKE ?", like)
	if err != nil {
		return nil, fmt.Errorf("listing the foreign keys: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var r reference
		if err := rows.Scan(&r.table, &r.name, &r.to); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// freeKept takes the foreign keys from tables that stayed which followed a table that
// is no longer live.
func (m *MySQL) freeKept(ctx context.Context, s *Set) error {
	keys, err := m.references(ctx, strings.ReplaceAll(Prefix+s.ID, "_", `\_`)+`\_%`)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if Temporary(k.table) {
			continue
		}
		if err := m.alter(ctx, k.table, "DROP FOREIGN KEY "+quoted(k.name)); err != nil {
			return fmt.Errorf("renewing the foreign key %s of %s: %w", k.name, k.table, err)
		}
	}
	return nil
}

// addKeys makes the foreign keys that are not there, a statement for each table. Rows
// are not checked: they were as they are when they were saved.
func (m *MySQL) addKeys(ctx context.Context, s *Set) (problems []string, err error) {
	there, err := m.constraints(ctx, "FOREIGN KEY")
	if err != nil {
		return nil, err
	}
	var tables []string
	clauses := map[string][]string{}
	for _, k := range s.Keys {
		switch {
		case there[[2]string{k.Table, k.Name}]:
			continue
		case k.Kept:
			if err := m.alter(ctx, k.Table, "ADD "+k.Clause); err != nil {
				problems = append(problems,
					fmt.Sprintf("the table %s stayed, and its foreign key %s does not fit what "+
						"was restored: %v", k.Table, k.Name, err))
			}
			continue
		}
		if clauses[k.Table] == nil {
			tables = append(tables, k.Table)
		}
		clauses[k.Table] = append(clauses[k.Table], "ADD "+k.Clause)
	}
	for _, table := range tables {
		if err := m.alter(ctx, table, strings.Join(clauses[table], ", ")); err != nil {
			return problems, fmt.Errorf("making the foreign keys of %s: %w", table, err)
		}
	}
	return problems, nil
}

func (m *MySQL) alter(ctx context.Context, table, change string) error {
	_, err := m.conn.ExecContext(ctx, "ALTER TABLE "+quoted(table)+" "+change)
	return err
}

// nameChecks gives checks their names back.
func (m *MySQL) nameChecks(ctx context.Context, s *Set) error {
	if len(s.Checks) == 0 {
		return nil
	}
	there, err := m.constraints(ctx, "CHECK")
	if err != nil {
		return err
	}
	for _, c := range s.Checks {
		if !there[[2]string{c.Table, c.Now}] {
			continue
		}
		if err := m.alter(ctx, c.Table, "DROP CHECK "+quoted(c.Now)+", ADD "+c.Clause); err != nil {
			return fmt.Errorf("making the check %s of %s: %w", c.Name, c.Table, err)
		}
	}
	return nil
}

// constraints are the constraints of a type, by table and name.
func (m *MySQL) constraints(ctx context.Context, kind string) (map[[2]string]bool, error) {
	rows, err := m.conn.QueryContext(ctx, "SELECT TABLE_NAME, CONSTRAINT_NAME FROM "+
		"information_schema.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA = DATABASE() AND CONSTRAINT_TYPE = ?", kind)
	if err != nil {
		return nil, fmt.Errorf("listing the constraints: %w", err)
	}
	defer rows.Close()
	all := map[[2]string]bool{}
	for rows.Next() {
		var table, name string
		if err := rows.Scan(&table, &name); err != nil {
			return nil, err
		}
		all[[2]string{table, name}] = true
	}
	return all, rows.Err()
}
