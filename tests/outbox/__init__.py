"""The way to the broker: messages that stand with their jobs, the relay, and what finds a lost one."""
