"""``python -m benchmarks.load.empty SOCKET``: the same framework answers the same requests, with nothing behind."""

from __future__ import annotations

import sys

import uvicorn
from fastapi import FastAPI, Request, Response

app = FastAPI()


@app.post("/v1/placements")
@app.post("/v1/loads")
async def nothing(request: Request) -> Response:
    await request.body()
    return Response(b"{}", media_type="application/json")


@app.get("/v1/health")
async def health() -> dict[str, str]:
    return {"status": "ok"}


if __name__ == "__main__":
    uvicorn.run(app, uds=sys.argv[1], log_level="warning", access_log=False, http="httptools", loop="uvloop")
