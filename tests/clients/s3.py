"""An object store that speaks S3, moto's server, and a wire to it that can be cut."""

import asyncio
import os
import random
import subprocess
import sys
import threading
import time

import boto3
from botocore.exceptions import EndpointConnectionError

from peer import free_port


class S3:
    """The object store, with one bucket. `settings` name it in an environment."""

    def __init__(self, bucket):
        self.bucket, self.port = bucket, free_port()
        self.settings = self.settings_at(self.port)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.client = boto3.client(
            "s3",
            endpoint_url=self.settings["AWS_ENDPOINT_URL"],
            aws_access_key_id="key",
            aws_secret_access_key="secret",
            region_name="us-east-1",
        )
        deadline = time.monotonic() + 60
        while True:
            try:
                self.client.create_bucket(Bucket=bucket)
                return
            except EndpointConnectionError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    @staticmethod
    def settings_at(port, host="127.0.0.1"):
        return {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
        }

    @staticmethod
    def environment(settings):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return kept | settings

    def take_away(self, part=""):
        """Deletes all objects whose names have `part`; what they were."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket)
        names = [held["Key"] for page in pages for held in page.get("Contents", [])]
        objects = {}
        for name in names:
            if part in name:
                objects[name] = self.client.get_object(Bucket=self.bucket, Key=name)["Body"].read()
                self.client.delete_object(Bucket=self.bucket, Key=name)
        return objects

    def bring_back(self, objects):
        for name, body in objects.items():
            self.client.put_object(Bucket=self.bucket, Key=name, Body=body)

    def close(self):
        self.process.kill()
        self.process.wait()


class Wire:
    """A port that leads to another one; `mode` is "whole", "cut", "slow", or "wrong": then many answers
    are errors, or have another byte."""

    def __init__(self, target, host="127.0.0.1"):
        self.target, self.mode, self.random = target, "whole", random.Random(target)
        self.loop = asyncio.new_event_loop()
        serving = asyncio.start_server(self.carry, host, 0)
        self.port = self.loop.run_until_complete(serving).sockets[0].getsockname()[1]
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    async def carry(self, reader, writer):
        if self.mode == "cut":
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self.target)
        await asyncio.gather(self.pass_on(reader, back, writer), self.pass_on(there, writer, back, self.spoil))

    async def pass_on(self, reader, writer, other, change=lambda data: data):
        try:
            while data := await reader.read(1 << 16):
                if self.mode == "cut":
                    break
                if self.mode == "slow":
                    await asyncio.sleep(0.2)
                writer.write(change(data) if self.mode == "wrong" else data)
                await writer.drain()
        except OSError:
            pass
        if self.mode == "cut":
            other.transport.abort()
            writer.transport.abort()
        else:
            writer.close()

    def spoil(self, data):
        """An answer, or a part of one, as a store with faults would give it. Lists stay as they are: only
        what is read out of an object is compared with what was written."""
        fault = self.random.randrange(4)
        if fault == 0 and b"xml" not in data[:2000].lower():
            return data[:-1] + bytes([data[-1] ^ 1])
        if fault == 1 and data.startswith(b"HTTP/1.1 200"):
            status = self.random.choice(["404 Not Found", "500 Internal Server Error", "503 Slow Down"])
            return f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
        return data
