"""RabbitMQ itself: what a server may refuse, how it blocks, freezes and shuts out, and that the rest goes on."""
