# SPDX-License-Identifier: MIT
"""Reads the text of GET /metrics as strictly as its format says, and as Prometheus' own tools do."""
import re, shutil, subprocess

from prometheus_client.parser import text_string_to_metric_families

TYPE = "text/plain; version=0.0.4; charset=utf-8"
NAME = r"[a-z_][a-z0-9_]*"
LABEL = NAME + r'="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?[0-9.e+-]+)")
PARTS = {"histogram": {"_bucket", "_sum", "_count"}, "counter": {""}, "gauge": {""}}


def check_lines(text):
    """Each family is described once, and its samples follow at once, each once."""
    family, kind, seen, samples = None, None, set(), set()
    assert text.endswith("\n")
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            family = line.split(" ", 3)[2]
            assert family not in seen, line
            seen.add(family)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == family and kind in PARTS, line
            assert (kind == "counter") == name.endswith("_total"), line
        else:
            found = SAMPLE.fullmatch(line)
            assert found, line
            assert found[1].startswith(family) and found[1][len(family):] in PARTS[kind], line
            assert (found[1], found[2]) not in samples, line
            samples.add((found[1], found[2]))


def check_histogram(family):
    """Buckets are cumulative, and the last one is the count."""
    rows = {}
    for s in family.samples:
        key = tuple(sorted((k, v) for k, v in s.labels.items() if k != "le"))
        rows.setdefault(key, {}).setdefault(s.name[len(family.name):], []).append((s.labels.get("le"), s.value))
    for parts in rows.values():
        bounds = [float(le) for le, _ in parts["_bucket"]]
        counts = [value for _, value in parts["_bucket"]]
        assert bounds == sorted(set(bounds)) and bounds[-1] == float("inf")
        assert counts == sorted(counts) and counts[-1] == parts["_count"][0][1]
        assert parts["_sum"][0][1] >= 0


def promtool(text):
    """Where Prometheus' own checker is installed it has nothing to say."""
    if shutil.which("promtool"):
        p = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True, timeout=60)
        assert p.returncode == 0 and not p.stdout and not p.stderr, (p.stdout, p.stderr)


def read(text):
    """{"name{a=b,c=d}": value} of a text that is without fault."""
    check_lines(text)
    values = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation and family.type in PARTS, family
        if family.type == "histogram":
            check_histogram(family)
        for s in family.samples:
            labels = ",".join(f"{k}={v}" for k, v in sorted(s.labels.items()))
            values[f"{s.name}{{{labels}}}" if labels else s.name] = s.value
    promtool(text)
    return values
