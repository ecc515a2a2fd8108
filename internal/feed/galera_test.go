package feed

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// A node's log shows what another node of its cluster writes, where log_slave_updates is
// on. Where it is off, the feed says so: it would be relied on, and see half of the rows.
func TestBinlogOfACluster(t *testing.T) {
	if os.Getenv("CMSJOBS_CLUSTER") == "" {
		t.Skip("a cluster takes half a minute to start: make cluster runs this")
	}
	for _, updates := range []string{"ON", "OFF"} {
		t.Run("log_slave_updates "+updates, func(t *testing.T) {
			g, err := jobstest.NewGalera(2, nil, "--log-bin=log", "--log-slave-updates="+updates)
			if err != nil {
				if strings.Contains(err.Error(), "installed") {
					jobstest.Skip(t, "%v", err)
				}
				t.Fatal(err)
			}
			t.Cleanup(g.Stop)
			var sites []*site
			for i, node := range g.Nodes {
				if i == 0 {
					sqlx.NewDb(node.RootMySQL(t), "mysql").MustExec("CREATE DATABASE site")
				}
				dsn := node.MySQLDSN("site")
				db, err := sqlx.Open("mysql", dsn)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { db.Close() })
				opened := &jobstest.Database{DB: db, Engine: jobstest.MariaDB, Driver: "mysql", DSN: dsn}
				if i == 0 {
					sites = append(sites, newSite(t, opened))
					opened.MustExec("CREATE TABLE posts (id INT PRIMARY KEY, name VARCHAR(100))")
				} else {
					sites = append(sites, &site{Database: opened})
				}
			}
			log := &Binlog{DSN: sites[0].Database.DSN, Schema: "site", Table: "jobs", Content: []string{"posts"}}
			if updates == "OFF" {
				u := needs(t, Try(t.Context(), log, 20*time.Second), "other nodes")
				if !strings.Contains(u.Fix, "log_slave_updates=ON") {
					t.Errorf("the remedy is %q", u.Fix)
				}
				return
			}
			h := listen(t, log)
			sites[1].insert(t, "default", 0)
			h.says(t, Inserted, "a row that the other node took")
			sites[1].Database.MustExec("INSERT INTO posts VALUES (2, 'x')")
			h.says(t, Edited, "an edit that the other node took")
			sites[0].insert(t, "default", 0)
			h.says(t, Inserted, "a row that this node took")
		})
	}
}
