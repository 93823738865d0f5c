/**
 * Answers every request immediately with a few bytes. Its latency shows how slow the machine itself is: the network,
 * the client, and the wait for a core.
 */
import { createServer } from 'node:http';

const body = JSON.stringify({ ok: true, result: true });
const server = createServer((_request, response) => {
  response.setHeader('content-type', 'application/json');
  response.end(body);
});
server.listen(0, '127.0.0.1', () => process.send(server.address().port));
