import { execFile } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { freePort } from '../../src/dev/processes.js';

/**
 * Another process that reserves ports until its input ends. The process reserves a port by binding the UDP port of the
 * same number.
 */
const holder = `
const { createSocket } = require('node:dgram');
const socket = createSocket('udp4');
socket.bind({ port: Number(process.argv[1]), address: '127.0.0.1', exclusive: true }, () => socket.close());
socket.on('error', () => process.exit(3));
`;
const run = promisify(execFile);

test('if two processes look for free ports at the same time, they get different ports', async () => {
  const port = await freePort();
  // The other process exits with code 3, because it cannot reserve this port.
  await expect(run(process.execPath, ['-e', holder, String(port)])).rejects.toMatchObject({ code: 3 });
});

test('a port that another process has reserved is skipped', async () => {
  const reserve = async (port: number) => {
    const socket = createSocket('udp4').bind({ port, address: '127.0.0.1', exclusive: true });
    await once(socket, 'listening');
    return socket;
  };
  let next = 0;
  let socket: Socket | undefined;
  // Tries other ports, because another test may already have reserved this port.
  while (socket === undefined) {
    next = (await freePort()) + 1;
    socket = await reserve(next).catch(() => undefined);
  }
  expect(await freePort()).not.toBe(next);
  socket.close();
});
