package client_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/client"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/sqlstore"
)

type greeting struct {
	Name string `json:"name"`
}

func everywhere(t *testing.T, test func(t *testing.T, db *jobstest.Database, c *client.Client)) {
	for _, engine := range jobstest.Engines() {
		for _, layout := range []sqlstore.Layout{sqlstore.Stock, sqlstore.Extended} {
			t.Run(fmt.Sprintf("%s-%s", engine, layout), func(t *testing.T) {
				db := jobstest.Migrated(t, engine)
				if _, err := sqlstore.CreateTables(t.Context(), db.DB, layout, ""); err != nil {
					t.Fatal(err)
				}
				c, err := client.New(t.Context(), db.DB.DB, db.Driver, client.Options{Slots: 2})
				if err != nil {
					t.Fatal(err)
				}
				test(t, db, c)
			})
		}
	}
}

func TestAJobLivesAndDiesWithItsTransaction(t *testing.T) {
	everywhere(t, func(t *testing.T, db *jobstest.Database, c *client.Client) {
		ctx := t.Context()
		db.MustExec("CREATE TABLE orders (id INT PRIMARY KEY)")
		type transaction interface {
			client.Tx
			Commit() error
			Rollback() error
		}
		begin := map[string]func() (transaction, error){
			"database/sql": func() (transaction, error) { return db.DB.DB.BeginTx(ctx, nil) },
			"sqlx":         func() (transaction, error) { return sqlx.NewDb(db.DB.DB, db.Driver).BeginTxx(ctx, nil) },
		}
		for n, try := range []struct {
			of     string
			commit bool
		}{{"database/sql", true}, {"database/sql", false}, {"sqlx", true}, {"sqlx", false}} {
			commit := try.commit
			tx, err := begin[try.of]()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO orders VALUES (%d)", n)); err != nil {
				t.Fatal(err)
			}
			ids, err := c.EnqueueTx(ctx, tx, client.Job{Kind: "greet", Payload: greeting{"a"}}, client.Job{Kind: "greet", Payload: greeting{"b"}})
			if err != nil {
				t.Fatal(err)
			}
			end := tx.Rollback
			if commit {
				end = tx.Commit
			}
			if err := end(); err != nil && !errors.Is(err, sql.ErrTxDone) {
				t.Fatal(err)
			}
			for _, id := range ids {
				if _, err := c.Get(ctx, id); (err == nil) != commit || (err != nil && !errors.Is(err, client.ErrNotFound)) {
					t.Errorf("%s, committed %t: %v", try.of, commit, err)
				}
			}
		}
	})
}

func TestTheWholeInterface(t *testing.T) {
	everywhere(t, func(t *testing.T, _ *jobstest.Database, c *client.Client) {
		ctx, greeted := t.Context(), make(chan string, 10)
		client.Register(c, "greet", func(_ context.Context, g greeting) error {
			if g.Name == "" {
				return client.Permanent(errors.New("nobody to greet"))
			}
			greeted <- g.Name
			return nil
		})
		ann, err := c.Enqueue(ctx, client.Job{Kind: "greet", Payload: greeting{"Ann"}})
		if err != nil {
			t.Fatal(err)
		}
		nobody, err := c.Enqueue(ctx, client.Job{Kind: "greet"})
		if err != nil {
			t.Fatal(err)
		}
		later, err := c.EnqueueAt(ctx, time.Now().Add(time.Hour), client.Job{Kind: "greet", Payload: greeting{"Late"}})
		if err != nil {
			t.Fatal(err)
		}
		other, err := c.Enqueue(ctx, client.Job{Kind: "other.kind"})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(ctx); err != nil {
			t.Fatal(err)
		}
		if err := c.Start(ctx); err == nil {
			t.Error("a second Start is taken")
		}
		if name := <-greeted; name != "Ann" {
			t.Errorf("greeted %s", name)
		}
		await(t, c, ann, "completed")
		await(t, c, nobody, "failed")
		await(t, c, later, "queued")
		await(t, c, other, "queued")
		if err := c.Requeue(ctx, later); err != nil {
			t.Fatal(err)
		}
		if name := <-greeted; name != "Late" {
			t.Errorf("greeted %s", name)
		}
		await(t, c, later, "completed")
		if list, _, err := c.List(ctx, client.Filter{Kind: "greet", Status: "failed"}); err != nil || len(list) != 1 || list[0].ID != nobody || list[0].LastError == "" {
			t.Errorf("%+v, %v", list, err)
		}
		if s, err := c.Stats(ctx); err != nil || s.Completed != 2 || s.Failed != 1 || s.SuccessRate < 0.6 {
			t.Errorf("%+v, %v", s, err)
		}
		if err := c.Delete(ctx, ann); !errors.Is(err, client.ErrConflict) {
			t.Errorf("deleting a finished job: %v", err)
		}
		if err := c.Delete(ctx, nobody); err != nil {
			t.Error(err)
		}
		if err := c.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
}

// await polls until a job has a status.
func await(t *testing.T, c *client.Client, id, status string) {
	t.Helper()
	var last string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		i, err := c.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if last = i.Status; last == status {
			return
		}
	}
	t.Fatalf("the job is %s, not %s", last, status)
}
