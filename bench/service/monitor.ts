/** Reads Redis' MONITOR stream over a separate connection. */
import { once } from 'node:events';
import { connect } from 'node:net';

export interface MonitoredCommand {
  /**
   * The client's address, or `lua` for a command inside a script. Commands inside a script follow the call of the
   * script.
   */
  readonly source: string;
  /** The command name in lower case. */
  readonly command: string;
  /** The arguments as MONITOR prints them: quoted and separated by spaces. */
  readonly args: string;
}

const line = /^\+[\d.]+ \[\d+ (\S+)\] "([^"]*)" ?(.*)$/;

/**
 * Reads the stream without a client library, because a library may take the first monitored commands for the answer to
 * its own command.
 */
export async function openMonitor(
  url: string,
  hear: (command: MonitoredCommand) => void,
): Promise<() => void> {
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
        // Redis answers `+OK` to AUTH and `+OK` to MONITOR. The monitored commands follow.
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
