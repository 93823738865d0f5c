/**
 * Runs telegram-test-api in a separate process. Gets the folder of the package from its parent and reports its port.
 */
import { createRequire } from 'node:module';
import { freePort } from '../../src/dev/processes.js';

export interface PeerTask {
  /** A folder whose `node_modules` contains the package. */
  readonly folder: string;
}

type Server = new (config: { port: number; host: string }) => { start(): Promise<void> };

process.once('message', async ({ folder }: PeerTask) => {
  const TelegramServer = createRequire(`${folder}/`)('telegram-test-api') as Server;
  const port = await freePort();
  await new TelegramServer({ port, host: '127.0.0.1' }).start();
  process.send?.({ port });
});
process.once('disconnect', () => process.exit(0));
