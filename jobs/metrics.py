"""What is counted, and how it is called."""

# The bounds of the histogram of durations: seconds, ascending; one count more than bounds (the last is open).
BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0)
RETENTION = "retention:"  # so begin the counters of what retention has deleted or folded
