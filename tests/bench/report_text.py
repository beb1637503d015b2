"""The words of docs/benchmarks.md."""

INTRO = """# Benchmarks

This page is written by `make bench`. Run it on your own machine: it starts its own servers and needs nothing else. `make bench
ARGS=--quick` takes half a minute, `ARGS=--full` goes to 10,000,000 keys and 5,000 connections, and `CELL=path/to/libredis_cell.so make
bench` compares with redis-cell. Trust ratios more than absolute numbers: everything is measured in turn in one run, so what
disturbs one disturbs all."""

HOW = """## How it is measured

- **µs** is the time inside the command as `INFO commandstats` has it, without network, protocol and reply to the socket. The server
  counts whole microseconds, from clock to clock; over the thousands of calls of a round that evens out. Calls are pipelined by 50.
- **Rounds**: every row has its turn in every round. Told is the best round. "Middle above best" is how far the median round was from it:
  where that is large, the machine was busy and small differences mean nothing.
- **Per second** is one server with one connection, pipelined; or 50 connections, not pipelined, by redis-benchmark. The load comes from the
  same machine, so the latter measures the kernel and the client more than the command.
- **Keys**: each row has 100,000 keys of its own, all in the same server, asked in random order: most calls find their key outside of
  the processor's caches, as in life. The rows for one key show the computation alone.
- **Granted** are keys in use: a bucket that owes an hour of its rate. Such a bucket moves the expiry of its key now and then; "expiry
  moves" is the same with an expiry that moves at every call, "new key" is a call that creates its key.
- **Lua** forms run by EVALSHA: a token bucket in a hash, a log in a sorted set, two weighted counters, INCR and PEXPIRE, and leases in a
  sorted set. They are in `tests/bench/scripts.py`. They tell less: none has the reset time, most have no wait.
- RL.ACQUIRE and RL.RELEASE alternate, on keys that hold one more lease."""

FLOOR = """### Where the instructions go

A granted RL.TOKENBUCKET executes {granted} instructions inside the command, SET PX {set_px}. Of the former, {own} are the module's own code:
parsing, arithmetic, packing the state, encoding the effect. The other {api} are the server's, reached by its module API: looking the key
up, five integers of the reply, and {replicate} for `RM_Replicate`, most of which is a lookup of the command's name. So the floor, with a
module that computes nothing, is {api}, and no module that answers five integers and replicates its effect can go below it.

SET pays for its replication too, but after the time that commandstats counts: its own call is propagated as it stands. A module
command could have that with `RM_ReplicateVerbatim`, but then a replica would decide again with its own clock: that is wrong, so it is
not done. Leaving replication out while there is neither replica nor AOF would be wrong too: the replication backlog needs it.
Without `RM_Replicate` it would be {without}.

A refusal executes {refused}, {refused_own} of them ours, INCR {incr}. It replicates nothing. The floor of a reply of five integers about a
key is {refused_api}: INCR answers one."""

ESTIMATE = """## Nodes for a million decisions a second

A cluster on one machine measures the number of its processors, not the cluster. Keys are independent and a call touches one, so a cluster
adds up: an estimate on paper. It assumes nodes like this machine, each with a processor for the server and another for
the kernel, load at 60 % so that latency stays low and a node may fail, keys that spread evenly over slots, and replicas that are
machines of their own. A key that is asked more than one node can answer stays the limit: split it."""
