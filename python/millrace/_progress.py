"""What `build(progress=True)` shows: a bar of tqdm, or a line on standard error where there is no tqdm."""

import sys
import time


def shown(documents):
    """`documents` is their number, or 0 if that is not known."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return Line(documents)
    return Bar(tqdm, documents)


def stage(done):
    if done["finished"]:
        return "indexed"
    if done["merged"]:
        merged, of = done["merged"]
        return f"merging {100 * merged // max(of, 1)} %"
    return "indexing"


class Bar:
    """Of bytes, if files are read, or else of documents."""

    def __init__(self, tqdm, documents):
        self.tqdm = tqdm
        self.documents = documents
        self.bar = None

    def __call__(self, done):
        of_files = done["total_bytes"] > 0
        if self.bar is None:
            total = done["total_bytes"] or self.documents or None
            unit = {"unit": "B", "unit_scale": True, "unit_divisor": 1024} if of_files else {"unit": " documents"}
            self.bar = self.tqdm(total=total, **unit)
        self.bar.set_description_str(stage(done), refresh=False)
        if of_files:
            self.bar.set_postfix_str(f"{done['documents']:,} documents", refresh=False)
        self.bar.update((done["read_bytes"] if of_files else done["documents"]) - self.bar.n)
        if done["finished"]:
            self.bar.refresh()

    def close(self):
        if self.bar is not None:
            self.bar.close()


class Line:
    """Written anew once a second."""

    def __init__(self, documents):
        self.documents = documents
        self.next = 0.0
        self.width = 0

    def __call__(self, done):
        now = time.monotonic()
        if now < self.next and not done["finished"]:
            return
        self.next = now + 1
        line = f"{stage(done)}: {done['documents']:,} documents"
        if done["total_bytes"] > 0:
            line += f", {done['read_bytes'] / 1e6:,.1f} of {done['total_bytes'] / 1e6:,.1f} MB"
        elif self.documents:
            line = line.replace(" documents", f" of {self.documents:,} documents")
        # What is left of a longer line before is written over.
        sys.stderr.write("\r" + line.ljust(self.width))
        sys.stderr.flush()
        self.width = len(line)

    def close(self):
        if self.width:
            sys.stderr.write("\n")
