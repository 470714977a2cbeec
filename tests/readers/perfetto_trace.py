# SPDX-License-Identifier: GPL-2.0-only
"""Reads a trace with the format that Perfetto publishes and says what is in it.

It holds the trace to what Perfetto's importer needs: no field that the format
does not have, tracks that are described before they are used and whose parents
are known, times in order, slices that nest, arrows with two ends. Then it prints
as JSON what a user sees of it.

usage: perfetto_trace.py TRACE
"""

import json
import sys

from google.protobuf import unknown_fields
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as trace_format


def check_fields(message, path):
    """No message may have fields that the format does not know."""
    unknown = unknown_fields.UnknownFieldSet(message)
    assert len(unknown) == 0, f"{path}: field {unknown[0].field_number} is unknown"
    for field, value in message.ListFields():
        if field.type != field.TYPE_MESSAGE:
            continue
        for part in value if field.is_repeated else [value]:
            check_fields(part, f"{path}.{field.name}")


def arguments(event):
    """The name and value of each thing that one can know of a slice."""
    return {it.name: getattr(it, it.WhichOneof("value")) for it in event.debug_annotations}


def read(trace):
    tracks, slices, open_slices, arrows = {}, [], {}, {}
    time = 0
    event_type = trace_format.TrackEvent.Type
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert not track.HasField("parent_uuid") or track.parent_uuid in tracks
            tracks[track.uuid] = track
            continue
        assert packet.HasField("track_event"), packet
        assert packet.trusted_packet_sequence_id != 0
        assert packet.timestamp >= time, "times are not in order"
        time = packet.timestamp
        event = packet.track_event
        assert event.track_uuid in tracks
        stack = open_slices.setdefault(event.track_uuid, [])
        if event.type == event_type.TYPE_SLICE_END:
            slices[stack.pop()]["end_ns"] = time
            continue
        assert event.type == event_type.TYPE_SLICE_BEGIN
        stack.append(len(slices))
        slices.append(
            {
                "category": event.categories[0],
                "name": event.name,
                "begin_ns": time,
                "depth": len(stack),
                "arguments": arguments(event),
            }
        )
        for flow in event.flow_ids:
            arrows.setdefault(flow, []).append(len(slices) - 1)
        for flow in event.terminating_flow_ids:
            assert flow in arrows, "an arrow ends that has no begin"
            arrows[flow].append(len(slices) - 1)
    assert not any(open_slices.values()), "slices without an end"
    threads = [track.thread for track in tracks.values() if track.HasField("thread")]
    processes = [track.process for track in tracks.values() if track.HasField("process")]
    return {
        "threads": sorted([it.tid, it.thread_name] for it in threads),
        "processes": sorted([it.pid, it.process_name] for it in processes),
        "tracks": sorted(track.name for track in tracks.values() if track.name),
        "slices": slices,
        "arrows": sorted(arrows.values()),
    }


def main():
    trace = trace_format.Trace()
    with open(sys.argv[1], "rb") as file:
        trace.ParseFromString(file.read())
    check_fields(trace, "trace")
    print(json.dumps(read(trace)))


if __name__ == "__main__":
    main()
