package jobstest

import "testing"

func TestEveryEngineIsThere(t *testing.T) {
	for _, engine := range Engines() {
		t.Run(string(engine), func(t *testing.T) {
			db := Migrated(t, engine)
			var n int
			if err := db.Get(&n, "SELECT COUNT(*) FROM cmsjobs_migrations"); err != nil || n == 0 {
				t.Errorf("%d migrations, %v", n, err)
			}
		})
	}
}

func TestAKilledServerComesBackWithItsData(t *testing.T) {
	s, err := NewMariaDB()
	if err != nil {
		Skip(t, "%v", err)
	}
	for range 2 {
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		if err := s.Kill(); err != nil {
			t.Logf("killed: %v", err)
		}
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	s.Stop()
}
