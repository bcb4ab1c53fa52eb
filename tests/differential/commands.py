"""Random TS.* commands: a small world of keys, labels and times.

Few keys and short spans, so that late samples, duplicates, deletes and rules
interact often. Some commands are spoilt: a word is dropped, doubled, swapped or
replaced, to compare error texts and the order of checks.
"""

KEYS = [f"k{i}" for i in range(9)]
POLICIES = ["BLOCK", "FIRST", "LAST", "MIN", "MAX", "SUM"]
AGGREGATORS = "avg sum min max range count first last std.p std.s var.p var.s twa".split()
SOURCES, DESTINATIONS = KEYS[:3], KEYS[4:]
SUMMING = {"avg", "sum", "std.p", "std.s", "var.p", "var.s", "twa"}
REDUCERS = "avg sum min max range count std.p std.s var.p var.s".split()
LABELS = {"a": ["1", "2", "3"], "b": ["x", "y"], "room": ["kitchen", "hall"], "name": ["temp"]}
JUNK = ["", "x", "-1", "0", "1.5", "1e400", "9223372036854775808", "+", "-", "(", "a=b", "LABELS", "FILTER",
        "AGGREGATION", "COUNT", "RETENTION", "EMPTY", "GROUPBY", "REDUCE", "WITHLABELS", "LATEST", "ALIGN", "4096", "50"]
# Mistakes that random spoiling rarely makes.
MISTAKES = [["ENCODING", "x"], ["CHUNK_SIZE", "x"], ["DUPLICATE_POLICY"], ["LABELS", "a", "("]]
SPAN = 3000


