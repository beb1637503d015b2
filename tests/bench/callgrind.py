"""A server under callgrind that counts only while asked to, and a reader of what it counted."""

import collections
import glob
import os
import re
import shutil
import subprocess

from servers import BenchServer

COST_LINE = re.compile(r"^[+\-*\d]\S* (\d+)$")
NAME = re.compile(r"^\((\d+)\)(?: (.*))?$")


class CountingServer(BenchServer):
    def __init__(self):
        for tool in ("valgrind", "callgrind_control"):
            if not shutil.which(tool):
                raise SystemExit(f"{tool} is missing: apt-get install valgrind")
        # One timer tick a second: nothing but the calls themselves should be counted.
        settings = ["--appendonly", "no", "--hz", "1", "--dynamic-hz", "no", "--activerehashing", "no"]
        prefix = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--trace-children=yes"]
        super().__init__(*settings, prefix=prefix, patience_s=60)

    def __enter__(self):
        super().__enter__()
        self.pid = self.info("server")["process_id"]
        return self

    def control(self, *words):
        subprocess.run(["callgrind_control", *words, self.pid], check=True, capture_output=True)

    def counted(self, work):
        """The profile of what the server does while work runs."""
        self.control("--instr=on")
        work()
        self.control("--instr=off")
        self.control("--dump")
        newest = max(glob.glob(os.path.join(self.folder, f"callgrind.out.{self.pid}.*")), key=os.path.getmtime)
        profile = Profile(newest)
        os.remove(newest)
        return profile


class Profile:
    """Instructions: total, self by function and object, and of each call from one function to another."""

    def __init__(self, path):
        self.total = 0
        self.self_of = collections.Counter()  # (object, function)
        self.edges = collections.Counter()  # (caller, callee): inclusive
        self.calls = collections.Counter()  # (caller, callee): how often
        names = {"fn": {}, "ob": {}}
        here = {"fn": "", "ob": ""}
        callee, called = {}, None
        with open(path) as lines:
            for line in map(str.rstrip, lines):
                cost = COST_LINE.match(line)
                if cost and called is not None:
                    edge = (self.key(here), self.key({**here, **callee}))
                    self.edges[edge] += int(cost[1])
                    self.calls[edge] += called
                    callee, called = {}, None
                elif cost:
                    self.self_of[self.key(here)] += int(cost[1])
                    self.total += int(cost[1])
                elif line.startswith("calls="):
                    called = int(line[6:].split()[0])
                elif line[:3] in ("fn=", "ob="):
                    here[line[:2]] = self.name(names[line[:2]], line[3:])
                elif line[:4] in ("cfn=", "cob="):
                    callee[line[1:3]] = self.name(names[line[1:3]], line[4:])

    @staticmethod
    def name(known, text):
        found = NAME.match(text)
        if found[2]:
            known[found[1]] = found[2]
        return known[found[1]]

    @staticmethod
    def key(place):
        return os.path.basename(place["ob"]), place["fn"].split("'")[0]

    def inclusive(self, function):
        """Of a function that does not call itself."""
        return sum(cost for (_, callee), cost in self.edges.items() if callee[1] == function)

    def own(self, object_name):
        return sum(cost for (obj, _), cost in self.self_of.items() if obj == object_name)

    def out_of(self, object_name):
        """What an object asks of others: {function: inclusive}."""
        found = collections.Counter()
        for (caller, callee), cost in self.edges.items():
            if caller[0] == object_name and callee[0] != object_name:
                found[callee[1]] += cost
        return found

    def calls_out_of(self, object_name):
        return sum(n for (a, b), n in self.calls.items() if a[0] == object_name and b[0] != object_name)

    def below(self, functions):
        """What these functions call, one another aside: {function: inclusive}."""
        found = collections.Counter()
        for (caller, callee), cost in self.edges.items():
            if caller[1] in functions and callee[1] not in functions:
                found[callee[1]] += cost
        return found
