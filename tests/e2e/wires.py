"""TCP connections that a test can cut."""

import asyncio
import threading


class Wires:
    """TCP to one port, by way of ports of our own, each of which can be cut. What comes is held up at random."""

    def __init__(self, target, delay, dice):
        self._target, self._delay, self._dice = target, delay, dice
        self._loop = asyncio.new_event_loop()
        self._cut = set()
        self._servers = []
        self._open = {}  # port -> writers of its connections
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def _run(self, task):
        return asyncio.run_coroutine_threadsafe(task, self._loop).result(10)

    def add(self, at=0):
        """A port that leads to the target."""
        async def listen():
            server = await asyncio.start_server(lambda r, w: self._serve(port, r, w), "127.0.0.1", at)
            port = server.sockets[0].getsockname()[1]
            self._servers.append(server)
            self._open[port] = set()
            return port
        return self._run(listen())

    def cut(self, port):
        """From now on nothing comes through: connections hang, and new ones are broken off."""
        async def change():
            self._cut.add(port)
        self._run(change())

    def mend(self, port):
        """New connections come through again; those that hung are broken off."""
        async def change():
            self._cut.discard(port)
            for writer in self._open[port]:
                writer.transport.abort()
        self._run(change())

    def close(self):
        async def end():
            for server in self._servers:
                server.close()
            for writer in (w for some in self._open.values() for w in some):
                writer.transport.abort()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
        self._run(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _serve(self, port, reader, writer):
        if port in self._cut:
            writer.transport.abort()
            return
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        both = (writer, there_writer)
        self._open[port].update(both)
        try:
            await asyncio.gather(self._pump(port, reader, there_writer), self._pump(port, there_reader, writer))
        except asyncio.CancelledError:
            pass  # the end, which the caller that we have not got would complain about
        self._open[port].difference_update(both)

    async def _pump(self, port, reader, writer):
        try:
            while data := await reader.read(1 << 16):
                await asyncio.sleep(self._dice.uniform(0, self._delay))
                while port in self._cut:
                    await asyncio.sleep(0.05)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()
