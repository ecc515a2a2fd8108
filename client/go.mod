module github.com/cmsjobs/cmsjobs/client

go 1.25.0
