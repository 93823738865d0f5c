/** Everything that Redis is told, as its MONITOR tells it, over a connection that does nothing else. */
import { once } from 'node:events';
import { connect } from 'node:net';

export interface Told {
  /** Address of who asked, or `lua` for what a script does inside Redis, which follows the call of its script. */
  readonly source: string;
  /** In lower case. */
  readonly command: string;
  /** Arguments as MONITOR spells them: quoted, with a space between. */
  readonly args: string;
}

const line = /^\+[\d.]+ \[\d+ (\S+)\] "([^"]*)" ?(.*)$/;

/** A library that also sends commands may take what is told in the first packet for an answer: this reads lines. */
export async function openMonitor(url: string, hear: (told: Told) => void): Promise<() => void> {
  const { hostname, port, password } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  socket.setEncoding('latin1');
  let rest = '';
  let answered = 0;
  const begun = new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('Redis closed the connection of MONITOR')));
    socket.on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\r\n');
      rest = lines.pop() ?? '';
      for (const each of lines) {
        if (each.startsWith('-')) reject(new Error(each.slice(1)));
        // The password, then MONITOR itself.
        if (each === '+OK' && ++answered === 2) resolve();
        const [, source, command, args] = line.exec(each) ?? [];
        if (source && command) hear({ source, command: command.toLowerCase(), args: args ?? '' });
      }
    });
  });
  socket.write(`AUTH ${password}\r\nMONITOR\r\n`);
  try {
    await begun;
  } catch (error) {
    socket.destroy();
    throw error;
  }
  return () => socket.destroy();
}
