"""What `progress=True` shows: a bar of tqdm, or a line on standard error where there is no tqdm."""

import sys
import time


def shown(documents):
    """`documents` is the number of a build's documents, or 0 if that is not known."""
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        return Line(documents)
    return Bar(tqdm, documents)


def stage(done):
    verb = "answer" if "queries" in done else "index"
    if done["finished"]:
        return f"{verb}ed"
    if done.get("merged"):
        merged, of = done["merged"]
        return f"merging {100 * merged // max(of, 1)} %"
    return f"{verb}ing"


def measured(done, documents):
    """How much is done, of how much if that is known, and of what."""
    if "queries" in done:
        return done["queries"], done["total_queries"], " queries"
    if done["total_bytes"] > 0:
        return done["read_bytes"], done["total_bytes"], "B"
    return done["documents"], documents, " documents"


class Bar:
    def __init__(self, tqdm, documents):
        self.tqdm = tqdm
        self.documents = documents
        self.bar = None

    def __call__(self, done):
        if not any(done.values()):
            return  # It has not begun.
        reached, total, unit = measured(done, self.documents)
        if self.bar is None:
            more = {"unit_scale": True, "unit_divisor": 1024} if unit == "B" else {}
            self.bar = self.tqdm(total=total or None, unit=unit, **more)
        self.bar.set_description_str(stage(done), refresh=False)
        if unit == "B":
            self.bar.set_postfix_str(f"{done['documents']:,} documents", refresh=False)
        self.bar.update(reached - self.bar.n)
        if done["finished"]:
            self.bar.refresh()

    def close(self):
        if self.bar is not None:
            self.bar.close()


class Line:
    """Written again once a second."""

    def __init__(self, documents):
        self.documents = documents
        self.next = 0.0
        self.width = 0

    def __call__(self, done):
        now = time.monotonic()
        if not any(done.values()) or now < self.next and not done["finished"]:
            return
        self.next = now + 1
        reached, total, unit = measured(done, self.documents)
        if unit == "B":
            line = f"{done['documents']:,} documents, {reached / 1e6:,.1f} of {total / 1e6:,.1f} MB"
        else:
            line = f"{reached:,} of {total:,}{unit}" if total else f"{reached:,}{unit}"
        line = f"{stage(done)}: {line}"
        # What is left of a longer line before is written over.
        sys.stderr.write("\r" + line.ljust(self.width))
        sys.stderr.flush()
        self.width = len(line)

    def close(self):
        if self.width:
            sys.stderr.write("\n")
