"""What must be reached and what is aimed at: the numbers of "Speed and scale", each as one comparison in one run."""

from dataclasses import dataclass

from benchmarks.stats import Ratio


@dataclass(frozen=True)
class Target:
    """One side's figure against another's (`other`), or against a number where there is no other.

    `must` and `aim` are ratios to the other, or the number itself; None: nothing was promised. `less`: the smaller the
    better. `measure` names the number of a sample.
    """

    figure: str
    one: str
    other: str | None
    must: float | None
    aim: float | None
    less: bool = False
    measure: str = "value"

    @property
    def name(self) -> str:
        """For the table: what is compared with what."""
        what = self.figure if self.measure == "value" else f"{self.figure} {self.measure}"
        return f"{what}: {self.one}" + (f" / {self.other}" if self.other else "")

    def verdict(self, value: float) -> str:
        """ "aimed", "reached", "missed"; "not aimed" where there is an aim alone, "-" where nothing was promised."""
        if self.aim is not None and self._holds(value, self.aim):
            return "aimed"
        if self.must is None:
            return "-" if self.aim is None else "not aimed"
        return "reached" if self._holds(value, self.must) else "missed"

    def _holds(self, value: float, bound: float) -> bool:
        return value <= bound if self.less else value >= bound


@dataclass(frozen=True)
class Comparison:
    """A target and what was measured; `ratio` where there is another side.

    `by_cpu`: how many jobs the one does with the processor time that the other takes for one, servers included; None
    where that was not measured. It says what the ratio would be were nothing waited for; the load hardly changes it.
    """

    target: Target
    value: float
    ratio: Ratio | None = None
    by_cpu: float | None = None

    @property
    def verdict(self) -> str:
        return self.target.verdict(self.value)


TARGETS = (
    Target("drain", "turno", "celery-prefork", 2.0, None),
    Target("drain", "turno", "procrastinate", 7.0, None),
    Target("drain", "turno", "pgqueuer", None, 1.0),
    Target("drain", "turno-cluster", "celery-prefork", 1.0, None),
    Target("drain", "turno-cluster", "celery-results", 6.0, None),
    Target("drain", "turno-cluster", "celery-solo", None, 1.0),
    Target("drain", "turno-process", "celery-prefork", 1.0, 1.5),
    Target("drain", "turno-thread", "celery-prefork", None, None),
    Target("enqueue", "turno", "procrastinate", 1.0, 2.0),
    Target("enqueue", "turno-cluster", "procrastinate", 1.0, 2.0),
    Target("bulk", "turno", "procrastinate", 1.0, 2.0),
    Target("bulk", "turno-cluster", "procrastinate", 1.0, 2.0),
    Target("bulk", "turno-http", "procrastinate", 0.5, 2.0),
    Target("http", "turno-http", "bare-http", 0.8, 1.0),
    Target("latency", "turno", "pgqueuer", 1.0, 1.0, less=True),
    Target("latency", "turno-cluster", "pgqueuer", 2.0, 1.0, less=True),
    Target("scheduled", "turno", None, 100.0, 20.0, less=True),
    Target("scheduled", "turno-cluster", None, 100.0, 20.0, less=True),
    Target("cancel", "turno", None, 1000.0, 200.0, less=True),
    Target("cancel", "turno-cluster", None, 1000.0, 200.0, less=True),
    Target("keys", "turno", None, 0.8, 0.95),
    Target("keys", "turno-cluster", None, 0.7, 0.95),
    Target("memory", "turno", None, 0.1, None, less=True),
    Target("memory", "turno-process", None, 0.1, None, less=True),
    Target("million", "turno", None, 5.0, 1.0, less=True, measure="percent"),
    Target("viewers", "turno-crowd", None, 2.0, 1.1, less=True),
    Target("start", "turno-process", None, 90.0, 60.0, less=True, measure="pss_mb"),
    Target("start", "turno-http", None, 120.0, 90.0, less=True, measure="pss_mb"),
)