class Commands:
    """Draws commands from a random source; the same seed draws the same commands.

    A world that forgets has short retentions and no deletes: the effect of
    deleting the newest sample on expired ones differs between the servers. A world
    of large values has no sums, in which 1.12 loses the small ones. A world of
    rules creates them before the first sample and deletes no samples: 1.12 counts a
    bucket only from the rule on, and crashes on deletes at the end of a source.
    """

    def __init__(self, random):
        self.random = random
        self.is_ruled = random.random() < 0.35
        self.forgets = not self.is_ruled and random.random() < 0.3
        self.is_large = random.random() < 0.3
        names = [name for name in AGGREGATORS if not (self.is_large and name in SUMMING)]
        self.aggregators, self.reducers = names, [name for name in REDUCERS if name in names]
        self.now = 0
        self.ruled = None
        """A source that has a rule."""

    def first(self):
        """The commands that set up the world: keys with rules between them, or none."""
        if not self.is_ruled:
            return []
        commands = [["TS.CREATE", key, "LABELS", *self.labels()] for key in KEYS]
        names = [name for name in self.aggregators if name != "twa"]
        for destination in DESTINATIONS:
            rule = ["TS.CREATERULE", self.random.choice(SOURCES), destination, "AGGREGATION", self.random.choice(names)]
            rule.append(self.random.choice(["7", "10", "50", "100", "1000"]))
            commands.append(rule + self.random.choice([[], ["3"], ["12"]]))
            self.ruled = rule[1]
        return commands

    def makers(self):
        return [
            (30, self.add), (8, self.madd), (4, self.create), (2, self.alter), (4, self.increment), (0 if self.forgets or self.is_ruled else 3, self.delete),
            (4, self.get), (9, self.range), (4, self.mget), (9, self.mrange), (3, self.queryindex), (3, self.info),
            (4, self.createrule), (1, self.deleterule), (2, self.keyspace),
        ]

    def draw(self):
        makers = self.makers()
        maker = self.random.choices([m for _, m in makers], [w for w, _ in makers])[0]
        words = [str(word) for word in maker()]
        spoilt = self.spoil(words) if self.random.random() < 0.12 else words
        is_barred = self.makes_or_ends_a_rule(spoilt) or self.renames_a_source(spoilt)
        return words if is_barred or retentions(spoilt) - retentions(words) else spoilt

    def makes_or_ends_a_rule(self, words):
        """Whether a spoilt command would; rules are created only at the start."""
        if words[0] not in ("TS.CREATERULE", "TS.DELETERULE") or len(words) < 3:
            return False
        source, destination = words[1:3]
        # Spoilt writes may have created keys of other names.
        if source == destination or "missing" in (source, destination):
            return False
        if words[0] == "TS.DELETERULE":
            return destination in DESTINATIONS
        is_taken = source in DESTINATIONS or destination in DESTINATIONS or destination == self.ruled
        return not (self.is_ruled and is_taken)

    def renames_a_source(self, words):
        """A new series of that key would have no rules and could become a destination."""
        return self.is_ruled and words[0] in ("RENAME", "RENAMENX") and len(words) > 1 and words[1] in SOURCES

    def spoil(self, words):
        random = self.random
        words = list(words)
        for _ in range(random.choice([1, 1, 2])):
            at = random.randrange(1, len(words)) if len(words) > 1 else 0
            how = random.randrange(5)
            if how == 0 and len(words) > 1:
                del words[at]
            elif how == 1:
                words.insert(at or 1, words[at])
            elif how == 2 and at:
                words[at] = random.choice(JUNK)
            elif how == 3:
                words.append(random.choice(JUNK))
            elif at:
                other = random.randrange(1, len(words))
                words[at], words[other] = words[other], words[at]
        return words

    # The small world.

    def key(self):
        return self.random.choice(KEYS)

    def written(self):
        """A key to write to that is not the destination of a rule."""
        return self.random.choice(KEYS[:4] if self.is_ruled else KEYS)

    def chance(self, share):
        return self.random.random() < share

    def time(self):
        """Mostly ascending, often late, sometimes a duplicate."""
        if self.chance(0.5):
            self.now += self.random.choice([1, 1, 5, 10, 10, 50])
            return self.now
        return self.random.randrange(max(1, self.now + 20))

    def value(self):
        random = self.random
        return random.choice([
            random.randint(-9, 9), random.randint(-9, 9), round(random.uniform(-100, 100), 2),
            random.uniform(-1, 1), 10 ** random.randint(0, 15 if self.is_large else 2), 0.1,
        ])

    def labels(self):
        names = self.random.sample(list(LABELS), self.random.randrange(len(LABELS) + 1))
        return [word for name in names for word in (name, self.random.choice(LABELS[name]))]

    def create_options(self):
        words, random = [], self.random
        if self.chance(0.25):
            words += ["RETENTION", random.choice([0, 100, 1000] if self.forgets else [0, 100000])]
        if self.chance(0.15):
            words += random.choice([["ENCODING", "COMPRESSED"], ["ENCODING", "UNCOMPRESSED"], ["UNCOMPRESSED"]])
        if self.chance(0.15):
            words += ["CHUNK_SIZE", random.choice([48, 64, 128, 4096, 4096, 50])]
        if self.chance(0.3):
            words += ["DUPLICATE_POLICY", random.choice(POLICIES)]
        if self.chance(0.1):
            words += ["IGNORE", random.choice([0, 5, 20]), random.choice([0, 1, 2.5])]
        if self.chance(0.6):
            words += ["LABELS", *self.labels()]
        return words + (random.choice(MISTAKES) if self.chance(0.03) else [])

    # Writes.

    def create(self):
        return ["TS.CREATE", self.written(), *self.create_options()]

    def alter(self):
        """No CHUNK_SIZE: 1.12 may lose a sample when a late one follows. No
        RETENTION where samples expire: 1.12 would restore expired ones."""
        words = []
        while not words or {"CHUNK_SIZE", "UNCOMPRESSED"} & set(words) or (self.forgets and "RETENTION" in words):
            words = self.create_options()
        return ["TS.ALTER", self.written(), *words]

    def add(self):
        words = ["TS.ADD", self.written(), self.time(), self.value()]
        if self.chance(0.1):
            words += ["ON_DUPLICATE", self.random.choice(POLICIES)]
        return words + (self.create_options() if self.chance(0.15) else [])

    def madd(self):
        count = self.random.randint(1, 6)
        return ["TS.MADD"] + [word for _ in range(count) for word in (self.written(), self.time(), self.value())]

    def increment(self):
        words = [self.random.choice(["TS.INCRBY", "TS.DECRBY"]), self.written(), self.value()]
        words += ["TIMESTAMP", self.time()]
        return words + (self.create_options() if self.chance(0.1) else [])

    def delete(self):
        start, end = sorted((self.time(), self.time()))
        return ["TS.DEL", self.key(), start, self.random.choice([start, end, start + 10])]

    def createrule(self):
        """Only between keys that cannot have another rule."""
        random = self.random
        pair = random.choice([
            [random.choice(SOURCES), random.choice(DESTINATIONS)] if self.is_ruled else ["k1", "k1"],
            [random.choice(DESTINATIONS), random.choice(["k3", "missing"])] if self.is_ruled else ["missing", "k1"],
            ["k3", self.ruled] if self.is_ruled else ["k2", "k2"],
            [self.key()] * 2, ["missing", self.key()], [self.key(), "missing"],
        ])
        return ["TS.CREATERULE", *pair, "AGGREGATION", random.choice(AGGREGATORS), random.choice([7, 10, 1000])]

    def deleterule(self):
        """Never of an existing rule: a rule created later counts differently."""
        return ["TS.DELETERULE", self.key(), self.random.choice([*KEYS[:4], "missing"])]

    def keyspace(self):
        random = self.random
        return random.choice([
            ["DEL", self.random.choice(["k3", "missing"]) if self.is_ruled else self.key()], ["EXISTS", self.key(), self.key()], ["TYPE", self.key()],
            # 1.12 still finds a key overwritten by RENAME by its labels.
            ["RENAME", "missing", "other"], ["RENAMENX", "k3" if self.is_ruled else self.written(), self.written()], ["DBSIZE"],
            ["EXPIRE", self.key(), 1000], ["PERSIST", self.key()], ["TTL", self.key()],
            ["COPY", self.key(), self.key()], ["TS.NOSUCH", self.key()], ["PTTL", "missing"],
        ])

    # Reads.

    def get(self):
        return ["TS.GET", self.key()] + (["LATEST"] if self.chance(0.3) else [])

    def span(self):
        start, end = sorted((self.time(), self.time()))
        if self.chance(0.4):
            start = "-"
        if self.chance(0.4):
            end = "+"
        if self.chance(0.03) and start != "-" and end != "+":
            start, end = end, start
        return start, end

    def range_options(self):
        random = self.random
        start, end = self.span()
        words = [start, end]
        if self.chance(0.2):
            words += ["LATEST"]
        if self.chance(0.15):
            words += ["FILTER_BY_TS", *[self.time() for _ in range(random.randint(1, 6) if self.chance(0.98) else 0)]]
        if self.chance(0.15):
            words += ["FILTER_BY_VALUE", *sorted((round(random.uniform(-20, 20), 1), round(random.uniform(-20, 99), 1)))]
        if self.chance(0.3):
            words += ["COUNT", random.choice([1, 2, 5, 100])]
        if self.chance(0.6):
            words += self.aggregation(start, end)
        return words

    def aggregation(self, start, end):
        random, words = self.random, []
        if self.chance(0.4):
            words += ["ALIGN", random.choice(["-", "+", "start", "end", 0, 3, 17])]
        aggregator = random.choice(self.aggregators)
        words += ["AGGREGATION", aggregator, random.choice([1, 7, 10, 50, 333, 100000] * 5 + [0])]
        if self.chance(0.3):
            words += ["BUCKETTIMESTAMP", random.choice(["-", "+", "~", "start", "end", "mid"] * 5 + ["x"])]
        if self.chance(0.3) and words[words.index("AGGREGATION") + 2] >= 7:
            words += ["EMPTY"]
        return words

    def range(self):
        return [self.random.choice(["TS.RANGE", "TS.REVRANGE"]), self.key(), *self.range_options()]

    def filters(self):
        random, words = self.random, []
        for _ in range(random.choice([1, 1, 2, 3])):
            name = random.choice(list(LABELS) + ["absent"])
            values = LABELS.get(name, ["1"])
            value = random.choice(values)
            several = f"({','.join(random.sample(values, random.randint(1, len(values))))})"
            form = random.choices(
                [f"{name}={value}", f"{name}={several}", f"{name}!={value}", f"{name}!={several}", f"{name}=", f"{name}!="],
                [5, 3, 2, 1, 1, 1])[0]
            words.append(form)
        return words

    def labels_option(self):
        if self.chance(0.4):
            return ["WITHLABELS"]
        if self.chance(0.02):
            return ["WITHLABELS", "SELECTED_LABELS", "a"]
        if self.chance(0.3):
            return ["SELECTED_LABELS", *self.random.sample(list(LABELS) + ["absent"], self.random.randint(1, 3))]
        return []

    def mget(self):
        return ["TS.MGET", *(["LATEST"] if self.chance(0.2) else []), *self.labels_option(), "FILTER", *self.filters()]

    def mrange(self):
        words = [self.random.choice(["TS.MRANGE", "TS.MREVRANGE"]), *self.range_options(), *self.labels_option()]
        words += ["FILTER", *self.filters()]
        if self.chance(0.35):
            words += ["GROUPBY", self.random.choice(list(LABELS)), "REDUCE", self.random.choice(self.reducers * 5 + ["x"])]
        return words

    def queryindex(self):
        return ["TS.QUERYINDEX", *self.filters()]

    def info(self):
        return ["TS.INFO", self.key()]


