package watch

// Has reports whether Get knows an object, without unpacking it.
func (w *Watcher) Has(key Key) bool {
	k := w.informer(key.Kind)
	return k != nil && k.store.get(key) != nil
}
