"""What a driver was told to load is with the broker when it has answered, whatever the broker's memory is short of."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks import tally
from benchmarks.driver import Driver
from benchmarks.sides.peers import ensure_peers
from tests.kit.processes import PROJECT
from tests.kit.rabbitmq_server import running_rabbitmq

JOBS = 20_000  # more than all buffers between the two hold
WATERMARK = "vm_memory_high_watermark"


@pytest.mark.longo
def test_nothing_is_lost_of_a_load_while_the_broker_takes_nothing_for_want_of_memory(tmp_path):
    with running_rabbitmq(tmp_path / "rabbitmq", **{f"{WATERMARK}.absolute": "32MB"}) as node:
        env = os.environ | {"BENCHMARK_BROKER": node.url, tally.VARIABLE: str(tmp_path), "PYTHONPATH": str(PROJECT)}
        command = [str(ensure_peers()), "-m", "benchmarks.peers.with_celery"]
        driver = Driver(command, env, PROJECT, tmp_path / "driver.log")
        try:
            driver.ask("clear")
            with ThreadPoolExecutor(1) as pool:
                loaded = pool.submit(driver.ask, "load", jobs=JOBS)
                time.sleep(5)  # a connection of Celery's own settings is given up after one
                waited = not loaded.done()
                node.ctl(f"set_{WATERMARK}", "absolute", "2GB")
                loaded.result()
            left = driver.ask("left")
        finally:
            driver.close()

    assert waited
    assert left == JOBS
