"""Judges a server as clients in Python see it: gRPC, http.client, gevent and aiohttp of Debian, and none of our code.

    judge.py HTTP_ADDRESS GRPC_ADDRESS

PYTHONPATH holds the messages that protoc made of internal/api/oip/pb/open_inference.proto.
A line for each case, "ok NAME" or
"FAIL NAME: why", then "judged N". The exit status is 1 when a case has failed.
"""

import os
import sys
import traceback

# aiohttp and grpc.aio run on asyncio, geventhttpclient on gevent: nothing is patched, so that they share a process.
import asynccases
import grpccases
import httpcases


def main():
    http, grpc = sys.argv[1:3]
    failed = judged = 0
    for module in (httpcases, grpccases, asynccases):
        for name, case in sorted(vars(module).items()):
            if not name.startswith("case_"):
                continue
            judged += 1
            try:
                case(http, grpc)
                print("ok", name[len("case_"):], flush=True)
            except Exception as e:  # a case may fail in any way, and the others are judged all the same
                failed += 1
                at = traceback.extract_tb(e.__traceback__)[-1]
                where = f"{os.path.basename(at.filename)}:{at.lineno}"
                print(f"FAIL {name[len('case_'):]}: {where}: {type(e).__name__}: {e}", flush=True)
    print("judged", judged)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
