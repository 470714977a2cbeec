# An app that saves: 4 KB to disk, a little thought, and again. Prints how long saving took, ms.
# Run as whoever is to wait: victim.py SAVES
import json
import os
import sys
import time

THOUGHT_S = 0.02

file = os.open("/mnt/victim", os.O_WRONLY | os.O_CREAT, 0o600)
took_ms = []
for _ in range(int(sys.argv[1])):
    begin = time.monotonic()
    os.pwrite(file, bytes(4096), 0)
    os.fsync(file)
    took_ms.append((time.monotonic() - begin) * 1000)
    time.sleep(THOUGHT_S)
took_ms.sort()
print(json.dumps({
    "saves": len(took_ms),
    "mean_ms": sum(took_ms) / len(took_ms),
    "median_ms": took_ms[len(took_ms) // 2],
    "worst_ms": took_ms[-1],
}))
