"""The machine itself: peaks of multiply-add, bandwidths, the round trip of a cache line, and whether it is quiet."""
import machine


def figures(root):
    with machine.Watch() as idle:
        machine.time.sleep(1)
    yield "probe: others use, share of a processor", idle.others, machine.SHARE, idle.others < machine.SHARE
    yield "probe: stolen, share of a processor", idle.steal, machine.SHARE, idle.steal < machine.SHARE
    entry = machine.ceilings(root)
    values, quiet = machine.probe(root)
    yield "probe: round trip of a cache line, ns: " + machine.line_state(root), values.pop("round_trip_ns"), "-", True
    rates = entry["rates"] if entry else {}
    for name, value in values.items():
        if name in rates:
            bound = machine.REACHED * rates[name]
            yield f"probe: {name}, G/s (95 % of {rates[name]})", value, bound, value >= bound
        else:
            yield f"probe: {name}, G/s", value, "-", True
    place = entry["machine"] if entry else "no ceilings are known for this machine (scripts/lib/ceilings.json)"
    fit = entry is not None and quiet and machine.is_fit(values, entry)
    yield f"probe: figures of this run count: {place}", "yes" if fit else "no", "yes", fit
