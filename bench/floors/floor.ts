/**
 * Runs one comparison server (a floor). It has the same HTTP engine as the service and does only the minimum work for
 * one call. The parent process chooses the call. The server exits when its parent exits.
 */
import {
  type EngineRequest,
  type EngineResponse,
  loadEngine,
  type TemplatedApp,
} from '../../src/http/engine.js';
import { RedisConnection } from '../../src/redis/connection.js';
import { makeKeys } from '../../src/store/core/keys.js';
import { type CallSetup, type FloorCall, serveCalls } from './floor_calls.js';

export type FloorSetup = { readonly kind: 'get_me'; readonly body: string } | CallSetup;

export interface FloorTask {
  readonly setup: FloorSetup;
  readonly redisUrl: string;
  readonly partitions: number;
}

/** For goal P1: sends the same bytes as `getMe` without reading the request. */
function serveBytes(app: TemplatedApp, body: string): void {
  app.get('/*', (response) => {
    response.writeHeader('Content-Type', 'application/json').end(body);
  });
}

/** Calls `then` with the whole body. `gone()` tells whether the client has disconnected. */
function readBody(response: EngineResponse, then: (body: Buffer, gone: () => boolean) => void): void {
  let aborted = false;
  let parts: Buffer[] = [];
  response.onAborted(() => {
    aborted = true;
  });
  response.onData((chunk, isLast) => {
    if (isLast && parts.length === 0) return then(Buffer.from(chunk), () => aborted);
    parts.push(Buffer.from(Buffer.from(chunk)));
    if (!isLast) return;
    then(Buffer.concat(parts), () => aborted);
    parts = [];
  });
}

interface HeaderRequest {
  getHeader(lowerCaseName: string): string;
}

function serveCall(app: TemplatedApp, forPeople: boolean, call: FloorCall): void {
  const handle = (response: EngineResponse, request: EngineRequest) => {
    const head = {
      verb: request.getMethod(),
      path: request.getUrl(),
      query: request.getQuery() ?? '',
      authorization: forPeople ? (request as EngineRequest & HeaderRequest).getHeader('authorization') : '',
    };
    readBody(response, (body, gone) => {
      const answer = (status: string, text: string) => {
        if (gone()) return;
        response.cork(() => {
          if (status !== '200 OK') response.writeStatus(status);
          response.writeHeader('Content-Type', 'application/json').end(text);
        });
      };
      call({ ...head, body }).then(
        (text) => answer('200 OK', text),
        (error: Error) => answer('500 Internal Server Error', JSON.stringify({ error: error.message })),
      );
    });
  };
  app.post('/*', handle);
  app.del('/*', handle);
}

process.once('message', async ({ setup, redisUrl, partitions }: FloorTask) => {
  const engine = loadEngine();
  const app = engine.app();
  if (setup.kind === 'get_me') {
    serveBytes(app, setup.body);
  } else {
    const connection = new RedisConnection({ url: redisUrl, name: 'floor' });
    await connection.ready(10_000);
    serveCall(
      app,
      setup.kind === 'react',
      await serveCalls({ connection, keys: makeKeys(partitions) }, setup),
    );
  }
  app.listen('127.0.0.1', 0, engine.exclusivePort, (socket) => {
    process.send?.({ port: socket ? engine.localPort(socket) : 0 });
  });
});
process.once('disconnect', () => process.exit(0));
