"""What the engine does when it can't know: lost answers to COMMIT, conflicts, batches with a bad row."""