class Newest(Commands):
    """The same with what came after 1.12: NaN, several aggregators, later commands."""

    def __init__(self, random):
        super().__init__(random)
        # Late samples of a rule are another matter there.
        self.is_ruled = False
        self.aggregators = [*self.aggregators, "countnan", "countall"]
        self.reducers = [*self.reducers, "countnan", "countall"]

    def makers(self):
        return [*super().makers(), (5, self.nrange), (3, self.read), (2, self.querylabels)]

    def value(self):
        return "nan" if self.chance(0.1) else super().value()

    def aggregation(self, start, end):
        words = super().aggregation(start, end)
        if self.chance(0.3):
            words[words.index("AGGREGATION") + 1] = self.several()
        return words

    def several(self):
        return ",".join(self.random.choices(self.aggregators, k=self.random.randint(1, 3)))

    def mrange(self):
        words = super().mrange()
        if self.chance(0.2):
            words.insert(words.index("FILTER"), "EXCLUDEEMPTY")
        return words

    def nrange(self):
        keys = self.random.sample(KEYS, self.random.randint(1, 3))
        words = self.range_options()
        if "AGGREGATION" in words:
            at = words.index("AGGREGATION") + 1
            words[at:at + 1] = [self.several() for _ in keys]
        name = self.random.choice(["TS.NRANGE", "TS.NREVRANGE"])
        return [name, self.random.choice([len(keys)] * 9 + [0]), *keys, *words]

    def read(self):
        words = ["TS.READ", self.key(), self.random.choice(["-", "+", "$", self.time()])]
        if self.chance(0.2):
            words += ["BLOCK", 1, self.random.choice([0, 1, 3])]
        return words + (["MAX_COUNT", self.random.randint(0, 3)] if self.chance(0.4) else [])

    def querylabels(self):
        words = ["TS.QUERYLABELS", *self.random.choice([["LABELS"], ["VALUES", self.random.choice(list(LABELS))]])]
        return words + (["FILTER", *self.filters()] if self.chance(0.6) else [])


def retentions(words):
    """The numbers that a server takes for retentions; spoiling must not add any."""
    pairs = zip(words, words[1:])
    return {number for word, number in pairs if word.upper() == "RETENTION" and number.isdigit()}
