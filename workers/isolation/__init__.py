"""Where handlers run: a loop of their own for async ones, child processes for plain ones, threads for tiny ones."""

from workers.isolation.forkserver import ForkServer, supported
from workers.isolation.handler_loop import HandlerLoop
from workers.isolation.processes import ProcessPool
from workers.isolation.thread_pool import ThreadPool

__all__ = ["ForkServer", "HandlerLoop", "ProcessPool", "ThreadPool", "supported"]
