"""Live screens: sockets that carry nudges (never state), one hub a process that hears them for all of its sockets."""
