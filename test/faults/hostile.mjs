/**
 * Receivers that misbehave, in a separate process so that their load does not delay the measurements of the test. The
 * path selects the behaviour: /hang, /drip, /flood, /bomb, /redirect. Requests that follow the redirect are counted
 * under `target`.
 */
import { createServer } from 'node:https';
import { gzipSync } from 'node:zlib';

const gigabyte = 2 ** 30;
const chunk = Buffer.alloc(65_536, ' ');
/** A gzip file of 16 parts that expands to one gigabyte. */
const bomb = Buffer.concat(Array(16).fill(gzipSync(Buffer.alloc(gigabyte / 16))));
/**
 * For each path: the number of requests, the longest time for which a request was open (in ms), and the most bytes that
 * were written for one request.
 */
const counts = {};

function flood(response) {
  response.writeHead(200, { 'content-length': gigabyte });
  let left = gigabyte / chunk.length;
  const more = () => {
    while (left-- > 0 && !response.destroyed) if (!response.write(chunk)) return;
    response.end();
  };
  response.on('drain', more);
  more();
}

const kinds = {
  hang: () => undefined,
  drip(response) {
    response.writeHead(200);
    const timer = setInterval(() => response.write(' '), 500);
    response.once('close', () => clearInterval(timer));
  },
  flood,
  bomb: (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
  redirect: (response) => response.writeHead(302, { location: '/target' }).end(),
  target: (response) => response.end(),
};

process.once('message', (certificate) => {
  const server = createServer(certificate, (request, response) => {
    const kind = request.url.slice(1);
    counts[kind] ??= { requests: 0, longestMs: 0, bytes: 0 };
    const count = counts[kind];
    count.requests++;
    const began = performance.now();
    const before = request.socket.bytesWritten;
    request.resume();
    response.once('close', () => {
      count.longestMs = Math.max(count.longestMs, Math.round(performance.now() - began));
      count.bytes = Math.max(count.bytes, request.socket.bytesWritten - before);
    });
    request.once('end', () => kinds[kind](response));
  });
  server.on('tlsClientError', () => {});
  server.on('connection', (socket) => socket.on('error', () => {}));
  server.listen(0, () => process.send({ port: server.address().port }));
  process.on('message', () => process.send({ counts }));
});
process.once('disconnect', () => process.exit());
