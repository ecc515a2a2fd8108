package history

import (
	"context"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// variants are the shapes of tables. Claiming is not what is tested here: one
// mode does.
func variants() []tablestest.Variant {
	var list []tablestest.Variant
	for _, engine := range jobstest.Engines() {
		list = append(list, tablestest.Variant{Engine: engine, Layout: tables.Stock},
			tablestest.Variant{Engine: engine, Layout: tables.Extended},
			tablestest.Variant{Engine: engine, Layout: tables.Stock, Indexed: true})
		list = append(list, tablestest.WallClock(engine)...)
	}
	return list
}

var bg = context.Background()

// fixture is a history with the queue that fills it.
type fixture struct {
	*Store
	queue *queue.Store
	*tablestest.Fixture
}

func openFixture(t testing.TB, v tablestest.Variant, db *jobstest.Database) *fixture {
	t.Helper()
	f := &fixture{Fixture: tablestest.Open(t, v, db)}
	s, err := queue.New(bg, f.Tables)
	if err != nil {
		t.Fatal(err)
	}
	f.queue, f.Queue, f.Store = s, s, New(f.Tables)
	return f
}

// another is the history as another process has it.
func (f *fixture) another() *Store {
	f.T.Helper()
	t, err := tables.Open(bg, f.DB.DB, f.Options())
	if err != nil {
		f.T.Fatal(err)
	}
	return New(t)
}

// php is a row of Laravel's own.
const php = `{"uuid":"8a2e","displayName":"App\\Jobs\\Mail","job":"Illuminate\\Queue\\CallQueuedHandler@call","maxTries":null,"data":{"commandName":"X","command":"O:1:\"X\":0:{}"}}`
