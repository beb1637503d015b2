"""What a call costs: time inside the server and requests per second, all variants in turn, in several rounds."""

import statistics

from load import (
    PIPELINE,
    Calls,
    benchmark_tool,
    drive,
    latencies_us,
    random_numbers,
    reply_lines,
    requests_per_second,
    usec_per_call,
)

SLICE = 5000  # keys
ONE_KEY, MANY_KEYS = "one key", "many keys"


class Subject:
    """A variant on its server, with its calls packed and its keys in use."""

    def __init__(self, variant, server, many):
        self.variant, self.server, self.many = variant, server, many
        self.calls = Calls(variant.commands, variant.slug)
        self.fill = Calls(variant.fill, variant.slug)
        self.seed = 0
        self.turns = many  # keys that nobody had before are numbered from here
        self.rows = [words[0].lower() for words in variant.commands]
        self.prepare([self.turns])
        self.lines = sum(reply_lines(reply) for reply in self.sample(self.turns))

    def sample(self, number):
        """The replies to one step, which must be what the variant is about."""
        replies = [self.server.run(*words) for words in self.calls.words(number)]
        expected = self.variant.verdict != "refused"
        if self.variant.grants(replies[0]) != expected:
            raise SystemExit(f"{self.variant.id} was answered {replies}: its rate does not fit the run")
        return replies

    def prepare(self, numbers):
        for words, command in zip(self.variant.fill, self.fill.words(numbers[0])):
            lines = reply_lines(self.server.run(*command))
            whole = numbers[1:] + [numbers[0]] * (-len(numbers[1:]) % PIPELINE)
            if len(numbers) > 1:
                drive(self.server.socket, Calls([words], self.variant.slug).batches(whole), lines * PIPELINE)

    def numbers(self, spread, count):
        if self.variant.fresh:
            self.turns += count
            return list(range(self.turns - count, self.turns))
        if spread == MANY_KEYS:
            return random_numbers(self.next_seed(), count, self.many)
        self.turns += 1
        self.prepare([self.turns])
        return [self.turns] * count

    def next_seed(self):
        self.seed += 1
        return self.seed

    def run(self, spread, count):
        """µs per call inside the server by command, and requests per second, pipelined."""
        numbers = self.numbers(spread, count)
        batches = self.calls.batches(numbers)
        self.server.run("CONFIG", "RESETSTAT")
        seconds = drive(self.server.socket, batches, self.lines * PIPELINE)
        usec = usec_per_call(self.server)
        if not self.variant.fresh:
            self.sample(numbers[-1])
        return {name: usec[name] for name in self.rows}, count * len(self.rows) / seconds

    def run_unpipelined(self, spread, count):
        number = self.numbers(spread, 1)[0]
        words = self.calls.commands[0]
        if spread == MANY_KEYS:
            words = [word.replace("%012d", "__rand_int__") for word in words]
        else:
            words = self.calls.words(number)[0]
        return requests_per_second(self.server, words, count, keys=self.many if spread == MANY_KEYS else 1)


class Best:
    """The best of several rounds, and how far their middle is from it."""

    def __init__(self, better):
        self.better, self.values = better, []

    def add(self, value):
        self.values.append(value)

    @property
    def value(self):
        return self.better(self.values)

    @property
    def spread(self):
        middle = statistics.median(self.values)
        return max(middle / self.value, self.value / middle) - 1


def label(subject, row):
    variant = subject.variant
    if row == subject.rows[0]:
        return variant.id
    return f"{row.upper()}, {variant.verdict}"


def measure(subjects, rounds, count, unpipelined_rounds, singles, tell):
    """{(label, spread): {"usec": Best, "rps": Best, "rps1": Best}}"""
    table = {}
    # In slices, so that no row has its keys earlier in the server's tables than another.
    for start in range(0, subjects[0].many, SLICE):
        tell(f"keys from {start}")
        for subject in subjects:
            if not subject.variant.fresh:
                subject.prepare(list(range(start, start + SLICE)))

    def cell(subject, row, spread):
        fresh = {"usec": Best(min), "rps": Best(max), "rps1": Best(max)}
        return table.setdefault((label(subject, row), spread), fresh)

    def run_all(some, spread):
        for subject in some:
            usec, rps = subject.run(spread, count)
            for row in subject.rows:
                cell(subject, row, spread)["usec"].add(usec[row])
                cell(subject, row, spread)["rps"].add(rps)

    for server in {s.server for s in subjects}:
        server.settled_memory()
    for number in range(rounds):
        tell(f"round {number + 1} of {rounds}, pipelined")
        run_all([s for s in subjects if not s.variant.many_only], ONE_KEY)
        run_all([s for s in subjects if not s.variant.fresh], MANY_KEYS)
    for number in range(rounds):  # after the others: new keys make tables grow, and whoever comes next pays for it
        tell(f"round {number + 1} of {rounds}, new keys")
        run_all([s for s in subjects if s.variant.fresh], MANY_KEYS)
    if not benchmark_tool():
        tell("no redis-benchmark here: requests without pipelining are left out")
        return table
    for number in range(unpipelined_rounds):
        tell(f"round {number + 1} of {unpipelined_rounds}, not pipelined")
        for spread in (ONE_KEY, MANY_KEYS):
            for subject in subjects:
                if not subject.variant.many_only:
                    rps = subject.run_unpipelined(spread, singles)
                    cell(subject, subject.rows[0], spread)["rps1"].add(rps)
    return table


LATENCY_OF = [
    "INCR, plain",
    "SET PX, plain",
    "RL.TOKENBUCKET, granted",
    "RL.TOKENBUCKET, refused",
    "Lua bucket, granted",
]


def latency(subjects, per_second, seconds, rounds, tell):
    """{label: (p50, p99, p99.9) in µs}, each the middle of the rounds."""
    chosen = [s for name in LATENCY_OF for s in subjects if s.variant.id == name]
    found = {s.variant.id: [] for s in chosen}
    for number in range(rounds):
        tell(f"round {number + 1} of {rounds}, latency at {per_second} calls a second")
        for subject in chosen:
            taken = latencies_us(subject.server, subject.calls, subject.lines, per_second, seconds, subject.many)
            found[subject.variant.id].append([taken[int(len(taken) * p)] for p in (0.5, 0.99, 0.999)])
    return {name: [statistics.median(column) for column in zip(*rows)] for name, rows in found.items()}
