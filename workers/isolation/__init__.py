"""Where handlers run: a loop of their own for async ones, threads for plain ones."""

from workers.isolation.handler_loop import HandlerLoop
from workers.isolation.thread_pool import ThreadPool

__all__ = ["HandlerLoop", "ThreadPool"]
