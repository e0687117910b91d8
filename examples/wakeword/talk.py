"""Sends a sound, 16 bits at 16 kHz, to the server in chunks of 80 ms, and prints what it hears: python3 talk.py alexa.wav"""
import json
import sys
import urllib.request
import wave

import numpy

CHUNK = 1280

with wave.open(sys.argv[1]) as sound:
    samples = numpy.frombuffer(sound.readframes(sound.getnframes()), dtype=numpy.int16)
samples = numpy.concatenate([numpy.zeros(25 * CHUNK), samples, numpy.zeros(10 * CHUNK)])  # the silence around it
for k in range(len(samples) // CHUNK):
    chunk = samples[k * CHUNK : (k + 1) * CHUNK]
    query = {
        "inputs": [{"name": "samples", "datatype": "FP32", "shape": [1, CHUNK], "data": chunk.tolist()}],
        "parameters": {"sequence_id": 1, "sequence_start": k == 0},
    }
    request = urllib.request.Request("http://localhost:8000/v2/models/wakeword/infer", json.dumps(query).encode())
    answer = {x["name"]: x["data"] for x in json.load(urllib.request.urlopen(request))["outputs"]}
    print(f"{0.08 * k:5.2f} s  voice {answer['voice'][0]:.2f}", *(f"alexa {x:.2f}" for x in answer["alexa"]), sep="  ")
