// Package usage measures what takes space: the tables of the database and the
// folders of the site, and keeps a figure a class and day for the plots.
//
// It shows nothing; the pages ask it. A walk through a folder is bounded, and
// the name of a folder that was not counted whole says so.
package usage
