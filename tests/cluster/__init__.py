"""The worker in the cluster profile: real RabbitMQ, real Redis, real PostgreSQL, real processes."""
