/**
 * Keeps update streams or long polls open from a separate process. Uses plain sockets, because they need little memory
 * and CPU time. Whenever a poll is answered, sends the next poll.
 */
import { connect } from 'node:net';
import { inParallel } from '../../src/loadtest/client.js';

export interface IdleTask {
  readonly port: number;
  /** The URL paths, one for each client. */
  readonly paths: readonly string[];
  readonly repeats: boolean;
}

/**
 * `opened` is sent when every client is connected. Clients of streams must also have received the head of the answer.
 */
export interface IdleWord {
  readonly kind: 'opened' | 'state';
  /** How many clients lost their connection or received an answer other than 200. */
  readonly failed: number;
}

const width = 64;
let failed = 0;
const say = (kind: IdleWord['kind']) => process.send?.({ kind, failed } satisfies IdleWord);

function open(path: string, { port, repeats }: IdleTask): Promise<void> {
  const request = `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`;
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let answered = false;
    socket.on('connect', () => {
      socket.write(request);
      if (repeats) resolve();
    });
    socket.on('data', (data) => {
      const isAnswer = repeats || !answered;
      answered = true;
      if (isAnswer && data.toString('latin1', 0, 12) !== 'HTTP/1.1 200') socket.destroy();
      else if (repeats) socket.write(request);
      resolve();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      failed++;
      resolve();
    });
  });
}

process.on('disconnect', () => process.exit());
process.on('message', async (message: IdleTask | 'state') => {
  if (message === 'state') {
    say('state');
    return;
  }
  await inParallel(message.paths.length, width, (i) => open(message.paths[i] as string, message));
  say('opened');
});
