"""`wavesmith doctor`: what this machine has, what it lacks, and the command that mends it.

Everything is read through a `Probe` (probe.py), which records it; a saved record is a capture (capture.py). All
detection works on the probe, so it answers the same on the machine itself and from a capture of it.
"""
