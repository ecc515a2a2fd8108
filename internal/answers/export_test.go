package answers

// Kept is how many answers a cache has.
func Kept(c *Cache) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.kept)
}
